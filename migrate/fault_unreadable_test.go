package migrate

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// Rows that the mapping cannot read fail a reverse, which names the first, with its
// attribute, and tells how many there are: an export without them would say that they
// are not there.
func TestFaultM4_ReverseNamesUnreadableRows(t *testing.T) {
	t.Parallel()
	files := patternFixture()
	conn := newBigtableServer(t)
	loadFixture(t, conn, files)
	for _, row := range []string{"a#1", "b#1"} {
		change(t, conn, "letters", row, setCell("a", "n", 1262304000000000, "no number"))
	}
	m, err := mapping.Load("mapping.yaml", files["mapping.yaml"].Data)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	_, err = Reverse(t.Context(), conn, m, dir, ReverseOptions{ExportTime: time.Unix(1715685260, 0)})
	var input *source.Error
	if !errors.As(err, &input) {
		t.Fatalf("error %v, want a source.Error", err)
	}
	for _, want := range []string{`row "a#1"`, `attribute "n"`, "1 more rows cannot be read either"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not say %s", err, want)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 && hasManifest(t, dir) {
		t.Errorf("an export is left: %v, %v", left, err)
	}
}

// hasManifest reports whether a folder has what makes it an export.
func hasManifest(t *testing.T, dir string) bool {
	t.Helper()
	_, err := source.Open(dir, source.Options{})
	return err == nil
}
