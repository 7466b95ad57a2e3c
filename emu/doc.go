// Package emu serves the gRPC API of Cloud Bigtable over an engine.DB: data, tables and
// instances.
//
// A request is validated as a whole before it changes anything. A row mutation is atomic, and a
// read returns a row in its state at one moment. Cells are in Bigtable's order: families by
// creation, qualifiers bytewise, timestamps descending. Per-row limits and offsets count in this
// order. Filters process a stream of cells and hold at most one cell in memory. Documented limits
// are enforced unless Options.Limits disables them. An unimplemented RPC returns Unimplemented with
// its name. No request can crash the process.
//
// Replication is simulated: there is one copy of each row. Options.ReplicationLag and
// [Server.Replication] decide when each cluster of an instance sees a write, which clusters are
// available, and where an app profile routes. Storage type, node count and tiered storage are
// stored but have no effect. IAM policies are stored, but callers have no identity; testkit.WithIAM
// enforces policies for the clients of a test. [Support]
// lists the state of each RPC, filter, mutation and garbage-collection rule.
//
// Every instance of a project exists implicitly until the first CreateInstance in that project.
// From then on, implicit instances exist only if they have tables.
//
// State that depends on the clock, such as the state of a backup, is computed from stored times at
// each read. Scheduled work, such as deleting expired data or making an automated backup, is queued
// as due.Work. [Server.NextDue] returns the time of the next item, and the owner of the Server
// calls [Server.RunDue] then.
//
// A request first passes the guard in call.go, which applies faults, calls the observer and adds
// response headers. These packages in emu/internal then process it, in this order:
//
//   - load: counts the load on keys, and computes hot tablets.
//   - admin: the control plane. It serves the admin RPCs for tables, instances, backups and
//     policies, and finds resources for the data API.
//   - resname, listfilter: parse resource names, and the filters and orders of list requests.
//   - replica: routes requests to clusters, and computes the replication state of each.
//   - view: decides which rows and columns an authorized view contains; target.go applies it.
//   - filter: implements the filter language; regexp.go matches its regular expressions, and
//     filter/re2 compares them with RE2.
//   - rowchunks, wire, changes: encode rows, messages and change records;
//     change_stream_partitions.go splits and merges the partitions of a stream.
//   - sql/syntax, sql/analysis: parse a query of GoogleSQL, and make its plan; sql/plan defines
//     plans, and sql/execution runs them over rows.
//   - sql/value, sql/function: implement the types and values of SQL, its functions and operators.
//   - materialized: keeps the rows of materialized views, from the journals of their tables.
//   - rowkey: splits row keys by a row key schema, and encodes the row keys of materialized views.
//   - bundle: checks schema bundles, which describe the protobufs in cells.
//   - instancedef: checks the definitions of instances and clusters.
//   - pending, due: store resources with a future state, and queue due work.
//   - limits: defines the documented limits, and the modes of Options.Limits.
//   - refusal: creates every error status, and names the source of its text.
//
// Some of these packages have a single importer. admin never reads rows of tables, and the data
// API only uses its look-ups. rowchunks and wire encode messages and do not know the server.
// listfilter, bundle and the packages of sql each parse or run a language and do not depend on the rest of
// the module.
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
