package layout

import (
	"fmt"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/unmapped"
)

// defaultLayout is the layout of a table without a mapping file.
type defaultLayout struct{ *unmapped.Layout }

// Default returns the lossless layout of a table without a mapping file. The Bigtable table needs
// the family FamilyItem.
func Default(sourceTable, targetTable string, key attr.KeySchema) (*Mapping, error) {
	for _, a := range key.Attrs() {
		if a.Name == "" || a.Type != attr.S && a.Type != attr.N && a.Type != attr.B {
			return nil, &maperr.SpecError{Code: maperr.CodeSyntax, What: fmt.Sprintf("key attribute %q has type %q", a.Name, a.Type), Expected: "type S, N or B"}
		}
	}
	return &Mapping{source: sourceTable, target: targetTable, key: key, layout: defaultLayout{unmapped.New(sourceTable, key)}}, nil
}

func (l defaultLayout) columnFamilies() []Family { return l.Families() }

func (l defaultLayout) place(at lens.Location, item attr.Item, defaultTimeMicros int64) (lens.Placed, error) {
	return l.Place(at, item, defaultTimeMicros), nil
}

func (l defaultLayout) locate(key attr.Item) (lens.Location, error) { return l.Locate(key) }
func (l defaultLayout) items(row Row) ([]attr.Item, error)          { return l.Items(row) }

func (l defaultLayout) itemOf(row Row, key attr.Item) (attr.Item, error) { return l.ItemOf(row, key) }
func (l defaultLayout) planQuery(c attr.KeyRange) (lens.Plan, error)     { return l.PlanQuery(c) }
func (l defaultLayout) planScan() lens.Plan                              { return l.PlanScan() }
