package lint

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

var machineFolder = regexp.MustCompile(`/(tmp|var|root|home|Users|usr|opt|work)/[\w.@/-]*`)

// TestProfileNamesNoFolder checks that the profile for the optimizer names packages and their
// files, and no folder of the machine that recorded it.
func TestProfileNamesNoFolder(t *testing.T) {
	t.Parallel()
	f, err := os.Open(filepath.Join(root, "cmd", "tabletop", "serve.pgo"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	r, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	profile, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if found := machineFolder.FindAll(profile, 5); found != nil {
		t.Errorf("serve.pgo names %q: `make pgo` makes one that does not", found)
	}
}
