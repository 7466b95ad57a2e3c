// Package migrate converts DynamoDB data to Bigtable rows through a mapping, and verifies
// the result.
//
// [Load] writes a source as the mapping says; [Verify] also reads everything
// back and compares it cell by cell and item by item, or only reads and compares what
// is stored. A fixture directory also has golden rows, and access patterns that are
// run through both doors: as a DynamoDB request and as a native Bigtable read. [Lint]
// judges by the rules of package lint, [MakePlan] tells what a load would do, [Diff]
// compares two sides, [Reverse] writes rows as an export. What they find is a
// [report.Report].
// Package infer finds a mapping where none is given.
//
// What it promises: a damaged input is refused with a [source.Error] before
// anything is written; nothing is dropped silently; memory is bounded by the
// largest item, row and batch, and by a fixed allowance (sources of up to 20 MiB
// of JSON are decoded once and held), never by the table; the same input gives
// the same rows, byte for byte. What a family's garbage collection would remove
// from the items is a difference, unless the mapping accepts it.
//
// What it does not do: it starts no server (it takes a connection to any
// Bigtable), it reads no network source, and no binary Ion: both are
// refused with a hint.
//
// A load and a verification meet these packages, in this order:
//
//   - source: exports and files of items, read in bounded memory.
//   - infer: a mapping where none is given.
//   - lint: the rules of the design guides.
//   - internal/table: the tables as data: source, mapping, and what they must hold.
//   - internal/parts: the folder of loads and verifications in parts.
//   - internal/load: the load: it writes the rows.
//   - internal/pace: how many rows a second are written and read.
//   - internal/compare: the comparison: it reads the rows back.
//   - internal/golden: the golden rows of fixtures.
//   - internal/doors: requests through both endpoints.
//   - internal/differential: random items and requests of a mapping.
//   - report: the result, as text, JSON and HTML.
//   - internal/tabletsim: a model of tablets, to which a load writes in virtual time.
//   - internal/exporttest: exports for tests, intact and damaged.
package migrate
