package migrate

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// SharedData is a path in the folder of real inputs that may stand beside the
// checkout; the test skips where it does not.
func sharedData(t *testing.T, name string) string {
	t.Helper()
	p := filepath.Join("..", "..", "shared", "data", filepath.FromSlash(name))
	if _, err := os.Stat(p); errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no real inputs here: %s is absent", p)
	}
	return p
}
