package layout

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// parseRow sets the variables that the row of a rule tells; false where it is
// no row of the rule.
func (l *rules) parseRow(r *rule, row Row) ([]attr.Value, bool) {
	segs, ok := l.joiner.split(row.Key, len(r.row), r.widths)
	if !ok {
		return nil, false
	}
	vars := make([]attr.Value, firstCapture+len(r.captures))
	for i, t := range r.row {
		if !t.match(segs[i], vars, nil) {
			return nil, false
		}
	}
	for slot, p := range r.stored {
		i := slices.IndexFunc(row.Cells, func(c Cell) bool {
			return c.Family == p.family && p.qual.match(c.Qualifier, nil, nil)
		})
		if i < 0 {
			return nil, false
		}
		v, err := p.codec.decode(row.Cells[i].Value, Schema{Type: r.keyTypes[slot]})
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

// keyItem is the item of the key attributes of vars; false where one is
// missing or the key is another rule's.
func (l *rules) keyItem(r *rule, vars []attr.Value) (attr.Item, bool) {
	key := attr.Item{}
	for i, a := range l.key.attrs() {
		if vars[i].IsAbsent() {
			return nil, false
		}
		key[a.Name] = vars[i]
	}
	of, again, err := l.bind(key)
	return key, err == nil && of == r && agree(vars, again)
}

// column is a run of versions of one column, newest first.
type column struct {
	family   string
	qual     []byte
	versions []Cell
}

func columns(cells []Cell, f func(column) error) error {
	for i := 0; i < len(cells); {
		j := i + 1
		for j < len(cells) && cells[j].Family == cells[i].Family && bytes.Equal(cells[j].Qualifier, cells[i].Qualifier) {
			j++
		}
		if err := f(column{cells[i].Family, cells[i].Qualifier, cells[i:j]}); err != nil {
			return err
		}
		i = j
	}
	return nil
}

// sidecarOf are the newest values of the row's type cells, by qualifier.
func sidecarOf(row Row) map[string][]byte {
	var side map[string][]byte
	_ = columns(row.Cells, func(c column) error {
		if c.family == FamilyTypes {
			if side == nil {
				side = map[string][]byte{}
			}
			side[string(c.qual)] = c.versions[0].Value
		}
		return nil
	})
	return side
}

func (l *rules) corrupt(r *rule, row Row, c column, err error) *Error {
	return &Error{Code: CodeCorrupt, Table: l.table, Rule: r.name, Row: row.Key, What: fmt.Sprintf("cell %s:%q: %v", c.family, c.qual, err)}
}

func (l *rules) items(row Row) ([]attr.Item, error) {
	side := sidecarOf(row)
	var items []attr.Item
	for _, r := range l.rules {
		vars, ok := l.parseRow(r, row)
		if !ok {
			continue
		}
		d := &decoder{l: l, r: r, row: row, rowVars: vars, side: side, items: map[string]*partial{}}
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

func sortByKey(key KeySchema, items []attr.Item) {
	slices.SortFunc(items, func(a, b attr.Item) int { return compareKeys(key, a, b) })
}

// decoder takes the items of one rule out of a row.
type decoder struct {
	l       *rules
	r       *rule
	row     Row
	rowVars []attr.Value
	side    map[string][]byte
	items   map[string]*partial // by key
	only    *partial            // of an exclusive row, once its key is known
	foreign bool                // the row is another rule's
}

// partial is an item while its cells come in.
type partial struct {
	item   attr.Item
	vars   []attr.Value
	sets   map[string][]string
	extras attr.Item
}

func (d *decoder) run() error {
	if err := columns(d.row.Cells, d.column); err != nil {
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

// claim returns the item that has the given variables, nil where no item of
// this rule has.
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
	id := string(attr.AppendItemJSON(nil, key))
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
		return d.rowVars // complete already, and never changed
	}
	return slices.Clone(d.rowVars)
}

func (d *decoder) column(c column) error {
	switch c.family {
	case FamilyState:
		return nil
	case FamilyTypes:
		return d.typeColumn(c)
	}
	if d.r.exclusive {
		if name, ok := d.l.familyAttr[c.family]; ok && !d.r.spells(name, c.family) {
			return d.familyColumn(c, name, c.qual)
		}
		if name, member, ok := bytes.Cut(c.qual, []byte{0}); ok && d.l.shared == c.family && d.l.sharedAttrs[string(name)] {
			return d.familyColumn(c, string(name), member)
		}
	}
	// Literal columns before "*".
	for _, star := range [2]bool{false, true} {
		for _, put := range d.r.puts {
			if put.star == star && put.family == c.family {
				if done, err := d.putColumn(c, put); done || err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// spells reports whether a put of the rule says how the members or keys of an
// attribute are written in a family.
func (r *rule) spells(name, family string) bool {
	p := r.byAttr[name]
	return p != nil && p.family == family && (p.members || p.mapKeys)
}

// tagged reports whether the tags say that the column is this rule's.
func (d *decoder) tagged(c column) bool {
	if len(d.side) == 0 {
		return !d.r.tag
	}
	tag, ok := d.side["r/"+c.family+":"+string(c.qual)]
	if d.r.tag {
		return ok && string(tag) == d.r.name
	}
	return !ok || string(tag) == d.r.name
}

// putColumn reads a column as one of the put's; done is false where it is not.
func (d *decoder) putColumn(c column, put *put) (done bool, err error) {
	if put.byTime {
		for _, cell := range c.versions {
			vars, special := slices.Clone(d.rowVars), ""
			if cell.Timestamp%1000 != 0 || cell.Timestamp < 0 || !put.qual.match(c.qual, vars, &special) || !d.nameable(put, special) {
				continue
			}
			vars[put.timeSlot] = attr.Int(cell.Timestamp / 1000)
			p := d.claim(vars)
			if p == nil {
				continue
			}
			done = true
			d.expiry(p, cell.Timestamp)
			if err := d.value(p, put, put.named(special), special, column{c.family, c.qual, []Cell{cell}}); err != nil {
				return true, err
			}
		}
		return done, nil
	}
	vars, special := d.vars(), ""
	if !put.qual.match(c.qual, vars, &special) || !d.tagged(c) {
		return false, nil
	}
	if !d.nameable(put, special) {
		return false, nil
	}
	p := d.claim(vars)
	if p == nil {
		return false, nil
	}
	d.expiry(p, c.versions[0].Timestamp)
	if put.stored {
		return true, nil // told already
	}
	if put.flatten {
		return true, d.leaf(p, put, special, c)
	}
	return true, d.value(p, put, put.named(special), special, c)
}

// nameable reports whether the text of {attr} or {key} can be a name.
func (d *decoder) nameable(put *put, special string) bool {
	switch {
	case !utf8.ValidString(special):
		return !put.star && !put.mapKeys
	case put.flatten:
		path, ok := parsePath(special)
		return ok && (!put.star || path[0] != "" && !d.l.key.isKey(path[0]))
	case put.star && !put.whole:
		return special != "" && !d.l.key.isKey(special)
	}
	return true
}

// named is the attribute of a column, whose {attr} is special.
func (c *put) named(special string) string {
	if c.star {
		return special
	}
	return c.attr
}

// value adds what a put's column holds to the item.
func (d *decoder) value(p *partial, put *put, name, special string, c column) error {
	newest := c.versions[0]
	schema := d.l.schema[name]
	switch {
	case put.presence:
		return nil
	case put.whole:
		rest, err := put.all(newest.Value, d.l.itemSchema())
		if err != nil {
			return d.l.corrupt(d.r, d.row, c, err)
		}
		for k, v := range rest {
			if !d.l.key.isKey(k) {
				p.item[k] = v
			}
		}
		return nil
	case put.members:
		return d.member(p, name, []byte(special), schema.Type, c)
	case put.mapKeys:
		return d.mapValue(p, name, special, schema, c)
	}
	if put.timeAttr != "" && !put.timeKey {
		if v, ok := put.timeValue(newest.Timestamp); ok {
			p.item[put.timeAttr] = v
		}
	}
	t, form, marked := d.markOf(put, name, c)
	if form == markEmpty {
		marked = false // stale: what is there wins
	}
	if put.codec.kind == codecByType && d.listColumn(put, t, form, marked, schema) {
		list := make([]attr.Value, len(c.versions))
		for i, cell := range c.versions {
			e, err := parseTagged(cell.Value)
			if err != nil {
				return d.l.corrupt(d.r, d.row, c, err)
			}
			list[i] = e
		}
		if !put.newest {
			slices.Reverse(list)
		}
		p.item[name] = attr.Value{Type: attr.L, List: list}
		return nil
	}
	v, err := d.plain(put.codec, t, form, marked, newest.Value, schema)
	if err != nil {
		return d.l.corrupt(d.r, d.row, c, err)
	}
	p.item[name] = v
	return nil
}

// all is the inverse of placer.all.
func (c *put) all(value []byte, schema Schema) (attr.Item, error) {
	if c.codec.kind != codecProto {
		return attr.UnmarshalItem(value)
	}
	v, err := c.codec.decode(value, schema)
	return v.Map, err
}

// listColumn reports whether each version of the column is an element.
func (d *decoder) listColumn(put *put, t attr.Type, form byte, marked bool, schema Schema) bool {
	if !d.r.exclusive || put.timeSlot != slotNone || put.timeAttr != "" || d.l.listRoom(put.family) == 0 {
		return false
	}
	if marked {
		return t == attr.L && form == 0
	}
	return schema.Type == attr.L
}

// ListElement reports whether c, one of the cells of an item's row that a rule
// takes, is an element of a list. ParseElement reads it.
func (m *Mapping) ListElement(rule string, cells []Cell, c Cell) bool {
	l, r := m.ruleNamed(rule)
	if r == nil {
		return false
	}
	d := &decoder{l: l, r: r, side: sidecarOf(Row{Cells: cells})}
	for _, star := range [2]bool{false, true} {
		for _, put := range r.puts {
			vars, special := make([]attr.Value, firstCapture+len(r.captures)), ""
			if put.star != star || put.family != c.Family || put.codec.kind != codecByType || put.presence || put.members || put.mapKeys ||
				!put.qual.match(c.Qualifier, vars, &special) || !d.nameable(put, special) {
				continue
			}
			name := put.named(special)
			t, form, marked := d.markOf(put, name, column{family: c.Family, qual: c.Qualifier})
			return d.listColumn(put, t, form, marked && form != markEmpty, l.schema[name])
		}
	}
	return false
}

func (d *decoder) plain(c codec, t attr.Type, form byte, marked bool, b []byte, schema Schema) (attr.Value, error) {
	switch {
	case !marked:
		return c.decode(b, schema)
	case form == markJSON:
		return attr.UnmarshalValue(b)
	}
	return parseScalar(t, b)
}

// markOf is the type mark of an attribute's cell.
func (d *decoder) markOf(put *put, name string, c column) (attr.Type, byte, bool) {
	switch {
	case len(d.side) == 0 || !d.r.exclusive && put.byTime:
		return attr.Absent, 0, false
	case d.r.exclusive:
		return parseMark(d.side["a/"+name])
	}
	return parseMark(d.side["c/"+c.family+":"+string(c.qual)])
}

// familyColumn reads the column of a member or key in the family of a set or
// map.
func (d *decoder) familyColumn(c column, name string, member []byte) error {
	p := d.claim(d.rowVars)
	if p == nil {
		return nil
	}
	d.expiry(p, c.versions[0].Timestamp)
	schema := d.l.schema[name]
	t := schema.Type
	if marked, form, ok := parseMark(d.side["a/"+name]); ok && form == 0 {
		t = marked
	}
	isSet, isMap := d.l.setFamily[name] == c.family, d.l.mapFamily[name] == c.family
	switch {
	case isSet && t.IsSet():
		return d.member(p, name, member, t, c)
	case isMap && t == attr.M, isMap && !isSet:
		return d.mapValue(p, name, string(member), schema, c)
	case isSet:
		return d.member(p, name, member, attr.SS, c)
	}
	return nil
}

func (d *decoder) member(p *partial, name string, member []byte, t attr.Type, c column) error {
	m := string(member)
	switch {
	case t == attr.NS:
		n, err := attr.ParseNumber(m)
		if err != nil {
			return d.l.corrupt(d.r, d.row, c, err)
		}
		m = n
	case t == attr.SS && !utf8.Valid(member):
		return d.l.corrupt(d.r, d.row, c, fmt.Errorf("%x is no string", clip(member)))
	}
	v := p.item[name]
	if v.Type != t {
		v = attr.Value{Type: t}
	}
	if p.sets == nil {
		p.sets = map[string][]string{}
	}
	p.sets[name] = append(p.sets[name], m)
	p.item[name] = v
	return nil
}

// leaf reads a column of a flattened put.
func (d *decoder) leaf(p *partial, put *put, special string, c column) error {
	path, _ := parsePath(special)
	if !put.star {
		path = append([]string{put.attr}, path...)
	}
	if len(path) == 1 {
		return d.value(p, put, path[0], special, c)
	}
	if put.timeAttr != "" && !put.timeKey {
		if v, ok := put.timeValue(c.versions[0].Timestamp); ok {
			p.item[put.timeAttr] = v
		}
	}
	schema := d.l.schema[path[0]]
	for _, k := range path[1:] {
		schema = schema.at(k)
	}
	t, form, marked := parseMark(d.side["c/"+c.family+":"+string(c.qual)])
	v, err := d.plain(byType, t, form, marked, c.versions[0].Value, schema)
	if err != nil {
		return d.l.corrupt(d.r, d.row, c, err)
	}
	at := p.item
	for _, k := range path[:len(path)-1] {
		m := at[k]
		if m.Type != attr.M {
			m = attr.MapOf(map[string]attr.Value{})
			at[k] = m
		}
		at = m.Map
	}
	at[path[len(path)-1]] = v
	return nil
}

func (d *decoder) mapValue(p *partial, name, key string, schema Schema, c column) error {
	if !utf8.ValidString(key) {
		return d.l.corrupt(d.r, d.row, c, fmt.Errorf("%q is no map key", key))
	}
	t, form, marked := parseMark(d.side["c/"+c.family+":"+string(c.qual)])
	v, err := d.plain(byType, t, form, marked, c.versions[0].Value, schema.at(key))
	if err != nil {
		return d.l.corrupt(d.r, d.row, c, err)
	}
	m := p.item[name]
	if m.Type != attr.M {
		m = attr.MapOf(map[string]attr.Value{})
		p.item[name] = m
	}
	m.Map[key] = v
	return nil
}

// typeColumn reads a sidecar cell that says something of its own: that an
// item, or an empty map or list, is there.
func (d *decoder) typeColumn(c column) error {
	value := c.versions[0].Value
	if rest, ok := strings.CutPrefix(string(c.qual), "i/"+d.r.name+"/"); ok {
		vars := d.vars()
		if !d.present(rest, vars) {
			return nil
		}
		p := d.claim(vars)
		if p == nil {
			return nil
		}
		d.expiry(p, c.versions[0].Timestamp)
		var err error
		if p.extras, err = parseExtras(value); err != nil {
			return d.l.corrupt(d.r, d.row, c, err)
		}
		return nil
	}
	name, ok := strings.CutPrefix(string(c.qual), "a/")
	if !ok || !d.r.exclusive || d.l.key.isKey(name) {
		return nil
	}
	t, form, ok := parseMark(value)
	if !ok || form != markEmpty || cmp.Or(d.r.byAttr[name], d.r.star) == nil {
		return nil
	}
	p := d.claim(d.rowVars)
	if p == nil {
		return nil
	}
	d.expiry(p, c.versions[0].Timestamp)
	if _, has := p.item[name]; !has {
		p.item[name] = attr.Value{Type: t}
		if t == attr.M {
			p.item[name] = attr.MapOf(map[string]attr.Value{})
		}
	}
	return nil
}

// present sets the variables that the captures of a cell i/ tell, which is that of an
// item; false where they are not what the rule writes.
func (d *decoder) present(captures string, vars []attr.Value) bool {
	segs, ok := identityJoiner.split([]byte(captures), max(1, len(d.r.identity)), nil)
	if !ok || len(d.r.identity) == 0 && captures != "" {
		return false
	}
	for i, slot := range d.r.identity {
		v, err := parseScalar(d.r.typeOf(slot), segs[i])
		if err != nil {
			return false
		}
		vars[slot] = v
	}
	return true
}

// typeOf is the type of a variable.
func (r *rule) typeOf(slot int) attr.Type {
	if slot < r.keys {
		return r.keyTypes[slot]
	}
	return r.captures[slot-firstCapture].enc.in
}

// complete turns what was gathered into the item.
func (d *decoder) complete(p *partial) error {
	for name, members := range p.sets {
		p.item[name] = attr.SetOf(p.item[name].Type, members...)
	}
	for name, v := range p.extras {
		if v.IsAbsent() {
			delete(p.item, name)
		} else if !d.l.key.isKey(name) {
			p.item[name] = v
		}
	}
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
		if attr.EqualItems(l.key.keyOf(item), l.key.keyOf(key)) {
			return item, nil
		}
	}
	return nil, nil
}
