package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// licenseFile matches the files with the terms of a module.
var licenseFile = regexp.MustCompile(`(?i)^(licen[sc]e|copying|notice|patents)([.-].*)?$`)

// bundled matches the comment with the licenses of a bundled script.
var bundled = regexp.MustCompile(`(?s)^/\*!\n(.*?)\n\*/`)

// licenses finds the terms of modules.
type licenses struct {
	folders map[string]string // of modules, by path
	scripts []byte            // the licenses of the scripts in the console's pages
}

// newLicenses finds the modules of the repository in a folder.
func newLicenses(ctx context.Context, folder string) (*licenses, error) {
	l := &licenses{folders: map[string]string{}}
	text, err := output(ctx, folder, "go", "list", "-mod=readonly", "-m", "-f", "{{.Path}}\t{{.Dir}}", "all")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(text) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), "\t")
		l.folders[path] = dir
	}
	if l.folders["stdlib"], err = output(ctx, folder, "go", "env", "GOROOT"); err != nil {
		return nil, err
	}
	scripts, err := filepath.Glob(filepath.Join(folder, "control", "console", "static", "*.js"))
	if err != nil {
		return nil, err
	}
	for _, name := range scripts {
		script, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if m := bundled.FindSubmatch(script); m != nil {
			l.scripts = fmt.Appendf(l.scripts, "\n---- %s, in the console\n\n%s\n", filepath.Base(name), m[1])
		}
	}
	return l, nil
}

// notice returns the terms of the modules and of the console's scripts. A module without a file of terms
// is an error.
func (l *licenses) notice(modules []module) ([]byte, error) {
	out := bytes.NewBufferString("Tabletop contains software of others, under these terms.\n")
	for _, m := range modules {
		dir := l.folders[m.path]
		if dir == "" {
			return nil, fmt.Errorf("the module %s is not in the module cache", m.path)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		found := false
		for _, e := range entries {
			if e.IsDir() || !licenseFile.MatchString(e.Name()) {
				continue
			}
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return nil, err
			}
			if text = bytes.TrimSpace(text); len(text) == 0 {
				continue
			}
			found = true
			_, _ = fmt.Fprintf(out, "\n---- %s %s, %s\n\n%s\n", m.path, m.version, e.Name(), text)
		}
		if !found {
			return nil, fmt.Errorf("the module %s has no license: there is no file with its terms in %s", m.path, dir)
		}
	}
	out.Write(l.scripts)
	return out.Bytes(), nil
}

// component is a component of CycloneDX.
type component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl"`
}

func newComponent(kind, path, version string) component {
	purl := "pkg:golang/" + path + "@" + version
	return component{kind, purl, path, version, purl}
}

// bom returns the modules of a build as CycloneDX.
func (r *release) bom(b build) ([]byte, error) {
	type metadata struct {
		Timestamp string    `json:"timestamp"`
		Component component `json:"component"`
	}
	bom := struct {
		Format     string      `json:"bomFormat"`
		Spec       string      `json:"specVersion"`
		Version    int         `json:"version"`
		Metadata   metadata    `json:"metadata"`
		Components []component `json:"components"`
	}{
		Format: "CycloneDX", Spec: "1.6", Version: 1,
		Metadata: metadata{r.time.Format(time.RFC3339), newComponent("application", "github.com/tabletop-emu/tabletop", "v"+r.version)},
	}
	for _, m := range b.modules {
		bom.Components = append(bom.Components, newComponent("library", m.path, m.version))
	}
	text, err := json.MarshalIndent(bom, "", "  ")
	return append(text, '\n'), err
}
