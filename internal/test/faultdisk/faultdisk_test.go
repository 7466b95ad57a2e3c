package faultdisk

import (
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestMemory_Clone clones a disk while files are linked and renamed on it: with vfs.MemFS alone
// this test hangs.
func TestMemory_Clone(t *testing.T) {
	t.Parallel()
	m := NewMemory()
	f, err := m.Create("a", vfs.WriteCategoryUnspecified)
	if err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	root, err := m.OpenDir("/")
	if err != nil || root.Sync() != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		defer close(done)
		for range 20_000 {
			if err := m.Link("a", "b"); err != nil {
				t.Error(err)
			}
			if f, err := m.ReuseForWrite("b", "c", vfs.WriteCategoryUnspecified); err != nil || f.Close() != nil {
				t.Error(err)
			}
			if err := m.Remove("c"); err != nil {
				t.Error(err)
			}
		}
	})
	group.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				if _, err := m.CrashClone(vfs.CrashCloneCfg{}).Stat("a"); err != nil {
					t.Error(err)
				}
			}
		}
	})
	group.Wait()
}
