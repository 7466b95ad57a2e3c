package filter

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestRegexp_RE2 compares expressions with recorded answers of RE2. The module
// in re2 runs RE2 itself, for any expression.
func TestRegexp_RE2(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/re2.tsv")
	if err != nil {
		t.Fatal(err)
	}
	_, rows, _ := strings.Cut(string(text), "\n")
	n := 0
	for row := range strings.Lines(rows) {
		n++
		cells := strings.Split(strings.TrimSuffix(row, "\n"), "\t")
		pattern, err := strconv.Unquote(cells[0])
		if err != nil {
			t.Fatalf("%s: %v", row, err)
		}
		input, err := strconv.Unquote(cells[1])
		if err != nil {
			t.Fatalf("%s: %v", row, err)
		}
		re, err := compileRegex([]byte(pattern))
		if err != nil {
			if cells[2] != "refuses" {
				t.Errorf("%q: %v, RE2 %s", pattern, err, cells[2])
			}
			continue
		}
		got := re.match(newRun(), []byte(input))
		if answer := map[bool]string{true: "matches", false: "differs"}[got]; answer != cells[2] {
			t.Errorf("%q and %q: %s, RE2 %s", pattern, input, answer, cells[2])
		}
		// Simulate a large text.
		re.instructions = stepsAtOnce + 1
		if metered := re.match(newRun(), []byte(input)); metered != got {
			t.Errorf("%q matches %q: %v, when it is metered %v", pattern, input, got, metered)
		}
		if got && !bytes.HasPrefix([]byte(input), re.prefix) {
			t.Errorf("%q matches %q, without its prefix %q", pattern, input, re.prefix)
		}
	}
	if n < 40 {
		t.Errorf("testdata/re2.tsv has %d rows, want at least 40", n)
	}
}
