package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// wholeFile is a file that is written beside its destination and moved there when complete;
// until then the old content stays. A pipe or a terminal, which cannot be replaced, is written
// directly.
type wholeFile struct {
	*os.File
	name    string // its destination; "" if written directly
	private bool   // only the owner can read it
}

func createWhole(name string) (*wholeFile, error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		return &wholeFile{File: f}, err
	}
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	return &wholeFile{File: f, name: name}, err
}

// keep moves the file to its destination.
func (w *wholeFile) keep() error {
	if w.name == "" {
		return w.Close()
	}
	var err error
	if !w.private {
		err = w.Chmod(0o644) // temporary files are private
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

// drop discards the file.
func (w *wholeFile) drop() {
	_ = w.Close() // it is discarded
	if w.name != "" {
		_ = os.Remove(w.Name())
	}
}

// replaceFile writes a file atomically.
func replaceFile(name string, text []byte) error { return replace(name, text, false) }

// replacePrivateFile acts like replaceFile for a file that only its owner may read.
func replacePrivateFile(name string, text []byte) error { return replace(name, text, true) }

func replace(name string, text []byte, private bool) error {
	w, err := createWhole(name)
	if errors.Is(err, fs.ErrNotExist) { // it concerns a temporary name that the user does not know
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
