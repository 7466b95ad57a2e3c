package facade

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/ddbmodel"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/secondary"
)

// subjectTables is like mappedTables, for the tables of the mapping in fixtures/subjects/subject.
func subjectTables(subject string, draw func(*drawnTable)) func(*testing.T) func(*rapid.T) []modelTable {
	return func(t *testing.T) func(*rapid.T) []modelTable {
		t.Helper()
		src, err := os.ReadFile(filepath.Join("..", "fixtures", "subjects", subject, "mapping.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		return mappedTables(string(src), draw)(t)
	}
}

// mappedTables returns the table of a mapping, with items from draw. The model also rejects
// items that the mapping cannot express.
func mappedTables(src string, draw func(*drawnTable)) func(*testing.T) func(*rapid.T) []modelTable {
	return func(t *testing.T) func(*rapid.T) []modelTable {
		t.Helper()
		m, err := layout.Load("mapping.yaml", []byte(src))
		if err != nil {
			t.Fatal(err)
		}
		return func(*rapid.T) []modelTable {
			table := &ddbmodel.Table{Name: m.SourceTable(), Key: modelKey(m.Key())}
			add := func(d secondary.Def) {
				index := ddbmodel.Index{Name: d.Name, Global: true, Key: modelKey(d.Key), Projection: "ALL"}
				switch {
				case d.KeysOnly:
					index.Projection = "KEYS_ONLY"
				case len(d.Include) > 0:
					index.Projection, index.NonKey = "INCLUDE", d.Include
				}
				table.Indexes = append(table.Indexes, index)
			}
			for _, x := range m.Indexes() {
				add(x.Def())
			}
			for _, v := range m.Views() {
				add(v.Def())
			}
			table.Refuses = func(others []ddbmodel.Item, item ddbmodel.Item) bool {
				placed, ok := place(m, item)
				return !ok || slices.ContainsFunc(others, func(other ddbmodel.Item) bool {
					taken, _ := place(m, other)
					return bytes.Equal(taken.Row, placed.Row) && overlaps(taken.Cells, placed.Own)
				})
			}
			drawn := modelTable{drawnTable: drawnTable{Table: table}, mapping: m}
			draw(&drawn.drawnTable)
			return []modelTable{drawn}
		}
	}
}

// place lays out an item of the model; ok is false if the mapping cannot.
func place(m *layout.Mapping, item ddbmodel.Item) (placed lens.Placed, ok bool) {
	i, err := attr.UnmarshalItem([]byte(ddbmodel.Text(item)))
	if err != nil {
		return placed, false
	}
	placed, err = m.Place(i, importTimeMicros)
	return placed, err == nil
}

// overlaps reports whether one of the cells there, of an existing item, is where an item with the
// extents own has its cells.
func overlaps(there []layout.Cell, own []lens.Extent) bool {
	return slices.ContainsFunc(there, func(c layout.Cell) bool {
		return slices.ContainsFunc(own, func(e lens.Extent) bool { return e.Covers(c) })
	})
}

// modelKey converts a key to the model's type.
func modelKey(k attr.KeySchema) []ddbmodel.KeyAttribute {
	var key []ddbmodel.KeyAttribute
	for _, a := range k.Attrs() {
		key = append(key, ddbmodel.KeyAttribute{Name: a.Name, Type: a.Type.String()})
	}
	return key
}

// drawOrder draws orders with two indexes, one of them spread over shards. The entries of two
// items differ only by the order, so an order has one item.
func drawOrder(d *drawnTable) {
	d.names = []string{"Date", "Status", "Total", "GSI1PK", "GSI1SK", "GSI2PK", "GSI2SK"}
	d.keys = func(r *rapid.T) ddbmodel.Item {
		return ddbmodel.Item{
			"PK": ddbmodel.String(oneOf(r, "PK", "OE-ORDER1", "OE-ORDER2", "OE-ORDER3", "a$b")),
			"SK": ddbmodel.String("CUSTOMER1"),
		}
	}
	d.attributes = func(r *rapid.T, _ ddbmodel.Item) ddbmodel.Item {
		item := ddbmodel.Item{"Date": drawScalar(r, "S"), "Total": drawScalar(r, "N")}
		indexed := func(name string, values ...string) {
			if rapid.Bool().Draw(r, name) {
				item[name] = ddbmodel.String(oneOf(r, name, values...))
			}
		}
		indexed("GSI1PK", "CUSTOMER1", "ACCOUNT-REP1", "a#b")
		indexed("GSI1SK", "OPEN#1", "OPEN#2", "SHIPPED#1", "OPEN")
		indexed("GSI2PK", "3", "4", "5")
		indexed("GSI2SK", "OPEN#1", "OPEN#2", "SHIPPED#1", "OPEN")
		return odd(r, item, d.names...)
	}
}

// drawEvent draws events whose rows a salt spreads over eight ranges.
func drawEvent(d *drawnTable) {
	d.names = []string{"Page", "more"}
	d.keys = func(r *rapid.T) ddbmodel.Item {
		return ddbmodel.Item{
			"Topic": ddbmodel.String(oneOf(r, "Topic", "clicks", "orders", "a#b")),
			"Seq":   ddbmodel.Number(oneOf(r, "Seq", "0", "1", "7", "9", "10", "11", "12", "999999999", "1000000000", "-1", "1.5")),
		}
	}
	d.attributes = func(r *rapid.T, _ ddbmodel.Item) ddbmodel.Item {
		return odd(r, ddbmodel.Item{"Page": drawScalar(r, "S")}, d.names...)
	}
}

// withoutIndexes returns a mapping file without its indexes.
func withoutIndexes(text string) string {
	before, rest, _ := strings.Cut(text, "  gsis:")
	_, after, _ := strings.Cut(rest, "target:")
	return before + "target:" + after
}

// drawTicket draws tickets and comments whose index keys are derived. Some items have other values
// than the templates give, or none; so do items after updates of the attributes in the templates.
func drawTicket(d *drawnTable) {
	d.names = []string{"status", "openedAt", "votes", "kind", "GSI1PK", "GSI1SK", "score", "label", "status", "votes"}
	d.keys = func(r *rapid.T) ddbmodel.Item {
		pk := oneOf(r, "PK", "TICKET#1", "TICKET#2", "TICKET#a#b", "Other")
		return ddbmodel.Item{"PK": ddbmodel.String(pk), "SK": ddbmodel.String(oneOf(r, "SK", pk, pk, "C#8305627524990", "C#8305627524991", "C#x"))}
	}
	d.attributes = func(r *rapid.T, key ddbmodel.Item) ddbmodel.Item {
		comment := key["SK"].Text != key["PK"].Text
		item := ddbmodel.Item{"status": ddbmodel.String(oneOf(r, "status", "OPEN", "SHUT"))}
		derived := func(name string, v ddbmodel.Value) {
			switch oneOf(r, name, "equal", "equal", "equal", "other", "none") {
			case "equal":
				item[name] = v
			case "other":
				if item[name] = ddbmodel.String(oneOf(r, "other", "STATUS#OPEN", "x", "Task")); v.Type == "N" {
					item[name] = ddbmodel.Number("7")
				}
			}
		}
		derived("GSI1PK", ddbmodel.String("STATUS#"+item["status"].Text))
		if comment {
			derived("kind", ddbmodel.String("Comment"))
			derived("GSI1SK", ddbmodel.String("2023-09-10T19:01:15.009"))
			return odd(r, item, d.names...)
		}
		item["openedAt"], item["votes"] = ddbmodel.String(oneOf(r, "openedAt", "2023", "2024")), ddbmodel.Number(oneOf(r, "votes", "0", "1", "7"))
		derived("kind", ddbmodel.String("Ticket"))
		derived("GSI1SK", item["openedAt"])
		derived("score", item["votes"])
		derived("label", ddbmodel.String(item["GSI1PK"].Text+"/"+strings.TrimPrefix(key["PK"].Text, "TICKET#")))
		return odd(r, item, d.names...)
	}
}
