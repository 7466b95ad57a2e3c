package stream

import (
	"testing"
	"testing/synctest"
	"time"
)

// A clock of this machine that is wrong, or that is set, changes neither the source's time nor
// the watermark.
func TestStatus_Now(t *testing.T) {
	t.Parallel()
	for _, skew := range []time.Duration{0, time.Hour, -time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake(time.Now)
			f.skew = skew
			f.shard("a", "")
			s := start(t, openFake(t, f, f.options()), nil)
			time.Sleep(20 * time.Second)
			check := func() {
				t.Helper()
				source := time.Now().Add(f.skew)
				status := s.s.Status()
				if d := status.Now.Sub(source); d.Abs() > time.Second {
					t.Errorf("skew %s: Now differs from the source's clock by %s", f.skew, d)
				}
				if lag := source.Sub(status.Watermark); lag < 0 || lag > 5*time.Second {
					t.Errorf("skew %s: the watermark is %s behind", f.skew, lag)
				}
			}
			check()
			f.mu.Lock()
			f.skew += time.Minute
			f.mu.Unlock()
			time.Sleep(20 * time.Second)
			check()
		})
	}
}

// The estimate gets as close as the Dates allow, and forgets old bounds.
func TestSourceClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		base := time.Now()
		c := sourceClock{base: base}
		if got := c.at(base.Add(time.Second)); !got.Equal(base.Add(time.Second)) {
			t.Errorf("without an answer: %s", got)
		}
		c.observe("nonsense", base, base)
		const ahead = 90*time.Second + 300*time.Millisecond
		source := func(local time.Time) string {
			return local.Add(ahead).Truncate(time.Second).Format("Mon, 02 Jan 2006 15:04:05 GMT")
		}
		for i := range 40 {
			begin := base.Add(time.Duration(i) * 50 * time.Millisecond)
			c.observe(source(begin.Add(10*time.Millisecond)), begin, begin.Add(20*time.Millisecond))
		}
		if d := c.at(base.Add(3 * time.Second)).Sub(base.Add(3*time.Second + ahead)); d.Abs() > 100*time.Millisecond {
			t.Errorf("the estimate is wrong by %s", d)
		}
		for i := range 3 { // 40 s apart: only the latest two count
			begin := base.Add(time.Minute + time.Duration(i)*40*time.Second)
			c.observe(begin.Add(ahead+500*time.Millisecond).Truncate(time.Second).Format("Mon, 02 Jan 2006 15:04:05 GMT"), begin, begin)
		}
		if width := c.bounds[0].high - c.bounds[0].low; width != time.Second {
			t.Errorf("old bounds still count: %s", width)
		}
	})
}
