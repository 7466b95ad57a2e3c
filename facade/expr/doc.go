// Package expr parses and evaluates DynamoDB's four expression languages over
// items: condition and filter, key condition, projection and update.
//
// Each parser checks an expression in the same order as DynamoDB and fails with
// DynamoDB's own text. Nothing here knows tables, keys or storage; what depends
// on a key schema takes the names of the key attributes.
//
// No input panics, whatever its shape: sizes, operator counts and nesting are
// bounded before anything is built from them.
package expr
