package emu

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// The tests named TestTrapNN, or TestFaultN_TrapNN, cover behavior that emulators are known to
// get wrong: row NN of testdata/traps.tsv. If the row names a belief about the service, the
// test accepts several outcomes and marks them as a belief: see wantBelief.

// trap is a row of testdata/traps.tsv.
type trap struct {
	belief string // the undocumented part, or ""
	noCase string // the reason for a missing test, or ""
}

// readTraps reads testdata/traps.tsv; keys are the numbers, such as T01.
func readTraps(t *testing.T) map[string]trap {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "traps.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	r := csv.NewReader(bytes.NewReader(text))
	r.Comma, r.Comment, r.LazyQuotes = '\t', '#', true
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"trap", "behavior", "source", "belief", "no case"}; !slices.Equal(rows[0], want) {
		t.Fatalf("the columns of traps.tsv are %q, want %q", rows[0], want)
	}
	traps, last := map[string]trap{}, 0
	for i, row := range rows[1:] {
		n, err := strconv.Atoi(row[0])
		if err != nil || n <= last || row[1] == "" || row[2] == "" {
			t.Errorf("traps.tsv: row %d, numbered %s, does not follow %d, or lacks its behavior or source", i+1, row[0], last)
		}
		last = n
		traps[fmt.Sprintf("T%02d", n)] = trap{belief: row[3], noCase: row[4]}
	}
	return traps
}

// Every row of testdata/traps.tsv has a TestTrapNN, perhaps after the name of a fault, or the
// reason for a missing test. Every TestTrapNN has a row. Both mark the same beliefs.
func TestTraps(t *testing.T) {
	t.Parallel()
	traps := readTraps(t)
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	name, belief := regexp.MustCompile(`^Test(?:Fault[A-Z][0-9]+_)?Trap([0-9]{2,3})_`), regexp.MustCompile(`(?i)\bbelief\b|\bwantBelief\(`)
	tested, believes := map[string]bool{}, map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, file, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if m := name.FindStringSubmatch(f.Name.Name); m != nil {
				number := "T" + m[1]
				tested[number] = true
				if belief.Match(text[fset.Position(f.Pos()).Offset:fset.Position(f.End()).Offset]) {
					believes[number] = true
				}
				if _, ok := traps[number]; !ok {
					t.Errorf("%s: %s is of a trap that traps.tsv does not have", file, f.Name.Name)
				}
			}
		}
	}
	for number, row := range traps {
		if tested[number] != (row.noCase == "") {
			t.Errorf("%s: has a test: %v; traps.tsv says why it has none: %q", number, tested[number], row.noCase)
		}
		if believes[number] != (row.belief != "") {
			t.Errorf("%s: its test speaks of a belief: %v; traps.tsv has the belief %q", number, believes[number], row.belief)
		}
	}
}
