package function

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"rsc.io/binaryregexp"
	binarysyntax "rsc.io/binaryregexp/syntax"

	"github.com/tabletop-emu/tabletop/emu/internal/filter"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

func regexpTable() []*Function {
	return []*Function{
		fn("REGEXP_CONTAINS", regexSignatures("X, X -> BOOL", func(re *regex, a []value.Value) (value.Value, error) {
			return value.Bool(re.index(a[0].Bytes(), 0) != nil), nil
		})...),
		fn("REGEXP_EXTRACT", regexSignatures("X, X, [INT64], [INT64] -> X", regexpExtract)...),
		fn("REGEXP_EXTRACT_ALL", regexSignatures("X, X -> ARRAY<X>", regexpExtractAll)...),
		fn("REGEXP_INSTR", regexSignatures("X, X, [INT64], [INT64], [INT64] -> INT64", regexpInstr)...),
		fn("REGEXP_REPLACE", regexSignatures("X, X, X -> X", regexpReplace)...),
	}
}

// matcher is a regular expression over characters or over bytes.
type matcher interface {
	FindSubmatchIndex(b []byte) []int
	FindAllSubmatchIndex(b []byte, n int) [][]int
	NumSubexp() int
}

// regex is a compiled expression of a STRING, in characters, or of a BYTES, in bytes.
type regex struct {
	matcher
	text  string // of the statement
	runes bool
	// after matches after one character, which it also matches: \b and ^ see the text before an offset.
	after matcher
}

func compileRegex(text string, runes bool) (*regex, error) {
	re := &regex{text: text, runes: runes}
	if runes {
		parsed, err := syntax.Parse(text, syntax.Perl)
		if err != nil {
			return nil, regexError(err)
		}
		if size := programSize(parsed); size > maxProgram {
			return nil, value.OutOfRange("Cannot parse regular expression: pattern too large - compile failed")
		}
		if re.matcher, err = regexp.Compile(text); err != nil {
			return nil, regexError(err)
		}
		// The text of the tree is well-formed inside of another expression; \Q without \E is not.
		if re.after, err = regexp.Compile(afterOne(parsed.String())); err != nil {
			return nil, regexError(err)
		}
		return re, nil
	}
	compiled, src, err := filter.SearchRegex([]byte(text))
	if err != nil {
		return nil, regexError(err)
	}
	re.matcher = compiled
	if re.after, err = binaryregexp.Compile(afterOne(src)); err != nil {
		return nil, regexError(err)
	}
	return re, nil
}

// maxProgram is the size of a program that is compiled and run.
const maxProgram = 100000

// programSize returns about the number of instructions, before compiling takes memory for them. It
// cannot overflow: the parser bounds the product of nested repetitions.
func programSize(re *syntax.Regexp) int {
	n := 1
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, sub := range re.Sub {
		n += programSize(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return n
}

func afterOne(src string) string { return `\A(?s:.)(?s:.*?)(` + src + `)` }

// re2Texts are the texts of RE2 for the errors of Go's parsers.
var re2Texts = map[string]string{
	"missing closing ]":                       "missing ]",
	"missing closing )":                       "missing )",
	"trailing backslash at end of expression": `trailing \`,
	"missing argument to repetition operator": "no argument for repetition operator",
	"invalid repeat count":                    "invalid repetition size",
	"invalid nested repetition operator":      "bad repetition operator",
	"invalid named capture":                   "invalid named capture group",
	"invalid or unsupported Perl syntax":      "invalid perl operator",
}

func regexError(err error) error {
	code, expr := err.Error(), ""
	var ofRunes *syntax.Error
	var ofBytes *binarysyntax.Error
	switch {
	case errors.As(err, &ofRunes):
		code, expr = ofRunes.Code.String(), ofRunes.Expr
	case errors.As(err, &ofBytes):
		code, expr = ofBytes.Code.String(), ofBytes.Expr
	}
	if text, ok := re2Texts[code]; ok {
		code = text
	}
	if expr != "" {
		code += ": " + expr
	}
	return value.OutOfRange("Cannot parse regular expression: %s", code)
}

// regexSignatures returns the signatures of a function of a text and an expression, for STRING and
// for BYTES.
func regexSignatures(text string, eval func(re *regex, a []value.Value) (value.Value, error)) []signature {
	bind := func(runes bool) func(c *Call) (Eval, error) {
		return func(*Call) (Eval, error) {
			var last atomic.Pointer[regex] // usually, all rows have the same expression
			return func(_ *Context, a []value.Value) (value.Value, error) {
				re := last.Load()
				if re == nil || re.text != a[1].Str() {
					var err error
					if re, err = compileRegex(strings.Clone(a[1].Str()), runes); err != nil {
						return value.Null, err
					}
					last.Store(re)
				}
				return eval(re, a)
			}, nil
		}
	}
	return []signature{bound(strings.ReplaceAll(text, "X", "STRING"), bind(true)), bound(strings.ReplaceAll(text, "X", "BYTES"), bind(false))}
}

// index returns the first match that begins at or after a byte offset, as FindSubmatchIndex.
func (re *regex) index(b []byte, offset int) []int {
	if offset == 0 {
		return re.FindSubmatchIndex(b)
	}
	before := offset - 1
	if re.runes {
		_, n := utf8.DecodeLastRune(b[:offset])
		before = offset - n
	}
	m := re.after.FindSubmatchIndex(b[before:])
	if m == nil {
		return nil
	}
	m = m[2:]
	for i := range m {
		if m[i] >= 0 {
			m[i] += before
		}
	}
	return m
}

// extraction returns the offsets of the only group, or of the match.
func (re *regex) extraction(m []int) (from, to int) {
	if re.NumSubexp() > 0 {
		return m[2], m[3]
	}
	return m[0], m[1]
}

func (re *regex) checkGroups() error {
	if re.NumSubexp() > 1 {
		return value.OutOfRange("Regular expressions passed into extraction functions must not have more than 1 capturing group")
	}
	return nil
}

// matches calls yield for each match from an offset; after an empty one, it advances by a character.
func (re *regex) matches(b []byte, offset int, yield func(m []int) bool) {
	for first := true; first || offset < len(b); first = false {
		m := re.index(b, offset)
		if m == nil || !yield(m) {
			return
		}
		if offset = m[1]; m[0] == m[1] && offset < len(b) {
			n := 1
			if re.runes {
				_, n = utf8.DecodeRune(b[offset:])
			}
			offset += n
		}
	}
}

// nth returns the match of the arguments position and occurrence from index i; nil without it.
func (re *regex) nth(a []value.Value, i int) (m []int, err error) {
	start, occurrence := int64(1), int64(1)
	if len(a) > i {
		start = a[i].Int64()
	}
	if len(a) > i+1 {
		occurrence = a[i+1].Int64()
	}
	if start < 1 {
		return nil, value.OutOfRange("Position must be positive")
	}
	if occurrence < 1 {
		return nil, value.OutOfRange("Occurrence must be positive")
	}
	if err := re.checkGroups(); err != nil {
		return nil, err
	}
	offset, ok := offsetOf(a[0].Str(), start-1, re.runes)
	if !ok || offset > 0 && offset == len(a[0].Str()) {
		return nil, nil
	}
	re.matches(a[0].Bytes(), offset, func(found []int) bool {
		if occurrence--; occurrence == 0 {
			m = found
		}
		return occurrence > 0
	})
	return m, nil
}

func regexpExtract(re *regex, a []value.Value) (value.Value, error) {
	m, err := re.nth(a, 2)
	if m == nil || err != nil {
		return value.Null, err
	}
	from, to := re.extraction(m)
	if from < 0 {
		return value.Null, nil
	}
	return textLike(a[0], a[0].Str()[from:to]), nil
}

func regexpExtractAll(re *regex, a []value.Value) (value.Value, error) {
	if err := re.checkGroups(); err != nil {
		return value.Null, err
	}
	var out []value.Value
	re.matches(a[0].Bytes(), 0, func(m []int) bool {
		from, to := re.extraction(m)
		out = append(out, textLike(a[0], a[0].Str()[max(from, 0):max(to, 0)]))
		return len(out) <= maxElements
	})
	return value.Array(out), checkElements(len(out))
}

func regexpInstr(re *regex, a []value.Value) (value.Value, error) {
	ofEnd := len(a) > 4 && a[4].Int64() == 1
	if len(a) > 4 && a[4].Int64() != 0 && a[4].Int64() != 1 {
		return value.Null, value.OutOfRange("Invalid return_position_after_match.")
	}
	m, err := re.nth(a, 2)
	if m == nil || err != nil || a[0].Str() == "" || re.text == "" { // an empty match has no position there
		return value.Int64(0), err
	}
	from, to := re.extraction(m)
	if ofEnd {
		from = to
	}
	return position(a[0].Str(), from, re.runes), nil
}

func regexpReplace(re *regex, a []value.Value) (value.Value, error) {
	rewrite := a[2].Str()
	if err := checkRewrite(rewrite, re.NumSubexp()); err != nil {
		return value.Null, err
	}
	b := a[0].Bytes()
	var out []byte
	end := 0
	for _, m := range re.FindAllSubmatchIndex(b, -1) {
		out = append(out, b[end:m[0]]...)
		for i := 0; i < len(rewrite); i++ {
			if rewrite[i] != '\\' {
				out = append(out, rewrite[i])
				continue
			}
			if i++; rewrite[i] == '\\' {
				out = append(out, '\\')
			} else if group := int(rewrite[i] - '0'); m[2*group] >= 0 {
				out = append(out, b[m[2*group]:m[2*group+1]]...)
			}
		}
		if end = m[1]; len(out) > maxText {
			return value.Null, value.OutOfRange("REGEXP_REPLACE: exceeded maximum output length")
		}
	}
	return textOf(a[0], append(out, b[end:]...)), nil
}

// checkRewrite checks a replacement, with the texts of RE2.
func checkRewrite(rewrite string, groups int) error {
	for i := 0; i < len(rewrite); i++ {
		if rewrite[i] != '\\' {
			continue
		}
		i++
		switch {
		case i == len(rewrite):
			return value.OutOfRange(`Invalid REGEXP_REPLACE pattern: Rewrite schema error: '\' not allowed at end.`)
		case rewrite[i] == '\\':
		case rewrite[i] < '0' || rewrite[i] > '9':
			return value.OutOfRange(`Invalid REGEXP_REPLACE pattern: Rewrite schema error: '\' must be followed by a digit or '\'.`)
		case int(rewrite[i]-'0') > groups:
			return value.OutOfRange("Invalid REGEXP_REPLACE pattern: Rewrite schema requests %d matches, but the regexp only has %d parenthesized subexpressions.", rewrite[i]-'0', groups)
		}
	}
	return nil
}
