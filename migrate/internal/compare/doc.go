// Package compare reads the tables of a migration back and compares them with its source.
//
// A [Comparer] compares sums over cells and items first. Only if they differ, it sorts
// the expected rows on disk and compares both sides row by row (differ.go), to name the
// rule, the item and the cell of each difference. It also checks families, the schema
// table and golden files, and reports what garbage collection would remove. It compares
// the tables again after garbage collection and after a restart. A verification in parts
// ends with [Finish].
//
// Memory use is bounded by a fixed allowance, even for rows that many items share
// ([Groups]).
//
// The package does not write anything, and it does not open a DynamoDB endpoint: package
// endpoints does.
package compare
