package store

import (
	"fmt"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// Counts of whole items and counts of keys agree on every Bigtable. They include neither the
// remains of index entries, nor another writer's row that is not an item.
func TestSizes_CountedAlike(t *testing.T) {
	t.Parallel()
	for name, start := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			s := openStore(t, testOptions(start(t)))
			g := attr.KeyAttr{Name: "g", Type: attr.S}
			table, err := s.CreateTable(ctx, &tabledef.Table{
				Name: "t", Key: attr.KeySchema{Hash: attr.KeyAttr{Name: "id", Type: attr.S}, Range: attr.KeyAttr{Name: "n", Type: attr.N}},
				Indexes: []tabledef.Index{{Name: "by-g", Global: true, Key: tabledef.IndexKey{Hash: []attr.KeyAttr{g}}, Projection: tabledef.ProjectAll}},
			})
			if err != nil {
				t.Fatal(err)
			}
			write := func(id, g string, item bool) {
				t.Helper()
				key := attr.Item{"id": attr.String(id), "n": attr.Int(1)}
				_, _, err := s.WriteItem(ctx, table, key, func(attr.Item) (attr.Item, error) {
					if !item {
						return nil, nil
					}
					return attr.Item{"id": key["id"], "n": key["n"], "g": attr.String(g), "m": attr.Int(1)}, nil
				}, Hint{})
				if err != nil {
					t.Fatal(err)
				}
			}
			for i := range 20 {
				write(fmt.Sprint(i), "x", true)
			}
			for i := range 5 {
				write(fmt.Sprint(i), "", false)
				write(fmt.Sprint(i+5), "y", true) // it leaves an index row
			}
			foreign := []*btpb.Mutation{btclient.SetCell(lens.FamilyItem, []byte("m"), 0, []byte("n"))}
			if err := s.bt.MutateRow(ctx, table.BigtableTable, []byte("\x00\xff"), foreign); err != nil {
				t.Fatal(err)
			}
			counts, err := s.Counts(ctx, table)
			if err != nil || counts.Items != 15 || counts.Indexes["by-g"].Items != 15 {
				t.Fatalf("%+v, %v; want 15 items", counts, err)
			}
			c, err := s.lookup(ctx, "t")
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range []*indexLayout{nil, c.layout.indexes[0]} {
				if got, all, err := s.countKeys(ctx, c, x, counts.Count, 0); err != nil || !all || got != counts.Count {
					t.Errorf("by keys, index %t: %+v, %v, %v; want %+v", x != nil, got, all, err, counts.Count)
				}
				if got, all, err := s.countKeys(ctx, c, x, counts.Count, 14); err != nil || all || got.Items != 15 {
					t.Errorf("14 by keys, index %t: %+v, %v, %v; want to stop at the 15th", x != nil, got, all, err)
				}
			}
		})
	}
}
