// Package pace limits the number of rows per second that a load or a verification reads
// and writes.
package pace

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tabletop-emu/tabletop/internal/layout"
)

// Pace limits the number of rows per second that are written, looked up or read back in
// total. A nil Pace sets no limit.
type Pace struct {
	every atomic.Int64 // interval between rows, in nanoseconds; 0: no limit
	now   func() time.Duration
	sleep func(context.Context, time.Duration) error
	mu    sync.Mutex
	next  time.Duration // when the next row may go
}

// RowsAtOnce is the number of rows that are read before the next wait.
const RowsAtOnce = 256

// paceStep is the length of a period whose rows are sent together.
const paceStep = 100 * time.Millisecond

// New returns a Pace of rows per second, given a monotonic clock and a sleep function for
// it. It returns nil, which sets no limit, if rows is 0.
func New(rows int, now func() time.Duration, sleep func(context.Context, time.Duration) error) *Pace {
	if rows <= 0 || now == nil || sleep == nil {
		return nil
	}
	p := &Pace{now: now, sleep: sleep, next: now()}
	p.Set(rows)
	return p
}

// Set changes the number of rows per second; 0 sets no limit.
func (p *Pace) Set(rows int) {
	if rows <= 0 {
		p.every.Store(0)
		return
	}
	p.every.Store(int64(time.Second) / int64(rows))
}

// interval returns the interval between rows.
func (p *Pace) interval() time.Duration { return time.Duration(p.every.Load()) }

// most returns how many of the rows are sent together, at least one.
func (p *Pace) most(of int) int {
	if p == nil {
		return max(1, of)
	}
	return max(1, min(of, int(paceStep/max(1, p.interval()))))
}

// Chunk returns the number of rows per call that splits rows into calls of similar size.
func (p *Pace) Chunk(rows int) int {
	most := p.most(rows)
	calls := max(1, (rows+most-1)/most)
	return max(1, (rows+calls-1)/calls)
}

// Wait waits until the pace allows the rows. Unused time is lost: after a delay, a slow
// target does not get a burst of rows.
func (p *Pace) Wait(ctx context.Context, rows int) error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	now := p.now()
	wait := max(0, p.next-now)
	p.next = now + wait + time.Duration(rows)*p.interval()
	p.mu.Unlock()
	if wait == 0 {
		return nil
	}
	return p.sleep(ctx, wait)
}

// Rows yields rows no faster than the pace allows.
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
