package throttle

import (
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/capacity"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
)

// Reading is a read that was admitted. What it consumes shows at its end; nil is one
// that nobody throttles.
type Reading struct {
	l     *Limiter
	table *tabledef.Table
	item  attr.Item
	taken capacity.Tally
}

// Read admits a read of a table, or of an index that is not nil, or returns an *awserr.Error.
// item has the partition key, if the read is of one partition. weight is what a unit
// counts for: 2 in a transaction.
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

// Consumed says what the read has consumed in all.
func (r *Reading) Consumed(tally capacity.Tally) {
	if r != nil {
		rest := capacity.Tally{}
		rest.Add(tally)
		rest.Sub(r.taken)
		r.l.Spend(r.table, Read, r.item, rest)
	}
}

// Writing is what becomes of an item: its argument is the item as it is.
type Writing = func(old attr.Item) (attr.Item, error)

// Write returns fn as the throughput of its table allows: an *awserr.Error otherwise. fn must
// be asked for every write; where it is asked again for the same, what it took before
// is given back. A write that fn refuses costs what it has looked at. weight is what a
// unit of the table counts for: 2 in a transaction.
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
