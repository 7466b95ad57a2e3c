package control_test

import (
	"strings"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// TestPositions: cells of positions are shown as cells of a row and of no item. They are in no
// dump, and a snapshot without them does not differ.
func TestPositions(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.query("CreateTable", createTable)
	e.query("PutItem", `{"TableName":"orders","Item":{"k":{"S":"a"},"total":{"N":"1"}}}`)
	m, err := e.ddb.Mapping(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	bt := btclient.New(e.lab.Bigtable().Conn(), "p", "i", btclient.Options{})
	if _, err := bt.EnsureTable(t.Context(), m.TargetTable(), []layout.Family{{Name: lens.FamilyPosition, GC: layout.GC{Versions: 1}}}, nil); err != nil {
		t.Fatal(err)
	}
	dump := func() string {
		t.Helper()
		text, err := e.lab.Dump(t.Context(), "orders")
		if err != nil {
			t.Fatal(err)
		}
		all, err := e.lab.DumpAll(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return text + all
	}
	before := dump()
	e.must("POST", "snapshots", `{"name":"one"}`, nil)
	for _, row := range []string{"a", "deleted"} {
		if err := bt.MutateRow(t.Context(), m.TargetTable(), []byte(row), []*btpb.Mutation{btclient.SetCell(lens.FamilyPosition, nil, 1000, []byte("position"))}); err != nil {
			t.Fatal(err)
		}
	}
	if after := dump(); after != before || !strings.Contains(after, "total") {
		t.Errorf("the dump is\n%s\nwant\n%s", after, before)
	}
	var got snapshotChanges
	if e.must("GET", "snapshots/one/changes", "", &got); len(got.Tables) != 0 {
		t.Errorf("the changes since the snapshot are %+v", got.Tables)
	}
	for row, items := range map[string]int{"a": 1, "deleted": 0} {
		var got carriedRow
		e.must("GET", "tables/i/"+m.TargetTable()+"/items?key="+row, "", &got)
		if len(got.Items) != items || len(got.Problems) > 0 {
			t.Errorf("row %s has %d items, problems %q", row, len(got.Items), got.Problems)
		}
		shown := 0
		for i, c := range got.Row.Cells {
			if c.Family != lens.FamilyPosition {
				continue
			}
			shown++
			for _, item := range got.Items {
				for _, a := range item.Attributes {
					for _, of := range a.Cells {
						if of == i {
							t.Errorf("the position of row %s is shown as a cell of attribute %s", row, a.Name)
						}
					}
				}
			}
		}
		if shown != 1 {
			t.Errorf("row %s has %d position cells, want 1", row, shown)
		}
	}
}
