package migrate

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tabletop-emu/tabletop/migrate/source"
)

// TestPrepare_CSVWithoutTypes checks that a load warns once of untyped columns of numbers, with
// and without a mapping.
func TestPrepare_CSVWithoutTypes(t *testing.T) {
	t.Parallel()
	src, err := source.OpenFS(fstest.MapFS{"in.csv": {Data: []byte("id,n\na,10\nb,20\n")}}, "in.csv", source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := Prepare(t.Context(), src, LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const want = "n (numbers: :N)"
	warnings := p.run.Report.Warnings
	if n := len(slices.DeleteFunc(slices.Clone(warnings), func(w string) bool { return !strings.Contains(w, want) })); n != 1 {
		t.Errorf("warnings %q, want %q once", warnings, want)
	}
}
