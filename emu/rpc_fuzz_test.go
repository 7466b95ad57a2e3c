package emu

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/clock"
)

// fuzzed is a server that a fuzz target calls repeatedly. Before each call its content is
// restored, which is much faster than a new server.
type fuzzed struct {
	db      *engine.DB
	srv     *Server
	data    btpb.BigtableClient
	catalog string // its content before each call
	cells   string
	resets  int // since the server was made
}

// maxResets bounds the restores of one server, because deleted rows slow down reads.
const maxResets = 200

// newFuzzed returns a server with a table of three rows, and an instance with an
// app profile and two tables, one of them deleted.
func newFuzzed(f *testing.F) *fuzzed {
	f.Helper()
	z := &fuzzed{}
	z.open(f)
	f.Cleanup(func() {
		if err := z.close(); err != nil {
			f.Error(err)
		}
	})
	return z
}

func (z *fuzzed) close() error { return errors.Join(z.srv.Close(), z.db.Close()) }

func (z *fuzzed) open(tb testing.TB) {
	tb.Helper()
	c := clock.NewFrozen(start)
	var err error
	if z.db, err = engine.Open(engine.Options{Now: c.Now}); err != nil {
		tb.Fatal(err)
	}
	if z.srv, err = New(Options{DB: z.db, Clock: c}); err != nil {
		tb.Fatal(err)
	}
	z.data, z.resets = btpb.NewBigtableClient(z.srv.Conn()), 0
	tables, instances := btapb.NewBigtableTableAdminClient(z.srv.Conn()), btapb.NewBigtableInstanceAdminClient(z.srv.Conn())
	ctx, families := tb.Context(), map[string]*btapb.ColumnFamily{"f": {}, "g": {}}
	const made = "projects/p/instances/made"
	for _, id := range []string{"i", "made"} {
		_, err = instances.CreateInstance(ctx, &btapb.CreateInstanceRequest{
			Parent: "projects/p", InstanceId: id, Instance: &btapb.Instance{DisplayName: "The " + id},
			Clusters: map[string]*btapb.Cluster{"c1": nodes("us-east1-b", 1)},
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
	if _, err = instances.CreateAppProfile(ctx, &btapb.CreateAppProfileRequest{Parent: made, AppProfileId: "ap", AppProfile: singleCluster("c1", true)}); err != nil {
		tb.Fatal(err)
	}
	for _, req := range []*btapb.CreateTableRequest{{Parent: testInstance, TableId: "t"}, {Parent: made, TableId: "t"}, {Parent: made, TableId: "gone"}} {
		req.Table = &btapb.Table{ColumnFamilies: families}
		if _, err = tables.CreateTable(ctx, req); err != nil {
			tb.Fatal(err)
		}
	}
	if _, err = tables.CreateAuthorizedView(ctx, &btapb.CreateAuthorizedViewRequest{
		Parent: testTable, AuthorizedViewId: "v", AuthorizedView: viewOf(subset([]string{"a", "b\x00"}, columns("f", "q", ""))),
	}); err != nil {
		tb.Fatal(err)
	}
	if _, err = tables.CreateSchemaBundle(ctx, &btapb.CreateSchemaBundleRequest{
		Parent: testTable, SchemaBundleId: "s", SchemaBundle: protoBundle([]byte("\n\x07\n\x05a.txt")),
	}); err != nil {
		tb.Fatal(err)
	}
	if _, err = tables.DeleteTable(ctx, &btapb.DeleteTableRequest{Name: made + "/tables/gone"}); err != nil {
		tb.Fatal(err)
	}
	z.fill(tb)
	z.catalog, z.cells = z.texts(tb)
}

// fill writes the rows of the table.
func (z *fuzzed) fill(tb testing.TB) {
	tb.Helper()
	for _, row := range []string{"a", "b", "b\x00"} {
		req := &btpb.MutateRowRequest{TableName: testTable, RowKey: []byte(row), Mutations: []*btpb.Mutation{
			set("f", "q", 1000, "value"), set("f", "q", 2000, "\x00\x00\x00\x00\x00\x00\x00\x07"), set("g", "", 0, "x"),
		}}
		if _, err := z.data.MutateRow(tb.Context(), req); err != nil {
			tb.Fatal(err)
		}
	}
}

// putBack undoes the changes of a call, and reports whether it changed anything.
func (z *fuzzed) putBack(t *testing.T) (changed bool) {
	t.Helper()
	switch catalog, cells := z.texts(t); {
	case catalog == z.catalog && cells == z.cells:
		return false
	case catalog == z.catalog && z.resets < maxResets:
		z.resets++
		for _, row := range z.rows(t) {
			if err := z.db.Mutate(t.Context(), testTable, row, []engine.Mutation{{Kind: engine.DeleteFromRow}}); err != nil {
				t.Fatal(err)
			}
		}
		z.fill(t)
	default:
		if err := z.close(); err != nil {
			t.Fatal(err)
		}
		z.open(t)
	}
	return true
}

// rows are the keys of the table in each server.
func (z *fuzzed) rows(tb testing.TB) (keys [][]byte) {
	tb.Helper()
	scan, err := z.db.Scan(tb.Context(), testTable, engine.ScanOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	for scan.NextRow() {
		keys = append(keys, bytes.Clone(scan.Row()))
	}
	if err := errors.Join(scan.Err(), scan.Close()); err != nil {
		tb.Fatal(err)
	}
	return keys
}

// texts returns the server's whole content: tables and resources, and cells.
func (z *fuzzed) texts(tb testing.TB) (catalog, cells string) {
	tb.Helper()
	resources, err := z.db.Resources("")
	if err != nil {
		tb.Fatal(err)
	}
	tables := z.db.Tables("")
	text, err := json.Marshal([]any{tables, z.db.DeletedTables(""), resources})
	if err != nil {
		tb.Fatal(err)
	}
	var b strings.Builder
	for _, table := range tables {
		scan, err := z.db.Scan(tb.Context(), table.Name, engine.ScanOptions{})
		if err != nil {
			tb.Fatal(err)
		}
		for scan.NextRow() {
			for scan.NextCell() {
				c := scan.Cell()
				fmt.Fprintf(&b, "%s %q %s:%q @%d = %q\n", table.Name, scan.Row(), c.Family, c.Qualifier, c.Timestamp, c.Value)
			}
		}
		if err := errors.Join(scan.Err(), scan.Close()); err != nil {
			tb.Fatal(err)
		}
	}
	return string(text), b.String()
}

// decode merges two byte strings into a request: in the wire format, concatenation merges
// messages.
func decode(base, patch []byte, m proto.Message) bool {
	return proto.Unmarshal(base, m) == nil && proto.UnmarshalOptions{Merge: true}.Unmarshal(patch, m) == nil
}

// checkStatus checks that the server made an error's status.
func checkStatus(t *testing.T, sent proto.Message, err error) {
	t.Helper()
	st, ok := status.FromError(err)
	if !ok || st.Code() == codes.Unknown || st.Code() == codes.Internal || st.Code() == codes.Unavailable || !utf8.ValidString(st.Message()) {
		t.Errorf("%v: %v", sent, err)
	}
}

// fuzzData fuzzes requests of one data RPC: mutated meaningful seeds, merged with fields of
// another message. The RPC returns a response or a status of the server, and a failed write
// changes nothing.
func fuzzData[Req proto.Message](f *testing.F, req func() Req, call func(context.Context, btpb.BigtableClient, Req) error, seeds ...Req) {
	f.Helper()
	for _, seed := range seeds {
		b, err := proto.Marshal(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, []byte{})
		f.Add([]byte{}, b)
		// The same through a view.
		m := seed.ProtoReflect()
		table, view := m.Descriptor().Fields().ByName("table_name"), m.Descriptor().Fields().ByName("authorized_view_name")
		if table == nil || view == nil {
			continue
		}
		m.Clear(table)
		m.Set(view, protoreflect.ValueOfString(viewName("v")))
		if b, err = proto.Marshal(seed); err != nil {
			f.Fatal(err)
		}
		f.Add(b, []byte{})
	}
	z := newFuzzed(f)
	f.Fuzz(func(t *testing.T, base, patch []byte) {
		m := req()
		if !decode(base, patch, m) {
			return
		}
		sent := proto.Clone(m)
		err := call(t.Context(), z.data, m)
		checkStatus(t, sent, err)
		if changed := z.putBack(t); changed && err != nil {
			t.Errorf("%v failed with %v and wrote", sent, err)
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
		func(ctx context.Context, data btpb.BigtableClient, req *btpb.ReadRowsRequest) error {
			_, err := readRows(ctx, data, req)
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
		func(ctx context.Context, data btpb.BigtableClient, req *btpb.SampleRowKeysRequest) error {
			s, err := data.SampleRowKeys(ctx, req)
			return drained(s, err)
		},
		&btpb.SampleRowKeysRequest{TableName: testTable, AppProfileId: "default"})
}

func FuzzMutateRow(f *testing.F) {
	fuzzData(f, func() *btpb.MutateRowRequest { return &btpb.MutateRowRequest{} },
		func(ctx context.Context, data btpb.BigtableClient, req *btpb.MutateRowRequest) error {
			_, err := data.MutateRow(ctx, req)
			return err
		},
		&btpb.MutateRowRequest{TableName: testTable, RowKey: []byte("a"), Mutations: fuzzedMutations},
		&btpb.MutateRowRequest{TableName: testTable, RowKey: []byte("b"), Mutations: []*btpb.Mutation{
			{Mutation: &btpb.Mutation_DeleteFromRow_{DeleteFromRow: &btpb.Mutation_DeleteFromRow{}}}, set("none", "q", 0, "fails late"),
		}})
}

func FuzzMutateRows(f *testing.F) {
	fuzzData(f, func() *btpb.MutateRowsRequest { return &btpb.MutateRowsRequest{} },
		func(ctx context.Context, data btpb.BigtableClient, req *btpb.MutateRowsRequest) error {
			s, err := data.MutateRows(ctx, req)
			entries := map[int64]bool{}
			for err == nil {
				var resp *btpb.MutateRowsResponse
				resp, err = s.Recv()
				for _, entry := range resp.GetEntries() {
					if i := entry.GetIndex(); i < 0 || i >= int64(len(req.GetEntries())) || entries[i] {
						return fmt.Errorf("entry %d is not of the request, or comes twice", i)
					}
					entries[entry.GetIndex()] = true
				}
			}
			if !errors.Is(err, io.EOF) {
				return err
			}
			if len(entries) != len(req.GetEntries()) {
				return fmt.Errorf("%d entries are answered", len(entries))
			}
			return nil
		},
		&btpb.MutateRowsRequest{TableName: testTable, Entries: []*btpb.MutateRowsRequest_Entry{
			{RowKey: []byte("a"), Mutations: fuzzedMutations}, {RowKey: []byte("c"), Mutations: []*btpb.Mutation{set("none", "q", 0, "")}},
		}})
}

func FuzzCheckAndMutateRow(f *testing.F) {
	fuzzData(f, func() *btpb.CheckAndMutateRowRequest { return &btpb.CheckAndMutateRowRequest{} },
		func(ctx context.Context, data btpb.BigtableClient, req *btpb.CheckAndMutateRowRequest) error {
			_, err := data.CheckAndMutateRow(ctx, req)
			return err
		},
		&btpb.CheckAndMutateRowRequest{TableName: testTable, RowKey: []byte("a"), PredicateFilter: &btpb.RowFilter{Filter: &btpb.RowFilter_ValueRangeFilter{
			ValueRangeFilter: &btpb.ValueRange{StartValue: &btpb.ValueRange_StartValueClosed{StartValueClosed: []byte("v")}},
		}}, TrueMutations: fuzzedMutations, FalseMutations: []*btpb.Mutation{set("g", "q", 0, "no")}})
}

func FuzzReadModifyWriteRow(f *testing.F) {
	fuzzData(f, func() *btpb.ReadModifyWriteRowRequest { return &btpb.ReadModifyWriteRowRequest{} },
		func(ctx context.Context, data btpb.BigtableClient, req *btpb.ReadModifyWriteRowRequest) error {
			_, err := data.ReadModifyWriteRow(ctx, req)
			return err
		},
		&btpb.ReadModifyWriteRowRequest{TableName: testTable, RowKey: []byte("a"), Rules: []*btpb.ReadModifyWriteRule{
			{FamilyName: "f", ColumnQualifier: []byte("q"), Rule: &btpb.ReadModifyWriteRule_IncrementAmount{IncrementAmount: 3}},
			{FamilyName: "g", Rule: &btpb.ReadModifyWriteRule_AppendValue{AppendValue: []byte("y")}},
		}})
}

func FuzzPingAndWarm(f *testing.F) {
	fuzzData(f, func() *btpb.PingAndWarmRequest { return &btpb.PingAndWarmRequest{} },
		func(ctx context.Context, data btpb.BigtableClient, req *btpb.PingAndWarmRequest) error {
			_, err := data.PingAndWarm(ctx, req)
			return err
		},
		&btpb.PingAndWarmRequest{Name: testInstance, AppProfileId: "default"})
}
