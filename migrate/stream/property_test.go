package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// event is a step of the source.
type event struct {
	wait time.Duration
	kind int
	pick int
}

// run is one run of the follower.
type run struct {
	lasts, pause time.Duration // pause follows it
	back         int           // it continues from the back-th last checkpoint before it
}

// plan is a history of a source, and of the followers that come and go.
type plan struct {
	roots, page, most int
	header            bool
	since             time.Duration // after the beginning; 0: no Since
	retention         time.Duration
	seed              uint64
	events            []event
	runs              []run
	ends              bool // the stream is disabled at the end
}

func drawPlan(t *rapid.T) plan {
	millis := func(label string, most int) time.Duration {
		return time.Duration(rapid.IntRange(0, most).Draw(t, label)) * time.Millisecond
	}
	p := plan{
		roots: rapid.IntRange(1, 3).Draw(t, "roots"), page: rapid.IntRange(1, 3).Draw(t, "page"), most: rapid.IntRange(1, 5).Draw(t, "most"),
		header: rapid.Bool().Draw(t, "header"), retention: rapid.SampledFrom([]time.Duration{24 * time.Hour, 90 * time.Second}).Draw(t, "retention"),
		seed: rapid.Uint64().Draw(t, "seed"), ends: rapid.Bool().Draw(t, "ends"),
	}
	if rapid.Bool().Draw(t, "has since") {
		p.since = time.Minute + millis("since", 20_000)
	}
	if p.since == 0 {
		p.retention = 24 * time.Hour // else records are trimmed before the first follower sees them
	}
	for range rapid.IntRange(0, 60).Draw(t, "events") {
		p.events = append(p.events, event{millis("wait", 3000), rapid.IntRange(0, 11).Draw(t, "kind"), rapid.IntRange(0, 1000).Draw(t, "pick")})
	}
	for range rapid.IntRange(0, 6).Draw(t, "runs") {
		p.runs = append(p.runs, run{millis("lasts", 20_000), millis("pause", 60_000), rapid.IntRange(0, 4).Draw(t, "back")})
	}
	return p
}

// trial is a plan that is being carried out.
type trial struct {
	plan
	f     *fake
	from  time.Time
	keys  map[*fakeShard][]string
	open  []*fakeShard
	kept  map[*fakeShard]bool
	last  map[*fakeShard]int64
	count map[string]int

	mu      sync.Mutex
	rand    *rand.Rand
	must    map[string][]*fakeRecord // by key: the records that may not be left out
	applied map[string]int           // by key: the greatest number applied
	places  map[string]Position      // of records
	saved   []Checkpoint
	wrong   error
}

// The property of the package: every record is applied, in the order of each item, whenever
// followers end and continue from any checkpoint; and the watermark passes no record that was
// not applied.
func TestStream_Property(t *testing.T) {
	t.Parallel()
	gaps, runs := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		p := drawPlan(rt)
		var wrong error
		synctest.Test(t, func(t *testing.T) {
			x := newTrial(p)
			wrong = x.carryOut(t.Context())
		})
		runs++
		if e, ok := errors.AsType[*Error](wrong); ok && e.Kind == NotEnabled && p.ends {
			return // the first follower came after the end
		}
		if e, ok := errors.AsType[*Error](wrong); ok && e.Kind == Gap && p.retention < 24*time.Hour {
			gaps++
			return
		}
		if wrong != nil {
			rt.Fatal(wrong)
		}
	})
	if gaps > runs/2 {
		t.Errorf("%d of %d runs end with a gap", gaps, runs)
	}
}

func newTrial(p plan) *trial {
	x := &trial{
		plan: p, f: newFake(time.Now), keys: map[*fakeShard][]string{}, kept: map[*fakeShard]bool{}, last: map[*fakeShard]int64{}, count: map[string]int{},
		rand: rand.New(rand.NewPCG(p.seed, 1)), must: map[string][]*fakeRecord{}, applied: map[string]int{}, places: map[string]Position{},
	}
	x.f.page, x.f.most, x.f.header, x.f.retention, x.f.rand = p.page, p.most, p.header, p.retention, rand.New(rand.NewPCG(p.seed, 2))
	x.f.fail = func(call, _ string) error {
		switch x.f.rand.IntN(50) {
		case 0:
			return coded("LimitExceededException")
		case 1:
			return coded("InternalServerError")
		case 2:
			return errors.New("connection reset")
		case 3:
			if call == "GetRecords" {
				return coded(codeExpired)
			}
		}
		return nil
	}
	if p.since > 0 {
		x.from, x.f.created = time.Now().Add(p.since), time.Now().Add(-time.Hour)
	}
	for i := range p.roots {
		sh := x.f.shard(fmt.Sprintf("shard-%03d", i), "")
		x.open, x.kept[sh] = append(x.open, sh), x.from.IsZero()
	}
	for i := range 8 {
		sh := x.open[i%p.roots]
		x.keys[sh] = append(x.keys[sh], fmt.Sprint("k", i))
	}
	return x
}

// carryOut runs the source and the followers.
func (x *trial) carryOut(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, e := range x.events {
			if time.Sleep(e.wait); e.kind == 11 {
				time.Sleep(time.Duration(e.pick) * 30 * time.Millisecond)
			}
			x.step(e)
		}
		if x.ends {
			for _, sh := range x.open {
				x.f.close(sh)
			}
			x.f.disable()
		}
	}()
	time.Sleep(x.since + x.since/2) // the first follower starts after its Since
	for i, r := range x.runs {
		if err := x.follow(ctx, r, i == 0, func() bool { return false }); err != nil {
			<-done
			return err
		}
		time.Sleep(r.pause)
	}
	<-done
	finished := func() bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		for key, records := range x.must {
			if x.applied[key] < records[len(records)-1].n {
				return false
			}
		}
		return true
	}
	err := x.follow(ctx, run{lasts: 10 * time.Minute}, len(x.runs) == 0, finished)
	if err == nil && !finished() {
		err = fmt.Errorf("after 10 minutes not all records are applied: %v of %v", x.applied, x.count)
	}
	return err
}

// step makes one change of the source.
func (x *trial) step(e event) {
	x.mu.Lock()
	defer x.mu.Unlock()
	i := e.pick % len(x.open)
	sh := x.open[i]
	switch {
	case e.kind < 8:
		for range 1 + e.pick%4 {
			x.write(x.open[e.pick%len(x.open)], e.pick)
			e.pick = e.pick*31 + 7
		}
	case e.kind < 11: // a rotation, or a split; their order of closing and opening is one moment
		x.f.close(sh)
		children := 1 + e.kind%2
		x.open = append(x.open[:i:i], x.open[i+1:]...)
		for c := range children {
			child := x.f.shard(fmt.Sprintf("shard-%03d", len(x.f.shards)), sh.id)
			// The children are listed later, but both together and not before their parent.
			listed := time.Now().Add(time.Duration(e.pick%3) * time.Second)
			if listed.Before(sh.listed) {
				listed = sh.listed
			}
			x.f.list(child, listed)
			x.open, x.kept[child] = append(x.open, child), x.kept[sh]
			if x.last[child] = x.last[sh]; e.pick%2 == 0 {
				x.last[child] = 0 // its numbers begin again
			}
			for k, key := range x.keys[sh] {
				if k%children == c {
					x.keys[child] = append(x.keys[child], key)
				}
			}
		}
	}
}

// write adds a record of one of the items of a shard.
func (x *trial) write(sh *fakeShard, pick int) {
	keys := x.keys[sh]
	if len(keys) == 0 {
		return
	}
	key := keys[pick%len(keys)]
	x.count[key]++
	number := x.last[sh] + 1
	if x.header {
		number = max(number, time.Now().UnixNano())
	}
	x.last[sh] = number
	r := x.f.put(sh, key, x.count[key], number)
	x.f.mu.Lock()
	defer x.f.mu.Unlock()
	r.seen = time.Duration(x.rand.IntN(800)) * time.Millisecond
	r.time = r.at.Add(-time.Duration(x.rand.IntN(900)) * time.Millisecond).Truncate(time.Second)
	when := r.time
	if x.header {
		when, _ = numberTime(r.sequence)
	}
	if x.kept[sh] = x.kept[sh] || !when.Before(x.from); x.kept[sh] {
		x.must[key] = append(x.must[key], r)
	}
}

// follow runs one follower, until its time has passed or it has finished.
func (x *trial) follow(ctx context.Context, r run, first bool, finished func() bool) error {
	o := x.f.options()
	o.Retention, o.MaxBytes = x.retention, 3*answerBytes
	if !x.from.IsZero() {
		o.Since, o.Overlap = x.from.Add(time.Second), time.Second
	}
	if !first {
		if len(x.saved) > 0 {
			o.Checkpoint = &x.saved[max(0, len(x.saved)-1-r.back)]
		}
	}
	x.mu.Lock()
	local := rand.New(rand.NewPCG(x.rand.Uint64(), 3))
	x.mu.Unlock()
	var s *Stream
	var err error
	for {
		if s, err = Open(ctx, x.f.clients(), o); err == nil {
			break
		}
		if e, ok := errors.AsType[*Error](err); !ok || e.Kind != Unanswered {
			return err
		}
		time.Sleep(time.Second) // a random fault
	}
	ctx, cancel := context.WithTimeout(ctx, r.lasts)
	defer cancel()
	seen := map[string]int{} // in this run
	ended := make(chan error, 1)
	go func() {
		ended <- s.Run(ctx, func(ctx context.Context, records []Record) error {
			x.mu.Lock()
			d := time.Duration(local.IntN(600)) * time.Millisecond
			x.mu.Unlock()
			if err := sleep(ctx, d); err != nil {
				return err
			}
			x.mu.Lock()
			defer x.mu.Unlock()
			for i := range records {
				x.take(&records[i], seen)
			}
			return x.wrong
		})
	}()
	var tip Tip
	var before map[string]int // the writes before it
	for n := 0; ; n++ {
		select {
		case err := <-ended:
			x.save(s)
			if err == nil && !x.ends {
				err = errors.New("an enabled stream has ended")
			}
			if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
				err = nil
			}
			return errors.Join(x.wrong, err)
		case <-time.After(200 * time.Millisecond):
		}
		status := s.Status()
		passed := before != nil && s.Passed(tip)
		x.mu.Lock()
		for key, records := range x.must {
			for _, rec := range records {
				if rec.at.Before(status.Watermark) && x.applied[key] < rec.n {
					x.fault("the watermark %s passed the change %d of %s of %s, and %d are applied", status.Watermark, rec.n, key, rec.at, x.applied[key])
				}
				if passed && rec.n <= before[key] && x.applied[key] < rec.n {
					x.fault("the tip was passed before the change %d of %s, and %d are applied", rec.n, key, x.applied[key])
				}
			}
		}
		if passed || before == nil {
			before, tip = map[string]int{}, s.Tip()
			for key, records := range x.must {
				for _, rec := range records {
					if rec.at.Before(time.Now()) { // not at the same nanosecond
						before[key] = rec.n
					}
				}
			}
		}
		x.mu.Unlock()
		if n%3 == 0 {
			x.save(s)
		}
		if finished() {
			cancel()
		}
	}
}

// fault keeps the first fault. The caller holds x.mu.
func (x *trial) fault(format string, args ...any) {
	if x.wrong == nil {
		x.wrong = fmt.Errorf(format, args...)
	}
}

// take applies a record. The caller holds x.mu.
func (x *trial) take(r *Record, seen map[string]int) {
	var n int
	key := r.Keys["id"].Str
	_, _ = fmt.Sscan(r.New["n"].Str, &n)
	before, again := seen[key]
	switch {
	case again && n != before+1:
		x.fault("the change %d of %s follows %d", n, key, before)
	case len(x.must[key]) == 0 || n < x.must[key][0].n:
		x.fault("the change %d of %s is not dropped", n, key)
	case n > x.applied[key]+1 && n > x.must[key][0].n:
		x.fault("the change %d of %s comes first, and %d are applied", n, key, x.applied[key])
	}
	seen[key], x.applied[key] = n, max(n, x.applied[key])
	place := func(n int) string { return fmt.Sprint(key, " ", n) }
	if at, known := x.places[place(n)]; known && at != r.Position {
		x.fault("the change %d of %s is at %x, before at %x", n, key, r.Position, at)
	}
	x.places[place(n)] = r.Position
	if at, known := x.places[place(n-1)]; known && bytes.Compare(at[:], r.Position[:]) >= 0 {
		x.fault("the change %d of %s is at %x, the one before at %x", n, key, r.Position, at)
	}
}

// save keeps the checkpoint.
func (x *trial) save(s *Stream) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.saved = append(x.saved, s.Checkpoint())
}
