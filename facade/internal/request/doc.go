// Package request checks DynamoDB requests as far as possible without a table, in the
// service's order and words.
//
//   - validation.go: a [Validator] collects the constraints of the API model, then checks the
//     other members in order.
//   - wording.go: the error texts, by operation, in the older or the newer wording.
//   - regions.go: the layer that words them, by region and operation, from regions.tsv.
//   - legacy.go: the parameters from before expressions. They are checked by their own
//     rules, then converted to expressions and evaluated as such. The limits of expressions
//     do not apply to them.
//   - tags.go: the tags of tables.
//   - globaltables.go: the operations of global tables of 2017, for an account without global
//     tables.
//
// Every error is a ValidationException unless its function says otherwise.
package request
