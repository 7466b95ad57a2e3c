// Package emu is a Bigtable server: the gRPC API of Cloud Bigtable's data and
// table administration over an engine.DB.
//
// What it promises: a request is validated whole before anything is changed;
// a row mutation happens wholly or not at all; a row is read as it was at one
// moment; cells come in Bigtable's order (families by creation, qualifiers
// bytewise, timestamps descending), which is also the order that per-row
// limits and offsets count in; filters stream and never hold more than one
// cell; documented limits are enforced unless Options.Limits says otherwise;
// an RPC that is not built answers Unimplemented with its name; and no request
// of any shape ends the process.
//
// What it does not: there are no replicas, so every read is consistent and app
// profiles are accepted and ignored; IAM is not checked; every instance exists
// as soon as it is named; change streams, SQL, views, backups, aggregates and
// instance administration are not built yet, and say so. Support lists each
// RPC, filter, mutation and garbage-collection rule with its state.
//
// Where to look: the RPC ReadRows is in read_rows.go, and so on; table
// administration is in admin_*.go; filters are in internal/filter; statuses
// are made in status.go alone, limits stand in limits.go alone.
//
//	db, err := engine.Open(engine.Options{})
//	...
//	srv, err := emu.New(emu.Options{DB: db})
//	...
//	client := btpb.NewBigtableClient(srv.Conn()) // or srv.Serve(listener)
package emu
