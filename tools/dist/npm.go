package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"os"
	"path/filepath"
)

// Files that the packages have in addition to those of the clients.
var (
	//go:embed packages/npm.md
	npmReadme []byte
	//go:embed packages/bin.mjs
	npmProgram []byte
)

// The names of packages.
const (
	npmName     = "tabletop-emu"
	npmScope    = "@tabletop-emu/"
	description = "A Cloud Bigtable emulator with a DynamoDB endpoint over the same rows, for tests"
	homepage    = "https://github.com/tabletop-emu/tabletop"
)

// nodeNames are the names of Node for operating systems and processors.
var nodeNames = map[string]string{"linux": "linux", "darwin": "darwin", "windows": "win32", "amd64": "x64", "arm64": "arm64"}

// npmPackage is a package.json.
type npmPackage struct {
	Name        string            `json:"name"`
	Version     string            `json:"version"`
	Description string            `json:"description"`
	License     string            `json:"license"`
	Homepage    string            `json:"homepage"`
	Repository  map[string]string `json:"repository"`
	Type        string            `json:"type,omitempty"`
	Engines     map[string]string `json:"engines,omitempty"`
	Bin         map[string]string `json:"bin,omitempty"`
	Exports     map[string]any    `json:"exports,omitempty"`
	OS          []string          `json:"os,omitempty"`
	CPU         []string          `json:"cpu,omitempty"`
	Optional    map[string]string `json:"optionalDependencies,omitempty"`
}

// npmExport is an export of a package.json. The first condition that a program knows counts, so the
// types come first.
type npmExport struct {
	Types   string `json:"types"`
	Default string `json:"default"`
}

func (r *release) npmPackage(name string) npmPackage {
	return npmPackage{
		Name: name, Version: r.version, Description: description, License: "Apache-2.0", Homepage: homepage,
		Repository: map[string]string{"type": "git", "url": "git+" + homepage + ".git"},
	}
}

// writeNPM writes the package with the client for JavaScript, and one with the program for each
// platform. npm installs only that of its platform, as an optional dependency of the first.
func writeNPM(_ context.Context, r *release) error {
	main := r.npmPackage(npmName)
	main.Type = "module"
	main.Engines = map[string]string{"node": ">=18"}
	main.Bin = map[string]string{"tabletop": "bin.mjs"}
	main.Exports = map[string]any{
		".":              npmExport{"./tabletop.d.mts", "./tabletop.mjs"},
		"./setup":        npmExport{"./tabletop-setup.d.mts", "./tabletop-setup.mjs"},
		"./package.json": "./package.json",
	}
	main.Optional = map[string]string{}
	for _, b := range r.builds {
		each := r.npmPackage(npmScope + nodeNames[b.os] + "-" + nodeNames[b.arch])
		each.OS, each.CPU = []string{nodeNames[b.os]}, []string{nodeNames[b.arch]}
		main.Optional[each.Name] = r.version
		err := r.writeNPMPackage(each, "tabletop-emu-"+filepath.Base(each.Name), []file{
			{name: b.exe("tabletop"), data: b.programs["tabletop"], executable: true},
			{name: "NOTICE", data: b.notice},
		})
		if err != nil {
			return err
		}
	}
	files := []file{{name: "README.md", data: npmReadme}, {name: "bin.mjs", data: npmProgram, executable: true}}
	for _, name := range []string{"tabletop.mjs", "tabletop.d.mts", "tabletop-setup.mjs", "tabletop-setup.d.mts"} {
		text, err := os.ReadFile(filepath.Join(r.folder, "clients", "javascript", name))
		if err != nil {
			return err
		}
		files = append(files, file{name: name, data: text})
	}
	return r.writeNPMPackage(main, npmName, files)
}

// writeNPMPackage writes a package under the name that npm pack gives it.
func (r *release) writeNPMPackage(p npmPackage, name string, files []file) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(p); err != nil {
		return err
	}
	files = append(files, file{name: "package.json", data: text.Bytes()}, file{name: "LICENSE", data: r.license})
	for i := range files {
		files[i].name = "package/" + files[i].name
	}
	archive, err := tarGz(files, r.time)
	if err != nil {
		return err
	}
	return r.write(archive, "npm", name+"-"+r.version+".tgz")
}
