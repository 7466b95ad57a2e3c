package main

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/tabletop-emu/tabletop/internal/packed"
)

// TestRun: the folder of an archive has the embedded files, which can seek and have no time to send.
func TestRun(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	files := fstest.MapFS{
		"go.mod":              {Data: []byte("module example.com/m\n")},
		"pages/pages.go":      {Data: []byte("package pages\n\nimport \"embed\"\n\n//go:embed a.txt sub\nvar Files embed.FS\n")},
		"pages/a.txt":         {Data: []byte("a text")},
		"pages/left-out.txt":  {Data: []byte("another")},
		"pages/sub/deep/b.js": {Data: []byte("a script")},
		"none/none.go":        {Data: []byte("package none\n")},
	}
	if err := os.CopyFS(root, files); err != nil {
		t.Fatal(err)
	}
	read := func() string {
		t.Helper()
		if err := run(root, "files.zip", "pages"); err != nil {
			t.Fatal(err)
		}
		archive, err := os.ReadFile(filepath.Join(root, "files.zip"))
		if err != nil {
			t.Fatal(err)
		}
		return string(archive)
	}
	archive := read()
	if read() != archive {
		t.Error("a second archive differs")
	}
	pages := packed.FS(archive, "pages")
	if err := fstest.TestFS(pages, "a.txt", "sub/deep/b.js"); err != nil {
		t.Error(err)
	}
	if _, err := fs.Stat(pages, "left-out.txt"); err == nil {
		t.Error("it has a file that is not embedded")
	}
	f, err := pages.Open("a.txt")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := f.(io.Seeker).Seek(2, io.SeekStart); n != 2 || err != nil {
		t.Errorf("Seek returns %d, %v", n, err)
	}
	if info, err := f.Stat(); err != nil || !info.ModTime().Equal(time.Unix(0, 0)) {
		t.Errorf("the file has the time %v, %v", info.ModTime(), err)
	}
	if err := run(root, "files.zip", "none"); err == nil {
		t.Error("a package without files is accepted")
	}
}
