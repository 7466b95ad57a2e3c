package layout

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/internal/layout/rowkey"
	"github.com/tabletop-emu/tabletop/internal/phrase"
)

// bind finds the rule of an item by its key, and the values of the rule's variables.
func (l *rules) bind(key attr.Item) (*rule, []attr.Value, *maperr.Error) {
	if err := l.checkKey(key); err != nil {
		return nil, nil, err
	}
	for _, r := range l.rules {
		if vars, ok := l.variables(r, key); ok {
			return r, vars, nil
		}
	}
	return nil, nil, l.fault(maperr.CodeUnmatched, nil, key, "", "no rule matches the key", "")
}

// variables returns the values of a rule's variables; false if the rule does not match the
// key.
func (l *rules) variables(r *rule, key attr.Item) ([]attr.Value, bool) {
	vars := make([]attr.Value, rowkey.FirstCapture+len(r.captures))
	for i, a := range l.key.Attrs() {
		vars[i] = key[a.Name]
	}
	return vars, r.derive(vars)
}

func (l *rules) checkKey(key attr.Item) *maperr.Error {
	return lens.CheckKey(l.key, l.table, key)
}

func (l *rules) fault(code maperr.Code, r *rule, item attr.Item, attribute, what, expected string) *maperr.Error {
	e := &maperr.Error{Code: code, Table: l.table, Key: l.key.KeyOf(item), Attribute: attribute, What: what, Expected: expected}
	if r != nil {
		e.Rule = r.name
	}
	return e
}

// keyText returns the text of a key attribute that templates match.
func keyText(v attr.Value) []byte { return []byte(v.Str) }

// derive computes missing captures from key attributes, and missing key attributes from
// captures; false if the rule does not match such a key.
func (r *rule) derive(vars []attr.Value) bool {
	for range 3 { // each round can enable the next; there are two key attributes
		if r.same {
			h, s := vars[rowkey.SlotHash], vars[rowkey.SlotRange]
			switch {
			case h.IsAbsent():
				vars[rowkey.SlotHash] = s
			case s.IsAbsent():
				vars[rowkey.SlotRange] = h
			case !attr.Equal(h, s):
				return false
			}
		}
		for slot := range r.keys {
			t := r.when[slot]
			switch {
			case t == nil:
			case !vars[slot].IsAbsent():
				if !t.Match(keyText(vars[slot]), vars, nil) {
					return false
				}
			default:
				text, bad := t.Render(nil, vars, "")
				if bad != nil {
					continue
				}
				v, err := codec.ParseScalar(r.keyTypes[slot], text)
				if err != nil || !bytes.Equal(keyText(v), text) {
					return false
				}
				vars[slot] = v
			}
		}
	}
	return true
}

// rowKey renders the row key for the given variables. item is for errors.
func (l *rules) rowKey(r *rule, vars []attr.Value, item attr.Item) ([]byte, *maperr.Error) {
	var key, seg []byte
	for i, t := range r.row {
		last := i == len(r.row)-1
		var bad *rowkey.Part
		if seg, bad = t.Render(seg[:0], vars, ""); bad != nil {
			return nil, l.outside(r, bad, vars, item)
		}
		if t.Ambiguous() {
			again := make([]attr.Value, len(vars))
			if !t.Match(seg, again, nil) || !agree(again, vars) {
				return nil, l.fault(maperr.CodeDelim, r, item, "", fmt.Sprintf("segment %q of template %q would be split differently", seg, t.Src), "values without the literals of the template")
			}
		}
		if l.joiner.Kind == rowkey.JoinPlain && !last {
			if k := l.joiner.DelimOffence(seg); k >= 0 {
				return nil, l.fault(maperr.CodeDelim, r, item, "", fmt.Sprintf("segment %q of the row key (%s) holds byte %q, at or below the delimiter %q", seg, t.Src, seg[k], l.joiner.Delim),
					"a key without it, or joiner escaped or auto")
			}
		}
		if i > 0 {
			key = append(key, l.joiner.Delimiter()...)
		}
		key = l.joiner.AppendSegment(key, seg, last && !r.closed)
	}
	if len(key) == 0 || len(key) > lens.MaxRowKeyBytes {
		return nil, l.fault(maperr.CodeKeySize, r, item, "", fmt.Sprintf("the row key has %d bytes", len(key)), fmt.Sprintf("1 to %d", lens.MaxRowKeyBytes))
	}
	return key, nil
}

// agree reports whether b has the same values for all variables that a has.
func agree(a, b []attr.Value) bool {
	for i, v := range a {
		if !v.IsAbsent() && !attr.Equal(v, b[i]) {
			return false
		}
	}
	return true
}

// outside returns the error for a variable outside the domain of the encoder of p.
func (l *rules) outside(r *rule, p *rowkey.Part, vars []attr.Value, item attr.Item) *maperr.Error {
	name := ""
	if p.Slot >= 0 && p.Slot < r.keys {
		name = l.key.Attrs()[p.Slot].Name
	}
	return l.fault(maperr.CodeDomain, r, item, name, fmt.Sprintf("%s does not fit encoder %s", attr.AppendJSON(nil, vars[p.Slot]), p.Enc.Name), p.Enc.Expected)
}

// placer lays out one item.
type placer struct {
	l      *rules
	r      *rule
	vars   []attr.Value
	item   attr.Item
	time   int64
	types  int64 // the time of cells of FamilyTypes
	cells  []Cell
	extras attr.Item       // stored in the `i/` cell; an absent value records the absence of the attribute
	rest   attr.Item       // attributes of a wholePut
	saved  int             // bytes of derived attributes without a cell
	timed  []*cellTemplate // templates whose cells have an attribute as their timestamp
}

func (l *rules) place(at lens.Location, item attr.Item, defaultTimeMicros int64) (lens.Placed, error) {
	if at.Derived {
		return lens.Placed{Location: at}, nil
	}
	i := slices.IndexFunc(l.rules, func(r *rule) bool { return r.name == at.Rule })
	if i < 0 {
		return lens.Placed{}, l.fault(maperr.CodeUnmatched, nil, item, "", fmt.Sprintf("the mapping has no rule %q", at.Rule), "the location of the item's key")
	}
	r := l.rules[i]
	vars, ok := l.variables(r, item)
	if !ok {
		return lens.Placed{}, l.fault(maperr.CodeUnmatched, r, item, "", "the rule does not match the key", "the location of the item's key")
	}
	p := &placer{l: l, r: r, vars: vars, item: l.withoutNulls(r, item), time: defaultTimeMicros}
	if t := r.ttl; t != nil {
		var determined bool
		p.time, determined = t.timestamp(item, defaultTimeMicros)
		if err := p.timedOut(determined); err != nil {
			return lens.Placed{}, err
		}
	}
	p.types = p.time
	if r.ttl == nil && l.expires(lens.FamilyTypes) {
		p.types = neverMicros // cells of the rule there do not expire
	}
	if err := p.attributes(); err != nil {
		return lens.Placed{}, err
	}
	if err := p.finish(); err != nil {
		return lens.Placed{}, err
	}
	placed := lens.Placed{Location: at, Cells: p.cells, Saved: p.saved}
	for _, c := range p.cells {
		if c.Family == lens.FamilyTypes {
			placed.Exceptions++
		}
	}
	return placed, nil
}

// unknown stores an attribute without a put in the sidecar, or rejects it if the mapping does not
// allow that.
func (p *placer) unknown(name string) *maperr.Error {
	if !p.l.keepUnknown || !p.r.sidecar {
		return p.l.fault(maperr.CodeUnknownAttribute, p.r, p.item, name, "the rule has no place for the attribute", `a put for the attribute or for "*"`)
	}
	p.keep(name, p.item[name])
	return nil
}

func expectedType(s codec.Schema) string {
	if s.Type == attr.Absent {
		return "a type in the schema"
	}
	return "type " + s.Type.String()
}

// accepted returns the cell value if the loss of v's type is accepted: the codec decodes it
// with the schema's type. Bytes with another meaning to the codec, such as eight characters to
// i64be, are not such a loss.
func (p *placer) accepted(c *codec.Codec, v attr.Value, schema codec.Schema) ([]byte, bool) {
	if p.r.sidecar || !p.r.accepted[mapfile.LossTypes] || c.Stray == nil {
		return nil, false
	}
	b, ok := c.Stray(v, schema)
	if !ok {
		return nil, false
	}
	_, err := c.Decode(b, schema)
	return b, err == nil
}

// finish adds the state that is missing from the cells (times that are no timestamps, tags,
// the item's presence) and sorts the cells.
func (p *placer) finish() *maperr.Error {
	if err := p.derived(); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(p.r.timeAttrs)) {
		v, carried := p.item[name], false
		written := false
		for _, c := range p.timed {
			if c.timeAttr == name {
				carried, written = true, true
				if text, ok := c.timeValue(p.micros(c)); !ok || text.Type != v.Type || text.Str != v.Str {
					carried = false
					break
				}
			}
		}
		if carried || v.IsAbsent() && !written {
			continue
		}
		if !p.r.sidecar {
			return p.l.fault(maperr.CodeDomain, p.r, p.item, name, "the attribute is the timestamp of a cell, but its value is not a valid timestamp, or the cell is missing", "a canonical time, or a family _t for exceptions")
		}
		p.keep(name, v)
	}
	for _, put := range p.r.puts {
		if put.timeKey {
			if _, ok := put.format.Parse(p.item[put.timeAttr].Str); !ok {
				return p.l.fault(maperr.CodeDomain, p.r, p.item, put.timeAttr, "the attribute becomes a timestamp, but is not a time in the format", "a canonical time")
			}
		}
		if put.timeSlot == rowkey.SlotNone {
			continue
		}
		if millis, ok := codec.Integer(p.vars[put.timeSlot]); !ok || millis > codec.MaxTimeMillis {
			return p.l.fault(maperr.CodeDomain, p.r, p.item, "", "the time is beyond the range of a timestamp", fmt.Sprintf("at most %d ms", int64(codec.MaxTimeMillis)))
		}
	}
	if p.r.tag {
		for _, c := range slices.Clone(p.cells) {
			if c.Family != lens.FamilyTypes {
				p.cells = append(p.cells, Cell{Family: lens.FamilyTypes, Qualifier: []byte("r/" + c.Family + ":" + string(c.Qualifier)), Timestamp: p.types, Value: []byte(p.r.name)})
			}
		}
	}
	if len(p.extras) > 0 || len(p.cells) == 0 {
		qual := []byte("i/" + p.r.name + "/" + p.r.identityText(p.vars))
		switch {
		case !p.r.sidecar:
			return p.l.fault(maperr.CodeDomain, p.r, p.item, "", "the item has no attribute to place", "an attribute, a put with attr: null, or a family _t")
		case len(qual) > lens.MaxQualifierBytes:
			return p.l.fault(maperr.CodeLimit, p.r, p.item, "", "the key does not fit the sidecar's qualifier", fmt.Sprintf("at most %d bytes", lens.MaxQualifierBytes))
		}
		p.cells = append(p.cells, Cell{Family: lens.FamilyTypes, Qualifier: qual, Timestamp: p.types, Value: appendExtras(nil, p.extras)})
	}
	if err := p.absences(); err != nil {
		return err
	}
	p.l.sortCells(p.cells)
	for i := 1; i < len(p.cells); i++ {
		a, b := p.cells[i-1], p.cells[i]
		if a.Family == b.Family && bytes.Equal(a.Qualifier, b.Qualifier) && a.Timestamp == b.Timestamp {
			return p.l.fault(maperr.CodeCollision, p.r, p.item, "", fmt.Sprintf("two attributes share the cell %s:%s", a.Family, a.Qualifier), "")
		}
	}
	return nil
}

// sortCells sorts cells into storage order, with families as declared.
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

// withoutNulls returns the item without the attributes that codec omit leaves out.
func (l *rules) withoutNulls(r *rule, item attr.Item) attr.Item {
	left := item
	for name, v := range item {
		if v.Type != attr.NULL || !r.accepted[mapfile.LossNull] || l.key.IsKey(name) || r.timeAttrs[name] || r.derives[name] != "" {
			continue
		}
		if put := cmp.Or(r.byAttr[name], r.star); put == nil || !put.codec.OmitsNull {
			continue
		}
		if len(left) == len(item) {
			left = maps.Clone(item)
		}
		delete(left, name)
	}
	return left
}

func (p *placer) attributes() *maperr.Error {
	names := make([]string, 0, len(p.item))
	for name := range p.item {
		names = append(names, name)
	}
	slices.Sort(names)
	p.cells = make([]Cell, 0, len(names))
	for _, name := range names {
		if p.r.derives[name] != "" {
			continue
		}
		put := p.r.byAttr[name]
		if put == nil {
			if p.l.key.IsKey(name) || p.r.timeAttrs[name] || p.r.ttl != nil && name == p.r.ttl.name {
				continue
			}
			put = p.r.star
		}
		var err *maperr.Error
		if why := p.r.barred[name]; why != "" {
			err = p.l.fault(maperr.CodeDomain, p.r, p.item, name, "the item would be in an index, "+why, "no such attribute")
		} else if put == nil {
			err = p.unknown(name)
		} else {
			err = put.place(p, name, p.item[name])
		}
		if err != nil {
			return err
		}
	}
	for _, put := range p.r.puts {
		if err := put.finish(p); err != nil {
			return err
		}
	}
	return nil
}

// unwritten stores a set or map in the sidecar, because an encoder rejects one of its
// members or keys. If the encoder rejects a key attribute of the item, or the rule has no
// sidecar, it returns an error.
func (p *placer) unwritten(name string, v attr.Value, element string, bad *rowkey.Part) *maperr.Error {
	if bad.Slot >= 0 {
		return p.l.outside(p.r, bad, p.vars, p.item)
	}
	if !p.r.sidecar {
		return p.l.fault(maperr.CodeDomain, p.r, p.item, name, fmt.Sprintf("%q does not fit encoder %s", phrase.ClipTo(element, codec.ShownBytes), bad.Enc.Name), bad.Enc.Expected+", or a family _t for exceptions")
	}
	return p.extra(name, v)
}

// micros returns the timestamp of the cells of a put.
func (p *placer) micros(t *cellTemplate) int64 { return t.micros(p.vars, p.item, p.time) }

// cell adds a cell of a put.
func (p *placer) cell(t *cellTemplate, special string, micros int64, value []byte) *maperr.Error {
	qual, err := p.qualifier(t, special)
	if err != nil {
		return err
	}
	p.cells = append(p.cells, Cell{Family: t.family, Qualifier: qual, Timestamp: micros, Value: value})
	p.noteTimed(t)
	return nil
}

// noteTimed records that the item has a cell of the put, if its timestamp is an attribute.
func (p *placer) noteTimed(t *cellTemplate) {
	if t.timeAttr != "" && !slices.Contains(p.timed, t) {
		p.timed = append(p.timed, t)
	}
}

func (p *placer) qualifier(t *cellTemplate, special string) ([]byte, *maperr.Error) {
	qual, bad := t.qual.Render(nil, p.vars, special)
	if bad != nil {
		return nil, p.l.outside(p.r, bad, p.vars, p.item)
	}
	if len(qual) > lens.MaxQualifierBytes {
		return nil, p.l.fault(maperr.CodeLimit, p.r, p.item, special, fmt.Sprintf("the qualifier has %d bytes", len(qual)), fmt.Sprintf("at most %d", lens.MaxQualifierBytes))
	}
	return qual, nil
}
