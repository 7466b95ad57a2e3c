package layout

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
)

// BenchmarkLens lays out an item of ten attributes, and reads it back.
func BenchmarkLens(b *testing.B) {
	key := attr.KeySchema{Hash: attr.KeyAttr{Name: "PK", Type: attr.S}, Range: attr.KeyAttr{Name: "SK", Type: attr.S}}
	item := attr.Item{"PK": attr.String("customer-000001"), "SK": attr.String("order-000001")}
	spec := &mapfile.Spec{
		Source: mapfile.Source{Key: key, Schema: map[string]codec.Schema{}},
		Target: mapfile.Target{Table: "t", Families: []Family{{Name: "a"}, {Name: lens.FamilyTypes}}},
		Rules:  []mapfile.Rule{{Name: "item", Row: []string{"{PK}", "{SK}"}, Put: []mapfile.Put{{Attr: "*", Cell: "a:{attr}"}}}},
	}
	for i := range 10 {
		name := fmt.Sprintf("attribute%d", i)
		item[name] = attr.String("some text of thirty characters")
		spec.Source.Schema[name] = codec.Schema{Type: attr.S}
	}
	mapped, err := Compile(spec)
	if err != nil {
		b.Fatal(err)
	}
	plain, err := Default("s", "t", key)
	if err != nil {
		b.Fatal(err)
	}
	for name, m := range map[string]*Mapping{"mapped": mapped, "default": plain} {
		placed, err := m.Place(item, expTime)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name+"/place", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := m.Place(item, expTime); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/items", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := m.Items(Row{Key: placed.Row, Cells: placed.Cells}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkDefault reads an item of 1 KB of the default layout, and writes it as JSON.
func BenchmarkDefault(b *testing.B) {
	m, err := Default("t", "t", attr.KeySchema{Hash: attr.KeyAttr{Name: "PK", Type: attr.S}, Range: attr.KeyAttr{Name: "SK", Type: attr.S}})
	if err != nil {
		b.Fatal(err)
	}
	item := attr.Item{
		"PK": attr.String("p00000001"), "SK": attr.String("s0001"), "GPK": attr.String("g00000001"), "GSK": attr.String("k0000000001"),
		"N": attr.Int(17), "V": attr.String(strings.Repeat("v", 1024)),
	}
	placed, err := m.Place(item, 1000)
	if err != nil {
		b.Fatal(err)
	}
	row := Row{Key: placed.Row, Cells: placed.Cells}
	b.Run("Items", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := m.Items(row); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("JSON", func(b *testing.B) {
		b.ReportAllocs()
		var dst []byte
		for b.Loop() {
			dst = attr.AppendItemJSON(dst[:0], item)
		}
	})
	b.Run("Unmarshal", func(b *testing.B) {
		b.ReportAllocs()
		text := attr.AppendItemJSON(nil, item)
		for b.Loop() {
			if _, err := attr.UnmarshalItem(text); err != nil {
				b.Fatal(err)
			}
		}
	})
}
