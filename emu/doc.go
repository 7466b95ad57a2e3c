// Package emu serves the gRPC API of Cloud Bigtable over an engine.DB: data, tables and
// instances.
//
// What it guarantees: a request is validated as a whole before anything changes. A row
// mutation happens completely or not at all. A row is read as it was at one moment. Cells
// come in Bigtable's order (families by creation, qualifiers bytewise, timestamps
// descending), which is also the order in which per-row limits and offsets count. Filters
// stream and never hold more than one cell. Documented limits are enforced unless
// Options.Limits says otherwise. An RPC that is not implemented returns Unimplemented with
// its name. No request of any shape ends the process.
//
// Replication is simulated: there is one copy of each row, and Options.ReplicationLag and
// [Server.Replication] decide when each cluster of an instance sees a write, which clusters
// are up, and where an app profile routes. Storage type and node count of a cluster are
// stored and have no effect. IAM policies are stored; callers have no identity here, and
// testkit.WithIAM enforces policies for the clients of a test. Settings of tiered storage
// are stored and have no effect. SQL and its views are not implemented. [Support] lists
// the state of each RPC, filter, mutation and garbage-collection rule.
//
// Any instance exists as soon as a request names it, until the first CreateInstance in its
// project; instances that hold tables remain.
//
// What depends on the clock, such as a backup that is CREATING for a while
// (Options.AdminDelay) and then expires, is computed from stored times whenever it is
// read. Work that must happen at a time, such as deleting expired data or making an
// automated backup, is a due.Work (see due.go) in a queue: [Server.NextDue] returns the
// time of the next, and the owner of the Server calls [Server.RunDue].
//
// A request meets the guard in call.go, with faults, an observer and the headers of answers,
// and then these packages, in this order; each is below emu/internal:
//
//   - load: counts of the load on keys, and the hot tablets.
//   - resname, listfilter: names of resources, filters and orders of lists.
//   - replica: which cluster answers, and how far its replication is.
//   - view: which columns an authorized view shows.
//   - filter: the filter language; filter/re2 compares its expressions with RE2.
//   - rowchunks, wire, changes: rows, messages and change records as they are sent.
//   - bundle: schema bundles, which describe the protobufs in cells.
//   - admin, instancedef: the rules of tables, backups, policies, instances and clusters.
//   - later, due: state that a resource reaches at a time, and the queue of due work.
//   - refusal: every status that is returned, with the source of its text.
//
// In package emu, the RPC ReadRows is in read_rows.go, and so on; table and instance
// administration is in admin_*.go; limits are in limits.go.
//
//	db, err := engine.Open(engine.Options{})
//	...
//	srv, err := emu.New(emu.Options{DB: db})
//	...
//	client := btpb.NewBigtableClient(srv.Conn()) // or srv.Serve(listener)
package emu
