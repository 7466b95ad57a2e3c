package store

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// A write does not know whether it inserts, and to find out would cost it a read. So
// the items of a table are counted when someone asks: those of a small table there
// and then, those of a large one in the background, for whoever asks next. All that a
// write does for it is to raise a number in memory, which says that a count has aged.
//
// What other processes write, and what is written natively, nothing tells of. It
// shows when a count is too old: after catalogMaxAge in a small table, and in a large
// one after countEvery, if its Bigtable says that its size has changed.
const (
	// countedItems is how many items a small table has at most, unless
	// Options.CountedItems says otherwise.
	countedItems = 10_000
	// measuredBytes is up to which size the items of a table are read whole, for
	// their sizes. Beyond that keys alone are read, where a row is an item for
	// certain: the items that are behind are taken to be as large as those before.
	measuredBytes = 4 << 20
	// countEvery is how often a large table is counted at most.
	countEvery = time.Minute
)

var countsQualifier = []byte("counts")

// Count is how many items a table or an index has, and how many bytes they are by
// DynamoDB's rules.
type Count struct {
	Items int64 `json:"items"`
	Bytes int64 `json:"bytes"`
}

// TableCounts are those of a table and, by name, of its indexes.
type TableCounts struct {
	Count
	Indexes map[string]Count `json:"indexes,omitempty"`
}

// counter counts the items of tables.
type counter struct {
	*instance
	cat    *catalog
	tx     *transactions
	reader *reader
}

// tableCounts is what a process knows of the size of a table, through all changes of
// its definition.
type tableCounts struct {
	// written grows with every write of this process that has ended, and with some
	// that wrote nothing.
	written atomic.Uint64
	// kept is the text of the last count that the catalog has, nil for none: of a
	// large table.
	kept atomic.Pointer[[]byte]

	turn     chan struct{} // held while known is looked at, or a small table is counted
	known    *knownCounts
	counting bool      // in the background
	begun    time.Time // when a count in the background last was
}

// knownCounts is one count, with what was the case when it began.
type knownCounts struct {
	TableCounts
	large     bool
	at        time.Time // zero: it is not complete
	written   uint64
	version   string // of the definition
	sizeBytes int64  // as the Bigtable of a large table had it
}

func newTableCounts() *tableCounts { return &tableCounts{turn: make(chan struct{}, 1)} }

// wrote ages the count. It is called when a write has ended, so that a count which
// began before it is not taken for one that saw it.
func (k *tableCounts) wrote() { k.written.Add(1) }

// keep notes what the catalog has.
func (k *tableCounts) keep(text []byte) {
	if kept := k.kept.Load(); kept == nil || !bytes.Equal(*kept, text) {
		k.kept.Store(new(bytes.Clone(text)))
	}
}

// recall returns what the catalog had; a text that is no count is as good as none.
func (k *tableCounts) recall() (counts TableCounts, ok bool) {
	kept := k.kept.Load()
	return counts, kept != nil && json.Unmarshal(*kept, &counts) == nil
}

func (k *tableCounts) take(ctx context.Context) error {
	select {
	case k.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (k *tableCounts) give() { <-k.turn }

// Counts returns how many items a table and its indexes have: of a small table now,
// of a large one as last counted, which it has done again. What cannot be counted is
// as it was. Errors: those of the definition, and of ctx.
func (ct *counter) Counts(ctx context.Context, t *tabledef.Table) (TableCounts, error) {
	c, err := ct.cat.current(ctx, t)
	if err != nil {
		return TableCounts{}, err
	}
	k := c.layout.counts
	if err := k.take(ctx); err != nil {
		return TableCounts{}, err
	}
	defer k.give()
	now := ct.o.Now()
	if k.known == nil {
		k.known = &knownCounts{}
		k.known.TableCounts, k.known.large = k.recall()
	}
	if k.known.large {
		ct.countLater(c, now)
		return k.known.TableCounts, nil
	}
	if c.layout.lag == 0 && k.known.isOf(c) && now.Sub(k.known.at) < catalogMaxAge {
		return k.known.TableCounts, nil
	}
	counted := knownCounts{at: now, written: k.written.Load(), version: string(c.version)}
	all, err := ct.countTable(ctx, c, &counted.TableCounts, ct.mostItems())
	switch {
	case ctx.Err() != nil:
		return TableCounts{}, ctx.Err()
	case err != nil:
		ct.o.Logger.WarnContext(ctx, "counting the items of a table", "table", c.def.Name, "error", err)
	case all:
		k.known = &counted
	default:
		k.known = &knownCounts{TableCounts: counted.TableCounts, large: true}
		ct.countLater(c, now)
	}
	return k.known.TableCounts, nil
}

// KnownCounts returns what Counts last did, without counting.
func (ct *counter) KnownCounts(ctx context.Context, t *tabledef.Table) (TableCounts, error) {
	c, err := ct.cat.current(ctx, t)
	if err != nil {
		return TableCounts{}, err
	}
	k := c.layout.counts
	if err := k.take(ctx); err != nil {
		return TableCounts{}, err
	}
	defer k.give()
	if k.known != nil {
		return k.known.TableCounts, nil
	}
	counts, _ := k.recall()
	return counts, nil
}

// mostItems is how many items a small table has at most.
func (ct *counter) mostItems() int64 { return cmp.Or(ct.o.CountedItems, countedItems) }

// isOf reports whether nothing that this process knows of has changed since.
func (kc *knownCounts) isOf(c *cachedTable) bool {
	return !kc.at.IsZero() && kc.written == c.layout.counts.written.Load() && kc.version == string(c.version)
}

// countLater counts a large table in the background, if it is time to. The turn is
// held.
func (ct *counter) countLater(c *cachedTable, now time.Time) {
	k := c.layout.counts
	if k.counting || !k.begun.IsZero() && now.Sub(k.begun) < countEvery {
		return
	}
	k.counting, k.begun = true, now
	last := k.known
	ct.background.Go(func() {
		counted, err := ct.countLarge(ct.life, c, last, now)
		if err != nil && ct.life.Err() == nil {
			ct.o.Logger.Warn("counting the items of a table", "table", c.def.Name, "error", err)
		}
		k.turn <- struct{}{}
		defer k.give()
		if k.counting = false; err == nil {
			k.known = counted
		}
	})
}

// countLarge counts a table of any size, unless it is as it was when it was last
// counted, and keeps what is large in the catalog.
func (ct *counter) countLarge(ctx context.Context, c *cachedTable, last *knownCounts, now time.Time) (*knownCounts, error) {
	counted := &knownCounts{at: now, written: c.layout.counts.written.Load(), version: string(c.version)}
	var err error
	if _, counted.sizeBytes, err = ct.bt.SampleKeys(ctx, c.layout.table); err != nil {
		return nil, err
	}
	if last.isOf(c) && last.sizeBytes == counted.sizeBytes {
		counted.TableCounts, counted.large = last.TableCounts, last.large
		return counted, nil
	}
	if _, err := ct.countTable(ctx, c, &counted.TableCounts, 0); err != nil {
		return nil, err
	}
	counted.large = counted.Items > ct.mostItems()
	return counted, ct.keepCounts(ctx, c, &counted.TableCounts)
}

// keepCounts writes counts beside the definition that they are of, if it still is
// the table's.
func (ct *counter) keepCounts(ctx context.Context, c *cachedTable, counts *TableCounts) error {
	text, err := json.Marshal(counts)
	if err != nil {
		return err
	}
	guard := btclient.Chain(btclient.OfColumn(catalogFamily, versionQualifier), btclient.Newest(1), btclient.OfValue(c.version))
	_, err = ct.bt.CheckAndMutate(ctx, ct.o.Catalog, tableRow(c.def.Name), guard, []*btpb.Mutation{
		btclient.DeleteColumn(catalogFamily, countsQualifier, 0, 0),
		btclient.SetCell(catalogFamily, countsQualifier, ct.nowMicros(), text),
	}, nil)
	return err
}

// countTable counts a table and its indexes, up to so many items of each; 0 has no
// bound. It reports whether that was all of them.
func (ct *counter) countTable(ctx context.Context, c *cachedTable, counts *TableCounts, most int64) (all bool, err error) {
	if counts.Count, all, err = ct.count(ctx, c, nil, most); err != nil || !all {
		return false, err
	}
	counts.Indexes = make(map[string]Count, len(c.def.Indexes))
	for i := range c.def.Indexes {
		ix := &c.def.Indexes[i]
		if counts.Indexes[ix.Name], all, err = ct.count(ctx, c, ix, most); err != nil || !all {
			return false, err
		}
	}
	return true, nil
}

// count counts a table, or an index that is not nil.
func (ct *counter) count(ctx context.Context, c *cachedTable, ix *tabledef.Index, most int64) (n Count, all bool, err error) {
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
		var size int
		if text, size, err = item.AppendJSON(text[:0]); err != nil {
			return n, false, err
		}
		n.Items++
		n.Bytes += int64(size)
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

// countKeys counts by the rows, of which some were measured.
func (ct *counter) countKeys(ctx context.Context, c *cachedTable, x *indexLayout, measured Count, most int64) (n Count, all bool, err error) {
	item := btclient.Chain(btclient.OfFamily(lens.FamilyItem), btclient.KeysOnly())
	read := btclient.Read{Table: c.layout.table, Spans: c.layout.base.PlanScan().Spans, Filter: btclient.AnyOf(item, anyIntent())}
	if x != nil {
		read = btclient.Read{Table: x.table, Spans: x.x.PlanScan().Spans, Filter: item}
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

// rowIsItem reports whether every row with a cell of the family of items is one item,
// or one entry of an index that is not nil.
func (l *tableLayout) rowIsItem(x *indexLayout) bool {
	if x != nil {
		return x.x.OneCell()
	}
	return l.timeless
}
