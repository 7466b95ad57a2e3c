package migrate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/test/cputime"
	"github.com/tabletop-emu/tabletop/internal/test/memory"
	"github.com/tabletop-emu/tabletop/migrate/internal/apply"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
)

// kilobytes are changes of 1 KB of items without index entries.
type kilobytes struct {
	next int
	want *table.Bigtable
	applyTarget
	writers map[string]*apply.Writer
}

func newKilobytes(tb testing.TB) *kilobytes {
	tb.Helper()
	m := mustLoad(tb, rowOfOne)
	k := &kilobytes{applyTarget: *newApplyTarget(tb, m), writers: map[string]*apply.Writer{}}
	for name, guarded := range map[string]bool{"guarded": true, "ordered": false} {
		k.writers[name] = newApplyTarget(tb, m).writer(tb, guarded)
	}
	k.want = table.NewBigtable(newApplyTarget(tb, m), table.Options{})
	return k
}

func (k *kilobytes) change() apply.Change {
	k.next++
	key := attr.Item{"PK": attr.String(fmt.Sprint("p", k.next%1000)), "SK": attr.String("s")}
	item := attr.Item{"PK": key["PK"], "SK": key["SK"], "v": attr.String(strings.Repeat("x", 1000))}
	return apply.Change{Key: key, Was: []attr.Item{item}, Now: item, Complete: true, Position: applyPosition(k.next), Time: int64(k.next), Cells: 1e15}
}

// changesAtOnce is the size of a batch.
const changesAtOnce = 100

// apply applies a batch of changes.
func (k *kilobytes) apply(tb testing.TB, name string) {
	tb.Helper()
	var changes []apply.Change
	for range changesAtOnce {
		changes = append(changes, k.change())
	}
	if _, err := k.writers[name].Apply(tb.Context(), changes); err != nil {
		tb.Fatal(err)
	}
}

// mutate writes the cells of as many items, each by MutateRow.
func (k *kilobytes) mutate(tb testing.TB) {
	tb.Helper()
	for range changesAtOnce {
		placed, err := k.m.Place(k.change().Now, 1e15)
		if err == nil {
			err = k.want.MutateRow(tb.Context(), "t", placed.Row, btclient.AppendSets(nil, placed.Cells))
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
}

// BenchmarkApply compares changes of 1 KB with MutateRows of the same cells, by CPU time.
func BenchmarkApply(b *testing.B) {
	for _, name := range []string{"guarded", "ordered"} {
		b.Run(name, func(b *testing.B) {
			k := newKilobytes(b)
			cputime.Ratio(b, func(int) { k.apply(b, name) }, func(int) { k.mutate(b) })
		})
	}
}

// TestApply_Allocations bounds the work of a guarded change by that of a MutateRow.
func TestApply_Allocations(t *testing.T) {
	memory.Alone(t, func(t *testing.T) {
		k := newKilobytes(t)
		got := testing.AllocsPerRun(20, func() { k.apply(t, "guarded") }) / changesAtOnce
		base := testing.AllocsPerRun(20, func() { k.mutate(t) }) / changesAtOnce
		if t.Logf("%.0f allocations, %.0f for a MutateRow", got, base); got > 2.8*base {
			t.Errorf("a guarded change of 1 KB makes %.0f allocations, want at most 2.8 times the %.0f of a MutateRow", got, base)
		}
	})
}
