package guardfs_test

import (
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/tabletop-emu/tabletop/engine/internal/guardfs"
)

// TestFS: Open returns errors until the store is open, and files apart always return theirs.
// The first other error fails the store. From then on the directory stays the same, while the
// calls of the store can finish.
func TestFS(t *testing.T) {
	t.Parallel()
	disk := vfs.NewMem()
	var full atomic.Bool
	faulty := errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if full.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			return syscall.ENOSPC
		}
		return nil
	}))
	var failure error
	fs := guardfs.New(faulty, guardfs.Store{
		Failed: func() error { return failure }, Fail: func(err error) { failure = err }, Apart: "apart",
	})
	create := func(name string) error {
		f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
		if err != nil {
			return err
		}
		_, err = io.WriteString(f, "text")
		return errors.Join(err, f.Close())
	}
	if err := errors.Join(fs.MkdirAll("apart", 0o755), create("1.sst"), create("2.sst")); err != nil {
		t.Fatal(err)
	}
	full.Store(true)
	if err := create("3.sst"); !errors.Is(err, syscall.ENOSPC) || failure != nil {
		t.Fatalf("before the store is open: %v, it has failed with %v", err, failure)
	}
	fs.Opened()
	if err := create("apart/1.sst"); !errors.Is(err, syscall.ENOSPC) || failure != nil {
		t.Fatalf("a file apart: %v, the store has failed with %v", err, failure)
	}
	if err := create("4.sst"); err != nil {
		t.Fatalf("a table file of a store that fails: %v", err)
	}
	if !errors.Is(failure, guardfs.ErrNoSpace) || !strings.Contains(failure.Error(), "4.sst") {
		t.Errorf("the store has failed with %v, want ErrNoSpace that names 4.sst", failure)
	}
	full.Store(false)
	if err := errors.Join(fs.Remove("1.sst"), create("5.log")); err != nil {
		t.Fatal(err)
	}
	names, err := disk.List("")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(names, " "); !strings.Contains(got, "1.sst") || strings.Contains(got, "4.sst") || strings.Contains(got, "5.log") {
		t.Errorf("after the failure the disk has %s", got)
	}
	f, err := fs.Open("4.sst")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(f); err != nil || string(text) != "text" {
		t.Errorf("4.sst holds %q, %v", text, err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestFS_Lock distinguishes a lock that is taken from one that cannot be created.
func TestFS_Lock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fs := guardfs.New(vfs.Default, guardfs.Store{})
	l, err := fs.Lock(dir + "/LOCK")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fs.Lock(dir + "/LOCK"); !errors.Is(err, guardfs.ErrLocked) {
		t.Errorf("a lock that is taken: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := fs.Lock(dir + "/none/LOCK"); err == nil || errors.Is(err, guardfs.ErrLocked) {
		t.Errorf("a lock in a directory that is not there: %v", err)
	}
}
