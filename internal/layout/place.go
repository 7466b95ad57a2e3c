package layout

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// bind finds the rule of an item, by its key, and the values of the rule's
// variables.
func (l *rules) bind(key attr.Item) (*rule, []attr.Value, *Error) {
	if err := l.checkKey(key); err != nil {
		return nil, nil, err
	}
	for _, r := range l.rules {
		vars := make([]attr.Value, firstCapture+len(r.captures))
		for i, a := range l.key.attrs() {
			vars[i] = key[a.Name]
		}
		if r.derive(vars) {
			return r, vars, nil
		}
	}
	return nil, nil, l.fault(CodeUnmatched, nil, key, "", "no rule takes the key", "")
}

func (l *rules) checkKey(key attr.Item) *Error {
	return checkKey(l.table, l.key, key)
}

func checkKey(table string, schema KeySchema, key attr.Item) *Error {
	for _, a := range schema.attrs() {
		v := key[a.Name]
		what := ""
		switch {
		case v.IsAbsent():
			what = "the key attribute is missing"
		case v.Type != a.Type:
			what = "the key attribute has type " + v.Type.String()
		case v.Str == "":
			what = "the key attribute is empty"
		default:
			continue
		}
		return &Error{Code: CodeKey, Table: table, Attribute: a.Name, What: what, Expected: "type " + a.Type.String()}
	}
	return nil
}

// keyOf returns the key attributes of item alone.
func (k KeySchema) keyOf(item attr.Item) attr.Item {
	key := attr.Item{}
	for _, a := range k.attrs() {
		if v, ok := item[a.Name]; ok {
			key[a.Name] = v
		}
	}
	return key
}

func (l *rules) fault(code Code, r *rule, item attr.Item, attribute, what, expected string) *Error {
	e := &Error{Code: code, Table: l.table, Key: l.key.keyOf(item), Attribute: attribute, What: what, Expected: expected}
	if r != nil {
		e.Rule = r.name
	}
	return e
}

// keyText is how a key attribute is written where templates match it.
func keyText(v attr.Value) []byte { return []byte(v.Str) }

// derive sets the captures from the key attributes that have a value, and the
// key attributes that have none from the captures; false where the rule does
// not take such a key.
func (r *rule) derive(vars []attr.Value) bool {
	for range 3 { // each round can add to the next; there are two key attributes
		if r.same {
			h, s := vars[slotHash], vars[slotRange]
			switch {
			case h.IsAbsent():
				vars[slotHash] = s
			case s.IsAbsent():
				vars[slotRange] = h
			case !attr.Equal(h, s):
				return false
			}
		}
		for slot := range r.keys {
			t := r.when[slot]
			switch {
			case t == nil:
			case !vars[slot].IsAbsent():
				if !t.match(keyText(vars[slot]), vars, nil) {
					return false
				}
			default:
				text, bad := t.render(nil, vars, "")
				if bad != nil {
					continue
				}
				v, err := parseScalar(r.keyTypes[slot], text)
				if err != nil || !bytes.Equal(keyText(v), text) {
					return false
				}
				vars[slot] = v
			}
		}
	}
	return true
}

// rowKey renders the row of a rule.
func (l *rules) rowKey(r *rule, vars []attr.Value, item attr.Item) ([]byte, *Error) {
	var key, seg []byte
	for i, t := range r.row {
		last := i == len(r.row)-1
		var bad *part
		if seg, bad = t.render(seg[:0], vars, ""); bad != nil {
			return nil, l.outside(r, bad, vars, item)
		}
		if t.ambiguous() {
			again := make([]attr.Value, len(vars))
			if !t.match(seg, again, nil) || !agree(again, vars) {
				return nil, l.fault(CodeDelim, r, item, "", fmt.Sprintf("segment %q of template %q is taken apart otherwise", seg, t.src), "values without the literals of the template")
			}
		}
		if l.joiner.kind == joinPlain && !last {
			if k := l.joiner.delimOffence(seg); k >= 0 {
				return nil, l.fault(CodeDelim, r, item, "", fmt.Sprintf("segment %q of the row key (%s) holds byte %q, at or below the delimiter %q", seg, t.src, seg[k], l.joiner.delim),
					"a key without it, or joiner escaped or auto")
			}
		}
		if i > 0 {
			key = append(key, l.joiner.delimiter()...)
		}
		key = l.joiner.appendSegment(key, seg, last)
	}
	if len(key) == 0 || len(key) > MaxRowKeyBytes {
		return nil, l.fault(CodeKeySize, r, item, "", fmt.Sprintf("the row key has %d bytes", len(key)), fmt.Sprintf("1 to %d", MaxRowKeyBytes))
	}
	return key, nil
}

// agree reports whether the variables that a has are those of b.
func agree(a, b []attr.Value) bool {
	for i, v := range a {
		if !v.IsAbsent() && !attr.Equal(v, b[i]) {
			return false
		}
	}
	return true
}

// outside is the error for a variable outside of an encoder's domain.
func (l *rules) outside(r *rule, p *part, vars []attr.Value, item attr.Item) *Error {
	name := ""
	if p.slot >= 0 && p.slot < r.keys {
		name = l.key.attrs()[p.slot].Name
	}
	return l.fault(CodeDomain, r, item, name, fmt.Sprintf("%s does not fit encoder %s", attr.AppendJSON(nil, vars[p.slot]), p.enc.name), p.enc.expected)
}

// placer lays out one item.
type placer struct {
	l      *rules
	r      *rule
	vars   []attr.Value
	item   attr.Item
	time   int64
	cells  []Cell
	extras attr.Item // kept in the `i/` cell; an absent value says that the attribute is
	timed  []*put    // whose cells carry an attribute as their timestamp
}

func (l *rules) place(item attr.Item, defaultTimeMicros int64) (Placed, error) {
	r, vars, err := l.bind(item)
	if err != nil {
		return Placed{}, err
	}
	row, err := l.rowKey(r, vars, item)
	if err != nil {
		return Placed{}, err
	}
	own, err := l.own(r, vars, item)
	if err != nil {
		return Placed{}, err
	}
	if r.isCopy(vars) {
		return Placed{Location: Location{Rule: r.name, Row: row, Own: own, Derived: true}}, nil
	}
	p := &placer{l: l, r: r, vars: vars, item: l.withoutNulls(r, item), time: defaultTimeMicros, extras: attr.Item{}}
	if t := l.ttl; t != nil {
		var told bool
		p.time, told = t.timestamp(item, defaultTimeMicros)
		if err := p.timedOut(told); err != nil {
			return Placed{}, err
		}
	}
	if err := p.attributes(); err != nil {
		return Placed{}, err
	}
	if err := p.finish(); err != nil {
		return Placed{}, err
	}
	placed := Placed{Location: Location{Rule: r.name, Row: row, Own: own}, Cells: p.cells}
	for _, c := range p.cells {
		if c.Family == FamilyTypes {
			placed.Exceptions++
		}
	}
	return placed, nil
}

// withoutNulls is the item without the attributes that codec omit leaves out.
func (l *rules) withoutNulls(r *rule, item attr.Item) attr.Item {
	left := item
	for name, v := range item {
		if v.Type != attr.NULL || !r.accepted[LossNull] || l.key.isKey(name) || r.timeAttrs[name] {
			continue
		}
		if put := cmp.Or(r.byAttr[name], r.star); put == nil || !put.omit {
			continue
		}
		if len(left) == len(item) {
			left = maps.Clone(item)
		}
		delete(left, name)
	}
	return left
}

func (p *placer) attributes() *Error {
	var rest attr.Item
	if p.r.star != nil && p.r.star.whole {
		rest = make(attr.Item, len(p.item))
	}
	names := make([]string, 0, len(p.item))
	for name := range p.item {
		names = append(names, name)
	}
	slices.Sort(names)
	p.cells = make([]Cell, 0, len(names))
	for _, name := range names {
		if put := p.r.byAttr[name]; put != nil && put.stored {
			b, ok := put.codec.encode(p.item[name], Schema{Type: p.item[name].Type})
			if !ok {
				return p.l.fault(CodeDomain, p.r, p.item, name, fmt.Sprintf("%s does not fit the codec", clip(attr.AppendJSON(nil, p.item[name]))), put.codec.expected(Schema{Type: p.item[name].Type}))
			}
			if err := p.cell(put, "", p.l.cellTime(put, p.vars, p.item, p.time), b); err != nil {
				return err
			}
			continue
		}
		if p.l.key.isKey(name) || p.r.timeAttrs[name] || p.l.ttl != nil && name == p.l.ttl.name {
			continue
		}
		put := cmp.Or(p.r.byAttr[name], p.r.star)
		var err *Error
		switch {
		case put == nil:
			err = p.unknown(name)
		case put.whole:
			rest[name] = p.item[name]
		default:
			err = p.attribute(put, name, p.item[name])
		}
		if err != nil {
			return err
		}
	}
	if rest != nil {
		value, err := p.all(p.r.star, rest)
		if err != nil {
			return err
		}
		if err := p.cell(p.r.star, "", p.l.cellTime(p.r.star, p.vars, p.item, p.time), value); err != nil {
			return err
		}
	}
	if p.r.presence != nil {
		if err := p.cell(p.r.presence, "", p.l.cellTime(p.r.presence, p.vars, p.item, p.time), nil); err != nil {
			return err
		}
	}
	return nil
}

// all is the value of the cell that has all attributes of rest. Those that a
// message has no form of are kept aside.
func (p *placer) all(put *put, rest attr.Item) ([]byte, *Error) {
	if put.codec.kind != codecProto {
		return attr.AppendItemJSON(nil, rest), nil
	}
	schema := p.l.itemSchema()
	value, ok := put.codec.encode(attr.MapOf(rest), schema)
	if ok {
		return value, nil
	}
	aside := func(name string) *Error {
		if !p.l.sidecar {
			return p.l.fault(CodeDomain, p.r, p.item, name, fmt.Sprintf("%s has no place in the message", clip(attr.AppendJSON(nil, rest[name]))), put.codec.expected(schema)+", or a family _t for exceptions")
		}
		p.extras[name] = rest[name]
		return nil
	}
	message, all := attr.Item{}, slices.Sorted(maps.Keys(rest))
	for _, name := range all {
		if _, ok := put.codec.encode(attr.MapOf(attr.Item{name: rest[name]}), schema); ok {
			message[name] = rest[name]
		} else if err := aside(name); err != nil {
			return nil, err
		}
	}
	if value, ok = put.codec.encode(attr.MapOf(message), schema); ok {
		return value, nil
	}
	clear(message) // of a oneof, the first
	for _, name := range all {
		if _, told := p.extras[name]; told {
			continue
		}
		message[name] = rest[name]
		if next, ok := put.codec.encode(attr.MapOf(message), schema); ok {
			value = next
			continue
		}
		delete(message, name)
		if err := aside(name); err != nil {
			return nil, err
		}
	}
	return value, nil
}

// itemSchema is the schema of an item as a map of its attributes.
func (l *rules) itemSchema() Schema { return Schema{Type: attr.M, Keys: l.schema} }

// unknown keeps an attribute that no put takes, if the mapping says so.
func (p *placer) unknown(name string) *Error {
	if !p.l.keepUnknown || !p.l.sidecar {
		return p.l.fault(CodeUnknownAttribute, p.r, p.item, name, "the rule has no place for the attribute", `a put for it or for "*"`)
	}
	p.extras[name] = p.item[name]
	return nil
}

// cellTime is the timestamp of a put's cells, in microseconds.
func (l *rules) cellTime(put *put, vars []attr.Value, item attr.Item, defaultMicros int64) int64 {
	switch {
	case put.timeSlot != slotNone:
		millis, _ := integer(vars[put.timeSlot])
		return millis * 1000
	case put.timeAttr != "":
		if v := item[put.timeAttr]; v.Type == attr.S || v.Type == attr.N {
			if millis, ok := put.format.parse(v.Str); ok && v.Type == put.format.valueType() {
				return millis * 1000
			}
		}
	}
	return defaultMicros
}

// valueType is the type of the attributes that have the format: text for ISO,
// a number for epochs.
func (f timeFormat) valueType() attr.Type {
	if f.layout != "" {
		return attr.S
	}
	return attr.N
}

// cell adds a cell of a put.
func (p *placer) cell(put *put, special string, micros int64, value []byte) *Error {
	qual, err := p.qualifier(put, special)
	if err != nil {
		return err
	}
	p.cells = append(p.cells, Cell{Family: put.family, Qualifier: qual, Timestamp: micros, Value: value})
	p.noteTimed(put)
	return nil
}

// noteTimed notes that a cell of the put is there, whose timestamp is an
// attribute.
func (p *placer) noteTimed(put *put) {
	if put.timeAttr != "" && !slices.Contains(p.timed, put) {
		p.timed = append(p.timed, put)
	}
}

func (p *placer) qualifier(put *put, special string) ([]byte, *Error) {
	qual, bad := put.qual.render(nil, p.vars, special)
	if bad != nil {
		return nil, p.l.outside(p.r, bad, p.vars, p.item)
	}
	if len(qual) > MaxQualifierBytes {
		return nil, p.l.fault(CodeLimit, p.r, p.item, special, fmt.Sprintf("the qualifier has %d bytes", len(qual)), fmt.Sprintf("at most %d", MaxQualifierBytes))
	}
	return qual, nil
}

// attribute lays out one attribute.
func (p *placer) attribute(put *put, name string, v attr.Value) *Error {
	schema, known := p.l.schema[name]
	if !known && !put.codec.selfTyped() && (!p.l.keepUnknown || !p.l.sidecar) {
		return p.l.fault(CodeUnknownAttribute, p.r, p.item, name, "the schema has no type for the attribute", "the type in source.schema, or on: {unknown-attribute: sidecar} and a family _t")
	}
	special := ""
	if put.star {
		special = put.special(name)
		if name == "" {
			return p.l.fault(CodeDomain, p.r, p.item, name, "the attribute has no name", "")
		}
		if err := p.reserved(put, name, special); err != nil {
			return err
		}
	}
	if put.omit && v.Type == attr.NULL {
		return p.l.fault(CodeDomain, p.r, p.item, name, "codec omit would lose the NULL", "a value, or accept_loss: [{what: null}]")
	}
	micros := p.l.cellTime(put, p.vars, p.item, p.time)
	if put.flatten && v.Type == attr.M && len(v.Map) > 0 {
		return p.leaves(put, name, v, schema, micros)
	}
	done, err := p.spread(put, name, v, schema, micros)
	if done || err != nil {
		return err
	}
	if put.members || put.mapKeys { // a value of another shape than the put is for
		return p.extra(name, v)
	}
	// In a column of list elements every other value needs its mark.
	b, ok := put.codec.encode(v, schema)
	if !ok && put.codec.kind == codecF64BE && p.r.accepted[LossPrecision] && v.Type == attr.N {
		b, _ = appendFloat(nil, v)
		ok = true
	}
	marked := schema.Type == attr.L && v.Type != attr.L && p.native(put) && p.l.listRoom(put.family) > 0
	if ok && !marked {
		return p.cell(put, special, micros, b)
	}
	// Outside of the codec's domain: the cell holds the native form, and the
	// sidecar says which.
	if b, ok := p.accepted(put.codec, v, schema); ok && !marked {
		return p.cell(put, special, micros, b)
	}
	if put.byTime {
		return p.extra(name, v)
	}
	qual, err := p.qualifier(put, special)
	if err != nil {
		return err
	}
	expected := put.codec.expected(schema)
	if put.codec.kind == codecF64BE && v.Type != attr.N { // accepting its loss would not help
		expected = "type N (codec f64be)"
	}
	if err := p.exception(put, name, qual, v, plainMark(v.Type), "", expected); err != nil {
		return err
	}
	return p.cell(put, special, micros, plain(v))
}

// reserved refuses an attribute whose place under "*" is another put's.
func (p *placer) reserved(star *put, name, special string) *Error {
	if len(p.r.puts) == 1 {
		return nil
	}
	qual, err := p.qualifier(star, special)
	if err != nil {
		return err
	}
	for _, o := range p.r.puts {
		if o == star || o.family != star.family {
			continue
		}
		if other, bad := o.qual.render(nil, p.vars, ""); bad == nil && bytes.Equal(other, qual) {
			return p.l.fault(CodeCollision, p.r, p.item, name, fmt.Sprintf("the cell %s:%s is that of another put", o.family, qual), "another column for it")
		}
	}
	return nil
}

// spread lays out a value that takes a cell an element; done is false where it
// is to be one cell.
func (p *placer) spread(put *put, name string, v attr.Value, schema Schema, micros int64) (done bool, err *Error) {
	native := p.native(put)
	family := ""
	switch {
	case put.members && v.Type.IsSet() && v.Type == schema.Type, put.mapKeys && v.Type == attr.M && len(v.Map) > 0:
		family = put.family
	case !native:
		return false, nil
	case v.Type.IsSet():
		family = p.l.setFamily[name]
	case v.Type == attr.M:
		family = p.l.mapFamily[name]
	}
	switch {
	case (v.Type == attr.M || v.Type == attr.L) && len(v.Map)+len(v.List) == 0 && native && (family != "" || v.Type == attr.L):
		return true, p.exception(put, name, nil, v, mark(v.Type, markEmpty), LossEmpty, "a map or list that is not empty")
	case v.Type.IsSet() && family != "":
		return p.setCells(put, name, v, schema, family, micros)
	case v.Type == attr.M && family != "":
		return p.mapCells(put, name, v, schema, family, micros)
	case v.Type == attr.L && native && len(v.List) > p.l.listRoom(put.family) && p.l.listRoom(put.family) > 0:
		return p.whole(put, name, v, fmt.Sprintf("the list has %d elements", len(v.List)), fmt.Sprintf("at most %d, the versions of family %s", p.l.listRoom(put.family), put.family))
	case v.Type == attr.L && native && p.l.listRoom(put.family) > 0:
		if schema.Type != attr.L {
			if err := p.exception(put, name, nil, v, mark(attr.L), "", expectedType(schema)); err != nil {
				return true, err
			}
		}
		special := ""
		if put.star {
			special = name
		}
		for i, e := range v.List {
			millis := int64(ListEpochMillis + i)
			if put.newest {
				millis = int64(ListEpochMillis - i)
			}
			if err := p.cell(put, special, millis*1000, appendTagged(nil, e)); err != nil {
				return true, err
			}
		}
		return true, nil
	}
	return false, nil
}

// native reports whether a put gives sets, maps and lists a cell an element.
func (p *placer) native(put *put) bool {
	return put.codec.kind == codecByType && p.r.exclusive && put.timeSlot == slotNone && put.timeAttr == "" && !put.members && !put.mapKeys
}

// special is what {attr} stands for.
func (c *put) special(name string) string {
	if c.flatten {
		return string(appendPathKey(nil, name))
	}
	return name
}

func (p *placer) setCells(put *put, name string, v attr.Value, schema Schema, family string, micros int64) (bool, *Error) {
	quals := make([][]byte, len(v.Set))
	for i, m := range v.Set {
		quals[i] = p.l.inFamily(family, name, m)
		if put.members {
			var bad *part
			if quals[i], bad = put.qual.render(nil, p.vars, m); bad != nil {
				return true, p.unwritten(name, v, m, bad)
			}
		}
		if len(quals[i]) > MaxQualifierBytes {
			return p.tooLong(put, name, v)
		}
	}
	if v.Type != schema.Type {
		if err := p.exception(put, name, nil, v, mark(v.Type), "", expectedType(schema)); err != nil {
			return true, err
		}
	}
	for _, q := range quals {
		p.cells = append(p.cells, Cell{Family: family, Qualifier: q, Timestamp: micros, Value: []byte{0}})
	}
	return true, nil
}

// inFamily is the qualifier of a member or key in the family of its attribute.
func (l *rules) inFamily(family, name, member string) []byte {
	if family == l.shared && l.sharedAttrs[name] {
		return []byte(name + "\x00" + member)
	}
	return []byte(member)
}

func (p *placer) mapCells(put *put, name string, v attr.Value, schema Schema, family string, micros int64) (bool, *Error) {
	keys := slices.Sorted(maps.Keys(v.Map))
	quals := make([][]byte, len(keys))
	for i, k := range keys {
		quals[i] = p.l.inFamily(family, name, k)
		if put.mapKeys {
			var bad *part
			if quals[i], bad = put.qual.render(nil, p.vars, k); bad != nil {
				return true, p.unwritten(name, v, k, bad)
			}
		}
		if len("c/")+len(family)+1+len(quals[i]) > MaxQualifierBytes {
			return p.tooLong(put, name, v)
		}
	}
	if schema.Type != attr.M {
		if err := p.exception(put, name, nil, v, mark(attr.M), "", expectedType(schema)); err != nil {
			return true, err
		}
	}
	for i, k := range keys {
		if err := p.mapCell(family, quals[i], name+"."+k, v.Map[k], schema.at(k), micros); err != nil {
			return true, err
		}
	}
	return true, nil
}

// mapCell adds the cell of something inside of a map.
func (p *placer) mapCell(family string, qual []byte, name string, v attr.Value, schema Schema, micros int64) *Error {
	b, ok := byType.encode(v, schema)
	if !ok {
		if b, ok = p.accepted(byType, v, schema); !ok {
			b = plain(v)
			if err := p.cellException(family, qual, name, v, plainMark(v.Type), expectedType(schema)); err != nil {
				return err
			}
		}
	}
	p.cells = append(p.cells, Cell{Family: family, Qualifier: qual, Timestamp: micros, Value: b})
	return nil
}

// tooLong keeps a set or map that has a member or key longer than a qualifier
// as one cell.
func (p *placer) tooLong(put *put, name string, v attr.Value) (bool, *Error) {
	if put.members || put.mapKeys {
		return true, p.extra(name, v)
	}
	return p.whole(put, name, v, "a member or key does not fit a qualifier", fmt.Sprintf("at most %d bytes", MaxQualifierBytes))
}

// whole keeps a set, map or list that cannot have a cell an element as one cell.
// what and expected say why it cannot.
func (p *placer) whole(put *put, name string, v attr.Value, what, expected string) (bool, *Error) {
	if !p.l.sidecar {
		return true, p.l.fault(CodeDomain, p.r, p.item, name, what, expected+", or a family _t for exceptions")
	}
	special := ""
	if put.star {
		special = name
	}
	if err := p.exception(put, name, nil, v, mark(v.Type, markJSON), "", expected); err != nil {
		return true, err
	}
	return true, p.cell(put, special, p.time, attr.AppendJSON(nil, v))
}

// unwritten keeps a set or map whose member or key is outside of the domain of
// its encoder, if bad is that: a key attribute outside of one is an error.
func (p *placer) unwritten(name string, v attr.Value, element string, bad *part) *Error {
	if bad.slot >= 0 {
		return p.l.outside(p.r, bad, p.vars, p.item)
	}
	if !p.l.sidecar {
		return p.l.fault(CodeDomain, p.r, p.item, name, fmt.Sprintf("%q does not fit encoder %s", clip([]byte(element)), bad.enc.name), bad.enc.expected+", or a family _t for exceptions")
	}
	return p.extra(name, v)
}

// plainMark is the type mark of a value in the form of appendPlain.
func plainMark(t attr.Type) []byte {
	if t.IsScalar() {
		return mark(t)
	}
	return mark(t, markJSON)
}

func expectedType(s Schema) string {
	if s.Type == attr.Absent {
		return "a type in the schema"
	}
	return "type " + s.Type.String()
}

// accepted returns what a cell holds where the loss of v's type is accepted: what
// the codec reads as the schema's type. Bytes that mean something else to the
// codec, such as eight characters to i64be, are no such loss.
func (p *placer) accepted(c codec, v attr.Value, schema Schema) ([]byte, bool) {
	if p.l.sidecar || !p.r.accepted[LossTypes] {
		return nil, false
	}
	b := plain(v)
	switch c.kind {
	case codecJSON:
		b = appendPlainJSON(nil, v)
	case codecByType, codecFlatten:
		if v.Type.IsScalar() && !schema.Type.IsScalar() {
			return nil, false // a text can look like a document
		}
	case codecI64BE, codecF64BE, codecOrdered, codecBase64, codecProto:
		return nil, false
	case codecString, codecNumber, codecBinary, codecBool, codecText, codecDDBJSON, codecTagged:
	}
	_, err := c.decode(b, schema)
	return b, err == nil
}

// exception writes the type mark of an attribute: `a/<attr>` where the row is
// the item's own, else `c/<family>:<qualifier>`.
func (p *placer) exception(put *put, name string, qual []byte, v attr.Value, mark []byte, loss, expected string) *Error {
	if !p.r.exclusive {
		return p.cellException(put.family, qual, name, v, mark, expected)
	}
	return p.typeCell("a/"+name, name, v, mark, loss, expected)
}

func (p *placer) cellException(family string, qual []byte, name string, v attr.Value, mark []byte, expected string) *Error {
	return p.typeCell("c/"+family+":"+string(qual), name, v, mark, "", expected)
}

func (p *placer) typeCell(qual, name string, v attr.Value, mark []byte, loss, expected string) *Error {
	if !p.l.sidecar {
		if loss == LossEmpty && p.r.accepted[LossEmpty] {
			return nil
		}
		what := fmt.Sprintf("the value is %s", clip(attr.AppendJSON(nil, v)))
		if loss == LossEmpty {
			what = "the value is an empty " + v.Type.String()
		}
		return p.l.fault(CodeDomain, p.r, p.item, name, what, expected+", or a family _t for exceptions")
	}
	if len(qual) > MaxQualifierBytes {
		return p.l.fault(CodeLimit, p.r, p.item, name, "the name does not fit the sidecar's qualifier", fmt.Sprintf("at most %d bytes", MaxQualifierBytes-len("c/")))
	}
	p.cells = append(p.cells, Cell{Family: FamilyTypes, Qualifier: []byte(qual), Timestamp: p.time, Value: mark})
	return nil
}

// extra keeps a value in the item's `i/` cell.
func (p *placer) extra(name string, v attr.Value) *Error {
	if !p.l.sidecar {
		return p.l.fault(CodeDomain, p.r, p.item, name, fmt.Sprintf("%s has no cell under this rule", clip(attr.AppendJSON(nil, v))), "a value of the put's kind, or a family _t for exceptions")
	}
	p.extras[name] = v
	return nil
}

// finish adds what the cells do not say: times that are no timestamps, tags,
// the item's presence; and brings the cells into order.
func (p *placer) finish() *Error {
	for _, name := range slices.Sorted(maps.Keys(p.r.timeAttrs)) {
		v, carried := p.item[name], false
		written := false
		for _, c := range p.timed {
			if c.timeAttr == name {
				carried, written = true, true
				if text, ok := c.timeValue(p.l.cellTime(c, p.vars, p.item, p.time)); !ok || text.Type != v.Type || text.Str != v.Str {
					carried = false
					break
				}
			}
		}
		if carried || v.IsAbsent() && !written {
			continue
		}
		if !p.l.sidecar {
			return p.l.fault(CodeDomain, p.r, p.item, name, "the attribute is a cell's timestamp, and this value is not one (or the cell is missing)", "a canonical time, or a family _t for exceptions")
		}
		p.extras[name] = v
	}
	for _, put := range p.r.puts {
		if put.timeKey {
			if _, ok := put.format.parse(p.item[put.timeAttr].Str); !ok {
				return p.l.fault(CodeDomain, p.r, p.item, put.timeAttr, "the attribute is to be a timestamp, and is no time of the format", "a canonical time")
			}
		}
		if put.timeSlot == slotNone {
			continue
		}
		if millis, ok := integer(p.vars[put.timeSlot]); !ok || millis > maxTimeMillis {
			return p.l.fault(CodeDomain, p.r, p.item, "", "the time is beyond what a timestamp holds", fmt.Sprintf("at most %d ms", int64(maxTimeMillis)))
		}
	}
	if p.r.tag {
		for _, c := range slices.Clone(p.cells) {
			if c.Family != FamilyTypes {
				p.cells = append(p.cells, Cell{Family: FamilyTypes, Qualifier: []byte("r/" + c.Family + ":" + string(c.Qualifier)), Timestamp: p.time, Value: []byte(p.r.name)})
			}
		}
	}
	if len(p.extras) > 0 || len(p.cells) == 0 {
		qual := []byte("i/" + p.r.name + "/" + p.r.identityText(p.vars))
		switch {
		case !p.l.sidecar:
			return p.l.fault(CodeDomain, p.r, p.item, "", "the item has no attribute to place", "an attribute, a put with attr: null, or a family _t")
		case len(qual) > MaxQualifierBytes:
			return p.l.fault(CodeLimit, p.r, p.item, "", "the key does not fit the sidecar's qualifier", fmt.Sprintf("at most %d bytes", MaxQualifierBytes))
		}
		p.cells = append(p.cells, Cell{Family: FamilyTypes, Qualifier: qual, Timestamp: p.time, Value: appendExtras(nil, p.extras)})
	}
	if err := p.absences(); err != nil {
		return err
	}
	p.l.sortCells(p.cells)
	for i := 1; i < len(p.cells); i++ {
		a, b := p.cells[i-1], p.cells[i]
		if a.Family == b.Family && bytes.Equal(a.Qualifier, b.Qualifier) && a.Timestamp == b.Timestamp {
			return p.l.fault(CodeCollision, p.r, p.item, "", fmt.Sprintf("two attributes on the cell %s:%s", a.Family, a.Qualifier), "")
		}
	}
	return nil
}

// absent is the value of a sidecar cell that says that a version lacks an
// attribute.
const absent = 'A'

// absences records which attributes a version lacks.
func (p *placer) absences() *Error {
	for _, name := range p.r.versioned {
		if _, has := p.item[name]; has || !p.l.sidecar && p.r.accepted[LossAbsent] {
			continue
		}
		qual := "a/" + name
		switch {
		case !p.l.sidecar:
			return p.l.fault(CodeDomain, p.r, p.item, name, "the version lacks the attribute: the newest cell of the column would be an older version's", "the attribute, a family _t, or accept_loss: [{what: absent}]")
		case len(qual) > MaxQualifierBytes:
			return p.l.fault(CodeLimit, p.r, p.item, name, "the name does not fit the sidecar's qualifier", fmt.Sprintf("at most %d bytes", MaxQualifierBytes-len("a/")))
		}
		millis, _ := integer(p.vars[p.r.version])
		p.cells = append(p.cells, Cell{Family: FamilyTypes, Qualifier: []byte(qual), Timestamp: millis * 1000, Value: []byte{absent}})
	}
	return nil
}

// timeValue is the attribute that a timestamp stands for.
func (c *put) timeValue(micros int64) (attr.Value, bool) {
	text, ok := c.format.format(micros / 1000)
	return attr.Value{Type: c.format.valueType(), Str: text}, ok && micros%1000 == 0
}

// sortCells brings cells into storage order, the families as declared.
func (l *rules) sortCells(cells []Cell) {
	slices.SortFunc(cells, func(a, b Cell) int {
		if a.Family != b.Family {
			return cmp.Compare(l.rank[a.Family], l.rank[b.Family])
		}
		if c := bytes.Compare(a.Qualifier, b.Qualifier); c != 0 {
			return c
		}
		return cmp.Compare(b.Timestamp, a.Timestamp)
	})
}

// identityText is the part of an `i/` qualifier that tells the items of a row
// apart.
func (r *rule) identityText(vars []attr.Value) string {
	var b []byte
	for i, slot := range r.identity {
		if i > 0 {
			b = append(b, '#')
		}
		b = identityJoiner.appendSegment(b, keyText(vars[slot]), i == len(r.identity)-1)
	}
	return string(b)
}

var identityJoiner = joiner{kind: joinEscaped, delim: '#'}

// appendExtras appends the value of an `i/` cell: nothing, or the JSON of the
// attributes that have no cell, followed by an array of the names of those that
// the cells would say are there and are not.
func appendExtras(dst []byte, extras attr.Item) []byte {
	if len(extras) == 0 {
		return dst
	}
	present, absent := attr.Item{}, attr.Value{Type: attr.L}
	for _, name := range slices.Sorted(maps.Keys(extras)) {
		if v := extras[name]; v.IsAbsent() {
			absent.List = append(absent.List, attr.String(name))
		} else {
			present[name] = v
		}
	}
	dst = attr.AppendItemJSON(dst, present)
	if len(absent.List) > 0 {
		dst = appendPlainJSON(dst, absent)
	}
	return dst
}

// parseExtras is the inverse of appendExtras.
func parseExtras(b []byte) (attr.Item, error) {
	if len(b) == 0 {
		return nil, nil
	}
	d := jsontext.NewDecoder(bytes.NewReader(b))
	extras, err := attr.DecodeItem(d)
	if err != nil || d.PeekKind() == 0 {
		return extras, err
	}
	absent, err := decodePlainJSON(d, Schema{})
	if err != nil {
		return nil, err
	}
	for _, name := range absent.List {
		extras[name.Str] = attr.Value{}
	}
	return extras, nil
}

// own are the extents of an item.
func (l *rules) own(r *rule, vars []attr.Value, item attr.Item) ([]Extent, *Error) {
	if r.exclusive {
		return l.wholeRow(), nil
	}
	var own []Extent
	for _, p := range r.puts {
		e, err := l.extent(r, p, vars, item)
		if err != nil {
			return nil, err
		}
		own = append(own, e)
		if l.sidecar && !p.byTime {
			for _, form := range [2]string{"c/", "r/"} {
				if form == "c/" || l.tags {
					own = append(own, Extent{Family: FamilyTypes, Qualifier: []byte(form + e.Family + ":" + string(e.Qualifier)), Prefix: e.Prefix})
				}
			}
		}
	}
	switch {
	case !l.sidecar:
	case r.isCopy(vars):
		own = append(own, Extent{Family: FamilyTypes, Qualifier: []byte("i/" + r.name + "/"), Prefix: true})
	default:
		own = append(own, Extent{Family: FamilyTypes, Qualifier: []byte("i/" + r.name + "/" + r.identityText(vars))})
		if len(r.versioned) > 0 {
			millis, _ := integer(vars[r.version])
			own = append(own, Extent{Family: FamilyTypes, Qualifier: []byte("a/"), Prefix: true, MinTime: millis * 1000, MaxTime: (millis + 1) * 1000})
		}
	}
	return own, nil
}

func (l *rules) wholeRow() []Extent {
	own := make([]Extent, len(l.families))
	for i, f := range l.families {
		own[i] = Extent{Family: f.Name, Prefix: true}
	}
	return own
}

// extent are the cells of one put; variables without a value stand for all.
func (l *rules) extent(r *rule, p *put, vars []attr.Value, item attr.Item) (Extent, *Error) {
	qual, whole, bad := p.qual.renderKnown(nil, vars, -1)
	if bad != nil {
		return Extent{}, l.outside(r, bad, vars, item)
	}
	if p.qual.ambiguous() && !slices.ContainsFunc(p.qual.slots(), func(s int) bool { return s >= 0 && vars[s].IsAbsent() }) {
		again := make([]attr.Value, len(vars))
		if !p.qual.match(qual, again, new(string)) || !agree(again, vars) {
			return Extent{}, l.fault(CodeDelim, r, item, "", fmt.Sprintf("qualifier %q of template %q is taken apart otherwise", qual, p.qual.src), "values without the literals of the template")
		}
	}
	e := Extent{Family: p.family, Qualifier: qual, Prefix: !whole}
	if p.timeSlot != slotNone && p.byTime && !vars[p.timeSlot].IsAbsent() && !r.isCopy(vars) {
		millis, ok := integer(vars[p.timeSlot])
		if !ok || millis > maxTimeMillis-1 {
			return Extent{}, l.fault(CodeDomain, r, item, "", "the time is beyond what a timestamp holds", fmt.Sprintf("at most %d ms", int64(maxTimeMillis-1)))
		}
		e.MinTime, e.MaxTime = millis*1000, (millis+1)*1000
	}
	return e, nil
}

// Collision reports that a row holds another item in the place of the given
// key's: two items of rules that share a column cannot both be there. row is the
// row of key, or the part of it in the key's extents. Errors are *Error:
// E-COLLISION, or those of Items.
func (m *Mapping) Collision(row Row, key attr.Item) error {
	at, err := m.Locate(key)
	if err != nil {
		return err
	}
	part := Row{Key: row.Key, Cells: slices.DeleteFunc(slices.Clone(row.Cells), func(c Cell) bool {
		return !slices.ContainsFunc(at.Own, func(e Extent) bool { return e.Covers(c) })
	})}
	items, err := m.Items(part)
	if err != nil {
		return err
	}
	for _, item := range items {
		other := m.key.keyOf(item)
		if of, err := m.Locate(other); err != nil || of.Derived {
			continue // it has no cell
		}
		if !attr.EqualItems(other, m.key.keyOf(key)) {
			return &Error{Code: CodeCollision, Table: m.source, Rule: at.Rule, Key: m.key.keyOf(key), What: fmt.Sprintf("its cell is taken by item %s", attr.AppendItemJSON(nil, other)), Expected: "one of the two items"}
		}
	}
	return nil
}

func (l *rules) locate(key attr.Item) (Location, error) {
	r, vars, err := l.bind(key)
	if err != nil {
		return Location{}, err
	}
	row, err := l.rowKey(r, vars, key)
	if err != nil {
		return Location{}, err
	}
	own, err := l.own(r, vars, key)
	if err != nil {
		return Location{}, err
	}
	return Location{Rule: r.name, Row: row, Own: own, Shared: r.shared, Derived: r.isCopy(vars)}, nil
}
