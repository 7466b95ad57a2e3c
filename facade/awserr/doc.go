// Package awserr defines the errors of the DynamoDB endpoint: their codes and their texts.
//
// Every package of the endpoint refuses a request with an [*Error], so that [As] finds the
// response to an error wherever it comes from. The encoder of responses, in
// facade/internal/wire, adds the namespaces of AWS to the codes.
//
// [New] makes an error of a code, [Validation] a ValidationException; [ResourceNotFound] and
// others make those of their names.
//
// # Texts
//
// The constants Msg... are the texts, most of them formats. The number behind a text is its
// row in facade/testdata/messages.tsv, which names the condition of the text and who has
// seen it. Test cases carry the same number. "part of" marks the beginning, the middle or
// the end of such a text. "ours" marks a text that the service does not have.
//
// Three packages keep the texts of their own parsers: attr those of values (50-61), expr
// those of expressions (75-95, 100, 101, 103, 104, 123b-131), and
// facade/internal/partiql those of statements.
package awserr
