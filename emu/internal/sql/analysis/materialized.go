package analysis

import (
	"github.com/tabletop-emu/tabletop/emu/internal/sql/plan"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// materialized analyzes the name of a materialized view: its columns are computed from the keys and the
// cells of its rows.
func (a *analyzer) materialized(id string, of *Table) (plan.Operator, []column) {
	scan := &plan.Scan{Table: id, Key: of.Key}
	for _, f := range of.Key.Fields {
		scan.Columns = append(scan.Columns, &plan.ScanColumn{Kind: plan.KeyField, Name: f.Name, Type: f.Type, Used: true})
	}
	families := map[string]int{}
	for _, f := range of.Families {
		families[f.Name] = len(scan.Columns)
		scan.Columns = append(scan.Columns, &plan.ScanColumn{Kind: plan.Family, Name: f.Name, Type: value.MapOf(value.BytesType, f.Value)})
	}
	var columns []column
	for _, c := range of.View {
		var e plan.Expr
		switch family := families[c.Family]; {
		case c.Key >= 0:
			e = &plan.Slot{N: c.Key, Of: c.Type}
		case c.Decode == nil:
			scan.Columns[family].Used = true
			e = &plan.Slot{N: family, Of: c.Type}
		default:
			qualifier := value.BytesOf(c.Qualifier)
			scan.Columns[family].Qualifiers = append(scan.Columns[family].Qualifiers, &plan.Const{Of: value.BytesType, Value: qualifier})
			e = &cellOf{slot: family, qualifier: qualifier, of: c.Type, decode: c.Decode}
		}
		columns = append(columns, column{name: c.Name, expr: e})
	}
	a.scans = append(a.scans, scan)
	a.out.Tables = append(a.out.Tables, plan.TableUse{Table: id, Materialized: of.Rows})
	return scan, columns
}

// cellOf is an expression: the decoded cell with a qualifier in the map at a slot; NULL if the
// map does not have it.
type cellOf struct {
	slot      int
	qualifier value.Value
	of        value.Type
	decode    func(cell []byte) (value.Value, error)
}

func (e *cellOf) Type() value.Type { return e.of }

func (e *cellOf) Eval(env *plan.Env) (value.Value, error) {
	v, ok := env.Row[e.slot].Lookup(e.qualifier)
	if !ok {
		return value.Null, nil
	}
	return e.decode(v.Bytes())
}
