package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/cells"
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/store/lanes"
	"github.com/tabletop-emu/tabletop/facade/internal/store/segment"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// reader reads items and index entries.
type reader struct {
	*instance
	cat      *catalog
	rows     *rows
	outbox   *outbox
	tx       *transactions
	segments *segment.Cutter
}

// GetItem returns the item with the given key, or nil if it does not exist. The key
// consists of the key attributes alone. A key outside the table's layout has no item.
func (rd *reader) GetItem(ctx context.Context, t *tabledef.Table, key attr.Item) (attr.Item, error) {
	c, err := rd.cat.current(ctx, t)
	if err != nil {
		return nil, err
	}
	p, err := c.layout.slot(key)
	if errors.Is(err, ErrOutsideMapping) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	st, _, err := rd.tx.freeItem(ctx, p, nil)
	return st.item, err
}

// GetItems calls take for each of the keys, in any order, with the index i of the key and
// the item, or nil if the item does not exist. It requests all items with one read, and
// passes each item to take as it arrives. It stops when take returns false.
func (rd *reader) GetItems(ctx context.Context, t *tabledef.Table, keys []attr.Item, take func(i int, item attr.Item) bool) error {
	c, err := rd.cat.current(ctx, t)
	if err != nil {
		return err
	}
	l := c.layout
	wanted := map[string][]int{} // row to indexes of keys
	var extents []lens.Extent
	read := btclient.Read{Table: l.table}
	for i, key := range keys {
		p, err := l.slot(key)
		if errors.Is(err, ErrOutsideMapping) {
			if !take(i, nil) {
				return nil
			}
			continue
		}
		if err != nil {
			return err
		}
		if wanted[string(p.row)] == nil {
			read.Keys = append(read.Keys, p.row)
		}
		wanted[string(p.row)] = append(wanted[string(p.row)], i)
		extents = append(extents, p.own...)
	}
	slices.SortFunc(read.Keys, bytes.Compare)
	read.Filter = extentsFilter(distinctExtents(extents))
	// The rows arrive in key order, so skipped rows do not exist.
	next := 0
	for row, err := range rd.bt.Read(ctx, read) {
		if err != nil {
			return err
		}
		for ; next < len(read.Keys) && bytes.Compare(read.Keys[next], row.Key) < 0; next++ {
			if !takeNone(wanted[string(read.Keys[next])], take) {
				return nil
			}
		}
		next++
		if row, err = rd.tx.freeRow(ctx, l, row, read.Filter); err != nil {
			return err
		}
		for _, i := range wanted[string(row.Key)] {
			item, err := rd.rows.itemOf(l, row, keys[i])
			if err != nil {
				return fmt.Errorf("row %q of table %s: %w", row.Key, l.table, err)
			}
			if !take(i, item) {
				return nil
			}
		}
	}
	for ; next < len(read.Keys); next++ {
		if !takeNone(wanted[string(read.Keys[next])], take) {
			return nil
		}
	}
	return nil
}

// takeNone calls take for the items with the given indexes, which do not exist. It returns
// false as soon as take does.
func takeNone(numbers []int, take func(i int, item attr.Item) bool) bool {
	return !slices.ContainsFunc(numbers, func(i int) bool { return !take(i, nil) })
}

// extentsFilter returns a filter that passes the cells of the extents and a cell of an intent,
// if the row has one. It returns nil, which passes all cells, if extents is nil, has only whole
// families, or is too large for a filter.
func extentsFilter(extents []lens.Extent) *btpb.RowFilter {
	if extents == nil || !slices.ContainsFunc(extents, func(e lens.Extent) bool { return !wholeFamily(e) }) {
		return nil
	}
	filters, ok := extentFilters(extents)
	if !ok {
		return nil
	}
	return btclient.AnyOf(append(filters, anyIntent())...)
}

// Query yields the items of the table that satisfy cond, or the entries of its index ix if
// that is not nil. They are sorted by sort key, ascending if forward is set. They begin after
// startAfter, which holds the key attributes of the table and of the index, or at the start
// if startAfter is nil. Index entries have only the projected attributes. An error ends the
// sequence.
func (rd *reader) Query(ctx context.Context, t *tabledef.Table, ix *tabledef.Index, cond attr.KeyRange, forward bool, startAfter attr.Item) iter.Seq2[layout.Stored, error] {
	return func(yield func(layout.Stored, error) bool) {
		c, err := rd.cat.current(ctx, t)
		if err != nil {
			yield(nil, err)
			return
		}
		if ix != nil {
			rd.queryIndex(ctx, c, ix.Name, cond, forward, startAfter, yield)
			return
		}
		q := baseQuery{rd: rd, l: c.layout, cond: cond, forward: forward, startAfter: startAfter}
		q.run(ctx, yield)
	}
}

// baseQuery is a query of a table's own rows.
type baseQuery struct {
	rd         *reader
	l          *tableLayout
	cond       attr.KeyRange
	forward    bool
	startAfter attr.Item
}

func (q *baseQuery) run(ctx context.Context, yield func(layout.Stored, error) bool) {
	plan, err := q.plan()
	if err != nil {
		yield(nil, outsideMapping(err))
		return
	}
	read := func(spans []layout.Span, reverse bool) iter.Seq2[layout.Stored, error] {
		return q.items(ctx, plan, spans, reverse)
	}
	inOrder(q.rd.lanes, plan, q.forward, q.compare, read, yield)
}

// inOrder calls read for the spans of a plan, and yields the items in the order of compare,
// which is descending unless forward is set. read reads rows in ascending or, if reverse is
// set, in descending order. If spans must be merged, their first items are read in lanes of
// side.
func inOrder(side *lanes.Lanes, plan lens.Plan, forward bool, compare func(a, b layout.Stored) int, read func(spans []layout.Span, reverse bool) iter.Seq2[layout.Stored, error], yield func(layout.Stored, error) bool) {
	switch plan.Order {
	case lens.SameOrder, lens.ReversedOrder:
		read(plan.Spans, (plan.Order == lens.SameOrder) != forward)(yield)
	case lens.MergeOrder, lens.MergeReversedOrder:
		streams := make([]iter.Seq2[layout.Stored, error], len(plan.Spans))
		for i, span := range plan.Spans {
			streams[i] = read([]layout.Span{span}, (plan.Order == lens.MergeOrder) != forward)
		}
		MergeInOrder(side.Each, streams, compare, yield)
	case lens.SortOrder:
		InPasses(read(plan.Spans, false), compare, yield)
	}
}

// plan returns a plan to read the items after startAfter that can satisfy the condition.
func (q *baseQuery) plan() (lens.Plan, error) {
	plan, err := q.l.base.PlanQuery(q.cond)
	if err != nil || q.startAfter == nil {
		return plan, err
	}
	if q.l.key.Range.Name == "" {
		// startAfter is the only item of its partition.
		return lens.Plan{}, nil
	}
	behind, err := q.l.base.PlanQuery(q.rest())
	plan.Spans = cells.Intersect(plan.Spans, behind.Spans)
	plan.Extents = intersectExtents(plan.Extents, behind.Extents)
	return plan, err
}

// rest returns the condition that the items of the partition after startAfter satisfy.
func (q *baseQuery) rest() attr.KeyRange {
	rest := attr.KeyRange{Hash: q.cond.Hash, Op: attr.RangeGreater, A: q.startAfter[q.l.key.Range.Name]}
	if !q.forward {
		rest.Op = attr.RangeLess
	}
	return rest
}

// compare orders items of the partition in the query's direction.
func (q *baseQuery) compare(a, b layout.Stored) int {
	c := compareAttr(a, b, q.l.key.Range.Name)
	if !q.forward {
		return -c
	}
	return c
}

// matches reports whether an item satisfies the condition and follows startAfter.
func (q *baseQuery) matches(item layout.Stored) bool {
	return matchesKey(q.cond, q.l.key, item) && (q.startAfter == nil || q.compare(item, layout.Decoded(q.startAfter)) > 0)
}

// items yields the matching items of some spans of the plan. It sorts the items of each row in
// the query's direction; reverse reverses the order of rows.
func (q *baseQuery) items(ctx context.Context, plan lens.Plan, spans []layout.Span, reverse bool) iter.Seq2[layout.Stored, error] {
	r := itemReader{
		rd: q.rd, l: q.l, compare: q.compare, descending: !q.forward,
		conditions: func(_ []byte, _ attr.Value) ([]attr.KeyRange, bool) {
			if q.startAfter == nil {
				return []attr.KeyRange{q.cond}, true
			}
			return []attr.KeyRange{q.cond, q.rest()}, true
		},
		wants: func(_ []byte, item layout.Stored) bool { return q.matches(item) },
	}
	return func(yield func(layout.Stored, error) bool) {
		r.read(ctx, btclient.Read{Table: q.l.table, Spans: spans, Filter: extentsFilter(plan.Extents), Reverse: reverse}, yield)
	}
}

// queryIndex acts like Query for the index with the given name. Entries with equal index keys
// are in a stable order.
func (rd *reader) queryIndex(ctx context.Context, c *cachedTable, name string, cond attr.KeyRange, forward bool, startAfter attr.Item, yield func(layout.Stored, error) bool) {
	x, err := c.index(name)
	if err != nil {
		yield(nil, err)
		return
	}
	plan, err := x.plan(cond)
	if err != nil {
		yield(nil, err)
		return
	}
	keep := func(item layout.Stored) bool { return x.key.Matches(cond, item) }
	if plan.Order == lens.SameOrder {
		rd.indexItems(ctx, c, x, plan.Spans, !forward, startAfter, keep, yield)
		return
	}
	// The entries of a partition are in several spans, or not in the order of the sort key.
	sortKey := x.key.Schema().Range.Name
	compare := func(a, b layout.Stored) int {
		order := cmp.Or(compareAttr(a, b, sortKey), c.layout.compareKeys(a, b))
		if !forward {
			return -order
		}
		return order
	}
	if startAfter != nil {
		rest := attr.KeyRange{Hash: cond.Hash}
		if sortKey != "" {
			rest.Op, rest.A = attr.RangeGreaterEqual, startAfter[sortKey]
			if !forward {
				rest.Op = attr.RangeLessEqual
			}
		}
		behind, err := x.plan(rest)
		if err != nil {
			yield(nil, err)
			return
		}
		plan.Spans = cells.Intersect(plan.Spans, behind.Spans)
		matches := keep
		after := layout.Decoded(startAfter)
		keep = func(item layout.Stored) bool { return matches(item) && compare(item, after) > 0 }
	}
	read := func(spans []layout.Span, reverse bool) iter.Seq2[layout.Stored, error] {
		return func(yield func(layout.Stored, error) bool) {
			rd.indexItems(ctx, c, x, spans, reverse, nil, keep, yield)
		}
	}
	inOrder(rd.lanes, plan, forward, compare, read, yield)
}

// index returns the layout of the index with the given name.
func (c *cachedTable) index(name string) (*indexLayout, error) {
	if x := c.layout.index(name); x != nil {
		return x, nil
	}
	return nil, fmt.Errorf("table %s has no index %s", c.def.Name, name)
}

// read returns a read of rows of the index.
func (x *indexLayout) read(spans []layout.Span, reverse bool) btclient.Read {
	return btclient.Read{Table: x.table, View: x.view != nil, Spans: spans, Reverse: reverse}
}

// readError returns the error of a read of the index, with advice if Bigtable cannot read its view.
func (x *indexLayout) readError(table string, err error) error {
	if x.view == nil {
		return err
	}
	switch status.Code(err) { //nolint:exhaustive // others have no remedy of their own
	case codes.NotFound:
		return fmt.Errorf("index %s of table %s is the materialized view %s, which does not exist: start this endpoint again, or run tabletop migrate load, to create it: %w", x.Name(), table, x.table, err)
	case codes.FailedPrecondition:
		return fmt.Errorf("%w: %s of table %s: Bigtable refuses to read the materialized view %s, as it does until it has filled a view: try again later: %w", ErrViewFilling, x.Name(), table, x.table, err)
	}
	return err
}

// indexItems yields the entries in the spans of an index that keep accepts, in row order or in
// reverse, after startAfter unless that is nil. First it settles this process's unfinished
// transactions, and, unless Bigtable maintains the index, this process's writes that are at least
// as old as the lag of the index.
func (rd *reader) indexItems(ctx context.Context, c *cachedTable, x *indexLayout, spans []layout.Span, reverse bool, startAfter attr.Item, keep func(layout.Stored) bool, yield func(layout.Stored, error) bool) {
	before := int64(everything)
	if x.lag > 0 {
		before = rd.nowMicros() - x.lag.Microseconds() + 1
	}
	if err := rd.tx.settleTransactions(ctx); err != nil {
		yield(nil, err)
		return
	}
	if x.view == nil {
		if err := rd.outbox.settle(ctx, c.def.Name, before); err != nil {
			yield(nil, err)
			return
		}
	}
	if startAfter != nil {
		at, err := x.row(startAfter)
		if err != nil {
			yield(nil, err)
			return
		}
		behind := layout.Span{Start: append(bytes.Clone(at), 0)}
		if reverse {
			behind = layout.Span{End: at}
		}
		spans = cells.Intersect(spans, []layout.Span{behind})
	}
	for row, err := range rd.bt.Read(ctx, x.read(spans, reverse)) {
		if err != nil {
			yield(nil, x.readError(c.def.Name, err))
			return
		}
		row.Cells = slices.DeleteFunc(row.Cells, bookkeeping)
		if len(row.Cells) == 0 {
			continue
		}
		items, err := x.Items(row)
		if err != nil {
			yield(nil, fmt.Errorf("row %q of table %s: %w", row.Key, x.table, err))
			return
		}
		for _, item := range items {
			if item := layout.Decoded(item); keep(item) && !yield(item, nil) {
				return
			}
		}
	}
}

// Scan yields the items of the given segment, below total, of the table or, if ix is not nil,
// of that index. They are in a stable order, and follow startAfter unless that is nil. total
// must be at least 1. The cost of a segment is proportional to its share of the table, except
// in a small table: there each segment reads all rows. An error ends the sequence:
// ErrOtherSegment if startAfter belongs to another segment.
func (rd *reader) Scan(ctx context.Context, t *tabledef.Table, ix *tabledef.Index, segment, total int, startAfter attr.Item) iter.Seq2[layout.Stored, error] {
	return func(yield func(layout.Stored, error) bool) {
		if err := rd.scanSegment(ctx, t, ix, segment, total, startAfter, yield); err != nil {
			yield(nil, err)
		}
	}
}

// scanSegment is like Scan, but returns the errors that occur before it reads items, instead
// of yielding them.
func (rd *reader) scanSegment(ctx context.Context, t *tabledef.Table, ix *tabledef.Index, at, total int, startAfter attr.Item, yield func(layout.Stored, error) bool) error {
	c, err := rd.cat.current(ctx, t)
	if err != nil {
		return err
	}
	hash, plan := []attr.KeyAttr{t.Key.Hash}, c.layout.base.PlanScan()
	rows := btclient.Read{Table: c.layout.table, Spans: plan.Spans}
	var x *indexLayout
	if ix != nil {
		if x, err = c.index(ix.Name); err != nil {
			return err
		}
		hash, plan = ix.Key.Hash, x.PlanScan()
		rows = x.read(plan.Spans, false)
	}
	parts, err := rd.segments.Of(ctx, rows, hash, total, startAfter == nil)
	switch {
	case errors.Is(err, segment.ErrContended):
		return fmt.Errorf("%w: %w", ErrContended, err)
	case err != nil && x != nil:
		return x.readError(t.Name, err)
	case err != nil:
		return err
	}
	var from []byte // row of startAfter
	if startAfter != nil {
		if from, err = c.layout.rowOf(x, startAfter); err != nil {
			return err
		}
		if !parts.HasItem(at, layout.Decoded(startAfter)) || !parts.HasRow(at, from) {
			return ErrOtherSegment
		}
	}
	plan.Spans = parts.Spans(at, plan.Spans)
	keep := func(item layout.Stored) bool { return parts.HasItem(at, item) }
	if x == nil {
		rd.scanBase(ctx, c.layout, plan, keep, from, startAfter, yield)
	} else {
		rd.indexItems(ctx, c, x, plan.Spans, false, startAfter, keep, yield)
	}
	return nil
}

// rowOf returns the row of an item, or of its entry in x if that is not nil.
func (l *tableLayout) rowOf(x *indexLayout, key attr.Item) ([]byte, error) {
	if x != nil {
		return x.row(key)
	}
	at, err := l.base.Locate(key)
	return at.Row, outsideMapping(err)
}

// scanBase yields the items of a plan that keep accepts, by row, and within a row by key.
// Unless startAfter is nil, it yields only the items after startAfter, whose row is from.
func (rd *reader) scanBase(ctx context.Context, l *tableLayout, plan lens.Plan, keep func(layout.Stored) bool, from []byte, startAfter attr.Item, yield func(layout.Stored, error) bool) {
	if from != nil {
		plan.Spans = cells.Intersect(plan.Spans, []layout.Span{{Start: from}})
	}
	hash, sort := l.key.Hash.Name, l.key.Range.Name
	r := itemReader{
		rd: rd, l: l, compare: l.compareKeys,
		conditions: func(row []byte, partition attr.Value) ([]attr.KeyRange, bool) {
			if from == nil || !bytes.Equal(row, from) {
				return nil, true
			}
			c, _ := attr.Compare(partition, startAfter[hash]) // a key attribute has one type
			if c == 0 && sort != "" {
				return []attr.KeyRange{{Hash: partition, Op: attr.RangeGreater, A: startAfter[sort]}}, true
			}
			return nil, c > 0
		},
		wants: func(row []byte, item layout.Stored) bool {
			return (from == nil || !bytes.Equal(row, from) || l.compareKeys(item, layout.Decoded(startAfter)) > 0) && keep(item)
		},
	}
	r.read(ctx, btclient.Read{Table: l.table, Spans: plan.Spans, Filter: extentsFilter(plan.Extents)}, yield)
}

// compareKeys orders items of the table by partition and sort key.
func (l *tableLayout) compareKeys(a, b layout.Stored) int {
	return cmp.Or(compareAttr(a, b, l.key.Hash.Name), compareAttr(a, b, l.key.Range.Name))
}

// comparePlaces compares two keys in the order in which Scan yields their items. If a is
// outside the layout, it comes after b. If only b is, comparePlaces returns ErrOutsideMapping.
func (rd *reader) comparePlaces(ctx context.Context, t *tabledef.Table, a, b attr.Item) (int, error) {
	c, err := rd.cat.current(ctx, t)
	if err != nil {
		return 0, err
	}
	at, err := c.layout.rowOf(nil, a)
	if errors.Is(err, ErrOutsideMapping) {
		return 1, nil
	}
	if err != nil {
		return 0, err
	}
	other, err := c.layout.rowOf(nil, b)
	return cmp.Or(bytes.Compare(at, other), c.layout.compareKeys(layout.Decoded(a), layout.Decoded(b))), err
}

// compareAttr orders items by the key attribute name. If name is "", it returns 0.
func compareAttr(a, b layout.Stored, name string) int {
	if name == "" {
		return 0
	}
	c, _ := attr.Compare(a.Get(name), b.Get(name)) // a key attribute has one type
	return c
}

// matchesKey reports whether an item satisfies a condition on the key.
func matchesKey(cond attr.KeyRange, key attr.KeySchema, item layout.Stored) bool {
	return attr.Equal(item.Get(key.Hash.Name), cond.Hash) && cond.Matches(item.Get(key.Range.Name))
}
