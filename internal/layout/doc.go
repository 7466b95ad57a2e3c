// Package layout converts between DynamoDB items and Bigtable rows by a pair of inverse functions,
// compiled from a declarative YAML mapping.
//
// It is the only package that uses both vocabularies. The facade, the loader and the verifier share
// it, so a mapping has the same effect in all of them.
//
// Its guarantees:
//   - Items restores every item that Place accepts, with the types of its values.
//   - The same item always gives the same cells.
//   - No two items share cells, except under rules that share a column by a tag, or whose key only
//     a cell determines.
//   - A plan covers every matching item.
//   - An item that would violate these guarantees is rejected with an Error that names the rule,
//     the item and the expected value. A mapping file whose rules cannot be inverted is rejected
//     with a maperr.SpecError that names the line.
//   - The only losses are those that the file accepts (accept_loss) or requests (garbage
//     collection of a family); Fidelity lists them.
//
// It does not read or write a Bigtable, and does not deal with transactions, revisions or the
// deletion of expired items.
//
// # Sidecar
//
// Cells of FamilyTypes preserve values that do not match the schema. Their qualifiers have
// four forms:
//
//	a/<attribute>             type mark of an attribute, in a row of one item
//	c/<family>:<qualifier>    type mark of one cell
//	r/<family>:<qualifier>    name of the rule that wrote a shared column
//	i/<rule>/<captures>       presence of an item; its value, if any, is JSON of
//	                          attributes that have no cell, and of the names of those
//	                          that the item lacks although cells imply them
//
// If a rule's items are versions of one another, a cell a/<attribute> with the timestamp of a
// version and the value A records that the version lacks the attribute. Readers of the newest cell
// of each column need it.
//
// A type mark is a tag byte (S N B O Z s n b M L: string, number, binary, boolean, null, the
// three sets, map, list). A j follows if the cell holds canonical DynamoDB JSON, and an e for
// an empty map or list.
//
// # Files and packages
//
//   - place.go: the row key and the cells of an item; items.go: the inverse.
//   - derive.go: attributes without a cell, which templates give.
//   - mapfile: the model of mapping files.
//   - rowkey: encoders and templates of row keys.
//   - codec: values of cells.
//   - lens: the terms of keys, places and plans, which the facade uses too.
//   - unmapped: the rows of tables without a mapping file.
//   - secondary: the rows of indexes.
//   - loadnote: the record of a load about its mapping.
//   - migrationstate: the records of a migration from a live table.
//   - rowtext: rows as text.
//   - edge: random values with which tests attack mappings and codecs; no mapping needs it.
package layout
