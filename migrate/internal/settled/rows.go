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
)

// maxCalls is the number of calls at once.
const maxCalls = 16

// read reads the rows of suspects, and their positions; only those if whole is false.
func (v *verification) read(ctx context.Context, some []*suspect, whole bool) error {
	positions := func(cells []layout.Cell) (stamps, rest []layout.Cell) {
		for _, c := range cells {
			switch {
			case c.Family == lens.FamilyPosition:
				stamps = append(stamps, c)
			case !lens.Bookkeeping(c.Family):
				rest = append(rest, c)
			}
		}
		return stamps, rest
	}
	set := func(x *suspect, row layout.Row) {
		stamps, rest := positions(row.Cells)
		x.position = nil
		for _, c := range stamps {
			// A copy has no position: it changes with any item of its row.
			if x.at.Derived || bytes.Equal(c.Qualifier, x.id[:]) {
				x.position = append(append(x.position, c.Qualifier...), c.Value...)
			}
		}
		if whole {
			x.row = layout.Row{Key: x.at.Row, Cells: rest}
		}
	}
	if v.j.Mapping.SharesRows() {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(maxCalls)
		for _, x := range some {
			group.Go(func() error {
				row, err := v.b.ReadRow(ctx, v.j.Report.Target, x.at.Row, v.filter(x, whole))
				if err == nil {
					row.Cells = slices.CompactFunc(row.Cells, samePlace) // of extents that overlap
					set(x, row)
				}
				return err
			})
		}
		return group.Wait()
	}
	r := btclient.Read{Table: v.j.Report.Target}
	if !whole {
		r.Filter = btclient.OfFamily(lens.FamilyPosition)
	}
	of := map[string][]*suspect{}
	for _, x := range some {
		set(x, layout.Row{})
		key := string(x.at.Row)
		if of[key] == nil {
			r.Keys = append(r.Keys, x.at.Row)
		}
		of[key] = append(of[key], x)
	}
	for row, err := range v.b.Rows(ctx, r) {
		if err != nil {
			return err
		}
		for _, x := range of[string(row.Key)] {
			set(x, row)
		}
	}
	return nil
}

// maxFilterBytes limits the filter of a read. Bigtable's limit is 20 KB.
const maxFilterBytes = 16 << 10

// filter passes the cells that an item of a shared row can have, and its position.
func (v *verification) filter(x *suspect, whole bool) *btpb.RowFilter {
	position := btclient.OfColumn(lens.FamilyPosition, x.id[:])
	if x.at.Derived {
		position = btclient.OfFamily(lens.FamilyPosition)
	}
	if !whole {
		return position
	}
	all, size := []*btpb.RowFilter{position}, 0
	for _, e := range x.at.Own {
		f := btclient.OfColumnPrefix(e.Family, e.Qualifier)
		if !e.Prefix {
			f = btclient.OfColumn(e.Family, e.Qualifier)
		}
		// Which versions garbage collection removes follows from all of them.
		if (e.MinTime != 0 || e.MaxTime != 0) && v.c.retention.Of(e.Family).Versions == 0 {
			f = btclient.Chain(f, btclient.OfTime(e.MinTime, e.MaxTime))
		}
		all = append(all, f)
		size += 2*len(e.Qualifier) + len(e.Family) + 32
	}
	if size > maxFilterBytes {
		return nil
	}
	return btclient.AnyOf(all...)
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
