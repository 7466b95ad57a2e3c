// Package awserr defines the errors of the DynamoDB endpoint, with their codes and texts.
//
// Every package of the endpoint rejects a request with an [*Error], so that [As] finds
// the response in any error. The response encoder, in facade/internal/wire, adds AWS's
// namespaces to the codes.
//
// [New] returns an error with any code, and [Validation] returns a ValidationException.
// Other functions, such as [ResourceNotFound], return the error that they are named
// after. These functions are in errors.go; the codes of errors and of canceled
// transactions are in codes.go.
//
// # Texts
//
// The constants with the prefix Msg are the texts. Most of them are formats. The comment
// after a text names its row in facade/testdata/messages.tsv, which lists the condition
// and the source of the text. Test cases carry the same number. "part of" marks the
// beginning, middle or end of the text in that row. "our own text" marks a text that the
// service does not have.
//
// Three packages define the texts of their parsers: attr for values (rows 50-61), expr for
// expressions (75-95, 100, 101, 103, 104, 123-131, 532-534), and facade/internal/partiql
// for statements.
package awserr
