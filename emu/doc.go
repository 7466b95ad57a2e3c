// Package emu serves the gRPC API of Cloud Bigtable over an engine.DB: data, tables and
// instances.
//
// A request is validated as a whole before it changes anything. A row mutation is atomic, and a
// read returns a row in its state at one moment. Cells have Bigtable's order (families by
// creation, qualifiers bytewise, timestamps descending), in which per-row limits and offsets
// count. Filters stream and hold at most one cell. Documented limits are enforced unless
// Options.Limits disables them. An RPC that is not implemented returns Unimplemented with its
// name. No request ends the process.
//
// Replication is simulated: there is one copy of each row. Options.ReplicationLag and
// [Server.Replication] decide when each cluster of an instance sees a write, which clusters
// are available, and where an app profile routes. Storage type, node count and tiered storage are
// stored without an effect. IAM policies are stored, but callers have no identity;
// testkit.WithIAM enforces policies for the clients of a test. SQL and its views are not
// implemented. [Support] lists the state of each RPC, filter, mutation and garbage-collection
// rule.
//
// Any instance exists as soon as a request names it, until the first CreateInstance in its
// project; instances with tables remain.
//
// State that depends on the clock, such as a backup that is CREATING for a while
// (Options.AdminDelay) and then expires, is computed from stored times at each read. Work at a
// time, such as deleting expired data or making an automated backup, is a due.Work
// in a queue: [Server.NextDue] returns the time of the next, and the owner of the Server calls
// [Server.RunDue].
//
// A request meets the guard in call.go, with faults, an observer and the headers of answers,
// and then these packages below emu/internal, in this order:
//
//   - load: counts of the load on keys, and the hot tablets.
//   - admin: the control plane, which serves all services but the data API: the RPCs that
//     change tables, instances, backups and policies, and the look-ups of the data API.
//   - resname, listfilter: names of resources, filters and orders of lists.
//   - replica: which cluster answers, and how far its replication is.
//   - view: which rows and columns an authorized view has; emu/target.go applies it.
//   - filter: the filter language; filter/re2 compares its expressions with RE2.
//   - rowchunks, wire, changes: rows, messages and change records as they are sent;
//     emu/change_stream_partitions.go splits and merges the partitions of a stream.
//   - bundle: schema bundles, which describe the protobufs in cells.
//   - instancedef: the rules of instances and clusters; state.go shows them as CREATING
//     until they are ready.
//   - pending, due: state that a resource reaches at a time, and the queue of due work.
//   - limits: the documented limits, and what each mode of Options.Limits refuses.
//   - refusal: every status that is returned, with the source of its text.
//
// The RPC ReadRows is in read_rows.go, and so on; table and instance administration is in
// internal/admin, by resource.
//
//	db, err := engine.Open(engine.Options{})
//	...
//	srv, err := emu.New(emu.Options{DB: db})
//	...
//	client := btpb.NewBigtableClient(srv.Conn()) // or srv.Serve(listener)
package emu
