package mapping

import (
	"io/fs"
	"time"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
)

// Mapping lays out the items of one DynamoDB table as rows, and converts rows to items.
// Load, Compile and Default return one. It is immutable and safe for concurrent use.
type Mapping layout.Mapping

// compiled converts m to the type that the packages of this module use.
func (m *Mapping) compiled() *layout.Mapping { return (*layout.Mapping)(m) }

// Load parses and compiles a mapping file. It is the same as Parse followed by Compile.
func Load(file string, src []byte, beside ...fs.FS) (*Mapping, error) {
	m, err := layout.Load(file, src, beside...)
	return (*Mapping)(m), err
}

// Compile compiles the rules of a mapping file in both directions. If a rule cannot be
// inverted, the error is a *maperr.SpecError. Several such errors are joined, one per
// line, and errors.As finds each of them.
func Compile(spec *Spec) (*Mapping, error) {
	m, err := layout.Compile((*mapfile.Sealed)(spec).Open())
	return (*Mapping)(m), err
}

// Default returns the lossless layout that package facade uses for a table without a
// mapping file: one row per item, in family a.
func Default(sourceTable, targetTable string, key attr.KeySchema) (*Mapping, error) {
	m, err := layout.Default(sourceTable, targetTable, key)
	return (*Mapping)(m), err
}

// Spec returns the mapping file that the mapping was compiled from, or nil for a default
// layout.
func (m *Mapping) Spec() *Spec { return (*Spec)(mapfile.Seal(m.compiled().Spec())) }

// SourceTable returns the name of the DynamoDB table, or "" if the file does not name it.
func (m *Mapping) SourceTable() string { return m.compiled().SourceTable() }

// TargetTable returns the id of the Bigtable table.
func (m *Mapping) TargetTable() string { return m.compiled().TargetTable() }

// Family is a column family that the Bigtable table needs, with its garbage-collection
// rule. The rule removes the cells of a column beyond the newest Versions, and cells
// older than MaxAge. Zero disables either part.
type Family struct {
	Name     string
	Versions int
	MaxAge   time.Duration
}

// Families returns the column families that the Bigtable table needs, in the order of
// their declaration.
func (m *Mapping) Families() []Family {
	var families []Family
	for _, f := range m.compiled().Families() {
		families = append(families, Family{Name: f.Name, Versions: f.GC.Versions, MaxAge: f.GC.MaxAge})
	}
	return families
}

// Locate returns the row key of the item with the given key, whether or not the item
// exists. key may have additional attributes. Errors are of type [*maperr.Error].
func (m *Mapping) Locate(key attr.Item) ([]byte, error) {
	at, err := m.compiled().Locate(key)
	if err != nil {
		return nil, err
	}
	return at.Row, nil
}

// Placed is an item that is laid out as a row, or as a part of a shared row. Its cells
// are in no particular order. A copy of the highest version has no cells, because Items
// reads it from the cells of that version.
type Placed struct {
	Row
	Rule string // rule that matched the item
}

// Place lays out an item as cells. Cells to which the mapping assigns no timestamp get
// defaultTimeMicros, which must be a non-negative multiple of 1000. The same item always
// results in the same bytes. Errors are of type [*maperr.Error].
func (m *Mapping) Place(item attr.Item, defaultTimeMicros int64) (Placed, error) {
	p, err := m.compiled().Place(item, defaultTimeMicros)
	return Placed{Row: Row{Key: p.Row, Cells: p.Cells}, Rule: p.Rule}, err
}

// Items returns the items in a row, or in the part of it that was read, sorted by
// partition key and sort key. It ignores cells that no rule claims. Errors are of type
// [*maperr.Error] with the code maperr.CodeCorrupt.
func (m *Mapping) Items(row Row) ([]attr.Item, error) { return m.compiled().Items(row) }

// Item returns the item with the given key from its row, or nil if the row does not
// contain it. key may have additional attributes. Errors are of type [*maperr.Error].
func (m *Mapping) Item(row Row, key attr.Item) (attr.Item, error) {
	return m.compiled().Item(row, key)
}
