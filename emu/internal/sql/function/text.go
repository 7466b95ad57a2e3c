package function

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

func textTable() []*Function {
	return []*Function{
		fn("ASCII", both("X -> INT64", func(_ *Context, a []value.Value) (value.Value, error) {
			r, _ := utf8.DecodeRuneInString(a[0].Str())
			switch {
			case a[0].Str() == "":
				r = 0
			case r > 127:
				return value.Null, value.OutOfRange("Argument to ASCII is not a structurally valid ASCII string: '%s'", a[0].Str())
			}
			return value.Int64(int64(r)), nil
		}, func(_ *Context, a []value.Value) (value.Value, error) {
			if a[0].Str() == "" {
				return value.Int64(0), nil
			}
			return value.Int64(int64(a[0].Str()[0])), nil
		})...),
		fn("UNICODE", sig("STRING -> INT64", func(_ *Context, a []value.Value) (value.Value, error) {
			if a[0].Str() == "" {
				return value.Int64(0), nil
			}
			r, _ := utf8.DecodeRuneInString(a[0].Str())
			return value.Int64(int64(r)), nil
		})),
		fn("CHR", sig("INT64 -> STRING", func(_ *Context, a []value.Value) (value.Value, error) {
			return codePointsToString(a)
		})),
		fn("TO_CODE_POINTS", both("X -> ARRAY<INT64>", func(_ *Context, a []value.Value) (value.Value, error) {
			n := utf8.RuneCountInString(a[0].Str())
			if err := checkElements(n); err != nil {
				return value.Null, err
			}
			out := slices.Grow([]value.Value(nil), n)
			for _, r := range a[0].Str() {
				out = append(out, value.Int64(int64(r)))
			}
			return value.Array(out), nil
		}, func(_ *Context, a []value.Value) (value.Value, error) {
			n := len(a[0].Str())
			if err := checkElements(n); err != nil {
				return value.Null, err
			}
			out := slices.Grow([]value.Value(nil), n)
			for _, b := range a[0].Bytes() {
				out = append(out, value.Int64(int64(b)))
			}
			return value.Array(out), nil
		})...),
		fn("CODE_POINTS_TO_STRING", sig("ARRAY<INT64> -> STRING", func(_ *Context, a []value.Value) (value.Value, error) {
			return codePointsToString(a[0].Elems())
		})),
		fn("CODE_POINTS_TO_BYTES", sig("ARRAY<INT64> -> BYTES", func(_ *Context, a []value.Value) (value.Value, error) {
			var out []byte
			for _, v := range a[0].Elems() {
				n := v.Int64()
				if v.IsNull() {
					return value.Null, nil
				}
				if n < 0 || n > 255 {
					return value.Null, value.OutOfRange("Invalid ASCII value %d", n)
				}
				out = append(out, byte(n))
			}
			return value.Bytes(out), nil
		})),
		fn("UPPER", both("X -> X", inCase(strings.ToUpper, cases.Upper), upperBytes)...),
		fn("LOWER", both("X -> X", inCase(strings.ToLower, cases.Lower), lowerBytes)...),
		fn("INITCAP", sig("STRING, [STRING] -> STRING", initcap)),
		fn("SOUNDEX", sig("STRING -> STRING", soundex)),
		fn("NORMALIZE", bound("STRING, [PART] -> STRING", bindNormalize(false))),
		fn("NORMALIZE_AND_CASEFOLD", bound("STRING, [PART] -> STRING", bindNormalize(true))),
		fn("FORMAT", open("STRING -> STRING", bindFormat), open("STRING, ANY... -> STRING", bindFormat)),
	}
}

func codePointsToString(points []value.Value) (value.Value, error) {
	var b strings.Builder
	for _, v := range points {
		n := v.Int64()
		if v.IsNull() {
			return value.Null, nil
		}
		if n < 0 || n > unicode.MaxRune || !utf8.ValidRune(rune(n)) {
			return value.Null, value.OutOfRange("Invalid codepoint %d", n)
		}
		b.WriteRune(rune(n))
	}
	return value.String(b.String()), nil
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// inCase maps a text to a letter case. Some characters outside of ASCII become several, which only full
// does.
func inCase(ascii func(string) string, full func(language.Tag, ...cases.Option) cases.Caser) Eval {
	return func(_ *Context, a []value.Value) (value.Value, error) {
		if isASCII(a[0].Str()) {
			return value.String(ascii(a[0].Str())), nil
		}
		return value.String(full(language.Und).String(a[0].Str())), nil
	}
}

func upperBytes(_ *Context, a []value.Value) (value.Value, error) {
	return mapBytes(a[0], 'a', 'z', -0x20), nil
}

func lowerBytes(_ *Context, a []value.Value) (value.Value, error) {
	return mapBytes(a[0], 'A', 'Z', 0x20), nil
}

func mapBytes(v value.Value, from, to byte, by int) value.Value {
	b := []byte(v.Str())
	for i, c := range b {
		if c >= from && c <= to {
			b[i] = byte(int(c) + by)
		}
	}
	return value.Bytes(b)
}

// initcapDelimiters end words, as does white space.
const initcapDelimiters = "[](){}/|\\<>!?@\"#$&~_,.:;*%+-^"

func initcap(_ *Context, a []value.Value) (value.Value, error) {
	isDelimiter := func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(initcapDelimiters, r) }
	if len(a) > 1 {
		isDelimiter = func(r rune) bool { return strings.ContainsRune(a[1].Str(), r) }
	}
	start := true
	return value.String(strings.Map(func(r rune) rune {
		switch {
		case isDelimiter(r):
			start = true
			return r
		case start:
			start = false
			return unicode.ToUpper(r)
		}
		return unicode.ToLower(r)
	}, a[0].Str())), nil
}

// soundexCodes are the codes of the letters from A. A vowel, H, W or Y has none, and does not
// separate equal codes.
const soundexCodes = "01230120022455012623010202"

func soundex(_ *Context, a []value.Value) (value.Value, error) {
	var out []byte
	previous := byte('0')
	for _, c := range a[0].Bytes() {
		letter := c &^ 0x20
		if letter < 'A' || letter > 'Z' {
			continue
		}
		code := soundexCodes[letter-'A']
		switch {
		case len(out) == 0:
			out, previous = append(out, c), code
		case code != '0' && code != previous && len(out) < 4:
			out, previous = append(out, code), code
		}
	}
	if len(out) == 0 {
		return value.String(""), nil
	}
	return value.String((string(out) + "000")[:4]), nil
}

func bindNormalize(fold bool) func(c *Call) (Eval, error) {
	return func(c *Call) (Eval, error) {
		form := norm.NFC
		switch mode := c.part(1); mode {
		case "", "NFC":
		case "NFD":
			form = norm.NFD
		case "NFKC":
			form = norm.NFKC
		case "NFKD":
			form = norm.NFKD
		default:
			return nil, value.InvalidArgument("%s is not a normalization mode", mode)
		}
		return func(_ *Context, a []value.Value) (value.Value, error) {
			s := form.String(a[0].Str())
			if fold {
				s = cases.Fold().String(s)
			}
			return value.String(s), nil
		}, nil
	}
}
