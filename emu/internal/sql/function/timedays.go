package function

import (
	"time"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// dayElements are the elements of a format that describe a day by its week or by its number in the year.
// at has the last position of each element in the format, counted from 1.
type dayElements struct {
	position int
	at       map[byte]int

	yearDay, week   int
	weekStart       time.Weekday
	isoYear, isoDay int
}

// next counts an element of the format.
func (d *dayElements) next(element byte) {
	if d.at == nil {
		d.at = map[byte]int{}
	}
	d.position++
	d.at[element] = d.position
}

// last returns the last position of some elements.
func (d *dayElements) last(elements string) (position int) {
	for i := range len(elements) {
		position = max(position, d.at[elements[i]])
	}
	return position
}

// Elements that set the year, the month and the day.
const (
	yearElements  = "YCycsDFx"
	monthElements = "mQcsDFxBbh"
	monthDays     = "dQcsDFxe"
)

// apply changes a date by these elements. Those of the ISO calendar count only if there are no others;
// the day of a week is not supported, as in GoogleSQL.
func (d *dayElements) apply(year, month, day *int) error {
	week, yearDay, weekday := d.last("UW"), d.last("j"), d.last("Aauw")
	isoYear := d.last("Gg")
	if d.last(yearElements+monthElements+monthDays+"jUW") > 0 {
		isoYear = 0
	}
	if isoYear > 0 {
		days, err := d.isoDate(weekday)
		if err != nil {
			return err
		}
		t := value.TimeOfDate(days)
		*year, *month, *day = t.Year(), int(t.Month()), t.Day()
		return nil
	}
	var days int64
	var position int
	switch {
	case yearDay > 0 && (yearDay > week || weekday == 0):
		if d.yearDay == 366 && value.DaysIn(*year, 2) == 28 {
			return value.OutOfRange("Year %d has 365 days, but the specified day of year was 366", *year)
		}
		days, position = dayOf(*year, 1, d.yearDay), yearDay
	case week > 0:
		first := dayOf(*year, 1, 1)
		before := int64((d.weekStart - value.TimeOfDate(first).Weekday() + 7) % 7) // days of week 0
		least, most := 0, 52
		if before == 0 {
			least = 1
		}
		if dayOf(*year+1, 1, 1)-first-before > 364 {
			most = 53
		}
		if d.week < least || d.week > most {
			return value.OutOfRange("Week number %d is invalid for year %d", d.week, *year)
		}
		if weekday > 0 {
			return value.OutOfRange("Weekday parse elements are not supported yet")
		}
		days, position = first+before+int64(7*(d.week-1)), week
	default:
		return nil
	}
	t := value.TimeOfDate(days)
	if d.last(yearElements) < position {
		*year = t.Year()
	}
	if d.last(monthElements) < position {
		*month = int(t.Month())
	}
	if d.last(monthDays) < position {
		*day = t.Day()
	}
	return nil
}

// isoDate returns the day of a year of the ISO calendar, perhaps with the number of the day.
func (d *dayElements) isoDate(weekday int) (int64, error) {
	start := isoYearStart(d.isoYear)
	length := int(isoYearStart(d.isoYear+1) - start)
	switch {
	case d.at['J'] > 0 && (d.at['J'] > d.at['V'] || weekday == 0):
		if d.isoDay > length {
			return 0, value.OutOfRange("ISO Year %d has %d days, but the specified day of year was %d", d.isoYear, length, d.isoDay)
		}
		return start + int64(d.isoDay) - 1, nil
	case d.at['V'] > 0:
		return 0, value.OutOfRange("ISO parse elements are not supported yet")
	}
	return start, nil
}
