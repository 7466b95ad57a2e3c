// Package request checks DynamoDB requests as far as is possible without a table, in the
// service's order and wording.
//
//   - validation.go: a [Validator] collects the constraints of the API model, then checks
//     the other members in order.
//   - wording.go: the error texts, by operation, in the older or the newer wording.
//   - regions.go: which wording a region uses for an operation, from regions.tsv.
//   - legacy.go: the parameters that expressions replaced. They are checked by separate
//     rules, then converted to expressions and evaluated as such. The limits of
//     expressions do not apply to them.
//   - tags.go: the tags of tables.
//   - globaltables.go: the operations on global tables of version 2017, for an account
//     that has none.
//
// Every error is a ValidationException unless its function says otherwise.
package request
