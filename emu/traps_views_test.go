package emu

import (
	"fmt"
	"strings"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

// newView is like newTable, with families f and g, rows r0, r1, r10 and r2 with columns a, b and c in
// each family, and a view of f:a and f:b in the rows that begin with r1.
func newView(t *testing.T) (e *env, view string) {
	t.Helper()
	e = newTable(t, "f", "g")
	for _, row := range []string{"r0", "r1", "r10", "r2"} {
		for _, family := range []string{"f", "g"} {
			e.mustMutate(row, set(family, "a", 0, row), set(family, "b", 0, row), set(family, "c", 0, row))
		}
	}
	return e, e.mustCreateView("v", viewOf(subset([]string{"r1"}, columns("f", "a,b"))))
}

func rowsOf(keys ...string) *btpb.RowSet {
	rs := &btpb.RowSet{}
	for _, k := range keys {
		rs.RowKeys = append(rs.RowKeys, []byte(k))
	}
	return rs
}

func (e *env) mutateThrough(view, row string, muts ...*btpb.Mutation) error {
	_, err := e.data.MutateRow(e.ctx(), &btpb.MutateRowRequest{AuthorizedViewName: view, RowKey: []byte(row), Mutations: muts})
	return err
}

func TestTrap125_RowsOutside(t *testing.T) {
	t.Parallel()
	e, view := newView(t)
	wantTexts(t, "a row outside", e.readThrough(view, &btpb.ReadRowsRequest{Rows: rowsOf("r2")}))
	wantTexts(t, "a row inside", e.readThrough(view, &btpb.ReadRowsRequest{Rows: rowsOf("r2", "r1", "r0")}), "r1 f:a@0=r1", "r1 f:b@0=r1")
	wantTexts(t, "a range outside", e.readThrough(view, &btpb.ReadRowsRequest{Rows: &btpb.RowSet{RowRanges: []*btpb.RowRange{{
		StartKey: &btpb.RowRange_StartKeyClosed{StartKeyClosed: []byte("r2")},
	}}}}))
	wantTexts(t, "all rows", e.readThrough(view, &btpb.ReadRowsRequest{}), "r1 f:a@0=r1", "r1 f:b@0=r1", "r10 f:a@0=r10", "r10 f:b@0=r10")
	wantTexts(t, "one row", e.readThrough(view, &btpb.ReadRowsRequest{RowsLimit: 1}), "r1 f:a@0=r1", "r1 f:b@0=r1")
}

func TestTrap126_ColumnsOutside(t *testing.T) {
	t.Parallel()
	e, _ := newView(t)
	view := e.mustCreateView("w", viewOf(subset([]string{"r1"}, columns("f", "b"), columns("g", "", "b"))))
	e.mustMutate("r11", set("f", "a", 0, "hidden"))
	for _, tc := range []struct {
		filter *btpb.RowFilter
		want   []string
	}{
		{nil, []string{"r1 f:b@0=r1", "r1 g:b@0=r1", "r10 f:b@0=r10", "r10 g:b@0=r10"}},
		{rowLimitOf(1), []string{"r1 f:b@0=r1", "r10 f:b@0=r10"}},
		{rowOffsetOf(1), []string{"r1 g:b@0=r1", "r10 g:b@0=r10"}},
		{rowKeyRegexOf("r10|r11"), []string{"r10 f:b@0=r10", "r10 g:b@0=r10"}},
		{familyRegexOf("g"), []string{"r1 g:b@0=r1", "r10 g:b@0=r10"}},
		{qualifierRegexOf("a"), nil},
		{conditionOf(qualifierRegexOf("a"), passAll(), rowLimitOf(1)), []string{"r1 f:b@0=r1", "r10 f:b@0=r10"}},
		{chainOf(sinkFilter(), rowLimitOf(1)), []string{"r1 f:b@0=r1", "r1 g:b@0=r1", "r10 f:b@0=r10", "r10 g:b@0=r10"}},
	} {
		wantTexts(t, fmt.Sprint(tc.filter), e.readThrough(view, &btpb.ReadRowsRequest{Filter: tc.filter}), tc.want...)
	}
	res, err := readRows(e.ctx(), e.data, &btpb.ReadRowsRequest{AuthorizedViewName: view, RequestStatsView: btpb.ReadRowsRequest_REQUEST_STATS_FULL})
	if err != nil {
		t.Fatal(err)
	}
	if s := res.stats.GetFullReadStatsView().GetReadIterationStats(); s.GetRowsSeenCount() != 2 || s.GetCellsSeenCount() != 4 {
		t.Errorf("%v: more is counted than the view holds", s)
	}
}

func TestTrap127_WritesOutside(t *testing.T) {
	t.Parallel()
	e, view := newView(t)
	before := e.cells(nil)
	wantOutside(t, "a row", e.mutateThrough(view, "r2", set("f", "a", 0, "x")))
	wantOutside(t, "a column", e.mutateThrough(view, "r1", set("f", "a", 0, "x"), set("f", "c", 0, "x")))
	wantOutside(t, "a family", e.mutateThrough(view, "r1", set("g", "a", 0, "x")))
	wantOutside(t, "a family that exists nowhere", e.mutateThrough(view, "r1", set("nowhere", "a", 0, "x")))
	wantTexts(t, "after writes that are denied", e.cells(nil), before...)
	wantCode(t, e.mutateThrough(view, "", set("g", "a", 0, "x")), codes.InvalidArgument)
	wantCode(t, e.mutateThrough(view, "r1"), codes.InvalidArgument)
	wantCode(t, e.mutateThrough(view, "r1", set("f", "a", 1, "x")), codes.InvalidArgument)
	wantCode(t, e.mutateThrough(view, "r1", &btpb.Mutation{}), codes.InvalidArgument)
	wantCode(t, e.mutateThrough(view, "r1", set("f", "a", 0, "x"), deleteColumn("f", "b", 0, 0)), codes.OK)
	wantTexts(t, "a write inside", e.readThrough(view, &btpb.ReadRowsRequest{Rows: rowsOf("r1")}), "r1 f:a@0=x")
	// A dropped family is empty in the view.
	e.modifyFamilies("t", dropFamily("f"))
	wantTexts(t, "of a family that was dropped", e.readThrough(view, &btpb.ReadRowsRequest{}))
	wantCode(t, e.mutateThrough(view, "r1", set("f", "a", 0, "x")), codes.NotFound)
	got, err := e.getView(view)
	if err != nil {
		t.Fatal(err)
	}
	got.GetSubsetView().RowPrefixes = nil
	if _, err := e.updateView(got); err != nil {
		t.Errorf("a view of a family that was dropped: %v", err)
	}
}

func TestTrap128_MutateRows(t *testing.T) {
	t.Parallel()
	e, view := newView(t)
	stream, err := e.data.MutateRows(e.ctx(), &btpb.MutateRowsRequest{AuthorizedViewName: view, Entries: []*btpb.MutateRowsRequest_Entry{
		entry("r1", set("f", "a", 0, "x")), entry("r2", set("f", "a", 0, "x")), entry("r1", set("g", "a", 0, "x")), entry("r10", set("f", "b", 0, "x"), deleteRow()),
	}})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, en := range resp.GetEntries() {
		got = append(got, codes.Code(en.GetStatus().GetCode()).String())
		if code := en.GetStatus().GetCode(); code != 0 && !strings.Contains(en.GetStatus().GetMessage(), "outside the Authorized View") {
			t.Errorf("entry %d: %v", en.GetIndex(), en.GetStatus())
		}
	}
	wantTexts(t, "statuses", got, "OK", "PermissionDenied", "PermissionDenied", "PermissionDenied")
	wantTexts(t, "rows", e.readThrough(view, &btpb.ReadRowsRequest{}), "r1 f:a@0=x", "r1 f:b@0=r1", "r10 f:a@0=r10", "r10 f:b@0=r10")
}

func TestTrap129_BothBranches(t *testing.T) {
	t.Parallel()
	e, view := newView(t)
	before := e.cells(nil)
	inside, outside := []*btpb.Mutation{set("f", "a", 0, "x")}, []*btpb.Mutation{set("g", "a", 0, "x")}
	for _, matches := range []string{"a", "none"} {
		for _, branches := range [][2][]*btpb.Mutation{{outside, inside}, {inside, outside}, {outside, nil}, {nil, outside}} {
			_, err := e.data.CheckAndMutateRow(e.ctx(), &btpb.CheckAndMutateRowRequest{
				AuthorizedViewName: view, RowKey: []byte("r1"), PredicateFilter: qualifierRegexOf(matches), TrueMutations: branches[0], FalseMutations: branches[1],
			})
			wantOutside(t, fmt.Sprint(matches, branches), err)
		}
	}
	_, err := e.data.CheckAndMutateRow(e.ctx(), &btpb.CheckAndMutateRowRequest{AuthorizedViewName: view, RowKey: []byte("r2"), TrueMutations: inside})
	wantOutside(t, "a row", err)
	wantTexts(t, "after writes that are denied", e.cells(nil), before...)
}

func TestTrap130_PredicateSeesTheView(t *testing.T) {
	t.Parallel()
	e, view := newView(t)
	e.mustMutate("r11", set("g", "a", 0, "hidden"))
	for _, tc := range []struct {
		row       string
		predicate *btpb.RowFilter
		want      bool
	}{
		{"r1", nil, true},
		{"r11", nil, false},
		{"r12", nil, false},
		{"r1", qualifierRegexOf("a"), true},
		{"r1", qualifierRegexOf("c"), false},
		{"r1", familyRegexOf("g"), false},
		{"r1", rowOffsetOf(1), true},
		{"r1", rowOffsetOf(2), false},
	} {
		resp, err := e.data.CheckAndMutateRow(e.ctx(), &btpb.CheckAndMutateRowRequest{
			AuthorizedViewName: view, RowKey: []byte(tc.row), PredicateFilter: tc.predicate, TrueMutations: []*btpb.Mutation{set("f", "a", 0, "v")},
		})
		if err != nil || resp.GetPredicateMatched() != tc.want {
			t.Errorf("%s %v: %v, %v; want %v", tc.row, tc.predicate, resp, err, tc.want)
		}
	}
	// A view without columns has no cells to match.
	none := e.mustCreateView("none", viewOf(subset([]string{"r1"})))
	_, err := e.data.CheckAndMutateRow(e.ctx(), &btpb.CheckAndMutateRowRequest{AuthorizedViewName: none, RowKey: []byte("r1"), TrueMutations: []*btpb.Mutation{set("f", "a", 0, "v")}})
	wantOutside(t, "a view of no column", err)
}

func TestTrap131_ReadModifyWriteRow(t *testing.T) {
	t.Parallel()
	e, view := newView(t)
	before := e.cells(nil)
	rule := func(family, qualifier string) *btpb.ReadModifyWriteRule {
		return &btpb.ReadModifyWriteRule{FamilyName: family, ColumnQualifier: []byte(qualifier), Rule: &btpb.ReadModifyWriteRule_AppendValue{AppendValue: []byte("+")}}
	}
	call := func(row string, rules ...*btpb.ReadModifyWriteRule) (*btpb.ReadModifyWriteRowResponse, error) {
		return e.data.ReadModifyWriteRow(e.ctx(), &btpb.ReadModifyWriteRowRequest{AuthorizedViewName: view, RowKey: []byte(row), Rules: rules})
	}
	for _, outside := range []*btpb.ReadModifyWriteRule{rule("f", "c"), rule("g", "a"), rule("nowhere", "a")} {
		_, err := call("r1", rule("f", "a"), outside)
		wantOutside(t, fmt.Sprint(outside), err)
	}
	_, err := call("r2", rule("f", "a"))
	wantOutside(t, "a row", err)
	_, err = call("r1")
	wantCode(t, err, codes.InvalidArgument)
	wantTexts(t, "after writes that are denied", e.cells(nil), before...)
	resp, err := call("r1", rule("f", "a"))
	if err != nil || !strings.Contains(rowText(resp.GetRow()), `"r1+"`) {
		t.Errorf("%v, %v", resp, err)
	}
}

func TestTrap132_Deletes(t *testing.T) {
	t.Parallel()
	// Belief: views never allow the deletion of a row, and allow the deletion of a family only
	// if they contain all of it.
	e, view := newView(t)
	all := e.mustCreateView("all", viewOf(subset([]string{""}, columns("f", "", ""), columns("g", "a,b,c"))))
	wantOutside(t, "the row", e.mutateThrough(view, "r1", deleteRow()))
	wantOutside(t, "the row, through all of it", e.mutateThrough(all, "r1", deleteRow()))
	wantOutside(t, "a family in part", e.mutateThrough(view, "r1", deleteFamily("f")))
	wantOutside(t, "a family column by column", e.mutateThrough(all, "r1", deleteFamily("g")))
	wantOutside(t, "a column", e.mutateThrough(view, "r1", deleteColumn("f", "c", 0, 0)))
	wantCode(t, e.mutateThrough(all, "r1", deleteFamily("f"), deleteColumn("g", "a", 0, 0)), codes.OK)
	wantTexts(t, "what is left", e.readThrough(all, &btpb.ReadRowsRequest{Rows: rowsOf("r1")}), "r1 g:b@0=r1", "r1 g:c@0=r1")
}

func TestTrap133_SampleRowKeys(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for _, table := range []struct {
		id     string
		splits []string
	}{{"t", []string{"r0", "r11", "r12", "r2"}}, {"f", []string{"apple", "food", "fool", "good"}}} {
		req := &btapb.CreateTableRequest{Parent: testInstance, TableId: table.id}
		for _, s := range table.splits {
			req.InitialSplits = append(req.InitialSplits, &btapb.CreateTableRequest_Split{Key: []byte(s)})
		}
		if _, err := e.admin.CreateTable(e.ctx(), req); err != nil {
			t.Fatal(err)
		}
	}
	for i, tc := range []struct {
		table    string
		prefixes []string
		r        *btpb.RowRange
		want     []string
	}{
		{"t", []string{"r1"}, nil, []string{"r11", "r12", "r2"}},
		{"f", []string{"foo"}, nil, []string{"food", "fool", "fop"}},
		{"t", []string{""}, nil, []string{"r0", "r11", "r12", "r2", `""`}},
		{"t", []string{"r2", "r0"}, nil, []string{"r1", "r3"}},
		{"t", []string{"r", "r1"}, nil, []string{"r0", "r11", "r12", "r2", "s"}},
		{"t", []string{"\xff\xff"}, nil, []string{`""`}},
		{"t", []string{"r1", "r2", "\xff"}, nil, []string{"r11", "r12", "r2", "r3", `""`}},
		{"t", []string{"r1"}, &btpb.RowRange{StartKey: &btpb.RowRange_StartKeyClosed{StartKeyClosed: []byte("r11")}}, []string{"r12", "r2"}},
		{"t", []string{"r1", "x"}, &btpb.RowRange{EndKey: &btpb.RowRange_EndKeyOpen{EndKeyOpen: []byte("r12")}}, []string{"r11", "r12"}},
		{"t", []string{"x"}, &btpb.RowRange{EndKey: &btpb.RowRange_EndKeyOpen{EndKeyOpen: []byte("r12")}}, nil},
	} {
		parent, id := testInstance+"/tables/"+tc.table, fmt.Sprint("v", i)
		if _, err := e.admin.CreateAuthorizedView(e.ctx(), &btapb.CreateAuthorizedViewRequest{Parent: parent, AuthorizedViewId: id, AuthorizedView: viewOf(subset(tc.prefixes))}); err != nil {
			t.Fatal(err)
		}
		got := e.sampleKeys(&btpb.SampleRowKeysRequest{AuthorizedViewName: parent + "/authorizedViews/" + id, RowRange: tc.r})
		wantTexts(t, fmt.Sprintf("%s %q %v", tc.table, tc.prefixes, tc.r), got, tc.want...)
	}
}

func TestTrap140_ViewNarrowed(t *testing.T) {
	t.Parallel()
	e, view := newView(t)
	wantCode(t, e.mutateThrough(view, "r1", set("f", "b", 0, "x")), codes.OK)
	// Start a scan with more than one message.
	for i := range 200 {
		e.mustMutate(fmt.Sprintf("r1%03d", i), set("f", "b", 0, big(4000)))
	}
	stream, err := e.data.ReadRows(e.ctx(), &btpb.ReadRowsRequest{AuthorizedViewName: view, Filter: qualifierRegexOf("b")})
	if err != nil {
		t.Fatal(err)
	}
	first, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.updateView(&btapb.AuthorizedView{Name: view, AuthorizedView: viewOf(subset([]string{"r1"}, columns("f", "a"))).GetAuthorizedView()}); err != nil {
		t.Fatal(err)
	}
	wantOutside(t, "what was taken out", e.mutateThrough(view, "r1", set("f", "b", 0, "x")))
	wantTexts(t, "a later read", e.readThrough(view, &btpb.ReadRowsRequest{Rows: rowsOf("r1")}), "r1 f:a@0=r1")
	rows := 0
	for resp := first; err == nil; resp, err = stream.Recv() {
		for _, c := range resp.GetChunks() {
			if c.GetCommitRow() {
				rows++
			}
		}
	}
	if rows != 202 {
		t.Errorf("the scan that was under way had %d rows, want 202", rows)
	}
}

func TestTrap142_Session(t *testing.T) {
	t.Parallel()
	e, view := newView(t)
	data := btpb.NewBigtableClient(e.dial())
	open := func(name string, p btpb.OpenAuthorizedViewRequest_Permission) testSession {
		t.Helper()
		stream, err := data.OpenAuthorizedView(e.ctx())
		if err != nil {
			t.Fatal(err)
		}
		payload, err := proto.Marshal(&btpb.OpenAuthorizedViewRequest{AuthorizedViewName: name, Permission: p})
		if err != nil {
			t.Fatal(err)
		}
		ss := testSession{t, stream}
		ss.send(&btpb.SessionRequest{Payload: &btpb.SessionRequest_OpenSession{OpenSession: &btpb.OpenSessionRequest{Payload: payload}}})
		return ss
	}
	ended := func(ss testSession, want codes.Code) {
		t.Helper()
		_, err := ss.Recv()
		wantCode(t, err, want)
	}
	read := func(ss testSession, id int64, key string) (string, error) {
		t.Helper()
		out := &btpb.AuthorizedViewResponse{}
		err := ss.call(id, &btpb.AuthorizedViewRequest{Payload: &btpb.AuthorizedViewRequest_ReadRow{ReadRow: &btpb.SessionReadRowRequest{Key: []byte(key)}}}, out)
		if err == nil && out.GetReadRow() == nil {
			t.Errorf("%v: no read_row", out)
		}
		if out.GetReadRow().GetRow() == nil {
			return "", err
		}
		return rowText(out.GetReadRow().GetRow()), err
	}
	write := func(ss testSession, id int64, key string, muts ...*btpb.Mutation) error {
		t.Helper()
		out := &btpb.AuthorizedViewResponse{}
		err := ss.call(id, &btpb.AuthorizedViewRequest{Payload: &btpb.AuthorizedViewRequest_MutateRow{MutateRow: &btpb.SessionMutateRowRequest{Key: []byte(key), Mutations: muts}}}, out)
		if err == nil && out.GetMutateRow() == nil {
			t.Errorf("%v: no mutate_row", out)
		}
		return err
	}
	ss := open(view, btpb.OpenAuthorizedViewRequest_PERMISSION_READ_WRITE)
	ss.opened()
	if got, err := read(ss, 1, "r1"); err != nil || got != "r1\n  f:a @0 = \"r1\"\n  f:b @0 = \"r1\"\n" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := read(ss, 2, "r2"); err != nil || got != "" {
		t.Errorf("a row outside: %q, %v", got, err)
	}
	wantOutside(t, "a row", write(ss, 3, "r2", set("f", "a", 0, "x")))
	wantOutside(t, "a family that exists nowhere", write(ss, 4, "r1", set("nowhere", "a", 0, "x")))
	wantCode(t, write(ss, 5, "r1", set("f", "a", 0, "x")), codes.OK)
	wantCode(t, ss.call(6, &btpb.AuthorizedViewRequest{}, &btpb.AuthorizedViewResponse{}), codes.InvalidArgument)
	// A deleted view is not found, and the session stays open.
	wantCode(t, e.deleteView(view, ""), codes.OK)
	_, err := read(ss, 7, "r1")
	wantCode(t, err, codes.NotFound)
	e.mustCreateView("v", viewOf(subset([]string{""}, columns("f", "a"))))
	if got, err := read(ss, 8, "r1"); err != nil || got != "r1\n  f:a @0 = \"x\"\n" {
		t.Errorf("%q, %v", got, err)
	}

	reader := open(view, btpb.OpenAuthorizedViewRequest_PERMISSION_READ)
	reader.opened()
	wantCode(t, write(reader, 1, "r1", set("f", "a", 0, "x")), codes.PermissionDenied)
	ended(open(view, btpb.OpenAuthorizedViewRequest_PERMISSION_UNSET), codes.InvalidArgument)
	ended(open(view+"x", btpb.OpenAuthorizedViewRequest_PERMISSION_READ), codes.NotFound)
	ended(open(testTable, btpb.OpenAuthorizedViewRequest_PERMISSION_READ), codes.InvalidArgument)
}

// Sessions on a view that does not exist, or that would write it, are rejected.
func TestOpenMaterializedView(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	data := btpb.NewBigtableClient(e.dial())
	const view = testInstance + "/materializedViews/m"
	for _, tc := range []struct {
		payload *btpb.OpenMaterializedViewRequest
		want    codes.Code
	}{
		{&btpb.OpenMaterializedViewRequest{MaterializedViewName: view, Permission: btpb.OpenMaterializedViewRequest_PERMISSION_READ}, codes.NotFound},
		{&btpb.OpenMaterializedViewRequest{MaterializedViewName: view}, codes.InvalidArgument},
		{&btpb.OpenMaterializedViewRequest{MaterializedViewName: view, Permission: 2}, codes.InvalidArgument},
		{&btpb.OpenMaterializedViewRequest{MaterializedViewName: testTable, Permission: btpb.OpenMaterializedViewRequest_PERMISSION_READ}, codes.InvalidArgument},
	} {
		stream, err := data.OpenMaterializedView(e.ctx())
		if err != nil {
			t.Fatal(err)
		}
		payload, err := proto.Marshal(tc.payload)
		if err != nil {
			t.Fatal(err)
		}
		ss := testSession{t, stream}
		ss.send(&btpb.SessionRequest{Payload: &btpb.SessionRequest_OpenSession{OpenSession: &btpb.OpenSessionRequest{Payload: payload}}})
		_, err = ss.Recv()
		wantCode(t, err, tc.want)
	}
}
