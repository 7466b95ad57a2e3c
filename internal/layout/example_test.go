package layout_test

import (
	"fmt"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

func ExampleLoad() {
	m, err := layout.Load("mapping.yaml", []byte(`
apiVersion: migration/v1
source:
  table: Products
  key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}
  schema: {Description: S, Price: N, Tags: SS}
target:
  table: products
  joiner: plain('#')
  families: {SKU: {gc: {versions: 1}}, s.Tags: {gc: {versions: 1}}}
rules:
- {name: sku, row: ["{PK:s}", "{SK:s}"], put: [{attr: "*", cell: "SKU:{attr}"}]}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	item := attr.Item{
		"PK": attr.String("hats"), "SK": attr.String("fedoras#brandA"),
		"Description": attr.String("Made from premium wool"), "Price": attr.Int(30), "Tags": attr.SetOf(attr.SS, "wool", "new"),
	}
	placed, err := m.Place(item, 1715685260608000)
	if err != nil {
		fmt.Println(err)
		return
	}
	row := layout.Row{Key: placed.Row, Cells: placed.Cells}
	fmt.Print(string(layout.FormatRow(nil, row)))
	back, err := m.Item(row, item)
	fmt.Println(attr.EqualItems(item, back), err)
	// Output:
	// hats#fedoras#brandA [68617473236665646f726173236272616e6441]
	//   SKU:Description @1715685260608000 = "Made from premium wool"
	//   SKU:Price @1715685260608000 = "30"
	//   s.Tags:new @1715685260608000 = 00
	//   s.Tags:wool @1715685260608000 = 00
	// true <nil>
}
