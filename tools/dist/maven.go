package main

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"text/template"
)

// The coordinates of the Java packages, and the package of their classes.
const (
	mavenGroup  = "io.github.tabletop-emu"
	mavenName   = "tabletop"
	javaPackage = "io.github.tabletopemu"
	javaRelease = "17"
)

var (
	//go:embed packages/pom.xml
	pomText string
	//go:embed packages/javadoc.md
	javadocReadme []byte

	pom = template.Must(template.New("pom.xml").Parse(pomText))
)

// mavenOS and mavenArch activate a profile of Maven.
var (
	mavenOS   = map[string]string{"linux": "<name>linux</name>", "darwin": "<family>mac</family>", "windows": "<family>windows</family>"}
	mavenArch = map[string][]string{"amd64": {"amd64", "x86_64"}, "arm64": {"aarch64"}}
)

// mavenProfile adds the program of a platform.
type mavenProfile struct{ ID, OS, Arch, Classifier string }

// writeMaven writes a repository with the classes of the client for Java and of the extension for
// JUnit 5, and a jar with the program for each platform. A profile adds that of the platform to
// the dependencies of a project.
func writeMaven(ctx context.Context, r *release) error {
	classes, sources, err := r.compileJava(ctx)
	if err != nil {
		return err
	}
	var profiles []mavenProfile
	for _, b := range r.builds {
		classifier := b.os + "-" + b.arch
		for _, arch := range mavenArch[b.arch] {
			profiles = append(profiles, mavenProfile{b.os + "-" + arch, mavenOS[b.os], arch, classifier})
		}
		err := r.writeJar("-"+classifier, []file{
			{name: "tabletop-emu/" + classifier + "/" + b.exe("tabletop"), data: b.programs["tabletop"], executable: true},
			{name: "META-INF/NOTICE", data: b.notice},
		})
		if err != nil {
			return err
		}
	}
	for _, jar := range []struct {
		classifier string
		files      []file
	}{{"", classes}, {"-sources", sources}, {"-javadoc", []file{{name: "README.md", data: javadocReadme}}}} {
		if err := r.writeJar(jar.classifier, jar.files); err != nil {
			return err
		}
	}
	var text bytes.Buffer
	err = pom.Execute(&text, map[string]any{
		"Group": mavenGroup, "Name": mavenName, "Version": r.version, "Description": description, "Homepage": homepage, "Profiles": profiles,
	})
	if err != nil {
		return err
	}
	return r.writeToRepository(text.Bytes(), ".pom")
}

// compileJava returns the classes of the client, and its sources. It adds a package to them, since no
// package can import classes without one.
func (r *release) compileJava(ctx context.Context) (classes, sources []file, err error) {
	work, err := os.MkdirTemp("", "tabletop-java-")
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = os.RemoveAll(work) }()
	folder := filepath.Join("io", "github", "tabletopemu")
	if err := os.MkdirAll(filepath.Join(work, "sources", folder), 0o755); err != nil {
		return nil, nil, err
	}
	args := []string{"-proc:none", "-nowarn", "-encoding", "UTF-8", "--release", javaRelease, "-d", filepath.Join(work, "classes")}
	if r.javaClasspath != "" {
		args = append(args, "-classpath", r.javaClasspath)
	}
	for _, name := range []string{"Tabletop.java", "TabletopExtension.java"} {
		text, err := os.ReadFile(filepath.Join(r.folder, "clients", "java", name))
		if err != nil {
			return nil, nil, err
		}
		to := filepath.Join(work, "sources", folder, name)
		if err := os.WriteFile(to, append([]byte("package "+javaPackage+";\n\n"), text...), 0o644); err != nil {
			return nil, nil, err
		}
		args = append(args, to)
	}
	if _, err := output(ctx, "", "javac", args...); err != nil {
		return nil, nil, fmt.Errorf("compiling the client with a JDK, and with -classpath for JUnit: %w", err)
	}
	if classes, err = filesBelow(filepath.Join(work, "classes")); err != nil {
		return nil, nil, err
	}
	sources, err = filesBelow(filepath.Join(work, "sources"))
	return classes, sources, err
}

// filesBelow returns the files below a folder, in the order of their names.
func filesBelow(folder string) (files []file, err error) {
	err = filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(folder, name)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(name)
		files = append(files, file{name: filepath.ToSlash(rel), data: data})
		return err
	})
	return files, err
}

// writeJar writes a jar with the license into the repository.
func (r *release) writeJar(classifier string, files []file) error {
	files = append([]file{
		{name: "META-INF/MANIFEST.MF", data: []byte("Manifest-Version: 1.0\r\nAutomatic-Module-Name: " + javaPackage + "\r\n\r\n")},
		{name: "META-INF/LICENSE", data: r.license},
	}, files...)
	if classifier != "" { // the module is that of the classes
		files[0].data = []byte("Manifest-Version: 1.0\r\n\r\n")
	}
	jar, err := zipped(files, r.time)
	if err != nil {
		return err
	}
	return r.writeToRepository(jar, classifier+".jar")
}

// writeToRepository writes a file of the artifact, with the checksums that Maven reads.
func (r *release) writeToRepository(data []byte, ending string) error {
	name := mavenName + "-" + r.version + ending
	folder := []string{"maven", "io", "github", "tabletop-emu", mavenName, r.version}
	sha, md := sha1.Sum(data), md5.Sum(data)
	for _, f := range []file{{name: name, data: data}, {name: name + ".sha1", data: []byte(hex.EncodeToString(sha[:]))}, {name: name + ".md5", data: []byte(hex.EncodeToString(md[:]))}} {
		if err := r.write(f.data, append(folder, f.name)...); err != nil {
			return err
		}
	}
	return nil
}
