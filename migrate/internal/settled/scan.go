package settled

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/extsort"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	compared "github.com/tabletop-emu/tabletop/migrate/internal/compare"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// seen is a key of one side: of the source without its text.
type seen struct {
	id  attr.ItemID
	key []byte // JSON
}

// maxSeenBytes bounds the memory for keys.
const maxSeenBytes = 32 << 20

// newKeys returns a sorter of keys.
func newKeys(dir string) *extsort.Sorter[seen] {
	return &extsort.Sorter[seen]{
		What: "the keys of a large table", Dir: dir, Most: maxSeenBytes,
		Size: func(s seen) int { return len(s.key) + 64 },
		Compare: func(a, b seen) int {
			return slices.Compare(a.id[:], b.id[:])
		},
		Append: func(dst []byte, s seen) []byte {
			dst = binary.AppendUvarint(append(dst, s.id[:]...), uint64(len(s.key)))
			return append(dst, s.key...)
		},
		Read: func(in *bufio.Reader) (s seen, err error) {
			if _, err := io.ReadFull(in, s.id[:]); err != nil {
				return s, err
			}
			n, err := binary.ReadUvarint(in)
			if err == nil && n > 0 {
				s.key = make([]byte, n)
				_, err = io.ReadFull(in, s.key)
			}
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return s, err
		},
	}
}

// groups calls yield with the keys of each id.
func groups(keys *extsort.Sorter[seen], yield func([]seen) error) error {
	next, err := keys.Sorted()
	if err != nil {
		return err
	}
	var same []seen
	for {
		s, err := next()
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(same) > 0 && (err != nil || same[0].id != s.id) {
			if err := yield(same); err != nil {
				return err
			}
			same = same[:0]
		}
		if err != nil {
			return nil //nolint:nilerr // the end
		}
		same = append(same, s)
	}
}

// wants reports whether a key belongs to the sample, or to the buckets to compare.
func (v *verification) wants(id attr.ItemID) bool {
	if v.buckets != nil {
		return v.buckets[bucketOf(id)]
	}
	return !v.sampled() || float64(binary.BigEndian.Uint64(id[:])) < v.o.Sample*math.MaxUint64
}

// all compares all items of both sides.
func (v *verification) all(ctx context.Context) error {
	keys := newKeys(v.o.Table.TempDir)
	defer keys.Close()
	group, inner := errgroup.WithContext(ctx)
	for i := range v.o.Segments {
		group.Go(func() error { return v.segment(inner, i, v.o.Segments, keys) })
	}
	err := group.Wait()
	if err == nil { // the suspects wait for the follower meanwhile
		group, inner := errgroup.WithContext(ctx)
		group.Go(func() error { return v.settleRest(inner) })
		group.Go(func() error {
			return v.targetRows(inner, func(id attr.ItemID, item attr.Item) error {
				return keys.Add(seen{id, attr.AppendItemJSON(nil, v.o.Mapping.Key().KeyOf(item))})
			})
		})
		err = group.Wait()
	}
	if err == nil {
		v.reportFaults()
		err = groups(keys, func(same []seen) error {
			i := slices.IndexFunc(same, func(s seen) bool { return s.key != nil })
			if i < 0 || slices.ContainsFunc(same, func(s seen) bool { return s.key == nil }) {
				return nil
			}
			return v.suspectKey(ctx, same[i].key, false)
		})
	}
	for _, x := range v.j.Indexes {
		if err == nil && v.buckets == nil { // else the parts did
			err = v.indexRows(ctx, x)
		}
	}
	if err == nil {
		err = v.settleRest(ctx)
	}
	return err
}

// suspectKey adds the suspect of a key in JSON; unseen if no scan compared it.
func (v *verification) suspectKey(ctx context.Context, key []byte, unseen bool) error {
	item, err := attr.UnmarshalItem(key)
	if err != nil {
		return fmt.Errorf("the key %.200s: %w", key, err)
	}
	x, err := v.newSuspect(item)
	if err == nil {
		x.unseen = unseen
		return v.suspect(ctx, x)
	}
	// No rule takes an item of this key, so the target has none.
	switch now, _, failed := v.o.Source.Get(ctx, item); {
	case failed != nil:
		return failed
	case now[0] == nil:
		v.live.Compared++
	default:
		v.refuse(item, err)
	}
	return nil
}

// changed compares the items whose keys are in the generations from one to another.
func (v *verification) changed(ctx context.Context, from, to uint64) error {
	keys := newKeys(v.o.Table.TempDir)
	defer keys.Close()
	for d, err := range v.store.DirtyIn(ctx, from, to) {
		if err != nil {
			return err
		}
		key, err := attr.UnmarshalItem([]byte(d.Key))
		if err != nil {
			return fmt.Errorf("reading the stored key of a changed item: %w", err)
		}
		if err := keys.Add(seen{v.o.Mapping.Key().ID(key), []byte(d.Key)}); err != nil {
			return err
		}
	}
	err := groups(keys, func(same []seen) error {
		return v.suspectKey(ctx, same[0].key, true)
	})
	if err != nil {
		return err
	}
	return v.settleRest(ctx)
}

// segment compares the items of segment i of the source, and adds their ids to keys.
func (v *verification) segment(ctx context.Context, i, segments int, keys *extsort.Sorter[seen]) error {
	return v.pages(ctx, i, segments, func(some []*suspect) error {
		for _, x := range some {
			if err := keys.Add(seen{id: x.id}); err != nil {
				return err
			}
		}
		return nil
	}, func(some []*suspect) error {
		for batch := range slices.Chunk(some, chunk) {
			if err := v.first(ctx, batch); err != nil {
				return err
			}
		}
		return nil
	})
}

// pages reads the items of a segment of the source. It calls note for one page at a time, and then
// handle, which may run at the same time as others.
func (v *verification) pages(ctx context.Context, i, segments int, note, handle func([]*suspect) error) error {
	for page, err := range v.o.Source.Scan(ctx, i, segments, v.o.Consistent) {
		if err != nil {
			return err
		}
		var some []*suspect
		for _, item := range page.Items {
			x, err := v.newSuspect(item)
			if err != nil { // no rule takes it
				if v.buckets == nil { // else a part reported it
					v.refuse(item, err)
				}
				continue
			}
			if x.item = item; v.wants(x.id) {
				some = append(some, x)
			}
		}
		if err := v.seen(page.At.UnixMicro(), some, note); err != nil {
			return err
		}
		if err := handle(some); err != nil {
			return err
		}
	}
	return nil
}

// refuse reports an item that the mapping cannot lay out.
func (v *verification) refuse(item attr.Item, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.live.Compared++
	v.o.Report.Fail(report.Failure{Kind: report.Unmatched, Table: v.j.Report.Target, ItemKey: v.j.KeyJSON(item), Detail: phrase.Clip(err.Error())})
}

// seen counts items of the source, notes the time of the answer that has them, and calls note.
func (v *verification) seen(micros int64, some []*suspect, note func([]*suspect) error) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if micros > v.last.UnixMicro() {
		v.last = timeOf(micros)
	}
	v.j.Report.Items += int64(len(some))
	v.o.Table.Progress(source.Progress{Table: v.j.Report.Name, Phase: "comparing", Items: v.j.Report.Items, Total: -1})
	return note(some)
}

// first compares items once, and leaves those that differ to the settle rule.
func (v *verification) first(ctx context.Context, batch []*suspect) error {
	if err := v.o.Table.Pace.Wait(ctx, len(batch)); err != nil {
		return err
	}
	if err := v.target(ctx, batch); err != nil {
		return err
	}
	out, err := v.compare(ctx, batch)
	if err != nil {
		return err
	}
	var differ []*suspect
	v.mu.Lock()
	for _, x := range batch {
		if o := out[x]; len(o.failures) == 0 {
			v.count(o)
		} else {
			if differ = append(differ, x); v.asOf != nil {
				x.exported = x.item
			}
		}
		x.row, x.item = layout.Row{}, nil
	}
	v.mu.Unlock()
	return v.suspect(ctx, differ...)
}

// rowFault is a difference between a row of the target and its own items.
type rowFault struct {
	report.Failure
	items      []attr.ItemID
	unreadable bool
}

// fault keeps a fault until the suspects are judged: a difference of an item includes those of its
// cells.
func (v *verification) fault(f rowFault) {
	if v.faults = append(v.faults, f); len(v.faults) >= maxOpen {
		v.reportFaults()
	}
}

// reportFaults reports the faults of rows whose items do not differ.
func (v *verification) reportFaults() {
	v.mu.Lock() // waits until the suspects are judged
	defer v.mu.Unlock()
	for _, f := range v.faults {
		known := f.unreadable && v.broken[f.RowHex] || len(f.items) > 0 && !slices.ContainsFunc(f.items, func(id attr.ItemID) bool { return !v.reported[id] })
		if !known {
			v.o.Report.Fail(f.Failure)
		}
	}
	v.faults = nil
}

// targetRows reads the table of the items, or spans of it: it passes on the items, and compares the
// cells of each row with those of its own items. The follower writes a row in one step, so a row that
// contradicts itself needs no second look.
func (v *verification) targetRows(ctx context.Context, add func(attr.ItemID, attr.Item) error, spans ...layout.Span) error {
	m, l := v.o.Mapping, table.RowLayout{J: v.j}
	done := int64(0)
	for g, err := range compared.Groups(ctx, v.b, v.j.Report.Target, v.o.Table, compared.ByItem(m), table.Retention{}, spans...) {
		if err != nil {
			return err
		}
		if !g.GoesOn {
			v.j.Report.Rows++
			if done++; done%chunk == 0 {
				if err := v.o.Table.Pace.Wait(ctx, chunk); err != nil {
					return err
				}
			}
		}
		v.j.Report.Cells += int64(len(g.Cells))
		items, err := m.Items(g.Row)
		if err != nil {
			if v.buckets == nil {
				f := report.InRow(v.j.Report.Target, g.Key)
				f.Kind, f.Detail = report.RowUnreadable, phrase.Clip(err.Error())
				v.fault(rowFault{Failure: f, unreadable: true})
			}
			continue
		}
		var wanted []attr.ItemID
		for _, item := range items {
			id := m.Key().ID(item)
			if !v.wants(id) {
				continue
			}
			wanted = append(wanted, id)
			if err := add(id, item); err != nil {
				return err
			}
		}
		switch {
		case v.buckets != nil: // a part compared the cells
		case len(items) == 0 && !g.GoesOn && !v.sampled():
			f := report.InRow(v.j.Report.Target, g.Key)
			f.Kind, f.Got = report.ExtraRow, phrase.Counted(int64(len(g.Cells)), "cell")
			v.fault(rowFault{Failure: l.Owned(f, table.Owner{})})
		case len(wanted) > 0 || len(items) == 0 && !v.sampled():
			v.c.group(g.Row, items, func(f report.Failure) { v.fault(rowFault{Failure: f, items: wanted}) })
		}
	}
	return nil
}
