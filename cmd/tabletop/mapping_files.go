package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/mapping"
)

// tableInName is the placeholder for a table's name in the name of a mapping file.
const tableInName = "{table}"

// forceFlag lets an inferred mapping overwrite an existing one, which may have been edited.
// Other outputs can be recreated.
type forceFlag struct {
	Force bool `help:"Overwrite a mapping file whose content differs. Default: this is an error." group:"Mapping:"`
}

// mappingFiles are inferred mappings, by their output files.
type mappingFiles map[string][]byte

// add adds the mapping of one table. The file is named by the Bigtable table, whose name is
// always a valid file name.
func (f mappingFiles) add(name, target string, text []byte) {
	f[strings.ReplaceAll(name, tableInName, target)] = text
}

// check rejects files that exist with other content; flag names them.
func (f *forceFlag) check(flag string, files mappingFiles) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		info, err := os.Stat(name)
		if f.Force || err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
			continue // unwritable files are reported when they are written
		}
		if was, err := os.ReadFile(name); err != nil || !bytes.Equal(was, files[name]) {
			return badInput("%s %s: the file has different content, which would be lost: name another file, or use --force", flag, name)
		}
	}
	return nil
}

// write writes the files; flag names them.
func (f mappingFiles) write(flag string) error {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if err := os.WriteFile(name, f[name], 0o666); err != nil {
			return fmt.Errorf("%s: %w", flag, err)
		}
	}
	return nil
}

// loadMappings reads the files of --mapping, one for each source table.
func loadMappings(files []string) ([]*mapping.Mapping, error) {
	var out []*mapping.Mapping
	seen := make(map[string]string) // source table to file
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			return nil, badInput("--mapping: %w", err)
		}
		m, err := mapping.Load(file, src, os.DirFS(filepath.Dir(file)))
		if err != nil {
			return nil, badInput("--mapping: %w", err)
		}
		if first, ok := seen[m.SourceTable()]; ok {
			return nil, badInput("--mapping: %s and %s both describe the table %s", first, file, m.SourceTable())
		}
		seen[m.SourceTable()] = file
		out = append(out, m)
	}
	return out, nil
}
