// Package table describes the tables of a migration before anything is written: their
// source, mapping, target and options.
//
// A [Run] is a source with all its tables, and a [Job] is one of these tables. [Prepare]
// finds or infers the mapping of each table, reads the whole source, and sums up the expected
// contents of the Bigtable tables. An item that cannot be laid out, or that collides with
// another one in a cell, is an error, a dead letter or a failure in the report. [Bigtable] is
// a client of the target.
//
// Memory use is bounded by the largest item plus a fixed allowance, and the same input
// gives the same rows and the same sums.
//
// The package does not write rows (package load does) or compare them (package compare
// does).
package table
