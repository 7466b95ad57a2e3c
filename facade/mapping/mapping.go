package mapping

import (
	"errors"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// Mapping is a compiled layout of one DynamoDB table: item to row and back.
// It is immutable and safe for concurrent use.
type Mapping struct {
	spec *Spec
	key  KeySchema
}

// Load parses and compiles the mapping file src; file names it in errors,
// which read `file:line:column: path: what; expected …`.
func Load(file string, src []byte) (*Mapping, error) {
	spec, err := Parse(file, src)
	if err != nil {
		return nil, err
	}
	return Compile(spec)
}

// Compile checks that every rule of spec can be inverted and builds the
// mapping. Errors are *SpecError; where spec came from Parse they have its
// positions.
func Compile(spec *Spec) (*Mapping, error) { return nil, errors.ErrUnsupported }

// Spec returns what the mapping was compiled from, nil for a default layout.
// It is shared: do not change it.
func (m *Mapping) Spec() *Spec { return m.spec }

// SourceTable is the name of the DynamoDB table, "" where the file has none.
func (m *Mapping) SourceTable() string { return "" }

// TargetTable is the id of the Bigtable table.
func (m *Mapping) TargetTable() string { return "" }

// Key is the primary key of the table.
func (m *Mapping) Key() KeySchema { return m.key }

// Families are the families that the Bigtable table needs, `_t` included when
// declared, `_f` not, in declared order.
func (m *Mapping) Families() []Family { return nil }

// ImportTimeMicros is the constant timestamp that the mapping gives to
// imported cells; false where it asks for the export's time.
func (m *Mapping) ImportTimeMicros() (int64, bool) { return 0, false }

// Place lays out an item. Cells without a timestamp of their own get
// defaultTimeMicros, which must be a multiple of 1000. The cells of the same
// item are always the same bytes. Errors are *Error.
func (m *Mapping) Place(item attr.Item, defaultTimeMicros int64) (Placed, error) {
	return Placed{}, errors.ErrUnsupported
}

// Locate returns where the item of the given key lives, or would live: one
// location for each rule that can hold it. key may have other attributes too.
// Errors are *Error.
func (m *Mapping) Locate(key attr.Item) ([]Location, error) { return nil, errors.ErrUnsupported }

// Items returns the items of a row, or of the part of it that was read, sorted
// by partition and sort key. Cells of FamilyState and cells that no rule
// claims are passed over.
func (m *Mapping) Items(row Row) ([]attr.Item, error) { return nil, errors.ErrUnsupported }

// Item returns the item of the given key out of its row, or nil.
func (m *Mapping) Item(row Row, key attr.Item) (attr.Item, error) { return nil, errors.ErrUnsupported }

// PlanQuery returns how the items that satisfy c are read: nothing that
// matches is missed. A plan without spans says that no item of the table can
// match. Errors are *Error.
func (m *Mapping) PlanQuery(c KeyCondition) (Plan, error) { return Plan{}, errors.ErrUnsupported }

// PlanScan returns how all items are read. Its order is that of the rows.
func (m *Mapping) PlanScan() Plan { return Plan{Spans: []Span{{}}} }

// Indexes are the indexes that the mapping file lays out (`as: table`), in
// its order.
func (m *Mapping) Indexes() []*Index { return nil }

// Index returns the index of that name that the mapping lays out, or nil.
func (m *Mapping) Index(name string) *Index { return nil }

// Default returns the lossless layout of a table that has no mapping file:
// family "a", one self-describing cell (type tag and value) a top-level
// attribute.
func Default(sourceTable, targetTable string, key KeySchema) (*Mapping, error) {
	return nil, errors.ErrUnsupported
}
