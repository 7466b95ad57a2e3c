package throttle

import (
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/capacity"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
)

// Reading is an admitted read, whose consumption is known at its end. A nil Reading is not
// throttled.
type Reading struct {
	l     *Limiter
	table *tabledef.Table
	item  attr.Item
	taken capacity.Tally
}

// Read admits a read of a table, or of its index ix if that is not nil, or returns an
// *awserr.Error. item has the partition key if the read is of one partition. weight is the
// cost of a unit: 2 in a transaction.
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

// Consumed sets the total consumption of the read.
func (r *Reading) Consumed(tally capacity.Tally) {
	if r != nil {
		rest := capacity.Tally{}
		rest.Add(tally)
		rest.Sub(r.taken)
		r.l.Spend(r.table, Read, r.item, rest)
	}
}

// Writing returns the new state of an item from the current one.
type Writing = func(old attr.Item) (attr.Item, error)

// Write returns fn with throttling: the result fails with an *awserr.Error without
// throughput. Call it for every write; a repeated call for the same write first returns its
// earlier consumption. A write that fn refuses costs the read. weight is the cost of a unit
// of the table: 2 in a transaction.
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
