package attr

import (
	"strconv"
	"strings"
)

// Range and precision of numbers. Source: developer guide, "Supported data types and
// naming rules in Amazon DynamoDB", Number.
const (
	// MaxDigits is the maximum number of significant digits.
	MaxDigits = 38
	// MaxExponent is the exponent of the first digit of the largest numbers.
	MaxExponent = 125
	// MinExponent is the exponent of the first digit of the smallest numbers.
	MinExponent = -130
)

// Number parses any text that DynamoDB accepts as a number, and returns a value of type N
// in canonical form. It returns the same errors as ParseNumber.
func Number(text string) (Value, error) {
	n, err := ParseNumber(text)
	if err != nil {
		return Value{}, err
	}
	return Value{Type: N, Str: n}, nil
}

// Int returns n as a value of type N.
func Int(n int64) Value { return Value{Type: N, Str: strconv.FormatInt(n, 10)} }

// ParseNumber returns the canonical text of a number: plain decimal notation as DynamoDB
// returns it, without exponent, superfluous zeros, plus sign or negative zero. The error
// is an *Error with the problem NotNumber, Overflow, Underflow or TooPrecise.
//
// The input is an optional sign, digits with at most one point before, between or after
// them, and an optional exponent of 64 bits, without blanks. If the number is zero, the
// exponent of its last digit must be in range.
func ParseNumber(text string) (string, error) {
	if isShortInteger(text) {
		return text, nil
	}
	d, problem := parseDecimal(text)
	if problem == 0 {
		problem = d.check()
	}
	if problem != 0 {
		e := newError(problem, N, text)
		e.Older = olderProblem(text)
		return "", e
	}
	return d.text(), nil
}

// olderProblem returns the problem that the service's older layer finds in a number that
// ParseNumber rejects. That layer uses Java's BigDecimal: exponent and scale have 32 bits, and
// the difference between precision and scale wraps around.
func olderProblem(text string) Problem {
	d, problem := parseDecimal(text)
	if problem != 0 {
		return problem
	}
	precision, scale, ok := Scale(text)
	switch magnitude := precision - scale; {
	case !ok:
		return NotNumber
	case magnitude > MaxExponent+1:
		return Overflow
	case magnitude < MinExponent+1:
		return Underflow
	}
	return d.check()
}

// Scale returns the precision and the scale of a number in text form, like Java's
// BigDecimal. The precision is the number of digits without leading zeros, at least 1. The
// scale is the number of fraction digits minus the exponent. ok is false if the exponent or
// the scale exceeds 32 bits.
func Scale(text string) (precision, scale int32, ok bool) {
	mantissa, exponent := text, int64(0)
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		var err error
		if exponent, err = strconv.ParseInt(text[i+1:], 10, 32); err != nil {
			return 0, 0, false
		}
		mantissa = text[:i]
	}
	whole, fraction, _ := strings.Cut(strings.TrimLeft(mantissa, "+-"), ".")
	wide := int64(len(fraction)) - exponent
	precision = int32(max(1, len(strings.TrimLeft(whole+fraction, "0")))) //nolint:gosec // a text is shorter than 2 GiB
	return precision, int32(wide), wide == int64(int32(wide))             //nolint:gosec // checked by the caller's ok
}

// shortDigits is the maximum number of digits of a short integer. The sum of two short integers fits
// into an int64.
const shortDigits = 18

// isShortInteger reports whether text is a canonical integer of at most shortDigits digits. Most
// numbers are, and need no parsing.
func isShortInteger(text string) bool {
	digits := text
	if len(text) > 1 && text[0] == '-' {
		digits = text[1:]
		if digits[0] == '0' {
			return false
		}
	}
	if len(digits) == 0 || len(digits) > shortDigits || digits[0] == '0' && len(digits) > 1 {
		return false
	}
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return false
		}
	}
	return true
}

// decimal is the number d.ddd × 10^exp, where digits is dddd without leading and trailing zeros.
// Zero has no digits and is not negative; its exp is the exponent of its last digit as given.
type decimal struct {
	negative bool
	exp      int
	digits   string
}

// exponentBound limits parsed exponents, so that the number of digits can be added to them
// without an overflow.
const exponentBound = 1 << 40

// parseDecimal parses the text of any number. It does not check range and precision, so the only
// problem that it returns is NotNumber.
func parseDecimal(text string) (decimal, Problem) {
	var d decimal
	rest := text
	if rest != "" && (rest[0] == '+' || rest[0] == '-') {
		d.negative = rest[0] == '-'
		rest = rest[1:]
	}
	whole := countDigits(rest)
	fraction := 0
	end := whole
	if end < len(rest) && rest[end] == '.' {
		fraction = countDigits(rest[end+1:])
		end += 1 + fraction
	}
	if whole+fraction == 0 {
		return d, NotNumber
	}
	mantissa, rest := rest[:end], rest[end:]
	exp := 0
	if rest != "" {
		if rest[0] != 'e' && rest[0] != 'E' {
			return d, NotNumber
		}
		wide, err := strconv.ParseInt(rest[1:], 10, 64)
		if err != nil {
			return d, NotNumber
		}
		// An exponent this large is out of range for any digits that fit in a request.
		exp = int(min(max(wide, -exponentBound), exponentBound))
	}
	digits := mantissa
	if whole < len(mantissa) {
		digits = mantissa[:whole] + mantissa[whole+1:]
	}
	significant := strings.TrimLeft(digits, "0")
	leading := len(digits) - len(significant)
	significant = strings.TrimRight(significant, "0")
	if significant == "" {
		return decimal{exp: exp - fraction}, 0
	}
	d.digits = significant
	d.exp = exp + whole - 1 - leading
	return d, 0
}

func countDigits(s string) int {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return i
		}
	}
	return len(s)
}

// check returns the problem of a decimal that DynamoDB cannot hold, or 0.
func (d decimal) check() Problem {
	switch {
	case d.exp > MaxExponent:
		return Overflow
	case d.exp < MinExponent:
		return Underflow
	case len(d.digits) > MaxDigits:
		return TooPrecise
	}
	return 0
}

// text returns the canonical text.
func (d decimal) text() string {
	if d.digits == "" {
		return "0"
	}
	n := len(d.digits)
	buf := make([]byte, 0, 3+max(n, d.exp+1, n-d.exp))
	if d.negative {
		buf = append(buf, '-')
	}
	switch {
	case d.exp < 0:
		buf = append(buf, '0', '.')
		for range -d.exp - 1 {
			buf = append(buf, '0')
		}
		buf = append(buf, d.digits...)
	case d.exp+1 >= n:
		buf = append(buf, d.digits...)
		for range d.exp + 1 - n {
			buf = append(buf, '0')
		}
	default:
		buf = append(buf, d.digits[:d.exp+1]...)
		buf = append(buf, '.')
		buf = append(buf, d.digits[d.exp+1:]...)
	}
	return string(buf)
}

// compareMagnitude compares |a| and |b|. The result is negative, zero or positive.
func compareMagnitude(a, b decimal) int {
	switch {
	case a.digits == "" || b.digits == "":
		return len(a.digits) - len(b.digits)
	case a.exp != b.exp:
		return a.exp - b.exp
	}
	return strings.Compare(a.digits, b.digits)
}

// CompareNumbers compares two canonical numbers by value. The result is negative, zero or
// positive.
func CompareNumbers(a, b string) int {
	if a == b {
		return 0
	}
	if isShortInteger(a) && isShortInteger(b) {
		// Both fit an int64, so ParseInt cannot fail.
		x, _ := strconv.ParseInt(a, 10, 64)
		y, _ := strconv.ParseInt(b, 10, 64)
		if x < y {
			return -1
		}
		return 1
	}
	x, _ := parseDecimal(a)
	y, _ := parseDecimal(b)
	if x.negative != y.negative {
		if x.negative {
			return -1
		}
		return 1
	}
	if x.negative {
		x, y = y, x
	}
	return compareMagnitude(x, y)
}

// AddNumbers returns the canonical text of a+b. It does not round: if DynamoDB cannot
// store the exact sum, or an argument, it returns an *Error.
func AddNumbers(a, b string) (string, error) { return sum(a, b, false) }

// SubtractNumbers returns the canonical text of a-b. It is exact, and returns the same
// errors as AddNumbers.
func SubtractNumbers(a, b string) (string, error) { return sum(a, b, true) }

func sum(a, b string, subtract bool) (string, error) {
	if isShortInteger(a) && isShortInteger(b) {
		x, _ := strconv.ParseInt(a, 10, 64)
		y, _ := strconv.ParseInt(b, 10, 64)
		if subtract {
			y = -y
		}
		return strconv.FormatInt(x+y, 10), nil
	}
	x, problem := parseDecimal(a)
	if problem != 0 {
		return "", newError(problem, N, a)
	}
	y, problem := parseDecimal(b)
	if problem != 0 {
		return "", newError(problem, N, b)
	}
	// The sum of numbers that DynamoDB cannot store could have too many digits.
	if problem = x.check(); problem != 0 {
		return "", newError(problem, N, a)
	}
	if problem = y.check(); problem != 0 {
		return "", newError(problem, N, b)
	}
	if subtract && y.digits != "" {
		y.negative = !y.negative
	}
	d := addDecimals(x, y)
	if problem = d.check(); problem != 0 {
		return "", newError(problem, N, d.text())
	}
	return d.text(), nil
}

// addDecimals returns the exact sum of two decimals that check accepts. It has at most about 300
// digits.
func addDecimals(x, y decimal) decimal {
	if x.digits == "" {
		return y
	}
	if y.digits == "" {
		return x
	}
	if compareMagnitude(x, y) < 0 {
		x, y = y, x
	}
	low := min(x.exp-len(x.digits), y.exp-len(y.digits)) + 1
	// digits[i] counts 10^(low+i). The last element is for a carry.
	digits := make([]int8, x.exp-low+2)
	for i := range len(x.digits) {
		digits[x.exp-i-low] = int8(x.digits[i] - '0')
	}
	sign := int8(1)
	if x.negative != y.negative {
		sign = -1
	}
	for i := range len(y.digits) {
		digits[y.exp-i-low] += sign * int8(y.digits[i]-'0')
	}
	for i := range len(digits) - 1 {
		switch {
		case digits[i] > 9:
			digits[i] -= 10
			digits[i+1]++
		case digits[i] < 0:
			digits[i] += 10
			digits[i+1]--
		}
	}
	text := make([]byte, len(digits))
	for i, d := range digits {
		text[len(digits)-1-i] = byte('0' + d)
	}
	significant := strings.TrimLeft(string(text), "0")
	d := decimal{negative: x.negative, exp: low + len(significant) - 1}
	d.digits = strings.TrimRight(significant, "0")
	if d.digits == "" {
		return decimal{}
	}
	return d
}

// MaxOrderedNumberBytes is the maximum length of the result of AppendOrderedNumber.
const MaxOrderedNumberBytes = 1 + 3 + MaxDigits + 1

// orderedBias makes every exponent a positive number of three digits.
const orderedBias = 300

// AppendOrderedNumber appends the order-preserving printable form of a canonical number. Its
// bytewise order is the numeric order. No form is a prefix of a form of another sign, and no
// form of a negative number is a prefix of any other form.
//
//	0         O
//	positive  P, exponent of the first digit + 300, digits
//	negative  N, nine's complement of the exponent + 300 and of the digits, ~
//
// A positive form may be a prefix of a larger one. To append other data, put a delimiter
// below '0' in between.
func AppendOrderedNumber(dst []byte, number string) []byte {
	d, _ := parseDecimal(number)
	if d.digits == "" {
		return append(dst, 'O')
	}
	exp := d.exp + orderedBias
	start := len(dst) + 1
	dst = append(dst, 'P', byte('0'+exp/100), byte('0'+exp/10%10), byte('0'+exp%10))
	dst = append(dst, d.digits...)
	if d.negative {
		dst[start-1] = 'N'
		complement(dst[start:])
		dst = append(dst, '~')
	}
	return dst
}

// complement replaces each digit d with 9-d.
func complement(digits []byte) {
	for i, c := range digits {
		digits[i] = '0' + '9' - c
	}
}

// ParseOrderedNumber returns the canonical text of the number that b holds in the form of
// AppendOrderedNumber. If b is anything else, the error is an *Error with the problem
// NotNumber.
func ParseOrderedNumber(b []byte) (string, error) {
	if len(b) == 1 && b[0] == 'O' {
		return "0", nil
	}
	fail := func() (string, error) { return "", newError(NotNumber, N, string(b)) }
	if len(b) < 5 || len(b) > MaxOrderedNumberBytes {
		return fail()
	}
	var d decimal
	body := b[1:]
	switch b[0] {
	case 'P':
	case 'N':
		if b[len(b)-1] != '~' {
			return fail()
		}
		body = b[1 : len(b)-1]
		d.negative = true
	default:
		return fail()
	}
	if countDigits(string(body)) != len(body) || len(body) < 4 {
		return fail()
	}
	var buf [MaxOrderedNumberBytes]byte
	digits := append(buf[:0], body...)
	if d.negative {
		complement(digits)
	}
	d.exp = int(digits[0]-'0')*100 + int(digits[1]-'0')*10 + int(digits[2]-'0') - orderedBias
	d.digits = string(digits[3:])
	if d.digits[0] == '0' || d.digits[len(d.digits)-1] == '0' || d.check() != 0 {
		return fail()
	}
	return d.text(), nil
}
