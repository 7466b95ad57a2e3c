package stream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// follower collects the records of a Stream that is running.
type follower struct {
	s     *Stream
	apply func(context.Context, []Record) error // nil: collect at once
	stop  context.CancelFunc
	ended chan error

	mu  sync.Mutex
	got []Record
}

// start runs a Stream until the test ends.
func start(t *testing.T, s *Stream, apply func(context.Context, []Record) error) *follower {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	f := &follower{s: s, apply: apply, stop: stop, ended: make(chan error, 1)}
	go func() {
		f.ended <- s.Run(ctx, func(ctx context.Context, records []Record) error {
			if f.apply != nil {
				if err := f.apply(ctx, records); err != nil {
					return err
				}
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			f.got = append(f.got, records...)
			return nil
		})
	}()
	t.Cleanup(stop)
	return f
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// wait returns the error of Run.
func (f *follower) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-f.ended:
		return err
	case <-time.After(30 * time.Minute):
		t.Fatal("Run does not end")
		return nil
	}
}

// end stops the follower and returns its checkpoint.
func (f *follower) end(t *testing.T) Checkpoint {
	t.Helper()
	f.stop()
	if err := f.wait(t); !errors.Is(err, context.Canceled) {
		t.Errorf("Run ended with %v", err)
	}
	return f.s.Checkpoint()
}

// text lists the changes so far: item, number, epoch.
func (f *follower) text() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for _, r := range f.got {
		all = append(all, fmt.Sprintf("%s%s/%d", r.Keys["id"].Str, r.New["n"].Str, r.Position[1]))
	}
	return strings.Join(all, " ")
}

func (f *follower) expect(t *testing.T, want string) {
	t.Helper()
	if got := f.text(); got != want {
		t.Errorf("applied: %s\nwant: %s", got, want)
	}
}

// expectKind checks the kind of an error, and that its text has some words.
func expectKind(t *testing.T, err error, kind Kind, words ...string) *Error {
	t.Helper()
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Kind != kind {
		t.Fatalf("the error is %v, want the kind %s", err, kind)
	}
	for _, w := range append(words, "table T") {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error lacks %q: %v", w, err)
		}
	}
	return e
}

// Each refusal of Open names the next step.
func TestOpen_Refusals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const arn = "arn:aws:dynamodb:us-east-1:000000000000:table/T/stream/2026"
		checkpoint := func(change func(*Checkpoint)) func(*fake, *Options) {
			return func(_ *fake, o *Options) {
				o.Checkpoint = &Checkpoint{StreamARN: arn, TableID: "table-1", Watermark: time.Now().Add(-time.Hour)}
				change(o.Checkpoint)
			}
		}
		failing := func(call string, err error) func(*fake, *Options) {
			return func(f *fake, _ *Options) {
				f.fail = func(c, _ string) error {
					if c == call {
						return err
					}
					return nil
				}
			}
		}
		for name, c := range map[string]struct {
			kind   Kind // "": accepted
			words  string
			change func(*fake, *Options)
		}{
			"plain":             {"", "", func(*fake, *Options) {}},
			"new images":        {"", "", func(f *fake, _ *Options) { f.view = types.StreamViewTypeNewImage }},
			"checkpoint":        {"", "", checkpoint(func(*Checkpoint) {})},
			"its ARN":           {"", "", func(_ *fake, o *Options) { o.ARN = arn }},
			"no table":          {NoTable, "check its name", failing("DescribeTable", coded(codeNotFound))},
			"no stream":         {NotEnabled, "enable one with the view NEW_AND_OLD_IMAGES", func(f *fake, _ *Options) { f.noStream = true }},
			"disabled":          {NotEnabled, "enable one with the view NEW_AND_OLD_IMAGES", func(f *fake, _ *Options) { f.disabled = true }},
			"keys":              {View, "KEYS_ONLY", func(f *fake, _ *Options) { f.view = types.StreamViewTypeKeysOnly }},
			"old images":        {View, "enable one with the view NEW_AND_OLD_IMAGES", func(f *fake, _ *Options) { f.view = types.StreamViewTypeOldImage }},
			"other stream":      {OtherStream, "expected arn:other", func(_ *fake, o *Options) { o.ARN = "arn:other" }},
			"other table":       {OtherTable, "created again or restored", checkpoint(func(c *Checkpoint) { c.TableID = "table-0" })},
			"enabled again":     {Gap, "disabled and enabled again", checkpoint(func(c *Checkpoint) { c.StreamARN = "arn:before" })},
			"old checkpoint":    {Gap, "load it into another instance", checkpoint(func(c *Checkpoint) { c.Watermark = time.Now().Add(-23*time.Hour - time.Second) })},
			"young checkpoint":  {"", "", checkpoint(func(c *Checkpoint) { c.Watermark = time.Now().Add(-23 * time.Hour) })},
			"old export":        {Gap, "retains records", func(_ *fake, o *Options) { o.Since = time.Now().Add(-23*time.Hour - time.Second) }},
			"young stream":      {Gap, "was enabled at", func(_ *fake, o *Options) { o.Since = time.Now().Add(minAhead - time.Second) }},
			"old stream":        {"", "", func(_ *fake, o *Options) { o.Since = time.Now().Add(minAhead) }},
			"stream vanished":   {Gap, "no longer has its stream", failing("DescribeStream", coded(codeNotFound))},
			"permissions":       {Refused, "DescribeStream", failing("DescribeStream", coded("AccessDeniedException"))},
			"permissions again": {Refused, "credentials", failing("DescribeTable", coded("UnrecognizedClientException"))},
			"no network":        {Unanswered, "check the endpoint", failing("DescribeTable", errors.New("connection refused"))},
		} {
			f := newFake(time.Now)
			f.created = time.Now()
			o := f.options()
			c.change(f, &o)
			if name == "old export" {
				f.created = o.Since.Add(-time.Hour)
			}
			s, err := Open(t.Context(), f.clients(), o)
			if c.kind != "" {
				t.Log(name, err)
				expectKind(t, err, c.kind, c.words)
			} else if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if s.OldImages != (name != "new images") {
				t.Errorf("%s: OldImages is %v", name, s.OldImages)
			}
		}
	})
}

// A shard that was begun is a gap once the source does not have its next record, or no longer
// lists it; also one that was applied, if its descendants have vanished.
func TestRun_Gaps(t *testing.T) {
	t.Parallel()
	for name, shard := range map[string]string{"half read": "b", "descendants": "a", "position": "b", "number": "b"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFake(time.Now)
				f.retention = 20 * time.Hour // less than expected
				a := f.shard("a", "")
				f.put(a, "k", 1, 1)
				f.close(a)
				var b *fakeShard
				if name != "descendants" {
					b = f.shard("b", "a")
					f.put(b, "k", 2, 2)
				}
				first := start(t, openFake(t, f, f.options()), nil)
				time.Sleep(500 * time.Millisecond)
				before := time.Now()
				o := f.options()
				checkpoint := first.end(t)
				o.Checkpoint = &checkpoint
				switch name {
				case "half read":
					f.put(b, "k", 3, 3)
					f.close(b)
					f.shard("c", "b")
				case "descendants":
					b = f.shard("b", "a")
					f.put(b, "k", 2, 2)
					f.close(b)
					f.shard("c", "b")
				case "position":
					f.put(b, "k", 3, 3)
				case "number":
					b.records[0].sequence = "7"
				}
				if name != "number" {
					time.Sleep(21 * time.Hour)
				}
				second := start(t, openFake(t, f, o), nil)
				e := expectKind(t, second.wait(t), Gap, "shard "+shard, "load it into another instance")
				if e.Since.After(before) || before.Sub(e.Since) > 5*time.Second {
					t.Errorf("the gap begins at %s, and the follower ended at %s", e.Since, before)
				}
				second.expect(t, "")
			})
		})
	}
}

// Shards that were trimmed before they were begun do not hold up their children: neither one
// that is no longer listed, nor one that vanishes between its listing and its first call.
func TestRun_Trimmed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(time.Now)
		trimmed := map[string]*fakeShard{"b": f.shard("b", "a"), "x": f.shard("x", "")} // a was trimmed
		for _, sh := range trimmed {
			f.close(sh)
		}
		c := f.shard("c", "b")
		f.put(c, "k", 1, 1)
		f.fail = func(call, shard string) error {
			if sh := trimmed[shard]; call == "GetShardIterator" && sh != nil {
				sh.end = time.Now().Add(-25 * time.Hour)
				return coded(codeNotFound)
			}
			return nil
		}
		s := start(t, openFake(t, f, f.options()), nil)
		time.Sleep(15 * time.Second)
		s.expect(t, "k1/0")
		if got := s.end(t).Shards; len(got) != 1 || got[0].ID != "c" {
			t.Errorf("the checkpoint has %+v, want only c", got)
		}
	})
}

// A shard that appears late without a known parent begins at the watermark of the table, which
// covers unknown shards too, and not at that of the beginning, which may be too old.
func TestRun_LateShard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(time.Now)
		f.shard("a", "")
		o := f.options()
		o.Since, o.IdleMax = time.Now().Add(2*time.Minute), 10*time.Minute
		time.Sleep(3 * time.Minute)
		s := start(t, openFake(t, f, o), nil)
		time.Sleep(30 * time.Hour)
		before := s.s.Status().Watermark
		f.put(f.shard("b", "unknown"), "k", 1, 1)
		for range 3 {
			time.Sleep(5 * time.Second)
			if w := s.s.Status().Watermark; w.Before(before) {
				t.Errorf("the watermark is %s after %s", w, before)
			}
		}
		s.expect(t, "k1/0")
		s.end(t)
	})
}

// Only records before the first one to keep of a lineage are dropped, whatever their times; and
// a lineage that has kept one keeps all those of the children.
func TestRun_Prefix(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(time.Now)
		time.Sleep(time.Hour)
		from := time.Now()
		a := f.shard("a", "")
		for n, second := range []int{-2, -1, 0, -1} {
			f.put(a, "k", n+1, int64(n)+1).time = from.Add(time.Duration(second) * time.Second)
		}
		f.close(a)
		b := f.shard("b", "a")
		f.put(b, "k", 5, 5).time = from.Add(-time.Second)
		other := f.shard("c", "")
		f.put(other, "m", 1, 1).time = from.Add(-time.Second)
		o := f.options()
		o.Since, o.Overlap = from.Add(time.Minute), time.Minute
		s := start(t, openFake(t, f, o), nil)
		time.Sleep(5 * time.Second)
		s.expect(t, "k3/0 k4/0 k5/0")
		checkpoint := s.end(t)
		ids := func(c Checkpoint) (ids []string) {
			for _, sh := range c.Shards {
				ids = append(ids, sh.ID)
			}
			return ids
		}
		if got := ids(checkpoint); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("the checkpoint has %q", got)
		}
		f.put(other, "m", 2, 2).time = from.Add(-time.Second)
		f.put(other, "m", 3, 3).time = from
		o.Checkpoint, o.Since = &checkpoint, from.Add(time.Hour) // the checkpoint has its own
		s = start(t, openFake(t, f, o), nil)
		time.Sleep(5 * time.Second)
		s.expect(t, "m3/0")
	})
}

// Numbers that begin again with a child begin an epoch, even over a shard without records and a
// restart.
func TestRun_Epochs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(time.Now)
		a := f.shard("a", "")
		f.put(a, "k", 1, 100)
		f.close(a)
		empty := f.shard("b", "a")
		f.close(empty)
		c := f.shard("c", "b")
		f.put(c, "k", 2, 50)
		o := f.options()
		o.Epoch = 3
		s := start(t, openFake(t, f, o), nil)
		time.Sleep(5 * time.Second)
		s.expect(t, "k1/3 k2/4")
		checkpoint := s.end(t)
		o.Checkpoint, o.Epoch = &checkpoint, 0
		f.put(c, "k", 3, 51)
		f.close(c)
		d := f.shard("d", "c")
		f.put(d, "k", 4, 51)
		f.put(f.shard("e", ""), "m", 1, 1)
		s = start(t, openFake(t, f, o), nil)
		time.Sleep(15 * time.Second)
		got := strings.Fields(s.text())
		slices.Sort(got)
		if text := strings.Join(got, " "); text != "k3/4 k4/5 m1/3" {
			t.Errorf("applied: %s", text)
		}
	})
}

// The watermark does not pass the end of a shard whose children are unknown, nor an answer that
// is not applied. The children begin at the watermark of their parent.
func TestRun_Watermark(t *testing.T) {
	t.Parallel()
	for _, header := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake(time.Now)
			f.header = header
			a := f.shard("a", "")
			s := start(t, openFake(t, f, f.options()), nil)
			time.Sleep(3 * time.Second)
			f.close(a)
			closed := time.Now()
			child := f.shard("b", "a")
			f.list(child, closed.Add(30*time.Second))
			f.put(child, "k", 1, closed.UnixNano())
			time.Sleep(29 * time.Second)
			if w := s.s.Status().Watermark; w.After(closed) || closed.Sub(w) > 3*time.Second {
				t.Errorf("header %v: the watermark is %s, and the shard without children ended at %s", header, w, closed)
			}
			tip := s.s.Tip()
			time.Sleep(10 * time.Second)
			status := s.s.Status()
			if lag := time.Since(status.Watermark); lag > 4*time.Second || !s.s.Passed(tip) {
				t.Errorf("header %v: the watermark is %s behind", header, lag)
			}
			if want := map[bool]string{false: RuleAnswers, true: RuleHeader}[header]; status.Rule != want {
				t.Errorf("the rule is %s, want %s", status.Rule, want)
			}
			hold := make(chan struct{})
			s.mu.Lock()
			s.apply = func(context.Context, []Record) error { <-hold; return nil }
			s.mu.Unlock()
			f.put(child, "k", 2, time.Now().UnixNano())
			wrote := time.Now()
			tip = s.s.Tip()
			time.Sleep(time.Minute)
			if w := s.s.Status().Watermark; w.After(wrote) || s.s.Passed(tip) {
				t.Errorf("header %v: the watermark %s passed a record that is not applied", header, w)
			}
			checkpoint := s.s.Checkpoint()
			close(hold)
			time.Sleep(3 * time.Second)
			if w := s.s.Status().Watermark; !w.After(wrote) || !s.s.Passed(tip) {
				t.Errorf("header %v: the watermark is %s, and the record of %s is applied", header, w, wrote)
			}
			s.end(t)
			o := f.options()
			o.Checkpoint = &checkpoint
			f.shard("c", "") // a shard that was not begun does not set the watermark back
			next := openFake(t, f, o)
			if w := next.Status().Watermark; !w.Equal(checkpoint.Watermark) || w.IsZero() {
				t.Errorf("header %v: the watermark is %s, that of the checkpoint %s", header, w, checkpoint.Watermark)
			}
			s = start(t, next, func(context.Context, []Record) error { return nil })
			synctest.Wait()
			if w := next.Status().Watermark; w.Before(checkpoint.Watermark) {
				t.Errorf("header %v: the watermark is %s, that of the checkpoint %s", header, w, checkpoint.Watermark)
			}
			f.mu.Lock()
			f.ahead = 10 * time.Second
			f.mu.Unlock()
			time.Sleep(10 * time.Second)
			if w := next.Status().Watermark; w.After(time.Now()) {
				t.Errorf("header %v: the watermark %s is ahead of the time %s", header, w, time.Now())
			}
			s.end(t)
		})
	}
}

// In a shard that is never empty, the times of the records move the watermark.
func TestRun_BusyWatermark(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(time.Now)
		a := f.shard("a", "")
		f.most = 3
		s := start(t, openFake(t, f, f.options()), func(ctx context.Context, _ []Record) error { return sleep(ctx, 300*time.Millisecond) })
		for n := range 600 {
			f.put(a, "k", n+1, int64(n)+1)
			time.Sleep(100 * time.Millisecond)
		}
		if lag := time.Since(s.s.Status().Watermark); lag > 5*time.Second {
			t.Errorf("the watermark is %s behind", lag)
		}
	})
}

// Near the end of a shard that is written all the time, an answer is as new as possible, and there are at most ten
// calls a second. Far behind, the next ones are read while one is applied.
func TestRun_BusyAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		backlog, takes, oldest time.Duration // oldest: the age of the newest record when its answer is applied
		calls                  int
	}{
		{0, 0, 10 * time.Millisecond, 101},
		{0, 300 * time.Millisecond, 10 * time.Millisecond, 35},
		{time.Hour, 300 * time.Millisecond, 0, 36},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake(time.Now)
			a := f.shard("a", "")
			if c.backlog > 0 {
				f.most = 10
				for n := range 400 {
					f.put(a, "k", n+1, int64(n)+1)
				}
				time.Sleep(c.backlog)
			}
			ages := 0
			put := map[string]time.Time{}
			s := start(t, openFake(t, f, f.options()), func(ctx context.Context, all []Record) error {
				f.mu.Lock()
				at := put[all[len(all)-1].New["n"].Str]
				f.mu.Unlock()
				if time.Since(at) > c.oldest && c.backlog == 0 {
					ages++
				}
				return sleep(ctx, c.takes)
			})
			for n := range 1000 {
				if c.backlog == 0 {
					f.put(a, "k", n+1, int64(n)+1)
					f.mu.Lock()
					put[fmt.Sprint(n+1)] = time.Now()
					f.mu.Unlock()
				}
				time.Sleep(10 * time.Millisecond)
			}
			if calls := f.count("GetRecords a"); calls > c.calls || c.backlog > 0 && calls < c.calls {
				t.Errorf("%d calls, want %d", calls, c.calls)
			}
			if ages > 0 {
				t.Errorf("%d answers are older than necessary", ages)
			}
			s.end(t)
		})
	}
}

// A disabled stream ends with its last shard.
func TestRun_Disabled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(time.Now)
		a, b := f.shard("a", ""), f.shard("b", "")
		f.put(a, "k", 1, 1)
		f.put(b, "m", 1, 1)
		f.close(a)
		f.close(b)
		c := f.shard("c", "b")
		f.put(c, "m", 2, 2)
		f.close(c)
		f.disable()
		o := f.options()
		o.Checkpoint = &Checkpoint{StreamARN: f.arn, TableID: f.id, Watermark: time.Now()}
		s := start(t, openFake(t, f, o), func(ctx context.Context, r []Record) error {
			if r[0].Shard == "b" {
				return sleep(ctx, time.Minute)
			}
			return nil
		})
		if err := s.wait(t); err != nil {
			t.Error(err)
		}
		if got := s.text(); got != "k1/0 m1/0 m2/0" {
			t.Errorf("applied: %s", got)
		}
	})
}

// After a pause the iterator has expired, and the next one begins after the last record read.
func TestRun_Expired(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(time.Now)
		a := f.shard("a", "")
		f.most = 1
		for n := range 5 {
			f.put(a, "k", n+1, int64(n)+1)
		}
		s := start(t, openFake(t, f, f.options()), func(ctx context.Context, _ []Record) error { return sleep(ctx, 20*time.Minute) })
		time.Sleep(3 * time.Hour)
		s.expect(t, "k1/0 k2/0 k3/0 k4/0 k5/0")
		if n := f.count("GetShardIterator a"); n < 3 {
			t.Errorf("%d iterators", n)
		}
	})
}

// While the source does not answer, an open shard without records loses its place.
func TestRun_Outage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(time.Now)
		a := f.shard("a", "")
		o := f.options()
		o.GiveUp = 1000 * time.Hour
		s := start(t, openFake(t, f, o), nil)
		time.Sleep(5 * time.Second)
		f.mu.Lock()
		f.fail = func(string, string) error { return errors.New("no route") }
		f.mu.Unlock()
		f.put(a, "k", 1, 1)
		time.Sleep(25 * time.Hour)
		f.mu.Lock()
		f.fail = nil
		f.mu.Unlock()
		expectKind(t, s.wait(t), Gap, "shard a", "retains records for 24h0m0s")
	})
}

// Throttled calls are repeated after growing waits and counted. Without an answer for GiveUp,
// Run ends.
func TestRun_Retries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(time.Now)
		f.put(f.shard("a", ""), "k", 1, 1)
		var calls []time.Duration
		began := time.Now()
		f.fail = func(call, _ string) error {
			if call != "GetRecords" {
				return nil
			}
			calls = append(calls, time.Since(began))
			if len(calls) < 9 {
				return coded("LimitExceededException")
			}
			return coded("InternalServerError")
		}
		o := f.options()
		o.Jitter = func() float64 { return 0.5 }
		s := start(t, openFake(t, f, o), nil)
		e := expectKind(t, s.wait(t), Unanswered, "shard a", "InternalServerError")
		if e.Err == nil || s.s.Status().Shards[0].Throttles != 8 {
			t.Errorf("%v, %+v", e.Err, s.s.Status())
		}
		if d := time.Since(began); d < 15*time.Minute || d > 16*time.Minute {
			t.Errorf("Run gave up after %s", d)
		}
		if first, later := calls[1]-calls[0], calls[2]-calls[1]; first != firstWait*3/4 || later != 2*first {
			t.Errorf("waits of %s and %s", first, later)
		}
		if last := calls[len(calls)-1] - calls[len(calls)-2]; last != longestWait*3/4 {
			t.Errorf("the last wait is %s", last)
		}
	})
}

// A call that is refused for another reason ends Run at once, as does an error of the follower.
func TestRun_Errors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(time.Now)
		f.put(f.shard("a", ""), "k", 1, 1)
		broken := errors.New("the target is full")
		s := start(t, openFake(t, f, f.options()), func(context.Context, []Record) error { return broken })
		if err := s.wait(t); !errors.Is(err, broken) {
			t.Errorf("Run ended with %v", err)
		}
		if c := s.s.Checkpoint(); len(c.Shards) != 0 {
			t.Errorf("the checkpoint is %+v", c)
		}
		f.fail = func(call, _ string) error {
			if call == "GetRecords" {
				return coded("AccessDeniedException")
			}
			return nil
		}
		s = start(t, openFake(t, f, f.options()), nil)
		expectKind(t, s.wait(t), Refused, "shard a", "permissions")
	})
}

// Only errors of the network, of the server and of throttling are repeated.
func TestIsTransient(t *testing.T) {
	t.Parallel()
	status := func(code int) error {
		return &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: &http.Response{StatusCode: code}}, Err: coded("Unknown")}
	}
	for _, c := range []struct {
		err  error
		want bool
	}{
		{errors.New("connection reset"), true},
		{context.DeadlineExceeded, true},
		{fmt.Errorf("call: %w", coded("ThrottlingException")), true},
		{coded("InternalServerError"), true},
		{coded("ProvisionedThroughputExceededException"), true},
		{status(503), true},
		{status(429), true},
		{status(400), false},
		{coded("AccessDeniedException"), false},
		{coded(codeInvalid), false},
		{coded(codeExpired), false},
	} {
		if got := isTransient(c.err); got != c.want {
			t.Errorf("%v: %v", c.err, got)
		}
	}
}

// Input that contradicts the documentation ends Run: a record, a checkpoint, a stream that
// vanishes. A record of the future does not move the watermark beyond the present.
func TestRun_Contradictions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(time.Now)
		a := f.shard("a", "")
		f.put(a, "k", 1, 1).time = time.Now().Add(time.Hour)
		s := start(t, openFake(t, f, f.options()), nil)
		synctest.Wait()
		if w := s.s.Status().Watermark; w.IsZero() || w.After(time.Now()) {
			t.Errorf("the watermark is %s", w)
		}
		f.put(a, "k", 2, 1)
		expectKind(t, s.wait(t), BadRecord, "shard a", "number is not greater")
		s.expect(t, "k1/0")

		o := f.options()
		o.Checkpoint = &Checkpoint{StreamARN: f.arn, TableID: f.id, Shards: []ShardCheckpoint{{ID: "a", Sequence: "x"}}}
		expectKind(t, start(t, openFake(t, f, o), nil).wait(t), BadRecord, "shard a", `"x" of the checkpoint`)

		a.records = a.records[:1]
		s = start(t, openFake(t, f, f.options()), nil)
		time.Sleep(20 * time.Second)
		f.mu.Lock()
		f.fail = func(call, _ string) error {
			if call == "DescribeStream" {
				return coded(codeNotFound)
			}
			return nil
		}
		f.mu.Unlock()
		expectKind(t, s.wait(t), Gap, "no longer has its stream")
	})
}

// Records that are not applied yet take at most MaxBytes, over all shards.
func TestRun_MaxBytes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(time.Now)
		for i := range 10 {
			f.put(f.shard(fmt.Sprint("s", i), ""), "k", 1, 1)
		}
		o := f.options()
		o.MaxBytes = answerBytes + answerBytes/2
		hold := make(chan struct{})
		s := start(t, openFake(t, f, o), func(context.Context, []Record) error { <-hold; return nil })
		s.s.inFlight.TryAcquire(answerBytes / 2) // as by large records
		time.Sleep(time.Minute)
		if n := f.count("GetRecords"); n != 1 {
			t.Errorf("%d answers are in memory", n)
		}
		close(hold)
		time.Sleep(time.Minute)
		if got := strings.Fields(s.text()); len(got) != 10 {
			t.Errorf("applied: %q", got)
		}
	})
}

// Shards without records are asked less often.
func TestRun_Idle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(time.Now)
		a := f.shard("a", "")
		s := start(t, openFake(t, f, f.options()), nil)
		time.Sleep(time.Minute)
		if n := f.count("GetRecords a"); n < 59 || n > 63 {
			t.Errorf("%d calls in a minute", n)
		}
		f.put(a, "k", 1, 1)
		time.Sleep(time.Second)
		s.expect(t, "k1/0")
		if n := f.count("DescribeStream "); n > 9 {
			t.Errorf("the stream was listed %d times", n)
		}
	})
}
