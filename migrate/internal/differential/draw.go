package differential

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/tabletop-emu/tabletop/internal/ddbmodel"
)

// requestDrawer draws requests for the items of a pool: their keys and values, and sometimes
// those of other items.
type requestDrawer struct {
	*rand.Rand
	indexes []ddbmodel.Index
	table   *ddbmodel.Table
	pool    []ddbmodel.Item
	names   []string // attributes outside the table's key
	values  map[string][]ddbmodel.Value
	all     []ddbmodel.Value
	passes  bool // time passes between requests
}

// newRequestDrawer returns a drawer of requests for the items of db.
func newRequestDrawer(r *rand.Rand, db *naive) *requestDrawer {
	w := &requestDrawer{Rand: r, indexes: db.indexes, table: db.table, pool: db.table.Items(), values: map[string][]ddbmodel.Value{}}
	for _, item := range w.pool {
		for _, name := range slices.Sorted(maps.Keys(item)) {
			w.values[name] = append(w.values[name], item[name])
			w.all = append(w.all, item[name])
		}
	}
	w.names = slices.Sorted(maps.Keys(w.values))
	w.names = slices.DeleteFunc(w.names, func(name string) bool { return w.isKey(w.table.Key, name) })
	return w
}

func (w *requestDrawer) isKey(key []ddbmodel.KeyAttribute, name string) bool {
	return slices.ContainsFunc(key, func(a ddbmodel.KeyAttribute) bool { return a.Name == name })
}

func oneOf[T any](w *requestDrawer, from ...T) T { return from[w.IntN(len(from))] }

// one returns true once in n times.
func (w *requestDrawer) one(n int) bool { return w.IntN(n) == 0 }

// step draws a request or, if time passes in the run, sometimes a step in which it passes.
func (w *requestDrawer) step() step {
	if w.passes && w.one(10) {
		return step{passes: oneOf(w, time.Second, time.Minute, time.Hour)}
	}
	switch w.IntN(12) {
	case 0:
		return step{op: w.write(true, "Put")}
	case 1, 2, 3:
		return step{op: w.write(true, "Update")}
	case 4:
		return step{op: w.write(true, "Delete")}
	case 5:
		return step{op: ddbmodel.Get{Table: w.table.Name, Key: w.key(), Projection: w.paths(w.names)}}
	case 6:
		return step{op: w.batchGet()}
	case 7:
		return step{op: w.batchWrite()}
	case 8:
		x := ddbmodel.TransactWrite{}
		for range 1 + w.IntN(3) {
			x.Actions = append(x.Actions, w.write(false, "Put", "Update", "Delete", "ConditionCheck"))
		}
		return step{op: x}
	case 9:
		x := ddbmodel.TransactGet{}
		for range 1 + w.IntN(3) {
			x.Gets = append(x.Gets, ddbmodel.Get{Table: w.table.Name, Key: w.key(), Projection: w.paths(w.names)})
		}
		return step{op: x}
	}
	return w.reading()
}

func (w *requestDrawer) batchGet() ddbmodel.BatchGet {
	b := ddbmodel.BatchGet{Table: w.table.Name, Projection: w.paths(w.names)}
	seen := map[string]bool{}
	for range 1 + w.IntN(4) {
		if key := w.key(); !seen[ddbmodel.Text(key)] {
			seen[ddbmodel.Text(key)] = true
			b.Keys = append(b.Keys, key)
		}
	}
	return b
}

func (w *requestDrawer) batchWrite() ddbmodel.BatchWrite {
	var b ddbmodel.BatchWrite
	for range 1 + w.IntN(4) {
		x := w.write(false, "Put", "Delete")
		x.Condition, x.ReturnsOld = nil, false
		b.Writes = append(b.Writes, x)
	}
	return b
}

// key draws the key of an item of the pool.
func (w *requestDrawer) key() ddbmodel.Item { return w.table.KeyOf(oneOf(w, w.pool...)) }

// value draws a plausible value of the attribute, sometimes a value of another attribute.
func (w *requestDrawer) value(name string) ddbmodel.Value {
	if there := w.values[name]; len(there) > 0 && !w.one(6) {
		return oneOf(w, there...)
	}
	return oneOf(w, w.all...)
}

// ofType draws a value that has one of the types kinds. It returns otherwise if no value has.
func (w *requestDrawer) ofType(otherwise ddbmodel.Value, kinds ...string) ddbmodel.Value {
	fit := slices.DeleteFunc(slices.Clone(w.all), func(v ddbmodel.Value) bool { return !slices.Contains(kinds, v.Type) })
	if len(fit) == 0 {
		return otherwise
	}
	return oneOf(w, fit...)
}

// item draws an item of the pool, with an attribute changed or removed.
func (w *requestDrawer) item() ddbmodel.Item {
	item := maps.Clone(oneOf(w, w.pool...))
	if len(w.names) == 0 {
		return item
	}
	if w.one(2) {
		name := oneOf(w, w.names...)
		item[name] = w.value(name)
	}
	if w.one(3) {
		delete(item, oneOf(w, w.names...))
	}
	return item
}

// write draws a write, alone or in a transaction or batch.
func (w *requestDrawer) write(alone bool, kinds ...string) ddbmodel.Write {
	x := ddbmodel.Write{Kind: oneOf(w, kinds...), Table: w.table.Name}
	if len(w.names) == 0 && x.Kind == "Update" {
		x.Kind = "Put"
	}
	switch x.Kind {
	case "Put":
		x.Item = w.item()
	case "Update":
		x.Key, x.Update = w.key(), w.update()
	default:
		x.Key = w.key()
	}
	if x.Kind == "ConditionCheck" || w.one(3) {
		x.Condition, x.ReturnsOld = w.condition(append(w.names[:len(w.names):len(w.names)], w.table.Key[0].Name), 1), w.one(2)
	}
	if alone {
		x.Returns = oneOf(w, "", "NONE", "ALL_OLD")
		if x.Kind == "Update" {
			x.Returns = oneOf(w, "", "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW")
		}
	}
	return x
}

// update draws a clause for each of some attributes.
func (w *requestDrawer) update() []ddbmodel.Clause {
	var clauses []ddbmodel.Clause
	for i, n := range w.Perm(len(w.names)) {
		if i > 0 && !w.one(2) {
			break
		}
		clauses = append(clauses, w.clause(w.names[n]))
	}
	return clauses
}

func (w *requestDrawer) clause(name string) ddbmodel.Clause {
	p := ddbmodel.Attribute(name)
	literal := func(v ddbmodel.Value) ddbmodel.Expr { return ddbmodel.Literal{Value: v} }
	switch w.IntN(9) {
	case 0, 1:
		return ddbmodel.Set{Path: p, Value: literal(w.value(name))}
	case 2:
		return ddbmodel.Remove{Path: p}
	case 3:
		return ddbmodel.Add{Path: p, Value: w.ofType(ddbmodel.Number("1"), "N")}
	case 4:
		return ddbmodel.Add{Path: p, Value: w.ofType(ddbmodel.SetOf("SS", "a"), "SS", "NS", "BS")}
	case 5:
		return ddbmodel.Delete{Path: p, Value: w.ofType(ddbmodel.SetOf("SS", "a"), "SS", "NS", "BS")}
	case 6:
		old, more := ddbmodel.IfNotExists{Path: p, Else: literal(ddbmodel.ListOf())}, literal(ddbmodel.ListOf(oneOf(w, w.all...)))
		if w.one(2) {
			return ddbmodel.Set{Path: p, Value: ddbmodel.ListAppend{A: more, B: old}}
		}
		return ddbmodel.Set{Path: p, Value: ddbmodel.ListAppend{A: old, B: more}}
	case 7:
		old, more := ddbmodel.IfNotExists{Path: p, Else: literal(ddbmodel.Number("0"))}, literal(w.ofType(ddbmodel.Number("1"), "N"))
		return ddbmodel.Set{Path: p, Value: ddbmodel.Arithmetic{Op: oneOf(w, "+", "-"), A: old, B: more}}
	}
	if w.isKeyOfIndex(name) {
		key := ddbmodel.Attribute(oneOf(w, w.table.Key...).Name)
		return ddbmodel.Set{Path: p, Value: ddbmodel.Read{Path: key}}
	}
	p = append(p, w.inside(name))
	if w.one(3) {
		return ddbmodel.Remove{Path: p}
	}
	return ddbmodel.Set{Path: p, Value: literal(oneOf(w, w.all...))}
}

// isKeyOfIndex reports whether an attribute is an index key, so that no path can lead into it.
func (w *requestDrawer) isKeyOfIndex(name string) bool {
	return slices.ContainsFunc(w.table.Indexes, func(x ddbmodel.Index) bool { return w.isKey(x.Key, name) })
}

// inside draws a path step into a document that the attribute may have.
func (w *requestDrawer) inside(name string) ddbmodel.Step {
	for _, v := range w.values[name] {
		names := slices.DeleteFunc(slices.Sorted(maps.Keys(v.Map)), func(name string) bool { return name == "" }) // an expression cannot contain ""
		if len(names) > 0 && !w.one(3) {
			return ddbmodel.Step{Name: oneOf(w, names...)}
		}
	}
	if w.one(2) {
		return ddbmodel.Step{Name: "k"}
	}
	return ddbmodel.Step{IsIndex: true, Index: w.IntN(3)}
}

// paths draws the projection of a read, nil for all.
func (w *requestDrawer) paths(names []string) []ddbmodel.Path {
	if len(names) == 0 || !w.one(3) {
		return nil
	}
	p := ddbmodel.Attribute(oneOf(w, names...))
	if w.one(3) && !w.isKeyOfIndex(p[0].Name) {
		p = append(p, w.inside(p[0].Name))
	}
	return []ddbmodel.Path{p}
}

// condition draws a condition on attributes.
func (w *requestDrawer) condition(names []string, depth int) ddbmodel.Condition {
	kind := w.IntN(8 + 3*depth)
	if kind >= 8 {
		a, b := w.condition(names, depth-1), w.condition(names, depth-1)
		return oneOf[ddbmodel.Condition](w, ddbmodel.And{A: a, B: b}, ddbmodel.Or{A: a, B: b}, ddbmodel.Not{A: a})
	}
	name := oneOf(w, names...)
	p := ddbmodel.Attribute(name)
	read := ddbmodel.Read{Path: p}
	literal := func(v ddbmodel.Value) ddbmodel.Operand { return ddbmodel.Literal{Value: v} }
	scalar := func() ddbmodel.Operand { return literal(w.ofType(ddbmodel.String("a"), "S", "N", "B")) }
	switch kind {
	case 0:
		return ddbmodel.Exists{Path: p}
	case 1:
		return ddbmodel.NotExists{Path: p}
	case 2:
		return ddbmodel.Compare{Op: oneOf(w, "=", "<>"), A: read, B: literal(w.value(name))}
	case 3:
		return ddbmodel.Compare{Op: oneOf(w, "<", "<=", ">", ">="), A: read, B: scalar()}
	case 4:
		return ddbmodel.IsType{Path: p, Type: oneOf(w, w.all...).Type}
	case 5:
		return ddbmodel.Contains{Path: p, B: scalar()}
	case 6:
		return ddbmodel.BeginsWith{Path: p, B: literal(w.ofType(ddbmodel.String("a"), "S", "B"))}
	}
	return ddbmodel.In{A: read, List: []ddbmodel.Operand{literal(w.value(name)), literal(w.value(name))}}
}

// reading draws a Query or Scan of the table or an index.
func (w *requestDrawer) reading() step {
	r := ddbmodel.Reading{Table: w.table.Name}
	key, names := w.table.Key, w.names
	if len(w.indexes) > 0 && w.one(2) {
		x := oneOf(w, w.indexes...)
		r.Index, key = x.Name, x.Key
		if x.Projection != "ALL" {
			names = x.NonKey
		}
	}
	// A filter of a Query cannot use key attributes.
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return w.isKey(key, name) })
	s := step{limit: oneOf(w, 0, 0, 1, 2, 3)}
	if hashes := w.keyValues(key[0]); len(hashes) > 0 && !w.one(4) {
		r.Hash, r.Backward = oneOf(w, hashes...), w.one(2)
		if len(key) > 1 && w.one(2) {
			r.Range = w.between(key[1])
		}
	} else if w.one(3) {
		s.segments = 2 + w.IntN(2)
	}
	if len(names) > 0 && w.one(3) {
		r.Filter = w.condition(names, 1)
	}
	r.Projection = w.paths(names)
	s.reading = r
	return s
}

// keyValues returns values to query a key attribute by.
func (w *requestDrawer) keyValues(a ddbmodel.KeyAttribute) []ddbmodel.Value {
	return slices.DeleteFunc(slices.Clone(w.values[a.Name]), func(v ddbmodel.Value) bool { return v.Type != a.Type || v.Type != "N" && v.Text == "" })
}

// between draws a condition on a sort key; nil if no item of the pool has a value for it.
func (w *requestDrawer) between(a ddbmodel.KeyAttribute) *ddbmodel.RangeCondition {
	values := w.keyValues(a)
	if len(values) == 0 {
		return nil
	}
	c := &ddbmodel.RangeCondition{Op: oneOf(w, "=", "<", "<=", ">", ">=", "BETWEEN", "begins_with"), A: oneOf(w, values...)}
	switch {
	case c.Op == "BETWEEN":
		c.B = oneOf(w, values...)
		if above := (&ddbmodel.RangeCondition{Op: ">", A: c.B}); above.Holds(c.A) {
			c.A, c.B = c.B, c.A
		}
	case c.Op == "begins_with" && a.Type == "N":
		c.Op = "<="
	case c.Op == "begins_with":
		c.A.Text = c.A.Text[:1+w.IntN(len(c.A.Text))]
		if a.Type == "S" {
			c.A.Text = strings.ToValidUTF8(c.A.Text, "")
		}
	}
	return c
}
