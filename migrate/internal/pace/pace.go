// Package pace limits the rows per second that a load or a verification writes and reads.
package pace

import (
	"context"
	"iter"
	"time"

	"github.com/tabletop-emu/tabletop/internal/layout"
)

// Pace limits the total rows per second that are written, looked up or read back. A nil Pace
// has no limit.
type Pace struct {
	every time.Duration // interval between rows
	now   func() time.Duration
	sleep func(context.Context, time.Duration) error
	next  time.Duration // when the next row may go
}

// RowsAtOnce is the number of rows read between waits for the pace.
const RowsAtOnce = 256

// paceStep is the time whose rows are sent together.
const paceStep = 100 * time.Millisecond

// New returns a pace of rows per second, by a monotonic clock and its sleep function. It
// returns nil, which has no limit, if rows is 0.
func New(rows int, now func() time.Duration, sleep func(context.Context, time.Duration) error) *Pace {
	if rows <= 0 || now == nil || sleep == nil {
		return nil
	}
	return &Pace{every: time.Second / time.Duration(rows), now: now, sleep: sleep, next: now()}
}

// most returns how many of the rows are sent together, at least one.
func (p *Pace) most(of int) int {
	if p == nil {
		return max(1, of)
	}
	return max(1, min(of, int(paceStep/max(1, p.every))))
}

// Chunk returns how many rows each call takes, if rows are split into calls of about the
// same size.
func (p *Pace) Chunk(rows int) int {
	most := p.most(rows)
	calls := max(1, (rows+most-1)/most)
	return max(1, (rows+calls-1)/calls)
}

// Wait waits until rows may go. Unused time is lost: a slow target gets no burst of rows
// afterwards.
func (p *Pace) Wait(ctx context.Context, rows int) error {
	if p == nil {
		return nil
	}
	now := p.now()
	if p.next > now {
		if err := p.sleep(ctx, p.next-now); err != nil {
			return err
		}
	} else {
		p.next = now
	}
	p.next += time.Duration(rows) * p.every
	return nil
}

// Rows yields rows at the pace.
func (p *Pace) Rows(ctx context.Context, rows iter.Seq2[layout.Row, error]) iter.Seq2[layout.Row, error] {
	if p == nil {
		return rows
	}
	return func(yield func(layout.Row, error) bool) {
		n := 0
		for row, err := range rows {
			if n++; err == nil && n%RowsAtOnce == 0 {
				err = p.Wait(ctx, RowsAtOnce)
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}
