package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tabletop-emu/tabletop/fixtures"
)

// namedFile is a file on the command line, with its flag.
type namedFile struct {
	flag, name string
	whole      bool // written by createWhole
}

// String returns the flag as it was given.
func (f namedFile) String() string {
	if strings.HasPrefix(f.flag, "--report ") {
		return f.flag + "=" + f.name
	}
	return f.flag + " " + f.name
}

// checkOutputs rejects, before any work, an output file that cannot be written. It also rejects
// an output that is also an input, or that two flags name, since it would be overwritten. It
// does not compare names of special files, such as a terminal, which can take several outputs.
func checkOutputs(outputs, inputs []namedFile) error {
	for i, out := range outputs {
		if err := out.writable(); err != nil {
			return &exitError{exitEnvironment, fmt.Errorf("%s: %w", out, err)}
		}
		for _, in := range inputs {
			if sameFile(out.name, in.name) {
				return badInput("%s would overwrite %s: name another file", out, in)
			}
		}
		for _, other := range outputs[:i] {
			if sameFile(out.name, other.name) {
				return badInput("%s and %s name the same file: choose another for one of them", other, out)
			}
		}
	}
	return nil
}

// writable returns why the file cannot be written; the file stays unchanged.
func (f namedFile) writable() error {
	if f.name == "" || strings.Contains(filepath.Dir(f.name), tableInName) {
		return nil // the folder's name is not yet known
	}
	switch info, err := os.Stat(f.name); {
	case err != nil: // it will be created
	case info.IsDir():
		return errors.New("this is a folder; expected a file")
	case !info.Mode().IsRegular():
		return nil // opening a pipe may block until it has a reader
	case !f.whole:
		w, err := os.OpenFile(f.name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return w.Close()
	}
	w, err := createWhole(f.name)
	if err != nil {
		return fmt.Errorf("cannot create a file in its folder: %w", err)
	}
	w.drop()
	return nil
}

// sameFile reports whether two names mean the same plain file, existing or not.
func sameFile(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	if info, err := os.Stat(a); err == nil {
		other, err := os.Stat(b)
		return err == nil && info.Mode().IsRegular() && os.SameFile(info, other)
	}
	return absolute(a) == absolute(b)
}

// absolute returns the clean absolute path.
func absolute(name string) string {
	whole, err := filepath.Abs(name)
	if err != nil { // the current folder was deleted
		return filepath.Clean(name)
	}
	return whole
}

// inputs returns the input files.
func (f *inputFlags) inputs() []namedFile {
	return []namedFile{{flag: "--source", name: f.Source}, {flag: "--table-schema", name: f.TableSchema}}
}

// inputs returns the mapping files.
func (f *mappingFlags) inputs() []namedFile {
	var files []namedFile
	if !f.auto() {
		for _, file := range f.Mapping {
			files = append(files, namedFile{flag: "--mapping", name: file})
		}
	}
	return files
}

// inputs returns the input files.
func (f *sourceFlags) inputs() []namedFile {
	files := append(f.inputFlags.inputs(), f.mappingFlags.inputs()...)
	for _, name := range []string{fixtures.FixtureFile, fixtures.MappingFile} { // of a fixture folder
		file := filepath.Join(f.Source, name)
		if _, err := os.Stat(file); err == nil { // a folder without them may get them
			files = append(files, namedFile{flag: "--source", name: file})
		}
	}
	return files
}

func (f *lintFlags) inputs() []namedFile { return []namedFile{{flag: "--rules", name: f.Rules}} }

func (f *connectFlags) inputs() []namedFile {
	return []namedFile{{flag: "--ca", name: f.CA}, {flag: "--token-file", name: f.TokenFile}}
}

// reportOutputs returns the files of --report.
func reportOutputs(reports []string) []namedFile {
	var files []namedFile
	for _, r := range reports {
		if format, file, _ := strings.Cut(r, "="); file != "" {
			files = append(files, namedFile{flag: "--report " + format, name: file})
		}
	}
	return files
}
