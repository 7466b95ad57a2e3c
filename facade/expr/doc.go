// Package expr parses and evaluates DynamoDB's expressions over items: conditions and
// filters, key conditions, search conditions, projections and updates. Callers can also
// build conditions and updates without a text.
//
// Each parser checks an expression in the same order as DynamoDB, and fails with
// DynamoDB's own text. The package does not know tables or storage: functions that depend
// on a key schema take the key attributes as arguments.
//
// No input causes a panic: the parsers limit the size of a text, and thereby the nesting,
// and the number of operators.
package expr
