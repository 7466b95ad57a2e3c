package packages

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path"
	"testing"

	"github.com/tabletop-emu/tabletop/internal/test/long"
)

// maxMB are the sizes of the programs in MB. A program far beyond it links a function that looks methods
// up by name, or a large library: see docs/release.md.
var maxMB = map[string]float64{"tabletop": 44, "cbtemulator": 23}

// TestSize checks the sizes of the programs.
func TestSize(t *testing.T) {
	t.Parallel()
	long.Test(t)
	f, err := os.Open(one(t, release(t), "tabletop_*_linux_*.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	plain, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for files := tar.NewReader(plain); ; {
		file, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if most := maxMB[path.Base(file.Name)]; most > 0 {
			found++
			if mb := float64(file.Size) / 1e6; mb > most || mb < most/2 {
				t.Errorf("%s has %.2f MB; want at most %.1f MB", file.Name, mb, most)
			}
		}
	}
	if found != len(maxMB) {
		t.Errorf("the archive has %d programs, want %d", found, len(maxMB))
	}
}
