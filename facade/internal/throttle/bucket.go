package throttle

import (
	"time"
)

// Levels are in billionths of a unit: the product of units per second and nanoseconds is
// exact in them.
const nano = int64(time.Second)

// maxRate limits the units per second of a bucket, so that no level overflows. It is far
// above every quota.
const maxRate = 10_000_000

// bucket holds the level of a token bucket at a given time.
type bucket struct {
	level int64
	at    time.Time
	rate  int64 // units per second at the last fill
	peak  *peak // of a bucket that adapts to its use; nil: it does not
}

// fill fills the bucket up to a time with rate units per second, at most burst seconds of
// them.
func (b *bucket) fill(now time.Time, rate int64, burst time.Duration) {
	most := rate * int64(burst)
	if elapsed := int64(now.Sub(b.at)); elapsed > 0 && rate > 0 && b.level < most {
		if missing := most - b.level; elapsed >= missing/rate+1 {
			b.level = most
		} else {
			b.level += rate * elapsed
		}
	}
	b.level, b.at, b.rate = min(b.level, most), now, rate
}

// wait returns the time until the bucket exceeds a level; 0 if it does now or never will.
func (b *bucket) wait(level int64) time.Duration {
	if b.level > level || b.rate <= 0 {
		return 0
	}
	return time.Duration((level-b.level)/b.rate + 1)
}

// take takes units; the level may become negative.
func (b *bucket) take(units float64, now time.Time) {
	b.level -= int64(units * float64(nano))
	if b.peak != nil {
		b.peak.use(units, now)
	}
}

// newBucket returns an unused bucket that has been filling since a time.
func newBucket(since, now time.Time, rate int64, burst time.Duration) *bucket {
	b := &bucket{level: rate * nano, at: since}
	b.fill(now, rate, burst)
	return b
}

// peakMinutes is the number of clock minutes in a peak of 30 minutes: the first may be covered
// only in part.
const peakMinutes = 31

// peak records the maximum units per second in each of the last minutes.
type peak struct {
	second  int64 // since 1970
	used    float64
	minutes [peakMinutes]float64 // by minute since 1970
	minute  int64                // the latest of minutes
}

func (p *peak) use(units float64, now time.Time) {
	p.move(now)
	p.used += units
	i := p.minute % peakMinutes
	p.minutes[i] = max(p.minutes[i], p.used)
}

// move forgets expired minutes.
func (p *peak) move(now time.Time) {
	const minuteSeconds = 60
	second := now.Unix()
	if second == p.second {
		return
	}
	p.second, p.used = second, 0
	minute := second / minuteSeconds
	if minute-p.minute >= peakMinutes {
		p.minutes, p.minute = [peakMinutes]float64{}, minute
	}
	for p.minute < minute {
		p.minute++
		p.minutes[p.minute%peakMinutes] = 0
	}
}

func (p *peak) most(now time.Time) float64 {
	p.move(now)
	most := 0.0
	for _, used := range p.minutes {
		most = max(most, used)
	}
	return most
}
