package table

import (
	"context"
	"errors"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// Placed is an item with its layout.
type Placed struct {
	N     int64 // number of the item in the table, from 0
	Entry source.Entry
	Base  lens.Placed
	Index []lens.Placed // one per index of the job; Row is nil if the index has no entry for the item
	// Views has the entry of the item in each view of the mapping; Row is nil without one.
	Views []lens.Placed
	// Back is the item as the mapping returns it: the losses that the mapping accepts are
	// applied.
	Back   attr.Item
	losses []layout.Loss
}

// Each calls yield with the layout of every item that can be loaded, in the order of the
// source.
func (j *Job) Each(ctx context.Context, phase string, yield func(p Placed) error) error {
	return j.EachWanted(ctx, phase, nil, yield)
}

// EachWanted is like Each, but visits only the items whose numbers wanted accepts. If
// wanted is nil, it visits all items.
func (j *Job) EachWanted(ctx context.Context, phase string, wanted func(n int64) bool, yield func(p Placed) error) error {
	total := j.Source.Total
	if items := j.Report.Items; items > 0 {
		total = func(int64) int64 { return items }
	}
	done := j.Timed(phase)
	// The items to exclude, by number: earlier ones that this pass has not reached, and those
	// that it has excluded or refused. Elements are only removed at the front and added at
	// the end.
	refused, left := j.Refused, []int64(nil)
	n := int64(-1)
	j.left = 0
	views := j.Mapping.Views()
	p := Placed{N: -1, Index: make([]lens.Placed, len(j.Indexes)), Views: make([]lens.Placed, len(views))}
	var failed error
	j.Source.All(func(e source.Entry, err error) bool {
		n++
		if len(refused) > 0 && refused[0] == n {
			refused, left = refused[1:], append(left, n)
			return true
		}
		if err == nil {
			err = ctx.Err()
		}
		if err == nil && wanted != nil && !wanted(n) {
			return true
		}
		if err == nil {
			err = j.place(e, views, &p)
		}
		if err == nil && j.leavesOut(p) {
			j.left++
			return true
		}
		if err == nil {
			p.N = n
			err = yield(p)
		}
		item, refused := errors.AsType[*itemRefused](err)
		if err != nil && !refused && p.N != n {
			item, refused = &itemRefused{err: err}, true
		}
		if refused {
			if err = j.refuse(e, item); err == nil {
				left = append(left, n)
			}
		}
		if failed = err; err != nil {
			return false
		}
		if n%256 == 255 {
			j.Options.Progress(source.Progress{Table: j.Source.Name, Phase: phase, Items: n + 1, Total: total(n + 1)})
		}
		return true
	})
	j.Refused = append(left, refused...)
	if failed != nil {
		return failed
	}
	n++
	j.Options.Progress(source.Progress{Table: j.Source.Name, Phase: phase, Items: n, Total: n})
	done(n)
	return nil
}

// itemRefused is the error for the current item of a pass.
type itemRefused struct {
	err   error
	at    report.Failure // its place and values, if it can be a failure
	other string         // key of the item that it collides with, or ""
}

func (e *itemRefused) Error() string { return e.err.Error() }

// place lays out one item.
func (j *Job) place(e source.Entry, views []*layout.View, p *Placed) (err error) {
	p.N = -1
	if p.Base, err = j.Mapping.Place(e.Item, j.Micros); err != nil {
		return RowLayout{J: j}.refuses(e, err, "the mapping cannot hold the item")
	}
	if err := e.CheckSize(j.Mapping.Key()); err != nil {
		return &itemRefused{err: err, at: RowLayout{J: j}.unplaced(e, err)}
	}
	p.Back, p.losses = j.Mapping.Returned(e.Item, p.Base)
	for i, x := range j.Indexes {
		// Losses of the table apply to its indexes too: the DynamoDB endpoint computes their
		// rows from the table.
		entry, ok, err := x.Place(p.Back, j.Micros)
		if err != nil {
			return RowLayout{J: j, Index: x}.refuses(e, err, "index %s of the mapping cannot hold the item", x.Name())
		}
		if !ok {
			entry = lens.Placed{}
		}
		p.Index[i] = entry
	}
	for i, v := range views {
		if p.Views[i], err = placeEntry(v, p.Back); err != nil {
			return RowLayout{J: j, View: v}.refuses(e, err, "index %s of the mapping cannot hold the item", v.Name())
		}
	}
	p.Entry = e
	return nil
}

// refuses returns the error for item e, which has no place in the table of l because of err.
// format and args are the error's text.
func (l RowLayout) refuses(e source.Entry, err error, format string, args ...any) *itemRefused {
	return &itemRefused{err: source.Refused(e.Position, err, format, args...), at: l.unplaced(e, err)}
}

// refuse records a refused item as a dead letter or as a failure, if these are enabled.
// Otherwise it returns the item's error.
func (j *Job) refuse(e source.Entry, item *itemRefused) error {
	switch {
	case j.Letters != nil && source.OfItem(item.err):
		return j.Letters.Add(j, e, item.err)
	case j.failures != nil && ItemKind(item.err) != "":
		failItem(j, e, item.err, item.at, item.other)
		return nil
	}
	return item.err
}
