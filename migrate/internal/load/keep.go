package load

import (
	"context"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
)

// keeper excludes from a load the items that a DynamoDB endpoint has written, which have the
// endpoint's state in their rows. A nil keeper excludes nothing.
type keeper struct {
	j      *table.Job
	b      *table.Bigtable
	queued []queuedItem // since the last cut
}

type queuedItem struct {
	n   int64
	row []byte
	id  attr.ItemID
}

// add records a queued item.
func (k *keeper) add(p table.Placed) {
	if k != nil && !p.Base.Derived {
		k.queued = append(k.queued, queuedItem{p.N, p.Base.Row, k.j.Mapping.Key().ID(p.Entry.Item)})
	}
}

// cut removes the entries of excluded items from w, and clears k.queued.
func (k *keeper) cut(ctx context.Context, w *writer) error {
	if k == nil || len(k.queued) == 0 {
		return nil
	}
	type state struct {
		row string
		id  attr.ItemID
	}
	written := map[state]bool{}
	for some := range slices.Chunk(k.queued, k.j.Options.Pace.Chunk(len(k.queued))) {
		if err := k.j.Options.Pace.Wait(ctx, len(some)); err != nil {
			return err
		}
		r := btclient.Read{Table: k.j.Report.Target, Filter: btclient.Chain(btclient.OfFamily(lens.FamilyState), btclient.KeysOnly())}
		for _, item := range some {
			r.Keys = append(r.Keys, item.row)
		}
		for row, err := range k.b.Rows(ctx, r) {
			if status.Code(err) == codes.NotFound {
				break // the endpoint keeps no state in the table
			}
			if err != nil {
				return err
			}
			for _, c := range row.Cells {
				if len(c.Qualifier) == 1+len(attr.ItemID{}) {
					written[state{string(row.Key), attr.ItemID(c.Qualifier[1:])}] = true
				}
			}
		}
	}
	var kept []int64
	for _, item := range k.queued {
		if written[state{string(item.row), item.id}] {
			kept = append(kept, item.n)
		}
	}
	k.queued = k.queued[:0]
	if len(kept) == 0 {
		return nil
	}
	k.j.Report.ItemsKept += int64(len(kept))
	for i := range w.tables {
		t := &w.tables[i]
		t.Entries = slices.DeleteFunc(t.Entries, func(e writeEntry) bool {
			_, found := slices.BinarySearch(kept, e.n)
			return found
		})
	}
	return nil
}
