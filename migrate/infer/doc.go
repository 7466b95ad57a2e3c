// Package infer finds a mapping for a table from its items, where nobody wrote one.
//
// What it promises: the mapping loses nothing that the items hold; each choice comes
// with its reason, and what is a guess with a warning; the same input gives the same
// mapping; memory does not grow with the table.
//
// What it does not do: it writes nothing, and it makes no model of access patterns:
// one item becomes one row.
//
// It is exported for the packages beside it, without a promise of stability; programs
// get its choices in a report.Report.
package infer
