// Package awserr defines the errors of the DynamoDB endpoint: their codes and their texts.
//
// Every package of the endpoint rejects a request with an [*Error], so that [As] finds the
// response in any error. The response encoder, in facade/internal/wire, adds the namespaces
// of AWS to the codes.
//
// [New] returns an error with a code, [Validation] a ValidationException; [ResourceNotFound]
// and others return the error they are named after. errors.go has these functions, codes.go
// the codes of errors and of cancelled transactions.
//
// # Texts
//
// The constants Msg... are the texts, most of them formats. The number after a text is its
// row in facade/testdata/messages.tsv, which has the condition and the source of the text.
// Test cases carry the same number. "part of" marks the beginning, middle or end of such a
// text. "ours" marks a text that the service does not have.
//
// Three packages keep the texts of their own parsers: attr for values (50-61), expr for
// expressions (75-95, 100, 101, 103, 104, 123b-131), and facade/internal/partiql for
// statements.
package awserr
