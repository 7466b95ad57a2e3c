package main

import (
	"bytes"
	"context"
	"syscall"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// TestServe_StopWithStreams: a stop does not wait for readers of a change stream, whether they
// wait for records, restart at once, or have stopped reading with records in flight. (Such a
// stream used to take all of --grace.)
func TestServe_StopWithStreams(t *testing.T) {
	t.Parallel()
	s := serve(t, "--bigtable", "127.0.0.1:0", "--dynamodb", "off", "--grace", "24h")
	conn := s.dial(t)
	if _, err := btapb.NewBigtableTableAdminClient(conn).CreateTable(t.Context(), &btapb.CreateTableRequest{
		Parent: "projects/p/instances/i", TableId: "t",
		Table: &btapb.Table{
			ColumnFamilies:     map[string]*btapb.ColumnFamily{"f": {}},
			ChangeStreamConfig: &btapb.ChangeStreamConfig{RetentionPeriod: durationpb.New(24 * time.Hour)},
		},
	}); err != nil {
		t.Fatal(err)
	}
	const table = "projects/p/instances/i/tables/t"
	began := timestamppb.Now()
	set := []*btpb.Mutation{{Mutation: &btpb.Mutation_SetCell_{SetCell: &btpb.Mutation_SetCell{FamilyName: "f", Value: bytes.Repeat([]byte("v"), 1_000_000)}}}}
	data := btpb.NewBigtableClient(conn)
	for i := range 20 { // more than any window of a stream
		if _, err := data.MutateRow(t.Context(), &btpb.MutateRowRequest{TableName: table, RowKey: []byte{byte(i + 1)}, Mutations: set}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	open := func(req *btpb.ReadChangeStreamRequest) btpb.Bigtable_ReadChangeStreamClient {
		req.TableName = table
		stream, err := data.ReadChangeStream(ctx, req)
		if err != nil {
			return nil
		}
		return stream
	}
	for range 3 {
		idle := open(&btpb.ReadChangeStreamRequest{})
		go func() {
			for stream := idle; stream != nil; stream = open(&btpb.ReadChangeStreamRequest{}) {
				for {
					if _, err := stream.Recv(); err != nil {
						break
					}
				}
				if ctx.Err() != nil {
					return
				}
			}
		}()
		behind := open(&btpb.ReadChangeStreamRequest{StartFrom: &btpb.ReadChangeStreamRequest_StartTime{StartTime: began}})
		if _, err := behind.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	if code := s.end(t, syscall.SIGTERM); code != 0 {
		t.Errorf("code %d\n%s", code, s.stderr)
	}
}
