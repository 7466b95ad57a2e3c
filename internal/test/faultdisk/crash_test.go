package faultdisk_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tabletop-emu/tabletop/internal/test/faultdisk"
)

// The store here is a file that is replaced as a whole or, wrongly, overwritten.
func TestScript(t *testing.T) {
	t.Parallel()
	syncDir := func(fs vfs.FS) error {
		dir, err := fs.OpenDir("")
		if err != nil {
			return err
		}
		return errors.Join(dir.Sync(), dir.Close())
	}
	write := func(fs vfs.FS, name string, parts ...string) error {
		f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
		if err != nil {
			return err
		}
		err = syncDir(fs)
		for _, p := range parts {
			if err == nil {
				_, err = io.WriteString(f, p)
			}
			if err == nil {
				err = f.Sync()
			}
		}
		return errors.Join(err, f.Close())
	}
	replace := func(fs vfs.FS, synced bool, parts ...string) error {
		err := errors.Join(write(fs, "new", parts...), fs.Rename("new", "store"))
		if err == nil && synced {
			err = syncDir(fs)
		}
		return err
	}
	read := func(fs vfs.FS) (string, error) {
		f, err := fs.Open("store")
		if errors.Is(err, os.ErrNotExist) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		text, err := io.ReadAll(f)
		return string(text), errors.Join(err, f.Close())
	}
	for _, c := range []struct {
		name, want string
		change     func(fs vfs.FS, parts ...string) error
	}{
		{"whole", "", func(fs vfs.FS, parts ...string) error { return replace(fs, true, parts...) }},
		{"lost", "which is neither the state before", func(fs vfs.FS, parts ...string) error { return replace(fs, false, parts...) }},
		{"in halves", "in first, leaves\na\nwhich", func(fs vfs.FS, parts ...string) error { return write(fs, "store", parts...) }},
		{"nothing", "first does not change anything", func(vfs.FS, ...string) error { return nil }},
		{"error", "first: broken", func(vfs.FS, ...string) error { return errors.New("broken") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(5) {
				disk := faultdisk.NewCrashing(seed)
				fs := disk.FS()
				run := faultdisk.Script{
					Disk: disk,
					Text: func() string {
						text, err := read(fs)
						if err != nil {
							t.Fatal(err)
						}
						return text
					},
					Reopen: func(x faultdisk.Crash) (string, error) { return read(x.FS) },
					Steps: []faultdisk.Step{
						{Name: "first", Do: func() error { return c.change(fs, "a", "b") }},
						{Name: "second", Do: func() error { return c.change(fs, "c", "d") }},
						{Name: "third", Do: func() error { return nil }, Unseen: true},
					},
				}
				switch _, err := run.Run(); {
				case c.want == "" && err != nil:
					t.Errorf("seed %d: %v", seed, err)
				case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
					t.Errorf("seed %d: got %v, want %q", seed, err, c.want)
				}
			}
		})
	}
}
