// Package partiql parses DynamoDB's PartiQL statements and plans them: tokens with positions,
// a tree that includes unsupported expressions, errors in DynamoDB's order, and conditions,
// updates and key ranges in the form of the other operations. It does not access data.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-reference.html
package partiql
