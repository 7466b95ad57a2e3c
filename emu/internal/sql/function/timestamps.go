package function

import (
	"time"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

const timestampParts = clockParts + "DAY "

func timestampTable() []*Function {
	now := fn("CURRENT_TIMESTAMP", nullable("-> TIMESTAMP", func(ctx *Context, _ []value.Value) (value.Value, error) {
		return value.Timestamp(ctx.NowMicros), nil
	}))
	now.Volatile = true
	return []*Function{
		now,
		fn("TIMESTAMP", sig("STRING, [STRING] -> TIMESTAMP", timestampOfText), sig("TIMESTAMP -> TIMESTAMP", first),
			sig("DATE, [STRING] -> TIMESTAMP", func(ctx *Context, a []value.Value) (value.Value, error) {
				zone, err := zoneOf(ctx, a, 1)
				if err != nil {
					return value.Null, err
				}
				return value.Cast(a[0], value.DateType, value.TimestampType, zone)
			})),
		fn("STRING", sig("TIMESTAMP, [STRING] -> STRING", func(ctx *Context, a []value.Value) (value.Value, error) {
			zone, err := zoneOf(ctx, a, 1)
			if err != nil {
				return value.Null, err
			}
			return value.String(value.TimestampText(a[0].Int64(), zone)), nil
		}), sig("DATE -> STRING", func(_ *Context, a []value.Value) (value.Value, error) {
			return value.String(value.DateText(a[0].Int64())), nil
		})),
		fn("TIMESTAMP_ADD", bound("TIMESTAMP, INT64, PART -> TIMESTAMP", bindTimestampStep(1))),
		fn("TIMESTAMP_SUB", bound("TIMESTAMP, INT64, PART -> TIMESTAMP", bindTimestampStep(-1))),
		fn("TIMESTAMP_DIFF", bound("TIMESTAMP, TIMESTAMP, PART -> INT64", func(c *Call) (Eval, error) {
			p, err := c.datePart(2, timestampParts)
			unit := microsOf[p.unit]
			return func(_ *Context, a []value.Value) (value.Value, error) {
				return value.Int64((a[0].Int64() - a[1].Int64()) / unit), nil
			}, err
		})),
		fn("TIMESTAMP_TRUNC", bound("TIMESTAMP, PART, [STRING] -> TIMESTAMP", bindTimestampTrunc)),
		fromUnix("TIMESTAMP_SECONDS", 1e6), fromUnix("TIMESTAMP_MILLIS", 1e3), fromUnix("TIMESTAMP_MICROS", 1),
		toUnix("UNIX_SECONDS", 1e6), toUnix("UNIX_MILLIS", 1e3), toUnix("UNIX_MICROS", 1),
		fn("FORMAT_TIMESTAMP", sig("STRING, TIMESTAMP, [STRING] -> STRING", func(ctx *Context, a []value.Value) (value.Value, error) {
			zone, err := zoneOf(ctx, a, 2)
			if err != nil {
				return value.Null, err
			}
			return formatTime(a[0].Str(), value.PrintedTime(a[1].Int64(), zone), false)
		})),
		fn("PARSE_TIMESTAMP", sig("STRING, STRING, [STRING] -> TIMESTAMP", func(ctx *Context, a []value.Value) (value.Value, error) {
			zone, err := zoneOf(ctx, a, 2)
			if err != nil {
				return value.Null, err
			}
			micros, err := parseTime(a[0].Str(), a[1].Str(), zone, false)
			if err != nil {
				return value.Null, err
			}
			return value.Timestamp(micros), nil
		})),
		fn("GENERATE_TIMESTAMP_ARRAY", bound("TIMESTAMP, TIMESTAMP, INT64, PART -> ARRAY<TIMESTAMP>", bindGenerateTimestamps)),
	}
}

// timestampOfText parses a TIMESTAMP. It refuses a text with a time zone if the call has one as its
// second argument.
func timestampOfText(ctx *Context, a []value.Value) (value.Value, error) {
	zone, err := zoneOf(ctx, a, 1)
	if err != nil {
		return value.Null, err
	}
	v, err := value.ParseTimestamp(a[0].Str(), zone)
	if err == nil && len(a) > 1 {
		// A zone in the text makes the result independent of the argument.
		other, err := value.ParseTimestamp(a[0].Str(), time.FixedZone("", 1))
		if inUTC, _ := value.ParseTimestamp(a[0].Str(), time.UTC); err == nil && other == inUTC {
			return value.Null, value.OutOfRange("Timezone is not allowed in \"%s\"", a[0].Str())
		}
	}
	return v, err
}

func inRange(micros int64) bool { return micros >= value.MinMicros && micros <= value.MaxMicros }

func bindTimestampStep(sign int64) func(c *Call) (Eval, error) {
	return func(c *Call) (Eval, error) {
		p, err := c.datePart(2, timestampParts)
		unit := microsOf[p.unit]
		return func(ctx *Context, a []value.Value) (value.Value, error) {
			at, n := a[0].Int64(), a[1].Int64()
			span := int64(value.MaxMicros - value.MinMicros)
			if limit := span / unit; n <= limit && n >= -limit {
				if sum := at + sign*n*unit; inRange(sum) {
					return value.Timestamp(sum), nil
				}
			}
			text := value.TimestampText(at, ctx.zone())
			if sign < 0 {
				return value.Null, value.OutOfRange("Subtracting %d %s from timestamp %s causes overflow", n, p.name, text)
			}
			return value.Null, value.OutOfRange("Adding %d %s to timestamp %s causes overflow", n, p.name, text)
		}, err
	}
}

func bindTimestampTrunc(c *Call) (Eval, error) {
	p, err := c.datePart(1, dateParts+clockParts)
	return func(ctx *Context, a []value.Value) (value.Value, error) {
		zone, err := zoneOf(ctx, a, 2)
		if err != nil {
			return value.Null, err
		}
		at := truncateTimestamp(a[0].Int64(), p, zone)
		if at < value.MinMicros {
			return value.Null, value.OutOfRange("Truncating %s to the nearest %s causes overflow", value.TimestampText(a[0].Int64(), zone), p.name)
		}
		return value.Timestamp(at), nil
	}, err
}

func truncateTimestamp(at int64, p part, zone *time.Location) int64 {
	if unit, ok := microsOf[p.unit]; ok && p.unit != "DAY" {
		// Hours begin with the local hour, which an offset of 5:30 moves.
		_, offset := value.TimeOf(at, zone).Zone()
		local := at + int64(offset)*1e6
		return at - floorMod(local, unit)
	}
	return value.Instant(value.TimeOfDate(truncateDate(value.DateIn(at, zone), p)), zone)
}

func floorMod(n, by int64) int64 {
	rest := n % by
	if rest < 0 {
		rest += by
	}
	return rest
}

func fromUnix(name string, unit int64) *Function {
	return fn(name, sig("INT64 -> TIMESTAMP", func(_ *Context, a []value.Value) (value.Value, error) {
		n := a[0].Int64()
		if n > value.MaxMicros/unit || n < value.MinMicros/unit {
			return value.Null, value.OutOfRange("Invalid timestamp value: %d", n)
		}
		return value.Timestamp(n * unit), nil
	}), sig("TIMESTAMP -> TIMESTAMP", first))
}

// toUnix rounds down, even before 1970.
func toUnix(name string, unit int64) *Function {
	return fn(name, sig("TIMESTAMP -> INT64", func(_ *Context, a []value.Value) (value.Value, error) {
		n := a[0].Int64()
		return value.Int64((n - floorMod(n, unit)) / unit), nil
	}))
}

func bindGenerateTimestamps(c *Call) (Eval, error) {
	p, err := c.datePart(3, timestampParts)
	unit := microsOf[p.unit]
	return func(_ *Context, a []value.Value) (value.Value, error) {
		start, end, n := a[0].Int64(), a[1].Int64(), a[2].Int64()
		if n == 0 {
			return value.Null, value.OutOfRange("Sequence step cannot be 0.")
		}
		limit := int64(value.MaxMicros-value.MinMicros) / unit
		step := min(max(n, -limit), limit) * unit
		if !inRange(start) { // a cell may have such a timestamp
			return value.Array(nil), nil
		}
		return sequence(start, min(max(end, value.MinMicros), value.MaxMicros), step, value.Timestamp)
	}, err
}
