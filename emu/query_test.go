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
	"github.com/tabletop-emu/tabletop/emu/internal/rowkey"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/analysis"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/sqlclient"
)

const sqlInstance = "projects/p/instances/i"

// sqlServer is a server with tables whose rows are also in memory.
type sqlServer struct {
	conn grpc.ClientConnInterface
	naiveTables
}

// newSQL returns a server with the tables of fillSQL.
func newSQL(tb testing.TB) *sqlServer {
	tb.Helper()
	return newSQLWith(tb, emu.Options{})
}

// newSQLWith is newSQL with options.
func newSQLWith(tb testing.TB, o emu.Options) *sqlServer {
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
	return fillSQL(tb, srv.Conn())
}

// fillSQL creates the tables g, sales and music of the cases in internal/sql/testdata.
func fillSQL(tb testing.TB, conn grpc.ClientConnInterface) *sqlServer {
	tb.Helper()
	s := &sqlServer{conn, naiveTables{tables: map[string]*naiveTable{}, views: map[string]string{}}}
	s.createTable(tb, "g", nil, "info", "stats", "tags", "total")
	const t1, t2, t3 = 1704067200_000_000, 1704070800_000_000, 1704153600_000_000
	number := func(n int64) string { return string(binary.BigEndian.AppendUint64(nil, uint64(n))) }
	for _, c := range []struct {
		row, family, qualifier string
		at                     int64
		value                  string
	}{
		{"u#001", "info", "name", t2, "Ada"},
		{"u#001", "info", "name", t1, "Adah"},
		{"u#001", "info", "city", t1, "Paris"},
		{"u#001", "stats", "n", t3, number(12)},
		{"u#001", "stats", "n", t1, number(10)},
		{"u#001", "stats", "score", t1, "3.5"},
		{"u#001", "tags", "a", t1, ""},
		{"u#001", "tags", "b", t1, "x"},
		{"u#001", "total", "n", 0, number(5)},
		{"u#002", "info", "name", t1, "Bob"},
		{"u#002", "stats", "n", t2, number(-7)},
		{"u#002", "tags", "a", t2, "y"},
		{"u#003", "info", "name", t1, "Zoë"},
		{"u#003", "info", "city", t2, "Rome"},
		{"u#003", "info", "city", t1, "Oslo"},
		{"u#003", "info", "raw", t1, "\xff\x00"},
		{"v#001", "info", "payload", t1, `{"abc":1,"list":["x","y"],"o":{"k":null}}`},
		{"v#001", "stats", "n", t1, number(10)},
		{"v#001", "total", "m", 0, number(-1)},
		{"v#001", "total", "n", 0, number(2)},
		{"v#\xff", "tags", "c", t1, "z"},
	} {
		s.put(tb, "g", c.row, naiveCell{c.family, c.qualifier, c.at, []byte(c.value)})
	}
	utf8 := &btapb.Type{Kind: &btapb.Type_StringType{StringType: &btapb.Type_String{Encoding: &btapb.Type_String_Encoding{
		Encoding: &btapb.Type_String_Encoding_Utf8Bytes_{Utf8Bytes: &btapb.Type_String_Encoding_Utf8Bytes{}},
	}}}}
	schema := &btapb.Type_Struct{Encoding: &btapb.Type_Struct_Encoding{Encoding: &btapb.Type_Struct_Encoding_DelimitedBytes_{
		DelimitedBytes: &btapb.Type_Struct_Encoding_DelimitedBytes{Delimiter: []byte("#")},
	}}}
	for _, name := range []string{"user_id", "purchase_date", "order_number"} {
		schema.Fields = append(schema.Fields, &btapb.Type_Struct_Field{FieldName: name, Type: utf8})
	}
	s.createTable(tb, "sales", schema, "d")
	for row, price := range map[string]string{"user1#2024-01-01#1": "10", "user1#2024-01-02#2": "20", "user2#2024-01-01#3": "5"} {
		s.put(tb, "sales", row, naiveCell{"d", "price", t1, []byte(price)})
	}
	s.fillMusic(tb)
	return s
}

// sums are the families of sums; the others have bytes.
var sums = map[string]bool{"total": true, "n": true}

// createTable creates a table. The schema of its row keys may be nil; the families are in the order of their
// names.
func (s *sqlServer) createTable(tb testing.TB, id string, key *btapb.Type_Struct, families ...string) {
	tb.Helper()
	table := &naiveTable{}
	if key != nil {
		table.key = rowkey.New(key)
	}
	created := &btapb.Table{ColumnFamilies: map[string]*btapb.ColumnFamily{}, RowKeySchema: key}
	for _, name := range families {
		f := &btapb.ColumnFamily{}
		of := value.BytesType
		if sums[name] {
			of = value.Int64Type
			f.ValueType = &btapb.Type{Kind: &btapb.Type_AggregateType{AggregateType: &btapb.Type_Aggregate{
				InputType: &btapb.Type{Kind: &btapb.Type_Int64Type{Int64Type: &btapb.Type_Int64{Encoding: &btapb.Type_Int64_Encoding{
					Encoding: &btapb.Type_Int64_Encoding_BigEndianBytes_{BigEndianBytes: &btapb.Type_Int64_Encoding_BigEndianBytes{}},
				}}}},
				Aggregator: &btapb.Type_Aggregate_Sum_{Sum: &btapb.Type_Aggregate_Sum{}},
			}}}
		}
		created.ColumnFamilies[name] = f
		table.families = append(table.families, analysis.Family{Name: name, Value: of})
	}
	_, err := btapb.NewBigtableTableAdminClient(s.conn).CreateTable(tb.Context(), &btapb.CreateTableRequest{Parent: sqlInstance, TableId: id, Table: created})
	if err != nil {
		tb.Fatal(err)
	}
	s.tables[id] = table
}

// put writes a cell; one of a sum must be new.
func (s *sqlServer) put(tb testing.TB, table, row string, c naiveCell) {
	tb.Helper()
	m := &btpb.Mutation{Mutation: &btpb.Mutation_SetCell_{SetCell: &btpb.Mutation_SetCell{
		FamilyName: c.family, ColumnQualifier: []byte(c.qualifier), TimestampMicros: c.at, Value: c.value,
	}}}
	if sums[c.family] {
		m.Mutation = &btpb.Mutation_AddToCell_{AddToCell: &btpb.Mutation_AddToCell{
			FamilyName:      c.family,
			ColumnQualifier: &btpb.Value{Kind: &btpb.Value_RawValue{RawValue: []byte(c.qualifier)}},
			Timestamp:       &btpb.Value{Kind: &btpb.Value_RawTimestampMicros{RawTimestampMicros: c.at}},
			Input:           &btpb.Value{Kind: &btpb.Value_IntValue{IntValue: int64(binary.BigEndian.Uint64(c.value))}}, //nolint:gosec // two's complement
		}}
	}
	mutateIn(tb, s.conn, table, row, m)
	s.tables[table].set(row, c)
}

// mutate changes a row of the table g.
func mutate(tb testing.TB, conn grpc.ClientConnInterface, row string, m *btpb.Mutation) {
	tb.Helper()
	mutateIn(tb, conn, "g", row, m)
}

func mutateIn(tb testing.TB, conn grpc.ClientConnInterface, table, row string, m *btpb.Mutation) {
	tb.Helper()
	_, err := btpb.NewBigtableClient(conn).MutateRow(tb.Context(), &btpb.MutateRowRequest{
		TableName: sqlInstance + "/tables/" + table, RowKey: []byte(row), Mutations: []*btpb.Mutation{m},
	})
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

// TestQuery runs the queries in internal/sql/testdata, also in the naive evaluator.
func TestQuery(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "internal/sql/testdata", func(t *testing.T, path string) {
		t.Helper()
		s := newSQL(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			params := map[string]*btpb.Value{}
			for _, arg := range d.CmdArgs {
				params[arg.Key] = paramOf(arg.Vals[0], arg.Vals[1])
			}
			if !strings.Contains(d.Input, "RAND") {
				s.compare(t, d.Input, params)
			}
			return queryText(t.Context(), s.conn, d.Input, params)
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
