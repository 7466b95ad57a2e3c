// Package infer finds a mapping for a table from its items, for users who have no
// mapping.
//
// The mapping preserves everything that the items hold, and the same input always gives
// the same mapping. Each choice comes with its reason, and each guess with a warning.
// Memory use does not grow with the table.
//
// The package does not write anything, and it does not model access patterns: one item
// becomes one row.
//
// It is exported for other packages of migrate, without a promise of stability. Programs
// get its choices in a report.Report.
package infer
