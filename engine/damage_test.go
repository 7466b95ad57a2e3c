package engine

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/test/faultdisk"
	"github.com/tabletop-emu/tabletop/internal/test/long"
)

// storeFiles returns the names of the files of a closed store.
func storeFiles(t *testing.T, fs vfs.FS, suffix string) []string {
	t.Helper()
	names, err := fs.List("data")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, name := range names {
		if strings.HasSuffix(name, suffix) {
			out = append(out, fs.PathJoin("data", name))
		}
	}
	if len(out) == 0 {
		t.Fatalf("no file *%s in %q", suffix, names)
	}
	return out
}

// flip changes a byte of a file.
func flip(t *testing.T, fs vfs.FS, name string, at int64) {
	t.Helper()
	f, err := fs.OpenReadWrite(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 0x55
	if _, err := f.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func fileSize(t *testing.T, fs vfs.FS, name string) int64 {
	t.Helper()
	info, err := fs.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// logBlock is the unit of a write-ahead log. Each block records how much of the earlier blocks
// is on disk.
const logBlock = 32 << 10

// TestDamage flips single bytes in the files of a store. A read returns either the written
// data, or an error with the name of the file and advice: no row is lost silently, and nothing
// panics. The one exception is the last block of the log, whose damage looks like the end of a
// log after a crash: earlier data must exist.
func TestDamage(t *testing.T) {
	t.Parallel()
	flips := int64(16) // of each file
	if long.Enabled() {
		flips = 40
	}
	for _, suffix := range []string{".sst", ".log"} {
		t.Run(suffix, func(t *testing.T) {
			t.Parallel()
			mem := vfs.NewCrashableMem()
			o := Options{Dir: "data", FS: mem, Now: clock.NewFrozen(epoch).Now, MemTableBytes: faultdisk.MemTableBytes}
			d := openTest(t, o)
			createTest(t, d, "f")
			for i := range 200 {
				mustMutate(t, d, fmt.Sprintf("row%03d", i), set("f", "q", 0, strings.Repeat(fmt.Sprint(i), 100)))
			}
			if suffix == ".sst" {
				if err := d.Compact(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			want := mustDump(t, d)
			whole := mem.CrashClone(vfs.CrashCloneCfg{}) // all data is synced; nothing was closed
			reported := 0
			for _, name := range storeFiles(t, whole, suffix) {
				size := fileSize(t, whole, name)
				for i := range flips {
					at := size * i / flips
					fs := whole.CrashClone(vfs.CrashCloneCfg{})
					flip(t, fs, name, at)
					damaged := o
					damaged.FS = fs
					got, err := reread(t, damaged)
					switch {
					case err == nil && suffix == ".log" && at >= size/logBlock*logBlock && strings.HasPrefix(want, got):
						// No later block distinguishes it from the end of a log after a crash.
					case err == nil && got != want:
						t.Errorf("%s, byte %d of %d: %d bytes are read of %d, without an error", name, at, size, len(got), len(want))
					case err != nil && (!strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "load the data again")):
						t.Errorf("%s, byte %d of %d: the error lacks the file or the advice: %v", name, at, size, err)
					case err != nil:
						reported++
					}
				}
			}
			if reported == 0 {
				t.Error("no damage was found")
			}
		})
	}
}

// reread opens a store, reads it and closes it.
func reread(t *testing.T, o Options) (string, error) {
	t.Helper()
	d, err := Open(o)
	if err != nil {
		return "", err
	}
	text, err := dump(d, "t", ScanOptions{})
	if closeErr := d.Close(); closeErr != nil && err == nil {
		t.Errorf("close: %v", closeErr)
	}
	return text, err
}

// TestFaults_Named injects a full disk, or a failed sync, into the write-ahead log. The
// affected write returns an error with the cause and the file, later ones are rejected, and
// acknowledged data exists once the store is opened with free space.
func TestFaults_Named(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		errno  syscall.Errno
		strike func(errorfs.OpKind) bool
	}{
		{"log, disk full", syscall.ENOSPC, func(k errorfs.OpKind) bool { return k == errorfs.OpFileWrite }},
		{"log, sync", syscall.EIO, func(k errorfs.OpKind) bool {
			return k == errorfs.OpFileSync || k == errorfs.OpFileSyncData || k == errorfs.OpFileSyncTo
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			mem := vfs.NewCrashableMem()
			var failing atomic.Bool
			fs := faultdisk.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if !failing.Load() || !strings.HasSuffix(op.Path, ".log") || !c.strike(op.Kind) {
					return nil
				}
				return &os.PathError{Op: "write", Path: op.Path, Err: c.errno} // like package os
			}))
			o := Options{Dir: "data", FS: fs, Now: clock.NewFrozen(epoch).Now, MemTableBytes: faultdisk.MemTableBytes}
			d := openTest(t, o)
			createTest(t, d, "f")
			mustMutate(t, d, "before", set("f", "q", 0, "v"))
			want := mustDump(t, d)
			failing.Store(true)
			err := d.Mutate(t.Context(), "t", []byte("after"), []Mutation{set("f", "q", 0, "v")})
			if again := d.Mutate(t.Context(), "t", []byte("again"), []Mutation{set("f", "q", 0, "v")}); again == nil {
				t.Error("a write after the failure was acknowledged")
			}
			if !errors.Is(err, c.errno) || !strings.Contains(err.Error(), ".log") {
				t.Errorf("got %v, want an error that is %v and names the file", err, c.errno)
			}
			crash := mem.CrashClone(vfs.CrashCloneCfg{})
			failing.Store(false)
			_ = d.Close() // may report the failure
			o.FS = crash
			if got := mustDump(t, openTest(t, o)); !strings.Contains(got, strings.TrimSuffix(want, "\n")) {
				t.Errorf("after the failure:\n%swant:\n%s", got, want)
			}
		})
	}
}

// TestFaults_Files injects a full disk, or a failed sync, into the files of flushed memory
// buffers, and into the list of those files. Waiting writers get an error with the cause and
// the file, there are no endless retries, and acknowledged data exists once the store is
// opened with free space, after Close or after a crash.
func TestFaults_Files(t *testing.T) {
	t.Parallel()
	syncs := []errorfs.OpKind{errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo}
	for _, c := range []struct {
		name  string
		errno syscall.Errno
		file  string // part of its name
		kinds []errorfs.OpKind
	}{
		{"table, created on a full disk", syscall.ENOSPC, ".sst", []errorfs.OpKind{errorfs.OpCreate}},
		{"table, disk full", syscall.ENOSPC, ".sst", []errorfs.OpKind{errorfs.OpFileWrite}},
		{"table, sync", syscall.EIO, ".sst", syncs},
		{"list, disk full", syscall.ENOSPC, "MANIFEST", []errorfs.OpKind{errorfs.OpFileWrite}},
		{"list, sync", syscall.EIO, "MANIFEST", syncs},
		{"all, disk full", syscall.ENOSPC, "data", []errorfs.OpKind{errorfs.OpFileWrite, errorfs.OpCreate}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			mem := vfs.NewCrashableMem()
			var failing atomic.Bool
			var hits atomic.Int32
			fs := faultdisk.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if !failing.Load() || !strings.Contains(op.Path, c.file) || !slices.Contains(c.kinds, op.Kind) {
					return nil
				}
				hits.Add(1)
				return &os.PathError{Op: "write", Path: op.Path, Err: c.errno} // like package os
			}))
			o := Options{Dir: "data", FS: fs, Now: clock.NewFrozen(epoch).Now, MemTableBytes: 64 << 10}
			d := openTest(t, o)
			createTest(t, d, "f")
			failing.Store(true)
			const writers, rows = 4, 500 // eight times the size of two buffers
			var acknowledged [writers]int
			var errs [writers]error
			var wg sync.WaitGroup
			for w := range writers {
				wg.Go(func() {
					for i := range rows {
						if errs[w] = d.Mutate(t.Context(), "t", fmt.Appendf(nil, "%d-%03d", w, i), []Mutation{
							set("f", "q", 0, strings.Repeat("v", 512)),
						}); errs[w] != nil {
							return
						}
						acknowledged[w]++
					}
				})
			}
			wg.Wait()
			for _, err := range append(errs[:], d.Compact(t.Context()), d.DropRows(t.Context(), "t", Span{})) {
				if !errors.Is(err, c.errno) || !strings.Contains(err.Error(), c.file) || errors.Is(err, ErrNoSpace) != (c.errno == syscall.ENOSPC) {
					t.Errorf("got %v, want an error that is %v and names the file", err, c.errno)
				}
				if !strings.Contains(err.Error(), "the store has failed and rejects all calls") {
					t.Errorf("got %v, want the text by which clients know that retries are useless", err)
				}
			}
			if n := hits.Load(); n > 5 {
				t.Errorf("the failed write was tried %d times", n)
			}
			crash := mem.CrashClone(vfs.CrashCloneCfg{})
			failing.Store(false)
			_ = d.Close() // may report the failure
			for name, fs := range map[string]vfs.FS{"crash": crash, "close": mem} {
				again := o
				again.FS = fs
				got, err := reread(t, again)
				if err != nil {
					t.Fatalf("after the %s: %v", name, err)
				}
				for w, n := range acknowledged {
					for i := range n {
						if row := fmt.Sprintf("\"%d-%03d\" f", w, i); !strings.Contains(got, row) {
							t.Fatalf("after the %s: row %s was acknowledged and is not there", name, row)
						}
					}
				}
			}
		})
	}
}

// TestClose_Log damages and truncates the log of a closed store: by then all data is in table
// files, whose damage is always found.
func TestClose_Log(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	o := Options{Dir: "data", FS: fs, Now: clock.NewFrozen(epoch).Now}
	d := openTest(t, o)
	createTest(t, d, "f")
	mustMutate(t, d, "r", set("f", "q", 0, "v"))
	want := mustDump(t, d)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range storeFiles(t, fs, ".log") {
		f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := reread(t, o); err != nil || got != want {
		t.Errorf("with its log lost: %v\n%swant:\n%s", err, got, want)
	}
}
