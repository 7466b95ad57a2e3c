package store

import (
	"cmp"
	"context"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/sizes"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

const (
	// countedItems is the maximum number of items in a small table, which is counted when
	// it is described. Options.CountedItems overrides it.
	countedItems = 10_000
	// measuredBytes is the size of items up to which a count reads whole items to measure them.
	// Beyond it, if every row is one item, the count reads only keys and assumes the average
	// size so far. Otherwise a count with a limit ends there, and one without a limit measures
	// the other items too.
	measuredBytes = 4 << 20
)

var countsQualifier = []byte("counts")

// counter counts the items of tables.
type counter struct {
	*instance
	cat    *catalog
	tx     *transactions
	reader *reader
}

// Counts returns the item counts and sizes of a table and its indexes, like
// sizes.Table.Now. It returns an error if the definition cannot be read or ctx ends.
func (ct *counter) Counts(ctx context.Context, t *tabledef.Table) (sizes.Counts, error) {
	c, err := ct.cat.current(ctx, t)
	if err != nil {
		return sizes.Counts{}, err
	}
	return c.layout.sizes.Now(ctx, &sizes.Counter{
		MostItems: cmp.Or(ct.o.CountedItems, countedItems), Now: ct.o.Now, Log: ct.o.Logger.With("table", c.def.Name),
		Background: func(run func(context.Context)) { ct.background.Go(func() { run(ct.life) }) },
	}, &countedTable{ct, c})
}

// KnownCounts returns the last result of Counts without counting.
func (ct *counter) KnownCounts(ctx context.Context, t *tabledef.Table) (sizes.Counts, error) {
	c, err := ct.cat.current(ctx, t)
	if err != nil {
		return sizes.Counts{}, err
	}
	return c.layout.sizes.Last(ctx)
}

// countedTable implements sizes.Source.
type countedTable struct {
	*counter
	c *cachedTable
}

func (t *countedTable) Version() string { return string(t.c.version) }

func (t *countedTable) Fresh() bool { return t.c.layout.lag == 0 && len(t.c.layout.views) == 0 }

func (t *countedTable) StoredBytes(ctx context.Context) (int64, error) {
	_, n, err := t.bt.SampleKeys(ctx, t.c.layout.table)
	return n, err
}

// Keep stores a text next to the definition, unless the definition has changed.
func (t *countedTable) Keep(ctx context.Context, text []byte) error {
	guard := btclient.Chain(btclient.OfColumn(catalogFamily, versionQualifier), btclient.Newest(1), btclient.OfValue(t.c.version))
	_, err := t.bt.CheckAndMutate(ctx, t.o.Catalog, tableRow(t.c.def.Name), guard, []*btpb.Mutation{
		btclient.DeleteColumn(catalogFamily, countsQualifier, 0, 0),
		btclient.SetCell(catalogFamily, countsQualifier, t.nowMicros(), text),
	}, nil)
	return err
}

func (t *countedTable) Count(ctx context.Context, counts *sizes.Counts, most int64) (all bool, err error) {
	if counts.Count, all, err = t.count(ctx, t.c, nil, most); err != nil || !all {
		return false, err
	}
	counts.Indexes = make(map[string]sizes.Count, len(t.c.def.Indexes))
	for i := range t.c.def.Indexes {
		ix := &t.c.def.Indexes[i]
		if counts.Indexes[ix.Name], all, err = t.count(ctx, t.c, ix, most); err != nil || !all {
			return false, err
		}
	}
	for _, ix := range t.c.def.LiveVectors() {
		if counts.Indexes[ix.Name], err = t.countVectors(ctx, t.c, &ix); err != nil {
			return false, err
		}
	}
	return true, nil
}

// count counts the items of a table, or the entries of its index ix if that is not nil. If it
// meets more than most items, it stops and returns false for all; 0 means no limit.
func (ct *counter) count(ctx context.Context, c *cachedTable, ix *tabledef.Index, most int64) (n sizes.Count, all bool, err error) {
	var x *indexLayout
	if ix != nil {
		if x, err = c.index(ix.Name); err != nil {
			return n, false, err
		}
	}
	keysAlone := c.layout.rowIsItem(x)
	var text []byte
	for item, err := range ct.reader.Scan(ctx, c.def, ix, 0, 1, nil) {
		if err != nil {
			return n, false, err
		}
		var size attr.Sizes
		if text, size, err = item.AppendJSON(text[:0]); err != nil {
			return n, false, err
		}
		n.Items++
		n.Bytes += int64(size.Item)
		switch {
		case most > 0 && n.Items > most:
			return n, false, nil
		case n.Bytes < measuredBytes:
		case keysAlone:
			return ct.countKeys(ctx, c, x, n, most)
		case most > 0:
			return n, false, nil
		}
	}
	return n, true, nil
}

// countKeys acts like count for a table or an index x whose rows are single items. It reads
// only keys, and extrapolates the bytes from the measured items.
func (ct *counter) countKeys(ctx context.Context, c *cachedTable, x *indexLayout, measured sizes.Count, most int64) (n sizes.Count, all bool, err error) {
	item := btclient.Chain(btclient.OfFamily(lens.FamilyItem), btclient.KeysOnly())
	read := btclient.Read{Table: c.layout.table, Spans: c.layout.base.PlanScan().Spans, Filter: btclient.AnyOf(item, anyIntent())}
	if x != nil {
		read = btclient.Read{Table: x.table, Spans: x.PlanScan().Spans, Filter: item}
	}
	var stored []layout.Stored
	for row, err := range ct.bt.Read(ctx, read) {
		if err == nil && x == nil {
			if row, err = ct.tx.freeRow(ctx, c.layout, row, read.Filter); err == nil {
				stored, err = c.layout.base.AppendStored(stored[:0], row)
			}
		}
		if err != nil {
			return n, false, err
		}
		if x != nil || len(stored) > 0 {
			n.Items++
		}
		if most > 0 && n.Items > most {
			return n, false, nil
		}
	}
	n.Bytes = int64(float64(measured.Bytes) / float64(measured.Items) * float64(n.Items))
	return n, true, nil
}

// rowIsItem reports whether every row with a cell of the item family is one item, or, if x is
// not nil, one index entry.
func (l *tableLayout) rowIsItem(x *indexLayout) bool {
	if x != nil {
		return x.view == nil && x.x.OneCell()
	}
	return l.timeless
}
