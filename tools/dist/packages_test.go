package main

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestNPM checks the packages of npm.
func TestNPM(t *testing.T) {
	t.Parallel()
	o := tinyOptions(t, repository(t, nil), "npm")
	if err := dist(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	files := contents(t, o.out)
	const main = "npm/tabletop-emu-0.1.0.tgz"
	want := []string{main}
	wantOptional := map[string]string{}
	for _, p := range []struct{ os, cpu, program string }{
		{"linux", "x64", "tabletop"},
		{"linux", "arm64", "tabletop"},
		{"darwin", "x64", "tabletop"},
		{"darwin", "arm64", "tabletop"},
		{"win32", "x64", "tabletop.exe"},
		{"win32", "arm64", "tabletop.exe"},
	} {
		archive := "npm/tabletop-emu-" + p.os + "-" + p.cpu + "-0.1.0.tgz"
		want = append(want, archive)
		found := members(t, archive, files[archive])
		sameNames(t, archive, found, "package/package.json", "package/LICENSE", "package/NOTICE", "package/"+p.program)
		if m := found["package/"+p.program]; m.mode != 0o755 {
			t.Errorf("%s: the program has the mode %v", archive, m.mode)
		}
		var about npmPackage
		if err := json.Unmarshal(found["package/package.json"].data, &about); err != nil {
			t.Fatal(err)
		}
		if about.Name != "@tabletop-emu/"+p.os+"-"+p.cpu || about.Version != "0.1.0" || !slices.Equal(about.OS, []string{p.os}) || !slices.Equal(about.CPU, []string{p.cpu}) {
			t.Errorf("%s has %+v", archive, about)
		}
		wantOptional[about.Name] = "0.1.0"
	}
	sameNames(t, "files", files, want...)
	found := members(t, main, files[main])
	sameNames(t, main, found, "package/package.json", "package/LICENSE", "package/README.md", "package/bin.mjs", "package/tabletop.mjs", "package/tabletop.d.mts", "package/tabletop-setup.mjs", "package/tabletop-setup.d.mts")
	var about npmPackage
	if err := json.Unmarshal(found["package/package.json"].data, &about); err != nil {
		t.Fatal(err)
	}
	if text := string(found["package/package.json"].data); !strings.Contains(text, `"types": "./tabletop.d.mts",`) {
		t.Errorf("TypeScript needs the types before the default:\n%s", text)
	}
	if fmt.Sprint(about.Optional) != fmt.Sprint(wantOptional) {
		t.Errorf("the optional dependencies are %v, want %v", about.Optional, wantOptional)
	}
}

// TestWheels checks the wheels, with the hashes in their records.
func TestWheels(t *testing.T) {
	t.Parallel()
	o := tinyOptions(t, repository(t, nil), "pypi")
	if err := dist(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	files := contents(t, o.out)
	sameNames(t, "files", files,
		"pypi/tabletop_emu-0.1.0-py3-none-manylinux_2_17_x86_64.musllinux_1_1_x86_64.whl",
		"pypi/tabletop_emu-0.1.0-py3-none-manylinux_2_17_aarch64.musllinux_1_1_aarch64.whl",
		"pypi/tabletop_emu-0.1.0-py3-none-macosx_12_0_x86_64.whl",
		"pypi/tabletop_emu-0.1.0-py3-none-macosx_12_0_arm64.whl",
		"pypi/tabletop_emu-0.1.0-py3-none-win_amd64.whl",
		"pypi/tabletop_emu-0.1.0-py3-none-win_arm64.whl",
	)
	for name, data := range files {
		found := members(t, name, data)
		program := "tabletop_emu-0.1.0.data/scripts/tabletop"
		if strings.Contains(name, "win_") {
			program += ".exe"
		}
		const info = "tabletop_emu-0.1.0.dist-info/"
		sameNames(t, name, found, "tabletop/__init__.py", "tabletop/py.typed", program, info+"METADATA", info+"WHEEL", info+"RECORD", info+"entry_points.txt", info+"LICENSE", info+"NOTICE")
		if found[program].mode != 0o755 {
			t.Errorf("%s: the program has the mode %v", name, found[program].mode)
		}
		recorded := map[string]string{}
		for line := range strings.Lines(string(found[info+"RECORD"].data)) {
			file, rest, _ := strings.Cut(strings.TrimSpace(line), ",")
			recorded[file] = rest
		}
		sameNames(t, "the record of "+name, recorded, slices.Collect(maps.Keys(found))...)
		for file, m := range found {
			hash := sha256.Sum256(m.data)
			want := fmt.Sprintf("sha256=%s,%d", base64.RawURLEncoding.EncodeToString(hash[:]), len(m.data))
			if file == info+"RECORD" {
				want = ","
			}
			if recorded[file] != want {
				t.Errorf("%s records %s as %s, want %s", name, file, recorded[file], want)
			}
		}
	}
}

// TestPythonVersion checks the forms of versions.
func TestPythonVersion(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"0.1.0":                               "0.1.0",
		"0.1.0-rc.2":                          "0.1.0rc2",
		"0.0.0-20261129123007-0123456789ab":   "0.0.0.dev20261129123007+0123456789ab",
		"0.1.1-0.20261129123007-0123456789ab": "0.1.1.dev20261129123007+0123456789ab",
		"0.1.0-nightly":                       "",
	} {
		if got, err := pythonVersion(version); got != want || (err == nil) != (want != "") {
			t.Errorf("%s becomes %q, %v; want %q", version, got, err, want)
		}
	}
}

// needJDK skips a test without a compiler of Java.
func needJDK(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("javac"); err != nil {
		t.Skip("there is no JDK here")
	}
}

// TestMaven checks the repository of Maven.
func TestMaven(t *testing.T) {
	t.Parallel()
	needJDK(t)
	o := tinyOptions(t, repository(t, nil), "maven")
	if err := dist(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	files := contents(t, o.out)
	const artifact = "maven/io/github/tabletop-emu/tabletop/0.1.0/tabletop-0.1.0"
	names := []string{artifact + ".pom", artifact + ".jar", artifact + "-sources.jar", artifact + "-javadoc.jar"}
	const folder = "io/github/tabletopemu/"
	classes := members(t, ".jar", files[artifact+".jar"])
	sameNames(t, "classes", classes, "META-INF/MANIFEST.MF", "META-INF/LICENSE", folder+"Tabletop.class", folder+"TabletopExtension.class")
	sources := members(t, ".jar", files[artifact+"-sources.jar"])
	sameNames(t, "sources", sources, "META-INF/MANIFEST.MF", "META-INF/LICENSE", folder+"Tabletop.java", folder+"TabletopExtension.java")
	if text := string(sources[folder+"Tabletop.java"].data); !strings.HasPrefix(text, "package io.github.tabletopemu;\n") {
		t.Errorf("a source begins with %.60q", text)
	}
	for _, p := range o.platforms {
		jar := artifact + "-" + p.os + "-" + p.arch + ".jar"
		names = append(names, jar)
		sameNames(t, jar, members(t, jar, files[jar]), "META-INF/MANIFEST.MF", "META-INF/LICENSE", "META-INF/NOTICE", "tabletop-emu/"+p.os+"-"+p.arch+"/"+p.exe("tabletop"))
		if want := "<classifier>" + p.os + "-" + p.arch + "</classifier>"; !strings.Contains(string(files[artifact+".pom"]), want) {
			t.Errorf("the POM lacks %s", want)
		}
	}
	for _, name := range slices.Clone(names) {
		names = append(names, name+".sha1", name+".md5")
		hash := sha1.Sum(files[name])
		if got := string(files[name+".sha1"]); got != hex.EncodeToString(hash[:]) {
			t.Errorf("%s has the checksum %s", filepath.Base(name), got)
		}
	}
	sameNames(t, "files", files, names...)
}
