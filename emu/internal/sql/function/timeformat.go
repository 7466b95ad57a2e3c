package function

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// notInDates are the elements of a format that a DATE does not have.
const notInDates = "cHIklMPpRrSsTXZz"

// formatTime prints a time by the elements of strftime. For a DATE, elements of the time stay as
// they are.
func formatTime(format string, t time.Time, isDate bool) (value.Value, error) {
	f := &timeFormatter{t: t, isDate: isDate}
	if err := f.format(format); err != nil {
		return value.Null, err
	}
	return value.String(f.out.String()), nil
}

type timeFormatter struct {
	t      time.Time
	isDate bool
	out    strings.Builder
}

func (f *timeFormatter) format(format string) error {
	for format != "" {
		i := strings.IndexByte(format, '%')
		if i < 0 || i == len(format)-1 {
			f.out.WriteString(format)
			break
		}
		f.out.WriteString(format[:i])
		element, rest := cutElement(format[i:])
		last := element[len(element)-1]
		switch {
		case f.isDate && strings.IndexByte(notInDates, last) >= 0 && element != "%%":
			f.out.WriteString(element)
		case len(element) > 2:
			f.extended(element)
		default:
			f.element(last)
		}
		if format = rest; f.out.Len() > maxOutput {
			return value.Exhausted("a result has more than %d bytes", maxOutput)
		}
	}
	return nil
}

// cutElement returns an element at the front of a format: %Y, %Ez, %E3S, %E*S or %Oy.
func cutElement(format string) (element, rest string) {
	n := 2
	if format[1] == 'E' || format[1] == 'O' {
		for n < len(format) && (format[n] >= '0' && format[n] <= '9' || format[n] == '*') {
			n++
		}
		n++
	}
	n = min(n, len(format))
	return format[:n], format[n:]
}

// extended writes elements with a modifier.
func (f *timeFormatter) extended(element string) {
	last := element[len(element)-1]
	middle := element[2 : len(element)-1]
	switch {
	case element == "%Ez":
		f.offset(":")
	case element == "%E4Y":
		fmt.Fprintf(&f.out, "%04d", f.t.Year())
	case last == 'S' && middle == "*":
		f.number(f.t.Second(), 2, '0')
		if micros := f.t.Nanosecond() / 1000; micros != 0 {
			f.out.WriteString("." + strings.TrimRight(fmt.Sprintf("%06d", micros), "0"))
		}
	case last == 'S' && middle != "" && element[1] == 'E':
		digits, err := strconv.Atoi(middle)
		if err != nil || digits > 15 {
			f.out.WriteString(element)
			return
		}
		f.number(f.t.Second(), 2, '0')
		if digits > 0 {
			f.out.WriteString("." + fmt.Sprintf("%09d000000", f.t.Nanosecond())[:digits])
		}
	case middle == "" && strings.IndexByte(map[byte]string{'E': "cCxXyY", 'O': "deHImMSuUVwWy"}[element[1]], last) >= 0:
		f.element(last) // it has no other form in English
	default:
		f.out.WriteString(element)
	}
}

func (f *timeFormatter) number(n, width int, fill byte) {
	digits := strconv.Itoa(n)
	for range width - len(digits) {
		f.out.WriteByte(fill)
	}
	f.out.WriteString(digits)
}

func (f *timeFormatter) offset(separator string) {
	_, seconds := f.t.Zone()
	sign := '+'
	if seconds < 0 {
		sign, seconds = '-', -seconds
	}
	fmt.Fprintf(&f.out, "%c%02d%s%02d", sign, seconds/3600, separator, seconds/60%60)
}

// composed are the elements that stand for others.
var composed = map[byte]string{
	'c': "%a %b %e %H:%M:%S %Y", 'D': "%m/%d/%y", 'F': "%Y-%m-%d", 'R': "%H:%M", 'r': "%I:%M:%S %p", 'T': "%H:%M:%S",
	'X': "%H:%M:%S", 'x': "%m/%d/%y",
}

func (f *timeFormatter) element(e byte) {
	t := f.t
	if format, ok := composed[e]; ok {
		for ; format != ""; format = format[1:] {
			if format[0] == '%' {
				format = format[1:]
				f.element(format[0])
			} else {
				f.out.WriteByte(format[0])
			}
		}
		return
	}
	hour12 := (t.Hour()+11)%12 + 1
	isoYear, isoWeek := t.ISOWeek()
	switch e {
	case 'A':
		f.out.WriteString(t.Weekday().String())
	case 'a':
		f.out.WriteString(t.Weekday().String()[:3])
	case 'B':
		f.out.WriteString(t.Month().String())
	case 'b', 'h':
		f.out.WriteString(t.Month().String()[:3])
	case 'C':
		f.number(t.Year()/100, 2, '0')
	case 'd':
		f.number(t.Day(), 2, '0')
	case 'e':
		f.number(t.Day(), 2, ' ')
	case 'G':
		f.out.WriteString(strconv.Itoa(isoYear))
	case 'g':
		f.number(isoYear%100, 2, '0')
	case 'H':
		f.number(t.Hour(), 2, '0')
	case 'I':
		f.number(hour12, 2, '0')
	case 'J':
		f.number(int(dayOf(t.Year(), t.Month(), t.Day())-isoYearStart(isoYear))+1, 3, '0')
	case 'j':
		f.number(t.YearDay(), 3, '0')
	case 'k':
		f.number(t.Hour(), 2, ' ')
	case 'l':
		f.number(hour12, 2, ' ')
	case 'M':
		f.number(t.Minute(), 2, '0')
	case 'm':
		f.number(int(t.Month()), 2, '0')
	case 'n':
		f.out.WriteByte('\n')
	case 'P', 'p':
		half := "am"
		if t.Hour() >= 12 {
			half = "pm"
		}
		if e == 'p' {
			half = strings.ToUpper(half)
		}
		f.out.WriteString(half)
	case 'Q':
		f.number(int(t.Month()-1)/3+1, 1, '0')
	case 'S':
		f.number(t.Second(), 2, '0')
	case 's':
		f.out.WriteString(strconv.FormatInt(t.Unix(), 10))
	case 't':
		f.out.WriteByte('\t')
	case 'U':
		f.number(weekOf(t, time.Sunday), 2, '0')
	case 'u':
		f.number(int(t.Weekday()+6)%7+1, 1, '0')
	case 'V':
		f.number(isoWeek, 2, '0')
	case 'W':
		f.number(weekOf(t, time.Monday), 2, '0')
	case 'w':
		f.number(int(t.Weekday()), 1, '0')
	case 'Y':
		f.out.WriteString(strconv.Itoa(t.Year()))
	case 'y':
		f.number(t.Year()%100, 2, '0')
	case 'Z':
		f.zoneName()
	case 'z':
		f.offset("")
	case '%':
		f.out.WriteByte('%')
	default:
		f.out.WriteByte('%')
		f.out.WriteByte(e) // perhaps of a longer character
	}
}

// zoneName writes UTC, UTC-7 or UTC+5:30.
func (f *timeFormatter) zoneName() {
	f.out.WriteString("UTC")
	_, seconds := f.t.Zone()
	if seconds == 0 {
		return
	}
	sign := '+'
	if seconds < 0 {
		sign, seconds = '-', -seconds
	}
	fmt.Fprintf(&f.out, "%c%d", sign, seconds/3600)
	if minutes := seconds / 60 % 60; minutes != 0 {
		fmt.Fprintf(&f.out, ":%02d", minutes)
	}
}
