package mapping

import (
	"errors"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// IndexDef declares a secondary index. Local indexes have the base table's
// hash attribute as Key.Hash.
type IndexDef struct {
	Name string
	Key  KeySchema
	// KeysOnly projects the key attributes of index and table alone;
	// otherwise Include names the other attributes projected; both zero
	// projects all attributes.
	KeysOnly bool
	Include  []string
}

// Index is the layout of one secondary index: projected item to index row and
// back. One row holds one item. It is immutable and safe for concurrent use.
type Index struct {
	def  IndexDef
	base KeySchema
}

// DefaultIndex returns the layout of an index that no mapping file describes:
// an index row is one cell, FamilyItem with an empty qualifier, that holds the
// projected item. A cell with an empty value is a tombstone: no item.
func DefaultIndex(targetTable string, base KeySchema, def IndexDef) (*Index, error) {
	return nil, errors.ErrUnsupported
}

// Name is the index's name.
func (x *Index) Name() string { return x.def.Name }

// Def is what the index was declared as.
func (x *Index) Def() IndexDef { return x.def }

// TargetTable is the id of the Bigtable table that holds the index rows.
func (x *Index) TargetTable() string { return "" }

// Families are the families that the table needs, FamilyState not included.
func (x *Index) Families() []Family { return nil }

// OneCell reports whether an index row is one cell (the default layout), so
// that its newest version wins and a tombstone can replace it.
func (x *Index) OneCell() bool { return false }

// Contains reports whether an item is in the index: it has all the index's key
// attributes, with the declared types, none of them empty.
func (x *Index) Contains(item attr.Item) bool { return false }

// Project returns the attributes of item that the index holds. The values
// are shared with item.
func (x *Index) Project(item attr.Item) attr.Item { return nil }

// Place lays out the index entry of a base item. ok is false when the item is
// not in the index. Errors are *Error.
func (x *Index) Place(item attr.Item, timeMicros int64) (placed Placed, ok bool, err error) {
	return Placed{}, false, errors.ErrUnsupported
}

// Locate returns the index row of the item with the given key attributes of
// index and base table.
func (x *Index) Locate(keys attr.Item) (Location, error) { return Location{}, errors.ErrUnsupported }

// Items returns the projected item of an index row: one, or none for a
// tombstone or an empty row.
func (x *Index) Items(row Row) ([]attr.Item, error) { return nil, errors.ErrUnsupported }

// PlanQuery returns the index rows that can satisfy c, which speaks of the
// index's key. Rows come in index key order, ties by base key.
func (x *Index) PlanQuery(c KeyCondition) (Plan, error) { return Plan{}, errors.ErrUnsupported }

// PlanScan returns how the whole index is read.
func (x *Index) PlanScan() Plan { return Plan{Spans: []Span{{}}} }
