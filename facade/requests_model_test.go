package facade

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/internal/ddbmodel"
)

// requestDrawer draws requests on the tables of the model. Most are valid, and they use few keys
// and attributes, so that many concern the same ones.
type requestDrawer struct {
	db     *ddbmodel.DB
	tables []*drawnTable
}

// drawnTable is a table with the material for its requests.
type drawnTable struct {
	*ddbmodel.Table
	// keys draws the values of the key attributes, mostly in the domain of the layout.
	keys func(t *rapid.T) ddbmodel.Item
	// attributes draws the other attributes of an item.
	attributes func(t *rapid.T, key ddbmodel.Item) ddbmodel.Item
	// names are the attributes for updates and conditions.
	names []string
}

func oneOf[V any](t *rapid.T, label string, values ...V) V {
	return rapid.SampledFrom(values).Draw(t, label)
}

// rarely returns true in one of n cases on average, and shrinks to false.
func rarely(t *rapid.T, label string, n int) bool {
	return rapid.IntRange(0, n-1).Draw(t, label) == n-1
}

// Values that are hard for layouts: delimiters, zero bytes, the limits of numbers.
var (
	hostileTexts   = []string{"a", "ab", "b", "#", "a#b", "a\x00b", "\x00", "\x00\x01", "é€", "👍", "~", "ÿ", " "}
	hostileBinary  = []string{"a", "\x00", "\x00\x00", "\x00\xff", "\xff", "\xff\xff", "#"}
	hostileNumbers = []string{
		"0", "1", "-1", "2", "10", "9", "-10", "0.5", "-0.5", "1.5", "100", "1e-130", "-1e-130", "9.9e125", "-9.9e125",
		"99999999999999999999999999999999999999", "-99999999999999999999999999999999999999",
		"1.2345678901234567890123456789012345678", "12345678901234567890123456789012345678e50",
	}
)

func drawScalar(t *rapid.T, kind string) ddbmodel.Value {
	switch kind {
	case "S":
		return ddbmodel.String(oneOf(t, "S", hostileTexts...))
	case "N":
		return ddbmodel.Number(oneOf(t, "N", hostileNumbers...))
	case "B":
		return ddbmodel.Binary(oneOf(t, "B", hostileBinary...))
	case "BOOL":
		return ddbmodel.Boolean(rapid.Bool().Draw(t, "BOOL"))
	}
	return ddbmodel.Null()
}

func drawMembers(t *rapid.T, kind string) ddbmodel.Value {
	members := make([]string, rapid.IntRange(1, 3).Draw(t, "members"))
	for i := range members {
		members[i] = drawScalar(t, strings.TrimSuffix(kind, "S")).Text
		if rarely(t, "empty", 8) && kind != "NS" {
			members[i] = ""
		}
	}
	return ddbmodel.SetOf(kind, members...)
}

// drawAny draws a value of any type.
func drawAny(t *rapid.T, depth int) ddbmodel.Value {
	kinds := []string{"S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M"}
	if depth == 0 {
		kinds = kinds[:8]
	}
	switch kind := oneOf(t, "type", kinds...); kind {
	case "S", "B":
		if rarely(t, "empty", 6) {
			return ddbmodel.Value{Type: kind}
		}
		return drawScalar(t, kind)
	case "L":
		list := make([]ddbmodel.Value, rapid.IntRange(0, 3).Draw(t, "elements"))
		for i := range list {
			list[i] = drawAny(t, depth-1)
		}
		return ddbmodel.ListOf(list...)
	case "M":
		m := ddbmodel.Item{}
		for range rapid.IntRange(0, 3).Draw(t, "members") {
			m[oneOf(t, "name", "a", "b", "#", "a.b", "é")] = drawAny(t, depth-1)
		}
		return ddbmodel.MapOf(m)
	case "SS", "NS", "BS":
		return drawMembers(t, kind)
	default:
		return drawScalar(t, kind)
	}
}

// table draws one of the tables.
func (d *requestDrawer) table(t *rapid.T) *drawnTable {
	return d.tables[rapid.IntRange(0, len(d.tables)-1).Draw(t, "table")]
}

// item draws an item, sometimes one that its table rejects.
func (d *drawnTable) item(t *rapid.T) ddbmodel.Item {
	key := d.keys(t)
	item := d.attributes(t, key)
	for name, v := range key {
		item[name] = v
	}
	if rarely(t, "fault", 30) {
		name := oneOf(t, "key", d.Key...).Name
		if oneOf(t, "kind", "missing", "type") == "missing" {
			delete(item, name)
		} else {
			item[name] = drawAny(t, 0)
		}
	}
	return item
}

// key draws a key: of an existing item, or of another, or sometimes an invalid one.
func (d *drawnTable) key(t *rapid.T) ddbmodel.Item {
	key := d.keys(t)
	if items := d.Items(); len(items) > 0 && rapid.Bool().Draw(t, "present") {
		key = d.KeyOf(rapid.SampledFrom(items).Draw(t, "item"))
	}
	if rarely(t, "fault", 40) {
		name := oneOf(t, "key", d.Key...).Name
		switch oneOf(t, "kind", "missing", "more", "type") {
		case "missing":
			delete(key, name)
		case "more":
			key["more"] = drawAny(t, 0)
		case "type":
			key[name] = drawAny(t, 0)
		}
	}
	return key
}

// path draws a path outside the keys.
func (d *drawnTable) path(t *rapid.T) ddbmodel.Path {
	p := ddbmodel.Attribute(oneOf(t, "attribute", d.names...))
	for _, x := range d.Indexes {
		if slices.ContainsFunc(x.Key, func(a ddbmodel.KeyAttribute) bool { return a.Name == p[0].Name }) {
			return p
		}
	}
	for range oneOf(t, "steps", 0, 0, 0, 1, 1, 2) {
		if rapid.Bool().Draw(t, "index") {
			p = append(p, ddbmodel.Step{IsIndex: true, Index: rapid.IntRange(0, 3).Draw(t, "at")})
		} else {
			p = append(p, ddbmodel.Step{Name: oneOf(t, "member", "a", "b", "a.b")})
		}
	}
	return p
}

// paths draws at most `most` different paths. No path is below another. It may return nil.
func (d *drawnTable) paths(t *rapid.T, most int) []ddbmodel.Path {
	var paths []ddbmodel.Path
	for range rapid.IntRange(0, most).Draw(t, "paths") {
		p := d.path(t)
		if !slices.ContainsFunc(paths, p.Collides) {
			paths = append(paths, p)
		}
	}
	return paths
}

// likely draws a value that an item probably has at a path.
func (d *drawnTable) likely(t *rapid.T, p ddbmodel.Path, kinds ...string) ddbmodel.Literal {
	var there []ddbmodel.Value
	for _, item := range d.Items() {
		if v, ok := item[p[0].Name]; ok && len(p) == 1 && (kinds == nil || slices.Contains(kinds, v.Type)) {
			there = append(there, v)
		}
	}
	switch {
	case len(there) > 0 && rapid.Bool().Draw(t, "there"):
		return ddbmodel.Literal{Value: rapid.SampledFrom(there).Draw(t, "value")}
	case kinds != nil:
		return ddbmodel.Literal{Value: drawScalar(t, oneOf(t, "type", kinds...))}
	}
	return ddbmodel.Literal{Value: drawAny(t, 1)}
}

// condition draws a condition that DynamoDB accepts.
func (d *drawnTable) condition(t *rapid.T, depth int) ddbmodel.Condition {
	kinds := []string{"exists", "not exists", "=", "<>", "order", "between", "in", "type", "begins_with", "contains", "size"}
	if depth > 0 {
		kinds = append(kinds, "and", "or", "not")
	}
	kind := oneOf(t, "condition", kinds...)
	switch kind {
	case "and":
		return ddbmodel.And{A: d.condition(t, depth-1), B: d.condition(t, depth-1)}
	case "or":
		return ddbmodel.Or{A: d.condition(t, depth-1), B: d.condition(t, depth-1)}
	case "not":
		return ddbmodel.Not{A: d.condition(t, depth-1)}
	}
	p := d.path(t)
	read := ddbmodel.Read{Path: p}
	switch kind {
	case "exists":
		return ddbmodel.Exists{Path: p}
	case "not exists":
		return ddbmodel.NotExists{Path: p}
	case "=", "<>":
		if other := d.path(t); !p.Collides(other) && rarely(t, "two paths", 4) {
			return ddbmodel.Compare{Op: kind, A: read, B: ddbmodel.Read{Path: other}}
		}
		return ddbmodel.Compare{Op: kind, A: read, B: d.likely(t, p)}
	case "order":
		return ddbmodel.Compare{Op: oneOf(t, "op", "<", "<=", ">", ">="), A: read, B: d.likely(t, p, "S", "N", "B")}
	case "between":
		low, high := orderedPair(t, oneOf(t, "type", "S", "N", "B"))
		return ddbmodel.Between{A: read, Low: ddbmodel.Literal{Value: low}, High: ddbmodel.Literal{Value: high}}
	case "in":
		var list []ddbmodel.Operand
		for range rapid.IntRange(1, 3).Draw(t, "list") {
			list = append(list, d.likely(t, p))
		}
		return ddbmodel.In{A: read, List: list}
	case "type":
		return ddbmodel.IsType{Path: p, Type: oneOf(t, "type", "S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M")}
	case "begins_with":
		return ddbmodel.BeginsWith{Path: p, B: d.likely(t, p, "S", "B")}
	case "contains":
		return ddbmodel.Contains{Path: p, B: d.likely(t, p, "S", "N", "B")}
	}
	size := ddbmodel.Literal{Value: ddbmodel.Number(fmt.Sprint(rapid.IntRange(0, 4).Draw(t, "size")))}
	return ddbmodel.Compare{Op: oneOf(t, "op", "=", "<>", "<", ">="), A: ddbmodel.Size{Path: p}, B: size}
}

// orderedPair draws two values of a type, the lower first.
func orderedPair(t *rapid.T, kind string) (low, high ddbmodel.Value) {
	low, high = drawScalar(t, kind), drawScalar(t, kind)
	if c := (&ddbmodel.RangeCondition{Op: "<", A: low}); c.Holds(high) {
		return high, low
	}
	return low, high
}

// update draws the clauses of an update; sometimes nil for none.
func (d *drawnTable) update(t *rapid.T) []ddbmodel.Clause {
	paths := d.paths(t, 3)
	if rarely(t, "key", 40) {
		paths = append(paths, ddbmodel.Attribute(oneOf(t, "key attribute", d.Key...).Name))
	}
	var clauses []ddbmodel.Clause
	for _, p := range paths {
		switch oneOf(t, "clause", "SET", "SET", "SET", "REMOVE", "ADD", "DELETE") {
		case "REMOVE":
			clauses = append(clauses, ddbmodel.Remove{Path: p})
		case "ADD":
			v := drawMembers(t, oneOf(t, "set", "SS", "NS", "BS"))
			if rapid.Bool().Draw(t, "number") {
				v = drawScalar(t, "N")
			}
			clauses = append(clauses, ddbmodel.Add{Path: p, Value: v})
		case "DELETE":
			clauses = append(clauses, ddbmodel.Delete{Path: p, Value: drawMembers(t, oneOf(t, "set", "SS", "NS", "BS"))})
		default:
			clauses = append(clauses, ddbmodel.Set{Path: p, Value: d.expr(t, p)})
		}
	}
	return clauses
}

// readable draws a path that an update may read: sometimes that of a key attribute, which a new
// item has, too.
func (d *drawnTable) readable(t *rapid.T) ddbmodel.Path {
	if rarely(t, "of the key", 4) {
		return ddbmodel.Attribute(oneOf(t, "key attribute", d.Key...).Name)
	}
	return d.path(t)
}

// expr draws the value of a SET.
func (d *drawnTable) expr(t *rapid.T, p ddbmodel.Path) ddbmodel.Expr {
	switch oneOf(t, "assign", "value", "value", "path", "if_not_exists", "arithmetic", "list_append") {
	case "path":
		return ddbmodel.Read{Path: d.readable(t)}
	case "if_not_exists":
		return ddbmodel.IfNotExists{Path: d.readable(t), Else: ddbmodel.Literal{Value: drawAny(t, 1)}}
	case "arithmetic":
		number := func() ddbmodel.Expr {
			n := ddbmodel.Literal{Value: drawScalar(t, "N")}
			switch oneOf(t, "operand", "same", "value", "path", "if_not_exists") {
			case "same":
				return ddbmodel.Read{Path: p}
			case "path":
				return ddbmodel.Read{Path: d.readable(t)}
			case "if_not_exists":
				return ddbmodel.IfNotExists{Path: p, Else: n}
			}
			return n
		}
		return ddbmodel.Arithmetic{Op: oneOf(t, "op", "+", "-"), A: number(), B: number()}
	case "list_append":
		list := func() ddbmodel.Expr {
			l := ddbmodel.Literal{Value: ddbmodel.ListOf(drawAny(t, 0))}
			switch oneOf(t, "operand", "same", "value", "if_not_exists") {
			case "same":
				return ddbmodel.Read{Path: p}
			case "if_not_exists":
				return ddbmodel.IfNotExists{Path: p, Else: l}
			}
			return l
		}
		return ddbmodel.ListAppend{A: list(), B: list()}
	}
	return d.likely(t, p)
}

// write draws a write of one of the kinds. It is a request of its own if alone is set, and
// otherwise part of a transaction.
func (d *requestDrawer) write(t *rapid.T, alone bool, kinds ...string) ddbmodel.Write {
	table := d.table(t)
	w := ddbmodel.Write{Kind: oneOf(t, "kind", kinds...), Table: table.Name, ReturnsOld: rapid.Bool().Draw(t, "returns old")}
	if w.Kind == "Put" {
		w.Item = table.item(t)
	} else {
		w.Key = table.key(t)
	}
	if w.Kind == "Update" {
		w.Update = table.update(t)
		for !alone && w.Update == nil { // it must have one in a transaction
			w.Update = table.update(t)
		}
	}
	switch {
	case w.Kind == "ConditionCheck" || rarely(t, "conditional", 3):
		w.Condition = table.condition(t, 2)
	case rarely(t, "presence", 4):
		w.Condition = oneOf[ddbmodel.Condition](t, "of the key",
			ddbmodel.Exists{Path: ddbmodel.Attribute(table.Key[0].Name)}, ddbmodel.NotExists{Path: ddbmodel.Attribute(table.Key[0].Name)})
	}
	if alone {
		returns := []string{"", "NONE", "ALL_OLD"}
		if w.Kind == "Update" {
			returns = append(returns, "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW")
		}
		w.Returns = oneOf(t, "returns", returns...)
		w.Capacity = rapid.Bool().Draw(t, "capacity")
	}
	return w
}

// get draws a GetItem.
func (d *requestDrawer) get(t *rapid.T) ddbmodel.Get {
	table := d.table(t)
	return ddbmodel.Get{
		Table: table.Name, Key: table.key(t), Projection: table.paths(t, 2),
		Consistent: rapid.Bool().Draw(t, "consistent"), Capacity: rapid.Bool().Draw(t, "capacity"),
	}
}

// reading draws a Query or Scan of a table or an index.
func (d *requestDrawer) reading(t *rapid.T, query bool) (ddbmodel.Reading, *drawnTable) {
	table := d.table(t)
	r := ddbmodel.Reading{Table: table.Name}
	key := table.Key
	in := table
	if len(table.Indexes) > 0 && rapid.Bool().Draw(t, "index") {
		x := rapid.SampledFrom(table.Indexes).Draw(t, "which")
		r.Index, key = x.Name, x.Key
		switch {
		case x.Projection == "ALL":
		case x.Global:
			// Other combinations are rejected.
			narrow := *table
			narrow.names = append(x.NonKey[:len(x.NonKey):len(x.NonKey)], x.Key[0].Name)
			in = &narrow
		case rapid.Bool().Draw(t, "fetch"):
			r.Select = "ALL_ATTRIBUTES"
		}
	}
	// The filter of a query must not use keys, and no path may lead into one.
	names := slices.DeleteFunc(slices.Clone(in.names), func(name string) bool {
		return slices.ContainsFunc(key, func(a ddbmodel.KeyAttribute) bool { return a.Name == name })
	})
	other := *in
	other.names = names
	if query {
		r.Hash = drawLike(t, table, key[0])
		r.Backward = rapid.Bool().Draw(t, "backward")
		if len(key) > 1 && rapid.Bool().Draw(t, "range") {
			r.Range = drawRange(t, table, key[1])
		}
	}
	if len(names) > 0 && rarely(t, "filter", 3) {
		r.Filter = other.condition(t, 1)
	}
	if r.Select == "" && len(names) > 0 && rarely(t, "projection", 3) {
		r.Projection = other.paths(t, 2)
	}
	return r, table
}

// drawLike draws a value for a key attribute, mostly that of an existing item.
func drawLike(t *rapid.T, table *drawnTable, a ddbmodel.KeyAttribute) ddbmodel.Value {
	var there []ddbmodel.Value
	for _, item := range table.Items() {
		if v := item[a.Name]; v.Type == a.Type {
			there = append(there, v)
		}
	}
	if len(there) > 0 && !rarely(t, "other", 4) {
		return rapid.SampledFrom(there).Draw(t, "there")
	}
	if v := table.keys(t)[a.Name]; v.Type == a.Type {
		return v
	}
	return drawScalar(t, a.Type)
}

func drawRange(t *rapid.T, table *drawnTable, a ddbmodel.KeyAttribute) *ddbmodel.RangeCondition {
	ops := []string{"=", "<", "<=", ">", ">=", "BETWEEN"}
	if a.Type != "N" {
		ops = append(ops, "begins_with", "begins_with")
	}
	c := &ddbmodel.RangeCondition{Op: oneOf(t, "op", ops...), A: drawLike(t, table, a)}
	switch c.Op {
	case "BETWEEN":
		c.B = drawLike(t, table, a)
		if above := (&ddbmodel.RangeCondition{Op: ">", A: c.B}); above.Holds(c.A) {
			c.A, c.B = c.B, c.A
		}
	case "begins_with":
		c.A.Text = c.A.Text[:rapid.IntRange(0, len(c.A.Text)).Draw(t, "prefix")]
		if a.Type == "S" {
			c.A.Text = strings.ToValidUTF8(c.A.Text, "")
		}
	}
	return c
}
