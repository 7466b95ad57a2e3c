package parts

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// TestFolder_RemoveMeanwhile: removing a file that is already deleted, such as a lock released
// by another process, is not an error.
func TestFolder_RemoveMeanwhile(t *testing.T) {
	t.Parallel()
	f := Folder{Dir: t.TempDir(), Verb: Loading}
	for i := range 300 {
		if err := os.WriteFile(filepath.Join(f.Dir, fmt.Sprintf("load-%d-of-300.lock", i+1)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if err := f.Remove(300); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	if left, err := os.ReadDir(f.Dir); err != nil || len(left) > 0 {
		t.Errorf("%d files are left, error %v", len(left), err)
	}
}
