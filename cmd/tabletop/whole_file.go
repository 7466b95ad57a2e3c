package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// wholeFile is a file that is written beside its place, and put there when it is
// complete; until then what was there stays. A pipe or a terminal, which cannot be
// replaced, is written to at once.
type wholeFile struct {
	*os.File
	name    string // its place; "" if it is written to at once
	private bool   // the owner alone can read it
}

func createWhole(name string) (*wholeFile, error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		return &wholeFile{File: f}, err
	}
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	return &wholeFile{File: f, name: name}, err
}

// keep puts the file in its place.
func (w *wholeFile) keep() error {
	if w.name == "" {
		return w.Close()
	}
	var err error
	if !w.private {
		err = w.Chmod(0o644) // temporary files are the owner's alone
	}
	err = errors.Join(err, w.Close())
	if err == nil {
		err = os.Rename(w.Name(), w.name)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(w.Name()))
	}
	return err
}

// drop gives the file up.
func (w *wholeFile) drop() {
	_ = w.Close() // nobody reads it
	if w.name != "" {
		_ = os.Remove(w.Name())
	}
}

// replaceFile writes a file, whole at once.
func replaceFile(name string, text []byte) error { return replace(name, text, false) }

// replacePrivateFile is replaceFile of what its owner alone may read.
func replacePrivateFile(name string, text []byte) error { return replace(name, text, true) }

func replace(name string, text []byte, private bool) error {
	w, err := createWhole(name)
	if errors.Is(err, fs.ErrNotExist) { // it is of a name that nobody has given
		return fmt.Errorf("%s cannot be written: folder %s does not exist", name, filepath.Dir(name))
	}
	if err != nil {
		return err
	}
	w.private = private
	if _, err := w.Write(text); err != nil {
		w.drop()
		return err
	}
	return w.keep()
}
