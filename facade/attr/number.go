package attr

// MaxDigits is how many significant digits a number may have.
const MaxDigits = 38

// Number returns a value of type N, in canonical form, from any text that
// DynamoDB accepts. See ParseNumber for the errors.
func Number(text string) (Value, error) { panic("x") }

// Int returns a value of type N.
func Int(n int64) Value { panic("x") }

// ParseNumber returns the canonical text of a number: plain decimal notation
// as DynamoDB returns it, without exponent, superfluous zeros, plus sign or
// negative zero. The error is an *Error: NotNumber, Overflow, Underflow or
// TooPrecise.
func ParseNumber(text string) (string, error) { panic("x") }

// CompareNumbers compares two canonical numbers by value: -1, 0 or 1.
func CompareNumbers(a, b string) int { panic("x") }

// AddNumbers returns the canonical text of a+b. It fails with an *Error where
// the exact sum is not a number that DynamoDB can hold.
func AddNumbers(a, b string) (string, error) { panic("x") }

// SubtractNumbers returns the canonical text of a-b, as AddNumbers.
func SubtractNumbers(a, b string) (string, error) { panic("x") }

// MaxOrderedNumberBytes is the length of the longest ordered number.
const MaxOrderedNumberBytes = 43

// AppendOrderedNumber appends the order-preserving printable form of a
// canonical number.
func AppendOrderedNumber(dst []byte, number string) []byte { panic("x") }

// ParseOrderedNumber returns the canonical text of a number in ordered form;
// all of b is read.
func ParseOrderedNumber(b []byte) (string, error) { panic("x") }
