// Package layout is the lens between DynamoDB items and Bigtable rows: a pair
// of inverse functions, compiled from a declarative YAML mapping.
//
// It is the only place that speaks both vocabularies. The facade, the loader
// and the verifier all go through it: one mapping, one code path.
//
// What it promises: an item that Place takes comes back from Items exactly,
// with the types of its values; the same item gives the same cells; items have
// no cell in common, except those of rules that share a column by a tag; a plan
// misses no item that matches. What cannot be laid out so is refused with an
// Error that names the rule, the item and what was expected; a mapping file whose
// rules cannot be inverted is refused with a SpecError that names the line.
// The only losses are those that the file accepts (accept_loss) or asks for
// (garbage collection of a family); Fidelity lists them.
//
// What it does not do: it reads and writes no Bigtable, and it knows nothing
// of transactions, revisions or time to live.
//
// # Sidecar
//
// Where a value is not what the schema says, cells of FamilyTypes keep it
// exact. Their qualifiers have four forms:
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
package layout

import (
	"bytes"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/cells"
)

// Reserved families. A mapping cannot declare them for its own cells.
const (
	// FamilyTypes holds the type sidecar: `a/…`, `c/…`, `r/…`, `i/…` cells.
	FamilyTypes = "_t"
	// FamilyState holds the facade's bookkeeping. It is never part of an
	// item: Place does not write it, Items does not read it.
	FamilyState = "_f"
	// FamilyTombstone holds, in tables of indexes, what the facade leaves where
	// an entry was, until garbage collection takes it. A row with nothing else
	// is none.
	FamilyTombstone = "_x"
)

// FamilyItem is the family of the default layout, and of index rows.
const FamilyItem = "a"

// KeyAttr is a key attribute: its name and its type, S, N or B.
type KeyAttr struct {
	Name string    `yaml:"name,required,filled" expect:"an attribute name"`
	Type attr.Type `yaml:"type,required"`
}

// KeySchema is the primary key of a table or the key of an index. Range.Name
// is "" where there is no sort key.
type KeySchema struct {
	Hash  KeyAttr `yaml:"hash,required"`
	Range KeyAttr `yaml:"range"`
}

type (
	// Cell is a cell of a row.
	Cell = cells.Cell
	// Row is what a mapping makes of items, and items of.
	Row = cells.Row
	// Span is a range of row keys.
	Span = cells.Span
)

// Extent is a set of cells inside one row: those of Family whose qualifier
// equals Qualifier (or, with Prefix, begins with it: Prefix with an empty
// Qualifier is the whole family) and whose timestamp is in [MinTime, MaxTime),
// in microseconds; MaxTime 0 has no bound.
type Extent struct {
	Family           string
	Qualifier        []byte
	Prefix           bool
	MinTime, MaxTime int64
}

// Covers reports whether c is one of the extent's cells.
func (e Extent) Covers(c Cell) bool {
	return e.Family == c.Family &&
		(bytes.Equal(e.Qualifier, c.Qualifier) || e.Prefix && bytes.HasPrefix(c.Qualifier, e.Qualifier)) &&
		c.Timestamp >= e.MinTime && (e.MaxTime == 0 || c.Timestamp < e.MaxTime)
}

// Location is where an item of a given key lives, or would live.
type Location struct {
	Rule string // name of the rule
	Row  []byte
	// Own are the extents that only this item's cells can occupy: clearing
	// them removes the item and nothing of its siblings in the row. Only items
	// of rules that share a column by a tag have extents in common: they
	// cannot both be there (see Mapping.Collision). Not to be changed.
	Own []Extent
	// Shared says that Own has such columns.
	Shared bool
	// Derived says that the item has no cells of its own: it is a copy of the
	// highest version of an item (Rule.Latest), whose versions have the cells
	// in Own. It is read like others, and never written.
	Derived bool
}

// Placed is an item laid out as cells.
type Placed struct {
	Location
	Cells      []Cell // all within Own
	Exceptions int    // how many of them are sidecar cells
}

// RangeOp is the operator of a sort-key condition.
type RangeOp uint8

// The operators that a sort-key condition may use.
const (
	NoRange      RangeOp = iota
	Equal                // = A
	Less                 // < A
	LessEqual            // <= A
	Greater              // > A
	GreaterEqual         // >= A
	Between              // A <= x <= B
	BeginsWith           // begins_with(x, A)
)

// KeyCondition selects items of one partition.
type KeyCondition struct {
	Hash attr.Value
	Op   RangeOp
	A, B attr.Value
}

// Order says how the items of a Plan come out when its spans are read in
// ascending row order and the items of each row are sorted by sort key.
type Order uint8

// The orders of a plan.
const (
	// SameOrder: ascending by sort key; read the spans reversed for descending.
	SameOrder Order = iota
	// ReversedOrder: descending by sort key.
	ReversedOrder
	// MergeOrder: each span alone is ascending; merge them.
	MergeOrder
	// MergeReversedOrder: each span alone is descending; merge them.
	MergeReversedOrder
	// SortOrder: no order; gather the items of the partition and sort them.
	SortOrder
)

// Plan is how the items that satisfy a condition are read: the rows that can
// hold them, optionally only some extents of these rows, and the order they
// come in. What is read may hold other items too: the caller keeps those that
// match the condition.
type Plan struct {
	Spans   []Span   // sorted, disjoint
	Extents []Extent // nil: whole rows
	Order   Order
}

// Limits of Bigtable. Source: google/bigtable/v2/data.proto (row key,
// qualifier) and bigtable_table_admin.proto (family name).
const (
	MaxRowKeyBytes     = 4096
	MaxQualifierBytes  = 16384
	MaxFamilyNameBytes = 64
)
