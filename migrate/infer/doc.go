// Package infer finds a mapping for a table from its items, for users without one.
//
// What it promises: the mapping loses nothing that the items hold; each choice has its
// reason, and each guess a warning; the same input gives the same mapping; memory does
// not grow with the table.
//
// What it does not do: it writes nothing, and it does not model access patterns: one item
// becomes one row.
//
// It is exported for other packages of migrate, without a promise of stability; programs
// get its choices in a report.Report.
package infer
