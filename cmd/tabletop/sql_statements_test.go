package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestStatements: a semicolon ends a statement, except in literals, names and comments.
func TestStatements(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text        string
		want, lines []string
	}{
		"two":               {"SELECT 1; SELECT 2;", []string{"SELECT 1", "SELECT 2"}, []string{"SELECT 1;", "SELECT 2;"}},
		"no semicolon":      {"SELECT 1", []string{"SELECT 1"}, []string{"SELECT 1"}},
		"several lines":     {"\n  SELECT 1,\n\t2\n;\n", []string{"SELECT 1,\n\t2"}, []string{"SELECT 1, 2 ;"}},
		"empty ones":        {" ;; -- no\n ; /* no; */ ;", nil, nil},
		"literals":          {`SELECT ';', ";", b'\';', r"\";";`, []string{`SELECT ';', ";", b'\';', r"\";"`}, []string{`SELECT ';', ";", b'\';', r"\";";`}},
		"a quoted name":     {"SELECT `a;b`;", []string{"SELECT `a;b`"}, []string{"SELECT `a;b`;"}},
		"three quotes":      {"SELECT '''a;\n'b''';", []string{"SELECT '''a;\n'b'''"}, []string{"SELECT '''a;\n'b''';"}},
		"an empty literal":  {"SELECT '', 1; SELECT 2", []string{"SELECT '', 1", "SELECT 2"}, []string{"SELECT '', 1;", "SELECT 2"}},
		"comments":          {"SELECT 1 -- a;\n, 2 # b;\n, 3/* c;\n; */FROM t;", []string{"SELECT 1 -- a;\n, 2 # b;\n, 3/* c;\n; */FROM t"}, []string{"SELECT 1 , 2 , 3 FROM t;"}},
		"comments before":   {"-- a;\n/* b; */ SELECT 1;", []string{"SELECT 1"}, []string{"SELECT 1;"}},
		"an open literal":   {"SELECT 'a;\n, 2;", []string{"SELECT 'a;\n, 2"}, []string{"SELECT 'a;\n, 2;"}},
		"an open comment":   {"SELECT 1 /* a;", []string{"SELECT 1 /* a;"}, []string{"SELECT 1"}},
		"a minus":           {"SELECT 1 - -1;", []string{"SELECT 1 - -1"}, []string{"SELECT 1 - -1;"}},
		"a slash":           {"SELECT 1/2;", []string{"SELECT 1/2"}, []string{"SELECT 1/2;"}},
		"a final backslash": {`SELECT 'a\`, []string{`SELECT 'a\`}, []string{`SELECT 'a\`}},
	} {
		var s statements
		var got, lines []string
		keep := func(of statement) {
			got, lines = append(got, of.text), append(lines, of.line)
		}
		for line := range strings.Lines(c.text) {
			for _, ended := range s.add(line) {
				keep(ended)
			}
		}
		if last, ok := s.rest(); ok {
			keep(last)
		}
		if diff := cmp.Diff([][]string{c.want, c.lines}, [][]string{got, lines}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if s.open() {
			t.Errorf("%s: a statement is open after the end", name)
		}
	}
}
