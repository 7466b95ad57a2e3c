package function

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// both returns the signatures of a function for STRING and for BYTES; X stands for the type.
func both(text string, ofString, ofBytes Eval) []signature {
	return []signature{sig(strings.ReplaceAll(text, "X", "STRING"), ofString), sig(strings.ReplaceAll(text, "X", "BYTES"), ofBytes)}
}

func length(_ *Context, a []value.Value) (value.Value, error) {
	return value.Int64(int64(len(a[0].Str()))), nil
}

func runeCount(_ *Context, a []value.Value) (value.Value, error) {
	return value.Int64(int64(utf8.RuneCountInString(a[0].Str()))), nil
}

func stringTable() []*Function {
	return []*Function{
		fn("BYTE_LENGTH", both("X -> INT64", length, length)...),
		fn("CHAR_LENGTH", sig("STRING -> INT64", runeCount)),
		fn("LENGTH", both("X -> INT64", runeCount, length)...),
		fn("CONCAT", both("X... -> X", concat, concat)...),
		fn("STARTS_WITH", both("X, X -> BOOL", startsWith, startsWith)...),
		fn("ENDS_WITH", both("X, X -> BOOL", endsWith, endsWith)...),
		fn("STRPOS", both("X, X -> INT64", strpos(true), strpos(false))...),
		fn("INSTR", both("X, X, [INT64], [INT64] -> INT64", instr(true), instr(false))...),
		fn("SUBSTR", both("X, INT64, [INT64] -> X", substr(true), substr(false))...),
		fn("LEFT", both("X, INT64 -> X", leftmost(true), leftmost(false))...),
		fn("RIGHT", both("X, INT64 -> X", rightmost(true), rightmost(false))...),
		fn("LPAD", both("X, INT64, [X] -> X", pad(true, true), pad(true, false))...),
		fn("RPAD", both("X, INT64, [X] -> X", pad(false, true), pad(false, false))...),
		fn("REPEAT", both("X, INT64 -> X", repeat, repeat)...),
		fn("REPLACE", both("X, X, X -> X", replace, replace)...),
		fn("REVERSE", both("X -> X", reverseRunes, reverseBytes)...),
		fn("SPLIT", sig("STRING, [STRING] -> ARRAY<STRING>", split), sig("BYTES, BYTES -> ARRAY<BYTES>", split)),
		fn("TRIM", trimSignatures(true, true)...),
		fn("LTRIM", trimSignatures(true, false)...),
		fn("RTRIM", trimSignatures(false, true)...),
		fn("TRANSLATE", both("X, X, X -> X", translateRunes, translateBytes)...),
	}
}

func startsWith(_ *Context, a []value.Value) (value.Value, error) {
	return value.Bool(strings.HasPrefix(a[0].Str(), a[1].Str())), nil
}

func endsWith(_ *Context, a []value.Value) (value.Value, error) {
	return value.Bool(strings.HasSuffix(a[0].Str(), a[1].Str())), nil
}

// position returns the number of a character, or of a byte, from 1; 0 for a negative offset.
func position(s string, offset int, runes bool) value.Value {
	switch {
	case offset < 0:
		return value.Int64(0)
	case runes:
		offset = utf8.RuneCountInString(s[:offset])
	}
	return value.Int64(int64(offset) + 1)
}

func strpos(runes bool) Eval {
	return func(_ *Context, a []value.Value) (value.Value, error) {
		return position(a[0].Str(), strings.Index(a[0].Str(), a[1].Str()), runes), nil
	}
}

// offsetOf returns the byte offset of the n-th character, or of the n-th byte if runes is false,
// counted from 0. ok is false if n is after the end of s.
func offsetOf(s string, n int64, runes bool) (offset int, ok bool) {
	if !runes || n > int64(len(s)) {
		return int(min(n, int64(len(s)))), n <= int64(len(s))
	}
	for ; n > 0; n-- {
		if offset == len(s) {
			return offset, false
		}
		_, size := utf8.DecodeRuneInString(s[offset:])
		offset += size
	}
	return offset, true
}

// offsetFromEnd is like offsetOf, but counts the n characters or bytes from the end of s.
func offsetFromEnd(s string, n int64, runes bool) (offset int, ok bool) {
	if !runes || n > int64(len(s)) {
		return int(max(0, int64(len(s))-n)), n <= int64(len(s))
	}
	offset = len(s)
	for ; n > 0; n-- {
		if offset == 0 {
			return 0, false
		}
		_, size := utf8.DecodeLastRuneInString(s[:offset])
		offset -= size
	}
	return offset, true
}

// instr finds the n-th occurrence from a position; from a negative one, it searches backwards.
// Occurrences may overlap.
func instr(runes bool) Eval {
	return func(_ *Context, a []value.Value) (value.Value, error) {
		s, sub := a[0].Str(), a[1].Str()
		start, occurrence := int64(1), int64(1)
		if len(a) > 2 {
			start = a[2].Int64()
		}
		if len(a) > 3 {
			occurrence = a[3].Int64()
		}
		if occurrence < 1 {
			return value.Null, value.OutOfRange("Occurrence must be positive")
		}
		if start == 0 {
			return value.Null, value.OutOfRange("Position must be non-zero")
		}
		if start > 0 {
			return value.Int64(findForward(s, sub, start-1, occurrence, runes)), nil
		}
		return value.Int64(findBackward(s, sub, -(start + 1), occurrence, runes)), nil
	}
}

func findForward(s, sub string, start, occurrence int64, runes bool) int64 {
	offset, ok := offsetOf(s, start, runes)
	for ; ok; occurrence-- {
		i := strings.Index(s[offset:], sub)
		if i < 0 {
			return 0
		}
		if offset += i; occurrence == 1 {
			return position(s, offset, runes).Int64()
		}
		if offset == len(s) {
			return 0
		}
		step, _ := offsetOf(s[offset:], 1, runes)
		offset += step
	}
	return 0
}

func findBackward(s, sub string, fromEnd, occurrence int64, runes bool) int64 {
	if sub != "" {
		if fromEnd >= int64(len(s)) {
			return 0
		}
		fromEnd++ // of the character in which a match may begin
	}
	offset, ok := offsetFromEnd(s, fromEnd, runes)
	for ; ok; occurrence-- {
		i := strings.LastIndex(s[:min(offset+len(sub), len(s))], sub)
		if i < 0 {
			return 0
		}
		if offset = i; occurrence == 1 {
			return position(s, offset, runes).Int64()
		}
		if offset == 0 {
			return 0
		}
		offset, ok = offsetFromEnd(s[:offset], 1, runes)
	}
	return 0
}

func substr(runes bool) Eval {
	return func(_ *Context, a []value.Value) (value.Value, error) {
		s, start := a[0].Str(), a[1].Int64()
		from := 0
		switch {
		case start > 0:
			var ok bool
			if from, ok = offsetOf(s, start-1, runes); !ok {
				from = len(s)
			}
		case start < 0:
			from, _ = offsetFromEnd(s, -max(start, -int64(len(s))-1), runes)
		}
		s = s[from:]
		if len(a) > 2 {
			n := a[2].Int64()
			if n < 0 {
				return value.Null, value.OutOfRange("Third argument in SUBSTR() cannot be negative")
			}
			to, _ := offsetOf(s, n, runes)
			s = s[:to]
		}
		return textLike(a[0], s), nil
	}
}

func leftmost(runes bool) Eval {
	return func(_ *Context, a []value.Value) (value.Value, error) {
		n := a[1].Int64()
		if n < 0 {
			return value.Null, value.OutOfRange("Second argument in LEFT() cannot be negative")
		}
		to, _ := offsetOf(a[0].Str(), n, runes)
		return textLike(a[0], a[0].Str()[:to]), nil
	}
}

func rightmost(runes bool) Eval {
	return func(_ *Context, a []value.Value) (value.Value, error) {
		n := a[1].Int64()
		if n < 0 {
			return value.Null, value.OutOfRange("Second argument in RIGHT() cannot be negative")
		}
		from, _ := offsetFromEnd(a[0].Str(), n, runes)
		return textLike(a[0], a[0].Str()[from:]), nil
	}
}

func padTooLong() error {
	return value.OutOfRange("Output of LPAD/RPAD exceeds max allowed output size of 1MB")
}

func pad(left, runes bool) Eval {
	return func(_ *Context, a []value.Value) (value.Value, error) {
		s, size, filler := a[0].Str(), a[1].Int64(), " "
		if len(a) > 2 {
			filler = a[2].Str()
		}
		switch {
		case size < 0:
			return value.Null, value.OutOfRange("Second argument (output size) for LPAD/RPAD cannot be negative")
		case size > maxOutput:
			return value.Null, padTooLong()
		case filler == "":
			return value.Null, value.OutOfRange("Third argument (pad pattern) for LPAD/RPAD cannot be empty")
		}
		count := func(s string) int64 {
			if runes {
				return int64(utf8.RuneCountInString(s))
			}
			return int64(len(s))
		}
		missing := size - count(s)
		if missing <= 0 {
			to, _ := offsetOf(s, size, runes)
			return textLike(a[0], s[:to]), nil
		}
		each := count(filler)
		to, _ := offsetOf(filler, missing%each, runes)
		if missing/each*int64(len(filler))+int64(to)+int64(len(s)) > maxOutput {
			return value.Null, padTooLong()
		}
		padding := strings.Repeat(filler, int(missing/each)) + filler[:to]
		if left {
			return textLike(a[0], padding+s), nil
		}
		return textLike(a[0], s+padding), nil
	}
}

func repeat(_ *Context, a []value.Value) (value.Value, error) {
	s, n := a[0].Str(), a[1].Int64()
	if n < 0 {
		return value.Null, value.OutOfRange("Second argument (repeat count) for REPEAT cannot be negative")
	}
	if s == "" {
		return a[0], nil
	}
	if n > maxOutput/int64(len(s)) {
		return value.Null, value.OutOfRange("Output of REPEAT exceeds max allowed output size of 1MB")
	}
	return textLike(a[0], strings.Repeat(s, int(n))), nil
}

func replace(_ *Context, a []value.Value) (value.Value, error) {
	s, from, to := a[0].Str(), a[1].Str(), a[2].Str()
	if from == "" {
		return a[0], nil
	}
	n := strings.Count(s, from)
	if len(s)+n*(len(to)-len(from)) > maxOutput {
		return value.Null, value.OutOfRange("Output of REPLACE exceeds max allowed output size of 1MB")
	}
	return textLike(a[0], strings.ReplaceAll(s, from, to)), nil
}

func reverseRunes(_ *Context, a []value.Value) (value.Value, error) {
	s := a[0].Str()
	b := make([]byte, 0, len(s))
	for s != "" {
		_, n := utf8.DecodeLastRuneInString(s)
		b = append(b, s[len(s)-n:]...)
		s = s[:len(s)-n]
	}
	return textOf(a[0], b), nil
}

func reverseBytes(_ *Context, a []value.Value) (value.Value, error) {
	s := a[0].Str()
	b := make([]byte, len(s))
	for i := range len(s) {
		b[len(s)-1-i] = s[i]
	}
	return value.Bytes(b), nil
}

// split returns parts that share the memory of the text. An empty delimiter splits a STRING into
// characters, and a BYTES into bytes.
func split(_ *Context, a []value.Value) (value.Value, error) {
	s, delimiter := a[0].Str(), ","
	if len(a) > 1 {
		delimiter = a[1].Str()
	}
	if err := checkElements(strings.Count(s, delimiter)); err != nil {
		return value.Null, err
	}
	var parts []value.Value
	switch {
	case s == "" || delimiter != "":
		parts = make([]value.Value, 0, strings.Count(s, delimiter)+1)
		for part := range strings.SplitSeq(s, delimiter) {
			parts = append(parts, textLike(a[0], part))
		}
		if len(parts) == 0 {
			parts = []value.Value{a[0]}
		}
	default:
		for s != "" {
			n := 1
			if a[0].Kind() == value.KindString {
				_, n = utf8.DecodeRuneInString(s)
			}
			parts = append(parts, textLike(a[0], s[:n]))
			s = s[n:]
		}
	}
	return value.Array(parts), nil
}

func trimSignatures(left, right bool) []signature {
	trim := func(a value.Value, leave func(s string, left bool) string) value.Value {
		s := a.Str()
		if left {
			s = leave(s, true)
		}
		if right {
			s = leave(s, false)
		}
		return textLike(a, s)
	}
	byFunc := func(in func(rune) bool) func(string, bool) string {
		return func(s string, left bool) string {
			if left {
				return strings.TrimLeftFunc(s, in)
			}
			return strings.TrimRightFunc(s, in)
		}
	}
	return []signature{
		sig("STRING, [STRING] -> STRING", func(_ *Context, a []value.Value) (value.Value, error) {
			if len(a) == 1 {
				return trim(a[0], byFunc(unicode.IsSpace)), nil
			}
			return trim(a[0], byFunc(func(r rune) bool { return strings.ContainsRune(a[1].Str(), r) })), nil
		}),
		sig("BYTES, BYTES -> BYTES", func(_ *Context, a []value.Value) (value.Value, error) {
			return trim(a[0], func(s string, left bool) string {
				for s != "" {
					if left && strings.IndexByte(a[1].Str(), s[0]) >= 0 {
						s = s[1:]
					} else if !left && strings.IndexByte(a[1].Str(), s[len(s)-1]) >= 0 {
						s = s[:len(s)-1]
					} else {
						break
					}
				}
				return s
			}), nil
		}),
	}
}

// translateRunes replaces each character of the second argument with the character at the same place of
// the third, and removes those beyond its end.
func translateRunes(_ *Context, a []value.Value) (value.Value, error) {
	targets := []rune(a[2].Str())
	to := map[rune]rune{}
	i := 0
	for _, r := range a[1].Str() {
		if _, ok := to[r]; ok {
			return value.Null, value.OutOfRange("Duplicate character %c in TRANSLATE source characters", r)
		}
		to[r] = -1
		if i < len(targets) {
			to[r] = targets[i]
		}
		i++
	}
	out := strings.Map(func(r rune) rune {
		if t, ok := to[r]; ok {
			return t
		}
		return r
	}, a[0].Str())
	if len(out) > maxOutput {
		return value.Null, value.OutOfRange("Output of TRANSLATE exceeds max allowed output size of 1MB")
	}
	return value.String(out), nil
}

func translateBytes(_ *Context, a []value.Value) (value.Value, error) {
	var to [256]int
	for i := range to {
		to[i] = i
	}
	var seen [256]bool
	for i, c := range a[1].Bytes() {
		if seen[c] {
			return value.Null, value.OutOfRange("Duplicate byte 0x%02x in TRANSLATE source bytes", c)
		}
		seen[c], to[c] = true, -1
		if i < len(a[2].Str()) {
			to[c] = int(a[2].Str()[i])
		}
	}
	var out bytes.Buffer
	for _, c := range a[0].Bytes() {
		if to[c] >= 0 {
			out.WriteByte(byte(to[c]))
		}
	}
	if out.Len() > maxOutput {
		return value.Null, value.OutOfRange("Output of TRANSLATE exceeds max allowed output size of 1MB")
	}
	return value.Bytes(out.Bytes()), nil
}
