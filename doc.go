// Package tabletop is the root of a Cloud Bigtable that runs in your process, of a
// DynamoDB endpoint over the same rows, and of the tools that move DynamoDB data to
// Bigtable and verify it. The package itself is empty.
//
// # Use
//
//   - In Go tests: testkit.Start(t) starts a private server, with the official clients;
//     btkit.Start(t) is lighter, for Bigtable alone.
//   - In every other language: cmd/tabletop is the program; cmd/cbtemulator replaces
//     Google's emulator of that name.
//   - In programs, as a stable API: emu.New, facade.New, mapping.Load, migrate.Load,
//     migrate.Verify, fixtures.Open.
//
// # Map
//
// The doc.go of each folder lists the packages below it, in the order in which a request
// meets them.
//
//   - cells defines the rows and cells of Bigtable for all layers above a connection.
//   - engine stores rows and cells on Pebble.
//   - emu serves the gRPC API of Bigtable over an engine.
//   - facade serves the DynamoDB API over any Bigtable. facade/attr has its values,
//     facade/expr its expressions, facade/awserr its errors; facade/mapping reads and
//     applies a mapping file, and facade/maperr has its errors.
//   - migrate loads and verifies data, and follows live tables. migrate/source reads exports,
//     migrate/stream the changes of a live table; migrate/infer finds mappings, migrate/lint
//     checks tables and mappings, migrate/report shows results, migrate/seed fills tables of a new server.
//   - fixtures has the fixture folders that ship with the project.
//   - testkit runs both endpoints inside a Go test, testkit/btkit Bigtable alone.
//   - control serves the HTTP API that controls a running server, and control/console its pages
//     and forms; control/lab is a Bigtable with a clock, faults and snapshots, and
//     control/lab/dynamodb its endpoint.
//   - docs embeds the documents, for the command help and for the console.
//   - internal has shared packages; internal/layout implements mappings,
//     and internal/test has the test machinery.
//   - conformance, a separate module, tests the program with official clients.
//   - tools/dist, a separate module, builds the files of a release.
//   - examples has sample projects of users, in several languages; that in Go is a module.
//
// An arrow points from a package to its allowed imports; internal/test/lint enforces it.
//
//	engine <- emu <- control/lab <- testkit/btkit <- testkit -> migrate -> facade -> facade/{attr,awserr,expr,maperr,mapping}
//	testkit, migrate -> fixtures -> internal/layout <- facade/mapping
//	cmd/tabletop -> control -> control/lab, migrate, fixtures, docs
//
// The facade never sees an engine: it uses only what any Bigtable can do.
//
// # Where things are
//
//   - How to add a flag, an RPC, an operation, a lint rule, a path of the control API or a rule of
//     the module is in CONTRIBUTING.md, and when to raise the version of the stored format.
//   - The RPC ReadRows is in emu/read_rows.go, an admin RPC in emu/internal/admin,
//     the operation PutItem in facade/op_put_item.go (operations on backups, tags, TTL and
//     the like share a file), a flag in cmd/tabletop/<command>.go, those of the DynamoDB
//     endpoint in cmd/tabletop/dynamodb.go.
//   - The rows of an item are in internal/layout with a mapping, in internal/layout/unmapped without
//     one. Signatures of requests are checked in facade/internal/wire/signature.go.
//   - Limits are in emu/internal/limits and in facade/limits.go, the size of an item in
//     facade/internal/tablespec/keyrules.go. The file of a resource in emu/internal/admin
//     checks its id: instance.go that of an instance.
//   - Bigtable's statuses are in emu/internal/refusal, DynamoDB's errors, codes and texts in
//     facade/awserr.
//   - emu/testdata/traps.tsv and facade/testdata/messages.tsv list rules and texts of
//     the services, with their tests.
//   - emu.Support, facade.Operations and docs/support.md list the supported RPCs and operations.
package tabletop

//go:generate go test ./cmd/tabletop -count=1 -run TestSupportTables -update.support
