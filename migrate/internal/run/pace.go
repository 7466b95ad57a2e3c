package run

import (
	"context"
	"time"
)

// Pace bounds how many rows a second are written or read. A nil Pace bounds nothing.
type Pace struct {
	every time.Duration // of one row
	now   func() time.Duration
	sleep func(context.Context, time.Duration) error
	next  time.Duration // when the next row may go
}

// paceStep is the time whose rows go together.
const paceStep = 100 * time.Millisecond

// NewPace is a pace of so many rows a second, by a monotonic clock and a way to wait by
// it; nil, which bounds nothing, where rows is 0.
func NewPace(rows int, now func() time.Duration, sleep func(context.Context, time.Duration) error) *Pace {
	if rows <= 0 || now == nil || sleep == nil {
		return nil
	}
	return &Pace{every: time.Second / time.Duration(rows), now: now, sleep: sleep, next: now()}
}

// most is how many of so many rows go together, one at least.
func (p *Pace) most(of int) int {
	if p == nil {
		return max(1, of)
	}
	return max(1, min(of, int(paceStep/max(1, p.every))))
}

// wait returns when so many rows may go. What was not used before is not made up for: a
// target that was slow is not hurried after.
func (p *Pace) wait(ctx context.Context, rows int) error {
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
