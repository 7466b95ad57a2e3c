package layout

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/rowkey"
)

// parseRow returns the values of the variables that a row key determines, and of those in cells
// that only cells determine. It returns false if the rule does not write such a row.
func (l *rules) parseRow(r *rule, row Row) ([]attr.Value, bool) {
	segs, ok := l.split(r, row.Key)
	if !ok {
		return nil, false
	}
	vars := make([]attr.Value, rowkey.FirstCapture+len(r.captures))
	for i, t := range r.row {
		if !t.Match(segs[i], vars, nil) {
			return nil, false
		}
	}
	for slot, p := range r.stored {
		i := slices.IndexFunc(row.Cells, func(c Cell) bool {
			return c.Family == p.family && p.qual.Match(c.Qualifier, nil, nil)
		})
		if i < 0 {
			return nil, false
		}
		v, err := p.codec.Decode(row.Cells[i].Value, codec.Schema{Type: r.typeOf(slot)})
		if err != nil {
			return nil, false
		}
		vars[slot] = v
	}
	if !r.derive(vars) {
		return nil, false
	}
	again, err := l.rowKey(r, vars, nil)
	return vars, err == nil && bytes.Equal(again, row.Key)
}

// split splits a row key of a rule into its segments.
func (l *rules) split(r *rule, key []byte) ([][]byte, bool) {
	if r.closed {
		return l.joiner.SplitClosed(key, len(r.row), r.widths)
	}
	return l.joiner.Split(key, len(r.row), r.widths)
}

// keyItem returns the key attributes of vars as an item; false if one is missing or the key
// belongs to another rule.
func (l *rules) keyItem(r *rule, vars []attr.Value) (attr.Item, bool) {
	key := attr.Item{}
	for i, a := range l.key.Attrs() {
		if vars[i].IsAbsent() {
			return nil, false
		}
		key[a.Name] = vars[i]
	}
	of, again, err := l.bind(key)
	return key, err == nil && of == r && agree(vars, again)
}

// corrupt returns the error for a column that no item can have produced. attribute is "" if
// the column has no attribute.
func (d *decoder) corrupt(c lens.Column, attribute string, err error) *maperr.Error {
	return &maperr.Error{Code: maperr.CodeCorrupt, Table: d.l.table, Rule: d.r.name, Row: d.row.Key, Attribute: attribute, What: fmt.Sprintf("cell %s:%q: %v", c.Family, c.Qualifier, err)}
}

func (l *rules) items(row Row) ([]attr.Item, error) { return l.read(row, l.rules, false) }

// read returns the items that some of the rules wrote to a row. newest means that the row has no
// older cell of a column.
func (l *rules) read(row Row, by []*rule, newest bool) ([]attr.Item, error) {
	side := lens.Sidecar(row)
	var items []attr.Item
	for _, r := range by {
		vars, ok := l.parseRow(r, row)
		if !ok {
			continue
		}
		d := &decoder{l: l, r: r, row: row, rowVars: vars, side: side, items: map[string]*partial{}, newest: newest}
		if err := d.run(); err != nil {
			return nil, err
		}
		for _, p := range d.items {
			items = append(items, p.item)
		}
	}
	sortByKey(l.key, items)
	return items, nil
}

func sortByKey(key attr.KeySchema, items []attr.Item) {
	slices.SortFunc(items, func(a, b attr.Item) int { return compareKeys(key, a, b) })
}

// decoder extracts the items of one rule from a row.
type decoder struct {
	l       *rules
	r       *rule
	row     Row
	rowVars []attr.Value
	side    map[string][]byte
	items   map[string]*partial // by key; by "" in an exclusive row
	only    *partial            // of an exclusive row, once its key is known
	foreign bool                // the row belongs to another rule
	newest  bool                // the row has no older cells
}

// partial is an incomplete item during decoding.
type partial struct {
	item   attr.Item
	vars   []attr.Value
	sets   map[string][]string
	extras attr.Item
}

func (d *decoder) run() error {
	if err := lens.Columns(d.row.Cells, d.column); err != nil {
		return err
	}
	for _, p := range d.items {
		if err := d.complete(p); err != nil {
			return err
		}
	}
	d.copies()
	return nil
}

// claim returns the item with the given variables, and creates it if necessary. It returns nil if
// the variables do not belong to an item of this rule.
func (d *decoder) claim(vars []attr.Value) *partial {
	if d.r.exclusive && (d.only != nil || d.foreign) {
		return d.only
	}
	if !d.r.derive(vars) || d.r.isCopy(vars) {
		return nil
	}
	key, ok := d.l.keyItem(d.r, vars)
	if !ok {
		d.foreign = true
		return nil
	}
	id := ""
	if !d.r.exclusive {
		id = string(attr.AppendItemJSON(nil, key))
	}
	p := d.items[id]
	if p == nil {
		p = &partial{item: key, vars: vars}
		d.items[id] = p
	}
	if d.r.exclusive {
		d.only = p
	}
	return p
}

func (d *decoder) vars() []attr.Value {
	if d.r.exclusive {
		return d.rowVars // already complete and immutable
	}
	return slices.Clone(d.rowVars)
}

// tagged reports whether the tags assign the column to this rule.
func (d *decoder) tagged(c lens.Column) bool {
	if len(d.side) == 0 {
		return !d.r.tag
	}
	tag, ok := d.side["r/"+c.Family+":"+string(c.Qualifier)]
	if d.r.tag {
		return ok && string(tag) == d.r.name
	}
	return !ok || string(tag) == d.r.name
}

func (d *decoder) plain(c *codec.Codec, t attr.Type, form byte, marked bool, b []byte, schema codec.Schema) (attr.Value, error) {
	switch {
	case !marked:
		return c.Decode(b, schema)
	case form == codec.MarkJSON:
		return attr.UnmarshalValue(b)
	}
	return codec.ParseScalar(t, b)
}

// typeOf returns the type of a variable.
func (r *rule) typeOf(slot int) attr.Type {
	if slot < r.keys {
		return r.keyTypes[slot]
	}
	return r.captures[slot-rowkey.FirstCapture].enc.In
}

// complete adds the members of sets, the attributes in the `i/` cell and the derived attributes
// to an item.
func (d *decoder) complete(p *partial) error {
	for name, members := range p.sets {
		p.item[name] = attr.SetOf(p.item[name].Type, members...)
	}
	for name, v := range p.extras {
		if v.IsAbsent() {
			delete(p.item, name)
		} else if !d.l.key.IsKey(name) {
			p.item[name] = v
		}
	}
	p.derived(d.r)
	return nil
}

func (l *rules) itemOf(row Row, key attr.Item) (attr.Item, error) {
	if err := l.checkKey(key); err != nil {
		return nil, err
	}
	items, err := l.items(row)
	if err != nil {
		return nil, err
	}
	for _, item := range items {
		if attr.EqualItems(l.key.KeyOf(item), l.key.KeyOf(key)) {
			return item, nil
		}
	}
	return nil, nil
}

// column adds the contents of a column to the item that it belongs to. It ignores a column that
// the rule did not write.
func (d *decoder) column(c lens.Column) error {
	switch {
	case lens.Bookkeeping(c.Family):
		return nil
	case c.Family == lens.FamilyTypes:
		return d.typeColumn(c)
	}
	if d.r.exclusive && d.l.expiresWith(d.r, c.Family) {
		if name, ok := d.l.familyAttr[c.Family]; ok && !d.r.spells(name, c.Family) {
			return d.familyColumn(c, name, c.Qualifier)
		}
		if name, member, ok := bytes.Cut(c.Qualifier, []byte{0}); ok && d.l.shared == c.Family && d.l.sharedAttrs[string(name)] {
			return d.familyColumn(c, string(name), member)
		}
	}
	for _, p := range d.r.columns {
		if p.family == c.Family {
			if done, err := p.column(d, c); done || err != nil {
				return err
			}
		}
	}
	return nil
}

// readColumn reads a column of a put into the item with the variables; took is false if no
// item of the rule has them.
func (d *decoder) readColumn(p *put, vars []attr.Value, special string, c lens.Column) (took bool, err error) {
	item := d.claim(vars)
	if item == nil {
		return false, nil
	}
	d.expiry(item, c.Versions[0].Timestamp)
	return true, p.read(d, item, special, c)
}
