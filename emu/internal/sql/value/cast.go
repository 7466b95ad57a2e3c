package value

import (
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// CastFunc casts a value that is not NULL; zone is the time zone of texts and dates without one.
type CastFunc func(v Value, zone *time.Location) (Value, error)

// Caster returns the cast between two types; ok is false if CAST is not defined for them. The zero
// Type, of a NULL, can be cast to every type.
func Caster(from, to Type) (cast CastFunc, ok bool) {
	if from.Equal(to) || from.IsUnknown() {
		return keep, true
	}
	if from.kind == KindArray && to.kind == KindArray {
		return arrayCaster(from, to)
	}
	if from.kind == KindStruct && to.kind == KindStruct {
		return structCaster(from, to)
	}
	switch {
	case to.kind == KindEnum:
		return enumCaster(from, to)
	case from.kind == KindString && to.kind == KindProto:
		return messageFromText(to), true
	case from.kind == KindProto && to.kind == KindString:
		return messageToText(from), true
	}
	cast, ok = casts[[2]Kind{from.kind, to.kind}]
	return cast, ok
}

// Cast casts a value, and NULL to NULL.
func Cast(v Value, from, to Type, zone *time.Location) (Value, error) {
	cast, ok := Caster(from, to)
	if !ok {
		return Null, InvalidArgument("Invalid cast from %v to %v", from, to)
	}
	if v.IsNull() {
		return Null, nil
	}
	return cast(v, zone)
}

func keep(v Value, _ *time.Location) (Value, error) { return v, nil }

// casts are the casts between scalar types of two kinds.
var casts = map[[2]Kind]CastFunc{
	{KindBool, KindInt64}: func(v Value, _ *time.Location) (Value, error) { return Int64(int64(v.n)), nil },
	{KindBool, KindString}: func(v Value, _ *time.Location) (Value, error) {
		return String(strconv.FormatBool(v.Bool())), nil
	},
	{KindInt64, KindBool}:    func(v Value, _ *time.Location) (Value, error) { return Bool(v.n != 0), nil },
	{KindInt64, KindFloat32}: func(v Value, _ *time.Location) (Value, error) { return Float32(float32(v.Int64())), nil },
	{KindInt64, KindFloat64}: func(v Value, _ *time.Location) (Value, error) { return Float64(float64(v.Int64())), nil },
	{KindInt64, KindString}: func(v Value, _ *time.Location) (Value, error) {
		return String(strconv.FormatInt(v.Int64(), 10)), nil
	},
	{KindFloat32, KindInt64}:   floatToInt,
	{KindFloat64, KindInt64}:   floatToInt,
	{KindFloat32, KindFloat64}: func(v Value, _ *time.Location) (Value, error) { return Float64(v.Float64()), nil },
	{KindFloat64, KindFloat32}: narrow,
	{KindFloat32, KindString}:  func(v Value, _ *time.Location) (Value, error) { return String(FloatText(v)), nil },
	{KindFloat64, KindString}:  func(v Value, _ *time.Location) (Value, error) { return String(FloatText(v)), nil },
	{KindString, KindBool}:     stringToBool,
	{KindString, KindInt64}:    func(v Value, _ *time.Location) (Value, error) { return ParseInt64(v.s) },
	{KindString, KindFloat32}: func(v Value, _ *time.Location) (Value, error) {
		f, err := parseFloat(v.s, 32, "float")
		return Float32(float32(f)), err
	},
	{KindString, KindFloat64}: func(v Value, _ *time.Location) (Value, error) {
		f, err := parseFloat(v.s, 64, "double")
		return Float64(f), err
	},
	{KindString, KindBytes}: func(v Value, _ *time.Location) (Value, error) { return BytesOf(v.s), nil },
	{KindBytes, KindString}: func(v Value, _ *time.Location) (Value, error) {
		if !utf8.ValidString(v.s) {
			return Null, OutOfRange("Invalid cast of bytes to UTF8 string")
		}
		return String(v.s), nil
	},
	{KindString, KindDate}:      func(v Value, _ *time.Location) (Value, error) { return ParseDate(v.s) },
	{KindString, KindTimestamp}: func(v Value, zone *time.Location) (Value, error) { return ParseTimestamp(v.s, zone) },
	{KindDate, KindString}:      func(v Value, _ *time.Location) (Value, error) { return String(DateText(v.Int64())), nil },
	{KindDate, KindTimestamp}: func(v Value, zone *time.Location) (Value, error) {
		at := Instant(TimeOfDate(v.Int64()), zone)
		if at < MinMicros || at > MaxMicros {
			return Null, OutOfRange("Cannot convert date %s to timestamp", DateText(v.Int64()))
		}
		return Timestamp(at), nil
	},
	{KindTimestamp, KindString}: func(v Value, zone *time.Location) (Value, error) {
		return String(TimestampText(v.Int64(), zone)), nil
	},
	{KindTimestamp, KindDate}: func(v Value, zone *time.Location) (Value, error) {
		days := DateIn(v.Int64(), zone)
		if days < MinDate || days > MaxDate {
			return Null, OutOfRange("Invalid date extracted from timestamp %s", TimestampText(v.Int64(), zone))
		}
		return Date(days), nil
	},
	{KindEnum, KindInt64}:  func(v Value, _ *time.Location) (Value, error) { return Int64(v.Int64()), nil },
	{KindEnum, KindString}: func(v Value, _ *time.Location) (Value, error) { return String(v.s), nil },
	{KindProto, KindBytes}: func(v Value, _ *time.Location) (Value, error) { return BytesOf(v.s), nil },
	{KindBytes, KindProto}: func(v Value, _ *time.Location) (Value, error) { return Proto(v.Bytes()), nil },
}

// floatToInt rounds half away from zero.
func floatToInt(v Value, _ *time.Location) (Value, error) {
	f := v.Float64()
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return Null, OutOfRange("Illegal conversion of non-finite floating point number to an integer: %s", FloatText(v))
	}
	if f = math.Round(f); f < math.MinInt64 || f >= -math.MinInt64 {
		return Null, OutOfRange("int64 out of range: %.6g", f)
	}
	return Int64(int64(f)), nil
}

func narrow(v Value, _ *time.Location) (Value, error) {
	f := v.Float64()
	n := float32(f)
	if math.IsInf(float64(n), 0) && !math.IsInf(f, 0) {
		return Null, OutOfRange("float out of range: %.6g", f)
	}
	return Float32(n), nil
}

func stringToBool(v Value, _ *time.Location) (Value, error) {
	switch {
	case strings.EqualFold(v.s, "true"):
		return Bool(true), nil
	case strings.EqualFold(v.s, "false"):
		return Bool(false), nil
	}
	return Null, badValue("bool", v.s)
}

// badValue returns the error for a text that is not a value of the type called name. It shortens
// a long text.
func badValue(name, text string) error {
	const longest = 32
	cut, ellipsis := text, ""
	if len(cut) > longest {
		cut, ellipsis = cut[:longest], "..."
	}
	return OutOfRange("Bad %s value: %s%s", name, escapeC(cut, false), ellipsis)
}

// escapeC escapes bytes that are not printable as in C, with octal digits. If keep is set, bytes
// outside of ASCII stay as they are.
func escapeC(s string, keep bool) string {
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c == '"' || c == '\'' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < 0x20 || c >= 0x7f && (c == 0x7f || !keep):
			b.WriteByte('\\')
			b.WriteByte('0' + c>>6)
			b.WriteByte('0' + c>>3&7)
			b.WriteByte('0' + c&7)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

const spaces = " \t\n\v\f\r"

// ParseInt64 parses decimal digits, or hexadecimal ones after 0x, with a sign and spaces around.
func ParseInt64(s string) (Value, error) {
	text := strings.Trim(s, spaces)
	digits := strings.TrimLeft(text, "+-")
	base := 10
	if len(text)-len(digits) <= 1 && len(digits) > 2 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X') {
		sign := text[:len(text)-len(digits)]
		text, base = sign+digits[2:], 16
		if c := digits[2]; c == '+' || c == '-' {
			return Null, badValue("int64", s)
		}
	}
	n, err := strconv.ParseInt(text, base, 64)
	if err != nil {
		return Null, badValue("int64", strings.TrimLeft(s, " "))
	}
	return Int64(n), nil
}

// parseFloat parses a decimal number, inf, infinity or nan in any letter case, with spaces around.
func parseFloat(s string, bits int, name string) (float64, error) {
	text := strings.Trim(s, spaces)
	if strings.ContainsAny(text, "_xXpP") {
		return 0, badValue(name, s) // which Go accepts
	}
	if strings.EqualFold(strings.TrimLeft(text, "+-"), "nan") && len(text) <= len("-nan") {
		return math.NaN(), nil
	}
	f, err := strconv.ParseFloat(strings.TrimPrefix(text, "+"), bits)
	if err != nil && !math.IsInf(f, 0) || strings.HasPrefix(text, "++") || strings.HasPrefix(text, "+-") {
		return 0, badValue(name, s)
	}
	return f, nil
}

// FloatText returns the text of a FLOAT64 with up to 15 significant digits, or with 17 if 15 do
// not identify the number. The text of a FLOAT32 has 6 or 8.
func FloatText(v Value) string {
	if v.kind == KindFloat32 {
		return floatText(v.Float64(), 32, 6, 8)
	}
	return floatText(v.Float64(), 64, 15, 17)
}

// floatText returns the text of a number with few significant digits, or with many if few do not
// identify it.
func floatText(f float64, bits, few, many int) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case f == 0:
		return "0" // of -0, too
	}
	text := strconv.FormatFloat(f, 'g', few, bits)
	if again, err := strconv.ParseFloat(text, bits); err == nil && again == f {
		return text
	}
	return strconv.FormatFloat(f, 'g', many, bits)
}

func arrayCaster(from, to Type) (CastFunc, bool) {
	cast, ok := Caster(from.Elem(), to.Elem())
	if !ok {
		return nil, false
	}
	return func(v Value, zone *time.Location) (Value, error) {
		elems, err := castAll(v.Elems(), func(int) CastFunc { return cast }, zone, "element at index %d in ARRAY")
		return Array(elems), err
	}, true
}

func structCaster(from, to Type) (CastFunc, bool) {
	if len(from.Fields()) != len(to.Fields()) {
		return nil, false
	}
	fields := make([]CastFunc, len(from.Fields()))
	for i, f := range from.Fields() {
		var ok bool
		if fields[i], ok = Caster(f.Type, to.Fields()[i].Type); !ok {
			return nil, false
		}
	}
	return func(v Value, zone *time.Location) (Value, error) {
		elems, err := castAll(v.Elems(), func(i int) CastFunc { return fields[i] }, zone, "field at index %d in STRUCT")
		return Struct(elems...), err
	}, true
}

// castAll casts the parts of a value. Errors name a part by the format where.
func castAll(in []Value, cast func(int) CastFunc, zone *time.Location, where string) ([]Value, error) {
	out := make([]Value, len(in))
	for i, v := range in {
		if v.IsNull() {
			continue
		}
		var err error
		if out[i], err = cast(i)(v, zone); err != nil {
			return nil, OutOfRange("Error casting "+where+": %v", i, err)
		}
	}
	return out, nil
}
