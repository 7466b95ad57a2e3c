package function

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// CastFormat resolves CAST(a AS to FORMAT format AT TIME ZONE zone) as a call of the value, the format
// and, optionally, the zone.
func CastFormat(a, format Arg, zone *Arg, to value.Type, isSafe bool) (Call, error) {
	c := Call{Params: []value.Type{a.Type, value.StringType}, Result: to}
	if zone != nil {
		c.Params = append(c.Params, value.StringType)
	}
	if _, ok := coerce(format, value.StringType); !ok {
		return Call{}, value.InvalidArgument("FORMAT should return type STRING, but returns %s", format.name())
	}
	var cast func(ctx *Context, v value.Value, format string, zone *time.Location) (value.Value, error)
	from := a.Type.Kind()
	switch {
	case from == value.KindBytes && to.Kind() == value.KindString:
		cast = func(_ *Context, v value.Value, format string, _ *time.Location) (value.Value, error) {
			return encodeBytes(v, format)
		}
	case from == value.KindString && to.Kind() == value.KindBytes:
		cast = func(_ *Context, v value.Value, format string, _ *time.Location) (value.Value, error) {
			return decodeBytes(v, format)
		}
	case (from == value.KindDate || from == value.KindTimestamp) && to.Kind() == value.KindString:
		cast = func(_ *Context, v value.Value, format string, zone *time.Location) (value.Value, error) {
			if from == value.KindDate {
				return printTime(value.TimeOfDate(v.Int64()), format, true)
			}
			return printTime(value.PrintedTime(v.Int64(), zone), format, false)
		}
	case from == value.KindString && (to.Kind() == value.KindDate || to.Kind() == value.KindTimestamp):
		cast = func(ctx *Context, v value.Value, format string, zone *time.Location) (value.Value, error) {
			return readTime(ctx, v.Str(), format, zone, to.Kind() == value.KindDate)
		}
	case a.Origin == NullLiteral:
	case a.Type.IsNumeric() && to.Kind() == value.KindString, from == value.KindString && to.IsNumeric():
		return Call{}, value.Unimplemented("CAST with FORMAT from %v to %v is not implemented", a.Type, to)
	default:
		return Call{}, value.InvalidArgument("FORMAT is not allowed for cast from %s to %v", a.name(), to)
	}
	c.Eval = func(ctx *Context, args []value.Value) (value.Value, error) {
		for _, v := range args {
			if v.IsNull() {
				return value.Null, nil
			}
		}
		at, err := zoneOf(ctx, args, 2)
		if err != nil {
			return value.Null, err
		}
		return cast(ctx, args[0], args[1].Str(), at)
	}
	if isSafe {
		return c.Safe(), nil
	}
	return c, nil
}

// encodeBytes is CAST(bytes AS STRING FORMAT ...).
func encodeBytes(v value.Value, format string) (value.Value, error) {
	b := v.Bytes()
	switch strings.ToUpper(format) {
	case "HEX", "BASE16":
		return value.String(hex.EncodeToString(b)), nil
	case "BASE2":
		return value.String(digitsOf(b, 1)), nil
	case "BASE8":
		return value.String(digitsOf(b, 3)), nil
	case "BASE32":
		return value.String(base32.StdEncoding.EncodeToString(b)), nil
	case "BASE64":
		return value.String(base64.StdEncoding.EncodeToString(b)), nil
	case "BASE64M":
		var lines []string
		for text := base64.StdEncoding.EncodeToString(b); ; text = text[76:] {
			if len(text) <= 76 {
				return value.String(strings.Join(append(lines, text), "\n")), nil
			}
			lines = append(lines, text[:76])
		}
	case "ASCII":
		if !isASCII(v.Str()) {
			return value.Null, value.OutOfRange("Failed to decode invalid ASCII string")
		}
		return value.String(v.Str()), nil
	case "UTF8", "UTF-8":
		return value.Cast(v, value.BytesType, value.StringType, time.UTC)
	}
	return value.Null, value.OutOfRange("Invalid format '%s'", format)
}

// digitsOf prints bits in digits of width bits; the first bits are padded with zeros.
func digitsOf(b []byte, width int) string {
	var bits strings.Builder
	for range (width - len(b)*8%width) % width {
		bits.WriteByte('0')
	}
	for _, c := range b {
		fmt.Fprintf(&bits, "%08b", c)
	}
	if width == 1 {
		return bits.String()
	}
	text, out := bits.String(), strings.Builder{}
	for ; text != ""; text = text[width:] {
		out.WriteByte('0' + (text[0]-'0')<<2 + (text[1]-'0')<<1 + (text[2] - '0'))
	}
	return out.String()
}

// decodeBytes is CAST(string AS BYTES FORMAT ...).
func decodeBytes(v value.Value, format string) (value.Value, error) {
	call := func(eval Eval) (value.Value, error) { return eval(nil, []value.Value{v}) }
	switch format = strings.ToUpper(format); format {
	case "HEX", "BASE16":
		return call(fromHex)
	case "BASE2":
		return bitsFrom(v.Str(), 1)
	case "BASE8":
		return bitsFrom(v.Str(), 3)
	case "BASE32":
		b, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(strings.TrimRight(v.Str(), "="))
		if err != nil {
			return value.Null, value.OutOfRange("Failed to decode invalid base32 string")
		}
		return value.Bytes(b), nil
	case "BASE64", "BASE64M":
		b, err := base64.RawStdEncoding.DecodeString(unpadded(v.Str(), 4))
		if err != nil {
			return value.Null, value.OutOfRange("Failed to decode invalid base64 string")
		}
		return value.Bytes(b), nil
	case "ASCII":
		if !isASCII(v.Str()) {
			return value.Null, value.OutOfRange("Failed to decode invalid ASCII string")
		}
		return value.BytesOf(v.Str()), nil
	case "UTF8", "UTF-8":
		return value.BytesOf(v.Str()), nil
	}
	return value.Null, value.OutOfRange("Invalid format '%s'", format)
}

// bitsFrom reads digits of width bits. The first bits that do not fill a byte of octal digits must be
// zero.
func bitsFrom(s string, width int) (value.Value, error) {
	var bits strings.Builder
	for i := range len(s) {
		if c := s[i]; c < '0' || c >= '0'+1<<width {
			return value.Null, value.OutOfRange("Failed to decode invalid base%d string due to character '%c' at offset %d", 1<<width, c, i)
		}
		fmt.Fprintf(&bits, "%0*b", width, s[i]-'0')
	}
	text := bits.String()
	extra := len(text) % 8
	if width == 1 && extra > 0 {
		text, extra = strings.Repeat("0", 8-extra)+text, 0
	}
	if strings.Contains(text[:extra], "1") {
		return value.Null, value.OutOfRange("Failed to decode invalid base%d string", 1<<width)
	}
	text = text[extra:]
	out := make([]byte, 0, len(text)/8)
	for ; text != ""; text = text[8:] {
		n, err := strconv.ParseUint(text[:8], 2, 8)
		if err != nil {
			return value.Null, value.OutOfRange("Failed to decode invalid base%d string", 1<<width)
		}
		out = append(out, byte(n))
	}
	return value.Bytes(out), nil
}

// formatElements are the elements of formats of dates and times; a longer one is before its prefix.
var formatElements = []string{
	"A.M.", "P.M.", "AM", "PM", "DAY", "DDD", "DD", "DY", "D", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6", "FF7", "FF8", "FF9",
	"HH12", "HH24", "HH", "MONTH", "MON", "MM", "MI", "RRRR", "RR", "SSSSS", "SS", "TZH", "TZM", "YYYY", "Y,YYY", "YYY", "YY", "Y",
}

// notInDateFormats begin the elements that a DATE does not have.
const notInDateFormats = "AM PM A.M. P.M. HH HH12 HH24 MI SS SSSSS TZH TZM"

// cutFormat returns the element at the front of a format: as written, in upper case, or "" for a
// literal text.
func cutFormat(format string) (written, element, literal, rest string, err error) {
	if format[0] == '"' {
		var b strings.Builder
		for i := 1; i < len(format); i++ {
			switch {
			case format[i] == '\\' && i+1 < len(format):
				i++
				b.WriteByte(format[i])
			case format[i] == '"':
				return format[:i+1], "", b.String(), format[i+1:], nil
			default:
				b.WriteByte(format[i])
			}
		}
		return "", "", "", "", value.OutOfRange("Cannot find matching \" for quoted literal at %s", format)
	}
	if strings.IndexByte("-./,';: \t\n\v\f\r", format[0]) >= 0 {
		return format[:1], "", format[:1], format[1:], nil
	}
	for _, e := range formatElements {
		if len(format) >= len(e) && strings.EqualFold(format[:len(e)], e) {
			return format[:len(e)], e, "", format[len(e):], nil
		}
	}
	r, _ := utf8.DecodeRuneInString(format)
	return "", "", "", "", value.OutOfRange("Cannot find matched format element at %c", r)
}

// inLetterCase prints a word as the format element is written: all in upper case, the first letter,
// or all in lower case.
func inLetterCase(word, element string) string {
	isUpper := func(c byte) bool { return c >= 'A' && c <= 'Z' }
	switch {
	case !isUpper(element[0]):
		return strings.ToLower(word)
	case len(element) > 1 && !isUpper(element[1]) && element[1] != '.':
		return word
	}
	return strings.ToUpper(word)
}

// printTime is CAST(date or timestamp AS STRING FORMAT ...).
func printTime(t time.Time, format string, isDate bool) (value.Value, error) {
	var out strings.Builder
	for format != "" {
		written, element, literal, rest, err := cutFormat(format)
		if err != nil {
			return value.Null, err
		}
		if isDate && (strings.HasPrefix(element, "FF") || strings.Contains(" "+notInDateFormats+" ", " "+element+" ")) && element != "" {
			return value.Null, value.OutOfRange("DATE does not support %s", element)
		}
		out.WriteString(literal)
		if element != "" {
			out.WriteString(printElement(t, element, written))
		}
		if format = rest; out.Len() > maxOutput {
			return value.Null, value.Exhausted("a result has more than %d bytes", maxOutput)
		}
	}
	return value.String(out.String()), nil
}

func printElement(t time.Time, element, written string) string {
	_, offset := t.Zone()
	switch element {
	case "YYYY", "RRRR":
		return fmt.Sprintf("%04d", t.Year())
	case "YYY":
		return fmt.Sprintf("%03d", t.Year()%1000)
	case "YY", "RR":
		return fmt.Sprintf("%02d", t.Year()%100)
	case "Y":
		return strconv.Itoa(t.Year() % 10)
	case "Y,YYY":
		return fmt.Sprintf("%d,%03d", t.Year()/1000, t.Year()%1000)
	case "MM":
		return fmt.Sprintf("%02d", t.Month())
	case "MON":
		return inLetterCase(t.Month().String()[:3], written)
	case "MONTH":
		return inLetterCase(t.Month().String(), written)
	case "DAY":
		return inLetterCase(fmt.Sprintf("%-9s", t.Weekday()), written)
	case "DY":
		return inLetterCase(t.Weekday().String()[:3], written)
	case "D":
		return strconv.Itoa(int(t.Weekday()) + 1)
	case "DD":
		return fmt.Sprintf("%02d", t.Day())
	case "DDD":
		return fmt.Sprintf("%03d", t.YearDay())
	case "HH", "HH12":
		return fmt.Sprintf("%02d", (t.Hour()+11)%12+1)
	case "HH24":
		return fmt.Sprintf("%02d", t.Hour())
	case "MI":
		return fmt.Sprintf("%02d", t.Minute())
	case "SS":
		return fmt.Sprintf("%02d", t.Second())
	case "SSSSS":
		return fmt.Sprintf("%05d", t.Hour()*3600+t.Minute()*60+t.Second())
	case "TZH":
		sign := '+'
		if offset < 0 {
			sign, offset = '-', -offset
		}
		return fmt.Sprintf("%c%02d", sign, offset/3600)
	case "TZM":
		return fmt.Sprintf("%02d", max(offset, -offset)/60%60)
	case "AM", "PM", "A.M.", "P.M.":
		half := "AM"
		if t.Hour() >= 12 {
			half = "PM"
		}
		if strings.Contains(element, ".") {
			half = half[:1] + "." + half[1:] + "."
		}
		if written[0] >= 'a' {
			half = strings.ToLower(half)
		}
		return half
	}
	return fmt.Sprintf("%09d", t.Nanosecond())[:element[2]-'0'] // FF1 to FF9
}

// categories has the elements that a format for reading has once.
var categories = map[string]string{
	"YYYY": "YEAR", "RRRR": "YEAR", "MM": "MONTH", "MON": "MONTH", "MONTH": "MONTH", "DD": "DAY",
	"HH": "HOUR", "HH12": "HOUR", "HH24": "HOUR", "MI": "MINUTE", "SS": "SECOND", "AM": "MERIDIAN_INDICATOR", "PM": "MERIDIAN_INDICATOR",
	"TZH": "TIME_ZONE_HOUR", "TZM": "TIME_ZONE_MINUTE",
}

// readTime is CAST(string AS DATE or TIMESTAMP FORMAT ...). A missing year or month is the current one.
func readTime(ctx *Context, text, format string, zone *time.Location, isDate bool) (value.Value, error) {
	now := value.TimeOf(ctx.NowMicros, zone)
	p := &timeParser{text: text, rest: text, zone: zone, year: now.Year(), month: int(now.Month()), day: 1}
	failed := value.OutOfRange("Failed to parse input string %s", quoteString(text))
	p.skipSpace()
	var offsetHours, offsetMinutes int
	negative, hasOffset := false, false
	seen := map[string]bool{}
	for format != "" {
		_, element, literal, rest, err := cutFormat(format)
		if err != nil {
			return value.Null, err
		}
		if category := categories[element]; category != "" {
			if seen[category] {
				return value.Null, value.OutOfRange("More than one format element in category %s", category)
			}
			seen[category] = true
		}
		ok := true
		switch element {
		case "":
			for _, c := range []byte(literal) {
				if isSpace(c) {
					p.skipSpace()
				} else {
					ok = ok && p.literal(c)
				}
			}
		case "YYYY", "RRRR":
			ok = p.set(&p.year, 4, 0, 9999)
		case "MM":
			ok = p.set(&p.month, 2, 1, 12)
		case "MON", "MONTH":
			var i int
			i, ok = p.name(func(i int) string { return time.Month(i + 1).String() }, 12)
			p.month = i + 1
		case "DD":
			ok = p.set(&p.day, 2, 1, 31)
		case "HH24":
			ok = p.hour24()
		case "HH", "HH12":
			ok = p.hour12()
		case "MI":
			ok = p.set(&p.minute, 2, 0, 59)
		case "SS":
			ok = p.set(&p.second, 2, 0, 59)
		case "AM", "PM":
			ok = p.meridian()
		case "FF1", "FF2", "FF3", "FF4", "FF5", "FF6", "FF7", "FF8", "FF9":
			p.rest = "." + p.rest
			p.fraction(element[2:])
		case "TZH":
			if ok = p.rest != "" && strings.IndexByte("+- ", p.rest[0]) >= 0; ok {
				negative, hasOffset = p.rest[0] == '-', true
				p.rest = p.rest[1:]
				ok = p.set(&offsetHours, 2, 0, 14)
			}
		case "TZM":
			ok = p.set(&offsetMinutes, 2, 0, 59)
		default:
			return value.Null, value.Unimplemented("CAST from STRING by the format element %s is not implemented", element)
		}
		if isDate && (strings.HasPrefix(element, "FF") || strings.Contains(" "+notInDateFormats+" ", " "+element+" ")) && element != "" {
			return value.Null, value.OutOfRange("DATE does not support %s", element)
		}
		if !ok {
			return value.Null, failed
		}
		format = rest
	}
	if p.skipSpace(); p.rest != "" {
		return value.Null, failed
	}
	if p.twelveHour != seen["MERIDIAN_INDICATOR"] {
		return value.Null, value.OutOfRange("Format element HH12 is required when a format element in category MERIDIAN_INDICATOR exists, and the other way round")
	}
	if hasOffset {
		seconds := offsetHours*3600 + offsetMinutes*60
		if negative {
			seconds = -seconds
		}
		p.zone = time.FixedZone("", seconds)
	}
	if isDate {
		p.zone = time.UTC
	}
	micros, err := p.instant()
	if err != nil {
		return value.Null, err
	}
	if isDate {
		return value.Date(value.DateIn(micros, time.UTC)), nil
	}
	return value.Timestamp(micros), nil
}
