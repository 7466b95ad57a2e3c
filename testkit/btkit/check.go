package btkit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/cells"
	"github.com/tabletop-emu/tabletop/internal/layout/rowtext"
)

// CheckRow fails the test tb with a diff unless a row of a Bigtable table holds exactly the given
// cells, in the format of [Env.Dump]:
//
//	env.CheckRow(t, "orders", "customer7#0001",
//		`o:total @1000 = "42"`,
//		`o:state = "paid"`) // at any time
//
// table is a name as for [Env.Dump]. A cell may be given without its timestamp. The order of the cells
// does not matter, but the cells of a column that are given without a timestamp must be in order, the
// newest first. One text may contain several cells, one per line. If no cells are given, the row must not
// exist.
func (e *Env) CheckRow(tb testing.TB, table, key string, want ...string) {
	tb.Helper()
	e.server.Use(tb)
	var lines []string
	wanted := map[string]bool{}
	for line := range strings.Lines(strings.Join(want, "\n")) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
			wanted[line] = true
		}
	}
	var got []string
	at := map[string]int{} // the place of a line in got; without its timestamp, that of the column's newest cell
	err := e.server.Lab().ReadRows(e.server.Context(), e.server.Lab().Resolve(e.server.Context(), table), []byte(key), func(row cells.Row) {
		timeless, column := map[string]string{}, map[string]string{}
		for _, c := range row.Cells {
			full := rowtext.CellText(c)
			head := rowtext.ColumnText(c.Family, c.Qualifier)
			column[full] = head
			timeless[full] = head + strings.TrimPrefix(full[len(head):], fmt.Sprintf(" @%d", c.Timestamp))
		}
		newest := map[string]int{} // the place of a column's newest cell
		for line := range strings.Lines(string(rowtext.FormatRow(nil, row))) {
			full, isCell := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "  ")
			if !isCell { // the row's key
				continue
			}
			if _, seen := newest[column[full]]; !seen {
				newest[column[full]] = len(got)
			}
			if !wanted[full] && wanted[timeless[full]] {
				at[timeless[full]] = newest[column[full]]
				got = append(got, timeless[full])
			} else {
				at[full] = len(got)
				got = append(got, full)
			}
		}
	})
	if err != nil {
		tb.Fatalf("testkit: row %q of table %s: %v", key, table, err)
	}
	switch diff, equal := diffLines(inOrder(lines, at), got); {
	case len(got) == 0 && len(lines) > 0:
		tb.Errorf("testkit: row %q of table %s does not exist (Dump shows the rows of the table), want:\n%s", key, table, diff)
	case !equal:
		tb.Errorf("testkit: row %q of table %s differs (- want, + got):\n%s", key, table, diff)
	}
}

// inOrder sorts wanted lines by their places in a row. A line that the row does not have stays behind the line
// before it.
func inOrder(lines []string, at map[string]int) []string {
	type placed struct {
		line string
		at   int
	}
	all, last := make([]placed, len(lines)), -1
	for i, line := range lines {
		if place, ok := at[line]; ok {
			last = place
		}
		all[i] = placed{line, last}
	}
	slices.SortStableFunc(all, func(a, b placed) int { return cmp.Compare(a.at, b.at) })
	out := make([]string, len(all))
	for i, p := range all {
		out[i] = p.line
	}
	return out
}

// diffLines returns the diff from want to got, with the fewest removed and added lines.
func diffLines(want, got []string) (text string, equal bool) {
	// longest[i][j] is the length of the longest common subsequence of
	// want[i:] and got[j:].
	longest := make([][]int, len(want)+1)
	for i := range longest {
		longest[i] = make([]int, len(got)+1)
	}
	for i := len(want) - 1; i >= 0; i-- {
		for j := len(got) - 1; j >= 0; j-- {
			if want[i] == got[j] {
				longest[i][j] = longest[i+1][j+1] + 1
			} else {
				longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			}
		}
	}
	var b strings.Builder
	i, j := 0, 0
	for i < len(want) || j < len(got) {
		switch {
		case i < len(want) && j < len(got) && want[i] == got[j]:
			fmt.Fprintf(&b, "    %s\n", want[i])
			i, j = i+1, j+1
		case j == len(got) || i < len(want) && longest[i+1][j] >= longest[i][j+1]:
			fmt.Fprintf(&b, "  - %s\n", want[i])
			i++
		default:
			fmt.Fprintf(&b, "  + %s\n", got[j])
			j++
		}
	}
	return b.String(), longest[0][0] == len(want) && len(want) == len(got)
}
