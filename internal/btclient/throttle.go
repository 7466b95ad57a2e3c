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

// throttle limits the number of concurrent rows while the Bigtable is out of room
// (ResourceExhausted). A refusal halves the limit, once for all rows that were in flight
// together. Each time that as many rows were written as the limit allows, it grows by a
// 64th of the initial number, at least by one. At the initial number there is no limit again.
//
// If a Bigtable requests a lower rate before it refuses rows (RateLimitInfo), its factor
// reduces the limit, once in its period; meanwhile the limit does not grow.
//
// Without refusals the throttle counts the rows in flight, and no call waits. A nil throttle
// has no limit. Reads have no limit: a caller that writes during a read would wait for
// itself.
type throttle struct {
	under atomic.Int64 // rows in flight
	bound atomic.Int64 // limit of rows in flight; 0: none

	mu      sync.Mutex
	before  int64 // rows in flight when the limit was set
	written int64 // rows written since the limit was set or raised
	halved  int64 // number of times the limit was lowered
	calm    bool  // within the period of a RateLimitInfo
	freed   chan struct{}
}

// throttleSteps is the number of rounds until the limit is back at its initial number.
const throttleSteps = 64

// passage is a permission to write some rows.
type passage struct {
	rows   int
	halved int64 // throttle.halved when the permission was given
}

// enter waits until rows may be written, and returns their number, at least one. The caller
// must call leave. It waits at most until the deadline, if there is one.
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
			return passage{}, status.Error(codes.ResourceExhausted, fmt.Sprintf("the Bigtable now accepts %d rows at a time, and has accepted no row of this call for %v", t.bound.Load(), deadline))
		}
	}
}

// tryEnter is like enter, but does not wait: freed is closed when there may be room.
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

// leave ends a passage. refused reports that the Bigtable lacked room for some of its rows.
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

// leastFactor is the smallest factor of one request, as in the official clients.
const leastFactor = 0.7

// slowDown applies a request for a lower rate, from an answer to rows in flight. A request for a
// higher rate is ignored, since the limit grows alone.
func (t *throttle) slowDown(info *btpb.RateLimitInfo) {
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

// lower sets the limit to half of a number of rows.
func (t *throttle) lower(rows int64) {
	t.bound.Store(max(1, rows/2))
	t.halved++
}

// noRoom reports whether err means that the Bigtable is out of room.
func noRoom(err error) bool { return err != nil && status.Code(err) == codes.ResourceExhausted }
