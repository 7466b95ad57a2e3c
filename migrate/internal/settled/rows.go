package settled

import (
	"bytes"
	"context"
	"slices"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/migrate/internal/apply"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
)

// maxCalls is the maximum number of concurrent calls.
const maxCalls = 16

// read reads the rows of suspects, and their positions; only those if whole is false.
func (v *verification) read(ctx context.Context, some []*suspect, whole bool) error {
	of := map[string][]*suspect{}
	var keys [][]byte
	for _, x := range some {
		x.set(layout.Row{Key: x.at.Row}, whole)
		key := string(x.at.Row)
		if of[key] == nil {
			keys = append(keys, x.at.Row)
		}
		of[key] = append(of[key], x)
	}
	if v.j.Mapping.SharesRows() {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(maxCalls)
		for _, key := range keys {
			for all := of[string(key)]; len(all) > 0; {
				filter, n := v.filter(all, whole)
				some := all[:n]
				group.Go(func() error { return v.readShared(ctx, some, filter, whole) })
				all = all[n:]
			}
		}
		return group.Wait()
	}
	r := btclient.Read{Table: v.j.Report.Target, Keys: keys}
	if !whole {
		r.Filter = btclient.OfFamily(lens.FamilyPosition)
	}
	for row, err := range v.b.Rows(ctx, r) {
		if err != nil {
			return err
		}
		for _, x := range of[string(row.Key)] {
			x.set(row, whole)
		}
	}
	return nil
}

// readShared reads the cells of items of one row, and their positions.
func (v *verification) readShared(ctx context.Context, some []*suspect, filter *btpb.RowFilter, whole bool) error {
	row, err := v.b.ReadRow(ctx, v.j.Report.Target, some[0].at.Row, filter)
	if err != nil {
		return err
	}
	row.Cells = slices.CompactFunc(row.Cells, samePlace) // of extents that overlap
	for _, x := range some {
		own := row
		if filter != nil && len(some) > 1 {
			own.Cells = slices.DeleteFunc(slices.Clone(row.Cells), func(c layout.Cell) bool {
				return c.Family != lens.FamilyPosition && !slices.ContainsFunc(x.at.Own, func(e lens.Extent) bool { return v.timed(e).Covers(c) })
			})
		}
		x.set(own, whole)
	}
	return nil
}

// set keeps a row, or the part that a filter passed, and the positions in it.
func (x *suspect) set(row layout.Row, whole bool) {
	x.position, x.changed = nil, 0
	var rest []layout.Cell
	for _, c := range row.Cells {
		switch {
		// A copy has no position: it changes with any item of its row.
		case c.Family == lens.FamilyPosition && (x.at.Derived || bytes.Equal(c.Qualifier, x.id[:])):
			x.position = append(append(x.position, c.Qualifier...), c.Value...)
			if s, err := apply.ParseStamp(c.Value); err == nil {
				x.changed = max(x.changed, s.Micros)
			}
		case !lens.Bookkeeping(c.Family):
			rest = append(rest, c)
		}
	}
	if whole {
		x.row = layout.Row{Key: row.Key, Cells: rest}
	}
}

// filter passes the cells that items of a shared row can have, and their positions. It is for the
// first n of the items. It is nil if it would be too large for a single one.
func (v *verification) filter(some []*suspect, whole bool) (filter *btpb.RowFilter, n int) {
	var all []*btpb.RowFilter
	size := 0
	for _, x := range some {
		var own []*btpb.RowFilter
		switch {
		case v.unplaced:
		case x.at.Derived:
			own = append(own, btclient.OfFamily(lens.FamilyPosition))
		default:
			own = append(own, btclient.OfColumn(lens.FamilyPosition, x.id[:]))
		}
		size += 2*len(x.id) + 32
		for _, e := range x.at.Own {
			if !whole {
				break
			}
			f, n := table.OfExtent(v.timed(e))
			own = append(own, f)
			size += n
		}
		if size > table.MaxFilterBytes {
			break
		}
		all, n = append(all, own...), n+1
	}
	if n == 0 {
		return nil, 1
	}
	return btclient.AnyOf(all...), n
}

// timed returns an extent without its times if all versions of a column decide which ones garbage
// collection removes.
func (v *verification) timed(e lens.Extent) lens.Extent {
	if v.c.retention.Of(e.Family).Versions != 0 {
		e.MinTime, e.MaxTime = 0, 0
	}
	return e
}

// entryRows reads rows of indexes, without bookkeeping.
func (v *verification) entryRows(ctx context.Context, entries []entry) (map[string]layout.Row, error) {
	rows := map[string]layout.Row{}
	slices.SortFunc(entries, entry.compare)
	entries = slices.CompactFunc(entries, func(a, b entry) bool { return a.compare(b) == 0 })
	for len(entries) > 0 {
		x, n := entries[0].index, 0
		r := btclient.Read{Table: x.TargetTable()}
		for n < len(entries) && entries[n].index == x {
			r.Keys = append(r.Keys, entries[n].row)
			n++
		}
		entries = entries[n:]
		for row, err := range v.b.Rows(ctx, r) {
			if status.Code(err) == codes.NotFound {
				break // without the table, all entries are missing
			}
			if err != nil {
				return nil, err
			}
			row.Cells = slices.DeleteFunc(row.Cells, func(c layout.Cell) bool { return lens.Bookkeeping(c.Family) })
			rows[x.Name()+"\x00"+string(row.Key)] = row
		}
	}
	return rows, nil
}
