package source

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// A held table gives the same entries from memory; a partial read, or one that exceeds the
// budget, is not used as the whole.
func TestTable_Held(t *testing.T) {
	t.Parallel()
	text := `{"id":{"S":"a"}}` + "\n" + `{"id":{"S":"b"}}` + "\n"
	for _, c := range []struct {
		budget, opened int // opened: how often three reads open the file
	}{{2 * len(`{"id":{"S":"a"}}`), 1}, {len(`{"id":{"S":"a"}}`), 3}} {
		src, err := OpenFS(fstest.MapFS{"in": {Data: []byte(text)}}, "in", Options{})
		if err != nil {
			t.Fatal(err)
		}
		table, opened := src.Tables[0], 0
		read := table.entries
		table.entries = func(yield func(Entry, error) bool) {
			opened++
			read(yield)
		}
		held := table.Held(&c.budget)
		for range held.Entries() {
			break
		}
		opened = 0
		for range 3 {
			var got []string
			for e, err := range held.Entries() {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, e.Item["id"].Str+e.Position.String())
			}
			if diff := cmp.Diff([]string{"ain:1", "bin:2"}, got); diff != "" {
				t.Error(diff)
			}
		}
		if opened != c.opened {
			t.Errorf("the file was read %d times, want %d", opened, c.opened)
		}
	}
}
