package migrationstate

import (
	"slices"
	"time"
)

// LagStep is the time that one of the Lags covers.
const LagStep = 10 * time.Second

// maxLags limits the lags to an hour.
const maxLags = 360

// Lags are the greatest lags of the last hour, for each LagStep.
type Lags struct {
	From   time.Time `json:"from"`   // when the first step began
	Millis []int64   `json:"millis"` // in milliseconds; -1 is unknown: nothing followed, for example
}

// With returns a copy of l with a lag that was measured at a given time. A negative lag is
// unknown.
func (l Lags) With(at time.Time, lag time.Duration) Lags {
	step, millis := at.UTC().Truncate(LagStep), lag.Milliseconds()
	if lag < 0 {
		millis = -1
	}
	n := int(step.Sub(l.From) / LagStep)
	if n < 0 || n >= len(l.Millis)+maxLags { // the first one, one after a long pause, or another clock
		return Lags{From: step, Millis: []int64{millis}}
	}
	all := slices.Clone(l.Millis) // reports have the former ones
	for len(all) <= n {
		all = append(all, -1)
	}
	all[n] = max(all[n], millis)
	past := max(0, len(all)-maxLags)
	return Lags{From: l.From.Add(time.Duration(past) * LagStep), Millis: all[past:]}
}
