// Package layout converts between DynamoDB items and Bigtable rows: a pair of inverse
// functions, compiled from a declarative YAML mapping.
//
// It is the only place that speaks both vocabularies. The facade, the loader
// and the verifier all go through it: one mapping, one code path.
//
// What it promises: an item that Place takes comes back from Items exactly,
// with the types of its values; the same item gives the same cells; items have
// no cell in common, except those of rules that share a column by a tag, or whose key
// a cell alone tells; a plan
// misses no item that matches. An item for which this cannot hold is refused with
// an Error that names the rule, the item and what was expected; a mapping file whose
// rules cannot be inverted is refused with a SpecError that names the line.
// The only losses are those that the file accepts (accept_loss) or asks for
// (garbage collection of a family); Fidelity lists them.
//
// What it does not do: it neither reads nor writes a Bigtable, and it knows nothing
// of transactions, revisions or time to live.
//
// # Sidecar
//
// If a value is not what the schema says, cells of FamilyTypes keep it exact.
// Their qualifiers have four forms:
//
//	a/<attribute>             type mark of an attribute, in a row of one item
//	c/<family>:<qualifier>    type mark of one cell
//	r/<family>:<qualifier>    name of the rule that wrote a shared column
//	i/<rule>/<captures>       presence of an item; its value, if any, is JSON of
//	                          attributes that have no cell
//
// Where a rule's items are versions of one another, a/<attribute> with the
// timestamp of a version and the value A says that the version lacks the
// attribute, for readers who take the newest cell of each column.
//
// A type mark is a tag byte (S N B O Z s n b M L: string, number, binary,
// boolean, null, the three sets, map, list), followed by j where the cell holds
// canonical DynamoDB JSON and by e for an empty map or list.
//
// # Files and packages
//
//   - place.go: the row key and the cells of an item; items.go: the way back.
//   - mapfile: the model of mapping files.
//   - rowkey: encoders and templates of row keys.
//   - codec: values of cells.
//   - lens: the terms of keys, places and plans, which the facade uses too.
//   - unmapped, secondary: rows of tables without a mapping file, and of indexes.
//   - loadnote: what a load stores about its mapping.
//   - rowtext: rows as text.
//   - edge: values that tests attack mappings with.
package layout
