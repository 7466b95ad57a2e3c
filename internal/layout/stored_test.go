package layout

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// TestAppendStored compares the JSON of a row with its decoded items, for placed rows and for
// rows of other clients.
func TestAppendStored(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", lens.MaxQualifierBytes+1)
	for name, key := range map[string]attr.KeySchema{
		"a key":          {Hash: attr.KeyAttr{Name: "k", Type: attr.S}},
		"a sort key":     {Hash: attr.KeyAttr{Name: "z", Type: attr.N}, Range: attr.KeyAttr{Name: "b", Type: attr.S}},
		"other order":    {Hash: attr.KeyAttr{Name: "a", Type: attr.B}, Range: attr.KeyAttr{Name: "é", Type: attr.N}},
		"names to quote": {Hash: attr.KeyAttr{Name: "\"", Type: attr.S}, Range: attr.KeyAttr{Name: "\n", Type: attr.B}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := Default("s", "t", key)
			if err != nil {
				t.Fatal(err)
			}
			keyValue := func(t *rapid.T, a attr.KeyAttr) attr.Value {
				if a.Type == attr.N {
					return attr.Value{Type: attr.N, Str: rapid.SampledFrom([]string{"-1.5", "0", "7"}).Draw(t, a.Name)}
				}
				return attr.Value{Type: a.Type, Str: rapid.SampledFrom([]string{"p", "\x00\x01", "\"é"}).Draw(t, a.Name)}
			}
			rapid.Check(t, func(t *rapid.T) {
				item := attr.Item{}
				for _, a := range key.Attrs() {
					item[a.Name] = keyValue(t, a)
				}
				values := []attr.Value{
					attr.String(""), attr.String("plain"), attr.String("é\"\\\n\x7f\u2028"), attr.Int(12), attr.Binary([]byte("\x00\xff")), attr.Boolean(true),
					attr.Null(), attr.SetOf(attr.NS, "1", "2"), attr.ListOf(attr.MapOf(map[string]attr.Value{"x": attr.Null()})),
				}
				for range rapid.IntRange(0, 4).Draw(t, "attributes") {
					item[rapid.SampledFrom([]string{"", "a", "c", "m", "zz", "é", "\"", "\n", long}).Draw(t, "name")] = rapid.SampledFrom(values).Draw(t, "value")
				}
				p, err := m.Place(item, expTime)
				if err != nil {
					t.Skip(err)
				}
				row := Row{Key: p.Row, Cells: p.Cells}
				if rapid.Bool().Draw(t, "written by others") {
					for range rapid.IntRange(1, 3).Draw(t, "cells") {
						at := rapid.IntRange(0, len(row.Cells)).Draw(t, "at")
						row.Cells = slices.Insert(row.Cells, at, Cell{
							Family:    rapid.SampledFrom([]string{lens.FamilyItem, lens.FamilyItem, lens.FamilyState}).Draw(t, "family"),
							Qualifier: []byte(rapid.SampledFrom([]string{"", "a", "b", "c", "z", "\xff"}).Draw(t, "qualifier")),
							Value:     []byte(rapid.SampledFrom([]string{"", "S", "Sx", "S\xff", "N1.50", "Nx", "O\x01", "O\x02", "L[]", "L[", "M{}", "?", `M{"c":{"S":"x"}}`}).Draw(t, "cell")),
						})
					}
				}
				compareStored(t, m, row)
			})
			if stored, err := m.AppendStored(nil, Row{Key: []byte("\x00\x07"), Cells: []Cell{{Family: lens.FamilyItem, Qualifier: nil, Timestamp: 0, Value: nil}}}); err != nil || key.Range.Name != "" && len(stored) != 0 {
				t.Errorf("a row without an item: %v, %v", stored, err)
			}
		})
	}
}

// compareStored checks that the stored item of a row equals that of Items.
func compareStored(t *rapid.T, m *Mapping, row Row) {
	items, wantErr := m.Items(row)
	all, err := m.AppendStored(nil, row)
	if err != nil || wantErr == nil && len(all) != len(items) {
		t.Fatalf("%d items are stored, %v; want %d", len(all), err, len(items))
	}
	for i, stored := range all {
		json, sizes, err := stored.AppendJSON([]byte("before"))
		item, itemErr := stored.Item()
		if wantErr != nil {
			var e *maperr.Error
			if !errors.As(err, &e) || e.Code != maperr.CodeCorrupt || string(json) != "before" || itemErr == nil {
				t.Fatalf("%s, %v, %v; want the result of Items: %v", json, err, itemErr, wantErr)
			}
			continue
		}
		if want := "before" + items[i].String(); err != nil || string(json) != want || sizes != items[i].Sizes() {
			t.Fatalf("%s of the sizes %v, %v; want %s of %v", json, sizes, err, want, items[i].Sizes())
		}
		if itemErr != nil || !attr.EqualItems(item, items[i]) {
			t.Fatalf("%v, %v; want %v", item, itemErr, items[i])
		}
		for _, a := range m.key.Attrs() {
			if got := stored.Get(a.Name); !attr.Equal(got, items[i][a.Name]) {
				t.Fatalf("%s is %v, want %v", a.Name, got, items[i][a.Name])
			}
		}
		if got := stored.Get("no key"); !got.IsAbsent() {
			t.Fatalf("an invalid key gives %v", got)
		}
	}
}
