// Package mapping converts items of a DynamoDB table to rows of a Bigtable table and
// back. A mapping file describes the conversion. It is YAML with rules, each of which is
// a pair of inverse functions.
//
// Items returns every item that Place accepts unchanged, including the types of its
// values. Equal items give equal cells. Place rejects any other item with a
// [maperr.Error] that names the rule, the item and the expected value. A file whose rules
// cannot be inverted is rejected with a [maperr.SpecError] that names the line. The only
// losses are those that the file accepts (accept_loss) or requests (garbage collection of
// a family); [Mapping.Fidelity] lists them.
//
// The package does not access a Bigtable. Mappings are not built in Go: the YAML is the
// contract, which docs/mapping.md describes and [JSONSchema] checks. Package facade
// serves a table through a mapping, and package migrate loads and verifies data through
// one.
package mapping
