package migrate

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tabletop-emu/tabletop/migrate/source"
)

// Unreadable rows fail a reverse, which counts and names them with the attribute: an export
// without them would deny their existence. On request, the rest is exported.
func TestUnreadableRows_ReverseNamesUnreadableRows(t *testing.T) {
	t.Parallel()
	files := patternFixture()
	conn := newBigtableServer(t)
	loadFixture(t, conn, files)
	broken := []string{"a#1", "b#1"}
	for i := range 10 {
		broken = append(broken, fmt.Sprintf("x#%d", i))
	}
	for _, row := range broken {
		change(t, conn, "letters", row, setCell("a", "n", 1262304000000000, "no number"))
	}
	m := mappingOf(t, string(files["mapping.yaml"].Data))
	dir := t.TempDir()
	_, err := Reverse(t.Context(), conn, m, dir, ReverseOptions{ExportTime: time.Unix(1715685260, 0)})
	var input *source.Error
	if !errors.As(err, &input) {
		t.Fatalf("error %v, want a source.Error", err)
	}
	wants := []string{"letters: 12 rows that the mapping cannot read, the first 10: ", `attribute "n"`}
	for _, row := range broken[:10] {
		wants = append(wants, fmt.Sprintf("row %q: ", row))
	}
	for _, want := range wants {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not say %s", err, want)
		}
	}
	if strings.Contains(err.Error(), `"x#8"`) {
		t.Errorf("error %q names more than ten", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 && hasManifest(t, dir) {
		t.Errorf("an export is left: %v, %v", left, err)
	}
}

// A partial reverse exports all readable rows.
func TestUnreadableRows_ReverseOfTheRest(t *testing.T) {
	t.Parallel()
	files := patternFixture()
	conn := newBigtableServer(t)
	loadFixture(t, conn, files)
	m := mappingOf(t, string(files["mapping.yaml"].Data))
	reverse := func() *Reversed {
		r, err := Reverse(t.Context(), conn, m, t.TempDir(), ReverseOptions{Partial: true})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	whole := reverse()
	change(t, conn, "letters", "a#1", setCell("a", "n", 1262304000000000, "no number"))
	rest := reverse()
	if whole.Unreadable != 0 || len(whole.Warnings) != 0 || rest.Unreadable != 1 || rest.Items != whole.Items-1 {
		t.Errorf("%s and %q before, %s with %d that cannot be read after; want one item less", whole, whole.Warnings, rest, rest.Unreadable)
	}
	if len(rest.Warnings) != 1 || !strings.Contains(rest.Warnings[0], `left out: letters: 1 row that the mapping cannot read: row "a#1": `) {
		t.Errorf("warnings %q", rest.Warnings)
	}
	if !hasManifest(t, rest.Dir) {
		t.Error("there is no export")
	}
}

// hasManifest reports whether a folder has the manifest of an export.
func hasManifest(t *testing.T, dir string) bool {
	t.Helper()
	_, err := source.Open(dir, source.Options{})
	return err == nil
}
