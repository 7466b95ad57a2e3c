// Package partiql parses DynamoDB's PartiQL statements and plans them. It produces tokens
// with positions, a tree that includes unsupported expressions, and errors in DynamoDB's
// order. Conditions, updates and key ranges have the form that the other operations use.
// The package does not access data.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-reference.html
package partiql
