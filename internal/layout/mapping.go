package layout

import (
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/internal/layout/secondary"
)

// Mapping is the compiled layout of a DynamoDB table, which converts items to rows and back. It is
// immutable and safe for concurrent use.
type Mapping struct {
	spec           *mapfile.Spec // nil for a default layout
	source, target string
	key            attr.KeySchema
	proven         string // outcome of the joiner auto, "" while that is open
	layout         layout
	indexes        []*secondary.Index
	views          []*View
	locked, text   written
}

// written is a text of a mapping that is computed once, since it never changes.
type written struct {
	once sync.Once
	text []byte
	err  error
}

// of returns the first result of write.
func (w *written) of(write func() ([]byte, error)) ([]byte, error) {
	w.once.Do(func() { w.text, w.err = write() })
	return slices.Clip(w.text), w.err
}

// layout is the conversion between items and rows: by the rules of a file, or the default.
type layout interface {
	columnFamilies() []Family
	place(at lens.Location, item attr.Item, defaultTimeMicros int64) (lens.Placed, error)
	locate(key attr.Item) (lens.Location, error)
	items(row Row) ([]attr.Item, error)
	itemOf(row Row, key attr.Item) (attr.Item, error)
	planQuery(c attr.KeyRange) (lens.Plan, error)
	planScan() lens.Plan
}

// Load reads a mapping file by mapfile.Read, and compiles it.
func Load(file string, src []byte, beside ...fs.FS) (*Mapping, error) {
	spec, err := mapfile.Read(file, src, beside...)
	if err != nil {
		return nil, err
	}
	return Compile(spec)
}

// Spec returns the mapping file, or nil for a default layout. It is shared; callers must not change
// it.
func (m *Mapping) Spec() *mapfile.Spec { return m.spec }

// YAML returns the text of the mapping file, which a default layout does not have.
func (m *Mapping) YAML() ([]byte, error) { return m.text.of(m.spec.YAML) }

// SourceTable returns the name of the DynamoDB table, or "" if the file has none.
func (m *Mapping) SourceTable() string { return m.source }

// TargetTable returns the id of the Bigtable table.
func (m *Mapping) TargetTable() string { return m.target }

// Key returns the primary key of the table.
func (m *Mapping) Key() attr.KeySchema { return m.key }

// AcceptsLoss reports whether the mapping file accepts a loss, such as LossTypes, for the
// items of a rule.
func (m *Mapping) AcceptsLoss(rule, what string) bool {
	if _, r := m.ruleNamed(rule); r != nil && r.ttl != nil && what == mapfile.LossRetention {
		return true // garbage collection is meant to delete expired items
	}
	return m.spec != nil && slices.ContainsFunc(m.spec.AcceptLoss, func(l mapfile.AcceptedLoss) bool {
		return l.What == what && (l.Rule == "" || l.Rule == rule)
	})
}

// Families returns the families that the Bigtable table needs, in declared order, with
// `_t` if declared and without bookkeeping. The slice is shared.
func (m *Mapping) Families() []Family { return m.layout.columnFamilies() }

// ImportTimeMicros returns the constant timestamp of imported cells, or false if the mapping uses
// the time of the export.
func (m *Mapping) ImportTimeMicros() (int64, bool) {
	if m.spec == nil || m.spec.DefaultTime.IsZero() {
		return 0, false
	}
	return m.spec.DefaultTime.UnixMicro(), true
}

// Place lays out an item. Cells without a specific timestamp get defaultTimeMicros, which must be
// a non-negative multiple of 1000. The same item always yields the same bytes. Errors are
// *maperr.Error.
func (m *Mapping) Place(item attr.Item, defaultTimeMicros int64) (lens.Placed, error) {
	if err := m.checkTime(defaultTimeMicros); err != nil {
		return lens.Placed{}, err
	}
	at, err := m.layout.locate(item)
	if err != nil {
		return lens.Placed{}, err
	}
	return m.layout.place(at, item, defaultTimeMicros)
}

// PlaceAt is like Place, given the result of Mapping.Locate for the item's key.
func (m *Mapping) PlaceAt(at lens.Location, item attr.Item, defaultTimeMicros int64) (lens.Placed, error) {
	if err := m.checkTime(defaultTimeMicros); err != nil {
		return lens.Placed{}, err
	}
	return m.layout.place(at, item, defaultTimeMicros)
}

func (m *Mapping) checkTime(micros int64) error {
	if micros < 0 || micros%1000 != 0 {
		return &maperr.Error{Code: maperr.CodeLimit, Table: m.source, What: fmt.Sprintf("the default timestamp is %d us", micros), Expected: "whole milliseconds since 1970"}
	}
	return nil
}

// Locate returns the place of the item with the given key, whether or not the item exists. Only
// the key selects the rule. key may contain other attributes too. Errors are *maperr.Error.
func (m *Mapping) Locate(key attr.Item) (lens.Location, error) { return m.layout.locate(key) }

// Items returns the items of a row, or of the part of it that was read, sorted by partition and
// sort key. It skips bookkeeping and cells that no rule claims. Errors are *maperr.Error:
// E-CORRUPT.
func (m *Mapping) Items(row Row) ([]attr.Item, error) { return m.layout.items(row) }

// Item returns the item with the given key from its row, or nil.
func (m *Mapping) Item(row Row, key attr.Item) (attr.Item, error) { return m.layout.itemOf(row, key) }

// PlanQuery returns a plan to read the items that satisfy c. The plan covers all of them. A plan
// without spans means that no item of the table can match. Errors are *maperr.Error.
func (m *Mapping) PlanQuery(c attr.KeyRange) (lens.Plan, error) { return m.layout.planQuery(c) }

// PlanScan returns a plan to read all items, in the order of the rows.
func (m *Mapping) PlanScan() lens.Plan { return m.layout.planScan() }

// Indexes returns the indexes that the mapping file lays out (`as: table`), in the order of the
// file.
func (m *Mapping) Indexes() []*secondary.Index { return m.indexes }

// Index returns the index with the given name, or nil if the mapping does not lay it out.
func (m *Mapping) Index(name string) *secondary.Index {
	for _, x := range m.indexes {
		if x.Name() == name {
			return x
		}
	}
	return nil
}
