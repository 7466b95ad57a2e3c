package codec

import (
	"fmt"
	"math"
	"time"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// TimeFormat is a canonical text format for instants in UTC.
type TimeFormat struct {
	Layout string // layout of package time; "" for a count of units since 1970
	Digits int    // the exact number of digits
	unit   int64  // in milliseconds
}

// ValueType returns the type of attributes in this format: S for ISO, N for epochs.
func (f TimeFormat) ValueType() attr.Type {
	if f.Layout != "" {
		return attr.S
	}
	return attr.N
}

// Format returns the text of an instant. It returns false if the instant is outside the format's
// domain.
func (f TimeFormat) Format(millis int64) (string, bool) {
	if millis < 0 || millis > MaxTimeMillis {
		return "", false
	}
	if f.Layout != "" {
		t := time.UnixMilli(millis).UTC()
		text := t.Format(f.Layout)
		back, err := time.Parse(f.Layout, text)
		return text, err == nil && back.UnixMilli() == millis
	}
	text := fmt.Sprint(millis / f.unit)
	return text, millis%f.unit == 0 && len(text) == f.Digits
}

// From returns the first instant, in milliseconds, whose ISO text begins with b or sorts after it.
// b may be a prefix of a text, or extend a text. From returns false if b does not determine the
// instant.
func (f TimeFormat) From(b []byte) (int64, bool) {
	text := []byte(time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC).Format(f.Layout))
	n := copy(text, b)
	// The least month and day that begin with a digit are 01, or 10 and so on.
	if (n == 6 || n == 9) && text[n-1] != '0' {
		text[n] = '0'
	}
	return f.Parse(string(text))
}

// Parse parses a text that Format returned, and rejects every other text.
func (f TimeFormat) Parse(text string) (int64, bool) {
	var millis int64
	if f.Layout != "" {
		if len(text) != len(f.Layout) { // Parse would allocate its error
			return 0, false
		}
		t, err := time.Parse(f.Layout, text)
		if err != nil {
			return 0, false
		}
		millis = t.UnixMilli()
	} else {
		if len(text) != f.Digits {
			return 0, false
		}
		for _, c := range []byte(text) {
			if c < '0' || c > '9' {
				return 0, false
			}
			millis = millis*10 + int64(c-'0')
		}
		millis *= f.unit
	}
	back, ok := f.Format(millis)
	return millis, ok && back == text
}

// TimeFormats maps the names that `as:` accepts to time formats.
var TimeFormats = map[string]TimeFormat{
	"iso(s)": {Layout: "2006-01-02T15:04:05"}, "iso(ms)": {Layout: "2006-01-02T15:04:05.000"},
	"iso(s,Z)": {Layout: "2006-01-02T15:04:05Z"}, "iso(ms,Z)": {Layout: "2006-01-02T15:04:05.000Z"},
	"epoch(s)": {Digits: 10, unit: 1000}, "epoch(ms)": {Digits: 13, unit: 1},
}

// MaxTimeMillis is the latest time whose microseconds fit into an int64.
const MaxTimeMillis = math.MaxInt64 / 1000
