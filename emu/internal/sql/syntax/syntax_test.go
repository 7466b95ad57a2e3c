package syntax

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestParse runs the cases of testdata/parse.
//
//	parse      input: a statement; output: its tree, printed by String, or the error
//	lines      input: statements, one a line; output: as of parse, one a line
//	positions  input: a statement; output: the nodes of its tree with their positions
func TestParse(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/parse", func(t *testing.T, path string) {
		t.Helper()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			switch d.Cmd {
			case "parse":
				return outcome(d.Input) + "\n"
			case "lines":
				var out strings.Builder
				for line := range strings.SplitSeq(d.Input, "\n") {
					out.WriteString(outcome(line) + "\n")
				}
				return out.String()
			case "positions":
				stmt, err := Parse(d.Input)
				if err != nil {
					return err.Error()
				}
				var out strings.Builder
				Walk(stmt.Query, func(n Node) bool {
					at := At(d.Input, n.Pos())
					fmt.Fprintf(&out, "%s %s\n", strings.Trim(at, "[at ]"), strings.TrimPrefix(fmt.Sprintf("%T", n), "*syntax."))
					return true
				})
				return out.String()
			}
			t.Fatalf("unknown command %q", d.Cmd)
			return ""
		})
	})
}

// outcome returns the printed tree of a statement, or its error.
func outcome(text string) string {
	stmt, err := Parse(text)
	if err != nil {
		return err.Error()
	}
	return stmt.String()
}

// lines calls check for the two columns of each line of a file.
func lines(t *testing.T, file string, check func(first, second string)) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.SplitSeq(string(data), "\n") {
		if line == "" || strings.HasPrefix(line, "//") {
			continue
		}
		first, second, ok := strings.Cut(line, "\t")
		if !ok {
			t.Fatalf("%s: a line without a tab: %q", file, line)
		}
		n++
		check(first, second)
	}
	if n < 100 {
		t.Errorf("%s has %d cases, which cannot be all", file, n)
	}
}

// controls are the characters of reference.tsv for those that would break its lines.
var controls = strings.NewReplacer("⏎", "\n", "⇥", "\t", "␍", "\r")

// TestReference compares outcomes with those of GoogleSQL's reference implementation: an error of
// its parser, or ok. Constructs that Bigtable does not have may be Unsupported instead of ok.
func TestReference(t *testing.T) {
	t.Parallel()
	lines(t, "testdata/reference.tsv", func(stmt, want string) {
		_, err := Parse(controls.Replace(stmt))
		got := "ok"
		var unsupported *Unsupported
		if err != nil && (want != "ok" || !errors.As(err, &unsupported)) {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s\n got %s\nwant %s", stmt, got, want)
		}
	})
}

// TestGolden parses the golden queries, whose answers the analysis and the execution check.
func TestGolden(t *testing.T) {
	t.Parallel()
	errs := map[string]string{
		"G112": `Syntax error: Unexpected identifier "SELEC" [at 1:1]`,
		"G121": `Syntax error: Unclosed string literal [at 1:8]`,
		"G122": `Syntax error: Unexpected end of statement [at 1:25]`,
		"G124": `DELETE is not supported [at 1:1]`,
		"G140": `Subqueries are not supported`,
	}
	lines(t, "testdata/golden.tsv", func(number, stmt string) {
		got := ""
		if _, err := Parse(stmt); err != nil {
			got = err.Error()
		}
		if got != errs[number] {
			t.Errorf("%s %s\n got %q\nwant %q", number, stmt, got, errs[number])
		}
	})
}

// TestLimits checks that depth, chains and size end in an error instead of an overflow of the
// stack.
func TestLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, open, middle, end string
		most                    int
	}{
		{"parentheses", "(", "1", ")", MaxDepth - 3},
		{"NOT", "NOT ", "TRUE", "", MaxDepth - 2},
		{"signs", "- ", "1", "", MaxDepth - 2},
		{"arrays", "[", "1", "]", MaxDepth - 3},
		{"calls", "f(", "1", ")", MaxDepth - 3},
		{"types", "CAST(NULL AS ", "INT64", ")", 1},
		{"CASE", "CASE WHEN ", "1", " THEN 2 END", MaxDepth - 3},
		{"chains", "", "1", " + 1", MaxChain + 1},
		{"fields", "", "(x)", ".a", MaxChain + 1},
	} {
		text := func(n int) string {
			return "SELECT " + strings.Repeat(c.open, n) + c.middle + strings.Repeat(c.end, n)
		}
		if _, err := Parse(text(c.most)); err != nil {
			t.Errorf("%s: %d levels: %v", c.name, c.most, err)
		}
		_, err := Parse(text(MaxBytes / (len(c.open) + len(c.end) + 1)))
		var syntaxError *Error
		if !errors.As(err, &syntaxError) {
			t.Errorf("%s: many levels: %v", c.name, err)
		}
	}
	for _, c := range []string{
		"SELECT CAST(NULL AS " + strings.Repeat("ARRAY<", 10_000) + "INT64" + strings.Repeat(">", 10_000) + ")",
		strings.Repeat("SELECT * FROM (", 10_000) + "SELECT 1" + strings.Repeat(")", 10_000),
		strings.Repeat("(", 10_000) + "SELECT 1" + strings.Repeat(")", 10_000),
		"SELECT 1 FROM " + strings.Repeat("(", 10_000) + "a",
	} {
		if _, err := Parse(c); err == nil || !strings.Contains(err.Error(), "levels deep") {
			t.Errorf("%.30s: %v", c, err)
		}
	}
	if _, err := Parse("SELECT 1" + strings.Repeat(" ", MaxBytes)); err == nil || !strings.Contains(err.Error(), "bytes") {
		t.Errorf("a long statement: %v", err)
	}
	// Lists and conjunctions make no tree deeper.
	for _, c := range []string{
		"SELECT 1 FROM t WHERE a = 0" + strings.Repeat(" AND a = 1", 50_000),
		"SELECT a IN (1" + strings.Repeat(", 2", 100_000) + ")",
		"SELECT 'a'" + strings.Repeat(" 'b'", 200_000),
		"SELECT 1" + strings.Repeat(" |> WHERE TRUE", 50_000),
	} {
		if _, err := Parse(c); err != nil {
			t.Errorf("%.30s: %v", c, err)
		}
	}
}

// FuzzParse checks that no text is a panic, and that a printed tree has the same tree again.
func FuzzParse(f *testing.F) {
	for _, file := range []string{"testdata/reference.tsv", "testdata/golden.tsv"} {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for line := range strings.SplitSeq(string(data), "\n") {
			first, second, _ := strings.Cut(line, "\t")
			f.Add(controls.Replace(first))
			f.Add(second)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		stmt, err := Parse(text)
		if err != nil {
			_ = err.Error()
			return
		}
		Walk(stmt.Query, func(n Node) bool {
			if n.Pos() < 0 || n.Pos() >= len(text) {
				t.Fatalf("%T at %d of %d bytes", n, n.Pos(), len(text))
			}
			return true
		})
		printed := stmt.String()
		again, err := Parse(printed)
		if err != nil {
			if strings.Contains(err.Error(), "The statement ") {
				return // the printed parentheses reach a limit
			}
			t.Fatalf("%q was printed as %q: %v", text, printed, err)
		}
		if got := again.String(); got != printed {
			t.Fatalf("%q was printed as %q, and then as %q", text, printed, got)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	for _, c := range []struct{ name, text string }{
		{"key", "SELECT _key, cf['q'] FROM t WHERE _key = @k"},
		{"report", "SELECT SPLIT(_key, '#')[0] AS t, COUNT(*) AS n, SUM(TO_INT64(stats['n'])) AS s FROM g(with_history => TRUE) AS x, " +
			"UNNEST(MAP_ENTRIES(x.tags)) AS e WITH OFFSET AS o WHERE STARTS_WITH(_key, 'u#') AND e.key IN ('a', 'b') OR NOT (o BETWEEN 1 AND 2) " +
			"GROUP BY t HAVING n > 1 ORDER BY s DESC NULLS LAST LIMIT 10 OFFSET 5"},
		{"list", "SELECT _key FROM t WHERE _key IN ('row'" + strings.Repeat(", 'row'", 999) + ")"},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(c.text)))
			for b.Loop() {
				if _, err := Parse(c.text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
