package layout

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/internal/layout/rowkey"
)

// put is a compiled Put: the place and the contents of its cells.
type put struct {
	cellTemplate
	placement

	attr string // "*" for all others, Presence for none
	path string // in the mapping file
}

// cellTemplate is the place of the cells of a put, and the form of their values.
type cellTemplate struct {
	family   string
	qual     *rowkey.Template
	codec    *codec.Codec
	timeSlot int // capture that is the timestamp, or rowkey.SlotNone
	timeAttr string
	timeKey  bool // timeAttr is a key attribute: the row determines it
	format   codec.TimeFormat
	// byTime reports that only the timestamp distinguishes the items.
	byTime bool
}

// placement is the contents of a put's cells: it lays attributes out and reads them back. Each
// kind of put has one, in a file put_<kind>.go.
type placement interface {
	// check rejects a put that cannot be inverted, and adds it to its rule.
	check(c *compiler, r *rule, p *put, spec *mapfile.Put)
	shape() shape
	// place lays out an attribute of the put.
	place(w *placer, name string, v attr.Value) *maperr.Error
	// finish lays out data of the item as a whole, after all attributes.
	finish(w *placer) *maperr.Error
	// names reports whether special can be the text of {attr}, {member} or
	// {key} in a qualifier that place writes.
	names(l *rules, special string) bool
	// read is the inverse of place and finish: it adds the contents of a column to an item.
	read(d *decoder, p *partial, special string, c lens.Column) error
}

// shape is the arrangement of attributes in the cells of a put.
type shape uint8

const (
	shapeNone  shape = iota // without an attribute
	shapeCell               // one cell per attribute; a native one may have one cell per element
	shapeCells              // one cell per member, key or leaf of an attribute
	shapeItem               // one cell for all attributes
)

// plainPut has the default methods of placements: finish does nothing, and names accepts every
// text.
type plainPut struct{ *cellTemplate }

func (plainPut) finish(*placer) *maperr.Error { return nil }
func (plainPut) names(*rules, string) bool    { return true }

// put compiles one Put of a rule.
func (c *compiler) put(r *rule, spec *mapfile.Put, path string) {
	p := &put{attr: spec.Attr, path: path, cellTemplate: cellTemplate{timeSlot: rowkey.SlotNone}}
	r.puts = append(r.puts, p)
	before := len(c.faults)
	qual := c.column(p, spec)
	star := spec.Attr == "*"
	var err error
	p.qual, err = rowkey.ParseTemplate(qual, func(name, enc string) (int, *rowkey.Encoder, error) {
		switch {
		case star && name == "attr" && enc == "":
			return rowkey.SlotAttr, rowkey.Verbatim, nil
		case star || name != "member" && name != "key" || enc != "" && c.names(r, name):
			return c.reference(r, name, enc)
		case name == "member":
			e, err := rowkey.ParseElementEncoder(enc, codec.MemberType(r.schema[spec.Attr].Type))
			return rowkey.SlotMember, e, err
		}
		e, err := rowkey.ParseElementEncoder(enc, attr.S)
		return rowkey.SlotKey, e, err
	})
	if err != nil {
		c.fail(path+".cell", maperr.CodeSyntax, err.Error(), "")
	}
	switch spec.Order {
	case "", mapfile.OrderAppend, mapfile.OrderNewestFirst:
	default:
		c.fail(path+".order", maperr.CodeSyntax, strconv.Quote(spec.Order), mapfile.OrderAppend+" or "+mapfile.OrderNewestFirst)
	}
	if err != nil {
		return
	}
	specials := 0
	for i, s := range p.qual.Slots() {
		if s < 0 {
			specials++
			if i != len(p.qual.Slots())-1 || p.qual.Parts[len(p.qual.Parts)-1].Lit != nil {
				c.fail(path+".cell", maperr.CodeInverse, "{attr}, {member} or {key} is not at the end", "the last part of the qualifier")
			}
		}
	}
	if specials > 1 {
		c.fail(path+".cell", maperr.CodeInverse, "more than one of {attr}, {member} and {key}", "one")
	}
	if len(c.faults) > before {
		return
	}
	p.placement = c.placement(r, &p.cellTemplate, spec)
	p.check(c, r, p, spec)
	if c.spec.Fidelity == mapfile.FidelityBlob && p.shape() != shapeItem && p.shape() != shapeNone {
		c.fail(path, maperr.CodeSyntax, "fidelity blob has one cell per item", `{attr: "*", cell: "family:qualifier"}`)
	}
	if len(c.faults) == before {
		c.putTime(r, p, spec)
	}
}

// column finds the codec and the family of a put, which depend on nothing else in its rule,
// and returns its qualifier.
func (c *compiler) column(p *put, spec *mapfile.Put) (qual string) {
	var err error
	if p.codec, err = codec.Parse(spec.Codec, c.spec.Descriptors); err != nil {
		c.fail(p.path+".codec", maperr.CodeSyntax, err.Error(), "")
	}
	family, qual, ok := strings.Cut(spec.Cell, ":")
	if _, declared := c.l.declared[family]; !ok || !declared || family == lens.FamilyTypes {
		c.fail(p.path+".cell", maperr.CodeFamily, fmt.Sprintf("%q names no declared family", spec.Cell), "family:qualifier, the family declared in target.families")
	}
	p.family = family
	return qual
}

// placement returns the placement for a put.
func (c *compiler) placement(r *rule, t *cellTemplate, spec *mapfile.Put) placement {
	value := valuePut{plainPut{t}, spec.Attr, spec.Order == mapfile.OrderNewestFirst}
	slot, isKey := c.keySlot(r, spec)
	star, special, flatten := spec.Attr == "*", t.qual.Special(), t.codec.Paths
	switch {
	case spec.Attr == mapfile.Presence:
		return presencePut{plainPut{t}}
	case star && special == rowkey.SlotNone:
		return wholePut{plainPut{t}}
	case star && flatten:
		return starLeavesPut{starPut{value, r.derives}}
	case star:
		return starPut{value, r.derives}
	case isKey:
		return keyPut{plainPut{t}, slot}
	case flatten:
		return leavesPut{plainPut{t}, spec.Attr}
	case special == rowkey.SlotMember:
		return setPut{plainPut{t}, spec.Attr}
	case special == rowkey.SlotKey:
		return mapPut{plainPut{t}, spec.Attr}
	}
	return value
}

// enter registers the put of an attribute.
func (c *compiler) enter(r *rule, p *put) {
	if r.byAttr[p.attr] != nil {
		c.fail(p.path+".attr", maperr.CodeSyntax, fmt.Sprintf("attribute %q is put twice", p.attr), "one put per attribute")
	}
	r.byAttr[p.attr] = p
}

// enterStar registers the put of all attributes that do not have a specific put.
func (c *compiler) enterStar(r *rule, p *put) {
	if r.star != nil {
		c.fail(p.path+".attr", maperr.CodeSyntax, `the rule has two puts for "*"`, "one per rule")
	}
	r.star = p
}

// checkElements rejects a put of members or keys whose attribute is neither a set nor a map.
func (c *compiler) checkElements(p *put, spec *mapfile.Put, fits bool) {
	if spec.Codec != "" && !p.codec.Paths {
		c.fail(p.path+".codec", maperr.CodeSyntax, "a put with one cell per member or key uses the codec of the schema", "no codec")
	}
	if !fits {
		c.fail(p.path+".cell", maperr.CodeInverse, fmt.Sprintf("%q is not a set (for {member}) or a map (for {key}) in the schema", p.attr), "the type in source.schema")
	}
}

func (c *compiler) putTime(r *rule, p *put, spec *mapfile.Put) {
	at := p.path + ".ts"
	switch {
	case spec.Time.Capture != "":
		i := slices.IndexFunc(r.captures, func(k capture) bool { return k.name == spec.Time.Capture })
		if i < 0 || !r.captures[i].enc.Time {
			c.fail(at, maperr.CodeSyntax, fmt.Sprintf("{%s} is not a time", spec.Time.Capture), "a capture with encoder revms, revmax, iso or epoch")
			return
		}
		p.timeSlot = rowkey.FirstCapture + i
	case spec.Time.Attr != "":
		p.timeAttr, p.format = spec.Time.Attr, codec.TimeFormats[spec.Time.As]
		if _, ok := codec.TimeFormats[spec.Time.As]; !ok {
			c.fail(at, maperr.CodeSyntax, fmt.Sprintf("%q is not a time format", spec.Time.As), strings.Join(slices.Sorted(maps.Keys(codec.TimeFormats)), ", "))
		}
		switch i := slices.IndexFunc(c.l.key.Attrs(), func(a attr.KeyAttr) bool { return a.Name == p.timeAttr }); {
		case i >= 0:
			if t := c.l.key.Attrs()[i].Type; t != p.format.ValueType() {
				c.fail(at, maperr.CodeSyntax, fmt.Sprintf("key attribute %q has type %s, but %s has type %s", p.timeAttr, t, spec.Time.As, p.format.ValueType()), "iso of a text, epoch of a number")
			}
			p.timeKey = true
		case p.shape() == shapeNone, p.shape() == shapeCells && p != r.star, p.timeAttr == p.attr:
			c.fail(at, maperr.CodeInverse, "a timestamp from an attribute", "another attribute, and one cell per attribute")
		default:
			r.timeAttrs[p.timeAttr] = true
		}
	}
}

// takes reports whether the put can have written a qualifier. It sets the variables and the
// text of {attr}, {member} or {key} from it.
func (p *put) takes(l *rules, qual []byte, vars []attr.Value, special *string) bool {
	return p.qual.Match(qual, vars, special) && p.names(l, *special)
}

// native reports whether sets and maps can have one cell per element, in families for them, and
// lists one version per element.
func (t *cellTemplate) native(r *rule) bool {
	return r.exclusive && t.codec.ByType && t.timeSlot == rowkey.SlotNone && t.timeAttr == ""
}

// elementEncoder returns the qualifier's encoder of {member} or {key}, or nil.
func (t *cellTemplate) elementEncoder() *rowkey.Encoder {
	for _, p := range t.qual.Parts {
		if (p.Slot == rowkey.SlotMember || p.Slot == rowkey.SlotKey) && p.Enc != rowkey.Verbatim {
			return p.Enc
		}
	}
	return nil
}

// withQualifier returns the variables of row, and those of the qualifier.
func (t *cellTemplate) withQualifier(row map[int]bool) map[int]bool {
	cell := maps.Clone(row)
	for _, s := range t.qual.Slots() {
		if s >= 0 {
			cell[s] = true
		}
	}
	return cell
}

// micros returns the timestamp of the cells, in microseconds.
func (t *cellTemplate) micros(vars []attr.Value, item attr.Item, defaultMicros int64) int64 {
	switch {
	case t.timeSlot != rowkey.SlotNone:
		millis, _ := codec.Integer(vars[t.timeSlot])
		return millis * 1000
	case t.timeAttr != "":
		if v := item[t.timeAttr]; v.Type == attr.S || v.Type == attr.N {
			if millis, ok := t.format.Parse(v.Str); ok && v.Type == t.format.ValueType() {
				return millis * 1000
			}
		}
	}
	return defaultMicros
}

// timeValue returns the attribute that a timestamp represents.
func (t *cellTemplate) timeValue(micros int64) (attr.Value, bool) {
	text, ok := t.format.Format(micros / 1000)
	return attr.Value{Type: t.format.ValueType(), Str: text}, ok && micros%1000 == 0
}

// addTime adds the attribute that the timestamp of a cell represents.
func (t *cellTemplate) addTime(p *partial, c Cell) {
	if t.timeAttr == "" || t.timeKey {
		return
	}
	if v, ok := t.timeValue(c.Timestamp); ok {
		p.item[t.timeAttr] = v
	}
}

// column adds the contents of a column to the items that it belongs to; done is false if the
// column is not the put's.
func (p *put) column(d *decoder, c lens.Column) (done bool, err error) {
	if !p.byTime {
		vars, special := d.vars(), ""
		if !p.takes(d.l, c.Qualifier, vars, &special) || !d.tagged(c) {
			return false, nil
		}
		return d.readColumn(p, vars, special, c)
	}
	for i, cell := range c.Versions {
		vars, special := slices.Clone(d.rowVars), ""
		if cell.Timestamp%1000 != 0 || cell.Timestamp < 0 || !p.takes(d.l, c.Qualifier, vars, &special) {
			continue
		}
		vars[p.timeSlot] = attr.Int(cell.Timestamp / 1000)
		took, err := d.readColumn(p, vars, special, lens.Column{Family: c.Family, Qualifier: c.Qualifier, Versions: c.Versions[i : i+1]})
		if err != nil {
			return true, err
		}
		done = done || took
	}
	return done, nil
}
