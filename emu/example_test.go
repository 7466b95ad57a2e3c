package emu_test

import (
	"context"
	"fmt"
	"log"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
)

// A program embeds a server: it opens an engine and calls the server over a channel inside
// the process. Official clients connect to a listener that Server.Serve takes.
func Example() {
	db, err := engine.Open(engine.Options{}) // in memory; Options.Dir keeps data on disk
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	srv, err := emu.New(emu.Options{DB: db})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = srv.Close() }()

	ctx := context.Background()
	const instance = "projects/p/instances/i" // exists implicitly
	admin := btapb.NewBigtableTableAdminClient(srv.Conn())
	table, err := admin.CreateTable(ctx, &btapb.CreateTableRequest{
		Parent: instance, TableId: "users",
		Table: &btapb.Table{ColumnFamilies: map[string]*btapb.ColumnFamily{"profile": {}}},
	})
	if err != nil {
		log.Fatal(err)
	}

	data := btpb.NewBigtableClient(srv.Conn())
	_, err = data.MutateRow(ctx, &btpb.MutateRowRequest{
		TableName: table.GetName(), RowKey: []byte("user#1"),
		Mutations: []*btpb.Mutation{{Mutation: &btpb.Mutation_SetCell_{SetCell: &btpb.Mutation_SetCell{
			FamilyName: "profile", ColumnQualifier: []byte("name"), TimestampMicros: 1000, Value: []byte("Ada"),
		}}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	rows, err := data.ReadRows(ctx, &btpb.ReadRowsRequest{TableName: table.GetName()})
	if err != nil {
		log.Fatal(err)
	}
	message, err := rows.Recv() // clients receive until io.EOF
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range message.GetChunks() {
		fmt.Printf("%s %s:%s = %s\n", c.GetRowKey(), c.GetFamilyName().GetValue(), c.GetQualifier().GetValue(), c.GetValue())
	}
	// Output: user#1 profile:name = Ada
}
