package filter

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"
	"rsc.io/binaryregexp"
	"rsc.io/binaryregexp/syntax"
)

// cellsSource is a Source over a list. As in a store's scan, a cell's slices
// are valid only until the source moves.
type cellsSource struct {
	cells   []Cell
	at      int // index of the current cell; -1 before the first
	next    int
	current Cell
	reads   int
}

func newSource(cells []Cell) *cellsSource { return &cellsSource{cells: cells, at: -1} }

func (s *cellsSource) NextCell() bool {
	for _, b := range [][]byte{s.current.Qualifier, s.current.Value} {
		for i := range b {
			b[i] = 0xdb
		}
	}
	s.current = Cell{}
	s.at = s.next
	if s.at >= len(s.cells) {
		return false
	}
	s.next = s.at + 1
	s.reads++
	s.current = s.cells[s.at]
	s.current.Qualifier = bytes.Clone(s.current.Qualifier)
	s.current.Value = bytes.Clone(s.current.Value)
	return true
}

func (s *cellsSource) Cell() *Cell { return &s.current }

func (s *cellsSource) skip(while func(c Cell) bool) {
	for s.next < len(s.cells) && while(s.cells[s.next]) {
		s.next++
	}
}

func (s *cellsSource) SkipColumn() {
	cur := s.cells[s.at]
	s.skip(func(c Cell) bool { return c.Ordinal == cur.Ordinal && bytes.Equal(c.Qualifier, cur.Qualifier) })
}

func (s *cellsSource) SkipFamily() {
	cur := s.cells[s.at]
	s.skip(func(c Cell) bool { return c.Ordinal == cur.Ordinal })
}

func (s *cellsSource) SeekColumn(family string, qualifier []byte) {
	ordinal, ok := testOrdinals[family]
	s.skip(func(c Cell) bool {
		if !ok || c.Ordinal < ordinal {
			return true
		}
		return c.Ordinal == ordinal && bytes.Compare(c.Qualifier, qualifier) < 0
	})
}

func (s *cellsSource) Rewind() { s.at, s.next = -1, 0 }

// The families of the tests, created in this order, with a gap.
var (
	testFamilies = []string{"b", "a", "cc"}
	testOrdinals = map[string]uint16{"b": 0, "a": 1, "cc": 3}
	testOrdinal  = func(family string) (uint16, bool) { o, ok := testOrdinals[family]; return o, ok }
)

// model evaluates a filter by the API's documentation: each filter maps a list
// of cells to a list of cells.
func model(f *btpb.RowFilter, row []byte, in []Cell, sunk *[]Cell) []Cell {
	keep := func(ok func(c Cell) bool) []Cell {
		var out []Cell
		for _, c := range in {
			if ok(c) {
				out = append(out, c)
			}
		}
		return out
	}
	matcher := func(pattern []byte) func([]byte) bool {
		re := binaryregexp.MustCompile(`^(?:` + string(pattern) + `)$`)
		return func(b []byte) bool { return re.Match(b) }
	}
	switch m := f.GetFilter().(type) {
	case *btpb.RowFilter_Chain_:
		out := in
		for _, sub := range m.Chain.GetFilters() {
			out = model(sub, row, out, sunk)
		}
		return out
	case *btpb.RowFilter_Interleave_:
		var out []Cell
		for _, sub := range m.Interleave.GetFilters() {
			out = append(out, model(sub, row, in, sunk)...)
		}
		sortCells(out)
		return out
	case *btpb.RowFilter_Condition_:
		branch := m.Condition.GetFalseFilter()
		if len(model(m.Condition.GetPredicateFilter(), row, in, sunk)) > 0 {
			branch = m.Condition.GetTrueFilter()
		}
		if branch == nil {
			return nil
		}
		return model(branch, row, in, sunk)
	case *btpb.RowFilter_Sink:
		*sunk = append(*sunk, in...)
		return nil
	case *btpb.RowFilter_BlockAllFilter:
		return nil
	case *btpb.RowFilter_RowKeyRegexFilter:
		match := matcher(m.RowKeyRegexFilter)
		return keep(func(Cell) bool { return match(row) })
	case *btpb.RowFilter_FamilyNameRegexFilter:
		match := matcher([]byte(m.FamilyNameRegexFilter))
		return keep(func(c Cell) bool { return match([]byte(c.Family)) })
	case *btpb.RowFilter_ColumnQualifierRegexFilter:
		match := matcher(m.ColumnQualifierRegexFilter)
		return keep(func(c Cell) bool { return match(c.Qualifier) })
	case *btpb.RowFilter_ValueRegexFilter:
		match := matcher(m.ValueRegexFilter)
		return keep(func(c Cell) bool { return match(c.Value) })
	case *btpb.RowFilter_ColumnRangeFilter:
		r := m.ColumnRangeFilter
		return keep(func(c Cell) bool {
			return c.Family == r.GetFamilyName() &&
				(r.GetStartQualifierClosed() == nil || bytes.Compare(c.Qualifier, r.GetStartQualifierClosed()) >= 0) &&
				(r.GetStartQualifierOpen() == nil || bytes.Compare(c.Qualifier, r.GetStartQualifierOpen()) > 0) &&
				(r.GetEndQualifierClosed() == nil || bytes.Compare(c.Qualifier, r.GetEndQualifierClosed()) <= 0) &&
				(r.GetEndQualifierOpen() == nil || bytes.Compare(c.Qualifier, r.GetEndQualifierOpen()) < 0)
		})
	case *btpb.RowFilter_ValueRangeFilter:
		r := m.ValueRangeFilter
		return keep(func(c Cell) bool {
			return (r.GetStartValueClosed() == nil || bytes.Compare(c.Value, r.GetStartValueClosed()) >= 0) &&
				(r.GetEndValueOpen() == nil || bytes.Compare(c.Value, r.GetEndValueOpen()) < 0)
		})
	case *btpb.RowFilter_ValueBitmaskFilter:
		mask := m.ValueBitmaskFilter.GetMask()
		return keep(func(c Cell) bool {
			and := bytes.Clone(c.Value)
			for i := range and {
				if i < len(mask) {
					and[i] &= mask[i]
				}
			}
			return bytes.Equal(and, mask)
		})
	case *btpb.RowFilter_TimestampRangeFilter:
		r := m.TimestampRangeFilter
		return keep(func(c Cell) bool {
			return c.TimestampMicros >= r.GetStartTimestampMicros() &&
				(r.GetEndTimestampMicros() == 0 || c.TimestampMicros < r.GetEndTimestampMicros())
		})
	case *btpb.RowFilter_CellsPerRowLimitFilter:
		return in[:min(len(in), int(m.CellsPerRowLimitFilter))]
	case *btpb.RowFilter_CellsPerRowOffsetFilter:
		return in[min(len(in), int(m.CellsPerRowOffsetFilter)):]
	case *btpb.RowFilter_CellsPerColumnLimitFilter:
		count := map[string]int{}
		return keep(func(c Cell) bool {
			column := c.Family + ":" + string(c.Qualifier)
			count[column]++
			return count[column] <= int(m.CellsPerColumnLimitFilter)
		})
	case *btpb.RowFilter_StripValueTransformer:
		out := slices.Clone(in)
		for i := range out {
			out[i].Value = nil
		}
		return out
	case *btpb.RowFilter_ApplyLabelTransformer:
		out := slices.Clone(in)
		for i := range out {
			out[i].Label = m.ApplyLabelTransformer
		}
		return out
	}
	return in
}

func sortCells(cells []Cell) {
	slices.SortStableFunc(cells, func(a, b Cell) int {
		return cmp.Or(cmp.Compare(a.Ordinal, b.Ordinal), bytes.Compare(a.Qualifier, b.Qualifier), cmp.Compare(b.TimestampMicros, a.TimestampMicros))
	})
}

func cellText(c *Cell) string {
	return fmt.Sprintf("%s:%q@%d=%q %s", c.Family, c.Qualifier, c.TimestampMicros, c.Value, c.Label)
}

// The order of equal cells of an interleave is not specified.
func sortedTexts(cells []Cell) []string {
	sortCells(cells)
	out := make([]string, len(cells))
	for i := range cells {
		out[i] = cellText(&cells[i])
	}
	for i := 0; i < len(cells); {
		j := i + 1
		for j < len(cells) && cells[j].Ordinal == cells[i].Ordinal && bytes.Equal(cells[j].Qualifier, cells[i].Qualifier) && cells[j].TimestampMicros == cells[i].TimestampMicros {
			j++
		}
		slices.Sort(out[i:j])
		i = j
	}
	return out
}

// generator generates filters with a specified result: no limit follows an
// interleave of filters that change cells, since the order of a cell's copies
// is not specified.
type generator struct{ t *rapid.T }

func (g generator) filter(depth int, label, sink bool) *btpb.RowFilter {
	kinds := 16
	if depth > 0 {
		kinds = 22
	}
	draw := func(n int, what string) int { return rapid.IntRange(0, n-1).Draw(g.t, what) }
	pick := func(what string, from ...string) string { return rapid.SampledFrom(from).Draw(g.t, what) }
	text := func(what string) []byte { return []byte(pick(what, "", "a", "ab", "b", "ba", "c")) }
	switch k := draw(kinds, "kind"); k {
	case 0:
		return nil
	case 1:
		return &btpb.RowFilter{Filter: &btpb.RowFilter_BlockAllFilter{BlockAllFilter: true}}
	case 2:
		return &btpb.RowFilter{Filter: &btpb.RowFilter_RowKeyRegexFilter{RowKeyRegexFilter: []byte(pick("key", "row", "r.*", "ro", "x|row", "x"))}}
	case 3, 4:
		return &btpb.RowFilter{Filter: &btpb.RowFilter_FamilyNameRegexFilter{FamilyNameRegexFilter: pick("family", "a", "b", "cc", "a|b", "c.*", ".", "zz")}}
	case 5, 6:
		return &btpb.RowFilter{Filter: &btpb.RowFilter_ColumnQualifierRegexFilter{ColumnQualifierRegexFilter: []byte(pick("qualifier", "a", "b", "", "a.*", `b\C*`, "a|c", "[ab]+", "ab?", "zz"))}}
	case 7:
		return &btpb.RowFilter{Filter: &btpb.RowFilter_ValueRegexFilter{ValueRegexFilter: []byte(pick("value", "a", "b.*", "", "[abc]"))}}
	case 8, 9:
		r := &btpb.ColumnRange{FamilyName: pick("family", "a", "b", "cc", "zz")}
		start, end := text("start"), text("end")
		if bytes.Compare(start, end) >= 0 {
			end = append(slices.Clip(start), 'x')
		}
		switch draw(3, "start") {
		case 1:
			r.StartQualifier = &btpb.ColumnRange_StartQualifierClosed{StartQualifierClosed: start}
		case 2:
			r.StartQualifier = &btpb.ColumnRange_StartQualifierOpen{StartQualifierOpen: start}
		}
		switch draw(3, "end") {
		case 1:
			r.EndQualifier = &btpb.ColumnRange_EndQualifierClosed{EndQualifierClosed: end}
		case 2:
			r.EndQualifier = &btpb.ColumnRange_EndQualifierOpen{EndQualifierOpen: end}
		}
		return &btpb.RowFilter{Filter: &btpb.RowFilter_ColumnRangeFilter{ColumnRangeFilter: r}}
	case 10:
		r := &btpb.TimestampRange{StartTimestampMicros: int64(draw(4, "start"))}
		if draw(2, "bounded") == 1 {
			r.EndTimestampMicros = r.StartTimestampMicros + 1 + int64(draw(3, "length"))
		}
		return &btpb.RowFilter{Filter: &btpb.RowFilter_TimestampRangeFilter{TimestampRangeFilter: r}}
	case 11:
		r := &btpb.ValueRange{StartValue: &btpb.ValueRange_StartValueClosed{StartValueClosed: text("start")}}
		if draw(2, "bounded") == 1 {
			r.EndValue = &btpb.ValueRange_EndValueOpen{EndValueOpen: append(slices.Clip(r.GetStartValueClosed()), 'b')}
		}
		return &btpb.RowFilter{Filter: &btpb.RowFilter_ValueRangeFilter{ValueRangeFilter: r}}
	case 12:
		return &btpb.RowFilter{Filter: &btpb.RowFilter_ValueBitmaskFilter{ValueBitmaskFilter: &btpb.ValueBitmask{Mask: []byte(pick("mask", "", "a", "\x02", "\x00\x00"))}}}
	case 13:
		return &btpb.RowFilter{Filter: &btpb.RowFilter_CellsPerRowLimitFilter{CellsPerRowLimitFilter: int32(1 + draw(6, "limit"))}}
	case 14:
		return &btpb.RowFilter{Filter: &btpb.RowFilter_CellsPerRowOffsetFilter{CellsPerRowOffsetFilter: int32(draw(6, "offset"))}}
	case 15:
		return &btpb.RowFilter{Filter: &btpb.RowFilter_CellsPerColumnLimitFilter{CellsPerColumnLimitFilter: int32(1 + draw(3, "limit"))}}
	case 16, 17, 18:
		labelAt := -1
		n := 2 + draw(3, "length")
		if label {
			labelAt = draw(n, "label at")
		}
		fs := make([]*btpb.RowFilter, n)
		for i := range fs {
			fs[i] = g.filter(depth-1, label && i == labelAt, sink)
		}
		return &btpb.RowFilter{Filter: &btpb.RowFilter_Chain_{Chain: &btpb.RowFilter_Chain{Filters: fs}}}
	case 19:
		// Only filters that do not change cells, so that copies are equal.
		fs := make([]*btpb.RowFilter, 2+draw(2, "length"))
		for i := range fs {
			fs[i] = g.filter(depth-1, false, sink)
		}
		return &btpb.RowFilter{Filter: &btpb.RowFilter_Interleave_{Interleave: &btpb.RowFilter_Interleave{Filters: fs}}}
	case 20:
		c := &btpb.RowFilter_Condition{PredicateFilter: g.filter(depth-1, label, false)}
		if draw(4, "has true") > 0 {
			c.TrueFilter = orPass(g.filter(depth-1, label, false))
		}
		if draw(4, "has false") > 0 {
			c.FalseFilter = orPass(g.filter(depth-1, label, false))
		}
		return &btpb.RowFilter{Filter: &btpb.RowFilter_Condition_{Condition: c}}
	default:
		switch {
		case sink && draw(2, "sink") == 0:
			return &btpb.RowFilter{Filter: &btpb.RowFilter_Sink{Sink: true}}
		case label:
			return &btpb.RowFilter{Filter: &btpb.RowFilter_ApplyLabelTransformer{ApplyLabelTransformer: "x"}}
		}
		return &btpb.RowFilter{Filter: &btpb.RowFilter_PassAllFilter{PassAllFilter: true}}
	}
}

// orPass distinguishes an empty branch from a missing one.
func orPass(f *btpb.RowFilter) *btpb.RowFilter {
	if f == nil {
		return &btpb.RowFilter{}
	}
	return f
}

func drawCells(t *rapid.T) []Cell {
	var cells []Cell
	seen := map[string]bool{}
	for range rapid.IntRange(0, 25).Draw(t, "cells") {
		f := rapid.SampledFrom(testFamilies).Draw(t, "family")
		c := Cell{
			Family: f, Ordinal: testOrdinals[f],
			Qualifier:       []byte(rapid.SampledFrom([]string{"", "a", "ab", "b", "ba", "c"}).Draw(t, "qualifier")),
			TimestampMicros: int64(rapid.IntRange(0, 4).Draw(t, "timestamp")),
			Value:           []byte(rapid.SampledFrom([]string{"", "a", "b", "bc", "c"}).Draw(t, "value")),
		}
		if key := fmt.Sprintf("%d %q %d", c.Ordinal, c.Qualifier, c.TimestampMicros); !seen[key] {
			seen[key] = true
			cells = append(cells, c)
		}
	}
	sortCells(cells)
	return cells
}

// failer is the common interface of tests and properties.
type failer interface {
	Helper()
	Fatal(args ...any)
}

func evaluate(t failer, p *Program, row string, src *cellsSource) []Cell {
	t.Helper()
	var out []Cell
	_, err := p.Run(context.Background(), []byte(row), src, func(c *Cell) error {
		kept := *c
		kept.Qualifier, kept.Value = bytes.Clone(c.Qualifier), bytes.Clone(c.Value)
		out = append(out, kept)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestProgram_EqualsModel compares the streaming evaluation, with its hints and
// passes, with the model.
func TestProgram_EqualsModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := generator{t: t}.filter(4, true, true)
		o := Options{MaxBytes: 20480, MaxDepth: 20, Ordinal: testOrdinal}
		if rapid.Bool().Draw(t, "ordinals unknown") {
			o.Ordinal = nil
		}
		p, err := Compile(f, o)
		if err != nil {
			t.Fatalf("%v: %v", f, err)
		}
		// A program is reusable.
		for range 3 {
			cells := drawCells(t)
			src := newSource(cells)
			got := evaluate(t, p, "row", src)
			if !slices.IsSortedFunc(got, func(a, b Cell) int {
				return cmp.Or(cmp.Compare(a.Ordinal, b.Ordinal), bytes.Compare(a.Qualifier, b.Qualifier), cmp.Compare(b.TimestampMicros, a.TimestampMicros))
			}) {
				t.Fatalf("%v: the output is out of order: %v", f, got)
			}
			var sunk []Cell
			want := slices.Clone(model(f, []byte("row"), cells, &sunk))
			want = append(want, sunk...)
			g, w := sortedTexts(got), sortedTexts(want)
			if !slices.Equal(g, w) {
				t.Fatalf("%v\nover %v\ngot  %s\nwant %s", f, sortedTexts(slices.Clone(cells)), strings.Join(g, "\n     "), strings.Join(w, "\n     "))
			}
			if len(want) > 0 && !p.Rows().contains("row") {
				t.Fatalf("%v: row is not in %q", f, p.Rows())
			}
			if family, qualifier := p.First(); family != "" {
				first := Cell{Ordinal: testOrdinals[family], Qualifier: qualifier}
				behind := slices.DeleteFunc(slices.Clone(cells), func(c Cell) bool {
					return cmp.Or(cmp.Compare(c.Ordinal, first.Ordinal), bytes.Compare(c.Qualifier, first.Qualifier)) < 0
				})
				if g := sortedTexts(evaluate(t, p, "row", newSource(behind))); !slices.Equal(g, w) {
					t.Fatalf("%v: without the cells before %s:%q\ngot  %s\nwant %s", f, family, qualifier, strings.Join(g, "\n     "), strings.Join(w, "\n     "))
				}
			}
		}
	})
}

func (s RowSet) contains(key string) bool {
	for _, sp := range s.Spans {
		if key >= string(sp.Start) && (len(sp.End) == 0 || key < string(sp.End)) {
			return true
		}
	}
	return false
}

// TestHints counts the cells read: selective filters read few.
func TestHints(t *testing.T) {
	t.Parallel()
	var cells []Cell
	for _, f := range testFamilies {
		for q := range 100 {
			for v := range 10 {
				cells = append(cells, Cell{Family: f, Ordinal: testOrdinals[f], Qualifier: fmt.Appendf(nil, "q%02d", q), TimestampMicros: int64(10 - v)})
			}
		}
	}
	qualifier := func(p string) *btpb.RowFilter {
		return &btpb.RowFilter{Filter: &btpb.RowFilter_ColumnQualifierRegexFilter{ColumnQualifierRegexFilter: []byte(p)}}
	}
	family := func(p string) *btpb.RowFilter {
		return &btpb.RowFilter{Filter: &btpb.RowFilter_FamilyNameRegexFilter{FamilyNameRegexFilter: p}}
	}
	columns := func(family, first, last string) *btpb.RowFilter {
		return &btpb.RowFilter{Filter: &btpb.RowFilter_ColumnRangeFilter{ColumnRangeFilter: &btpb.ColumnRange{
			FamilyName: family, StartQualifier: &btpb.ColumnRange_StartQualifierClosed{StartQualifierClosed: []byte(first)},
			EndQualifier: &btpb.ColumnRange_EndQualifierClosed{EndQualifierClosed: []byte(last)},
		}}}
	}
	newest := &btpb.RowFilter{Filter: &btpb.RowFilter_CellsPerColumnLimitFilter{CellsPerColumnLimitFilter: 1}}
	one := &btpb.RowFilter{Filter: &btpb.RowFilter_CellsPerRowLimitFilter{CellsPerRowLimitFilter: 1}}
	chain := func(f ...*btpb.RowFilter) *btpb.RowFilter {
		return &btpb.RowFilter{Filter: &btpb.RowFilter_Chain_{Chain: &btpb.RowFilter_Chain{Filters: f}}}
	}
	interleave := func(f ...*btpb.RowFilter) *btpb.RowFilter {
		return &btpb.RowFilter{Filter: &btpb.RowFilter_Interleave_{Interleave: &btpb.RowFilter_Interleave{Filters: f}}}
	}
	condition := func(p, t *btpb.RowFilter) *btpb.RowFilter {
		return &btpb.RowFilter{Filter: &btpb.RowFilter_Condition_{Condition: &btpb.RowFilter_Condition{PredicateFilter: p, TrueFilter: t}}}
	}
	block := &btpb.RowFilter{Filter: &btpb.RowFilter_BlockAllFilter{BlockAllFilter: true}}
	for _, c := range []struct {
		name        string
		f           *btpb.RowFilter
		out, atMost int // cells
	}{
		{"all", nil, 3000, 3000},
		{"nothing", block, 0, 1},
		{"newest of one column", chain(family("a"), qualifier("q50"), newest), 1, 3},
		{"newest of a range of one column", chain(columns("a", "q50", "q50"), newest), 1, 2},
		{"newest of a range", chain(columns("a", "q50", "q51"), newest), 2, 3},
		{"newest of one column, the order of filters reversed", chain(newest, qualifier("q50"), family("a")), 1, 7},
		{"newest of a column in all families", chain(qualifier("q50"), newest), 3, 6},
		{"prefix", chain(family("cc"), qualifier("q5.*"), newest), 10, 13},
		{"newest of every column", newest, 300, 300},
		{"first cell", one, 1, 1},
		{"two columns", interleave(chain(family("b"), qualifier("q10"), newest), chain(family("cc"), qualifier("q20"), newest)), 2, 8},
		{"condition on one column", condition(chain(family("a"), qualifier("q50")), chain(family("b"), qualifier("q99"), newest)), 1, 5},
		{"condition on nothing", condition(chain(family("a"), qualifier("zz")), nil), 0, 6},
	} {
		p, err := Compile(c.f, Options{Ordinal: testOrdinal})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		src := newSource(cells)
		got := evaluate(t, p, "row", src)
		if len(got) != c.out || src.reads > c.atMost {
			t.Errorf("%s: %d cells out of %d read, want %d out of at most %d", c.name, len(got), src.reads, c.out, c.atMost)
		}
	}
}

func TestRun_EmitError(t *testing.T) {
	t.Parallel()
	p, err := Compile(nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	src := newSource([]Cell{{Family: "a"}, {Family: "a", Qualifier: []byte("b")}})
	if _, err := p.Run(t.Context(), []byte("row"), src, func(*Cell) error { return boom }); !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
	if src.reads != 1 {
		t.Errorf("%d cells were read", src.reads)
	}
}

func TestRows(t *testing.T) {
	t.Parallel()
	key := func(p string) *btpb.RowFilter {
		return &btpb.RowFilter{Filter: &btpb.RowFilter_RowKeyRegexFilter{RowKeyRegexFilter: []byte(p)}}
	}
	chain := func(f ...*btpb.RowFilter) *btpb.RowFilter {
		return &btpb.RowFilter{Filter: &btpb.RowFilter_Chain_{Chain: &btpb.RowFilter_Chain{Filters: f}}}
	}
	interleave := func(f ...*btpb.RowFilter) *btpb.RowFilter {
		return &btpb.RowFilter{Filter: &btpb.RowFilter_Interleave_{Interleave: &btpb.RowFilter_Interleave{Filters: f}}}
	}
	sink := &btpb.RowFilter{Filter: &btpb.RowFilter_Sink{Sink: true}}
	for _, c := range []struct {
		f    *btpb.RowFilter
		want string
	}{
		{nil, `["", "")`},
		{key("abc"), `["abc", "abc\x00")`},
		{key("abc.*"), `["abc", "abd")`},
		{key("ab[cd]"), `["ab", "ac")`},
		{key(".*abc"), `["", "")`},
		{key(`\xff\C*`), `["\xff", "")`},
		{key("(?i)abc"), `["", "")`},
		{chain(key("a.*"), key("ab.*")), `["ab", "ac")`},
		{chain(key("a"), key("b")), ``},
		{interleave(key("b"), key("a.*")), `["a", "b\x00")`},
		{interleave(key("c"), key("a")), `["a", "a\x00") ["c", "c\x00")`},
		{chain(interleave(sink, nil), key("a")), `["", "")`},
		{chain(key("a.*"), sink, key("b")), `["a", "b")`},
	} {
		p, err := Compile(c.f, Options{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, sp := range p.Rows().Spans {
			got = append(got, fmt.Sprintf("[%q, %q)", sp.Start, sp.End))
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%v: got %s, want %s", c.f, s, c.want)
		}
	}
}

// TestRowSet_Algebra compares sets of spans with sets of short keys.
func TestRowSet_Algebra(t *testing.T) {
	t.Parallel()
	var keys []string
	for _, a := range []string{"", "a", "b", "c"} {
		for _, b := range []string{"", "a", "b", "\x00"} {
			keys = append(keys, a+b)
		}
	}
	key := rapid.SampledFrom(keys)
	drawSet := func(t *rapid.T) RowSet {
		var spans []Span
		for range rapid.IntRange(0, 4).Draw(t, "spans") {
			spans = append(spans, Span{Start: []byte(key.Draw(t, "start")), End: []byte(key.Draw(t, "end"))})
		}
		return Of(spans)
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawSet(t), drawSet(t)
		u, i := a.Union(b), a.Intersect(b)
		for _, k := range keys {
			if got, want := u.contains(k), a.contains(k) || b.contains(k); got != want {
				t.Fatalf("%q in %q ∪ %q: %v", k, a, b, got)
			}
			if got, want := i.contains(k), a.contains(k) && b.contains(k); got != want {
				t.Fatalf("%q in %q ∩ %q: %v", k, a, b, got)
			}
		}
		for _, s := range []RowSet{a, u, i} {
			for n, sp := range s.Spans {
				if len(sp.End) > 0 && string(sp.Start) >= string(sp.End) {
					t.Fatalf("an empty span in %q", s)
				}
				if n > 0 && (len(s.Spans[n-1].End) == 0 || string(s.Spans[n-1].End) > string(sp.Start)) {
					t.Fatalf("%q is out of order", s)
				}
			}
		}
	})
}

// newRun returns a run for evaluating regular expressions.
func newRun() *run { return &run{ctx: context.Background(), steps: math.MaxInt64} }

// TestRegex_ShortCuts: expressions that need no automaton. Clients quote NUL as
// \x00, and write \C* for any bytes.
func TestRegex_ShortCuts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, prefix string
		isLiteral       bool
		rest            rest
	}{
		{pattern: "cf", prefix: "cf", isLiteral: true},
		{pattern: `a\.b\_\\`, prefix: `a.b_\`, isLiteral: true},
		{pattern: `\x00\xfFa`, prefix: "\x00\xffa", isLiteral: true},
		{pattern: "\xe9\\\xff\x00", prefix: "\xe9\xff\x00", isLiteral: true},
		{pattern: `\Qa.\Eb`, prefix: "a.b", isLiteral: true},
		{pattern: `\x00a\C*`, prefix: "\x00a", rest: restAnything},
		{pattern: `a\\.*`, prefix: `a\`, rest: restLine},
		{pattern: `\C*`, rest: restAnything},
		{pattern: `a\.*`, prefix: "a"},
		{pattern: `\\C*`, prefix: `\`},
		{pattern: "a|b"},
	} {
		re, err := compileRegex([]byte(c.pattern))
		if err != nil {
			t.Errorf("%q: %v", c.pattern, err)
			continue
		}
		if string(re.prefix) != c.prefix || re.isLiteral != c.isLiteral || re.rest != c.rest {
			t.Errorf("%q: prefix %q, literal %t, rest %d; want %q, %t, %d", c.pattern, re.prefix, re.isLiteral, re.rest, c.prefix, c.isLiteral, c.rest)
		}
		if isAutomaton := re.re != nil; isAutomaton != (!c.isLiteral && c.rest == restRegexp) {
			t.Errorf("%q: it has an automaton: %t", c.pattern, isAutomaton)
		}
	}
}

// TestRegex_FastPaths compares the shortcuts with the automaton.
func TestRegex_FastPaths(t *testing.T) {
	t.Parallel()
	piece := rapid.SampledFrom([]string{
		"a", "b", "ab", ".", `\C`, `\.`, `\n`, `\x61`, "[ab]", "(a)", "(?i)", "(?s)", "(?:b)", "|", "*", "+", "?", ".*", `\C*`, "^", "$", `\Q.*\E`, "a{2}", `\pL`, "é", "\\\xff",
	})
	input := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "A", ".", "*", "\n", "\xff", "é"}), 0, 5)
	rapid.Check(t, func(t *rapid.T) {
		pattern := strings.Join(rapid.SliceOfN(piece, 0, 5).Draw(t, "pattern"), "")
		re, err := compileRegex([]byte(pattern))
		if err != nil {
			t.Skip("no expression")
		}
		src, err := escapeRegex([]byte(pattern))
		if err != nil {
			t.Fatalf("%q: %v", pattern, err)
		}
		plain, err := binaryregexp.Compile(`^(?:` + src + `)$`)
		if err != nil {
			t.Fatalf("%q: %v", pattern, err)
		}
		for range 5 {
			b := []byte(strings.Join(input.Draw(t, "input"), ""))
			if got, want := re.match(newRun(), b), plain.Match(b); got != want {
				t.Fatalf("%q on %q: %v, the automaton says %v", pattern, b, got, want)
			}
			if plain.Match(b) && !bytes.HasPrefix(b, re.prefix) {
				t.Fatalf("%q matches %q, which does not begin with %q", pattern, b, re.prefix)
			}
		}
	})
}

// TestRegex_ASCII compares with the standard library where both apply.
func TestRegex_ASCII(t *testing.T) {
	t.Parallel()
	inputs := []string{"", "a", "ab", "abc", "b", "a\nb", "a.b", "aaa", "A", "-", "^", "a b"}
	for _, pattern := range []string{
		"", "a", "ab", "a.*", ".*", "a|b", "(a|b)+", "[^a]", "a{2,3}", `\Aab\z`, "^ab$", `a\.b`, "(?i)A", "(?s)a.b", "(?m)^a$", `\w+`, `a\b.*`, "a*?", `[\-^]`, `\Qa.b\E`, `\x61`,
	} {
		re, err := compileRegex([]byte(pattern))
		if err != nil {
			t.Fatalf("%q: %v", pattern, err)
		}
		std := regexp.MustCompile(`^(?:` + pattern + `)$`)
		for _, in := range inputs {
			if got, want := re.match(newRun(), []byte(in)), std.MatchString(in); got != want {
				t.Errorf("%q on %q: got %v", pattern, in, got)
			}
		}
	}
}

func TestCompile_ErrorsNameThePlace(t *testing.T) {
	t.Parallel()
	bad := &btpb.RowFilter{Filter: &btpb.RowFilter_ValueRegexFilter{ValueRegexFilter: []byte("(")}}
	chain := func(f ...*btpb.RowFilter) *btpb.RowFilter {
		return &btpb.RowFilter{Filter: &btpb.RowFilter_Chain_{Chain: &btpb.RowFilter_Chain{Filters: f}}}
	}
	_, err := Compile(chain(nil, chain(bad, nil)), Options{})
	if want := "chain.filters[1].chain.filters[0].value_regex_filter: "; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s…", err, want)
	}
}

func TestCompile_LongChain(t *testing.T) {
	t.Parallel()
	fs := make([]*btpb.RowFilter, hardMaxFilters-1)
	for i := range fs {
		fs[i] = &btpb.RowFilter{Filter: &btpb.RowFilter_CellsPerRowOffsetFilter{}}
	}
	f := &btpb.RowFilter{Filter: &btpb.RowFilter_Chain_{Chain: &btpb.RowFilter_Chain{Filters: fs}}}
	p, err := Compile(f, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := evaluate(t, p, "row", newSource([]Cell{{Family: "a"}})); len(got) != 1 {
		t.Errorf("%d cells", len(got))
	}
	f.GetChain().Filters = append(fs, nil)
	if _, err := Compile(f, Options{}); err == nil {
		t.Error("a chain without end was accepted")
	}
}

// TestRun_TooManyCopies runs a small filter that makes 2^60 copies of a cell
// and returns none.
func TestRun_TooManyCopies(t *testing.T) {
	t.Parallel()
	double := &btpb.RowFilter{Filter: &btpb.RowFilter_Interleave_{Interleave: &btpb.RowFilter_Interleave{Filters: []*btpb.RowFilter{nil, nil}}}}
	var fs []*btpb.RowFilter
	for range 60 {
		fs = append(fs, double)
	}
	fs = append(fs, &btpb.RowFilter{Filter: &btpb.RowFilter_FamilyNameRegexFilter{FamilyNameRegexFilter: "none"}})
	p, err := Compile(&btpb.RowFilter{Filter: &btpb.RowFilter_Chain_{Chain: &btpb.RowFilter_Chain{Filters: fs}}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Run(t.Context(), []byte("row"), newSource([]Cell{{Family: "a"}}), func(*Cell) error { return nil })
	if !errors.Is(err, ErrTooManyCopies) {
		t.Errorf("got %v, want ErrTooManyCopies", err)
	}
}

// valueRegexOf returns a filter by value, and the cells of a row with values of
// size bytes.
func valueRegexOf(t *testing.T, pattern string, values, size int) (*Program, *cellsSource) {
	t.Helper()
	p, err := Compile(&btpb.RowFilter{Filter: &btpb.RowFilter_ValueRegexFilter{ValueRegexFilter: []byte(pattern)}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var cells []Cell
	for i := range values {
		cells = append(cells, Cell{Family: "a", Qualifier: fmt.Append(nil, i), Value: bytes.Repeat([]byte("a"), size)})
	}
	return p, newSource(cells)
}

// TestRun_TooManySteps: the work of regular expressions on a row is bounded,
// for one value and for many.
func TestRun_TooManySteps(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ values, size int }{{1, 1 << 18}, {1 << 8, 1 << 10}} {
		p, src := valueRegexOf(t, "(a|aa|aaa)*b", tc.values, tc.size)
		none := func(*Cell) error { t.Error("a cell passed"); return nil }
		p.maxSteps = 10 << 20
		if _, err := p.Run(t.Context(), []byte("row"), src, none); err != nil {
			t.Errorf("%d values of %d bytes: %v", tc.values, tc.size, err)
		}
		src.Rewind()
		p.maxSteps = 1 << 20
		_, err := p.Run(t.Context(), []byte("row"), src, none)
		if !errors.Is(err, ErrTooManySteps) || p.run.steps < -stepsAtOnce {
			t.Errorf("%d values of %d bytes: got %v after %d steps, want ErrTooManySteps", tc.values, tc.size, err, p.maxSteps-p.run.steps)
		}
	}
}

// countdown is a context that ends after a number of checks.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// TestRun_ContextEnds: a run ends soon after its context, while a regular
// expression matches one value or many.
func TestRun_ContextEnds(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ values, size int }{{1, 1 << 18}, {1 << 8, 1 << 10}} {
		p, src := valueRegexOf(t, "(a|aa|aaa)*b", tc.values, tc.size)
		const asked = 1
		_, err := p.Run(&countdown{t.Context(), asked}, []byte("row"), src, func(*Cell) error { return nil })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%d values of %d bytes: got %v, want DeadlineExceeded", tc.values, tc.size, err)
		}
		if steps := p.maxSteps - p.run.steps; steps > 2*(asked+1)*stepsAtOnce {
			t.Errorf("%d values of %d bytes: %d steps until the end", tc.values, tc.size, steps)
		}
	}
}

// TestCompile_Instructions: the compiled size of a filter's expressions is
// bounded, and counted before compiling.
func TestCompile_Instructions(t *testing.T) {
	t.Parallel()
	value := func(pattern string) *btpb.RowFilter {
		return &btpb.RowFilter{Filter: &btpb.RowFilter_ValueRegexFilter{ValueRegexFilter: []byte(pattern)}}
	}
	many := func(n int) *btpb.RowFilter {
		var fs []*btpb.RowFilter
		for range n {
			fs = append(fs, value("(ab){500}"))
		}
		return &btpb.RowFilter{Filter: &btpb.RowFilter_Chain_{Chain: &btpb.RowFilter_Chain{Filters: fs}}}
	}
	for _, tc := range []struct {
		filter *btpb.RowFilter
		want   string // in the error; "": no error
	}{
		{value(strings.Repeat("a{1000}", 40)), ""},
		{value(strings.Repeat("a{1000}", 3000)), "value_regex_filter: the regular expression compiles to"},
		{value(strings.Repeat("(", 500_000) + strings.Repeat(")", 500_000)), "value_regex_filter: the regular expression compiles to"},
		{many(30), ""},
		{many(60), "value_regex_filter: the filter's regular expressions compile to more than"},
	} {
		_, err := Compile(tc.filter, Options{})
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%.50v: got %v, want %q", tc.filter, err, tc.want)
		}
	}
	// The count is the compiler's, or slightly above.
	for _, pattern := range []string{
		"", "a", "abc", "a|b|cd", "(a)(b)", "a*b+c?", "a{3}", "a{3,}", "(ab){2,7}", "a{0}", "a{0,}", "(?i)abc", "[a-z]{5}", `\pL`, "^a$", "(a*)*", "(|a){9}", "(?:a{2}){3}",
	} {
		parsed, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		counted := instructions(parsed)
		prog, err := syntax.Compile(parsed.Simplify())
		if err != nil {
			t.Fatal(err)
		}
		if got := len(prog.Inst) - 2; got > counted+1 || counted > 2*got+4 { // without the first and last of each program
			t.Errorf("%q: %d instructions are counted, %d compiled", pattern, counted, got)
		}
	}
}

// FuzzFilter compiles any bytes and, if they are a filter, runs it.
func FuzzFilter(f *testing.F) {
	for _, seed := range []*btpb.RowFilter{
		{},
		{Filter: &btpb.RowFilter_ColumnQualifierRegexFilter{ColumnQualifierRegexFilter: []byte("a.*")}},
		{Filter: &btpb.RowFilter_Chain_{Chain: &btpb.RowFilter_Chain{Filters: []*btpb.RowFilter{
			{Filter: &btpb.RowFilter_CellsPerColumnLimitFilter{CellsPerColumnLimitFilter: 1}},
			{Filter: &btpb.RowFilter_Interleave_{Interleave: &btpb.RowFilter_Interleave{Filters: []*btpb.RowFilter{{}, {Filter: &btpb.RowFilter_Sink{Sink: true}}}}}},
			{Filter: &btpb.RowFilter_Condition_{Condition: &btpb.RowFilter_Condition{PredicateFilter: &btpb.RowFilter{}}}},
		}}}},
	} {
		b, err := proto.Marshal(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, "a:b")
	}
	f.Fuzz(func(t *testing.T, b []byte, text string) {
		var rf btpb.RowFilter
		if proto.Unmarshal(b, &rf) != nil {
			return
		}
		p, err := Compile(&rf, Options{MaxBytes: 20480, MaxDepth: 20, Ordinal: testOrdinal})
		if err != nil {
			return
		}
		var cells []Cell
		for i, f := range testFamilies {
			cells = append(cells,
				Cell{Family: f, Ordinal: testOrdinals[f], Qualifier: []byte(text), TimestampMicros: int64(i), Value: []byte(text)},
				Cell{Family: f, Ordinal: testOrdinals[f], Qualifier: []byte(text + "x"), Value: b})
		}
		got := evaluate(t, p, text, newSource(cells))
		if len(got) > 0 && !p.Rows().contains(text) {
			t.Errorf("row %q is not in %q", text, p.Rows())
		}
		again := evaluate(t, p, text, newSource(cells))
		if !slices.EqualFunc(got, again, func(a, b Cell) bool { return cellText(&a) == cellText(&b) }) {
			t.Errorf("%v: a second run differs", &rf)
		}
	})
}
