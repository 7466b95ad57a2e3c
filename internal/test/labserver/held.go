package labserver

import "io/fs"

// HeldFiles are fixtures with one file that opens only after Give, so that a test can examine the
// lab while it reads the file.
type HeldFiles struct {
	fs.FS

	name  string
	given chan struct{}
}

// Hold holds back the file with that name only.
func Hold(files fs.FS, name string) *HeldFiles { return &HeldFiles{files, name, make(chan struct{})} }

// Open implements fs.FS. For the held file it waits for Give.
func (f *HeldFiles) Open(name string) (fs.File, error) {
	if name == f.name {
		<-f.given
	}
	return f.FS.Open(name)
}

// Give allows the file to be opened.
func (f *HeldFiles) Give() { close(f.given) }
