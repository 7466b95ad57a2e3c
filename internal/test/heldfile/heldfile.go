// Package heldfile provides files that tests hold back, to look at what happens while one of
// them is read.
package heldfile

import "io/fs"

// FS are files, one of which is given when the test says so.
type FS struct {
	fs.FS

	name  string
	given chan struct{}
}

// New holds the file with that name, and no other.
func New(files fs.FS, name string) *FS { return &FS{files, name, make(chan struct{})} }

// Open implements fs.FS. For the file that is held it waits until that is given.
func (f *FS) Open(name string) (fs.File, error) {
	if name == f.name {
		<-f.given
	}
	return f.FS.Open(name)
}

// Give lets the file be opened, from now on.
func (f *FS) Give() { close(f.given) }
