package source

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/migrate/internal/exporttest"
)

// A file that declares no number of items has an estimate of it while it is read, as it is or
// compressed.
func TestTable_Total(t *testing.T) {
	t.Parallel()
	const n = 20_000
	var lines, csv strings.Builder
	csv.WriteString("id,text\n")
	for i := range n {
		fmt.Fprintf(&lines, `{"id":{"S":"%05d"},"text":{"S":"%d %d"}}`+"\n", i, i*i, i*7919%n)
		fmt.Fprintf(&csv, "%05d,%d %d\n", i, i*i, i*7919%n)
	}
	text := lines.String()
	page := `{"Items":[` + strings.ReplaceAll(strings.TrimSpace(text), "\n", ",") + `]}`
	for name, data := range map[string]string{"in.json": text, "in.csv": csv.String(), "in.json.gz": string(exporttest.Pack([]byte(text))), "page.json": page} {
		src, err := OpenFS(fstest.MapFS{name: {Data: []byte(data)}}, name, Options{})
		if err != nil {
			t.Fatal(err)
		}
		table := src.Tables[0].As("", src.Tables[0].Key)
		i := int64(0)
		for _, err := range table.Entries() {
			if err != nil {
				t.Fatal(err)
			}
			i++
			if total := table.Total(i); i%1000 == 0 && (total <= i || i >= n/2 && (total < n*2/3 || total > n*3/2)) {
				t.Errorf("%s: %d items after %d, want about %d", name, total, i, n)
			}
		}
	}
	if total := Of("T", attr.KeySchema{}, exporttest.Time, nil).Total(0); total != 0 {
		t.Errorf("%d items in an empty table", total)
	}
}
