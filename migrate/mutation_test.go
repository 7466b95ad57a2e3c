package migrate

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/internal/test/peer"
	"github.com/tabletop-emu/tabletop/migrate/internal/compare"
	"github.com/tabletop-emu/tabletop/migrate/internal/endpoints"
	"github.com/tabletop-emu/tabletop/migrate/internal/golden"
	"github.com/tabletop-emu/tabletop/migrate/internal/load"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

// mutant is one injected damage to one row, and the expected failure.
type mutant struct {
	damage damage
	name   string
	table  string
	row    []byte
	cells  []layout.Cell // the damaged row
	kind   report.Kind   // of the failure
	golden report.Kind   // of the golden rows' failure
}

// damage changes a row.
type damage string

// The damages of the mutation test.
const (
	dropRow       damage = "drop a row"
	dropCell      damage = "drop a cell"
	changeValue   damage = "change a value"
	moveTimestamp damage = "move a timestamp"
	swapElements  damage = "swap list elements or versions"
	flipType      damage = "flip a type"
	addRow        damage = "add a row"
	addCell       damage = "add a cell"
	dropIndexRow  damage = "drop an index row"
)

// mutants returns all damages to the rows of a table, one each.
func mutants(table string, rows []layout.Row, index, sidecar bool) []mutant {
	kind := func(k report.Kind) report.Kind {
		if index {
			return report.IndexStale
		}
		return k
	}
	var out []mutant
	for _, row := range rows {
		add := func(d damage, k report.Kind, cells []layout.Cell, format string, args ...any) {
			out = append(out, mutant{d, fmt.Sprintf(format, args...), table, row.Key, cells, kind(k), k})
		}
		if index {
			add(dropIndexRow, report.MissingRow, nil, "drop index row %q", row.Key)
		} else {
			add(dropRow, report.MissingRow, nil, "drop row %q", row.Key)
		}
		for i, c := range row.Cells {
			what := fmt.Sprintf("%s:%q @%d of row %q", c.Family, c.Qualifier, c.Timestamp, row.Key)
			k := func(k report.Kind) report.Kind {
				if c.Family == lens.FamilyTypes {
					return report.TypeDiffers
				}
				return k
			}
			changed := func(change func(c *layout.Cell)) []layout.Cell {
				cells := slices.Clone(row.Cells)
				change(&cells[i])
				return cells
			}
			if len(row.Cells) == 1 { // a row without cells does not exist
				add(dropCell, report.MissingRow, nil, "drop the only cell %s", what)
			} else {
				add(dropCell, k(report.MissingCell), slices.Delete(slices.Clone(row.Cells), i, i+1), "drop cell %s", what)
			}
			add(changeValue, k(report.ValueDiffers), changed(func(c *layout.Cell) { c.Value = append(slices.Clone(c.Value), 'x') }), "change the value of %s", what)
			if later := c.Timestamp + 1000; !slices.ContainsFunc(row.Cells, func(o layout.Cell) bool {
				return o.Family == c.Family && string(o.Qualifier) == string(c.Qualifier) && o.Timestamp == later
			}) {
				add(moveTimestamp, report.TimestampDiffers, changed(func(c *layout.Cell) { c.Timestamp = later }), "move the timestamp of %s", what)
			}
			if i > 0 {
				o := row.Cells[i-1]
				if o.Family == c.Family && string(o.Qualifier) == string(c.Qualifier) && string(o.Value) != string(c.Value) {
					cells := slices.Clone(row.Cells)
					cells[i].Value, cells[i-1].Value = o.Value, c.Value
					add(swapElements, report.OrderDiffers, cells, "swap %s with the version before", what)
				}
			}
			if flipped := bytes.Replace(c.Value, []byte(`{"N":`), []byte(`{"S":`), 1); c.Family != lens.FamilyTypes && !bytes.Equal(flipped, c.Value) {
				add(flipType, report.TypeDiffers, changed(func(c *layout.Cell) { c.Value = flipped }), "flip a type in the document %s", what)
			}
			// The place of the first element can be the time of all cells.
			if n := c.Timestamp/1000 - layout.ListEpochMillis; n > 0 && n < 100 && c.Value[0] == 'N' {
				add(flipType, report.TypeDiffers, changed(func(c *layout.Cell) { c.Value = append([]byte("S"), c.Value[1:]...) }), "flip the type of the element %s", what)
			}
			if c.Family != lens.FamilyTypes && sidecar {
				mark := layout.Cell{Family: lens.FamilyTypes, Qualifier: fmt.Appendf(nil, "c/%s:%s", c.Family, c.Qualifier), Timestamp: c.Timestamp, Value: []byte("B")}
				if !slices.ContainsFunc(row.Cells, func(o layout.Cell) bool {
					return o.Family == mark.Family && string(o.Qualifier) == string(mark.Qualifier)
				}) {
					add(flipType, report.TypeDiffers, append(slices.Clone(row.Cells), mark), "flip the type of %s", what)
				}
			}
		}
	}
	if len(rows) > 0 {
		out = append(out, mutant{addRow, "add a row", table, []byte("\x7fnew"), rows[0].Cells, kind(report.ExtraRow), report.ExtraRow})
		own := slices.IndexFunc(rows[0].Cells, func(c layout.Cell) bool { return c.Family != lens.FamilyTypes })
		cells := append(slices.Clone(rows[0].Cells), layout.Cell{Family: rows[0].Cells[own].Family, Qualifier: []byte("\x7fnew"), Timestamp: 1000, Value: []byte("x")})
		out = append(out, mutant{addCell, "add a cell", table, rows[0].Key, cells, kind(report.ExtraCell), report.ExtraCell})
	}
	return out
}

// allMutants is more mutants than a table has.
const allMutants = math.MaxInt

// few keeps at most n mutants of each damage, evenly spread.
func few(all []mutant, n int) (kept []mutant) {
	total, seen := map[damage]int{}, map[damage]int{}
	for _, m := range all {
		total[m.damage]++
	}
	for _, m := range all {
		i := seen[m.damage]
		seen[m.damage]++
		if of := total[m.damage]; of <= n || i*n/of != (i+1)*n/of {
			kept = append(kept, m)
		}
	}
	return kept
}

// putRow replaces a row.
func putRow(t *testing.T, conn grpc.ClientConnInterface, table string, key []byte, cells []layout.Cell) {
	t.Helper()
	mutations := []*btpb.Mutation{deleteRow()}
	for _, c := range cells {
		mutations = append(mutations, setCell(c.Family, string(c.Qualifier), c.Timestamp, string(c.Value)))
	}
	change(t, conn, table, string(key), mutations...)
}

// allTypes is a fixture of items of all types, without a mapping.
var allTypes = fstest.MapFS{
	"fixture.yaml":      {Data: []byte("name: all-types\n")},
	"source/table.json": {Data: []byte(`{"TableName":"Types","KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}]}`)},
	"source/items.jsonl": {Data: []byte(`{"id":{"S":"a"},"n":{"N":"1"},"l":{"L":[{"S":"x"},{"N":"1"}]},"s":{"SS":["p","q"]},"m":{"M":{"k":{"S":"v"},"e":{"NULL":true}}},"d":{"M":{}}}
{"id":{"S":"b"},"n":{"S":"1"},"l":{"L":[{"S":"y"},{"S":"y"},{"L":[]}]},"s":{"SS":["p"]},"m":{"M":{}},"b":{"B":"AP8="}}`)},
}

// Each damage to the rows of each shipped fixture is exactly one failure of the right kind,
// with complete place and cause; the golden rows find it too. The quick tier damages three rows
// of a table in each way.
func TestCompare_Mutations(t *testing.T) {
	t.Parallel()
	most := 3 // of each damage to a table
	if long.Enabled() {
		most = allMutants
	}
	var mu sync.Mutex
	everywhere := map[damage]bool{}
	run := func(t *testing.T, files fs.FS) {
		t.Helper()
		found := testMutations(t, files, Common{}, most)
		mu.Lock()
		defer mu.Unlock()
		maps.Copy(everywhere, found)
	}
	t.Cleanup(func() { // after all subtests
		for _, d := range []damage{dropRow, dropCell, changeValue, moveTimestamp, swapElements, flipType, addRow, addCell, dropIndexRow} {
			if !everywhere[d] {
				t.Errorf("nothing was there to %s", d)
			}
		}
	})
	t.Run("all types", func(t *testing.T) {
		t.Parallel()
		run(t, allTypes)
	})
	for _, s := range subjectsAnd(t, long.Enabled()) {
		if s.Name == "s9-view-index" { // Bigtable damages its views with each row
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			run(t, s.Files)
		})
	}
}

// testMutations returns the kinds of damage that occurred.
func testMutations(t *testing.T, files fs.FS, o Common, most int) map[damage]bool {
	t.Helper()
	conn := newBigtableServer(t)
	f, loaded, err := prepare(t.Context(), conn, OfFixture(files), o.options())
	if err != nil {
		t.Fatal(err)
	}
	indexes, sidecars := map[string]bool{}, map[string]bool{}
	rows := map[string][]layout.Row{}
	for _, j := range loaded.Jobs {
		if err := load.Afresh(t.Context(), loaded.B, j); err != nil {
			t.Fatal(err)
		}
		indexes[j.Report.Target] = false
		sidecars[j.Report.Target] = slices.ContainsFunc(j.Mapping.Families(), func(f layout.Family) bool { return f.Name == lens.FamilyTypes })
		for _, x := range j.Indexes {
			indexes[x.TargetTable()] = true
		}
	}
	compareStored := func() *report.Report {
		t.Helper()
		r := report.New(10)
		r.Fixture = f.Name
		loaded.Report = r
		if err := compare.New(loaded).All(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		r.Failures = slices.DeleteFunc(r.Failures, func(f report.Failure) bool { return f.Kind == report.LossNotAccepted }) // of the present cells
		return r
	}
	compareGolden := func() *report.Report {
		t.Helper()
		r := report.New(10)
		r.Fixture = f.Name
		loaded.Report = r
		tables, err := golden.Parse(fixtures.GoldenFile, loaded.Jobs[0].Report.Target, f.Golden)
		if err == nil {
			err = r.Check("golden rows", "", func() (string, error) { return compare.GoldenRows(t.Context(), loaded, tables) })
		}
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	found := map[damage]bool{}
	for id, index := range indexes {
		for row, err := range loaded.B.TableRows(t.Context(), id) {
			if err != nil {
				t.Fatal(err)
			}
			rows[id] = append(rows[id], row)
		}
		for _, m := range few(mutants(id, rows[id], index, sidecars[id]), most) {
			putRow(t, conn, id, m.row, m.cells)
			judge := func(r *report.Report, kind report.Kind) {
				t.Helper()
				if len(r.Failures) != 1 || r.Failures[0].Kind != kind {
					t.Errorf("table %s: %s: want one %s, got\n%s", id, m.name, kind, r.Text())
				} else if lacks := m.lacking(r.Failures[0], table.LayoutOf(id, loaded.Jobs...)); lacks != "" {
					t.Errorf("table %s: %s: the failure does not say its %s: %+v", id, m.name, lacks, r.Failures[0])
				}
			}
			judge(compareStored(), m.kind)
			if f.Golden != nil {
				judge(compareGolden(), m.golden)
			}
			var back []layout.Cell
			for _, row := range rows[id] {
				if string(row.Key) == string(m.row) {
					back = row.Cells
				}
			}
			putRow(t, conn, id, m.row, back)
			found[m.damage] = true
		}
	}
	if r := compareStored(); len(r.Failures) > 0 {
		t.Errorf("the rows are not as they were:\n%s", r.Text())
	}
	wanted := []damage{dropRow, dropCell, changeValue, moveTimestamp, addRow, addCell}
	if len(loaded.Jobs[0].Indexes) > 0 {
		wanted = append(wanted, dropIndexRow)
	}
	if sidecars[loaded.Jobs[0].Report.Target] {
		wanted = append(wanted, flipType)
	}
	for _, d := range wanted {
		if !found[d] {
			t.Errorf("no mutant to %s", d)
		}
	}
	return found
}

// lacking returns a required part that a failure of the mutant lacks, or "".
func (m mutant) lacking(f report.Failure, tl table.RowLayout) string {
	owned := true // the row belongs to an item
	if m.damage == addRow {
		items, err := tl.Items(layout.Row{Key: m.row, Cells: m.cells})
		owned = err == nil && len(items) > 0
	}
	ofCell := m.golden != report.MissingRow && m.golden != report.ExtraRow
	both := ofCell && m.golden != report.MissingCell && m.golden != report.ExtraCell && m.damage != dropCell && m.damage != flipType
	for _, part := range []struct {
		name   string
		needed bool
		there  bool
	}{
		{"fixture", true, f.Fixture != ""},
		{"check", true, f.Check != ""},
		{"table", true, f.Table == m.table},
		{"row key", true, f.RowKey != "" && f.RowHex == fmt.Sprintf("%x", m.row)},
		{"rule", owned && tl.J.Mapping.Spec().Rules != nil, f.Rule != ""},
		{"item key", owned, f.ItemKey != ""},
		{"line of the mapping", owned && tl.J.Mapping.RulePosition(f.Rule) != "", f.Mapping != ""},
		{"column", ofCell, f.Column != ""},
		{"value", true, cmp.Or(f.Want, f.Got) != ""},
		{"expected value", both, f.Want != ""},
		{"value that is there", both, f.Got != ""},
	} {
		if part.needed && !part.there {
			return part.name
		}
	}
	return ""
}

// A store with eager garbage collection loses cells that a second load writes again: the
// failure names the cell and the item.
func TestVerify_NotIdempotent(t *testing.T) {
	t.Parallel()
	server := peer.Start(t, engine.Options{EagerGC: true}, emu.Options{})
	r, err := Verify(t.Context(), server.Conn(), OfFixture(fstest.MapFS{
		"fixture.yaml": {Data: []byte("name: versions\nchecks: {round_trip: false, scan: false, lint: false}\n")},
		"mapping.yaml": {Data: []byte(`
apiVersion: migration/v1
source: {table: Notes, key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}, schema: {Text: S}}
target: {table: notes, families: {c: {gc: {versions: 1}}}}
rules: [{name: note, when: {SK: "Note#{t:revms(13)}"}, row: ["{PK:s}"], put: [{attr: Text, cell: "c:text", ts: "{t}"}]}]
`)},
		"source/items.jsonl": {Data: []byte(`{"PK":{"S":"a"},"SK":{"S":"Note#8305627999999"},"Text":{"S":"new"}}
{"PK":{"S":"a"},"SK":{"S":"Note#8305628000000"},"Text":{"S":"old"}}
`)},
	}), VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const want = `NotIdempotent fixture versions table notes rule note item {"PK":{"S":"a"},"SK":{"S":"Note#8305628000000"}} row "a" hex 61 column c:text: want @`
	if len(r.Failures) != 1 || !strings.HasPrefix(r.Failures[0].String(), want) || r.Failures[0].Check != "second load" || r.Failures[0].Mapping != "mapping.yaml:5" {
		t.Errorf("want %s\n%s", want, r.Text())
	}
}

// A request's failure that a check finds is in the check's case of JUnit, not in a pattern's.
func TestWriteJUnit_Scan(t *testing.T) {
	t.Parallel()
	conn := newBigtableServer(t)
	files := patternFixture()
	f, run, err := prepare(t.Context(), conn, OfFixture(files), table.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := load.Afresh(t.Context(), run.B, run.Jobs[0]); err != nil {
		t.Fatal(err)
	}
	change(t, conn, "letters", "a#2", setCell("a", "n", 1262304000000000, "7"))
	if err := endpoints.Through(t.Context(), run, f.Patterns, f.Checks); err != nil {
		t.Fatal(err)
	}
	r := run.Report
	var out bytes.Buffer
	if err := report.WriteJUnit(&out, r); err != nil {
		t.Fatal(err)
	}
	const want = `@@ PatternDiffers pattern scan table letters rule letter item {"pk":{"S":"a"},"sk":{"S":"2"}} row "a#2" hex 612332 column n at mapping.yaml:5 @@
-{"N":"2"}
+{"N":"7"}
`
	if !strings.Contains(out.String(), want) || len(r.FailuresOfPattern("scan")) > 0 {
		t.Errorf("want %s in\n%s", want, out.String())
	}
}
