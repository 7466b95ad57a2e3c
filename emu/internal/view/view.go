// Package view implements authorized views: it decides which rows and columns a view contains. A
// definition compiles to spans of row keys and, per family, spans of qualifiers. A read intersects
// its row set with the row spans, and its filter receives the cells that a [Gate] passes. A write
// calls [View.HoldsRow] and [View.Allows].
//
// The gate runs before the filter of a request, so limits, conditions and sinks do not see cells
// outside the view either. It turns the gaps between spans into seeks, so a view of a few columns
// of a wide row costs only those columns.
package view

import (
	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/emu/internal/filter"
)

// View is the compiled definition of an authorized view. It is immutable and safe for concurrent
// use.
type View struct {
	name    string
	rows    filter.RowSet
	columns map[string]filter.RowSet // family -> qualifiers, never empty
}

// Compile compiles the definition of the view called name. Every definition is valid. The prefix ""
// matches everything; without prefixes and qualifiers, nothing matches. The view shares the bytes
// of d.
func Compile(name string, d *btapb.AuthorizedView_SubsetView) *View {
	v := &View{name: name, columns: make(map[string]filter.RowSet, len(d.GetFamilySubsets()))}
	v.rows = union(nil, d.GetRowPrefixes())
	for family, s := range d.GetFamilySubsets() {
		if held := union(s.GetQualifiers(), s.GetQualifierPrefixes()); len(held.Spans) > 0 {
			v.columns[family] = held
		}
	}
	return v
}

// union returns the keys and all keys that begin with one of the prefixes.
func union(keys, prefixes [][]byte) filter.RowSet {
	spans := make([]filter.Span, 0, len(keys)+len(prefixes))
	for _, k := range keys {
		spans = append(spans, filter.Span{Start: k, End: filter.After(k)})
	}
	for _, p := range prefixes {
		spans = append(spans, filter.Prefix(p).Spans...)
	}
	return filter.Of(spans)
}

// Parameters returns the number of row prefixes, families, qualifiers and
// qualifier prefixes in a definition.
func Parameters(d *btapb.AuthorizedView_SubsetView) int {
	n := len(d.GetRowPrefixes())
	for _, s := range d.GetFamilySubsets() {
		n += 1 + len(s.GetQualifiers()) + len(s.GetQualifierPrefixes())
	}
	return n
}

// Name returns the name that was passed to Compile.
func (v *View) Name() string { return v.name }

// Rows returns the set of row keys in the view.
func (v *View) Rows() filter.RowSet { return v.rows }

// HoldsRow reports whether the view contains a row key.
func (v *View) HoldsRow(key []byte) bool { return holds(v.rows.Spans, key) }

// HoldsFamily reports whether the view contains columns of a family.
func (v *View) HoldsFamily(family string) bool { return len(v.columns[family].Spans) > 0 }

// HoldsColumn reports whether the view contains a column.
func (v *View) HoldsColumn(family string, qualifier []byte) bool {
	return holds(v.columns[family].Spans, qualifier)
}

// Allows reports whether the view contains all cells that a mutation of a row in the view can
// affect, whatever the row contains. A mutation affects its column, delete_from_family all columns
// of the family, and delete_from_row the whole row, which a view never allows. A mutation without a
// kind affects nothing.
func (v *View) Allows(m *btpb.Mutation) bool {
	switch k := m.GetMutation().(type) {
	case *btpb.Mutation_SetCell_:
		return v.HoldsColumn(k.SetCell.GetFamilyName(), k.SetCell.GetColumnQualifier())
	case *btpb.Mutation_AddToCell_:
		return v.HoldsColumn(k.AddToCell.GetFamilyName(), k.AddToCell.GetColumnQualifier().GetRawValue())
	case *btpb.Mutation_MergeToCell_:
		return v.HoldsColumn(k.MergeToCell.GetFamilyName(), k.MergeToCell.GetColumnQualifier().GetRawValue())
	case *btpb.Mutation_DeleteFromColumn_:
		return v.HoldsColumn(k.DeleteFromColumn.GetFamilyName(), k.DeleteFromColumn.GetColumnQualifier())
	case *btpb.Mutation_DeleteFromFamily_:
		return v.columns[k.DeleteFromFamily.GetFamilyName()].All()
	case nil:
		return true
	default: // delete_from_row, and mutations of later protos
		return false
	}
}
