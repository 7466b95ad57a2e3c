package throttle

import (
	"time"

	"github.com/tabletop-emu/tabletop/facade/awserr"
)

// rate limits the calls of an operation: a burst, and calls per second.
type rate struct{ burst, perSecond int64 }

// rates are the known limits of operations. The API reference has those that say "up to ...
// times per second"; the bursts are from recordings of the service. Rates per second without
// a reference are assumptions.
var rates = map[string]rate{
	"CreateBackup":              {50, 50},
	"DeleteBackup":              {13, 10},
	"DescribeBackup":            {13, 10},
	"DescribeContinuousBackups": {10, 10},
	"DescribeStream":            {10, 10},
	"DescribeTimeToLive":        {4, 4},
	"ExportTableToPointInTime":  {20, 10},
	"ListBackups":               {5, 5},
	"ListTagsOfResource":        {10, 10},
	"RestoreTableFromBackup":    {10, 10},
	"RestoreTableToPointInTime": {10, 10},
	"TagResource":               {5, 5},
	"UntagResource":             {5, 5},
	"UpdateContinuousBackups":   {10, 10},
}

type rateKey struct{ scope, operation string }

// Call admits a call of an operation, or returns an *awserr.Error. Calls that are
// rejected later for other reasons also count.
func (l *Limiter) Call(operation string) error {
	if l == nil {
		return nil
	}
	r, ok := rates[operation]
	if !ok {
		return nil
	}
	now := l.o.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	key := rateKey{l.scope, operation}
	b := l.rates[key]
	if b == nil {
		b = &bucket{level: r.burst * nano, at: now}
		l.rates[key] = b
	}
	b.fill(now, r.perSecond, time.Duration(r.burst*nano/r.perSecond))
	if b.level < nano {
		e := awserr.New(awserr.CodeThrottling, awserr.MsgThrottledRate)
		e.RetryAfter = b.wait(nano - 1)
		return e
	}
	b.take(1, now)
	return nil
}
