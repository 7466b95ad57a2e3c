// Package heldfile provides files that tests hold back, to examine a program while it reads one.
package heldfile

import "io/fs"

// FS has files, with one that opens only after Give.
type FS struct {
	fs.FS

	name  string
	given chan struct{}
}

// New holds back the file with that name only.
func New(files fs.FS, name string) *FS { return &FS{files, name, make(chan struct{})} }

// Open implements fs.FS. For the held file it waits for Give.
func (f *FS) Open(name string) (fs.File, error) {
	if name == f.name {
		<-f.given
	}
	return f.FS.Open(name)
}

// Give allows the file to be opened.
func (f *FS) Give() { close(f.given) }
