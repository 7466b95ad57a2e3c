package emu

import (
	"errors"
	"io"
	"testing"
	"unicode/utf8"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/engine"
)

// fuzzData fuzzes requests of one data RPC. What is sent is seed messages that
// mean something, changed, with fields of another laid over them: in the wire
// format one message after the other is both, merged. An answer is a
// response or a status of the server's own making, and a write that fails has
// written nothing.
func fuzzData[Req proto.Message](f *testing.F, req func() Req, call func(*env, Req) error, seeds ...Req) {
	f.Helper()
	for _, seed := range seeds {
		b, err := proto.Marshal(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, []byte{})
		f.Add([]byte{}, b)
	}
	f.Fuzz(func(t *testing.T, base, patch []byte) {
		m := req()
		if proto.Unmarshal(base, m) != nil || (proto.UnmarshalOptions{Merge: true}).Unmarshal(patch, m) != nil {
			return
		}
		e := newEnvWith(t, Options{}, engine.Options{})
		e.createTable("t", "f", "g")
		for _, row := range []string{"a", "b", "b\x00"} {
			req := &btpb.MutateRowRequest{TableName: testTable, RowKey: []byte(row), Mutations: []*btpb.Mutation{
				set("f", "q", 1000, "value"), set("f", "q", 2000, "\x00\x00\x00\x00\x00\x00\x00\x07"), set("g", "", 0, "x"),
			}}
			if _, err := e.data.MutateRow(e.ctx(), req); err != nil {
				t.Fatal(err)
			}
		}
		dump := func() string {
			res, err := readRows(e.ctx(), e.data, &btpb.ReadRowsRequest{TableName: testTable})
			if err != nil {
				t.Fatal(err)
			}
			return res.text()
		}
		before, sent := dump(), proto.Clone(m)
		err := call(e, m)
		st, ok := status.FromError(err)
		switch {
		case !ok, st.Code() == codes.Unknown, st.Code() == codes.Internal, st.Code() == codes.Unavailable, !utf8.ValidString(st.Message()):
			t.Errorf("%v: %v", sent, err)
		case err != nil && dump() != before:
			t.Errorf("%v failed with %v and wrote:\n%sbefore:\n%s", sent, err, dump(), before)
		}
		if !proto.Equal(m, sent) {
			t.Errorf("the request changed from %v to %v", sent, m)
		}
	})
}

var (
	fuzzedFilter = &btpb.RowFilter{Filter: &btpb.RowFilter_Chain_{Chain: &btpb.RowFilter_Chain{Filters: []*btpb.RowFilter{
		{Filter: &btpb.RowFilter_FamilyNameRegexFilter{FamilyNameRegexFilter: "f|g"}},
		{Filter: &btpb.RowFilter_CellsPerColumnLimitFilter{CellsPerColumnLimitFilter: 1}},
		{Filter: &btpb.RowFilter_Interleave_{Interleave: &btpb.RowFilter_Interleave{Filters: []*btpb.RowFilter{
			{Filter: &btpb.RowFilter_StripValueTransformer{StripValueTransformer: true}},
			{Filter: &btpb.RowFilter_ApplyLabelTransformer{ApplyLabelTransformer: "l"}},
		}}}},
	}}}}
	fuzzedMutations = []*btpb.Mutation{
		{Mutation: &btpb.Mutation_DeleteFromColumn_{DeleteFromColumn: &btpb.Mutation_DeleteFromColumn{
			FamilyName: "f", ColumnQualifier: []byte("q"), TimeRange: &btpb.TimestampRange{EndTimestampMicros: 2000},
		}}},
		{Mutation: &btpb.Mutation_DeleteFromFamily_{DeleteFromFamily: &btpb.Mutation_DeleteFromFamily{FamilyName: "g"}}},
		set("f", "new", -1, "v"),
	}
)

func FuzzReadRows(f *testing.F) {
	fuzzData(f, func() *btpb.ReadRowsRequest { return &btpb.ReadRowsRequest{} },
		func(e *env, req *btpb.ReadRowsRequest) error {
			_, err := readRows(e.ctx(), e.data, req)
			return err
		},
		&btpb.ReadRowsRequest{TableName: testTable, RowsLimit: 2, Filter: fuzzedFilter},
		&btpb.ReadRowsRequest{TableName: testTable, Reversed: true, Rows: &btpb.RowSet{
			RowKeys: [][]byte{[]byte("b"), []byte("a")},
			RowRanges: []*btpb.RowRange{{
				StartKey: &btpb.RowRange_StartKeyOpen{StartKeyOpen: []byte("a")}, EndKey: &btpb.RowRange_EndKeyClosed{EndKeyClosed: []byte("b\x00")},
			}},
		}})
}

func FuzzSampleRowKeys(f *testing.F) {
	fuzzData(f, func() *btpb.SampleRowKeysRequest { return &btpb.SampleRowKeysRequest{} },
		func(e *env, req *btpb.SampleRowKeysRequest) error {
			s, err := e.data.SampleRowKeys(e.ctx(), req)
			for err == nil {
				_, err = s.Recv()
			}
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		},
		&btpb.SampleRowKeysRequest{TableName: testTable, AppProfileId: "default"})
}

func FuzzMutateRow(f *testing.F) {
	fuzzData(f, func() *btpb.MutateRowRequest { return &btpb.MutateRowRequest{} },
		func(e *env, req *btpb.MutateRowRequest) error {
			_, err := e.data.MutateRow(e.ctx(), req)
			return err
		},
		&btpb.MutateRowRequest{TableName: testTable, RowKey: []byte("a"), Mutations: fuzzedMutations},
		&btpb.MutateRowRequest{TableName: testTable, RowKey: []byte("b"), Mutations: []*btpb.Mutation{
			{Mutation: &btpb.Mutation_DeleteFromRow_{DeleteFromRow: &btpb.Mutation_DeleteFromRow{}}}, set("none", "q", 0, "fails late"),
		}})
}

func FuzzMutateRows(f *testing.F) {
	fuzzData(f, func() *btpb.MutateRowsRequest { return &btpb.MutateRowsRequest{} },
		func(e *env, req *btpb.MutateRowsRequest) error {
			s, err := e.data.MutateRows(e.ctx(), req)
			entries := map[int64]bool{}
			for err == nil {
				var resp *btpb.MutateRowsResponse
				resp, err = s.Recv()
				for _, entry := range resp.GetEntries() {
					if i := entry.GetIndex(); i < 0 || i >= int64(len(req.GetEntries())) || entries[i] {
						e.t.Errorf("%v: entry %d is not of the request, or comes twice", req, i)
					}
					entries[entry.GetIndex()] = true
				}
			}
			if !errors.Is(err, io.EOF) {
				return err
			}
			if len(entries) != len(req.GetEntries()) {
				e.t.Errorf("%v: %d entries are answered", req, len(entries))
			}
			return nil
		},
		&btpb.MutateRowsRequest{TableName: testTable, Entries: []*btpb.MutateRowsRequest_Entry{
			{RowKey: []byte("a"), Mutations: fuzzedMutations}, {RowKey: []byte("c"), Mutations: []*btpb.Mutation{set("none", "q", 0, "")}},
		}})
}

func FuzzCheckAndMutateRow(f *testing.F) {
	fuzzData(f, func() *btpb.CheckAndMutateRowRequest { return &btpb.CheckAndMutateRowRequest{} },
		func(e *env, req *btpb.CheckAndMutateRowRequest) error {
			_, err := e.data.CheckAndMutateRow(e.ctx(), req)
			return err
		},
		&btpb.CheckAndMutateRowRequest{TableName: testTable, RowKey: []byte("a"), PredicateFilter: &btpb.RowFilter{Filter: &btpb.RowFilter_ValueRangeFilter{
			ValueRangeFilter: &btpb.ValueRange{StartValue: &btpb.ValueRange_StartValueClosed{StartValueClosed: []byte("v")}},
		}}, TrueMutations: fuzzedMutations, FalseMutations: []*btpb.Mutation{set("g", "q", 0, "no")}})
}

func FuzzReadModifyWriteRow(f *testing.F) {
	fuzzData(f, func() *btpb.ReadModifyWriteRowRequest { return &btpb.ReadModifyWriteRowRequest{} },
		func(e *env, req *btpb.ReadModifyWriteRowRequest) error {
			_, err := e.data.ReadModifyWriteRow(e.ctx(), req)
			return err
		},
		&btpb.ReadModifyWriteRowRequest{TableName: testTable, RowKey: []byte("a"), Rules: []*btpb.ReadModifyWriteRule{
			{FamilyName: "f", ColumnQualifier: []byte("q"), Rule: &btpb.ReadModifyWriteRule_IncrementAmount{IncrementAmount: 3}},
			{FamilyName: "g", Rule: &btpb.ReadModifyWriteRule_AppendValue{AppendValue: []byte("y")}},
		}})
}

func FuzzPingAndWarm(f *testing.F) {
	fuzzData(f, func() *btpb.PingAndWarmRequest { return &btpb.PingAndWarmRequest{} },
		func(e *env, req *btpb.PingAndWarmRequest) error {
			_, err := e.data.PingAndWarm(e.ctx(), req)
			return err
		},
		&btpb.PingAndWarmRequest{Name: testInstance, AppProfileId: "default"})
}
