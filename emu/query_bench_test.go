package emu_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/test/cputime"
)

// BenchmarkCompareQuery compares queries with reads of the same rows, over a connection: each row has a column
// of 20 bytes, one of a thousand values.
func BenchmarkCompareQuery(b *testing.B) {
	const rows = 100_000
	client := newReadable(b, rows)
	key := fmt.Sprintf("row%07d", rows/2)
	for _, c := range []struct {
		name  string
		query string
		read  *btpb.ReadRowsRequest // without a query
	}{
		{"scan/ReadRows", "", &btpb.ReadRowsRequest{}},
		{"scan/SQL", "SELECT _key, cf['q'] AS q FROM r", nil},
		{"scan/SQL groups", "SELECT cf['q'] AS q, COUNT(*) AS n FROM r GROUP BY q", nil},
		{"row/ReadRows", "", &btpb.ReadRowsRequest{Rows: &btpb.RowSet{RowKeys: [][]byte{[]byte(key)}}}},
		{"row/SQL", "SELECT _key, cf['q'] AS q FROM r WHERE _key = '" + key + "'", nil},
		{"limit/ReadRows", "", &btpb.ReadRowsRequest{RowsLimit: 10}},
		{"limit/SQL", "SELECT _key, cf['q'] AS q FROM r LIMIT 10", nil},
	} {
		b.Run(c.name, func(b *testing.B) {
			var prepared *btpb.PrepareQueryResponse
			cputime.Loop(b, func(i int) {
				if c.query == "" {
					c.read.TableName = sqlInstance + "/tables/r"
					stream, err := client.ReadRows(b.Context(), c.read)
					for err == nil {
						_, err = stream.Recv()
					}
					if !errors.Is(err, io.EOF) {
						b.Fatal(err)
					}
					return
				}
				if i%1000 == 0 { // before it expires
					var err error
					if prepared, err = client.PrepareQuery(b.Context(), &btpb.PrepareQueryRequest{InstanceName: sqlInstance, Query: c.query}); err != nil {
						b.Fatal(err)
					}
				}
				drainQuery(b, client, prepared.GetPreparedQuery())
			})
		})
	}
}

// newConnected returns a server, and a connection to it.
func newConnected(tb testing.TB) (*emu.Server, *grpc.ClientConn) {
	tb.Helper()
	db, err := engine.Open(engine.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	srv, err := emu.New(emu.Options{DB: db})
	if err != nil {
		tb.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(listener) }()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := errors.Join(conn.Close(), srv.Close(), <-served, db.Close()); err != nil {
			tb.Error(err)
		}
	})
	return srv, conn
}

// newReadable returns a client of the table r with the given number of rows.
func newReadable(tb testing.TB, rows int) btpb.BigtableClient {
	tb.Helper()
	_, conn := newConnected(tb)
	_, err := btapb.NewBigtableTableAdminClient(conn).CreateTable(tb.Context(), &btapb.CreateTableRequest{
		Parent: sqlInstance, TableId: "r", Table: &btapb.Table{ColumnFamilies: map[string]*btapb.ColumnFamily{"cf": {}}},
	})
	if err != nil {
		tb.Fatal(err)
	}
	client := btpb.NewBigtableClient(conn)
	for i := 0; i < rows; {
		req := &btpb.MutateRowsRequest{TableName: sqlInstance + "/tables/r"}
		for ; i < rows && len(req.GetEntries()) < 1000; i++ {
			req.Entries = append(req.Entries, &btpb.MutateRowsRequest_Entry{RowKey: fmt.Appendf(nil, "row%07d", i), Mutations: []*btpb.Mutation{{
				Mutation: &btpb.Mutation_SetCell_{SetCell: &btpb.Mutation_SetCell{
					FamilyName: "cf", ColumnQualifier: []byte("q"), TimestampMicros: 1000, Value: fmt.Appendf(nil, "value of %011d", i%1000),
				}},
			}}})
		}
		stream, err := client.MutateRows(tb.Context(), req)
		for err == nil {
			_, err = stream.Recv()
		}
		if !errors.Is(err, io.EOF) {
			tb.Fatal(err)
		}
	}
	return client
}

// drainQuery reads all rows of a prepared query.
func drainQuery(tb testing.TB, client btpb.BigtableClient, prepared []byte) {
	tb.Helper()
	stream, err := client.ExecuteQuery(tb.Context(), &btpb.ExecuteQueryRequest{InstanceName: sqlInstance, PreparedQuery: prepared})
	if err != nil {
		tb.Fatal(err)
	}
	var data []byte
	for {
		answer, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			tb.Fatal(err)
		}
		set := answer.GetResults()
		data = append(data, set.GetProtoRowsBatch().GetBatchData()...)
		if set.BatchChecksum != nil {
			if err := proto.Unmarshal(data, &btpb.ProtoRows{}); err != nil {
				tb.Fatal(err)
			}
			data = nil
		}
	}
}
