package migrate

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// openCounter counts how often its files are opened.
type openCounter struct {
	fs.FS
	opened int
}

// Open implements fs.FS.
func (c *openCounter) Open(name string) (fs.File, error) {
	c.opened++
	return c.FS.Open(name)
}

// A load reads a source that is too large for memory once to check it, so that a damaged source
// writes nothing, and once to write it. Inferring a mapping takes another pass. The samples of
// the report also open the file, and read only its first items.
func TestLoad_Passes(t *testing.T) {
	t.Parallel()
	const samples = 1
	const head = `
apiVersion: migration/v1
source: {table: Comments, key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}, schema: {Text: S}, gsis: [{name: ByText, hash: {name: Text, type: S}%s}]}
target: {table: comments, joiner: "plain('#')", families: {c: {gc: {%s}}}}
timestamps: {default: "2024-05-01T00:00:00Z"}
`
	ownRows := head + `rules: [{name: comment, when: {SK: "C#{t}"}, row: ["{PK}", "{t}"], put: [{attr: Text, cell: "c:all"}]}]`
	sharedRows := head + `rules: [{name: comment, when: {SK: "C#{t:revms(13)}"}, row: ["{PK}"], put: [{attr: Text, cell: "c:all", ts: "{t}"}]}]`
	for _, c := range []struct {
		name, mapping, index, gc string
		want                     int
	}{
		{"an item a row", ownRows, "", "versions: 1", 2 + samples},
		{"items that share rows", sharedRows, "", "versions: 5", 2 + samples},
		{"cells that expire", ownRows, "", "maxAge: 24h", 2 + samples},
		{"an index whose rows may meet", ownRows, `, row: [Text]`, "versions: 1", 2 + samples},
		{"all of it", sharedRows, `, row: [Text]`, "versions: 5, maxAge: 90000h", 2 + samples},
		{"no mapping", "", "", "", 3 + samples},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var text strings.Builder
			for i := range 5 {
				fmt.Fprintf(&text, `{"PK":{"S":"v1"},"SK":{"S":"C#%013d"},"Text":{"S":"no %d"}}`+"\n", 9999999999999-commentsEpoch.AddDate(0, 0, -i).UnixMilli(), i)
			}
			counted := &openCounter{FS: fstest.MapFS{"in": {Data: []byte(text.String())}}}
			src, err := source.OpenFS(counted, "in", source.Options{})
			if err != nil {
				t.Fatal(err)
			}
			o := LoadOptions{Common: Common{Now: func() time.Time { return commentsEpoch }, knobs: table.Knobs{Held: 1}}}
			if c.mapping != "" {
				m, err := mapping.Load("m.yaml", fmt.Appendf(nil, c.mapping, c.index, c.gc))
				if err != nil {
					t.Fatal(err)
				}
				o.Mappings = []*mapping.Mapping{m}
			}
			counted.opened = 0
			conn, _ := newCollected(t, commentsEpoch)
			r, err := Load(t.Context(), conn, src, o)
			if err != nil {
				t.Fatal(err)
			}
			if r.Items != 5 || counted.opened != c.want {
				t.Errorf("the file of %d items was opened %d times, want %d", r.Items, counted.opened, c.want)
			}
		})
	}
}
