package tabledef

import (
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/secondary"
)

// OfMapping returns the definition of the table that a mapping describes.
func OfMapping(m *layout.Mapping) *Table {
	def := &Table{Name: m.SourceTable(), Key: m.Key(), BillingMode: "PAY_PER_REQUEST"}
	define := func(k attr.KeyAttr) {
		if k.Name != "" && !slices.Contains(def.Attributes, k) {
			def.Attributes = append(def.Attributes, k)
		}
	}
	define(def.Key.Hash)
	define(def.Key.Range)
	if e := m.Expiry(); e.Kept {
		def.TTLAttribute = e.Attribute
	}
	add := func(d secondary.Def, global bool) {
		define(d.Key.Hash)
		define(d.Key.Range)
		ix := Index{Name: d.Name, Key: IndexKeyOf(d.Key), Projection: ProjectAll, Global: global}
		switch {
		case d.KeysOnly:
			ix.Projection = ProjectKeysOnly
		case len(d.Include) > 0:
			ix.Projection, ix.NonKey = ProjectInclude, d.Include
		}
		def.Indexes = append(def.Indexes, ix)
	}
	for _, x := range m.Indexes() {
		add(x.Def(), x.Def().Key.Hash != def.Key.Hash || def.Key.Range.Name == "")
	}
	for _, v := range m.Views() {
		add(v.Def(), true) // a view follows the table later, so it has no consistent reads
	}
	return def
}
