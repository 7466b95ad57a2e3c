package attr

import (
	"bytes"
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/cockroachdb/apd/v3"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestParseNumber(t *testing.T) {
	t.Parallel()
	nines := strings.Repeat("9", 38)
	for _, c := range []struct {
		text, want string
		problem    Problem
	}{
		{text: "0", want: "0"},
		{text: "-0", want: "0"},
		{text: "0.000", want: "0"},
		{text: "0e125", want: "0"},
		{text: "-0.00e127", want: "0"},
		{text: "0e-130", want: "0"},
		{text: "7", want: "7"},
		{text: "+5", want: "5"},
		{text: "-12", want: "-12"},
		{text: "0042.1200", want: "42.12"},
		{text: "-007", want: "-7"},
		{text: ".5", want: "0.5"},
		{text: "5.", want: "5"},
		{text: "1.e5", want: "100000"},
		{text: "1E5", want: "100000"},
		{text: "1e+2", want: "100"},
		{text: "1.25e1", want: "12.5"},
		{text: "125e-2", want: "1.25"},
		{text: "-125e-5", want: "-0.00125"},
		{text: "100", want: "100"},
		{text: "123456789012345678", want: "123456789012345678"},
		{text: "1234567890123456789", want: "1234567890123456789"},
		{text: nines, want: nines},
		{text: "0." + nines, want: "0." + nines},
		{text: nines + "000", want: nines + "000"},
		{text: "00" + nines + ".00", want: nines},
		{text: "1E125", want: "1" + strings.Repeat("0", 125)},
		{text: "9.9999999999999999999999999999999999999E+125", want: nines + strings.Repeat("0", 88)},
		{text: "1E-130", want: "0." + strings.Repeat("0", 129) + "1"},
		{text: "0.00001E130", want: "1" + strings.Repeat("0", 125)},
		{text: "1" + strings.Repeat("0", 200) + "E-100", want: "1" + strings.Repeat("0", 100)},

		{text: "", problem: NotNumber},
		{text: " 1", problem: NotNumber},
		{text: "1 ", problem: NotNumber},
		{text: "1 2", problem: NotNumber},
		{text: "1.2.3", problem: NotNumber},
		{text: "0x10", problem: NotNumber},
		{text: "NaN", problem: NotNumber},
		{text: "Infinity", problem: NotNumber},
		{text: "-Infinity", problem: NotNumber},
		{text: "1e", problem: NotNumber},
		{text: "1e+", problem: NotNumber},
		{text: "+e2", problem: NotNumber},
		{text: "e2", problem: NotNumber},
		{text: ".", problem: NotNumber},
		{text: "-", problem: NotNumber},
		{text: "--1", problem: NotNumber},
		{text: "1_000", problem: NotNumber},
		{text: "1,5", problem: NotNumber},
		{text: "1e1.5", problem: NotNumber},
		{text: "\u0661", problem: NotNumber},
		{text: "0e999999999999999999999999", problem: NotNumber},
		{text: "1E99999999999999999999999999", problem: NotNumber},
		{text: "1E-99999999999999999999999999", problem: NotNumber},
		{text: "1e9223372036854775808", problem: NotNumber},
		{text: "1e9223372036854775807", problem: Overflow},
		{text: "1234e9223372036854775807", problem: Overflow},
		{text: "0.01e-9223372036854775808", problem: Underflow},
		{text: "0e126", problem: Overflow},
		{text: "0.0e127", problem: Overflow},
		{text: "0e-131", problem: Underflow},
		{text: "0." + strings.Repeat("0", 131), problem: Underflow},
		{text: "1E126", problem: Overflow},
		{text: "-1E126", problem: Overflow},
		{text: "9.99E-131", problem: Underflow},
		{text: nines + "9", problem: TooPrecise},
		{text: "1" + strings.Repeat("0", 37) + ".1", problem: TooPrecise},
	} {
		got, err := ParseNumber(c.text)
		var e *Error
		if errors.As(err, &e) {
			if e.Problem != c.problem || e.Text != c.text {
				t.Errorf("ParseNumber(%q): problem %d of %q, want %d", c.text, e.Problem, e.Text, c.problem)
			}
			continue
		}
		if c.problem != 0 || got != c.want {
			t.Errorf("ParseNumber(%q) = %q, want %q, problem %d", c.text, got, c.want, c.problem)
		}
	}
}

// The older layer of the service stores exponents and scales in 32 bits.
func TestParseNumber_OlderLayer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text           string
		problem, older Problem
	}{
		{"x", NotNumber, NotNumber},
		{"1e126", Overflow, Overflow},
		{"1e-131", Underflow, Underflow},
		{"1e2147483646", Overflow, Overflow},
		{"1e2147483647", Overflow, Underflow},
		{"12e2147483646", Overflow, Underflow},
		{"0012.00e2147483648", Overflow, NotNumber},
		{"0012.00e2147483647", Overflow, Underflow},
		{"1e2147483648", Overflow, NotNumber},
		{"1e-2147483647", Underflow, Underflow},
		{"1.5e-2147483647", Underflow, NotNumber},
		{"1e-2147483648", Underflow, NotNumber},
		{strings.Repeat("1", 39), TooPrecise, TooPrecise},
	} {
		var e *Error
		if _, err := ParseNumber(c.text); !errors.As(err, &e) || e.Problem != c.problem || e.Older != c.older {
			t.Errorf("ParseNumber(%q): %+v, want problems %d and %d", c.text, e, c.problem, c.older)
		}
	}
}

// TestAppendOrderedNumber checks the examples in the description of the format.
func TestAppendOrderedNumber(t *testing.T) {
	t.Parallel()
	for number, want := range map[string]string{
		"0": "O", "3": "P3003", "20": "P3012", "0.5": "P2995",
		"-1.2": "N69987~", "-1.23": "N699876~", "1E-130": "P1701", "1E125": "P4251",
		"-" + strings.Repeat("9", 38): "N662" + strings.Repeat("0", 38) + "~",
	} {
		canonical, err := ParseNumber(number)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(AppendOrderedNumber(nil, canonical)); got != want {
			t.Errorf("ordered %s = %s, want %s", number, got, want)
		}
		if back, err := ParseOrderedNumber([]byte(want)); err != nil || back != canonical {
			t.Errorf("ParseOrderedNumber(%s) = %s, %v, want %s", want, back, err, canonical)
		}
	}
	for _, bad := range []string{
		"", "P", "O0", "Q3001", "P300", "P3000", "P30010", "P4261", "P1691", "p3001", "N6998", "N6999~", "N69989~", "N699~",
		"P300a", "N6998~~", "P300" + strings.Repeat("1", 39), "P3001~", " O",
	} {
		if got, err := ParseOrderedNumber([]byte(bad)); err == nil {
			t.Errorf("ParseOrderedNumber(%q) = %s, want an error", bad, got)
		}
	}
}

// numbers generates canonical numbers of the whole domain: every exponent, every number of
// digits; short integers and neighbors are frequent.
func numbers() *rapid.Generator[string] {
	whole := rapid.Custom(func(t *rapid.T) string {
		n := rapid.IntRange(1, MaxDigits).Draw(t, "digits")
		digits := rapid.StringMatching(`[1-9][0-9]*`).Draw(t, "first")
		digits += strings.Repeat(rapid.SampledFrom([]string{"0", "1", "9"}).Draw(t, "fill"), n)
		digits = digits[:n]
		exp := rapid.IntRange(MinExponent, MaxExponent).Draw(t, "exponent")
		sign := rapid.SampledFrom([]string{"", "-"}).Draw(t, "sign")
		text, err := ParseNumber(sign + digits[:1] + "." + digits[1:] + "e" + big.NewInt(int64(exp)).String())
		if err != nil {
			t.Fatalf("%v", err)
		}
		return text
	})
	short := rapid.Custom(func(t *rapid.T) string { return Int(rapid.Int64Range(-200, 200).Draw(t, "n")).Str })
	long := rapid.Custom(func(t *rapid.T) string { return Int(rapid.Int64().Draw(t, "n")).Str })
	return rapid.OneOf(whole, whole, short, long)
}

func oracle(t *rapid.T, text string) *apd.Decimal {
	d, _, err := apd.NewFromString(text)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return d
}

func sign(n int) int {
	return min(max(n, -1), 1)
}

func TestNumberCanonical(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := numbers().Draw(t, "n")
		again, err := ParseNumber(n)
		if err != nil || again != n {
			t.Fatalf("%s reads as %s, %v", n, again, err)
		}
		// Every other spelling of the same value has the same canonical text.
		d := oracle(t, n)
		for _, format := range []byte("eEG") {
			if got, err := ParseNumber(d.Text(format)); err != nil || got != n {
				t.Fatalf("%s reads as %s, %v, want %s", d.Text(format), got, err, n)
			}
		}
	})
}

func TestCompareNumbers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := numbers().Draw(t, "a"), numbers().Draw(t, "b")
		want := oracle(t, a).Cmp(oracle(t, b))
		if got := sign(CompareNumbers(a, b)); got != want {
			t.Fatalf("compare %s with %s = %d, want %d", a, b, got, want)
		}
		if got := sign(CompareNumbers(a, a)); got != 0 {
			t.Fatalf("compare %s with itself = %d", a, got)
		}
		ordered, other := AppendOrderedNumber(nil, a), AppendOrderedNumber(nil, b)
		if got := bytes.Compare(ordered, other); got != want {
			t.Fatalf("ordered %s = %s, %s = %s: compare %d, want %d", a, ordered, b, other, got, want)
		}
		// The same with more data after it, as in a key of several parts.
		if got := bytes.Compare(append(ordered, "#z"...), append(other, "#a"...)); want != 0 && got != want {
			t.Fatalf("ordered %s# against %s#: compare %d, want %d", a, b, got, want)
		}
	})
}

func TestOrderedNumberInverse(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := numbers().Draw(t, "n")
		ordered := AppendOrderedNumber([]byte("prefix"), n)[len("prefix"):]
		if len(ordered) > MaxOrderedNumberBytes {
			t.Fatalf("%s has %d bytes", ordered, len(ordered))
		}
		back, err := ParseOrderedNumber(ordered)
		if err != nil || back != n {
			t.Fatalf("%s = %s reads back as %s, %v", n, ordered, back, err)
		}
	})
}

func TestAddNumbers(t *testing.T) {
	t.Parallel()
	exact := apd.BaseContext.WithPrecision(1000)
	rapid.Check(t, func(t *rapid.T) {
		a, b := numbers().Draw(t, "a"), numbers().Draw(t, "b")
		if rapid.Bool().Draw(t, "close") {
			// Most pairs are too far apart for a sum of 38 digits.
			b = strings.Replace(a, "1", "2", 2)
		}
		for _, op := range []struct {
			name  string
			ours  func(a, b string) (string, error)
			exact func(d, x, y *apd.Decimal) (apd.Condition, error)
		}{
			{"+", AddNumbers, exact.Add},
			{"-", SubtractNumbers, exact.Sub},
		} {
			var d apd.Decimal
			if _, err := op.exact(&d, oracle(t, a), oracle(t, b)); err != nil {
				t.Fatal(err)
			}
			if d.IsZero() {
				d.Exponent = 0 // a zero difference is written 0
			}
			want, wantErr := ParseNumber(d.Text('e'))
			got, err := op.ours(a, b)
			if got != want || (err == nil) != (wantErr == nil) {
				t.Fatalf("%s %s %s = %s, %v, want %s, %v", a, op.name, b, got, err, want, wantErr)
			}
			var e, wantE *Error
			if errors.As(err, &e) && errors.As(wantErr, &wantE) && e.Problem != wantE.Problem {
				t.Fatalf("%s %s %s: %v, want %v", a, op.name, b, err, wantErr)
			}
		}
	})
}

func TestAddNumbersRefused(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "x", "1E200", "1E-200", "1" + strings.Repeat("0", 50) + "1"} {
		if got, err := AddNumbers("1", bad); err == nil {
			t.Errorf("1 + %q = %s", bad, got)
		}
		if got, err := SubtractNumbers(bad, "1"); err == nil {
			t.Errorf("%q - 1 = %s", bad, got)
		}
	}
}

func FuzzParseNumber(f *testing.F) {
	for _, seed := range []string{"0", "-1.5e3", "1E-130", "00.100", "+.5", "1e", strings.Repeat("9", 40)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ParseNumber(text)
		if err != nil {
			return
		}
		again, err := ParseNumber(n)
		if err != nil || again != n {
			t.Fatalf("%q reads as %q, which reads as %q, %v", text, n, again, err)
		}
		if back, err := ParseOrderedNumber(AppendOrderedNumber(nil, n)); err != nil || back != n {
			t.Fatalf("%q in order and back is %q, %v", n, back, err)
		}
		if size := (Value{Type: N, Str: n}).Size(); size < 1 || size > 22 {
			t.Fatalf("%q has %d bytes", n, size)
		}
	})
}

func FuzzParseOrderedNumber(f *testing.F) {
	for _, seed := range []string{"O", "P3003", "N69987~", "P300", "N~"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := ParseOrderedNumber(b)
		if err != nil {
			return
		}
		if diff := cmp.Diff(string(b), string(AppendOrderedNumber(nil, n))); diff != "" {
			t.Fatalf("%s: two forms of one number:\n%s", n, diff)
		}
	})
}
