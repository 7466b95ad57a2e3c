package facade

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// rowsOfLaterFeatures are the rows of the message catalog that no request can
// meet yet.
var rowsOfLaterFeatures = map[int]string{
	156: "PartiQL is refused by name",
	157: "PartiQL is refused by name",
	162: "streams are refused by name",
	163: "streams are refused by name",
}

// unconfirmedRows are the rows whose texts were seen in one source alone, and
// not on AWS.
var unconfirmedRows = []int{3, 10, 33, 37, 38, 39, 45, 61, 92, 119, 120, 131, 158}

// catalogRows is how many rows the catalog has.
const catalogRows = 163

// Every row of the message catalog has a case that carries its number, in the
// wordings of both profiles where they differ, or is of a later feature. A text
// that nobody but one source has is marked wherever it is shown.
func TestMessages_EveryRow(t *testing.T) {
	t.Parallel()
	shown := map[int]bool{}
	head := regexp.MustCompile(`(?m)^[A-Z][A-Za-z]+ row=\(?([0-9]+)(?:, ([0-9]+)\))?( .*)?$`)
	err := filepath.WalkDir(filepath.Join("testdata", "operations"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range head.FindAllStringSubmatch(string(text), -1) {
			for _, digits := range m[1:3] {
				n, err := strconv.Atoi(digits)
				if err != nil {
					continue // there is no second row
				}
				if slices.Contains(unconfirmedRows, n) && !strings.Contains(m[3], "unconfirmed") {
					t.Errorf("%s: the case %q is not marked as unconfirmed", path, m[0])
				}
				shown[n] = shown[n] || strings.Contains(m[3], "profile=both")
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(shown, func(_ int, both bool) bool { return !both })
	for n := 1; n <= catalogRows; n++ {
		later := rowsOfLaterFeatures[n]
		switch {
		case shown[n] && later != "":
			t.Errorf("row %d has a case, and is declared as of a later feature: %s", n, later)
		case !shown[n] && later == "":
			t.Errorf("row %d has no case with row=%d profile=both", n, n)
		}
		delete(shown, n)
	}
	if len(shown) > 0 {
		t.Errorf("the catalog has no rows %v", slices.Sorted(maps.Keys(shown)))
	}
}
