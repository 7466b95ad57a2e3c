package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// tableInName stands in the name of a mapping file for that of a table.
const tableInName = "{table}"

// forceFlag lets an inferred mapping take the place of one that is there, which
// somebody may have worked on: other outputs can be had again.
type forceFlag struct {
	Force bool `help:"Overwrite another mapping in the file. Default: this is an error."`
}

// mappingFiles are inferred mappings, by the files that they go to.
type mappingFiles map[string][]byte

// add adds the mapping of one table. The Bigtable table's name can name a file;
// that of the source may not.
func (f mappingFiles) add(name, target string, text []byte) {
	f[strings.ReplaceAll(name, tableInName, target)] = text
}

// check refuses files, which flag names, that hold something else.
func (f *forceFlag) check(flag string, files mappingFiles) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		info, err := os.Stat(name)
		if f.Force || err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
			continue // what cannot be written is told when it is
		}
		if was, err := os.ReadFile(name); err != nil || !bytes.Equal(was, files[name]) {
			return badInput("%s %s: the file holds something else, which would be gone: name another file, or --force", flag, name)
		}
	}
	return nil
}

// write writes the files that flag names.
func (f mappingFiles) write(flag string) error {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if err := os.WriteFile(name, f[name], 0o666); err != nil {
			return fmt.Errorf("%s: %w", flag, err)
		}
	}
	return nil
}
