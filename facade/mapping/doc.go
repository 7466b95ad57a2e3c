// Package mapping converts items of a DynamoDB table to rows of a Bigtable table and back,
// as a mapping file describes: a YAML file of rules, each a pair of inverse functions.
//
// What it promises: an item that Place takes comes back from Items exactly,
// with the types of its values; the same item gives the same cells; an item for
// which this cannot hold is refused with an [Error] that names the rule, the item
// and what was expected. A file whose rules cannot be inverted is refused with a
// [SpecError] that names the line. The only losses are those that the file
// accepts (accept_loss) or asks for (garbage collection of a family);
// [Mapping.Fidelity] lists them.
//
// What it does not do: it neither reads nor writes a Bigtable, and its mappings
// are not built in Go: the YAML is the contract, which docs/mapping.md describes
// and [JSONSchema] checks. Package facade serves a table through a mapping,
// package migrate loads and verifies data through one.
package mapping
