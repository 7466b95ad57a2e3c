package re2

import (
	"bufio"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/wasilibs/go-re2/experimental"
	"rsc.io/binaryregexp"

	"github.com/tabletop-emu/tabletop/emu/internal/filter"
)

// The answers in the column RE2 of ../testdata/re2.tsv.
const (
	refuses = "refuses"
	matches = "matches"
	differs = "differs"
)

var (
	// quotedByte matches a backslash before a byte that is not ASCII. RE2
	// rejects it, but clients send it.
	quotedByte = binaryregexp.MustCompile(`\\[\x80-\xff]`)
	// foldsCase matches the possible flag i, and highByte the bytes whose
	// comparison it changes: RE2 folds only ASCII letters in bytes,
	// binaryregexp those of Latin-1 too.
	foldsCase = binaryregexp.MustCompile(`\(\?[a-zA-Z]*i`)
	highByte  = binaryregexp.MustCompile(`[\x80-\xff]`)
)

// comparable reports whether RE2 must give the same answer.
func comparable(pattern, input string) bool {
	return len(pattern) <= 200 && // RE2 lacks the memory for longer ones
		!quotedByte.MatchString(pattern) &&
		(!foldsCase.MatchString(pattern) || !highByte.MatchString(input))
}

// answer matches by RE2, which reads pattern and input as bytes (RE2::Latin1,
// like the service). It uses leftmost-longest matching: an expression matches
// its whole input if and only if that match is the whole input.
func answer(pattern, input string) string {
	re, err := experimental.CompileLatin1(pattern)
	if err != nil {
		return refuses
	}
	re.Longest()
	if slices.Equal(re.FindIndex([]byte(input)), []int{0, len(input)}) {
		return matches
	}
	return differs
}

// ours matches by the filters: by the value of a cell and, for non-empty input,
// by the row key, whose expression also determines the rows to read.
func ours(t *testing.T, pattern, input string) string {
	t.Helper()
	byValue := run(t, &btpb.RowFilter{Filter: &btpb.RowFilter_ValueRegexFilter{ValueRegexFilter: []byte(pattern)}}, "r", input)
	if pattern == "" || input == "" {
		return byValue
	}
	byKey := run(t, &btpb.RowFilter{Filter: &btpb.RowFilter_RowKeyRegexFilter{RowKeyRegexFilter: []byte(pattern)}}, input, "v")
	if byKey != byValue {
		t.Errorf("%q: a row key of %q %s, a value %s", pattern, input, byKey, byValue)
	}
	return byValue
}

func run(t *testing.T, f *btpb.RowFilter, row, value string) string {
	t.Helper()
	p, err := filter.Compile(f, filter.Options{})
	if err != nil {
		return refuses
	}
	result := differs
	if _, err := p.Run(t.Context(), []byte(row), &cell{c: filter.Cell{Family: "f", Value: []byte(value)}}, func(*filter.Cell) error {
		result = matches
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return result
}

// cell is a source of one cell.
type cell struct {
	c    filter.Cell
	read bool
}

func (s *cell) NextCell() bool            { was := s.read; s.read = true; return !was }
func (s *cell) Cell() *filter.Cell        { return &s.c }
func (s *cell) SkipColumn()               {}
func (s *cell) SkipFamily()               {}
func (s *cell) SeekColumn(string, []byte) {}
func (s *cell) Rewind()                   { s.read = false }

// rows calls f with each row of ../testdata/re2.tsv.
func rows(tb testing.TB, f func(pattern, input, answer string)) {
	tb.Helper()
	file, err := os.Open("../testdata/re2.tsv")
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Scan() // the header
	for lines.Scan() {
		cells := strings.Split(lines.Text(), "\t")
		pattern, err := strconv.Unquote(cells[0])
		if err != nil {
			tb.Fatalf("%s: %v", lines.Text(), err)
		}
		input, err := strconv.Unquote(cells[1])
		if err != nil {
			tb.Fatalf("%s: %v", lines.Text(), err)
		}
		f(pattern, input, cells[2])
	}
	if err := lines.Err(); err != nil {
		tb.Fatal(err)
	}
}

// TestAnswers checks that the recorded answers are those of RE2.
func TestAnswers(t *testing.T) {
	t.Parallel()
	rows(t, func(pattern, input, recorded string) {
		if got := answer(pattern, input); got != recorded {
			t.Errorf("%q and %q: RE2 %s, recorded is that it %s", pattern, input, got, recorded)
		}
	})
}

// FuzzRegexp compares the filters with RE2.
func FuzzRegexp(f *testing.F) {
	rows(f, func(pattern, input, _ string) { f.Add([]byte(pattern), []byte(input)) })
	f.Fuzz(func(t *testing.T, pattern, input []byte) {
		p, in := string(pattern), string(input)
		if !comparable(p, in) {
			return
		}
		if got, want := ours(t, p, in), answer(p, in); got != want {
			t.Errorf("%q and %q: %s, RE2 %s", p, in, got, want)
		}
	})
}
