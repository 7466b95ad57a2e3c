package function

import (
	"strings"
	"time"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// part is a part of a date or timestamp, as in EXTRACT(MONTH FROM d).
type part struct {
	name string // as written, in upper case
	// unit is the name without the weekday of WEEK(MONDAY).
	unit string
	// start is the first day of a WEEK.
	start time.Weekday
}

var weekdays = map[string]time.Weekday{
	"SUNDAY": time.Sunday, "MONDAY": time.Monday, "TUESDAY": time.Tuesday, "WEDNESDAY": time.Wednesday,
	"THURSDAY": time.Thursday, "FRIDAY": time.Friday, "SATURDAY": time.Saturday,
}

// Parts of dates, of times, and of both for EXTRACT.
const (
	stepParts    = " DAY WEEK MONTH QUARTER YEAR "
	dateParts    = stepParts + "ISOWEEK ISOYEAR "
	clockParts   = " MICROSECOND MILLISECOND SECOND MINUTE HOUR "
	extractParts = dateParts + "DAYOFWEEK DAYOFYEAR DATE "
)

// datePart returns the date part that argument i names. allowed lists the units that the function
// supports, with a space before and after each.
func (c *Call) datePart(i int, allowed string) (part, error) {
	p := part{name: c.part(i)}
	p.unit = p.name
	if inner, ok := strings.CutPrefix(p.name, "WEEK("); ok {
		day, ok := weekdays[strings.TrimSuffix(inner, ")")]
		if !ok {
			return p, value.InvalidArgument("A valid date part name is required but found %s", p.name)
		}
		p.unit, p.start = "WEEK", day
		if allowed == stepParts {
			return p, c.unsupported(p)
		}
	}
	if p.unit == "ISOWEEK" {
		p.start = time.Monday
	}
	if !strings.Contains(allowed, " "+p.unit+" ") {
		if !strings.Contains(extractParts+clockParts+" NANOSECOND TIME DATETIME ", " "+p.unit+" ") {
			return p, value.InvalidArgument("A valid date part name is required but found %s", p.name)
		}
		return p, c.unsupported(p)
	}
	return p, nil
}

func (c *Call) unsupported(p part) error {
	return value.InvalidArgument("%s does not support the %s date part", c.Function.Name, p.name)
}

// truncateDate returns the first day of the period that has a day. It may be before MinDate.
func truncateDate(days int64, p part) int64 {
	t := value.TimeOfDate(days)
	y, m, _ := t.Date()
	switch p.unit {
	case "WEEK", "ISOWEEK":
		return days - int64((t.Weekday()-p.start+7)%7)
	case "MONTH":
		return dayOf(y, m, 1)
	case "QUARTER":
		return dayOf(y, (m-1)/3*3+1, 1)
	case "YEAR":
		return dayOf(y, 1, 1)
	case "ISOYEAR":
		isoYear, _ := t.ISOWeek()
		return isoYearStart(isoYear)
	}
	return days
}

// dayOf returns the days of a date whose month and day may be out of range.
func dayOf(y int, m time.Month, d int) int64 {
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / 86400
}

// isoYearStart returns the Monday of the week with January 4.
func isoYearStart(year int) int64 {
	fourth := dayOf(year, 1, 4)
	return fourth - int64((value.TimeOfDate(fourth).Weekday()+6)%7)
}

// addToDate adds n units; ok is false outside of the range of DATE.
func addToDate(days, n int64, p part) (sum int64, ok bool) {
	const far = 1 << 31
	if n > far || n < -far {
		return 0, false
	}
	switch p.unit {
	case "DAY":
		sum = days + n
	case "WEEK":
		sum = days + 7*n
	case "QUARTER":
		sum = addMonths(days, 3*n)
	case "MONTH":
		sum = addMonths(days, n)
	case "YEAR":
		sum = addMonths(days, 12*n)
	}
	return sum, sum >= value.MinDate && sum <= value.MaxDate
}

// addMonths keeps the day of the month, or uses the last one of a shorter month.
func addMonths(days, n int64) int64 {
	y, m, d := value.TimeOfDate(days).Date()
	months := int64(y)*12 + int64(m) - 1 + n
	year, month := months/12, months%12
	if months < 12 || year > 9999 {
		return value.MaxDate + 1 // outside of the range
	}
	return dayOf(int(year), time.Month(month+1), min(d, value.DaysIn(int(year), int(month+1))))
}

// diffDates counts the boundaries of units between two days.
func diffDates(a, b int64, p part) int64 {
	ya, ma, _ := value.TimeOfDate(a).Date()
	yb, mb, _ := value.TimeOfDate(b).Date()
	switch p.unit {
	case "WEEK", "ISOWEEK":
		return (truncateDate(a, p) - truncateDate(b, p)) / 7
	case "MONTH":
		return int64((ya-yb)*12 + int(ma-mb))
	case "QUARTER":
		return int64((ya-yb)*4 + int(ma-1)/3 - int(mb-1)/3)
	case "YEAR":
		return int64(ya - yb)
	case "ISOYEAR":
		isoA, _ := value.TimeOfDate(a).ISOWeek()
		isoB, _ := value.TimeOfDate(b).ISOWeek()
		return int64(isoA - isoB)
	}
	return a - b
}

// extractDate returns a part of a day.
func extractDate(t time.Time, p part) int64 {
	switch p.unit {
	case "YEAR":
		return int64(t.Year())
	case "ISOYEAR":
		y, _ := t.ISOWeek()
		return int64(y)
	case "QUARTER":
		return int64(t.Month()-1)/3 + 1
	case "MONTH":
		return int64(t.Month())
	case "WEEK":
		return int64(weekOf(t, p.start))
	case "ISOWEEK":
		_, w := t.ISOWeek()
		return int64(w)
	case "DAYOFYEAR":
		return int64(t.YearDay())
	case "DAYOFWEEK":
		return int64(t.Weekday()) + 1
	case "HOUR":
		return int64(t.Hour())
	case "MINUTE":
		return int64(t.Minute())
	case "SECOND":
		return int64(t.Second())
	case "MILLISECOND":
		return int64(t.Nanosecond() / 1e6)
	case "MICROSECOND":
		return int64(t.Nanosecond() / 1e3)
	}
	return int64(t.Day())
}

// weekOf returns the number of the week in the year; the days before the first start are week 0.
func weekOf(t time.Time, start time.Weekday) int {
	sinceStart := int(t.Weekday()-start+7) % 7
	return (t.YearDay() + 6 - sinceStart) / 7
}

// microsOf are the microseconds of the units of fixed length.
var microsOf = map[string]int64{
	"MICROSECOND": 1, "MILLISECOND": 1e3, "SECOND": 1e6, "MINUTE": 60e6, "HOUR": 3600e6, "DAY": 86400e6,
}
