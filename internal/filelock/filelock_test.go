package filelock_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tabletop-emu/tabletop/internal/filelock"
)

// TestLock: one owner has a file until it is closed, and then another.
func TestLock(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o666)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	one, other := open(), open()
	if err := filelock.Lock(one); err != nil {
		t.Fatal(err)
	}
	if locked, err := filelock.TryLock(other); locked || err != nil {
		t.Fatalf("locked twice: %v, %v", locked, err)
	}
	waits := make(chan error)
	go func() { waits <- filelock.Lock(other) }()
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-waits; err != nil {
		t.Fatal(err)
	}
	if locked, err := filelock.TryLock(open()); locked || err != nil {
		t.Fatalf("locked twice: %v, %v", locked, err)
	}
}
