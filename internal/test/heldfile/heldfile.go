// Package heldfile provides files whose opening a test can delay, to examine a program while it
// reads them.
package heldfile

import "io/fs"

// FS is a file system in which one file can be opened only after Give.
type FS struct {
	fs.FS

	name  string
	given chan struct{}
}

// New returns an FS over files that holds back the file with the given name.
func New(files fs.FS, name string) *FS { return &FS{files, name, make(chan struct{})} }

// Open implements fs.FS. For the held file, it waits until Give is called.
func (f *FS) Open(name string) (fs.File, error) {
	if name == f.name {
		<-f.given
	}
	return f.FS.Open(name)
}

// Give allows the file to be opened.
func (f *FS) Give() { close(f.given) }
