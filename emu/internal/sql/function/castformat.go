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

// castFunction and safeCastFunction name casts in plans.
var castFunction, safeCastFunction = &Function{Name: "CAST"}, &Function{Name: "SAFE_CAST"}

// IsCast reports whether a call is a cast.
func (c *Call) IsCast() bool { return c.Function == castFunction || c.Function == safeCastFunction }

// castCall returns a call of CAST, or of SAFE_CAST.
func castCall(c Call, isSafe bool) Call {
	c.Function = castFunction
	if isSafe {
		c.Function = safeCastFunction
		return c.Safe()
	}
	return c
}

// Cast resolves CAST and, if isSafe, SAFE_CAST of an argument.
func Cast(a Arg, to value.Type, isSafe bool) (Call, error) {
	cast, ok := value.Caster(a.Type, to)
	if a.Origin == EmptyArray {
		ok = to.Kind() == value.KindArray
	}
	if !ok {
		return Call{}, value.InvalidArgument("Invalid cast from %v to %v", a.anyType(), to)
	}
	return castCall(Call{Params: []value.Type{a.Type}, Result: to, Eval: func(ctx *Context, args []value.Value) (value.Value, error) {
		if args[0].IsNull() || cast == nil {
			return args[0], nil
		}
		return cast(args[0], ctx.zone())
	}}, isSafe), nil
}

// CastFormat resolves CAST(a AS to FORMAT format AT TIME ZONE zone) as a call of the value, the format
// and, if zoned is set, the zone.
func CastFormat(a Arg, to value.Type, zoned, isSafe bool) (Call, error) {
	c := Call{Params: []value.Type{a.Type, value.StringType}, Result: to}
	if zoned {
		c.Params = append(c.Params, value.StringType)
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
	case a.Origin == NullLiteral && to.Kind() == value.KindString:
	case a.Type.IsNumeric() && to.Kind() == value.KindString:
		return Call{}, value.InvalidArgument("CAST with FORMAT from %v to %v is not supported", a.Type, to)
	default:
		return Call{}, value.InvalidArgument("FORMAT is not allowed for cast from %v to %v", a.anyType(), to)
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
	return castCall(c, isSafe), nil
}

// encodeBytes evaluates CAST(v AS STRING FORMAT ...) for BYTES.
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
		if !utf8.ValidString(v.Str()) {
			return value.Null, value.OutOfRange("A string is not valid UTF-8.")
		}
		return value.String(v.Str()), nil
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

// decodeBytes evaluates CAST(v AS BYTES FORMAT ...) for a STRING.
func decodeBytes(v value.Value, format string) (value.Value, error) {
	call := func(eval Eval) (value.Value, error) { return eval(nil, []value.Value{v}) }
	switch strings.ToUpper(format) {
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
// literal text. Errors have its position.
func cutFormat(format string, at int) (written, element, literal, rest string, err error) {
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
		return "", "", "", "", value.OutOfRange("Cannot find matching \" for quoted literal at %d", at)
	}
	if strings.IndexByte("-./,';: \t\n\v\f\r", format[0]) >= 0 {
		return format[:1], "", format[:1], format[1:], nil
	}
	for _, e := range formatElements {
		if len(format) >= len(e) && strings.EqualFold(format[:len(e)], e) {
			return format[:len(e)], e, "", format[len(e):], nil
		}
	}
	return "", "", "", "", value.OutOfRange("Cannot find matched format element at %d", at)
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

// printTime evaluates CAST(t AS STRING FORMAT ...) for a DATE or TIMESTAMP.
func printTime(t time.Time, format string, isDate bool) (value.Value, error) {
	var out strings.Builder
	for whole := len(format); format != ""; {
		written, element, literal, rest, err := cutFormat(format, whole-len(format))
		if err != nil {
			return value.Null, err
		}
		if isDate && (strings.HasPrefix(element, "FF") || strings.Contains(" "+notInDateFormats+" ", " "+element+" ")) && element != "" {
			return value.Null, value.OutOfRange("DATE does not support '%s'", element)
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

// categories maps elements to their categories. A format that parses text may have only one element
// of a category.
var categories = map[string]string{
	"YYYY": "YEAR", "RRRR": "YEAR", "YYY": "YEAR", "YY": "YEAR", "RR": "YEAR", "Y": "YEAR", "Y,YYY": "YEAR",
	"MM": "MONTH", "MON": "MONTH", "MONTH": "MONTH", "DD": "DAY", "HH": "HOUR", "HH12": "HOUR", "HH24": "HOUR", "MI": "MINUTE",
	"SS": "SECOND", "SSSSS": "SECOND", "AM": "MERIDIAN_INDICATOR", "PM": "MERIDIAN_INDICATOR", "A.M.": "MERIDIAN_INDICATOR",
	"P.M.": "MERIDIAN_INDICATOR", "TZH": "TIME_ZONE_HOUR", "TZM": "TIME_ZONE_MINUTE", "FF": "SUBSECOND",
}

// formatReader reads a text by the elements of CAST.
type formatReader struct {
	timeParser
	now                        time.Time
	seen                       map[string]string // elements by category
	offsetHours, offsetMinutes int
	negative, isDate, afterGap bool
}

// readTime evaluates CAST(text AS ... FORMAT ...) for a DATE or TIMESTAMP. A missing year or month
// is the current one.
func readTime(ctx *Context, text, format string, zone *time.Location, isDate bool) (value.Value, error) {
	now := value.TimeOf(ctx.NowMicros, zone)
	p := &formatReader{now: now, isDate: isDate, seen: map[string]string{}}
	p.text, p.rest, p.zone = text, text, zone
	p.year, p.month, p.day = now.Year(), int(now.Month()), 1
	p.skipSpace()
	for whole := len(format); format != ""; {
		_, element, literal, rest, err := cutFormat(format, whole-len(format))
		if err != nil {
			return value.Null, err
		}
		ok := false
		if element == "" {
			ok = p.plain(literal)
		} else if ok, err = p.element(element, rest); err != nil {
			return value.Null, err
		}
		if !ok {
			return value.Null, p.failed()
		}
		format = rest
	}
	if p.skipSpace(); p.rest != "" {
		return value.Null, p.failed()
	}
	return p.result()
}

// plain reads a literal text. White space in literal matches one or more characters of white space.
func (p *formatReader) plain(literal string) bool {
	for _, c := range []byte(literal) {
		if !isSpace(c) {
			if p.afterGap = false; !p.literal(c) {
				return false
			}
			continue
		}
		if !p.afterGap && (p.rest == "" || !isSpace(p.rest[0])) {
			return false
		}
		p.skipSpace()
		p.afterGap = true
	}
	return true
}

func (p *formatReader) element(element, rest string) (ok bool, err error) {
	p.afterGap = false
	name := element
	if strings.HasPrefix(name, "FF") {
		name = "FF"
	}
	category, known := categories[name]
	if !known {
		return false, value.OutOfRange("Format element '%s' is not supported for parsing", element)
	}
	if p.isDate && category != "YEAR" && category != "MONTH" && category != "DAY" {
		return false, value.OutOfRange("Format element in category %s ('%s') is not allowed for output type DATE", category, element)
	}
	switch before := p.seen[category]; before {
	case "":
	case element:
		return false, value.OutOfRange("Format element '%s' appears more than once in the format string", element)
	default:
		return false, value.OutOfRange("More than one format element in category %s exist: '%s' and '%s'", category, before, element)
	}
	p.seen[category] = element
	switch name {
	case "YYYY", "RRRR":
		width, most := 4, 9999
		if rest == "" || strings.IndexByte("-./,';: \t\n\v\f\r\"", rest[0]) >= 0 {
			width, most = 5, 10000
		}
		ok = p.set(&p.year, width, 0, most)
	case "YYY", "YY", "Y":
		scale := map[string]int{"YYY": 1000, "YY": 100, "Y": 10}[name]
		var n int
		n, ok = p.number(len(name), 0, scale-1)
		p.year = p.now.Year()/scale*scale + n
	case "RR": // of the century in which the year is nearer
		var n int
		n, ok = p.number(2, 0, 99)
		p.year = p.now.Year()/100*100 + n
		switch late := p.now.Year()%100 >= 50; {
		case late && n < 50:
			p.year += 100
		case !late && n >= 50:
			p.year -= 100
		}
	case "Y,YYY":
		var thousands, n int
		if thousands, ok = p.number(2, 0, 10); ok {
			before := len(p.rest)
			if ok = p.literal(','); ok {
				n, ok = p.number(3, 0, 999)
			}
			ok = ok && before-len(p.rest) == len(",000")
		}
		p.year = thousands*1000 + n
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
	case "SSSSS":
		p.seen[name] = name
		var n int
		n, ok = p.number(5, 0, 86399)
		p.hour, p.minute, p.second = n/3600, n/60%60, n%60
	case "AM", "PM":
		ok = p.meridian()
	case "A.M.", "P.M.":
		if len(p.rest) >= 4 && p.rest[1] == '.' && p.rest[3] == '.' {
			p.rest = p.rest[:1] + p.rest[2:3] + p.rest[4:]
			ok = p.meridian()
		}
	case "FF":
		ok = p.fraction(element[2:])
	case "TZH":
		if p.rest != "" && strings.IndexByte("+- ", p.rest[0]) >= 0 {
			p.negative = p.rest[0] == '-'
			p.rest = p.rest[1:]
			ok = p.set(&p.offsetHours, 2, 0, 14)
		}
	case "TZM":
		ok = p.set(&p.offsetMinutes, 2, 0, 59)
	}
	return ok, nil
}

func (p *formatReader) result() (value.Value, error) {
	for _, category := range []string{"HOUR", "MINUTE", "MERIDIAN_INDICATOR"} {
		if p.seen["SSSSS"] != "" && p.seen[category] != "" {
			return value.Null, value.OutOfRange("Format element in category %s and format element SSSSS cannot exist simultaneously", category)
		}
	}
	if p.twelveHour != (p.seen["MERIDIAN_INDICATOR"] != "") {
		return value.Null, value.OutOfRange("Format element HH12 is required when a format element in category MERIDIAN_INDICATOR exists, and the other way round")
	}
	if p.seen["TIME_ZONE_HOUR"] != "" || p.seen["TIME_ZONE_MINUTE"] != "" {
		seconds := p.offsetHours*3600 + p.offsetMinutes*60
		if seconds > 14*3600 {
			return value.Null, p.failed()
		}
		if p.negative {
			seconds = -seconds
		}
		p.zone = time.FixedZone("", seconds)
	}
	if p.isDate {
		p.zone = time.UTC
	}
	micros, err := p.instant()
	if err != nil {
		return value.Null, err
	}
	if p.isDate {
		return value.Date(value.DateIn(micros, time.UTC)), nil
	}
	return value.Timestamp(micros), nil
}
