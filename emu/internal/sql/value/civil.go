package value

import (
	"fmt"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // the names of time zones must not depend on the machine
)

// These are the limits of DATE and TIMESTAMP: the years 1 to 9999.
const (
	MinDate   = -719162
	MaxDate   = 2932896
	MinMicros = -62135596800000000
	MaxMicros = 253402300799999999
)

const (
	secondsPerDay = 86400
	microsPerSec  = 1000000
)

// DateOf returns the days since 1970-01-01 of a day of the Gregorian calendar; ok is false if the
// day does not exist, or is outside of the years 1 to 9999.
func DateOf(year, month, day int) (days int64, ok bool) {
	if year < 1 || year > 9999 || month < 1 || month > 12 || day < 1 || day > DaysIn(year, month) {
		return 0, false
	}
	return time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC).Unix() / secondsPerDay, true
}

// DaysIn returns the number of days of a month.
func DaysIn(year, month int) int {
	return time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// TimeOfDate returns the beginning of a day in UTC.
func TimeOfDate(days int64) time.Time { return time.Unix(days*secondsPerDay, 0).UTC() }

// TimeOf returns a TIMESTAMP in a time zone.
func TimeOf(micros int64, zone *time.Location) time.Time { return time.UnixMicro(micros).In(zone) }

// PrintedTime is like TimeOf, but drops the seconds of an offset, which old local times have and
// texts cannot show.
func PrintedTime(micros int64, zone *time.Location) time.Time {
	t := TimeOf(micros, zone)
	if _, offset := t.Zone(); offset%60 != 0 {
		return t.In(time.FixedZone("", offset-offset%60))
	}
	return t
}

// DateIn returns the day of a TIMESTAMP in a time zone.
func DateIn(micros int64, zone *time.Location) int64 {
	y, m, d := TimeOf(micros, zone).Date()
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / secondsPerDay
}

// Instant returns the microseconds of a local time, which is given as that time in UTC. A local time
// that a change of the offset skips or repeats has the offset before the change.
func Instant(local time.Time, zone *time.Location) int64 {
	if zone == time.UTC {
		return local.UnixMicro()
	}
	offset := func(unix int64) int64 {
		_, seconds := time.Unix(unix, 0).In(zone).Zone()
		return int64(seconds)
	}
	unix := local.Unix()
	before, after := offset(unix-secondsPerDay), offset(unix+secondsPerDay)
	at := unix - before
	if offset(at) != before && offset(unix-after) == after {
		at = unix - after
	}
	return at*microsPerSec + int64(local.Nanosecond()/1000)
}

// zones caches time zones by their names; a failed look-up is not cached.
var zones sync.Map

// Zone returns the time zone of an IANA name or of an offset such as +5:30.
func Zone(name string) (*time.Location, error) {
	if name == "" {
		return nil, OutOfRange("Invalid empty time zone")
	}
	if name[0] == '+' || name[0] == '-' {
		seconds, ok := parseOffset(name)
		if !ok {
			return nil, OutOfRange("Invalid time zone: %s", name)
		}
		return time.FixedZone("", seconds), nil
	}
	if zone, ok := zones.Load(name); ok {
		return zone.(*time.Location), nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" || name == "localtime" { // these depend on the machine
		return nil, OutOfRange("Invalid time zone: %s", name)
	}
	zones.Store(name, zone)
	return zone, nil
}

// parseOffset parses (+|-)H[H][:M[M]] and returns seconds east of UTC.
func parseOffset(s string) (seconds int, ok bool) {
	p := &scanner{s: s[1:]}
	hours, ok := p.digits(1, 2)
	minutes := 0
	if ok && p.s != "" {
		if ok = p.char(':'); ok {
			minutes, ok = p.digits(1, 2)
		}
	}
	if !ok || p.s != "" || hours*60+minutes > 14*60 || minutes > 59 {
		return 0, false
	}
	seconds = (hours*60 + minutes) * 60
	if s[0] == '-' {
		seconds = -seconds
	}
	return seconds, true
}

// scanner reads a text from its front; s is the unread rest.
type scanner struct{ s string }

// digits reads a number of at most `most` digits. ok is false if it has fewer than least digits.
func (p *scanner) digits(least, most int) (n int, ok bool) {
	i := 0
	for i < len(p.s) && i < most && p.s[i] >= '0' && p.s[i] <= '9' {
		n = n*10 + int(p.s[i]-'0')
		i++
	}
	p.s = p.s[i:]
	return n, i >= least
}

func (p *scanner) char(c byte) bool {
	if p.s == "" || p.s[0] != c {
		return false
	}
	p.s = p.s[1:]
	return true
}

// date reads YYYY-[M]M-[D]D.
func (p *scanner) date() (year, month, day int, ok bool) {
	if year, ok = p.digits(4, 5); !ok || !p.char('-') {
		return 0, 0, 0, false
	}
	if month, ok = p.digits(1, 2); !ok || !p.char('-') {
		return 0, 0, 0, false
	}
	day, ok = p.digits(1, 2)
	return year, month, day, ok
}

// ParseDate parses the text of a DATE.
func ParseDate(s string) (Value, error) {
	p := &scanner{s}
	year, month, day, ok := p.date()
	if ok && p.s == "" {
		if days, ok := DateOf(year, month, day); ok {
			return Date(days), nil
		}
	}
	return Null, OutOfRange("Invalid date: '%s'", s)
}

// ParseTimestamp parses the text of a TIMESTAMP; zone is the time zone of a text without one.
func ParseTimestamp(s string, zone *time.Location) (Value, error) {
	malformed := func() (Value, error) { return Null, OutOfRange("Invalid timestamp: '%s'", s) }
	p := &scanner{s}
	year, month, day, ok := p.date()
	if !ok {
		return malformed()
	}
	var hour, minute, second, micros int
	if p.s != "" {
		if c := p.s[0]; c != ' ' && c != 'T' && c != 't' || len(p.s) < 3 {
			return malformed()
		}
		p.s = p.s[1:]
		switch c := p.s[0]; {
		case c >= '0' && c <= '9':
			if hour, minute, second, micros, ok = p.clock(); !ok {
				return malformed()
			}
		case c != '+' && c != '-':
			return malformed()
		}
	}
	if p.s != "" {
		rest := p.s
		if after, ok := strings.CutPrefix(rest, " UTC"); ok {
			rest = after
		}
		switch {
		case rest == "" || rest == "Z" || rest == "z":
			zone = time.UTC
		case rest[0] == '+' || rest[0] == '-':
			var err error
			if zone, err = Zone(rest); err != nil {
				return Null, err
			}
		case len(rest) > 1 && rest[0] == ' ' && rest[1] != '+' && rest[1] != '-':
			var err error
			if zone, err = Zone(rest[1:]); err != nil {
				return Null, err
			}
		default:
			return malformed()
		}
	}
	days, ok := DateOf(year, month, day)
	if ok && hour <= 23 && minute <= 59 && second <= 60 {
		local := time.Unix(days*secondsPerDay+int64(hour*3600+minute*60+second), int64(micros)*1000).UTC()
		if at := Instant(local, zone); at >= MinMicros && at <= MaxMicros {
			return Timestamp(at), nil
		}
	}
	return Null, OutOfRange("Invalid timestamp string \"%s\"", s)
}

// clock reads [H]H:[M]M:[S]S[.F], with up to six digits of F.
func (p *scanner) clock() (hour, minute, second, micros int, ok bool) {
	if hour, ok = p.digits(1, 2); !ok || !p.char(':') {
		return 0, 0, 0, 0, false
	}
	if minute, ok = p.digits(1, 2); !ok || !p.char(':') {
		return 0, 0, 0, 0, false
	}
	if second, ok = p.digits(1, 2); !ok {
		return 0, 0, 0, 0, false
	}
	if p.char('.') {
		before := len(p.s)
		micros, _ = p.digits(0, 6)
		for range 6 - (before - len(p.s)) {
			micros *= 10
		}
	}
	return hour, minute, second, micros, true
}

// DateText returns a DATE as in 2024-02-29.
func DateText(days int64) string { return TimeOfDate(days).Format("2006-01-02") }

// TimestampText returns a TIMESTAMP as in 2024-01-01 00:00:00.500+00, with 0, 3 or 6 digits of the
// second.
func TimestampText(micros int64, zone *time.Location) string {
	t := PrintedTime(micros, zone)
	format := "2006-01-02 15:04:05"
	switch {
	case micros%microsPerSec == 0:
	case micros%1000 == 0:
		format += ".000"
	default:
		format += ".000000"
	}
	text := t.Format(format)
	_, offset := t.Zone()
	sign := '+'
	if offset < 0 {
		sign, offset = '-', -offset
	}
	hours, minutes := offset/3600, offset/60%60
	if minutes == 0 {
		return fmt.Sprintf("%s%c%02d", text, sign, hours)
	}
	return fmt.Sprintf("%s%c%02d:%02d", text, sign, hours, minutes)
}
