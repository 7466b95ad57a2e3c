package function

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// formatSpec is a specifier of FORMAT: %[flags][width][.precision]verb.
type formatSpec struct {
	minus, plus, space, sharp, zero, group bool
	width, precision                       int // precision -1 without one
	verb                                   byte
}

func bindFormat(c *Call) (Eval, error) {
	types := c.Params[1:]
	return func(ctx *Context, a []value.Value) (value.Value, error) {
		if a[0].IsNull() {
			return value.Null, nil
		}
		f := &formatter{pattern: a[0].Str(), args: a[1:], types: types, zone: ctx.zone()}
		text, isNull, err := f.format()
		if err != nil || isNull {
			return value.Null, err
		}
		return value.String(text), nil
	}, nil
}

type formatter struct {
	pattern string
	args    []value.Value
	types   []value.Type
	zone    *time.Location
	next    int
	out     strings.Builder
	isNull  bool
}

func (f *formatter) format() (text string, isNull bool, err error) {
	rest := f.pattern
	for rest != "" {
		i := strings.IndexByte(rest, '%')
		if i < 0 {
			f.out.WriteString(rest)
			break
		}
		f.out.WriteString(rest[:i])
		spec, after, ok, err := f.spec(rest[i+1:])
		if err != nil {
			return "", false, err
		}
		if !ok {
			return "", false, value.OutOfRange("Invalid FORMAT string: \"%s\"", f.pattern)
		}
		rest = after
		if spec.verb == '%' {
			f.out.WriteByte('%')
			continue
		}
		if err := f.argument(spec); err != nil {
			return "", false, err
		}
		if f.out.Len() > maxOutput {
			return "", false, value.OutOfRange("Output string too long while evaluating FORMAT; limit %d", maxOutput)
		}
	}
	if f.next < len(f.args) {
		return "", false, value.OutOfRange("Too many arguments to FORMAT for pattern \"%s\"; Expected %d; Got %d", f.pattern, f.next+1, len(f.args)+1)
	}
	return f.out.String(), f.isNull, nil
}

// spec reads a specifier after the %.
func (f *formatter) spec(s string) (spec formatSpec, rest string, ok bool, err error) {
	spec.precision = -1
	for s != "" && strings.IndexByte("-+ #'0", s[0]) >= 0 {
		switch s[0] {
		case '-':
			spec.minus = true
		case '+':
			spec.plus = true
		case ' ':
			spec.space = true
		case '#':
			spec.sharp = true
		case '\'':
			spec.group = true
		case '0':
			spec.zero = true
		}
		s = s[1:]
	}
	if spec.width, s, err = f.number(s); err != nil {
		return spec, "", false, err
	}
	if spec.width < 0 {
		spec.minus, spec.width = true, -spec.width
	}
	if strings.HasPrefix(s, ".") {
		if spec.precision, s, err = f.number(s[1:]); err != nil {
			return spec, "", false, err
		}
		spec.precision = max(spec.precision, -1)
	}
	if s == "" {
		return spec, "", false, nil
	}
	spec.verb = s[0]
	if spec.width > maxOutput || spec.precision > maxOutput && strings.IndexByte("diuoxXfFeE", spec.verb) >= 0 {
		return spec, "", false, value.OutOfRange("Output string too long while evaluating FORMAT; limit %d", maxOutput)
	}
	return spec, s[1:], true, nil
}

// number reads digits, or a * for an argument.
func (f *formatter) number(s string) (n int, rest string, err error) {
	if strings.HasPrefix(s, "*") {
		v, t, err := f.take()
		if err != nil {
			return 0, "", err
		}
		if t.Kind() != value.KindInt64 {
			return 0, "", f.typeError("integer", t)
		}
		f.isNull = f.isNull || v.IsNull()
		return int(min(max(v.Int64(), -maxOutput-1), maxOutput+1)), s[1:], nil
	}
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		if n < maxOutput*10 {
			n = n*10 + int(s[i]-'0')
		}
		i++
	}
	return n, s[i:], nil
}

func (f *formatter) take() (value.Value, value.Type, error) {
	if f.next >= len(f.args) {
		return value.Null, value.Type{}, value.OutOfRange("Too few arguments to FORMAT for pattern \"%s\"; Expected %d; Got %d", f.pattern, f.next+2, len(f.args)+1)
	}
	f.next++
	return f.args[f.next-1], f.types[f.next-1], nil
}

func (f *formatter) typeError(want string, got value.Type) error {
	return value.OutOfRange("Invalid type for argument %d to FORMAT; Expected %s; Got %v", f.next+1, want, got)
}

func (f *formatter) argument(spec formatSpec) error {
	if strings.IndexByte("diuoxXfFeEgGstTpP", spec.verb) < 0 {
		return value.OutOfRange("Invalid format specifier character \"%s\" in FORMAT string: \"%s\"", toValid(string([]byte{spec.verb})), f.pattern)
	}
	v, t, err := f.take()
	if err != nil {
		return err
	}
	switch spec.verb {
	case 'd', 'i', 'o', 'x', 'X':
		if t.Kind() != value.KindInt64 {
			return f.typeError("integer", t)
		}
	case 'u':
		return f.typeError("UINT", t)
	case 'f', 'F', 'e', 'E', 'g', 'G':
		if !t.IsFloat() {
			return f.typeError("FLOAT, DOUBLE", t)
		}
	case 's':
		if t.Kind() != value.KindString {
			return f.typeError("STRING", t)
		}
	case 'p', 'P':
		return f.typeError("PROTO or JSON", t)
	case 't':
		f.pad(spec, truncate(plainText(v, f.zone), spec.precision))
		return nil
	case 'T':
		f.pad(spec, truncate(literalText(v, t, f.zone), spec.precision))
		return nil
	}
	if v.IsNull() {
		f.isNull = true
		return nil
	}
	switch t.Kind() { //nolint:exhaustive // checked above
	case value.KindInt64:
		f.integer(spec, v.Int64())
	case value.KindString:
		f.pad(spec, truncate(v.Str(), spec.precision))
	default:
		f.float(spec, v.Float64())
	}
	return nil
}

// truncate cuts a text to characters, unless most is -1.
func truncate(s string, most int) string {
	if most < 0 {
		return s
	}
	to, _ := offsetOf(s, int64(most), true)
	return s[:to]
}

// pad writes a text with spaces around it.
func (f *formatter) pad(spec formatSpec, s string) {
	spaces := max(0, spec.width-utf8.RuneCountInString(s))
	if spec.minus {
		f.out.WriteString(s + strings.Repeat(" ", spaces))
	} else {
		f.out.WriteString(strings.Repeat(" ", spaces) + s)
	}
}

// padNumber writes a number with spaces before the sign, or zeros after it.
func (f *formatter) padNumber(spec formatSpec, isNegative bool, prefix, digits string, zeros bool) {
	sign := ""
	switch {
	case isNegative:
		sign = "-"
	case spec.plus:
		sign = "+"
	case spec.space:
		sign = " "
	}
	sign += prefix
	if missing := spec.width - len(sign) - len(digits); zeros && spec.zero && !spec.minus && missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	f.pad(spec, sign+digits)
}

func (f *formatter) integer(spec formatSpec, n int64) {
	base, groups, prefix := 10, 3, ""
	switch spec.verb {
	case 'o':
		base, groups, prefix = 8, 4, "0"
	case 'x':
		base, groups, prefix = 16, 4, "0x"
	case 'X':
		base, groups, prefix = 16, 4, "0X"
	}
	magnitude := uint64(n)
	if n < 0 {
		magnitude = -magnitude
	}
	digits := strconv.FormatUint(magnitude, base)
	if spec.verb == 'X' {
		digits = strings.ToUpper(digits)
	}
	if spec.precision >= 0 {
		if spec.precision == 0 && n == 0 {
			digits = ""
		}
		digits = strings.Repeat("0", max(0, spec.precision-len(digits))) + digits
	}
	if spec.group {
		separator := ","
		if base == 16 {
			separator = ":"
		}
		digits = grouped(digits, groups, separator)
	}
	if !spec.sharp || n == 0 {
		prefix = ""
	}
	f.padNumber(spec, n < 0, prefix, digits, spec.precision < 0)
}

func grouped(digits string, size int, separator string) string {
	var b strings.Builder
	for i := range len(digits) {
		if i > 0 && (len(digits)-i)%size == 0 {
			b.WriteString(separator)
		}
		b.WriteByte(digits[i])
	}
	return b.String()
}

func (f *formatter) float(spec formatSpec, x float64) {
	upper := spec.verb < 'a'
	verb := spec.verb | 0x20
	inCase := func(s string) string {
		if upper {
			return strings.ToUpper(s)
		}
		return s
	}
	switch {
	case math.IsNaN(x):
		f.padNumber(formatSpec{width: spec.width, minus: spec.minus}, false, "", inCase("nan"), false)
		return
	case math.IsInf(x, 0):
		f.padNumber(spec, x < 0, "", inCase("inf"), false)
		return
	}
	precision := spec.precision
	if precision < 0 {
		precision = 6
	}
	// No float64 has more digits than these, and zeros follow.
	exact := min(precision, 1100)
	magnitude := math.Abs(x)
	var digits string
	if verb == 'g' {
		digits = general(magnitude, max(exact, 1), spec.sharp)
	} else {
		digits = strconv.FormatFloat(magnitude, verb, exact, 64)
		mantissa, exponent, _ := strings.Cut(digits, "e")
		if precision > exact {
			mantissa += strings.Repeat("0", precision-exact)
		}
		if spec.sharp && precision == 0 {
			mantissa += "."
		}
		if digits = mantissa; verb == 'e' {
			digits += "e" + exponent
		}
	}
	if spec.group && !strings.Contains(digits, "e") {
		whole, fraction, ok := strings.Cut(digits, ".")
		if digits = grouped(whole, 3, ","); ok {
			digits += "." + fraction
		}
	}
	f.padNumber(spec, x < 0, "", inCase(digits), true)
}

// general formats x as %g does: in scientific notation if the exponent is below -4, or not below the
// precision.
func general(x float64, precision int, keepZeros bool) string {
	scientific := strconv.FormatFloat(x, 'e', precision-1, 64)
	mantissa, exponentText, _ := strings.Cut(scientific, "e")
	exponent, _ := strconv.Atoi(exponentText) // digits that strconv wrote
	text, suffix := mantissa, "e"+exponentText
	if exponent >= -4 && exponent < precision {
		text, suffix = strconv.FormatFloat(x, 'f', precision-1-exponent, 64), ""
	}
	if keepZeros {
		if !strings.Contains(text, ".") {
			text += "."
		}
	} else if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text + suffix
}

// plainText formats v as %t does.
func plainText(v value.Value, zone *time.Location) string {
	switch v.Kind() {
	case value.KindBool:
		return strconv.FormatBool(v.Bool())
	case value.KindInt64:
		return strconv.FormatInt(v.Int64(), 10)
	case value.KindFloat32, value.KindFloat64:
		return floatLiteral(v)
	case value.KindString, value.KindEnum:
		return v.Str()
	case value.KindBytes, value.KindProto:
		return escapeBytes(v.Str(), 0)
	case value.KindDate:
		return value.DateText(v.Int64())
	case value.KindTimestamp:
		return value.TimestampText(v.Int64(), zone)
	case value.KindArray:
		return list("[", "]", v.Elems(), func(_ int, e value.Value) string { return plainText(e, zone) })
	case value.KindStruct:
		return list("(", ")", v.Elems(), func(_ int, e value.Value) string { return plainText(e, zone) })
	case value.KindMap:
		return mapText(v, func(_ int, e value.Value) string { return plainText(e, zone) })
	case value.KindNone, value.KindCallable:
	}
	return "NULL"
}

// literalText formats v as %T does: as a literal of type t that a statement may contain.
func literalText(v value.Value, t value.Type, zone *time.Location) string {
	if v.IsNull() {
		return "NULL"
	}
	switch t.Kind() {
	case value.KindFloat32, value.KindFloat64:
		if f := v.Float64(); !isFinite(f) {
			return fmt.Sprintf("CAST(%q AS %v)", strings.ToLower(value.FloatText(v)), t)
		}
		return floatLiteral(v)
	case value.KindString, value.KindEnum:
		return quoteString(v.Str())
	case value.KindBytes, value.KindProto:
		quote := quoteFor(v.Str())
		return "b" + string(quote) + escapeBytes(v.Str(), quote) + string(quote)
	case value.KindDate:
		return "DATE \"" + plainText(v, zone) + "\""
	case value.KindTimestamp:
		return "TIMESTAMP \"" + plainText(v, zone) + "\""
	case value.KindArray:
		return list("[", "]", v.Elems(), func(_ int, e value.Value) string { return literalText(e, t.Elem(), zone) })
	case value.KindStruct:
		before := "("
		if len(v.Elems()) < 2 {
			before = "STRUCT("
		}
		return list(before, ")", v.Elems(), func(i int, e value.Value) string { return literalText(e, t.Fields()[i].Type, zone) })
	case value.KindMap:
		return mapText(v, func(i int, e value.Value) string {
			if i%2 == 0 {
				return literalText(e, t.Key(), zone)
			}
			return literalText(e, t.Elem(), zone)
		})
	case value.KindNone, value.KindBool, value.KindInt64, value.KindCallable:
	}
	return plainText(v, zone)
}

func list(before, after string, elems []value.Value, text func(i int, e value.Value) string) string {
	var b strings.Builder
	b.WriteString(before)
	for i, e := range elems {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(text(i, e))
	}
	b.WriteString(after)
	return b.String()
}

func mapText(v value.Value, text func(i int, e value.Value) string) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, e := range v.Elems() {
		switch {
		case i%2 == 1:
			b.WriteString(": ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(text(i, e))
	}
	b.WriteByte('}')
	return b.String()
}

// floatLiteral returns the text of a float, with .0 after a whole number.
func floatLiteral(v value.Value) string {
	text := value.FloatText(v)
	if math.IsNaN(v.Float64()) {
		return "nan"
	}
	if strings.Trim(text, "-0123456789") == "" {
		text += ".0"
	}
	return text
}

// Quote returns a value as a literal of a statement.
func Quote(v value.Value) string {
	switch v.Kind() { //nolint:exhaustive // the others need no type
	case value.KindString:
		return quoteString(v.Str())
	case value.KindBytes:
		return literalText(v, value.BytesType, time.UTC)
	default:
		return plainText(v, time.UTC)
	}
}

func quoteFor(s string) byte {
	if strings.Contains(s, `"`) && !strings.Contains(s, "'") {
		return '\''
	}
	return '"'
}

// escapeBytes escapes bytes that are not printable, and the quote; all quotes if it is 0.
func escapeBytes(s string, quote byte) string {
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case c < 0x20 || c >= 0x7f:
			fmt.Fprintf(&b, `\x%02x`, c)
		case c == '\\', (c == '"' || c == '\'' || c == '`') && (quote == 0 || quote == c):
			b.WriteByte('\\')
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

func quoteString(s string) string {
	quote := quoteFor(s)
	var b strings.Builder
	b.WriteByte(quote)
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c == '\\' || c == quote:
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < 0x20 || c == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte(quote)
	return b.String()
}
