package stream

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// watermarkHeader is the header with which Tabletop's endpoint names the sequence number below
// which an answer of GetRecords left nothing out.
const watermarkHeader = "X-Tabletop-Watermark"

// headerOf returns the header called name of an answer, or "".
func headerOf(m middleware.Metadata, name string) string {
	if raw, ok := awsmiddleware.GetRawResponse(m).(*smithyhttp.Response); ok && raw != nil && raw.Response != nil {
		return raw.Header.Get(name)
	}
	return ""
}

// numberTime returns the time in a sequence number of Tabletop's endpoint: "1", 20 digits of
// nanoseconds, 5 digits of a process.
func numberTime(number string) (t time.Time, ok bool) {
	if len(number) != 26 || number[0] != '1' {
		return t, false
	}
	nanos, err := strconv.ParseInt(number[1:21], 10, 64)
	return time.Unix(0, nanos).UTC(), err == nil && nanos >= 0
}

// boundsAge is the time after which bounds are forgotten: by then the clocks may have drifted
// apart.
const boundsAge = time.Minute

// bounds limit the difference between two clocks.
type bounds struct{ low, high time.Duration }

// sourceClock estimates the clock of the source from that of this machine and the Date of the
// source's answers, which has whole seconds. While the two clocks can agree it is the clock of
// this machine.
type sourceClock struct {
	base time.Time // the first time; all others are monotonic distances from it

	mu     sync.Mutex
	bounds [2]bounds // of the current and the previous period
	since  time.Time // when the current period began; the zero time without bounds
}

// observe notes the Date of the answer to a call.
func (c *sourceClock) observe(date string, begin, end time.Time) {
	at, err := http.ParseTime(date)
	if err != nil {
		return
	}
	seen := bounds{at.Sub(c.local(end)), at.Add(time.Second).Sub(c.local(begin))}
	c.mu.Lock()
	defer c.mu.Unlock()
	now, before := &c.bounds[0], &c.bounds[1]
	switch {
	case c.since.IsZero(), seen.low > min(now.high, before.high), seen.high < max(now.low, before.low): // a clock was set
		*now, *before, c.since = seen, seen, end
	case end.Sub(c.since) > boundsAge/2:
		*before, *now, c.since = *now, seen, end
	default:
		*now = bounds{max(now.low, seen.low), min(now.high, seen.high)}
	}
}

// local returns a time of this machine's clock without the steps of that clock since base.
func (c *sourceClock) local(t time.Time) time.Time { return c.base.Round(0).Add(t.Sub(c.base)) }

// at converts a time of this machine's clock to one of the source's clock.
func (c *sourceClock) at(t time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	low, high := max(c.bounds[0].low, c.bounds[1].low), min(c.bounds[0].high, c.bounds[1].high)
	return c.local(t).Add(min(max(0, low), high)).UTC()
}
