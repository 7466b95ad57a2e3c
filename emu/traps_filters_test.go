package emu

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestTrap21_RegexesMatchWholly(t *testing.T) {
	t.Parallel()
	e := newTable(t, "foo")
	e.mustMutate("foo", set("foo", "foo", 1000, "foo"))
	for _, f := range []func(string) *btpb.RowFilter{rowKeyRegexOf, familyRegexOf, qualifierRegexOf, valueRegexOf} {
		e.wantCells(f("f|fo"))
		e.wantCells(f("oo?"))
		e.wantCells(f("fo|o"))
		e.wantCells(f("f.*"), "foo foo:foo@1000=foo")
		e.wantCells(f("foo"), "foo foo:foo@1000=foo")
		e.wantCells(f("bar|foo"), "foo foo:foo@1000=foo")
	}
}

func TestTrap22_RegexesMatchBytes(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	for i, q := range []string{"\n", "é", "\x80", "\xff", "+", "a\nb"} {
		e.mustMutate("r", set("f", q, int64(i)*1000, "v"))
	}
	all := []string{`r f:` + "\n" + `@0=v`, "r f:+@4000=v", "r f:\x80@2000=v", "r f:é@1000=v", "r f:\xff@3000=v"}
	for _, c := range []struct {
		pattern string
		want    []string
	}{
		{`.`, []string{all[1], all[2], all[4]}},
		{`\C`, []string{all[0], all[1], all[2], all[4]}},
		{`\C\C`, []string{all[3]}},
		{`é`, []string{all[3]}},
		{"\x80", []string{all[2]}},
		{`\x80`, []string{all[2]}},
		{"\\\x80", []string{all[2]}},       // quoted, as clients do
		{"\\\xc3\\\xa9", []string{all[3]}}, // é, likewise
		{"\\Q\x80\\E", []string{all[2]}},
		{`[\x80-\xff]`, []string{all[2], all[4]}},
		{"[\x80-\xff]", []string{all[2], all[4]}},
		{`\+`, []string{all[1]}},
		{`\Q+\E`, []string{all[1]}},
		{`\Q+`, []string{all[1]}},
		{`a.b`, nil},
		{`a.*`, nil},
		{`a\C*`, []string{"r f:a\nb@5000=v"}},
		{`(?s)a.*`, []string{"r f:a\nb@5000=v"}},
	} {
		e.wantCells(qualifierRegexOf(c.pattern), c.want...)
	}
}

func TestTrap23_BadRegexes(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f") // empty: filters are validated before rows are read
	for _, f := range []*btpb.RowFilter{
		rowKeyRegexOf("["), familyRegexOf("("), qualifierRegexOf("*"), valueRegexOf("a)(b"), valueRegexOf(`\`),
		chainOf(passAll(), valueRegexOf("(")),
		valueRegexOf("(x{1000}){1000}"),
	} {
		_, err := e.read(&btpb.ReadRowsRequest{Filter: f})
		wantCode(t, err, codes.InvalidArgument)
		_, err = e.data.CheckAndMutateRow(e.ctx(), &btpb.CheckAndMutateRowRequest{
			TableName: testTable, RowKey: []byte("r"), PredicateFilter: f, FalseMutations: []*btpb.Mutation{set("f", "q", 0, "")},
		})
		wantCode(t, err, codes.InvalidArgument)
	}
	// A family regex must not contain a colon, as documented; the code is a belief.
	wantBelief(t, "a colon in a family regex", func() string { return e.outcomeOf(&btpb.ReadRowsRequest{Filter: familyRegexOf("a:b")}) },
		codes.InvalidArgument.String(), codes.FailedPrecondition.String())
}

func TestTrap24_Ranges(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	e.mustMutate("r", set("f", "q", 1000, "1"), set("f", "q", 2000, "2"), set("f", "q", 3000, "3"))
	e.wantCells(timeRangeOf(1000, 3000), "r f:q@2000=2", "r f:q@1000=1")
	e.wantCells(timeRangeOf(2000, 0), "r f:q@3000=3", "r f:q@2000=2")
	e.wantCells(timeRangeOf(1, 1001), "r f:q@1000=1")
	e.wantCells(timeRangeOf(0, 0), "r f:q@3000=3", "r f:q@2000=2", "r f:q@1000=1")
	columns := func(r *btpb.ColumnRange) *btpb.RowFilter {
		return &btpb.RowFilter{Filter: &btpb.RowFilter_ColumnRangeFilter{ColumnRangeFilter: r}}
	}
	values := func(r *btpb.ValueRange) *btpb.RowFilter {
		return &btpb.RowFilter{Filter: &btpb.RowFilter_ValueRangeFilter{ValueRangeFilter: r}}
	}
	for _, f := range []*btpb.RowFilter{timeRangeOf(-1, 0), columns(&btpb.ColumnRange{})} {
		_, err := e.read(&btpb.ReadRowsRequest{Filter: f})
		wantCode(t, err, codes.InvalidArgument)
	}
	// Belief: an impossible range is rejected, or is empty.
	for _, f := range []*btpb.RowFilter{
		timeRangeOf(3000, 2000), timeRangeOf(2000, 2000),
		columns(&btpb.ColumnRange{
			FamilyName:     "f",
			StartQualifier: &btpb.ColumnRange_StartQualifierClosed{StartQualifierClosed: []byte("b")},
			EndQualifier:   &btpb.ColumnRange_EndQualifierClosed{EndQualifierClosed: []byte("a")},
		}),
		values(&btpb.ValueRange{
			StartValue: &btpb.ValueRange_StartValueClosed{StartValueClosed: []byte("b")},
			EndValue:   &btpb.ValueRange_EndValueOpen{EndValueOpen: []byte("b")},
		}),
	} {
		wantBelief(t, f.String(), func() string { return e.outcomeOf(&btpb.ReadRowsRequest{Filter: f}) }, codes.InvalidArgument.String(), "")
	}
}

func TestTrap25_ValueBitmask(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	e.mustMutate("r", set("f", "a", 0, "\x03"), set("f", "b", 0, "\x01"), set("f", "c", 0, "\x03\x03"), set("f", "d", 0, ""))
	mask := func(m string) *btpb.RowFilter {
		return &btpb.RowFilter{Filter: &btpb.RowFilter_ValueBitmaskFilter{ValueBitmaskFilter: &btpb.ValueBitmask{Mask: []byte(m)}}}
	}
	e.wantCells(mask("\x02"), "r f:a@0=\x03")
	e.wantCells(mask("\x01"), "r f:a@0=\x03", "r f:b@0=\x01")
	e.wantCells(mask("\x00\x00"), "r f:c@0=\x03\x03")
	e.wantCells(mask(""), "r f:d@0=")
}

func TestTrap26_SinkExample(t *testing.T) {
	t.Parallel()
	// The example in the API's documentation of sink.
	e := newTable(t, "A", "B")
	e.mustMutate("r", set("A", "A", 1000, "w"), set("A", "B", 2000, "x"), set("B", "B", 4000, "z"))
	e.wantCells(
		chainOf(familyRegexOf("A"), interleaveOf(passAll(), chainOf(labelOf("foo"), sinkFilter())), qualifierRegexOf("B")),
		"r A:A@1000=w foo", "r A:B@2000=x", "r A:B@2000=x foo",
	)
	e.wantCells(sinkFilter(), "r A:A@1000=w", "r A:B@2000=x", "r B:B@4000=z")
	// Filters after a sink do not affect its cells.
	e.wantCells(chainOf(interleaveOf(passAll(), sinkFilter()), rowKeyRegexOf("other")),
		"r A:A@1000=w", "r A:B@2000=x", "r B:B@4000=z")
}

func TestTrap27_SinkInConditionAndFalseFlags(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	for _, f := range []*btpb.RowFilter{
		conditionOf(sinkFilter(), passAll(), nil),
		conditionOf(passAll(), sinkFilter(), nil),
		conditionOf(passAll(), nil, chainOf(passAll(), sinkFilter())),
		{Filter: &btpb.RowFilter_Sink{}},
		{Filter: &btpb.RowFilter_PassAllFilter{}},
		{Filter: &btpb.RowFilter_BlockAllFilter{}},
		{Filter: &btpb.RowFilter_StripValueTransformer{}},
	} {
		_, err := e.read(&btpb.ReadRowsRequest{Filter: f})
		wantCode(t, err, codes.InvalidArgument)
	}
}

func TestTrap28_Interleave(t *testing.T) {
	t.Parallel()
	e := newTable(t, "b", "a")
	e.mustMutate("r", set("a", "x", 1000, "1"), set("b", "y", 2000, "2"), set("b", "y", 1000, "3"))
	e.wantCells(interleaveOf(familyRegexOf("a"), passAll()),
		"r b:y@2000=2", "r b:y@1000=3", "r a:x@1000=1", "r a:x@1000=1")
	twice := interleaveOf(passAll(), passAll())
	e.wantCells(chainOf(twice, columnLimitOf(1)), "r b:y@2000=2", "r a:x@1000=1")
	e.wantCells(chainOf(twice, columnLimitOf(3)), "r b:y@2000=2", "r b:y@2000=2", "r b:y@1000=3", "r a:x@1000=1", "r a:x@1000=1")
	e.wantCells(chainOf(twice, rowLimitOf(3)), "r b:y@2000=2", "r b:y@2000=2", "r b:y@1000=3")
	e.wantCells(chainOf(twice, rowOffsetOf(3)), "r b:y@1000=3", "r a:x@1000=1", "r a:x@1000=1")
	for _, f := range []*btpb.RowFilter{chainOf(), chainOf(passAll()), interleaveOf(), interleaveOf(passAll())} {
		_, err := e.read(&btpb.ReadRowsRequest{Filter: f})
		wantCode(t, err, codes.InvalidArgument)
	}
}

func TestTrap29_RowLimitCountsInStorageOrder(t *testing.T) {
	t.Parallel()
	e := newTable(t, "c", "a", "b")
	e.mustMutate("r", set("a", "q", 1000, "1"), set("b", "q", 1000, "2"), set("c", "q", 1000, "3"), set("c", "q", 2000, "4"))
	for range 20 {
		e.wantCells(rowLimitOf(1), "r c:q@2000=4")
	}
	e.wantCells(rowLimitOf(3), "r c:q@2000=4", "r c:q@1000=3", "r a:q@1000=1")
}

func TestTrap30_RowOffset(t *testing.T) {
	t.Parallel()
	e := newTable(t, "c", "a")
	e.mustMutate("r", set("a", "q", 1000, "1"), set("c", "q", 1000, "2"))
	e.mustMutate("s", set("a", "q", 1000, "3"), set("a", "r", 1000, "4"), set("c", "q", 1000, "5"))
	e.wantCells(rowOffsetOf(1), "r a:q@1000=1", "s a:q@1000=3", "s a:r@1000=4")
	e.wantCells(rowOffsetOf(2), "s a:r@1000=4")
	e.wantCells(rowOffsetOf(0), "r c:q@1000=2", "r a:q@1000=1", "s c:q@1000=5", "s a:q@1000=3", "s a:r@1000=4")
	resp, err := e.data.CheckAndMutateRow(e.ctx(), &btpb.CheckAndMutateRowRequest{
		TableName: testTable, RowKey: []byte("r"), PredicateFilter: rowOffsetOf(2), TrueMutations: []*btpb.Mutation{deleteRow()},
	})
	if err != nil || resp.GetPredicateMatched() {
		t.Errorf("an offset past the end matched: %v, %v", resp, err)
	}
}

func TestTrap31_LimitsBelowOne(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	e.mustMutate("r", set("f", "q", 1000, "1"))
	for _, f := range []*btpb.RowFilter{
		rowOffsetOf(-1), rowOffsetOf(math.MinInt32), rowLimitOf(0), rowLimitOf(-1), columnLimitOf(0), columnLimitOf(-1),
	} {
		_, err := e.read(&btpb.ReadRowsRequest{Filter: f})
		wantCode(t, err, codes.InvalidArgument)
	}
	e.wantCells(nil, "r f:q@1000=1")
}

// nestedFilter returns a filter inside n chains.
func nestedFilter(n int) *btpb.RowFilter {
	f := passAll()
	for range n {
		f = chainOf(f, passAll())
	}
	return f
}

func TestTrap32_LabelsSizesAndSamples(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	e.mustMutate("r", set("f", "q", 1000, "1"))
	sample := func(p float64) *btpb.RowFilter {
		return &btpb.RowFilter{Filter: &btpb.RowFilter_RowSampleFilter{RowSampleFilter: p}}
	}
	bad := []*btpb.RowFilter{
		labelOf(""), labelOf(strings.Repeat("a", 16)), labelOf("Abc"), labelOf("a_b"), labelOf("é"),
		chainOf(labelOf("a"), labelOf("b")),
		chainOf(labelOf("a"), interleaveOf(labelOf("b"), passAll())),
		nestedFilter(21),
		valueRegexOf(strings.Repeat("a", 20_480)),
	}
	for _, f := range bad {
		_, err := e.read(&btpb.ReadRowsRequest{Filter: f})
		wantCode(t, err, codes.InvalidArgument)
	}
	// Belief: a probability outside (0, 1) is rejected, or acts as the nearest of 0 and 1.
	all := e.outcomeOf(&btpb.ReadRowsRequest{})
	for p, certain := range map[float64]string{0: "", 1: all, 1.5: all, -0.5: ""} {
		wantBelief(t, fmt.Sprint("a sample of ", p), func() string { return e.outcomeOf(&btpb.ReadRowsRequest{Filter: sample(p)}) }, codes.InvalidArgument.String(), certain)
	}
	wantBelief(t, "a sample of NaN", func() string { return e.outcomeOf(&btpb.ReadRowsRequest{Filter: sample(math.NaN())}) }, codes.InvalidArgument.String(), "", all)
	e.wantCells(labelOf("a-1"), "r f:q@1000=1 a-1")
	e.wantCells(interleaveOf(labelOf("a"), labelOf("b")), "r f:q@1000=1 a", "r f:q@1000=1 b")
	e.wantCells(chainOf(labelOf("a"), stripFilter()), "r f:q@1000= a")
	e.wantCells(nestedFilter(20), "r f:q@1000=1")
	e.wantCells(&btpb.RowFilter{}, "r f:q@1000=1")
	e.wantCells(rowKeyRegexOf("r"), "r f:q@1000=1")
	e.wantCells(valueRegexOf(strings.Repeat("a", 20_000)))
}

// TestInterleaveWithoutEnd requests 2^60 copies of a cell with a small filter: it is rejected,
// and the server can still be closed.
func TestInterleaveWithoutEnd(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	e.mustMutate("r", set("f", "q", 1000, "1"))
	fs := slices.Repeat([]*btpb.RowFilter{interleaveOf(passAll(), passAll())}, 60)
	f := chainOf(append(fs, valueRegexOf("none"))...)
	_, err := e.read(&btpb.ReadRowsRequest{Filter: f})
	wantCode(t, err, codes.InvalidArgument)
	_, err = e.data.CheckAndMutateRow(t.Context(), &btpb.CheckAndMutateRowRequest{
		TableName: testTable, RowKey: []byte("r"), PredicateFilter: f, TrueMutations: []*btpb.Mutation{set("f", "q", 1000, "2")},
	})
	wantCode(t, err, codes.InvalidArgument)
}

func TestRowSample(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	var entries []*btpb.MutateRowsRequest_Entry
	const rows = 1000
	for i := range rows {
		entries = append(entries, entry(fmt.Sprintf("%04d", i), set("f", "a", 0, ""), set("f", "b", 0, "")))
	}
	if _, err := e.mutateRows(entries...); err != nil {
		t.Fatal(err)
	}
	sample := &btpb.RowFilter{Filter: &btpb.RowFilter_RowSampleFilter{RowSampleFilter: 0.25}}
	// A condition reads the row twice, and must sample it once.
	for _, f := range []*btpb.RowFilter{sample, chainOf(sample, conditionOf(qualifierRegexOf("b"), passAll(), nil))} {
		res := e.mustRead(&btpb.ReadRowsRequest{Filter: f})
		if n := len(res.rows); n < rows/8 || n > rows/2 {
			t.Errorf("%d of %d rows with probability 0.25", n, rows)
		}
		for _, r := range res.rows {
			if len(r.cells) != 2 {
				t.Errorf("row %s has %d cells", r.key, len(r.cells))
			}
		}
	}
}

func TestTrap171_ReadOfAnUnknownFamily(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	e.mustMutate("r", set("f", "q", 1000, "v"))
	const text = "Error while reading table '" + testTable + "' : Requested column family not found"
	for name, f := range map[string]*btpb.RowFilter{
		"alone":             familyRegexOf("g"),
		"quoted":            familyRegexOf(`\Qg\E`),
		"before a column":   chainOf(familyRegexOf("g"), qualifierRegexOf("q")),
		"behind a column":   chainOf(qualifierRegexOf("q"), familyRegexOf("g")),
		"in chains":         chainOf(chainOf(passAll(), chainOf(familyRegexOf("g"), passAll())), columnLimitOf(1)),
		"behind another":    chainOf(familyRegexOf("g"), familyRegexOf("f")),
		"of rows not there": chainOf(rowKeyRegexOf("z"), familyRegexOf("g")),
	} {
		if _, err := e.read(&btpb.ReadRowsRequest{TableName: testTable, Filter: f}); status.Code(err) != codes.NotFound || status.Convert(err).Message() != text {
			t.Errorf("%s: %v, want NotFound, %s", name, err, text)
		}
	}
	for _, f := range []*btpb.RowFilter{ // several names, or a filter of some cells: belief
		familyRegexOf("g|h"), familyRegexOf("g.*"), interleaveOf(familyRegexOf("g"), passAll()), conditionOf(familyRegexOf("g"), passAll(), passAll()), chainOf(interleaveOf(sinkFilter(), passAll()), familyRegexOf("g")),
	} {
		if _, err := e.read(&btpb.ReadRowsRequest{TableName: testTable, Filter: f}); err != nil && status.Code(err) != codes.NotFound {
			t.Errorf("%v: %v", f, err)
		}
	}
}

func TestTrap172_EmptyFamilyRegex(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	for field, empty := range map[string]*btpb.RowFilter{"family_name_regex_filter": familyRegexOf(""), "row_key_regex_filter": rowKeyRegexOf("")} {
		text := "Error in field '" + field + "' : argument must not be empty"
		for _, f := range []*btpb.RowFilter{
			empty, chainOf(passAll(), empty), interleaveOf(empty, passAll()), conditionOf(passAll(), passAll(), empty), chainOf(interleaveOf(passAll(), conditionOf(empty, passAll(), passAll())), passAll()),
		} {
			_, read := e.read(&btpb.ReadRowsRequest{TableName: testTable, Filter: f})
			_, checked := e.data.CheckAndMutateRow(e.ctx(), &btpb.CheckAndMutateRowRequest{TableName: testTable, RowKey: []byte("r"), PredicateFilter: f, TrueMutations: []*btpb.Mutation{set("f", "q", 1000, "v")}})
			for _, err := range []error{read, checked} {
				if status.Code(err) != codes.InvalidArgument || status.Convert(err).Message() != text {
					t.Errorf("%v: %v, want %s", f, err, text)
				}
			}
		}
	}
}
