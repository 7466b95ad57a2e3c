package emu

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/emu/internal/limits"
)

func TestTrap01_MutateRowIsAtomic(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	e.mustMutate("r", set("f", "old", 1000, "v"))
	wantCode(t, e.mutate("r", set("f", "a", 1000, "1"), deleteRow(), set("nope", "b", 1000, "2")), codes.NotFound)
	wantCode(t, e.mutate("r", set("f", "a", 1000, "1"), set("f", "b", 1001, "2")), codes.InvalidArgument)
	e.wantCells(nil, "r f:old@1000=v")
}

func TestTrap02_UnknownFamilyIsNotFound(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	wantCode(t, e.mutate("r", set("nope", "a", 1000, "1")), codes.NotFound)
	_, err := e.data.ReadModifyWriteRow(e.ctx(), &btpb.ReadModifyWriteRowRequest{TableName: testTable, RowKey: []byte("r"), Rules: []*btpb.ReadModifyWriteRule{
		{FamilyName: "nope", Rule: &btpb.ReadModifyWriteRule_IncrementAmount{IncrementAmount: 1}},
	}})
	wantCode(t, err, codes.NotFound)
	_, err = e.data.CheckAndMutateRow(e.ctx(), &btpb.CheckAndMutateRowRequest{
		TableName: testTable, RowKey: []byte("r"),
		FalseMutations: []*btpb.Mutation{set("nope", "a", 0, "")},
	})
	wantCode(t, err, codes.NotFound)
}

func TestTrap03_MutateRowsAnswersEachEntry(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	got, err := e.mutateRows(
		entry("a", set("f", "q", 1000, "1")),
		entry("b", set("f", "q", 1000, "1"), set("nope", "q", 1000, "1")),
		entry("c", set("f", "q", 1000, "1")),
	)
	if err != nil {
		t.Fatal(err)
	}
	if want := []codes.Code{codes.OK, codes.NotFound, codes.OK}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	e.wantCells(nil, "a f:q@1000=1", "c f:q@1000=1")
}

func TestMutateRows_OrderWithinARow(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	var entries []*btpb.MutateRowsRequest_Entry
	for i := range 25_000 { // more than one response message
		entries = append(entries, entry(fmt.Sprint("r", i%7), set("f", "q", 0, fmt.Sprint(i))))
	}
	got, err := e.mutateRows(entries...)
	if err != nil {
		t.Fatal(err)
	}
	if i := slices.IndexFunc(got, func(c codes.Code) bool { return c != codes.OK }); i >= 0 {
		t.Errorf("entry %d: %v", i, got[i])
	}
	var want []string
	for r := range 7 {
		last := 24_999 - (24_999-r)%7
		want = append(want, fmt.Sprintf("r%d f:q@0=%d", r, last))
	}
	e.wantCells(nil, want...)
}

func TestTrap04_MutateRowsEntryWithoutMutations(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	got, err := e.mutateRows(entry("a"), entry("b", set("f", "q", 1000, "1")))
	if err != nil {
		t.Fatal(err)
	}
	if want := []codes.Code{codes.InvalidArgument, codes.OK}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTrap05_EmptyRowKey(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	wantCode(t, e.mutate("", set("f", "q", 1000, "1")), codes.InvalidArgument)
	got, err := e.mutateRows(entry("", set("f", "q", 1000, "1")))
	if err != nil || got[0] != codes.InvalidArgument {
		t.Errorf("MutateRows: %v, %v", got, err)
	}
	_, err = e.data.CheckAndMutateRow(e.ctx(), &btpb.CheckAndMutateRowRequest{
		TableName:      testTable,
		FalseMutations: []*btpb.Mutation{set("f", "q", 0, "")},
	})
	wantCode(t, err, codes.InvalidArgument)
	_, err = e.data.ReadModifyWriteRow(e.ctx(), increment("", "f", "q", 1))
	wantCode(t, err, codes.InvalidArgument)
	e.wantCells(nil)
}

func TestTrap06_RowKeyLimit(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	e.mustMutate(strings.Repeat("k", 4096), set("f", "q", 1000, "1"))
	wantCode(t, e.mutate(strings.Repeat("k", 4097), set("f", "q", 1000, "1")), codes.InvalidArgument)
}

func TestTrap07_QualifierAndValueLimits(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	e.mustMutate("r", set("f", "", 1000, "empty"))
	e.mustMutate("r", set("f", strings.Repeat("q", 16384), 1000, "long"))
	wantCode(t, e.mutate("r", set("f", strings.Repeat("q", 16385), 1000, "1")), codes.InvalidArgument)
	wantCode(t, e.mutate("r", set("f", "q", 1000, strings.Repeat("v", 100<<20+1))), codes.InvalidArgument)
	if got := e.cells(nil); len(got) != 2 || got[0] != "r f:@1000=empty" {
		t.Errorf("got %.100v", got)
	}
}

func TestTrap08_MutationCountLimit(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	muts := make([]*btpb.Mutation, 100_001)
	for i := range muts {
		muts[i] = set("f", "q", 1000, "1")
	}
	if err := e.mutate("ok", muts[:100_000]...); err != nil {
		t.Errorf("100,000 mutations: %v", err)
	}
	wantCode(t, e.mutate("bad", muts...), codes.InvalidArgument)
	// MutateRows limits the sum.
	_, err := e.mutateRows(entry("bad", muts[:60_000]...), entry("bad2", muts[:40_001]...))
	wantCode(t, err, codes.InvalidArgument)
	rules := make([]*btpb.ReadModifyWriteRule, 100_001)
	for i := range rules {
		rules[i] = &btpb.ReadModifyWriteRule{FamilyName: "f", Rule: &btpb.ReadModifyWriteRule_IncrementAmount{IncrementAmount: 1}}
	}
	_, err = e.data.ReadModifyWriteRow(e.ctx(), &btpb.ReadModifyWriteRowRequest{TableName: testTable, RowKey: []byte("bad"), Rules: rules})
	wantCode(t, err, codes.InvalidArgument)
	_, err = e.data.CheckAndMutateRow(e.ctx(), &btpb.CheckAndMutateRowRequest{TableName: testTable, RowKey: []byte("bad"), FalseMutations: muts})
	wantCode(t, err, codes.InvalidArgument)
	e.wantCells(nil, "ok f:q@1000=1")
}

func TestTrap09_NoMutations(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	wantCode(t, e.mutate("r"), codes.InvalidArgument)
	// Belief: a mutation without a kind is an invalid argument. A service that treats it as an
	// unknown kind returns Unimplemented; none accepts it.
	for _, m := range []*btpb.Mutation{{}, nil} {
		wantBelief(t, "a mutation of no kind", func() string { return status.Code(e.mutate("r", m)).String() },
			codes.InvalidArgument.String(), codes.Unimplemented.String())
	}
	e.wantCells(nil)
}

func TestTrap10_FamilyOrder(t *testing.T) {
	t.Parallel()
	e := newTable(t, "b", "a")
	e.mustMutate("r", set("a", "q", 1000, "1"), set("b", "q", 1000, "2"))
	e.wantCells(nil, "r b:q@1000=2", "r a:q@1000=1")

	// Belief: the order of the families of one CreateTable, which are a map on the wire. Any
	// order is accepted, but it must be the same in every row and every read.
	families := map[string]*btapb.ColumnFamily{}
	for _, f := range []string{"d", "c", "e", "b", "a", "h", "g", "f"} {
		families[f] = &btapb.ColumnFamily{}
	}
	_, err := e.admin.CreateTable(e.ctx(), &btapb.CreateTableRequest{
		Parent: testInstance, TableId: "t2", Table: &btapb.Table{ColumnFamilies: families},
	})
	if err != nil {
		t.Fatal(err)
	}
	name := testInstance + "/tables/t2"
	for i := range 8 {
		var muts []*btpb.Mutation
		for f := range families {
			muts = append(muts, set(f, "", 0, ""))
		}
		req := &btpb.MutateRowRequest{TableName: name, RowKey: fmt.Append(nil, i), Mutations: muts}
		if _, err := e.data.MutateRow(e.ctx(), req); err != nil {
			t.Fatal(err)
		}
	}
	var order string
	for range 3 {
		for _, r := range e.mustRead(&btpb.ReadRowsRequest{TableName: name}).rows {
			var got string
			for _, c := range r.cells {
				got += c.family
			}
			if order == "" {
				order = got
			}
			if got != order {
				t.Errorf("families of row %s come as %q, before as %q", r.key, got, order)
			}
		}
	}
	members := strings.Split(order, "")
	slices.Sort(members)
	if got := strings.Join(members, ""); got != "abcdefgh" {
		t.Errorf("families come as %q", order)
	}
}

func TestTrap11_ServerTime(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	e.clock.Advance(1234567)
	e.mustMutate("r", set("f", "q", -1, "1"))
	if got := e.mustRead(&btpb.ReadRowsRequest{}).rows[0].cells[0].micros; got%1000 != 0 || got < start.UnixMicro() {
		t.Errorf("got %d", got)
	}
	_, err := e.admin.CreateTable(e.ctx(), &btapb.CreateTableRequest{Parent: testInstance, TableId: "micros", Table: &btapb.Table{
		Granularity: btapb.Table_MICROS, ColumnFamilies: map[string]*btapb.ColumnFamily{"f": {}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	name := testInstance + "/tables/micros"
	if _, err := e.data.MutateRow(e.ctx(), &btpb.MutateRowRequest{TableName: name, RowKey: []byte("r"), Mutations: []*btpb.Mutation{set("f", "q", -1, "1")}}); err != nil {
		t.Fatal(err)
	}
	got := e.mustRead(&btpb.ReadRowsRequest{TableName: name}).rows[0].cells[0].micros
	if now := e.clock.Now().UnixMicro(); got != now && got != now+1 {
		t.Errorf("got %d at %d", got, now)
	}
	// Every microsecond is valid.
	if _, err := e.data.MutateRow(e.ctx(), &btpb.MutateRowRequest{TableName: name, RowKey: []byte("s"), Mutations: []*btpb.Mutation{set("f", "q", 1, "1")}}); err != nil {
		t.Error(err)
	}
}

func TestTrap12_Granularity(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	err := e.mutate("r", set("f", "q", 1, "1"))
	wantCode(t, err, codes.InvalidArgument)
	if want := "Expected a multiple of 1000 (millisecond granularity), but got 1"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want …%s…", err, want)
	}
	wantCode(t, e.mutate("r", set("f", "q", -2, "1")), codes.InvalidArgument)
	wantCode(t, e.mutate("r", set("f", "q", math.MinInt64, "1")), codes.InvalidArgument)
}

func TestTrap13_TimestampBounds(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	const most = math.MaxInt64 - math.MaxInt64%1000
	e.mustMutate("r", set("f", "q", 0, "zero"), set("f", "q", most, "most"))
	e.wantCells(nil, fmt.Sprintf("r f:q@%d=most", int64(most)), "r f:q@0=zero")
}

func TestTrap14_ClientGeneratedTimestampIsTruncated(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	m := set("f", "q", 1234567, "1")
	m.TimestampOrigin = btpb.Mutation_CLIENT_AUTO_GENERATED
	e.mustMutate("r", m)
	e.wantCells(nil, "r f:q@1234000=1")
	m.TimestampOrigin = btpb.Mutation_USER_SPECIFIED
	wantCode(t, e.mutate("r", m), codes.InvalidArgument)
}

func TestTrap15_SameTimestampOverwrites(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	e.mustMutate("r", set("f", "q", 1000, "1"), set("f", "q", 1000, "2"))
	e.mustMutate("r", set("f", "q", 1000, "3"))
	e.mustMutate("r", set("f", "q", 1000, "3"))
	e.wantCells(nil, "r f:q@1000=3")
}

func TestTrap16_MutationsApplyInOrder(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f", "g")
	e.mustMutate("r", set("f", "old", 1000, "1"))
	e.mustMutate("r", deleteRow(), set("f", "new", 1000, "2"))
	e.wantCells(nil, "r f:new@1000=2")
	e.mustMutate("r", set("f", "q", 1000, "3"), deleteRow())
	e.wantCells(nil)
	e.mustMutate("r", set("f", "q", 1000, "1"), deleteFamily("f"), set("f", "q", 2000, "2"), set("g", "q", 1000, "3"),
		deleteColumn("g", "q", 0, 0), set("g", "q", 3000, "4"))
	e.wantCells(nil, "r f:q@2000=2", "r g:q@3000=4")
}

func TestTrap17_DeletesOfAbsentData(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	e.mustMutate("r", deleteRow())
	e.mustMutate("r", deleteFamily("f"))
	e.mustMutate("r", deleteColumn("f", "q", 0, 0))
	wantCode(t, e.mutate("r", deleteFamily("nope")), codes.NotFound)
	wantCode(t, e.mutate("r", deleteColumn("nope", "q", 0, 0)), codes.NotFound)
}

func TestTrap18_DeleteFromColumnRange(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	wantCode(t, e.mutate("absent", deleteColumn("f", "q", 3000, 2000)), codes.InvalidArgument)
	wantCode(t, e.mutate("absent", deleteColumn("f", "q", 2000, 2000)), codes.InvalidArgument)
	wantCode(t, e.mutate("absent", deleteColumn("f", "q", 0, -1)), codes.InvalidArgument)
	e.mustMutate("r", set("f", "q", 1000, "1"), set("f", "q", 2000, "2"), set("f", "q", 3000, "3"), set("f", "q", 4000, "4"))
	e.mustMutate("r", deleteColumn("f", "q", 2000, 3000))
	e.wantCells(nil, "r f:q@4000=4", "r f:q@3000=3", "r f:q@1000=1")
	e.mustMutate("r", deleteColumn("f", "q", 3000, 0))
	e.wantCells(nil, "r f:q@1000=1")
	// Beam's tests of the service delete with bounds between milliseconds.
	for _, c := range []struct {
		start, end int64
		left       []string
	}{
		{1, 1000, []string{"s f:q@2000=2", "s f:q@1000=1"}},
		{1001, 2000, []string{"s f:q@2000=2", "s f:q@1000=1"}},
		{500, 1500, []string{"s f:q@2000=2"}},
		{1999, 2001, []string{"s f:q@1000=1"}},
		{1, 0, nil},
	} {
		e.mustMutate("s", deleteRow(), set("f", "q", 1000, "1"), set("f", "q", 2000, "2"))
		e.mustMutate("s", deleteColumn("f", "q", c.start, c.end))
		e.wantCells(rowKeyRegexOf("s"), c.left...)
	}
}

func TestTrap19_EmptyRowIsGone(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	e.mustMutate("a", set("f", "q", 1000, "1"))
	e.mustMutate("b", set("f", "q", 1000, "1"))
	e.mustMutate("a", deleteColumn("f", "q", 0, 0))
	res := e.mustRead(&btpb.ReadRowsRequest{RowsLimit: 1})
	if len(res.rows) != 1 || res.rows[0].key != "b" {
		t.Errorf("got %s", res.text())
	}
	e.mustMutate("b", deleteRow())
	keys, _ := e.samples(nil)
	for _, s := range keys {
		if s != "" {
			t.Errorf("sample %q of an empty table", s)
		}
	}
}

func TestTrap20_RecreatedFamilyIsEmpty(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f", "g")
	e.mustMutate("r", set("f", "q", 1000, "1"), set("g", "q", 1000, "2"))
	drop := &btapb.ModifyColumnFamiliesRequest_Modification{Id: "f", Mod: &btapb.ModifyColumnFamiliesRequest_Modification_Drop{Drop: true}}
	create := &btapb.ModifyColumnFamiliesRequest_Modification{Id: "f", Mod: &btapb.ModifyColumnFamiliesRequest_Modification_Create{}}
	e.modifyFamilies("t", drop)
	e.wantCells(nil, "r g:q@1000=2")
	e.modifyFamilies("t", create)
	e.wantCells(nil, "r g:q@1000=2")
	e.modifyFamilies("t", drop, create)
	e.mustMutate("r", set("f", "q", 2000, "3"))
	e.wantCells(nil, "r g:q@1000=2", "r f:q@2000=3")
}

func increment(row, family, qualifier string, by int64) *btpb.ReadModifyWriteRowRequest {
	return &btpb.ReadModifyWriteRowRequest{TableName: testTable, RowKey: []byte(row), Rules: []*btpb.ReadModifyWriteRule{{
		FamilyName: family, ColumnQualifier: []byte(qualifier),
		Rule: &btpb.ReadModifyWriteRule_IncrementAmount{IncrementAmount: by},
	}}}
}

func appendRule(family, qualifier, value string) *btpb.ReadModifyWriteRule {
	return &btpb.ReadModifyWriteRule{
		FamilyName: family, ColumnQualifier: []byte(qualifier),
		Rule: &btpb.ReadModifyWriteRule_AppendValue{AppendValue: []byte(value)},
	}
}

func TestTrap33_CheckAndMutateWithoutMutations(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	_, err := e.data.CheckAndMutateRow(e.ctx(), &btpb.CheckAndMutateRowRequest{TableName: testTable, RowKey: []byte("r")})
	wantCode(t, err, codes.InvalidArgument)
}

func TestTrap34_CheckAndMutateBranches(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	cas := func(row string, p *btpb.RowFilter, onTrue, onFalse []*btpb.Mutation) bool {
		t.Helper()
		resp, err := e.data.CheckAndMutateRow(e.ctx(), &btpb.CheckAndMutateRowRequest{
			TableName: testTable, RowKey: []byte(row), PredicateFilter: p, TrueMutations: onTrue, FalseMutations: onFalse,
		})
		if err != nil {
			t.Fatal(err)
		}
		return resp.GetPredicateMatched()
	}
	one := []*btpb.Mutation{set("f", "q", 1000, "1")}
	if cas("r", nil, one, nil) {
		t.Error("no predicate matched a missing row")
	}
	if cas("r", passAll(), one, nil) {
		t.Error("pass_all matched a missing row")
	}
	e.wantCells(nil)
	if cas("r", nil, nil, []*btpb.Mutation{set("f", "empty", 1000, "")}) {
		t.Error("no predicate matched a missing row")
	}
	if !cas("r", valueRegexOf(""), nil, one) {
		t.Error("a cell with an empty value did not count")
	}
	e.wantCells(nil, "r f:empty@1000=")
	if !cas("r", nil, one, nil) {
		t.Error("no predicate did not match an existing row")
	}
	if cas("r", rowKeyRegexOf("other"), one, []*btpb.Mutation{set("f", "q", 2000, "2")}) {
		t.Error("a predicate on another row matched")
	}
	if cas("r", conditionOf(qualifierRegexOf("none"), passAll(), nil), one, []*btpb.Mutation{deleteRow()}) {
		t.Error("an empty branch matched")
	}
	e.wantCells(nil)

	// Belief: the list that is not chosen is validated too. Either the request fails without
	// changes, or the chosen list is applied.
	wantBelief(t, "an error in the list that is not chosen", func() string {
		_, err := e.data.CheckAndMutateRow(e.ctx(), &btpb.CheckAndMutateRowRequest{
			TableName: testTable, RowKey: []byte("unchosen"), PredicateFilter: passAll(),
			TrueMutations: []*btpb.Mutation{set("nope", "q", 1000, "1")}, FalseMutations: []*btpb.Mutation{set("f", "q", 1000, "1")},
		})
		cells := strings.Join(e.cells(nil), ", ")
		if err := e.mutate("unchosen", deleteRow()); err != nil {
			t.Fatal(err)
		}
		return status.Code(err).String() + " [" + cells + "]"
	}, "NotFound []", "InvalidArgument []", "OK [unchosen f:q@1000=1]")
}

func TestTrap35_CheckAndMutateIsAtomic(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	const clients, rounds = 8, 50
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for range rounds {
				for {
					// Add a cell if the count still equals the read one.
					rows := e.mustRead(&btpb.ReadRowsRequest{}).rows
					n := 0
					if len(rows) > 0 {
						n = len(rows[0].cells)
					}
					next := []*btpb.Mutation{set("f", fmt.Sprintf("%06d", n), 0, "")}
					resp, err := e.data.CheckAndMutateRow(e.ctx(), &btpb.CheckAndMutateRowRequest{
						TableName: testTable, RowKey: []byte("r"),
						PredicateFilter: qualifierRegexOf(fmt.Sprintf("%06d", n)),
						FalseMutations:  next,
					})
					if err != nil {
						t.Error(err)
						return
					}
					if !resp.GetPredicateMatched() {
						break
					}
				}
			}
		})
	}
	wg.Wait()
	if got := len(e.mustRead(&btpb.ReadRowsRequest{}).rows[0].cells); got != clients*rounds {
		t.Errorf("%d of %d increments were kept", got, clients*rounds)
	}
}

func TestTrap36_ReadModifyWriteIsAtomic(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	e.mustMutate("r", set("f", "short", 1000, "abc"))
	// The whole request fails, as documented. The code is a belief: it blames the request or
	// the state of the row, and is never Unknown.
	wantBelief(t, "incrementing three bytes", func() string {
		_, err := e.data.ReadModifyWriteRow(e.ctx(), &btpb.ReadModifyWriteRowRequest{TableName: testTable, RowKey: []byte("r"), Rules: []*btpb.ReadModifyWriteRule{
			appendRule("f", "a", "x"),
			increment("r", "f", "short", 1).Rules[0],
		}})
		return status.Code(err).String()
	}, codes.InvalidArgument.String(), codes.FailedPrecondition.String())
	e.wantCells(nil, "r f:short@1000=abc")
}

func be(n int64) string { return string(binary.BigEndian.AppendUint64(nil, uint64(n))) }

func TestTrap37_Increment(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	inc := func(q string, by int64) string {
		t.Helper()
		resp, err := e.data.ReadModifyWriteRow(e.ctx(), increment("r", "f", q, by))
		if err != nil {
			t.Fatal(err)
		}
		return string(resp.GetRow().GetFamilies()[0].GetColumns()[0].GetCells()[0].GetValue())
	}
	for _, step := range []struct{ by, want int64 }{{5, 5}, {-7, -2}, {0, -2}} {
		if got := inc("q", step.by); got != be(step.want) {
			t.Errorf("increment by %d: got %x, want %d", step.by, got, step.want)
		}
	}
	inc("wrap", math.MaxInt64)
	if got := inc("wrap", 1); got != be(math.MinInt64) {
		t.Errorf("overflow gives %x", got)
	}
}

func TestTrap38_RulesCompose(t *testing.T) {
	t.Parallel()
	e := newTable(t, "b", "a")
	e.mustMutate("r", set("b", "other", 1000, "x"))
	resp, err := e.data.ReadModifyWriteRow(e.ctx(), &btpb.ReadModifyWriteRowRequest{TableName: testTable, RowKey: []byte("r"), Rules: []*btpb.ReadModifyWriteRule{
		appendRule("a", "z", "1"), appendRule("b", "q", "2"), appendRule("a", "z", "3"), appendRule("a", "y", ""),
	}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range resp.GetRow().GetFamilies() {
		for _, c := range f.GetColumns() {
			for _, cell := range c.GetCells() {
				got = append(got, f.GetName()+":"+string(c.GetQualifier())+"="+string(cell.GetValue()))
			}
		}
	}
	if want := []string{"b:q=2", "a:y=", "a:z=13"}; !slices.Equal(got, want) || string(resp.GetRow().GetKey()) != "r" {
		t.Errorf("got %q %v, want %v", resp.GetRow().GetKey(), got, want)
	}
	ts := resp.GetRow().GetFamilies()[0].GetColumns()[0].GetCells()[0].GetTimestampMicros()
	e.wantCells(nil, "r b:other@1000=x", fmt.Sprintf("r b:q@%d=2", ts), fmt.Sprintf("r a:y@%d=", ts), fmt.Sprintf("r a:z@%d=13", ts))
}

func TestTrap39_ReadModifyWriteTimestamp(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	future := start.UnixMicro() + 3_600_000_000
	e.mustMutate("r", set("f", "future", future, "a"), set("f", "past", 1000, "a"))
	resp, err := e.data.ReadModifyWriteRow(e.ctx(), &btpb.ReadModifyWriteRowRequest{TableName: testTable, RowKey: []byte("r"), Rules: []*btpb.ReadModifyWriteRule{
		appendRule("f", "future", "b"), appendRule("f", "past", "b"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	now := resp.GetRow().GetFamilies()[0].GetColumns()[1].GetCells()[0].GetTimestampMicros()
	if now < start.UnixMicro() || now >= future {
		t.Errorf("the new cell is at %d", now)
	}
	e.wantCells(nil, fmt.Sprintf("r f:future@%d=ab", future), fmt.Sprintf("r f:past@%d=ab", now), "r f:past@1000=a")
}

func TestTrap40_NoRules(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	_, err := e.data.ReadModifyWriteRow(e.ctx(), &btpb.ReadModifyWriteRowRequest{TableName: testTable, RowKey: []byte("r")})
	wantCode(t, err, codes.InvalidArgument)
	_, err = e.data.ReadModifyWriteRow(e.ctx(), &btpb.ReadModifyWriteRowRequest{
		TableName: testTable, RowKey: []byte("r"),
		Rules: []*btpb.ReadModifyWriteRule{{FamilyName: "f"}},
	})
	wantCode(t, err, codes.InvalidArgument)
}

// TestReadModifyWriteRow_ValueLimit appends beyond the size limit of a value.
func TestReadModifyWriteRow_ValueLimit(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	half := strings.Repeat("x", limits.MaxValueBytes/2)
	_, err := e.data.ReadModifyWriteRow(e.ctx(), &btpb.ReadModifyWriteRowRequest{TableName: testTable, RowKey: []byte("r"), Rules: []*btpb.ReadModifyWriteRule{
		appendRule("f", "p", "x"), appendRule("f", "q", half), appendRule("f", "q", half), appendRule("f", "q", "x"),
	}})
	// It fails, as documented; the code is a belief.
	wantCode(t, err, codes.FailedPrecondition, codes.InvalidArgument)
	e.wantCells(nil)
}

// TestReadModifyWriteRow_ManyRules applies the maximum number of rules to different columns:
// the cost of a rule does not grow with their number.
func TestReadModifyWriteRow_ManyRules(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	const columns = limits.MaxMutations / 10
	req := &btpb.ReadModifyWriteRowRequest{TableName: testTable, RowKey: []byte("r")}
	for i := range limits.MaxMutations {
		req.Rules = append(req.Rules, increment("r", "f", fmt.Sprintf("%06d", i%columns), int64(i%columns)).Rules[0])
	}
	resp, err := e.data.ReadModifyWriteRow(e.ctx(), req)
	if err != nil {
		t.Fatal(err)
	}
	got := resp.GetRow().GetFamilies()[0].GetColumns()
	if len(got) != columns {
		t.Fatalf("%d columns, want %d", len(got), columns)
	}
	for i, c := range got {
		if string(c.GetQualifier()) != fmt.Sprintf("%06d", i) || string(c.GetCells()[0].GetValue()) != be(int64(10*i)) {
			t.Fatalf("column %d: %v", i, c)
		}
	}
}
