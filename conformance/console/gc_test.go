package console

import (
	"fmt"
	"slices"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tabletop-emu/tabletop/internal/btclient"
)

// TestRows_Collected: the page strikes through exactly the cells that garbage collection
// removes, with rules of versions and ages and nested rules.
func TestRows_Collected(t *testing.T) {
	ctx := browser(t)
	srv := start(t)
	versions := func(n int32) *btapb.GcRule {
		return &btapb.GcRule{Rule: &btapb.GcRule_MaxNumVersions{MaxNumVersions: n}}
	}
	age := func(d time.Duration) *btapb.GcRule {
		return &btapb.GcRule{Rule: &btapb.GcRule_MaxAge{MaxAge: durationpb.New(d)}}
	}
	union := func(rules ...*btapb.GcRule) *btapb.GcRule {
		return &btapb.GcRule{Rule: &btapb.GcRule_Union_{Union: &btapb.GcRule_Union{Rules: rules}}}
	}
	both := func(rules ...*btapb.GcRule) *btapb.GcRule {
		return &btapb.GcRule{Rule: &btapb.GcRule_Intersection_{Intersection: &btapb.GcRule_Intersection{Rules: rules}}}
	}
	rules := map[string]*btapb.GcRule{
		"never": nil, "versions": versions(2), "age": age(90 * time.Minute), "or": union(versions(1), age(time.Hour)), "and": both(versions(1), age(time.Hour)),
		"orInAnd": both(versions(1), union(age(150*time.Minute), versions(3))), "andInOr": union(age(150*time.Minute), both(versions(2), age(time.Hour))),
	}
	spec := &btapb.Table{ColumnFamilies: map[string]*btapb.ColumnFamily{}}
	var cells []btclient.Cell
	now := srv.lab.Clock().Now()
	srv.lab.Clock().Freeze()
	for family, rule := range rules {
		spec.ColumnFamilies[family] = &btapb.ColumnFamily{GcRule: rule}
		for _, ago := range []time.Duration{time.Minute, 30 * time.Minute, 2 * time.Hour, 3 * time.Hour} {
			cells = append(cells, btclient.Cell{Family: family, Qualifier: []byte("q"), Timestamp: now.Add(-ago).UnixMilli() * 1000, Value: []byte("v")})
		}
	}
	if _, err := btapb.NewBigtableTableAdminClient(srv.lab.Bigtable().Conn()).CreateTable(t.Context(), &btapb.CreateTableRequest{
		Parent: "projects/tabletop/instances/tabletop", TableId: "ruled", Table: spec,
	}); err != nil {
		t.Fatal(err)
	}
	srv.set(t, "ruled", "k", cells...)
	there := func() (out []string) {
		t.Helper()
		row, err := srv.client().ReadRow(t.Context(), "ruled", []byte("k"), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range row.Cells {
			out = append(out, fmt.Sprintf("%s %d", c.Family, c.Timestamp))
		}
		return out
	}

	p := open(t, ctx, srv)
	p.resize(1280, 3000)
	p.visit("/t/tabletop/ruled/rows")
	p.until(fmt.Sprintf("document.querySelectorAll('[data-cell]').length === %d", len(cells)))
	struck := ask[[]int](p, "[...document.querySelectorAll('[data-cell]')].filter((e) => e.querySelector('.gone')).map((e) => Number(e.dataset.cell))")
	reasons := ask[int](p, "[...document.querySelectorAll('[data-cell]')].filter((e) => e.title.startsWith('Garbage collection would delete it: ')).length")
	p.sound("rows")

	before := there()
	n, err := srv.lab.RunGC(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	after := there()
	var taken []int
	for i, cell := range before {
		if !slices.Contains(after, cell) {
			taken = append(taken, i)
		}
	}
	slices.Sort(struck)
	if int(n) != len(taken) || len(taken) == 0 || !slices.Equal(struck, taken) {
		t.Errorf("struck through are %v, garbage collection took %d: %v, of %q", struck, n, taken, before)
	}
	if reasons != len(struck) {
		t.Errorf("%d of %d say why", reasons, len(struck))
	}
}
