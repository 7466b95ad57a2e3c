package run

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// TestRemoveParts_Meanwhile: a file that is gone by the time it is to be removed, as a lock
// is that another process releases, is no error.
func TestRemoveParts_Meanwhile(t *testing.T) {
	t.Parallel()
	r := &Run{Options: Options{Parts: t.TempDir(), Warn: true}}
	for i := range 300 {
		if err := os.WriteFile(filepath.Join(r.Options.Parts, fmt.Sprintf("load-%d-of-300.lock", i+1)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if err := r.removeParts(300); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	if left, err := os.ReadDir(r.Options.Parts); err != nil || len(left) > 0 {
		t.Errorf("%d files are left, error %v", len(left), err)
	}
}
