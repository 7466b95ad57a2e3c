// Package migrate converts DynamoDB data to Bigtable rows through a mapping, and verifies
// the result.
//
// [Load] writes a source through the mapping. [Verify] also reads the rows back and
// compares cell by cell and item by item, or only reads and compares stored rows. A
// fixture directory also has golden rows and access patterns. Each pattern runs as a
// DynamoDB request and as a native Bigtable read. [Lint] applies the rules of package
// lint, [MakePlan] describes a load, [Diff] compares two sides, [Reverse] writes rows as
// an export. Their result is a [report.Report]. Package infer finds a mapping if none is
// given.
//
// A damaged input is rejected with a [source.Error] before anything is written, and
// nothing is dropped silently. Memory use depends on the largest item, row and batch plus
// a fixed allowance, never on the size of the table. (Sources of up to 20 MiB of JSON are
// decoded once and kept in memory.) The same input gives the same rows, byte for byte.
// Cells of the items that garbage collection would remove are a difference, unless the
// mapping accepts their loss.
//
// The package does not start a server: callers pass a connection to any Bigtable. It
// rejects network sources and binary Ion, with a hint. Package stream reads a live table
// through the clients of its caller; package source reads files.
//
// [Follow] applies the changes of live tables to loaded ones, and [Status] reads its
// state. [VerifyLive] compares both sides while writes continue, and [EndFollow] ends the
// migration.
//
// A load or verification passes through these packages, in this order:
//
//   - source: reads exports and files of items in bounded memory.
//   - stream: reads the change records of a live table from DynamoDB Streams.
//   - internal/kinesis: reads those of a Kinesis data stream from a folder.
//   - infer: finds a mapping if none is given.
//   - lint: checks the rules of the design guides.
//   - internal/table: describes the tables: source, mapping, and expected contents.
//   - internal/parts: stores the results of loads and verifications in parts.
//   - internal/load: loads: write.go writes the rows, and checkpoint.go saves the
//     progress.
//   - internal/apply: brings changes of items into rows and index entries.
//   - internal/follow: follows a live table: lease, checkpoints, dead letters.
//   - internal/settled: compares a live table with its target while writes continue.
//   - internal/statetable: reads and writes the table _migration_state.
//   - internal/pace: limits the rows read and written per second.
//   - internal/compare: reads the rows back and compares them; differ.go finds the cells
//     that differ.
//   - internal/golden: reads and writes the golden rows of fixtures.
//   - internal/endpoints: sends requests through both endpoints.
//   - internal/differential: tests a mapping with random items and requests. It runs
//     loads, comparisons and endpoints as another user would.
//   - seed: creates and fills DynamoDB tables for an endpoint that starts.
//   - report: holds the result, and writes it as text, JSON and HTML.
//   - internal/tabletsim: models tablets, to which a load writes in virtual time.
//   - internal/exporttest: builds exports for tests, intact and damaged.
package migrate
