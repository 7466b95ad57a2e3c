package store

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/btclient"
)

const indexedMapping = `apiVersion: migration/v1
source:
  table: Things
  key: {hash: {name: id, type: S}}
  schema: {g: S, n: N}
  gsis:
  - {name: byG, hash: g, projection: ALL}
target: {table: things, joiner: oc, families: {a: {gc: {versions: 1}}, _t: {gc: {versions: 1}}}}
rules: [{name: thing, row: ["{id}"], put: [{attr: "*", cell: "a:{attr}"}]}]
`

// Unreadable rows prevent an index from being filled: a start logs their number, the first
// MaxUnreadNamed of them, and the remedy. Once they are deleted, the next start fills the index.
func TestUnreadableRows_FillNamesUnreadableRows(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for _, bad := range []int{1, 3, MaxUnreadNamed + 2} {
		conn := backends["emu"](t)
		m := loadMapping(t, indexedMapping)
		loader := openStore(t, testOptions(conn))
		if _, err := loader.bt.EnsureTable(ctx, "things", m.Families(), nil); err != nil {
			t.Fatal(err)
		}
		whole := model{}
		row := func(i int) []byte { return fmt.Appendf(nil, "t%02d", 2*i) }
		for i := range 2 * bad { // every other one is unreadable
			item := attr.Item{"id": attr.String(fmt.Sprintf("t%02d", i)), "g": attr.String("x"), "n": attr.Int(1)}
			if err := loadNatively(ctx, loader, m, item); err != nil {
				t.Fatal(err)
			}
			if i%2 == 1 {
				whole[keyText(attr.Item{"id": item["id"]})] = item
			}
		}
		for i := range bad {
			if err := loader.bt.MutateRow(ctx, "things", row(i), []*btpb.Mutation{btclient.SetCell("a", []byte("n"), 4102444800000000, []byte("no number"))}); err != nil {
				t.Fatal(err)
			}
		}
		_, err := Open(ctx, testOptions(conn, m))
		var e *maperr.Error
		if !errors.As(err, &e) || e.Code != maperr.CodeCorrupt || string(e.Row) != string(row(0)) {
			t.Fatalf("%d rows: %v, want %s of row %q", bad, err, maperr.CodeCorrupt, row(0))
		}
		rows := "rows"
		if bad == 1 {
			rows = "row"
		}
		for _, want := range []string{
			fmt.Sprintf("%d %s of table things cannot be read by the mapping", bad, rows),
			"correct or delete them and start again, or leave the index out (as: none)",
		} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("error %v\ndoes not say %s", err, want)
			}
		}
		for i := range bad {
			if named := strings.Contains(err.Error(), fmt.Sprintf("row %q: ", row(i))); named != (i < MaxUnreadNamed) {
				t.Errorf("row %q is named: %v\n%v", row(i), named, err)
			}
			if err := loader.bt.MutateRow(ctx, "things", row(i), []*btpb.Mutation{btclient.DeleteRow()}); err != nil {
				t.Fatal(err)
			}
		}
		s := openStore(t, testOptions(conn, m))
		def, err := s.Table(ctx, "Things")
		if err != nil {
			t.Fatal(err)
		}
		if err := checkIndexes(ctx, s, def, whole); err != nil {
			t.Errorf("%d rows: %v", bad, err)
		}
	}
}
