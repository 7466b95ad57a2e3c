package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tabletop-emu/tabletop/fixtures"
)

// namedFile is a file of the command line, with the flag that names it.
type namedFile struct {
	flag, name string
	whole      bool // it is written by createWhole
}

// String is the flag as it was given.
func (f namedFile) String() string {
	if strings.HasPrefix(f.flag, "--report ") {
		return f.flag + "=" + f.name
	}
	return f.flag + " " + f.name
}

// checkOutputs refuses a file that cannot be written, before the work of which it
// shall tell, and one to write that is one to read, or that two flags name: what was
// there would be gone. Names are not compared of what is no plain file, such as a
// terminal, which takes several outputs.
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
				return badInput("%s and %s are one file: name another", other, out)
			}
		}
	}
	return nil
}

// writable says why the file could not be written; it is left as it is.
func (f namedFile) writable() error {
	if f.name == "" || strings.Contains(filepath.Dir(f.name), tableInName) {
		return nil // the folder's name is not known yet
	}
	switch info, err := os.Stat(f.name); {
	case err != nil: // to be made
	case info.IsDir():
		return errors.New("this is a folder; expected a file")
	case !info.Mode().IsRegular():
		return nil // a pipe, which may wait for who reads it
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

// sameFile reports whether two names are of one plain file, be it there or not.
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

// absolute is the whole of a path, cleaned.
func absolute(name string) string {
	whole, err := filepath.Abs(name)
	if err != nil { // the current folder is gone
		return filepath.Clean(name)
	}
	return whole
}

// inputs are the files that are read.
func (f *inputFlags) inputs() []namedFile {
	return []namedFile{{flag: "--source", name: f.Source}, {flag: "--table-schema", name: f.TableSchema}}
}

// inputs are the mapping files.
func (f *mappingFlags) inputs() []namedFile {
	var files []namedFile
	if !f.auto() {
		for _, file := range f.Mapping {
			files = append(files, namedFile{flag: "--mapping", name: file})
		}
	}
	return files
}

// inputs are the files that are read.
func (f *sourceFlags) inputs() []namedFile {
	files := append(f.inputFlags.inputs(), f.mappingFlags.inputs()...)
	for _, name := range []string{fixtures.FixtureFile, fixtures.MappingFile} { // those of a fixture folder
		file := filepath.Join(f.Source, name)
		if _, err := os.Stat(file); err == nil { // one that has none may get one
			files = append(files, namedFile{flag: "--source", name: file})
		}
	}
	return files
}

func (f *lintFlags) inputs() []namedFile { return []namedFile{{flag: "--rules", name: f.Rules}} }

func (f *connectFlags) inputs() []namedFile {
	return []namedFile{{flag: "--ca", name: f.CA}, {flag: "--token-file", name: f.TokenFile}}
}

// reportOutputs are the files that --report names.
func reportOutputs(reports []string) []namedFile {
	var files []namedFile
	for _, r := range reports {
		if format, file, _ := strings.Cut(r, "="); file != "" {
			files = append(files, namedFile{flag: "--report " + format, name: file})
		}
	}
	return files
}
