package migrate

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

const remappedMapping = `apiVersion: migration/v1
source: {table: items, key: {hash: {name: id, type: S}}, schema: {n: N, at: N}}
target: {table: t, joiner: oc, families: {a: {gc: {versions: 9}}}}
timestamps: {default: "2024-05-14T11:14:20.608Z"}
rules: [{name: item, row: ["{id}"], put: [{attr: n, cell: "a:n"}, {attr: at, cell: "a:at"}]}]
`

// A load by an edited mapping refuses a table with cells of the earlier mapping that it does
// not write, and writes nothing. With Remap it lists the remaining cells. A mapping with the
// same layout only causes a warning.
func TestLoad_OtherMapping(t *testing.T) {
	t.Parallel()
	const by = "Bigtable table t was loaded with another mapping: "
	const rules = by + "the rules or the schema of the mapping differ"
	for name, c := range map[string]struct {
		from, to      string // in the mapping
		warning, left string // left: "" if the load is not refused
	}{
		"the same":  {"", "", "", ""},
		"a comment": {"apiVersion", "# mine\napiVersion", "", ""},
		"a column":  {"a:n", "a:count", rules, `; 1 cell of items of this source would stay beside the new cells, e.g. column a:n of row "1", of item {"id":{"S":"1"}}`},
		"a row":     {`"{id}"`, `"x", "{id}"`, rules, `; 2 cells of items of this source would stay beside the new cells, e.g. column a:at of row "1"`},
		"a time":    {`a:n"`, `a:n", ts: {attr: at, as: epoch(s)}`, rules, "; 2 cells of items of this source would stay"},
		"a type":    {"at: N", "at: N, more: S", rules + "; this mapping writes every cell that the other one wrote for this source's items", ""},
		"a family":  {"{a: {gc: {versions: 9}}}", "{a: {gc: {versions: 9}}, b: {}}", by + "family b was not there, and is declared; this mapping writes every cell", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := &failing{ClientConnInterface: newBigtableServer(t)}
			load := func(text string, remap bool) (*report.Report, error) {
				t.Helper()
				m := mappingOf(t, text)
				return Load(t.Context(), conn, open(t, `{"id":{"S":"1"},"n":{"N":"2"},"at":{"N":"1700000000"}}`), LoadOptions{Common: Common{Mappings: []*mapping.Mapping{m}}, Remap: remap})
			}
			if r, err := load(remappedMapping, false); err != nil || len(r.Warnings) > 0 {
				t.Fatalf("the first load: %v, %+v", err, r)
			}
			before, calls := tableText(t, conn, "t"), conn.calls
			text := strings.Replace(remappedMapping, c.from, c.to, 1)
			if name == "a time" { // the attribute is the timestamp
				text = strings.Replace(text, `, {attr: at, cell: "a:at"}`, "", 1)
			}
			r, err := load(text, false)
			if c.left != "" {
				WantDamage(t, err, source.MappingRefused, c.left)
				if conn.calls != calls || tableText(t, conn, "t") != before {
					t.Errorf("a refused load wrote: %s", tableText(t, conn, "t"))
				}
				r, err = load(text, true)
			}
			if err != nil {
				t.Fatal(err)
			}
			warnings := strings.Join(r.Warnings, "\n")
			if !strings.Contains(warnings, c.warning) || !strings.Contains(warnings, c.left) || c.warning == "" && warnings != "" {
				t.Errorf("warnings %q, want %q and %q", warnings, c.warning, c.left)
			}
		})
	}
}

// If a table was deleted but not the record of its mapping, it has no cells of another mapping.
func TestLoad_OtherMappingDeleted(t *testing.T) {
	t.Parallel()
	conn := newBigtableServer(t)
	load := func(text string) *report.Report {
		t.Helper()
		m := mappingOf(t, text)
		r, err := Load(t.Context(), conn, open(t, `{"id":{"S":"1"},"n":{"N":"2"}}`), LoadOptions{Common: Common{Mappings: []*mapping.Mapping{m}}})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	load(remappedMapping)
	b := table.NewBigtable(conn, table.Options{})
	if err := b.DropTable(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	if r := load(strings.Replace(remappedMapping, "a:n", "a:count", 1)); len(r.Warnings) > 0 {
		t.Errorf("warnings %q", r.Warnings)
	}
}

// Entries of a changed index are left like cells of the table.
func TestLoad_OtherIndex(t *testing.T) {
	t.Parallel()
	conn := newBigtableServer(t)
	load := func(hash string, remap bool) (*report.Report, error) {
		t.Helper()
		index := fmt.Sprintf("gsis: [{name: G, hash: {name: %s, type: N}, projection: ALL, as: table}], schema:", hash)
		m := mappingOf(t, strings.Replace(remappedMapping, "schema:", index, 1))
		return Load(t.Context(), conn, open(t, `{"id":{"S":"1"},"n":{"N":"2"},"at":{"N":"1700000000"}}`), LoadOptions{Common: Common{Mappings: []*mapping.Mapping{m}}, Remap: remap})
	}
	if _, err := load("n", false); err != nil {
		t.Fatal(err)
	}
	_, err := load("at", false)
	WantDamage(t, err, source.MappingRefused, ` of table t__G, of item {"id":{"S":"1"}}`)
	if r, err := load("at", true); err != nil || !strings.Contains(strings.Join(r.Warnings, "\n"), "would stay") {
		t.Errorf("with Remap: %v, %+v", err, r)
	}
}

// The next load detects an interrupted one.
func TestLoad_OtherMappingCutOff(t *testing.T) {
	t.Parallel()
	conn := &failing{ClientConnInterface: newBigtableServer(t)}
	load := func(text string) error {
		t.Helper()
		m := mappingOf(t, text)
		items := `{"id":{"S":"1"},"n":{"N":"2"}}` + "\n" + `{"id":{"S":"2"},"n":{"N":"2"}}`
		_, err := Load(t.Context(), conn, open(t, items), LoadOptions{Common: Common{Mappings: []*mapping.Mapping{m}, knobs: table.Knobs{Batch: 1}}})
		return err
	}
	killed, rows := errors.New("killed"), 0
	conn.fail = func(_ int, req *btpb.MutateRowsRequest) error {
		if strings.HasSuffix(req.GetTableName(), "/t") {
			rows++
		}
		if rows == 2 {
			return killed
		}
		return nil
	}
	if err := load(remappedMapping); !errors.Is(err, killed) {
		t.Fatalf("error %v, want the load to be killed", err)
	}
	conn.fail = nil
	WantDamage(t, load(strings.Replace(remappedMapping, "a:n", "a:count", 1)), source.MappingRefused, `column a:n of row "1"`)
}
