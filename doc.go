// Package tabletop is the root of a Cloud Bigtable that runs in your process,
// with a DynamoDB door over the same rows, and of the tools that take DynamoDB
// data to Bigtable and prove the result. The package itself is empty; this is
// the map.
//
// # Packages
//
// To use, in Go tests:
//
//   - testkit starts a private server for a test, with the official client of
//     each side: testkit.Start(t).
//
// To use, in programs (the API that is kept stable):
//
//   - emu is the Bigtable gRPC server over an engine: emu.New.
//   - facade is the DynamoDB HTTP server over a connection to any Bigtable:
//     facade.New.
//   - facade/mapping lays items out as rows and rows back as items, as a YAML
//     file describes.
//   - fixtures reads DynamoDB exports, loads them through a mapping, and
//     compares the rows, the items and the answers of both doors.
//
// Inside:
//
//   - engine is the sorted storage on Pebble; exported for emu's callers, and
//     without a promise.
//   - facade/attr is DynamoDB's value model, facade/expr its four expression
//     languages.
//   - internal/inproc is the gRPC channel without a wire between facade and emu.
//   - internal/btclient is the one client of a Bigtable, internal/cells the rows
//     and cells that it reads and writes, internal/rowmerge what joins the pieces
//     in which they come.
//   - internal/clock is the time source.
//   - internal/lint holds the module's rules as tests, conformance the official
//     clients against a running server.
//   - internal/hllpp is the sketch of HLL families; internal/model and
//     internal/metamorphic compare the engine with a naive one.
//   - cmd/tabletop is the binary, cmd/cbtemulator a drop-in for Google's
//     emulator of that name.
//
// # Layers
//
// An arrow points at what a package may import; tests enforce it.
//
//	engine <- emu <- testkit -> facade -> facade/{attr,expr,mapping} <- fixtures
//	                                 cmd/tabletop -> engine, emu, facade, fixtures
//
// The facade never sees an engine: it does what any Bigtable can do, over any
// connection. So what passes here is not owed to a shortcut that production
// lacks.
//
// # Where things are
//
// A file is named after what a reader looks up. The RPC ReadRows is in
// emu/read_rows.go, an operation of table administration in emu/admin_*.go, a
// row filter in emu/internal/filter, the DynamoDB operation PutItem in
// facade/op_put_item.go. Limits are in limits.go, error texts in status.go and
// errors.go. Tests have the same stem, text cases are in testdata/<stem>.
//
// What is supported stands in emu.Support and facade.Operations, and in the
// README, which is generated from them.
package tabletop

//go:generate go test ./internal/lint -count=1 -run TestReadmeSupportTable -update
