package mapping

import (
	"io/fs"
	"time"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
)

// Mapping is the layout of one DynamoDB table: item to row and back. Load, Compile and
// Default return one. It is immutable and safe for concurrent use.
type Mapping layout.Mapping

// compiled converts m to the type that the packages of this module use.
func (m *Mapping) compiled() *layout.Mapping { return (*layout.Mapping)(m) }

// Load runs Parse, then Compile.
func Load(file string, src []byte, beside ...fs.FS) (*Mapping, error) {
	m, err := layout.Load(file, src, beside...)
	return (*Mapping)(m), err
}

// Compile builds the functions in both directions. The error of a rule that cannot be
// inverted is a *maperr.SpecError. Several faults are joined, one per line; errors.As finds each.
func Compile(spec *Spec) (*Mapping, error) {
	m, err := layout.Compile((*mapfile.Sealed)(spec).Open())
	return (*Mapping)(m), err
}

// Default returns the lossless layout that package facade gives a table without
// a mapping file: one row per item, in family a.
func Default(sourceTable, targetTable string, key attr.KeySchema) (*Mapping, error) {
	m, err := layout.Default(sourceTable, targetTable, key)
	return (*Mapping)(m), err
}

// Spec returns the source of the mapping, or nil for a default layout.
func (m *Mapping) Spec() *Spec { return (*Spec)(mapfile.Seal(m.compiled().Spec())) }

// SourceTable returns the name of the DynamoDB table, or "" if the file has none.
func (m *Mapping) SourceTable() string { return m.compiled().SourceTable() }

// TargetTable returns the id of the Bigtable table.
func (m *Mapping) TargetTable() string { return m.compiled().TargetTable() }

// Family is a column family that the Bigtable table needs, with its GC rule: it removes cells
// of a column beyond Versions, and cells older than MaxAge. 0 means no such rule.
type Family struct {
	Name     string
	Versions int
	MaxAge   time.Duration
}

// Families returns the families that the Bigtable table needs, in declared order.
func (m *Mapping) Families() []Family {
	var families []Family
	for _, f := range m.compiled().Families() {
		families = append(families, Family{Name: f.Name, Versions: f.GC.Versions, MaxAge: f.GC.MaxAge})
	}
	return families
}

// Locate returns the row key of the item with the given key, whether or not the item exists.
// key may have other attributes too. Errors are [*maperr.Error].
func (m *Mapping) Locate(key attr.Item) ([]byte, error) {
	at, err := m.compiled().Locate(key)
	if err != nil {
		return nil, err
	}
	return at.Row, nil
}

// Placed is an item laid out as a row, or as its part of a shared row. Its cells have no
// particular order. A copy of the highest version has no cells: Items reads it from the cells
// of that version.
type Placed struct {
	Row
	Rule string // the rule that accepted the item
}

// Place lays out an item as cells. Cells without a timestamp of their own get
// defaultTimeMicros, which must be a multiple of 1000 and not negative. The same item always
// gives the same bytes. Errors are [*maperr.Error].
func (m *Mapping) Place(item attr.Item, defaultTimeMicros int64) (Placed, error) {
	p, err := m.compiled().Place(item, defaultTimeMicros)
	return Placed{Row: Row{Key: p.Row, Cells: p.Cells}, Rule: p.Rule}, err
}

// Items returns the items of a row, or of the part of it that was read, sorted by partition
// and sort key. It ignores cells that no rule claims. Errors are [*maperr.Error] with maperr.CodeCorrupt.
func (m *Mapping) Items(row Row) ([]attr.Item, error) { return m.compiled().Items(row) }

// Item returns the item with the given key from its row; nil if not found. key may have other
// attributes too. Errors are [*maperr.Error].
func (m *Mapping) Item(row Row, key attr.Item) (attr.Item, error) {
	return m.compiled().Item(row, key)
}
