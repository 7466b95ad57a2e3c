package facade

import (
	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/ddbmodel"
)

// modelKey converts a key to the model's type.
func modelKey(k attr.KeySchema) []ddbmodel.KeyAttribute {
	return []ddbmodel.KeyAttribute{{Name: k.Hash.Name, Type: k.Hash.Type.String()}, {Name: k.Range.Name, Type: k.Range.Type.String()}}
}

// drawOrder draws orders with two indexes, one of them over shards. Only the order
// distinguishes its entries, so an order has one item.
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
