package settled

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

// suspect is an item that may differ.
type suspect struct {
	key     attr.Item
	id      attr.ItemID
	at      lens.Location
	entries []entry // rows of indexes that name the item, beside its expected ones
	// exported is the item of an export, which is read once. It is nil for a live source.
	exported attr.Item
	unseen   bool // it is suspected since it changed: its first look comes

	// Of the last read.
	row      layout.Row // of the target, without bookkeeping
	position []byte     // its position cell; nil without one
	changed  int64      // the time of the change in position, in microseconds; 0 without one
	item     attr.Item  // of the source
	found    []report.Failure
	stale    bool // found concerns only entries of indexes
	outcome  outcome
	first    []byte // the position before the wait
}

// sides has the calls of the settle rule. Each concerns a few suspects. Several calls of target, source and judge
// may run at once, for different suspects.
type sides interface {
	// target reads row and position of each suspect, at one moment.
	target(ctx context.Context, some []*suspect) error
	// positions reads only the positions.
	positions(ctx context.Context, some []*suspect) error
	// source reads item of each suspect consistently, and returns a time of the source that is
	// not before the answers.
	source(ctx context.Context, some []*suspect) (time.Time, error)
	// judge compares row and item, and then the entries of indexes if the two are equal. It sets
	// found and stale.
	judge(ctx context.Context, some []*suspect) error
	// await waits until all writes up to a time of the source are applied.
	await(ctx context.Context, t time.Time) error
	// equal, differs and unsettled receive the result.
	equal(*suspect)
	differs(*suspect)
	unsettled(*suspect)
}

// chunk is the maximum number of suspects that are read together, and chunksAtOnce that of concurrent groups: while the
// target answers for one, the source answers for another.
const (
	chunk        = 100
	chunksAtOnce = 4
)

// settle judges the suspects in open in at most the given number of rounds. The others remain
// unsettled.
func settle(ctx context.Context, s sides, open []*suspect, rounds int) error {
	for range rounds {
		var err error
		if open, err = round(ctx, s, open); err != nil || len(open) == 0 {
			return err
		}
	}
	for _, x := range open {
		s.unsettled(x)
	}
	return nil
}

// round reads and judges the suspects in open once. It returns those that moved while it read them.
func round(ctx context.Context, s sides, open []*suspect) (moved []*suspect, err error) {
	differing, last, err := readBoth(ctx, s, open)
	if err != nil || len(differing) == 0 {
		return nil, err
	}
	if err := s.await(ctx, last); err != nil {
		return nil, err
	}
	moved, rest, err := still(ctx, s, differing)
	if err != nil {
		return nil, err
	}
	rest = slices.DeleteFunc(rest, func(x *suspect) bool {
		if !x.stale {
			s.differs(x)
		}
		return !x.stale
	})
	again, err := entries(ctx, s, rest)
	return append(moved, again...), err
}

// readBoth reads both sides, and returns the suspects that differ, with the time of the source.
func readBoth(ctx context.Context, s sides, open []*suspect) (differing []*suspect, last time.Time, err error) {
	var mu sync.Mutex
	read := func(ctx context.Context, some []*suspect) error {
		if err := s.target(ctx, some); err != nil {
			return err
		}
		at, err := s.source(ctx, some)
		if err == nil {
			err = s.judge(ctx, some)
		}
		for _, x := range some {
			x.first, x.row, x.item = x.position, layout.Row{}, nil
		}
		mu.Lock()
		defer mu.Unlock()
		if at.After(last) {
			last = at
		}
		return err
	}
	if len(open) <= chunk {
		err = read(ctx, open)
	} else {
		group, inner := errgroup.WithContext(ctx)
		group.SetLimit(chunksAtOnce)
		for some := range slices.Chunk(open, chunk) {
			group.Go(func() error { return read(inner, some) })
		}
		err = group.Wait()
	}
	if err != nil {
		return nil, last, err
	}
	for _, x := range open {
		if len(x.found) == 0 {
			s.equal(x)
		} else {
			differing = append(differing, x)
		}
	}
	return differing, last, nil
}

// still reads the positions again and divides suspects by whether they changed.
func still(ctx context.Context, s sides, all []*suspect) (moved, rest []*suspect, err error) {
	for some := range slices.Chunk(all, chunk) {
		if err := s.positions(ctx, some); err != nil {
			return nil, nil, err
		}
		for _, x := range some {
			if bytes.Equal(x.position, x.first) {
				rest = append(rest, x)
			} else {
				moved = append(moved, x)
			}
		}
	}
	return moved, rest, nil
}

// entries judges suspects whose entries in indexes alone differ. Those of the last change are
// written by now. But a later change may have deleted entries before it writes the item: only the
// position after another wait shows that.
func entries(ctx context.Context, s sides, all []*suspect) (moved []*suspect, err error) {
	if len(all) == 0 {
		return nil, nil
	}
	firsts := map[*suspect][]byte{}
	for _, x := range all {
		firsts[x] = x.first
	}
	differing, last, err := readBoth(ctx, s, all)
	if err != nil {
		return nil, err
	}
	differing = slices.DeleteFunc(differing, func(x *suspect) bool {
		changed := !x.stale || !bytes.Equal(x.first, firsts[x])
		if changed {
			moved = append(moved, x)
		}
		return changed
	})
	if len(differing) == 0 {
		return moved, nil
	}
	// The source was read before the entries, and the changes to wait for are those before the
	// read of the entries.
	for some := range slices.Chunk(differing, chunk) {
		at, err := s.source(ctx, some)
		if err != nil {
			return nil, err
		}
		if at.After(last) {
			last = at
		}
		for _, x := range some {
			x.item = nil
		}
	}
	if err := s.await(ctx, last); err != nil {
		return nil, err
	}
	again, rest, err := still(ctx, s, differing)
	if err != nil {
		return nil, err
	}
	for _, x := range rest {
		s.differs(x)
	}
	return append(moved, again...), nil
}
