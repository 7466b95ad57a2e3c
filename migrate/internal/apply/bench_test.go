package apply_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/migrate/internal/apply"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
)

// BenchmarkApply compares a change of 1 KB of an item without index entries, guarded and ordered, with a
// MutateRow of the same cells.
func BenchmarkApply(b *testing.B) {
	const batch = 100
	m := mustLoad(b, rowOfOne)
	change := func(i int) apply.Change {
		key := attr.Item{"PK": attr.String(fmt.Sprint("p", i%1000)), "SK": attr.String("s")}
		item := attr.Item{"PK": key["PK"], "SK": key["SK"], "v": attr.String(strings.Repeat("x", 1000))}
		return apply.Change{Key: key, Was: []attr.Item{item}, Now: item, Complete: true, Position: position(i + 1), Time: int64(i), Cells: 1e15}
	}
	for name, guarded := range map[string]bool{"guarded": true, "ordered": false} {
		b.Run(name, func(b *testing.B) {
			w := newTarget(b, m).writer(b, guarded)
			b.ReportAllocs()
			for from := 0; from < b.N; from += batch {
				var changes []apply.Change
				for i := from; i < min(from+batch, b.N); i++ {
					changes = append(changes, change(i))
				}
				if _, err := w.Apply(b.Context(), changes); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("MutateRow", func(b *testing.B) {
		to := newTarget(b, m)
		bt := table.NewBigtable(to, table.Options{})
		b.ReportAllocs()
		for i := range b.N {
			placed, err := m.Place(change(i).Now, 1e15)
			if err == nil {
				err = bt.MutateRow(b.Context(), "t", placed.Row, btclient.AppendSets(nil, placed.Cells))
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}
