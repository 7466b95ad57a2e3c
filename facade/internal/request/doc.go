// Package request checks what a DynamoDB request may contain, in the service's order and
// words, without looking at a table.
//
//   - validation.go: a [Validator] gathers the constraints of the API model, then checks the
//     rest of the members in order.
//   - wording.go: the texts of what is wrong, by operation, in the older or the newer wording.
//   - legacy.go: the parameters from before expressions. They are checked by their own
//     rules and then written as expressions, so that there is one evaluator; the limits of
//     expressions do not hold for them.
//   - tags.go: the tags of tables.
//   - globaltables.go: the operations of global tables of 2017, which answer as for an
//     account that has none.
//
// Every error is a ValidationException unless its function says otherwise.
package request
