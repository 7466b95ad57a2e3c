package memfs

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"
)

// epoch is the modification time of files.
var epoch = time.Unix(1_700_000_000, 0)

func testMemFS(tb testing.TB) *FS {
	tb.Helper()
	f := New(func() time.Time { return epoch })
	tb.Cleanup(f.Release)
	return f
}

// readFile returns the contents by Read in small pieces.
func readFile(fs vfs.FS, name string, piece int) ([]byte, error) {
	f, err := fs.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var all []byte
	p := make([]byte, piece)
	for {
		n, err := f.Read(p)
		all = append(all, p[:n]...)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// TestMemFS_Model runs the same random calls on FS and on Pebble's own memory file system, and
// compares the visible results.
func TestMemFS_Model(t *testing.T) {
	t.Parallel()
	names := []string{"d/a", "d/b", "d/e/c", "x/missing"}
	rapid.Check(t, func(t *rapid.T) {
		ours := New(func() time.Time { return epoch })
		defer ours.Release()
		both := []vfs.FS{ours, vfs.NewMem()}
		for _, fs := range both {
			if err := errors.Join(fs.MkdirAll("d/e", 0o755), fs.MkdirAll("/d/e", 0o755)); err != nil {
				t.Fatal(err)
			}
		}
		open := map[string][2]vfs.File{} // open for writing
		name := rapid.SampledFrom(names)
		agree := func(what string, call func(fs vfs.FS) error) bool {
			errs := [2]error{call(both[0]), call(both[1])}
			if (errs[0] == nil) != (errs[1] == nil) {
				t.Fatalf("%s: %v, model %v", what, errs[0], errs[1])
			}
			return errs[0] == nil
		}
		t.Repeat(map[string]func(*rapid.T){
			"create": func(t *rapid.T) {
				n := name.Draw(t, "name")
				var files [2]vfs.File
				i := 0
				if agree("create", func(fs vfs.FS) (err error) {
					files[i], err = fs.Create(n, vfs.WriteCategoryUnspecified)
					i++
					return err
				}) {
					open[n] = files
				}
			},
			"write": func(t *rapid.T) {
				n := name.Draw(t, "name")
				files, ok := open[n]
				if !ok {
					t.Skip("not open")
				}
				size := rapid.SampledFrom([]int{0, 1, 100, smallFileBytes, chunkBytes - 7, chunkBytes + 9}).Draw(t, "size")
				p := bytes.Repeat([]byte{rapid.Byte().Draw(t, "byte")}, size)
				for _, f := range files {
					if k, err := f.Write(bytes.Clone(p)); k != size || err != nil {
						t.Fatal(k, err)
					}
				}
			},
			"close": func(t *rapid.T) {
				n := name.Draw(t, "name")
				for _, f := range open[n] {
					if f != nil {
						if err := f.Close(); err != nil {
							t.Fatal(err)
						}
					}
				}
				delete(open, n)
			},
			"remove": func(t *rapid.T) {
				n := rapid.SampledFrom(append([]string{"d"}, names...)).Draw(t, "name")
				agree("remove", func(fs vfs.FS) error { return fs.Remove(n) })
			},
			"removeAll": func(t *rapid.T) {
				n := rapid.SampledFrom([]string{"d/a", "d/e"}).Draw(t, "name")
				agree("remove all", func(fs vfs.FS) error {
					if err := fs.RemoveAll(n); err != nil {
						return err
					}
					return fs.MkdirAll("d/e", 0o755)
				})
			},
			"rename": func(t *rapid.T) {
				from, to := name.Draw(t, "from"), name.Draw(t, "to")
				if from == names[3] || to == names[3] {
					t.Skip("the model loses the file it cannot move")
				}
				agree("rename", func(fs vfs.FS) error { return fs.Rename(from, to) })
			},
			"link": func(t *rapid.T) {
				from, to := name.Draw(t, "from"), name.Draw(t, "to")
				agree("link", func(fs vfs.FS) error { return fs.Link(from, to) })
			},
			"readAt": func(t *rapid.T) {
				n := name.Draw(t, "name")
				off := rapid.Int64Range(0, 2*chunkBytes).Draw(t, "off")
				size := rapid.IntRange(1, chunkBytes+2).Draw(t, "size")
				var got [2][]byte
				i := 0
				agree("open", func(fs vfs.FS) error {
					f, err := fs.Open(n)
					if err != nil {
						return err
					}
					defer func() { _ = f.Close() }()
					p := make([]byte, size)
					k, err := f.ReadAt(p, off)
					if err != nil && !errors.Is(err, io.EOF) {
						t.Fatal(err)
					}
					got[i] = p[:k]
					i++
					return nil
				})
				if !bytes.Equal(got[0], got[1]) {
					t.Fatalf("%d bytes at %d, model %d", len(got[0]), off, len(got[1]))
				}
			},
			"": func(t *rapid.T) {
				for _, dir := range []string{"", "/", "d", "d/e"} {
					var lists [2][]string
					i := 0
					agree("list", func(fs vfs.FS) (err error) {
						lists[i], err = fs.List(dir)
						slices.Sort(lists[i])
						i++
						return err
					})
					if !slices.Equal(lists[0], lists[1]) {
						t.Fatalf("list of %q: %q, model %q", dir, lists[0], lists[1])
					}
				}
				for _, n := range names {
					var sizes [2]int64
					i := 0
					agree("stat", func(fs vfs.FS) error {
						info, err := fs.Stat(n)
						if err == nil {
							sizes[i] = info.Size()
						}
						i++
						return err
					})
					if sizes[0] != sizes[1] {
						t.Fatalf("size of %q: %d, model %d", n, sizes[0], sizes[1])
					}
				}
			},
		})
		for _, n := range names {
			var all [2][]byte
			i := 0
			agree("read", func(fs vfs.FS) (err error) {
				all[i], err = readFile(fs, n, 1<<20+1)
				i++
				return err
			})
			if !bytes.Equal(all[0], all[1]) {
				t.Fatalf("contents of %q differ", n)
			}
		}
	})
}

// TestMemFS_Lifetime checks when memory is freed.
func TestMemFS_Lifetime(t *testing.T) {
	t.Parallel()
	fs := testMemFS(t)
	f, err := fs.Create("a", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	big := bytes.Repeat([]byte("0123456789abcdef"), 3*chunkBytes/16)
	if _, err := f.Write(big); err != nil {
		t.Fatal(err)
	}
	r, err := fs.Open("a")
	if err != nil {
		t.Fatal(err)
	}
	node := r.(*memFile).n
	if err := errors.Join(fs.Link("a", "b"), fs.Remove("a"), f.Close(), fs.Remove("b")); err != nil {
		t.Fatal(err)
	}
	if node.freed {
		t.Fatal("an open file has lost its contents")
	}
	p := make([]byte, len(big))
	if _, err := r.ReadAt(p, 0); err != nil || !bytes.Equal(p, big) {
		t.Fatalf("contents after the last link was removed: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if !node.freed || node.chunks != nil {
		t.Fatal("the memory of a file without links and handles is not given back")
	}
	if _, err := r.ReadAt(p, 0); !errors.Is(err, os.ErrClosed) {
		t.Fatalf("read of a freed file: %v", err)
	}
	if err := r.Close(); !errors.Is(err, os.ErrClosed) {
		t.Fatalf("second close: %v", err)
	}
}

func TestMemFS_Lock(t *testing.T) {
	t.Parallel()
	fs := testMemFS(t)
	l, err := fs.Lock("LOCK")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fs.Lock("/LOCK"); !errors.Is(err, ErrLocked) {
		t.Fatalf("second lock: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := fs.Lock("LOCK")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil { // must not free the lock of another owner
		t.Fatal(err)
	}
	if _, err := fs.Lock("LOCK"); !errors.Is(err, ErrLocked) {
		t.Fatalf("lock of another: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestMemFS_Concurrent reads a file while it is written, for the race
// detector.
func TestMemFS_Concurrent(t *testing.T) {
	t.Parallel()
	fs := testMemFS(t)
	w, err := fs.Create("a", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		r, err := fs.Open("a")
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			defer func() { _ = r.Close() }()
			p := make([]byte, 1000)
			for off := int64(0); off < 2*chunkBytes; {
				n, err := r.ReadAt(p, off)
				for i, b := range p[:n] {
					if b != byte((off+int64(i))%251) {
						t.Errorf("byte %d is %d", off+int64(i), b)
						return
					}
				}
				off += int64(n)
				if err != nil && !errors.Is(err, io.EOF) {
					t.Error(err)
					return
				}
			}
		})
	}
	p := make([]byte, 997)
	for off := 0; off < 2*chunkBytes+1000; off += len(p) {
		for i := range p {
			p[i] = byte((off + i) % 251)
		}
		if _, err := w.Write(p); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}
