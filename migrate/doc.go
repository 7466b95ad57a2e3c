// Package migrate converts DynamoDB data to Bigtable rows through a mapping, and verifies
// the result.
//
// [Load] writes a source through the mapping. [Verify] also reads the rows back and compares cell by
// cell and item by item, or only reads and compares stored rows. A fixture directory also has golden
// rows, and access patterns that run on both endpoints: as a DynamoDB request and as a native Bigtable
// read. [Lint] applies the rules of package lint, [MakePlan] describes a load, [Diff] compares two
// sides, [Reverse] writes rows as an export, [VerifyLive] compares a live table that [Follow] follows. Their result is a [report.Report]. Package infer finds a
// mapping if none is given.
//
// A damaged input is refused with a [source.Error] before anything is written, and nothing is dropped
// silently. Memory depends on the largest item, row and batch, and on a fixed allowance (sources of up
// to 20 MiB of JSON are decoded once and held), never on the table. The same input gives the same rows,
// byte for byte. If a family's garbage collection would remove cells of the items, that is a difference
// unless the mapping accepts it.
//
// The package starts no server: it takes a connection to any Bigtable. It refuses network sources and
// binary Ion, with a hint. The package stream reads the changes of a live table through the clients of
// its caller, apart from source, which reads files.
//
// A load and a verification meet these packages, in this order:
//
//   - source: exports and files of items, read in bounded memory.
//   - stream: the change records of a live table, from DynamoDB Streams.
//   - infer: a mapping where none is given.
//   - lint: the rules of the design guides.
//   - internal/table: the tables as data: source, mapping, and what they must hold.
//   - internal/parts: the folder of loads and verifications in parts.
//   - internal/load: the load: write.go writes the rows, checkpoint.go saves its progress.
//   - internal/pace: how many rows a second are written and read.
//   - internal/compare: the comparison: it reads the rows back; differ.go finds cells that differ.
//   - internal/settled: the comparison of a live table with the rows that a follower writes.
//   - internal/golden: the golden rows of fixtures.
//   - internal/endpoints: requests through both endpoints.
//   - internal/differential: random items and requests of a mapping.
//   - report: the result, as text, JSON and HTML.
//   - internal/tabletsim: a model of tablets, to which a load writes in virtual time.
//   - internal/exporttest: exports for tests, intact and damaged.
package migrate
