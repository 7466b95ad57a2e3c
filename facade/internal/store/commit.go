package store

import (
	"context"
	"fmt"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/changelog"
	"github.com/tabletop-emu/tabletop/facade/internal/store/marks"
)

// itemChange is a change of one item that is ready to commit.
type itemChange struct {
	st      itemState        // as it was read
	updated attr.Item        // nil: the item is deleted
	expired bool             // the reaper deletes it
	order   int64            // of this change
	state   []byte           // value of the new state cell
	muts    []*btpb.Mutation // commitChange adds the record cell and the outbox cell
	records bool             // the change goes into the table's log
	index   indexChange      // pending after the commit
	outbox  bool             // an outbox cell records the pending index work
}

// needsMark reports whether the row needs a mark, because work remains after the commit.
func (c *itemChange) needsMark() bool { return c.records || !c.index.empty() }

// commitChange commits a change by calling commit, which applies c.muts if the item is
// unchanged since it was read, and reports whether it did. A process that starts after a
// crash at any step can find the remaining work:
//
//  1. mark the row
//  2. take a place in the log
//  3. commit, with the record cell and the outbox cell
//  4. apply the change to the indexes, or postpone that until their lag has passed
//  5. end the use of the mark
//
// commitChange ends the use of mark; if mark is nil, it marks the row if necessary. It adds
// the record of the change to changed; the caller appends the record to the log. done is
// false if commit reports false. If done is true, an error is errIndexesBehind.
func (ob *outbox) commitChange(
	ctx context.Context, c *itemChange, mark *marks.Mark, changed *[]*changelog.Write, commit func(context.Context) (bool, error),
) (done bool, err error) {
	if !c.needsMark() {
		return commit(ctx)
	}
	p, l := c.st.slot, c.st.slot.l
	if mark == nil {
		if mark, err = ob.logs.Mark(ctx, l.log, l.name, p.row); err != nil {
			return false, err
		}
	}
	clean := true
	var entered []byte
	defer func() { ob.marks.Unmark(mark, clean, entered) }()
	if c.outbox {
		c.muts = append(c.muts, c.index.outboxCell(p, c.order))
	}
	var logged *changelog.Write
	if c.records {
		change := c.st.logged(c.updated, mark)
		change.Expired = c.expired
		if logged, err = ob.logs.Begin(ctx, change); err != nil {
			return false, err
		}
		c.muts = append(c.muts, logged.Cell())
	}
	done, err = ob.logs.Commit(ctx, logged, changed, commit)
	if err != nil || !done {
		clean = err == nil // after an error the commit may still have happened
		return done, err
	}
	if c.index.empty() || ob.marks.Postpone(mark, c.order, l.lag) {
		return true, nil
	}
	if err := ob.apply(ctx, p, c.order, c.index, c.outbox); err != nil {
		clean = false
		return true, fmt.Errorf("%w: %w", errIndexesBehind, err)
	}
	if !c.outbox {
		entered = c.state
	}
	return true, nil
}
