package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/migrate/source"
)

// TestLockPart: a part belongs to one process until it ends; other parts are free.
func TestLockPart(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "parts")
	one, two := source.Part{Index: 1, Of: 2}, source.Part{Index: 2, Of: 2}
	lock := func(verb string, p source.Part) func() {
		t.Helper()
		release, err := lockPart(folder, verb, p)
		if err != nil {
			t.Fatal(err)
		}
		return release
	}
	release := lock("load", one)
	if _, err := lockPart(folder, "load", one); exitCode(err) != exitBadInput || !strings.Contains(err.Error(), "part 1/2 is running in another process") {
		t.Errorf("error %v, want that the part is running", err)
	}
	lock("load", two)()
	lock("verify", one)()
	release()
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("error %v, want the empty folder deleted", err)
	}
	lock("load", one)()
	// A killed process leaves the file, but not the lock.
	if err := os.MkdirAll(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	writeFile(t, folder, "load-1-of-2.lock", "")
	lock("load", one)()
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("%v is left, error %v", left, err)
	}
}

// TestMigrate_PartTwice: loads and verifications of a locked part are rejected before any work.
func TestMigrate_PartTwice(t *testing.T) {
	t.Parallel()
	export, mapping := exportInFiles(t, 4, 2)
	folder := t.TempDir()
	for _, verb := range [][]string{{"load", "--target"}, {"verify", "--against"}} {
		release, err := lockPart(folder, verb[0], source.Part{Index: 1, Of: 2})
		if err != nil {
			t.Fatal(err)
		}
		out, code := tabletop(t, "migrate", verb[0], verb[1], "127.0.0.1:1", "--source", export, "--mapping", mapping, "--checkpoint", folder, "--part", "1/2")
		if code != exitBadInput || !strings.Contains(out, "part 1/2 is running in another process") {
			t.Errorf("%s: exit %d, %q; want %d", verb[0], code, out, exitBadInput)
		}
		release()
	}
}
