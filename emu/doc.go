// Package emu is a Bigtable server: the gRPC API of Cloud Bigtable's data and
// table administration over an engine.DB.
//
// What it promises: a request is validated as a whole before anything is changed;
// a row mutation happens wholly or not at all; a row is read as it was at one
// moment; cells come in Bigtable's order (families by creation, qualifiers
// bytewise, timestamps descending), which is also the order in which per-row
// limits and offsets count; filters stream and never hold more than one
// cell; documented limits are enforced unless Options.Limits says otherwise;
// an RPC that is not implemented answers Unimplemented with its name; and no
// request of any shape ends the process.
//
// What it does not do: there are no replicas, so every read is consistent; the
// settings of an instance and its clusters are stored but have no effect, except
// that app profiles decide on single-row transactions; policies are stored and
// not enforced; settings of tiers are stored and start nothing; SQL and its views
// are not implemented, and say so. Support lists each RPC, filter, mutation and
// garbage-collection rule with its state.
//
// Any instance exists as soon as it is named, until the first CreateInstance in
// its project; those that hold tables stay.
//
// What follows the clock, such as a backup that is CREATING for a while
// (Options.AdminDelay) and then expires, follows from stored times whenever it is
// asked for. What has to do something at a time, such as giving back space, or making
// an automated backup, is a due.Work (see due.go) that New gives to the queue: NextDue
// says when there is something to do, and RunDue does it; the owner of the Server
// calls them.
//
// Where to look: the RPC ReadRows is in read_rows.go, and so on; table and
// instance administration is in admin_*.go; filters are in internal/filter;
// statuses are made only in status.go, limits are only in limits.go.
//
//	db, err := engine.Open(engine.Options{})
//	...
//	srv, err := emu.New(emu.Options{DB: db})
//	...
//	client := btpb.NewBigtableClient(srv.Conn()) // or srv.Serve(listener)
package emu
