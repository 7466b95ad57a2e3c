package apply

import (
	"bytes"
	"context"
	"maps"
	"runtime"
	"slices"
	"sync"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// maxMutations bounds the mutations of a request, well below Bigtable's limit (100,000 per
// entry and per request).
const maxMutations = 20_000

// maxRequestBytes bounds the size of a request.
const maxRequestBytes = 4 << 20

// maxCalls is the maximum number of concurrent requests, each of which waits for the network.
const maxCalls = 64

// send writes a plan. It returns the items whose rows another process changed after they were read.
func (w *Writer) send(ctx context.Context, p *plan, stats *Stats) (again []*changed, err error) {
	if w.Guarded && len(p.items) > 0 && p.items[0].positioned() {
		return w.sendGuarded(ctx, p, stats)
	}
	return nil, w.sendOrdered(ctx, p, stats)
}

// sendOrdered writes many rows in each request.
func (w *Writer) sendOrdered(ctx context.Context, p *plan, stats *Stats) error {
	refused := map[*changed]error{}
	entries := func(tables map[string][]write, of func(*changed) bool) error {
		for _, table := range slices.Sorted(maps.Keys(tables)) {
			some := slices.DeleteFunc(slices.Clone(tables[table]), func(x write) bool { return refused[x.items[0]] != nil || !of(x.items[0]) })
			if err := w.mutate(ctx, table, some, refused, stats); err != nil {
				return err
			}
		}
		return nil
	}
	late := func(item *changed) bool { return item.positioned() && item.Complete } // former entries can wait
	if err := entries(p.removals, func(item *changed) bool { return !late(item) }); err != nil {
		return err
	}
	base := slices.DeleteFunc(slices.Clone(p.base), func(x write) bool { return refused[x.items[0]] != nil })
	if err := w.mutate(ctx, w.target(), base, refused, stats); err != nil {
		return err
	}
	if err := entries(p.removals, late); err != nil {
		return err
	}
	if err := entries(p.puts, func(*changed) bool { return true }); err != nil {
		return err
	}
	for _, item := range p.items {
		if err := refused[item]; err != nil {
			stats.Refused++
			if err := w.Refuse(item.Change, err); err != nil {
				return err
			}
			continue
		}
		stats.count(false) // an ordered writer does not look at positions
	}
	for _, x := range p.base {
		if x.read {
			stats.Read++
		} else if x.items[0].positioned() {
			stats.Exact++
		}
	}
	return nil
}

// count counts a change that was made, or that was there already.
func (s *Stats) count(already bool) {
	if already {
		s.Already++
	} else {
		s.Applied++
	}
}

// mutate sends writes of one table. It adds the changes that Bigtable refuses permanently to
// refused, if they have positions; any other refusal is an error.
func (w *Writer) mutate(ctx context.Context, table string, writes []write, refused map[*changed]error, stats *Stats) error {
	for len(writes) > 0 {
		n, mutations, size := 0, 0, 0
		var rows []*btpb.MutateRowsRequest_Entry
		most := w.Pace.Chunk(len(writes))
		for n < len(writes) && n < most && (n == 0 || mutations+len(writes[n].muts) <= maxMutations && size < maxRequestBytes) {
			rows = append(rows, &btpb.MutateRowsRequest_Entry{RowKey: writes[n].row, Mutations: writes[n].muts})
			mutations += len(writes[n].muts)
			size += writes[n].items[0].Size()
			n++
		}
		if err := w.Pace.Wait(ctx, n); err != nil {
			return err
		}
		bad, err := w.B.MutateRows(ctx, table, rows)
		if err != nil {
			return err
		}
		for _, r := range bad {
			of := writes[r.Entry]
			if !of.items[0].positioned() {
				return source.Damaged(source.WriteRefused, source.Position{}, r.Err, "Bigtable refuses to delete cells of row %q of table %s; earlier deletions are done", of.row, table)
			}
			if !permanent(r.Err) {
				return w.refusal(table, of.row, r.Err)
			}
			refused[of.items[0]] = w.refusal(table, of.row, r.Err)
		}
		for _, x := range writes[:n] {
			stats.CellsDeleted += x.deleted
			stats.CellsWritten += x.written
		}
		writes = writes[n:]
	}
	return nil
}

// refusal returns the error for a row that Bigtable refuses.
func (w *Writer) refusal(table string, row []byte, err error) error {
	return source.Damaged(source.WriteRefused, source.Position{}, err, "Bigtable refuses row %q of table %s", row, table)
}

// permanent reports whether Bigtable refuses a row for what it would contain, so that a repeated
// request fails as well.
func permanent(err error) bool {
	switch status.Code(err) { //nolint:exhaustive // others are errors of the environment
	case codes.InvalidArgument, codes.OutOfRange:
		return true
	}
	return false
}

// sendGuarded tests and writes each row in one request. Different rows are written in parallel.
func (w *Writer) sendGuarded(ctx context.Context, p *plan, stats *Stats) (again []*changed, err error) {
	type steps struct {
		base           *write
		removals, puts []tableWrite
	}
	of := make(map[*changed]*steps, len(p.items))
	for _, item := range p.items {
		of[item] = &steps{}
	}
	for i := range p.base {
		of[p.base[i].items[0]].base = &p.base[i]
	}
	for table, writes := range p.removals {
		for _, x := range writes {
			of[x.items[0]].removals = append(of[x.items[0]].removals, tableWrite{table, x})
		}
	}
	for table, writes := range p.puts {
		for _, x := range writes {
			of[x.items[0]].puts = append(of[x.items[0]].puts, tableWrite{table, x})
		}
	}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	next := make(chan *changed)
	add := func() { // a worker keeps its stack from one change to the next
		group.Go(func() error {
			for item := range next {
				s, done := of[item], Stats{}
				raced, err := w.one(ctx, item, s.base, s.removals, s.puts, &done)
				mu.Lock()
				if permanent(err) {
					done.Refused++
					err = w.Refuse(item.Change, w.refusal(w.target(), item.now.Row, err))
				}
				if raced {
					done.Raced++
					again = append(again, item)
				}
				stats.add(done)
				mu.Unlock()
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	fed := w.feed(ctx, p.items, next, add)
	if err = group.Wait(); err == nil {
		err = fed
	}
	return again, err
}

// feed sends items at the pace of the writer. It adds a worker if all others wait for the target, so that a near
// target needs few stacks.
func (w *Writer) feed(ctx context.Context, items []*changed, next chan<- *changed, add func()) error {
	defer close(next)
	offer := func(item *changed) bool {
		select {
		case next <- item:
			return true
		default:
			return false
		}
	}
	workers := 0
	for _, item := range items {
		if err := w.Pace.Wait(ctx, 1); err != nil {
			return err
		}
		if offer(item) {
			continue
		}
		if runtime.Gosched(); offer(item) {
			continue
		}
		if workers < maxCalls {
			workers++
			add()
		}
		select {
		case next <- item:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// tableWrite is a write of a table.
type tableWrite struct {
	table string
	write
}

// one makes one change. It reports whether the row changed after it was read; then only obsolete
// entries may be deleted.
func (w *Writer) one(ctx context.Context, item *changed, base *write, removals, puts []tableWrite, stats *Stats) (raced bool, err error) {
	entries := func(writes []tableWrite) error {
		for _, x := range writes {
			if _, err := w.guarded(ctx, x.table, x.write, item.Position, stats); err != nil {
				return err
			}
		}
		return nil
	}
	if !item.Complete {
		if err := entries(removals); err != nil {
			return false, err
		}
	}
	already := item.newer || item.stands
	if base != nil && !already {
		if already, raced, err = w.base(ctx, item, base, stats); raced || err != nil {
			return raced, err
		}
	}
	if item.Complete {
		if err := entries(removals); err != nil {
			return false, err
		}
	}
	if !item.newer {
		if err := entries(puts); err != nil {
			return false, err
		}
	}
	stats.count(already)
	return false, nil
}

// base writes the row of an item, unless the stored position is at least that of the change:
// already is then true. raced means that the row has changed since it was read.
func (w *Writer) base(ctx context.Context, item *changed, base *write, stats *Stats) (already, raced bool, err error) {
	if base.read {
		stats.Read++
		guard := btclient.Guard{Family: lens.FamilyPosition, Qualifier: base.qualifier, Was: base.seen}
		done, err := w.B.ChangeGuarded(ctx, w.target(), base.row, guard, item.stamp(item.Now == nil).value(), base.muts)
		if done {
			stats.CellsDeleted += base.deleted
			stats.CellsWritten += base.written
		}
		return false, !done && err == nil, err
	}
	stats.Exact++
	done, err := w.guarded(ctx, w.target(), *base, item.Position, stats)
	if done || err != nil {
		return false, false, err
	}
	// The item is written, or a later change of it: only a later one makes the new entries obsolete.
	row, err := w.B.ReadRow(ctx, w.target(), base.row, btclient.Chain(btclient.OfColumn(lens.FamilyPosition, base.qualifier), btclient.Newest(1)))
	if err == nil {
		item.newer = bytes.Compare(stampIn(row, base.qualifier), append(item.Position.prefix(), 0xff)) > 0
	}
	return true, false, err
}

// guarded writes a row unless its position is at p or later. It reports whether it did.
func (w *Writer) guarded(ctx context.Context, table string, x write, p Position, stats *Stats) (done bool, err error) {
	matched, err := w.B.CheckAndMutate(ctx, table, x.row, reached(x.qualifier, p), nil, x.muts)
	if err != nil || matched {
		return false, err
	}
	stats.CellsDeleted += x.deleted
	stats.CellsWritten += x.written
	return true, nil
}
