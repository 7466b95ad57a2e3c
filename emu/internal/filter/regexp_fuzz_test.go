package filter

import (
	"bytes"
	"slices"
	"testing"

	"github.com/wasilibs/go-re2/experimental"
	"rsc.io/binaryregexp"
)

var (
	// quotedByte finds a backslash before a byte that is no ASCII.
	quotedByte = binaryregexp.MustCompile(`\\[\x80-\xff]`)
	// foldsCase finds what may set the flag i, and highByte what only then is
	// compared otherwise: RE2 folds ASCII letters alone when it reads bytes,
	// binaryregexp those of Latin-1 too.
	foldsCase = binaryregexp.MustCompile(`\(\?[a-zA-Z]*i`)
	highByte  = binaryregexp.MustCompile(`[\x80-\xff]`)
)

// FuzzRegexp compares expressions with RE2 itself, which reads pattern and
// input as bytes (RE2::Latin1, as the service does). RE2 is asked for the
// longest of the leftmost matches: an expression matches all of its input if
// and only if that is the whole of it.
func FuzzRegexp(f *testing.F) {
	for _, seed := range []struct{ pattern, input string }{
		{"", ""},
		{"a|ab", "ab"},
		{`row\C*`, "row\x00\xff\n"},
		{`row.*`, "row\n"},
		{"\xe9+[\x80-\xff]", "\xe9\xe9\x80"},
		{`(?i)\x{e9}?K`, "k"},
		{`\Qa.b\E.?`, "a.bc"},
		{`\Qa\`, `a\`},
		{"\\\xff", "\xff"},
		{`(?s-m:^a.$)\b`, "a\n"},
		{`(a*)*?b{2,3}`, "aabbb"},
		{`[^\d\pL[:space:]]`, "-"},
		{`a)(b`, "ab"},
		{`x{1001}`, "x"},
		{`\x{00ff}|\377`, "\xff"},
		{`[\x{100}]`, "x"},
		{`a{1000000000}`, "a{1000000000}"},
		{`a{1,1000000000}`, "a{1,1000000000}"},
		{`a{999999999}`, "a"},
		{`\400`, "x"},
		{`a\_\.\*.*`, "a_.*b"},
		{`\x00a\xfF\C*`, "\x00a\xff\n"},
		{`\Qa.\Eb\\\C*`, "a.b\\\n"},
	} {
		f.Add([]byte(seed.pattern), []byte(seed.input))
	}
	f.Fuzz(func(t *testing.T, pattern, input []byte) {
		if len(pattern) > 200 { // programs that RE2 has no memory for
			return
		}
		if quotedByte.Match(pattern) { // which RE2 refuses, and clients send
			return
		}
		if foldsCase.Match(pattern) && highByte.Match(input) {
			return
		}
		ours, err := compileRegex(pattern)
		theirs, theirErr := experimental.CompileLatin1(string(pattern))
		if (err == nil) != (theirErr == nil) {
			t.Fatalf("%q: %v, RE2: %v", pattern, err, theirErr)
		}
		if err != nil {
			return
		}
		theirs.Longest()
		got, want := ours.match(newRun(), input), slices.Equal(theirs.FindIndex(input), []int{0, len(input)})
		if got != want {
			t.Errorf("%q matches %q: %v, RE2: %v", pattern, input, got, want)
		}
		// As if the text were large.
		ours.instructions = stepsAtOnce + 1
		if metered := ours.match(newRun(), input); metered != got {
			t.Errorf("%q matches %q: %v, when it is metered %v", pattern, input, got, metered)
		}
		if got && !bytes.HasPrefix(input, ours.prefix) {
			t.Errorf("%q matches %q, without its prefix %q", pattern, input, ours.prefix)
		}
	})
}
