package throttle

import (
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/capacity"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
)

// Reading is an admitted read, whose consumption is known only at its end. A nil Reading
// is not throttled.
type Reading struct {
	l     *Limiter
	table *tabledef.Table
	item  attr.Item
	taken capacity.Tally
}

// Read admits a read of a table, or of its index ix if that is not nil, or returns an
// *awserr.Error. item holds the partition key if the read is of a single partition.
// weight is the cost of a unit, which is 2 in a transaction.
func (l *Limiter) Read(t *tabledef.Table, ix *tabledef.Index, item attr.Item, consistent bool, weight float64) (*Reading, error) {
	if l == nil {
		return nil, nil
	}
	r := &Reading{l: l, table: t, item: item}
	if least := weight * capacity.ReadUnits(0, consistent); ix != nil {
		r.taken.AddIndex(ix.Name, least)
	} else {
		r.taken.Table = least
	}
	if err := l.Take(t, Read, item, r.taken); err != nil {
		return nil, err
	}
	return r, nil
}

// Consumed sets the total number of units that the read consumed.
func (r *Reading) Consumed(tally capacity.Tally) {
	if r != nil {
		rest := capacity.Tally{}
		rest.Add(tally)
		rest.Sub(r.taken)
		r.l.Spend(r.table, Read, r.item, rest)
	}
}

// Writing returns the new state of an item, given the current one.
type Writing = func(old attr.Item) (attr.Item, error)

// Write wraps fn with throttling: the returned function fails with an *awserr.Error if
// throughput is exceeded. Call Write for every write. If the returned function is called
// again for the same write, it first returns the units that it took earlier. A write that
// fn rejects costs as much as the read. weight is the cost of a unit of the table, which
// is 2 in a transaction.
func (l *Limiter) Write(t *tabledef.Table, weight float64, key attr.Item, fn Writing) Writing {
	if l == nil {
		return fn
	}
	var taken capacity.Tally
	item := key
	return func(old attr.Item) (attr.Item, error) {
		back := capacity.Tally{}
		back.Sub(taken)
		l.Spend(t, Write, item, back)
		taken, item = capacity.Tally{}, key
		updated, refused := fn(old)
		tally := capacity.Tally{Table: capacity.WriteUnits(old, nil)}
		if refused == nil {
			tally = capacity.WriteTally(t, old, updated)
			if item = updated; updated == nil && old != nil {
				item = old
			}
		}
		tally.Table *= weight
		if item == nil {
			item = key
		}
		if err := l.Take(t, Write, item, tally); err != nil {
			return nil, err
		}
		taken = tally
		return updated, refused
	}
}
