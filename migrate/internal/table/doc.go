// Package table describes the tables of a migration before anything is written: their
// source, mapping, target and options.
//
// A [Run] is a source with all its tables, a [Job] is one of them. [Prepare] finds or
// infers the mapping of each table, reads the whole source, and sums up the expected
// contents of the Bigtable tables. Items that cannot be laid out, or that meet in one cell,
// are an error, a dead letter or a failure of the report. [Bigtable] is the client of the
// target.
//
// What it promises: memory is bounded by the largest item and by a fixed allowance, and
// the same input gives the same rows and the same sums.
//
// What it does not do: it writes no rows (package load does) and compares none (package
// compare does).
package table
