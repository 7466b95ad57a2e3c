package function

import (
	"time"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

func dateTable() []*Function {
	currentDate := fn("CURRENT_DATE", nullable("-> DATE", func(ctx *Context, _ []value.Value) (value.Value, error) {
		return value.Date(value.DateIn(ctx.NowMicros, ctx.zone())), nil
	}), sig("STRING -> DATE", func(ctx *Context, a []value.Value) (value.Value, error) {
		zone, err := value.Zone(a[0].Str())
		if err != nil {
			return value.Null, err
		}
		return value.Date(value.DateIn(ctx.NowMicros, zone)), nil
	}))
	currentDate.Volatile = true
	return []*Function{
		currentDate,
		fn("DATE", sig("INT64, INT64, INT64 -> DATE", func(_ *Context, a []value.Value) (value.Value, error) {
			y, m, d := a[0].Int64(), a[1].Int64(), a[2].Int64()
			days, ok := value.DateOf(clampInt(y), clampInt(m), clampInt(d))
			if !ok {
				return value.Null, value.OutOfRange("Input calculates to invalid date: %04d-%02d-%02d", y, m, d)
			}
			return value.Date(days), nil
		}), sig("TIMESTAMP, [STRING] -> DATE", func(ctx *Context, a []value.Value) (value.Value, error) {
			zone, err := zoneOf(ctx, a, 1)
			if err != nil {
				return value.Null, err
			}
			return value.Cast(a[0], value.TimestampType, value.DateType, zone)
		}), sig("DATE -> DATE", first)),
		fn("DATE_ADD", bound("DATE, INT64, PART -> DATE", bindDateStep(1))),
		fn("DATE_SUB", bound("DATE, INT64, PART -> DATE", bindDateStep(-1))),
		fn("DATE_DIFF", bound("DATE, DATE, PART -> INT64", func(c *Call) (Eval, error) {
			p, err := c.datePart(2, dateParts)
			return func(_ *Context, a []value.Value) (value.Value, error) {
				return value.Int64(diffDates(a[0].Int64(), a[1].Int64(), p)), nil
			}, err
		})),
		fn("DATE_TRUNC", bound("DATE, PART -> DATE", func(c *Call) (Eval, error) {
			p, err := c.datePart(1, dateParts)
			return func(_ *Context, a []value.Value) (value.Value, error) {
				days := truncateDate(a[0].Int64(), p)
				if days < value.MinDate {
					return value.Null, value.OutOfRange("Truncating date %s to %s resulted in an out of range date value: %d", value.DateText(a[0].Int64()), p.name, days)
				}
				return value.Date(days), nil
			}, err
		})),
		fn("LAST_DAY", bound("DATE, [PART] -> DATE", bindLastDay)),
		fn("DATE_FROM_UNIX_DATE", sig("INT64 -> DATE", func(_ *Context, a []value.Value) (value.Value, error) {
			if n := a[0].Int64(); n < value.MinDate || n > value.MaxDate {
				return value.Null, value.OutOfRange("Invalid date value: %d", n)
			}
			return value.Date(a[0].Int64()), nil
		})),
		fn("UNIX_DATE", sig("DATE -> INT64", func(_ *Context, a []value.Value) (value.Value, error) { return value.Int64(a[0].Int64()), nil })),
		fn("EXTRACT", extractSignatures()...),
		fn("FORMAT_DATE", sig("STRING, DATE -> STRING", func(_ *Context, a []value.Value) (value.Value, error) {
			return formatTime(a[0].Str(), value.TimeOfDate(a[1].Int64()), true)
		})),
		fn("PARSE_DATE", sig("STRING, STRING -> DATE", func(_ *Context, a []value.Value) (value.Value, error) {
			micros, err := parseTime(a[0].Str(), a[1].Str(), time.UTC, true)
			if err != nil {
				return value.Null, err
			}
			return value.Date(value.DateIn(micros, time.UTC)), nil
		})),
		fn("GENERATE_DATE_ARRAY", bound("DATE, DATE, [INT64], [PART] -> ARRAY<DATE>", bindGenerateDates)),
	}
}

// clampInt keeps numbers outside of the calendar outside of it.
func clampInt(n int64) int { return int(min(max(n, -1), 100000)) }

// zoneOf returns the time zone of an optional argument.
func zoneOf(ctx *Context, a []value.Value, i int) (*time.Location, error) {
	if i >= len(a) {
		return ctx.zone(), nil
	}
	return value.Zone(a[i].Str())
}

func bindDateStep(sign int64) func(c *Call) (Eval, error) {
	return func(c *Call) (Eval, error) {
		p, err := c.datePart(2, stepParts)
		return stepDate(sign, p), err
	}
}

// stepDate adds a number of parts to a date, or subtracts it if sign is negative.
func stepDate(sign int64, p part) Eval {
	return func(_ *Context, a []value.Value) (value.Value, error) {
		n := a[1].Int64()
		days, ok := addToDate(a[0].Int64(), sign*max(n, -1<<40), p)
		switch {
		case ok:
			return value.Date(days), nil
		case sign < 0:
			return value.Null, value.OutOfRange("Subtracting %d %s from date %s causes overflow", n, p.name, value.DateText(a[0].Int64()))
		}
		return value.Null, value.OutOfRange("Adding %d %s to date %s causes overflow", n, p.name, value.DateText(a[0].Int64()))
	}
}

// The operators + and - of a date and a number of days.
var (
	addDays      = stepDate(1, part{name: "DAY", unit: "DAY"})
	subtractDays = stepDate(-1, part{name: "DAY", unit: "DAY"})
)

func bindLastDay(c *Call) (Eval, error) {
	p := part{name: "MONTH", unit: "MONTH"}
	if len(c.Params) > 1 {
		var err error
		if p, err = c.datePart(1, " WEEK ISOWEEK MONTH QUARTER YEAR ISOYEAR "); err != nil {
			return nil, err
		}
	}
	return func(_ *Context, a []value.Value) (value.Value, error) {
		start := truncateDate(a[0].Int64(), p)
		var next int64
		y, m, _ := value.TimeOfDate(start).Date()
		switch p.unit {
		case "WEEK", "ISOWEEK":
			next = start + 7
		case "MONTH":
			next = dayOf(y, m+1, 1)
		case "QUARTER":
			next = dayOf(y, m+3, 1)
		case "YEAR":
			next = dayOf(y+1, 1, 1)
		case "ISOYEAR":
			iso, _ := value.TimeOfDate(a[0].Int64()).ISOWeek()
			next = isoYearStart(iso + 1)
		}
		if next-1 > value.MaxDate {
			return value.Null, value.OutOfRange("Last day of date %s in %s resulted in an out of range date value: %d", value.DateText(a[0].Int64()), p.name, next-1)
		}
		return value.Date(next - 1), nil
	}, nil
}

// extractSignatures returns the signatures of EXTRACT(part FROM x [AT TIME ZONE zone]); the part is
// the first argument.
func extractSignatures() []signature {
	ofDate := func(c *Call) (Eval, error) {
		p, err := c.datePart(0, extractParts)
		if err == nil && p.unit == "DATE" {
			err = c.unsupported(p)
		}
		return func(_ *Context, a []value.Value) (value.Value, error) {
			return value.Int64(extractDate(value.TimeOfDate(a[1].Int64()), p)), nil
		}, err
	}
	ofTimestamp := func(c *Call) (Eval, error) {
		p, err := c.datePart(0, extractParts+clockParts)
		if p.unit == "DATE" {
			c.Result = value.DateType
		}
		return func(ctx *Context, a []value.Value) (value.Value, error) {
			zone, err := zoneOf(ctx, a, 2)
			if err != nil {
				return value.Null, err
			}
			if p.unit == "DATE" {
				return value.Cast(a[1], value.TimestampType, value.DateType, zone)
			}
			return value.Int64(extractDate(value.TimeOf(a[1].Int64(), zone), p)), nil
		}, err
	}
	return []signature{bound("PART, DATE -> INT64", ofDate), bound("PART, TIMESTAMP, [STRING] -> INT64", ofTimestamp)}
}

func bindGenerateDates(c *Call) (Eval, error) {
	p := part{name: "DAY", unit: "DAY"}
	if len(c.Params) > 3 {
		var err error
		if p, err = c.datePart(3, stepParts); err != nil {
			return nil, err
		}
	}
	return func(_ *Context, a []value.Value) (value.Value, error) {
		start, end, step := a[0].Int64(), a[1].Int64(), int64(1)
		if len(a) > 2 {
			step = max(min(a[2].Int64(), 1<<31), -(1 << 31))
		}
		if step == 0 {
			return value.Null, value.OutOfRange("Sequence step cannot be 0.")
		}
		var out []value.Value
		// Each day is computed from the start, since the last day of a month would drift.
		for i := int64(0); ; i++ {
			days, ok := addToDate(start, i*step, p)
			if !ok || step > 0 && days > end || step < 0 && days < end {
				return value.Array(out), nil
			}
			if len(out) == maxElements {
				return value.Null, tooManyElements()
			}
			out = append(out, value.Date(days))
		}
	}, nil
}

func tooManyElements() error {
	return value.OutOfRange("Cannot generate arrays with more than %d elements.", maxElements)
}
