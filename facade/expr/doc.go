// Package expr parses and evaluates DynamoDB's four expression languages over items:
// condition and filter, key condition, projection and update.
//
// Each parser checks an expression in the same order as DynamoDB, and fails with
// DynamoDB's own text. The package does not know tables, keys or storage: functions that
// depend on a key schema take the names of the key attributes as arguments.
//
// No input causes a panic: sizes, operator counts and nesting are limited before a tree
// is built.
package expr
