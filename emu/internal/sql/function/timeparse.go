package function

import (
	"strings"
	"time"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// parseTime parses a text by the elements of strptime, and returns microseconds. White space in the
// format matches any amount of it. Without a date, it is 1970-01-01.
func parseTime(format, text string, zone *time.Location, isDate bool) (micros int64, err error) {
	if isDate {
		if err := checkDateFormat(format); err != nil {
			return 0, err
		}
	}
	p := &timeParser{format: format, text: text, rest: text, zone: zone, year: 1970, month: 1, day: 1}
	if err := p.parse(); err != nil {
		return 0, err
	}
	return p.instant()
}

func checkDateFormat(format string) error {
	for {
		i := strings.IndexByte(format, '%')
		if i < 0 || i == len(format)-1 {
			return nil
		}
		element, rest := cutElement(format[i:])
		if strings.IndexByte(notInDates, element[len(element)-1]) >= 0 && element != "%%" {
			return value.OutOfRange("Invalid format: %s is not allowed for the DATE type.", element)
		}
		format = rest
	}
}

type timeParser struct {
	format, text, rest string
	zone               *time.Location

	year, month, day            int
	century                     int
	hasCentury, explicitCentury bool
	hour, minute, second        int
	micros                      int
	twelveHour, afternoon       bool
	unix                        int64
	hasUnix                     bool
	days                        dayElements
}

func (p *timeParser) failed() error {
	return value.OutOfRange("Failed to parse input string %s", quoteString(p.text))
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

func (p *timeParser) skipSpace() {
	for p.rest != "" && isSpace(p.rest[0]) {
		p.rest = p.rest[1:]
	}
}

func (p *timeParser) parse() error {
	format := p.format
	p.skipSpace()
	for format != "" && p.rest != "" {
		switch {
		case isSpace(format[0]):
			p.skipSpace()
			format = format[1:]
		case format[0] != '%':
			if p.rest[0] != format[0] {
				return value.OutOfRange("Mismatch between format character '%c' and string character '%c' at string index: %d with format: '%s'",
					format[0], p.rest[0], len(p.text)-len(p.rest), p.format)
			}
			format, p.rest = format[1:], p.rest[1:]
		case len(format) == 1:
			return value.OutOfRange("Format string cannot end with a single '%%'")
		default:
			element, rest := cutElement(format)
			ok, err := p.element(element, rest)
			if err != nil {
				return err
			}
			if !ok {
				return p.failed()
			}
			format = rest
		}
	}
	p.skipSpace()
	for format != "" && (isSpace(format[0]) || strings.HasPrefix(format, "%n") || strings.HasPrefix(format, "%t")) {
		if format[0] == '%' {
			format = format[1:]
		}
		format = format[1:]
	}
	if format == "%" {
		return value.OutOfRange("Format string cannot end with a single '%%'")
	}
	if format != "" || p.rest != "" {
		return p.failed()
	}
	return nil
}

// number reads up to width digits, after a minus sign if least is negative. Their value must be between
// least and most.
func (p *timeParser) number(width, least, most int) (n int, ok bool) {
	i, negative := 0, false
	if p.rest != "" && p.rest[0] == '-' && least < 0 {
		negative, i = true, 1
	}
	start := i
	for i < len(p.rest) && i-start < width && p.rest[i] >= '0' && p.rest[i] <= '9' {
		n = n*10 + int(p.rest[i]-'0')
		i++
	}
	if negative {
		n = -n
	}
	ok = i > start && n >= least && n <= most
	if ok {
		p.rest = p.rest[i:]
	}
	return n, ok
}

func (p *timeParser) set(to *int, width, least, most int) bool {
	n, ok := p.number(width, least, most)
	if ok {
		*to = n
	}
	return ok
}

// name reads a name of names, or its first three letters, in any letter case.
func (p *timeParser) name(names func(i int) string, count int) (i int, ok bool) {
	for i := range count {
		for _, name := range []string{names(i), names(i)[:3]} {
			if len(p.rest) >= len(name) && strings.EqualFold(p.rest[:len(name)], name) {
				p.rest = p.rest[len(name):]
				return i, true
			}
		}
	}
	return 0, false
}

func (p *timeParser) literal(c byte) bool {
	if p.rest == "" || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

// fullYear reads a year, of four digits if another element follows.
func (p *timeParser) fullYear(rest string) bool {
	width, most := 5, 10000
	if strings.HasPrefix(rest, "%") {
		width, most = 4, 9999
	}
	p.hasCentury, p.explicitCentury = false, false
	return p.set(&p.year, width, 0, most)
}

func (p *timeParser) shortYear() bool {
	n, ok := p.number(2, 0, 99)
	if !ok {
		return false
	}
	if p.year, p.hasCentury = n, true; !p.explicitCentury {
		p.century = 19
		if n < 69 {
			p.century = 20
		}
	}
	return true
}

func (p *timeParser) centuryYear(rest string) bool {
	width, most := 3, 100
	if strings.HasPrefix(rest, "%") {
		width, most = 2, 99
	}
	if !p.hasCentury {
		p.year = 0
	}
	p.hasCentury, p.explicitCentury = true, true
	return p.set(&p.century, width, 0, most)
}

func (p *timeParser) hour12() bool {
	p.skipSpace()
	n, ok := p.number(2, 1, 12)
	p.hour, p.twelveHour = n%12, true
	return ok
}

func (p *timeParser) hour24() bool {
	p.twelveHour = false
	return p.set(&p.hour, 2, 0, 23)
}

func (p *timeParser) meridian() bool {
	if len(p.rest) < 2 || p.rest[1]|0x20 != 'm' || p.rest[0]|0x20 != 'a' && p.rest[0]|0x20 != 'p' {
		return false
	}
	p.afternoon = p.rest[0]|0x20 == 'p'
	p.rest = p.rest[2:]
	return true
}

// all reads elements, and characters between them.
func (p *timeParser) all(format string) (bool, error) {
	for format != "" {
		if format[0] != '%' {
			if format[0] == ' ' {
				p.skipSpace()
			} else if !p.literal(format[0]) {
				return false, nil
			}
			format = format[1:]
			continue
		}
		element, rest := cutElement(format)
		if ok, err := p.element(element, rest); !ok || err != nil {
			return ok, err
		}
		format = rest
	}
	return true, nil
}

// element reads an element; rest is the format after it.
func (p *timeParser) element(element, rest string) (ok bool, err error) {
	last := element[len(element)-1]
	p.days.next(last)
	if len(element) > 2 {
		switch {
		case element == "%Ez":
			if p.literal('Z') {
				p.zone = time.UTC
				return true, nil
			}
			return p.offset(true)
		case element == "%E4Y":
			before := len(p.rest)
			ok := p.fullYear("%")
			return ok && before-len(p.rest) == 4, nil
		case last == 'S' && element[1] == 'E':
			digits := element[2 : len(element)-1]
			if digits != "*" && (len(digits) > 1 || digits > "6") || !p.set(&p.second, 2, 0, 60) {
				return false, nil
			}
			if digits != "0" && p.literal('.') {
				return p.fraction(digits), nil
			}
			return true, nil
		case len(element) > 3:
			return false, nil
		}
	}
	switch last {
	case 'A', 'a':
		_, ok = p.name(func(i int) string { return time.Weekday(i).String() }, 7)
	case 'B', 'b', 'h':
		var i int
		i, ok = p.name(func(i int) string { return time.Month(i + 1).String() }, 12)
		p.month = i + 1
	case 'C':
		ok = p.centuryYear(rest)
	case 'c':
		return p.all("%a %b %e %H:%M:%S %Y")
	case 'D', 'x':
		return p.all("%m/%d/%y")
	case 'd':
		ok = p.set(&p.day, 2, 1, 31)
	case 'e':
		p.skipSpace()
		ok = p.set(&p.day, 2, 1, 31)
	case 'F':
		return p.all("%Y-%m-%d")
	case 'H':
		ok = p.hour24()
	case 'I', 'l':
		ok = p.hour12()
	case 'j':
		ok = p.set(&p.days.yearDay, 3, 1, 366)
	case 'k':
		p.skipSpace()
		ok = p.hour24()
	case 'M':
		ok = p.set(&p.minute, 2, 0, 59)
	case 'm':
		ok = p.set(&p.month, 2, 1, 12)
	case 'n', 't':
		p.skipSpace()
		ok = true
	case 'P', 'p':
		ok = p.meridian()
	case 'Q':
		var quarter int
		quarter, ok = p.number(1, 1, 4)
		p.month, p.day = (quarter-1)*3+1, 1
	case 'R':
		return p.all("%H:%M")
	case 'r':
		return p.all("%I:%M:%S %p")
	case 'S':
		ok = p.set(&p.second, 2, 0, 60)
	case 's':
		var n int
		n, ok = p.number(12, -1<<40, 1<<40)
		p.unix, p.hasUnix = int64(n), true
	case 'T', 'X':
		return p.all("%H:%M:%S")
	case 'u':
		_, ok = p.number(1, 1, 7)
	case 'w':
		_, ok = p.number(1, 0, 6)
	case 'Y':
		ok = p.fullYear(rest)
	case 'y':
		ok = p.shortYear()
	case 'Z':
		return p.zoneName()
	case 'z':
		return p.offset(false)
	case '%':
		ok = p.literal('%')
	case 'G':
		ok = p.set(&p.days.isoYear, 5, 0, 99999)
	case 'g':
		if ok = p.set(&p.days.isoYear, 2, 0, 99); p.days.isoYear < 69 {
			p.days.isoYear += 100
		}
		p.days.isoYear += 1900
	case 'J':
		ok = p.set(&p.days.isoDay, 3, 1, 371)
	case 'U', 'W':
		p.days.weekStart = time.Sunday
		if last == 'W' {
			p.days.weekStart = time.Monday
		}
		ok = p.set(&p.days.week, 2, 0, 53)
	case 'V':
		_, ok = p.number(2, 1, 53)
	}
	return ok, nil
}

// fraction reads at least one digit of a fraction of a second; * is any number. Of more than six
// digits, the rest is ignored.
func (p *timeParser) fraction(digits string) bool {
	most := len(p.rest)
	if digits != "*" {
		most = int(digits[0] - '0')
	}
	scale, before := 100000, len(p.rest)
	for i := 0; i < most && p.rest != "" && p.rest[0] >= '0' && p.rest[0] <= '9'; i++ {
		p.micros += int(p.rest[0]-'0') * scale
		scale /= 10
		p.rest = p.rest[1:]
	}
	return len(p.rest) < before
}

// offset reads +HHMM, +HH:MM or +HH.
func (p *timeParser) offset(colon bool) (bool, error) {
	if p.rest == "" || p.rest[0] != '+' && p.rest[0] != '-' {
		return false, nil
	}
	sign := p.rest[0]
	p.rest = p.rest[1:]
	before := len(p.rest)
	hours, ok := p.number(2, 0, 23)
	if !ok || before-len(p.rest) != 2 {
		return false, nil
	}
	saved := p.rest
	if colon {
		p.literal(':')
	}
	before = len(p.rest)
	minutes, ok := p.number(2, 0, 59)
	if !ok || before-len(p.rest) != 2 {
		p.rest, minutes = saved, 0
	}
	seconds := (hours*60 + minutes) * 60
	if seconds > 14*3600 {
		return false, value.OutOfRange("Timezone offset out of valid range -14:00 to +14:00: %c%02d:%02d", sign, hours, minutes)
	}
	if sign == '-' {
		seconds = -seconds
	}
	p.zone = time.FixedZone("", seconds)
	return true, nil
}

// zoneName reads a name of a time zone, or UTC with an offset.
func (p *timeParser) zoneName() (bool, error) {
	i := strings.IndexFunc(p.rest, func(r rune) bool { return r < 0x80 && isSpace(byte(r)) })
	if i < 0 {
		i = len(p.rest)
	}
	name := p.rest[:i]
	p.rest = p.rest[i:]
	if offset, ok := strings.CutPrefix(name, "UTC"); ok && offset != "" {
		name = offset
		if len(name) == 5 && !strings.Contains(name, ":") {
			name = name[:3] + ":" + name[3:]
		}
	}
	zone, err := value.Zone(name)
	if err != nil {
		return false, err
	}
	p.zone = zone
	return true, nil
}

func (p *timeParser) instant() (int64, error) {
	if p.hasUnix {
		if micros := p.unix * 1e6; inRange(micros) {
			return micros, nil
		}
		return 0, value.OutOfRange("Invalid result from parsing function")
	}
	if p.twelveHour && p.afternoon {
		p.hour += 12
	}
	year := p.year
	if p.hasCentury {
		year += p.century * 100
	}
	if err := p.days.apply(&year, &p.month, &p.day); err != nil {
		return 0, err
	}
	if p.day > value.DaysIn(year, p.month) {
		return 0, value.OutOfRange("Out-of-range datetime field in parsing function")
	}
	if p.second == 60 {
		p.micros = 0 // the leap second is the next one
	}
	local := time.Date(year, time.Month(p.month), p.day, p.hour, p.minute, p.second, p.micros*1000, time.UTC)
	micros := value.Instant(local, p.zone)
	if !inRange(micros) {
		return 0, value.OutOfRange("Invalid result from parsing function")
	}
	return micros, nil
}
