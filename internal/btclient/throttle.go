package btclient

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// throttle bounds how many rows are written at a time while the Bigtable says that it
// has no room for more (ResourceExhausted). Whatever is refused halves them, once for
// all that was under way together; for each time that as many rows are written as the
// bound is, it goes up by one in 64 of those at first, or by one. Back at those there is
// none.
//
// A Bigtable that asks for less before it refuses anything (RateLimitInfo) has them bound
// by its factor, once in its period; meanwhile the bound does not go up.
//
// While nothing is refused it counts what is under way, and nothing waits for it. A nil
// throttle bounds nothing. Reads are not bound: whoever reads may write meanwhile, and
// would wait for itself.
type throttle struct {
	under atomic.Int64 // rows under way
	bound atomic.Int64 // how many may be; 0: as many as there are

	mu      sync.Mutex
	before  int64 // rows under way when the bound was set
	written int64 // since it was raised
	halved  int64 // how often it was lowered
	calm    bool  // the period of a RateLimitInfo goes on
	freed   chan struct{}
}

// throttleSteps is in how many rounds the bound is back at where it was set.
const throttleSteps = 64

// passage is leave to write some rows.
type passage struct {
	rows   int
	halved int64 // of the throttle, when it was given
}

// enter waits until rows may be written, and tells how many of them: one at least. leave
// is to follow. It waits no longer than for the deadline, if there is one.
func (t *throttle) enter(ctx context.Context, rows int, deadline time.Duration) (passage, error) {
	if t == nil {
		return passage{rows: rows}, nil
	}
	if t.bound.Load() == 0 {
		t.under.Add(int64(rows))
		return passage{rows: rows}, nil
	}
	var late <-chan time.Time
	if deadline > 0 {
		timer := time.NewTimer(deadline)
		defer timer.Stop()
		late = timer.C
	}
	for {
		p, freed := t.tryEnter(rows)
		if freed == nil {
			return p, nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return passage{}, status.FromContextError(ctx.Err()).Err()
		case <-late:
			return passage{}, status.Error(codes.ResourceExhausted, fmt.Sprintf("the Bigtable takes %d rows at a time now, and took none of this call's for %v", t.bound.Load(), deadline))
		}
	}
}

// tryEnter is enter without a wait: freed is closed when there may be room.
func (t *throttle) tryEnter(rows int) (p passage, freed <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if bound := t.bound.Load(); bound > 0 {
		room := bound - t.under.Load()
		if room <= 0 {
			if t.freed == nil {
				t.freed = make(chan struct{})
			}
			return passage{}, t.freed
		}
		rows = int(min(int64(rows), room))
	}
	t.under.Add(int64(rows))
	return passage{rows, t.halved}, nil
}

// leave ends a passage. refused says that the Bigtable had no room for all of its rows.
func (t *throttle) leave(p passage, refused bool) {
	if t == nil {
		return
	}
	under := t.under.Add(-int64(p.rows)) + int64(p.rows)
	if !refused && t.bound.Load() == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch bound := t.bound.Load(); {
	case refused && bound == 0:
		t.before, t.written = under, 0
		t.lower(under)
	case refused && p.halved == t.halved:
		t.lower(bound)
	case !refused && bound > 0 && !t.calm:
		t.written += int64(p.rows)
		if t.written < bound {
			break
		}
		t.written = 0
		if bound += max(1, t.before/throttleSteps); bound >= t.before {
			bound = 0
		}
		t.bound.Store(bound)
	}
	if t.freed != nil {
		close(t.freed)
		t.freed = nil
	}
}

// leastFactor bounds what a Bigtable asks for at once, as in the official clients.
const leastFactor = 0.7

// told hears what the Bigtable asks for, with an answer to rows that are under way. More
// is not asked for: the bound goes up by itself.
func (t *throttle) told(info *btpb.RateLimitInfo) {
	factor := info.GetFactor()
	if t == nil || factor <= 0 || factor >= 1 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.calm {
		return
	}
	load := t.bound.Load()
	if load == 0 {
		load = t.under.Load()
		t.before, t.written = load, 0
	}
	t.bound.Store(max(1, int64(float64(load)*max(factor, leastFactor))))
	t.halved++
	t.calm = true
	time.AfterFunc(info.GetPeriod().AsDuration(), func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.calm = false
	})
}

// lower sets the bound to half of so many rows.
func (t *throttle) lower(rows int64) {
	t.bound.Store(max(1, rows/2))
	t.halved++
}

// noRoom reports whether err says that the Bigtable has no room.
func noRoom(err error) bool { return err != nil && status.Code(err) == codes.ResourceExhausted }
