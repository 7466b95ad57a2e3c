package emu_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/cockroachdb/datadriven"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/sqlclient"
)

const sqlInstance = "projects/p/instances/i"

// newSQL returns a server with the table g of the cases in internal/sql/testdata.
func newSQL(tb testing.TB) grpc.ClientConnInterface {
	tb.Helper()
	return newSQLWith(tb, emu.Options{})
}

// newSQLWith is newSQL with options.
func newSQLWith(tb testing.TB, o emu.Options) grpc.ClientConnInterface {
	tb.Helper()
	db, err := engine.Open(engine.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	o.DB = db
	srv, err := emu.New(o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := errors.Join(srv.Close(), db.Close()); err != nil {
			tb.Error(err)
		}
	})
	fillSQL(tb, srv.Conn())
	return srv.Conn()
}

// fillSQL creates the tables of newSQL.
func fillSQL(tb testing.TB, conn grpc.ClientConnInterface) {
	tb.Helper()
	sum := &btapb.Type{Kind: &btapb.Type_AggregateType{AggregateType: &btapb.Type_Aggregate{
		InputType: &btapb.Type{Kind: &btapb.Type_Int64Type{Int64Type: &btapb.Type_Int64{Encoding: &btapb.Type_Int64_Encoding{
			Encoding: &btapb.Type_Int64_Encoding_BigEndianBytes_{BigEndianBytes: &btapb.Type_Int64_Encoding_BigEndianBytes{}},
		}}}},
		Aggregator: &btapb.Type_Aggregate_Sum_{Sum: &btapb.Type_Aggregate_Sum{}},
	}}}
	_, err := btapb.NewBigtableTableAdminClient(conn).CreateTable(tb.Context(), &btapb.CreateTableRequest{
		Parent: sqlInstance, TableId: "g", Table: &btapb.Table{ColumnFamilies: map[string]*btapb.ColumnFamily{
			"info": {}, "stats": {}, "tags": {}, "total": {ValueType: sum},
		}},
	})
	if err != nil {
		tb.Fatal(err)
	}
	const t1, t2, t3 = 1704067200_000_000, 1704070800_000_000, 1704153600_000_000
	number := func(n int64) string { return string(binary.BigEndian.AppendUint64(nil, uint64(n))) }
	type cell struct {
		row, family, qualifier string
		at                     int64
		value                  string
	}
	for _, c := range []cell{
		{"u#001", "info", "name", t2, "Ada"},
		{"u#001", "info", "name", t1, "Adah"},
		{"u#001", "info", "city", t1, "Paris"},
		{"u#001", "stats", "n", t3, number(12)},
		{"u#001", "stats", "n", t1, number(10)},
		{"u#001", "stats", "score", t1, "3.5"},
		{"u#001", "tags", "a", t1, ""},
		{"u#001", "tags", "b", t1, "x"},
		{"u#002", "info", "name", t1, "Bob"},
		{"u#002", "stats", "n", t2, number(-7)},
		{"u#002", "tags", "a", t2, "y"},
		{"u#003", "info", "name", t1, "Zoë"},
		{"u#003", "info", "city", t2, "Rome"},
		{"u#003", "info", "city", t1, "Oslo"},
		{"u#003", "info", "raw", t1, "\xff\x00"},
		{"v#001", "info", "payload", t1, `{"abc":1,"list":["x","y"],"o":{"k":null}}`},
		{"v#001", "stats", "n", t1, number(10)},
		{"v#\xff", "tags", "c", t1, "z"},
	} {
		set := &btpb.Mutation{Mutation: &btpb.Mutation_SetCell_{SetCell: &btpb.Mutation_SetCell{
			FamilyName: c.family, ColumnQualifier: []byte(c.qualifier), TimestampMicros: c.at, Value: []byte(c.value),
		}}}
		mutate(tb, conn, c.row, set)
	}
	for _, c := range []struct {
		row, qualifier string
		n              int64
	}{{"u#001", "n", 5}, {"v#001", "m", -1}, {"v#001", "n", 2}} {
		raw := func(b []byte) *btpb.Value { return &btpb.Value{Kind: &btpb.Value_RawValue{RawValue: b}} }
		mutate(tb, conn, c.row, &btpb.Mutation{Mutation: &btpb.Mutation_AddToCell_{AddToCell: &btpb.Mutation_AddToCell{
			FamilyName: "total", ColumnQualifier: raw([]byte(c.qualifier)), Timestamp: &btpb.Value{Kind: &btpb.Value_RawTimestampMicros{}},
			Input: &btpb.Value{Kind: &btpb.Value_IntValue{IntValue: c.n}},
		}}})
	}
	addSales(tb, conn)
}

// addSales adds the table sales, which has a row key schema.
func addSales(tb testing.TB, conn grpc.ClientConnInterface) {
	tb.Helper()
	utf8 := &btapb.Type{Kind: &btapb.Type_StringType{StringType: &btapb.Type_String{Encoding: &btapb.Type_String_Encoding{
		Encoding: &btapb.Type_String_Encoding_Utf8Bytes_{Utf8Bytes: &btapb.Type_String_Encoding_Utf8Bytes{}},
	}}}}
	schema := &btapb.Type_Struct{Encoding: &btapb.Type_Struct_Encoding{Encoding: &btapb.Type_Struct_Encoding_DelimitedBytes_{
		DelimitedBytes: &btapb.Type_Struct_Encoding_DelimitedBytes{Delimiter: []byte("#")},
	}}}
	for _, name := range []string{"user_id", "purchase_date", "order_number"} {
		schema.Fields = append(schema.Fields, &btapb.Type_Struct_Field{FieldName: name, Type: utf8})
	}
	_, err := btapb.NewBigtableTableAdminClient(conn).CreateTable(tb.Context(), &btapb.CreateTableRequest{
		Parent: sqlInstance, TableId: "sales", Table: &btapb.Table{ColumnFamilies: map[string]*btapb.ColumnFamily{"d": {}}, RowKeySchema: schema},
	})
	if err != nil {
		tb.Fatal(err)
	}
	for row, price := range map[string]string{"user1#2024-01-01#1": "10", "user1#2024-01-02#2": "20", "user2#2024-01-01#3": "5"} {
		mutateIn(tb, conn, "sales", row, &btpb.Mutation{Mutation: &btpb.Mutation_SetCell_{SetCell: &btpb.Mutation_SetCell{
			FamilyName: "d", ColumnQualifier: []byte("price"), TimestampMicros: 1704067200_000_000, Value: []byte(price),
		}}})
	}
}

func mutate(tb testing.TB, conn grpc.ClientConnInterface, row string, m *btpb.Mutation) {
	tb.Helper()
	mutateIn(tb, conn, "g", row, m)
}

func mutateIn(tb testing.TB, conn grpc.ClientConnInterface, table, row string, m *btpb.Mutation) {
	tb.Helper()
	_, err := btpb.NewBigtableClient(conn).MutateRow(tb.Context(), &btpb.MutateRowRequest{TableName: sqlInstance + "/tables/" + table, RowKey: []byte(row), Mutations: []*btpb.Mutation{m}})
	if err != nil {
		tb.Fatal(err)
	}
}

// queryText runs a query and returns its columns and rows, or its error.
func queryText(ctx context.Context, conn grpc.ClientConnInterface, text string, params map[string]*btpb.Value) string {
	metadata, values, err := runQuery(ctx, conn, text, params)
	if err != nil {
		st := status.Convert(err)
		line, _, _ := strings.Cut(st.Message(), "\n")
		return fmt.Sprintf("error %s: %s\n", codeNames[st.Code()], line)
	}
	var b strings.Builder
	columns := metadata.GetProtoSchema().GetColumns()
	for i, c := range columns {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(c.GetName() + " " + sqlclient.TypeText(c.GetType()))
	}
	b.WriteByte('\n')
	for ; len(values) > 0; values = values[len(columns):] {
		b.WriteByte('(')
		for i, c := range columns {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(literal(values[i], c.GetType()))
		}
		b.WriteString(")\n")
	}
	return b.String()
}

var codeNames = map[codes.Code]string{
	codes.InvalidArgument: "INVALID_ARGUMENT", codes.OutOfRange: "OUT_OF_RANGE", codes.Unimplemented: "UNIMPLEMENTED", codes.Internal: "INTERNAL", codes.NotFound: "NOT_FOUND",
	codes.FailedPrecondition: "FAILED_PRECONDITION", codes.ResourceExhausted: "RESOURCE_EXHAUSTED",
}

// runQuery prepares and executes a query, and checks the framing of the answers.
func runQuery(ctx context.Context, conn grpc.ClientConnInterface, text string, params map[string]*btpb.Value) (*btpb.ResultSetMetadata, []*btpb.Value, error) {
	client := btpb.NewBigtableClient(conn)
	types := map[string]*btpb.Type{}
	for name, v := range params {
		types[name] = v.GetType()
	}
	prepared, err := client.PrepareQuery(ctx, &btpb.PrepareQueryRequest{InstanceName: sqlInstance, Query: text, ParamTypes: types})
	if err != nil {
		return nil, nil, err
	}
	stream, err := client.ExecuteQuery(ctx, &btpb.ExecuteQueryRequest{InstanceName: sqlInstance, PreparedQuery: prepared.GetPreparedQuery(), Params: params})
	if err != nil {
		return nil, nil, err
	}
	var data []byte
	var values []*btpb.Value
	ended := false
	for n := 0; ; n++ {
		answer, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			if !ended {
				return nil, nil, errors.New("the stream ends without a token")
			}
			return prepared.GetMetadata(), values, nil
		}
		if err != nil {
			return nil, nil, err
		}
		set := answer.GetResults()
		if set.GetReset_() != (n == 0) || ended || set.GetEstimatedBatchSize() != 0 {
			return nil, nil, fmt.Errorf("message %d is %v", n, set)
		}
		data = append(data, set.GetProtoRowsBatch().GetBatchData()...)
		if set.BatchChecksum != nil {
			if want := crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)); set.GetBatchChecksum() != want {
				return nil, nil, fmt.Errorf("message %d: the checksum is %d, want %d", n, set.GetBatchChecksum(), want)
			}
			rows := &btpb.ProtoRows{}
			if err := proto.Unmarshal(data, rows); err != nil {
				return nil, nil, err
			}
			values, data = append(values, rows.GetValues()...), nil
		}
		ended = len(set.GetResumeToken()) > 0
	}
}

// TestQuery runs the queries in internal/sql/testdata.
func TestQuery(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "internal/sql/testdata", func(t *testing.T, path string) {
		t.Helper()
		conn := newSQL(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			params := map[string]*btpb.Value{}
			for _, arg := range d.CmdArgs {
				params[arg.Key] = paramOf(arg.Vals[0], arg.Vals[1])
			}
			return queryText(t.Context(), conn, d.Input, params)
		})
	})
}

// paramOf returns the parameter of a type's name.
func paramOf(kind, text string) *btpb.Value {
	v, err := sqlclient.Param(kind, text)
	if err != nil {
		panic(err)
	}
	return v
}

// literal writes a value as a literal, a struct as (a, b), and a map as {key=value}. BYTES have escapes for
// all bytes outside of ASCII.
func literal(v *btpb.Value, t *btpb.Type) string {
	switch k := v.GetKind().(type) {
	case *btpb.Value_BytesValue:
		return "b" + quoted(string(k.BytesValue), true)
	case *btpb.Value_StringValue:
		return quoted(k.StringValue, false)
	case *btpb.Value_FloatValue:
		text := sqlclient.Text(v, t)
		if !strings.ContainsAny(text, ".eN") {
			text += ".0"
		}
		return text
	case *btpb.Value_ArrayValue:
		return literals(k.ArrayValue.GetValues(), t)
	default:
		return sqlclient.Text(v, t)
	}
}

// literals writes the elements of an array, a struct or a map.
func literals(values []*btpb.Value, t *btpb.Type) string {
	parts := make([]string, len(values))
	for i, e := range values {
		switch of := t.GetKind().(type) {
		case *btpb.Type_MapType:
			pair := e.GetArrayValue().GetValues()
			parts[i] = literal(pair[0], of.MapType.GetKeyType()) + "=" + literal(pair[1], of.MapType.GetValueType())
		case *btpb.Type_StructType:
			parts[i] = literal(e, of.StructType.GetFields()[i].GetType())
		default:
			parts[i] = literal(e, t.GetArrayType().GetElementType())
		}
	}
	text := strings.Join(parts, ", ")
	switch t.GetKind().(type) {
	case *btpb.Type_MapType:
		return "{" + text + "}"
	case *btpb.Type_StructType:
		return "(" + text + ")"
	}
	return "[" + text + "]"
}

// quoted quotes a text. Raw text is bytes.
func quoted(s string, raw bool) string {
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\\' || c == '\'':
			b.WriteString("\\" + s[i:i+1])
		case c < ' ' || c == 0x7f || raw && c > 0x7f:
			fmt.Fprintf(&b, "\\x%02x", c)
		default:
			b.WriteByte(c)
		}
	}
	return "'" + b.String() + "'"
}
