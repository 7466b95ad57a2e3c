package emu

import (
	"slices"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The tests named TestFaultBNN cover differences from the service that other projects' test
// suites found. Each names its source for the service's behavior.

// wantStatus checks the code and the whole text of an error.
func wantStatus(t *testing.T, err error, code codes.Code, text string) {
	t.Helper()
	if st := status.Convert(err); st.Code() != code || st.Message() != text {
		t.Errorf("got %v: %s; want %v: %s", st.Code(), st.Message(), code, text)
	}
}

// An empty row_key_regex_filter is rejected at any depth: googleapis/google-cloud-go#6519
// quotes the service. The service's response to other empty expressions is unknown; here they
// match empty names or values.
func TestFilters_EmptyRowKeyRegex(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	e.mustMutate("r", set("f", "q", 0, ""))
	empty := &btpb.RowFilter{Filter: &btpb.RowFilter_RowKeyRegexFilter{}}
	pass := &btpb.RowFilter{Filter: &btpb.RowFilter_PassAllFilter{PassAllFilter: true}}
	const want = "Error in field 'row_key_regex_filter' : argument must not be empty"
	for name, f := range map[string]*btpb.RowFilter{
		"alone":      empty,
		"chain":      chainOf(pass, empty),
		"interleave": {Filter: &btpb.RowFilter_Interleave_{Interleave: &btpb.RowFilter_Interleave{Filters: []*btpb.RowFilter{pass, empty}}}},
		"predicate":  {Filter: &btpb.RowFilter_Condition_{Condition: &btpb.RowFilter_Condition{PredicateFilter: empty, TrueFilter: pass}}},
		"branch":     {Filter: &btpb.RowFilter_Condition_{Condition: &btpb.RowFilter_Condition{PredicateFilter: pass, FalseFilter: empty}}},
	} {
		_, err := e.read(&btpb.ReadRowsRequest{Filter: f})
		t.Log(name)
		wantStatus(t, err, codes.InvalidArgument, want)
	}
	_, err := e.data.CheckAndMutateRow(e.ctx(), &btpb.CheckAndMutateRowRequest{
		TableName: testTable, RowKey: []byte("r"), PredicateFilter: empty, TrueMutations: []*btpb.Mutation{deleteRow()},
	})
	wantStatus(t, err, codes.InvalidArgument, want)
	ss := e.openSession(e.ctx(), btpb.NewBigtableClient(e.dial()), testTable, btpb.OpenTableRequest_PERMISSION_READ, nil)
	ss.opened()
	_, err = ss.rpc(1, sessionRead("r", empty))
	wantStatus(t, err, codes.InvalidArgument, want)
	if got, err := e.read(&btpb.ReadRowsRequest{Filter: valueRegexOf("")}); err != nil || len(got.rows) != 1 {
		t.Errorf("the row with an empty value: %v, %v", got.rows, err)
	}
}

// Tests of official clients match this text.
func TestMutateRows_RowKeysMustBeNonEmpty(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	one := []*btpb.Mutation{set("f", "q", 0, "")}
	const text = "Error in field 'row_key' : Row keys must be non-empty"
	wantStatus(t, e.mutate("", one...), codes.InvalidArgument, text)
	_, err := e.data.CheckAndMutateRow(e.ctx(), &btpb.CheckAndMutateRowRequest{TableName: testTable, TrueMutations: one})
	wantStatus(t, err, codes.InvalidArgument, text)
	_, err = e.data.ReadModifyWriteRow(e.ctx(), &btpb.ReadModifyWriteRowRequest{TableName: testTable, Rules: []*btpb.ReadModifyWriteRule{appendRule("f", "q", "")}})
	wantStatus(t, err, codes.InvalidArgument, text)
	wantStatus(t, e.firstEntry(entry("", one...)), codes.InvalidArgument, text)
	_, err = e.read(&btpb.ReadRowsRequest{Rows: &btpb.RowSet{RowKeys: [][]byte{[]byte("r"), {}}}})
	wantStatus(t, err, codes.InvalidArgument, "Error in field 'row_keys' : Error in element #1 : Row keys must be non-empty")
}

// firstEntry runs MutateRows and returns the status of its first entry, or of
// the call.
func (e *env) firstEntry(entries ...*btpb.MutateRowsRequest_Entry) error {
	e.t.Helper()
	stream, err := e.data.MutateRows(e.ctx(), &btpb.MutateRowsRequest{TableName: testTable, Entries: entries})
	if err != nil {
		e.t.Fatal(err)
	}
	resp, err := stream.Recv()
	if err != nil {
		return err
	}
	return status.ErrorProto(resp.GetEntries()[0].GetStatus())
}

// Texts of the service: googleapis/google-cloud-go#4309 and #1111,
// nodejs-bigtable#291, java-bigtable-hbase#1497.
func TestLimits_MutationCounts(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	check := func(trueMuts, falseMuts []*btpb.Mutation) error {
		_, err := e.data.CheckAndMutateRow(e.ctx(), &btpb.CheckAndMutateRowRequest{
			TableName: testTable, RowKey: []byte("r"), TrueMutations: trueMuts, FalseMutations: falseMuts,
		})
		return err
	}
	const none = "No mutations provided"
	wantStatus(t, e.mutate("r"), codes.InvalidArgument, none)
	wantStatus(t, e.firstEntry(entry("r")), codes.InvalidArgument, none)
	wantStatus(t, check(nil, nil), codes.InvalidArgument, none)
	ss := e.openSession(e.ctx(), btpb.NewBigtableClient(e.dial()), testTable, btpb.OpenTableRequest_PERMISSION_WRITE, nil)
	ss.opened()
	_, err := ss.rpc(1, sessionMutate("r"))
	wantStatus(t, err, codes.InvalidArgument, none)

	many := slices.Repeat([]*btpb.Mutation{set("f", "q", 0, "")}, 60_000)
	const tooMany = "Too many mutations: 120000 provided; limit 100000"
	wantStatus(t, e.mutate("r", slices.Concat(many, many)...), codes.InvalidArgument, tooMany)
	wantStatus(t, e.firstEntry(entry("r", many...), entry("s", many...)), codes.InvalidArgument, tooMany)
	wantStatus(t, check(slices.Concat(many, many), nil), codes.InvalidArgument, tooMany)
	wantStatus(t, check(nil, slices.Concat(many, many)), codes.InvalidArgument, tooMany)
}

// The service's response is unknown: these cases detect changes. bttest accepts the first two,
// and the third matches empty qualifiers.
func TestFaultB_Undecided(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	e.mustMutate("r", set("f", "", 1000, "v"), set("f", "q", 1000, "v"))
	_, err := e.data.CheckAndMutateRow(e.ctx(), &btpb.CheckAndMutateRowRequest{
		TableName: testTable, RowKey: []byte("r"), TrueMutations: []*btpb.Mutation{set("f", "q", 2000, "w")}, FalseMutations: []*btpb.Mutation{set("nope", "q", 2000, "w")},
	})
	wantCode(t, err, codes.NotFound)
	_, err = e.admin.ModifyColumnFamilies(e.ctx(), &btapb.ModifyColumnFamiliesRequest{Name: testTable, Modifications: []*btapb.ModifyColumnFamiliesRequest_Modification{{
		Id: "sum", Mod: &btapb.ModifyColumnFamiliesRequest_Modification_Create{Create: aggregateOf("sum", &btapb.Type{Kind: &btapb.Type_Int64Type{Int64Type: &btapb.Type_Int64{}}})},
	}}})
	wantCode(t, err, codes.InvalidArgument)
	e.wantCells(qualifierRegexOf(""), "r f:@1000=v")
}
