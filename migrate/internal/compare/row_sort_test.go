package compare

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/tabletop-emu/tabletop/internal/layout"
)

// Parts of rows come back sorted and complete, and the parts of a row in the order of items.
func TestRowSort_Spills(t *testing.T) {
	t.Parallel()
	s := NewRowSort(t.TempDir(), 300)
	defer s.Close()
	for i := range int64(60) {
		p := ExpectedPart{rule: "r", Item: []byte("{}"), Key: "k", N: i, Row: fmt.Appendf(nil, "%02d", i*7%20), cell: []layout.Cell{{Family: "f", Qualifier: []byte{byte(i)}, Timestamp: -i, Value: bytes.Repeat([]byte("v"), int(i)*9)}}}
		if err := s.Add(p); err != nil {
			t.Fatal(err)
		}
	}
	next, err := s.Sorted()
	if err != nil || len(s.Runs) < 10 {
		t.Fatalf("%d runs, error %v; want many", len(s.Runs), err)
	}
	var got []string
	for p, err := next(); ; p, err = next() {
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if i := p.N; p.rule+p.Key+string(p.Item) != "rk{}" || len(p.cell) != 1 || p.cell[0].Timestamp != -i || len(p.cell[0].Value) != int(i)*9 || p.cell[0].Qualifier[0] != byte(i) {
			t.Errorf("part %d came back as %+v", i, p)
		}
		got = append(got, fmt.Sprintf("%s %02d", p.Row, p.N))
	}
	if len(got) != 60 || !slices.IsSorted(got) {
		t.Errorf("%d parts, in the order %q", len(got), got)
	}
}
