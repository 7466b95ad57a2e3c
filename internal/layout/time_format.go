package layout

import (
	"fmt"
	"math"
	"time"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// timeFormat is a canonical text of an instant, in UTC.
type timeFormat struct {
	layout string // of package time; "" for a count of units since 1970
	digits int    // exactly so many
	unit   int64  // in milliseconds
}

// valueType is the type of the attributes that have the format: text for ISO,
// a number for epochs.
func (f timeFormat) valueType() attr.Type {
	if f.layout != "" {
		return attr.S
	}
	return attr.N
}

// format returns the text of an instant, or false outside of the format's
// domain.
func (f timeFormat) format(millis int64) (string, bool) {
	if millis < 0 || millis > maxTimeMillis {
		return "", false
	}
	if f.layout != "" {
		t := time.UnixMilli(millis).UTC()
		text := t.Format(f.layout)
		back, err := time.Parse(f.layout, text)
		return text, err == nil && back.UnixMilli() == millis
	}
	text := fmt.Sprint(millis / f.unit)
	return text, millis%f.unit == 0 && len(text) == f.digits
}

// from is the first instant, in milliseconds, whose ISO text begins with b or
// sorts above it; b may be the beginning of a text, or go on behind one. False
// where it cannot be told.
func (f timeFormat) from(b []byte) (int64, bool) {
	text := []byte(time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC).Format(f.layout))
	n := copy(text, b)
	// The least month and day that begin with a digit are 01, or 10 and so on.
	if (n == 6 || n == 9) && text[n-1] != '0' {
		text[n] = '0'
	}
	return f.parse(string(text))
}

// parse is the inverse of format: it takes nothing that format does not write.
func (f timeFormat) parse(text string) (int64, bool) {
	var millis int64
	if f.layout != "" {
		t, err := time.Parse(f.layout, text)
		if err != nil {
			return 0, false
		}
		millis = t.UnixMilli()
	} else {
		if len(text) != f.digits {
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
	back, ok := f.format(millis)
	return millis, ok && back == text
}

// Names of the time formats of `as:`.
var timeFormats = map[string]timeFormat{
	"iso(s)": {layout: "2006-01-02T15:04:05"}, "iso(ms)": {layout: "2006-01-02T15:04:05.000"},
	"iso(s,Z)": {layout: "2006-01-02T15:04:05Z"}, "iso(ms,Z)": {layout: "2006-01-02T15:04:05.000Z"},
	"epoch(s)": {digits: 10, unit: 1000}, "epoch(ms)": {digits: 13, unit: 1},
}

// maxTimeMillis keeps timestamps in microseconds within int64.
const maxTimeMillis = math.MaxInt64 / 1000
