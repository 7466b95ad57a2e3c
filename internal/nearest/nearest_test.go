package nearest_test

import (
	"testing"

	"github.com/tabletop-emu/tabletop/internal/nearest"
)

func TestTo(t *testing.T) {
	t.Parallel()
	known := []string{"families", "joiner", "table", "names"}
	for word, want := range map[string]string{
		"famlies": "families", "Table": "table", "tabel": "table", "name": "names", "joining": "", "t": "", "": "", "title": "table",
	} {
		if got := nearest.To(word, known); got != want {
			t.Errorf("nearest to %q is %q, want %q", word, got, want)
		}
	}
}
