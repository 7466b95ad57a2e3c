package mapping_test

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
)

const products = `
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
`

func ExampleLoad() {
	m, err := mapping.Load("mapping.yaml", []byte(products))
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
	fmt.Printf("%s\n", placed.Key)
	for _, c := range placed.Cells {
		fmt.Printf("  %s:%s @%d = %q\n", c.Family, c.Qualifier, c.Timestamp, c.Value)
	}
	back, err := m.Item(placed.Row, item)
	fmt.Println(attr.EqualItems(item, back), err)
	// Output:
	// hats#fedoras#brandA
	//   SKU:Description @1715685260608000 = "Made from premium wool"
	//   SKU:Price @1715685260608000 = "30"
	//   s.Tags:new @1715685260608000 = "\x00"
	//   s.Tags:wool @1715685260608000 = "\x00"
	// true <nil>
}

func ExampleMapping_Fidelity() {
	m, err := mapping.Load("mapping.yaml", []byte(products))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range m.Families() {
		fmt.Printf("family %s: %d version\n", f.Name, f.Versions)
	}
	for _, f := range m.Fidelity() {
		fmt.Println(f)
	}
	// Output:
	// family SKU: 1 version
	// family s.Tags: 1 version
	// sku PK: lossless in domain (no byte up to '#')
	// sku SK: lossless
	// sku Description: lossless in domain (type S)
	// sku Price: lossless in domain (type N)
	// sku Tags: lossless in domain (type SS)
}

func ExampleError() {
	m, err := mapping.Load("mapping.yaml", []byte(products))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = m.Place(attr.Item{"PK": attr.String("hats#caps"), "SK": attr.String("1")}, 0)
	if e, ok := errors.AsType[*maperr.Error](err); ok {
		fmt.Printf("%s, rule %s: %s\n", e.Code, e.Rule, e.Expected)
	}
	// Output: E-DELIM, rule sku: a key without it, or joiner escaped or auto
}

func ExampleSpecError() {
	_, err := mapping.Load("mapping.yaml", []byte(strings.Replace(products, `, "{SK:s}"`, "", 1)))
	if e, ok := errors.AsType[*maperr.SpecError](err); ok {
		fmt.Printf("%s, line %d, %s: %s\n", e.Code, e.Line, e.Path, e.What)
	}
	// Output:
	// E-INVERSE, line 12, rules[0].put[0].cell: key attribute "SK" cannot be restored from row, qualifier and timestamp
}
