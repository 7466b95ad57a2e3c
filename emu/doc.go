// Package emu serves the gRPC API of Cloud Bigtable over an engine.DB: data, tables and
// instances.
//
// A request is validated as a whole before it changes anything. A row mutation is atomic, and a
// read returns a row in its state at one moment. Cells have Bigtable's order (families by
// creation, qualifiers bytewise, timestamps descending), in which per-row limits and offsets
// count. Filters stream and hold at most one cell. Documented limits are enforced unless
// Options.Limits disables them. An unimplemented RPC returns Unimplemented with its name. No
// request ends the process.
//
// Replication is simulated: there is one copy of each row. Options.ReplicationLag and
// [Server.Replication] decide when each cluster of an instance sees a write, which clusters
// are available, and where an app profile routes. Storage type, node count and tiered storage are
// stored without an effect. IAM policies are stored, but callers have no identity;
// testkit.WithIAM enforces policies for the clients of a test. SQL and its views are not
// implemented. [Support] lists the state of each RPC, filter, mutation and garbage-collection
// rule.
//
// Every instance exists implicitly until the first CreateInstance in its project; afterwards,
// instances with tables remain.
//
// State that depends on the clock, such as the state of a backup, is computed from stored times
// at each read. Scheduled work, such as deleting expired data or making an automated backup, is
// queued as due.Work: [Server.NextDue] returns the time of the next work, and the owner of the
// Server calls [Server.RunDue].
//
// A request passes the guard in call.go, which adds faults, the observer and response headers.
// These packages in emu/internal then process it, in this order:
//
//   - load: counts of the load on keys, and the hot tablets.
//   - admin: the control plane. It serves the admin RPCs for tables, instances, backups and
//     policies, and finds resources for the data API.
//   - resname, listfilter: resource names; filters and orders of list requests.
//   - replica: routing to clusters, and the replication state of each.
//   - view: the rows and columns of an authorized view; target.go applies it.
//   - filter: the filter language; regexp.go matches its regular expressions, and filter/re2
//     compares them with RE2.
//   - rowchunks, wire, changes: encoding of rows, messages and change records;
//     change_stream_partitions.go splits and merges the partitions of a stream.
//   - bundle: schema bundles, which describe the protobufs in cells.
//   - instancedef: the rules of instances and clusters.
//   - pending, due: resources with a future state, and the queue of due work.
//   - limits: the documented limits, and the modes of Options.Limits.
//   - refusal: every returned status, with the source of its text.
//
// Some have one importer. admin sees no rows of data, and the data API sees only its look-ups.
// rowchunks and wire encode messages, and know no server; listfilter and bundle read languages,
// and know nothing else of the module.
//
// Each RPC of the data API has its own file: ReadRows is in read_rows.go. Table and instance
// administration is in internal/admin, by resource.
//
//	db, err := engine.Open(engine.Options{})
//	...
//	srv, err := emu.New(emu.Options{DB: db})
//	...
//	client := btpb.NewBigtableClient(srv.Conn()) // or srv.Serve(listener)
package emu
