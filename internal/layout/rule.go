package layout

import (
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
	"github.com/tabletop-emu/tabletop/internal/strictyaml"
)

// rule is a compiled Rule.
type rule struct {
	name     string
	index    int
	tag      bool
	keys     int // number of key attributes, in slots 0 to keys-1
	keyTypes []attr.Type
	captures []capture
	when     [2]*rowkey.Template
	same     bool
	row      []*rowkey.Template
	widths   []int // of all segments but the last, for rowkey.JoinFixed
	// closed reports that the last segment is escaped like the others.
	closed bool
	// strays are the rules with more segments whose rows can equal a row of this rule.
	strays   []*rule
	rowSlots map[int]bool
	// hashed holds the key attributes that a hash in the row represents.
	hashed map[int]bool
	// stored holds the puts of variables that only cells determine: hashed attributes, and
	// attributes outside the row key. byCell reports such an attribute outside the row key:
	// two items can then claim one row, and only one can exist.
	stored   map[int]*put
	byCell   bool
	puts     []*put
	columns  []*put // in reading order: literal columns before "*"
	byAttr   map[string]*put
	star     *put
	presence bool // there is a put without attribute
	// schema has the types of the rule's attributes, by name. listed reports that the file lists
	// them in the rule; "*" then stands for no others.
	schema map[string]codec.Schema
	listed bool
	// derives has the templates of attributes without a cell, and formulas computes these
	// attributes in this order.
	derives  map[string]string
	formulas []*formula
	// timeAttrs are the attributes stored as cell timestamps.
	timeAttrs map[string]bool
	// exclusive reports that a row of this rule belongs to one item.
	exclusive bool
	// shared reports that the rule's columns may hold another item: tags distinguish its cells
	// from those of another rule, or only a cell determines the key.
	shared bool
	// identity has the slots that distinguish the items of a row, for the `i/` cells of the
	// sidecar.
	identity []int
	// version is the slot of the version number if the rule's items are versions of one another,
	// in the same columns. Otherwise it is rowkey.SlotNone.
	version int
	// latest reports that version 0 is a copy of the highest, and not stored.
	latest bool
	// versioned holds the attributes whose absence each version records.
	versioned []string

	// ttl describes the deletion of its items by garbage collection; nil without it.
	ttl *timeToLive
	// sidecar reports that the rule can store exceptions in FamilyTypes.
	sidecar bool
	// barred has the attributes that items of the rule cannot have, with the reason: for
	// example, they would be in an index that does not expire with them.
	barred map[string]string

	accepted map[string]bool // accepted losses, such as LossTypes
}

type capture struct {
	name string
	enc  *rowkey.Encoder
	// alone reports that only timestamps determine the variable: it is a key attribute
	// (ts.attr) outside row and qualifier.
	alone bool
}

func (c *compiler) rule(index int, spec *mapfile.Rule, path string) *rule {
	r := &rule{
		name: spec.Name, index: index, tag: spec.Tag, keys: len(c.l.key.Attrs()), schema: c.schemas[index], listed: spec.Schema != nil, derives: spec.Derive,
		byAttr: map[string]*put{}, barred: map[string]string{}, timeAttrs: map[string]bool{}, rowSlots: map[int]bool{}, hashed: map[int]bool{}, stored: map[int]*put{}, accepted: map[string]bool{}, version: rowkey.SlotNone,
	}
	if r.sidecar = c.l.sidecar; c.ttls[index] != nil {
		r.ttl = c.ttls[index]
		r.sidecar = r.sidecar && r.ttl.collects(c.l.declared[lens.FamilyTypes])
		r.ttl.bar(c, r)
	}
	if r.tag && !r.sidecar {
		c.fail(path+".tag", maperr.CodeFamily, "the tag has no family", "target.families._t, and a fidelity other than idiomatic")
	}
	for _, a := range c.l.key.Attrs() {
		r.keyTypes = append(r.keyTypes, a.Type)
	}
	if !ruleName.MatchString(spec.Name) {
		c.fail(path+".name", maperr.CodeSyntax, fmt.Sprintf("%q is not a rule name", spec.Name), "letters, digits and -_.")
	}
	for _, l := range c.spec.AcceptLoss {
		if l.Rule == "" || l.Rule == spec.Name {
			r.accepted[l.What] = true
		}
	}
	if !c.sound(func() { c.when(r, spec, path) }) {
		for i := range spec.Put { // its captures are not known
			c.column(&put{path: fmt.Sprintf("%s.put[%d]", path, i)}, &spec.Put[i])
		}
		return r
	}
	sound := c.sound(func() {
		c.row(r, spec, path)
		for i := range spec.Put {
			c.put(r, &spec.Put[i], fmt.Sprintf("%s.put[%d]", path, i))
		}
		if len(spec.Put) == 0 {
			c.fail(path+".put", maperr.CodeSyntax, "the rule places nothing", "at least one put")
		}
	})
	if !sound {
		return r
	}
	r.columns = slices.DeleteFunc(slices.Clone(r.puts), func(p *put) bool { return p == r.star })
	if r.star != nil {
		r.columns = append(r.columns, r.star)
	}
	inverted := c.sound(func() { c.invert(r, path) })
	c.derive(r, spec, path)
	if timed := c.sound(func() { c.checkTTL(r, spec, path) }); inverted && timed {
		c.versions(r, spec, path)
	}
	return r
}

// has reports whether the rule places an attribute, by its name or with the listed ones of "*",
// or derives it.
func (r *rule) has(name string) bool {
	_, listed := r.schema[name]
	return r.derives[name] != "" || r.byAttr[name] != nil || r.star != nil && (listed || !r.listed)
}

func (c *compiler) when(r *rule, spec *mapfile.Rule, path string) {
	attrs := c.l.key.Attrs()
	for _, name := range slices.Sorted(maps.Keys(spec.When)) {
		at := strictyaml.Join(path+".when", name)
		slot := slices.IndexFunc(attrs, func(a attr.KeyAttr) bool { return a.Name == name })
		switch {
		case slot < 0:
			c.fail(at, maperr.CodeInverse, fmt.Sprintf("%q is not a key attribute", name), "conditions on the table's key only")
			continue
		case attrs[slot].Type == attr.B:
			c.fail(at, maperr.CodeInverse, "a template cannot match a binary", "a key attribute of type S or N")
			continue
		}
		t, err := rowkey.ParseTemplate(spec.When[name], func(name, enc string) (int, *rowkey.Encoder, error) {
			if c.l.key.IsKey(name) || !rowkey.CaptureName.MatchString(name) {
				return 0, nil, fmt.Errorf("%q cannot name a capture; expected letters, digits and _, and no key attribute", name)
			}
			e, err := rowkey.ParseEncoder(cmp.Or(enc, "s"), attr.Absent)
			if err != nil {
				return 0, nil, err
			}
			switch {
			case e.Derived:
				return 0, nil, fmt.Errorf("encoder %s does not determine the value", e.Name)
			case e.Bytes:
				return 0, nil, fmt.Errorf("encoder %s has no text form", e.Name)
			}
			i := slices.IndexFunc(r.captures, func(k capture) bool { return k.name == name })
			if i < 0 {
				i = len(r.captures)
				r.captures = append(r.captures, capture{name: name, enc: e})
			} else if r.captures[i].enc.Name != e.Name {
				return 0, nil, fmt.Errorf("capture %s has two encodings, %s and %s", name, r.captures[i].enc.Name, e.Name)
			}
			return rowkey.FirstCapture + i, e, nil
		})
		if err != nil {
			c.fail(at, maperr.CodeSyntax, err.Error(), "")
			continue
		}
		if len(t.Parts) == 0 {
			c.fail(at, maperr.CodeInverse, "a key attribute is never empty", "a template")
		}
		r.when[slot] = t
	}
	if len(spec.Same) == 0 {
		return
	}
	r.same = true
	ok := len(spec.Same) == 2 && len(attrs) == 2 && attrs[0].Type == attrs[1].Type &&
		(spec.Same[0] == attrs[0].Name && spec.Same[1] == attrs[1].Name || spec.Same[0] == attrs[1].Name && spec.Same[1] == attrs[0].Name)
	if !ok {
		c.fail(path+".when.same", maperr.CodeSyntax, fmt.Sprint(spec.Same), "the two key attributes, of one type")
	}
}

// names reports whether a name is a capture or a key attribute.
func (c *compiler) names(r *rule, name string) bool {
	return c.l.key.IsKey(name) || slices.ContainsFunc(r.captures, func(k capture) bool { return k.name == name })
}

// reference resolves a reference in a row or cell template to its variable and encoder.
func (c *compiler) reference(r *rule, name, enc string) (int, *rowkey.Encoder, error) {
	for i, k := range r.captures {
		if k.name != name {
			continue
		}
		if enc == "" {
			return rowkey.FirstCapture + i, k.enc, nil
		}
		operand := k.enc.In
		if k.enc.Time { // an encoder of instants converts it to text
			operand = attr.Absent
		}
		e, err := rowkey.ParseEncoder(enc, operand)
		if err == nil && e.In != k.enc.In {
			err = fmt.Errorf("encoder %s takes type %s; capture %s is %s", enc, e.In, name, k.enc.In)
		}
		return rowkey.FirstCapture + i, e, err
	}
	for slot, a := range c.l.key.Attrs() {
		if a.Name == name {
			byType := map[attr.Type]string{attr.S: "s", attr.N: "nord", attr.B: "b"}
			e, err := rowkey.ParseEncoder(cmp.Or(enc, byType[a.Type]), a.Type)
			return slot, e, err
		}
	}
	return 0, nil, fmt.Errorf("{%s} is neither a capture nor a key attribute", name)
}

func (c *compiler) row(r *rule, spec *mapfile.Rule, path string) {
	if len(spec.Row) == 0 {
		c.fail(path+".row", maperr.CodeInverse, "no row key", "at least one segment")
	}
	salted := false
	for i, src := range spec.Row {
		at := fmt.Sprintf("%s.row[%d]", path, i)
		t, err := rowkey.ParseTemplate(src, func(name, enc string) (int, *rowkey.Encoder, error) { return c.reference(r, name, enc) })
		if err != nil {
			c.fail(at, maperr.CodeSyntax, err.Error(), "")
			continue
		}
		if len(t.Parts) == 0 {
			c.fail(at, maperr.CodeSyntax, "an empty segment", "a template")
		}
		last, j := i == len(spec.Row)-1, c.l.joiner
		width := 0
		for _, p := range t.Parts {
			if p.Lit != nil {
				width += len(p.Lit)
				if k := j.DelimOffence(p.Lit); k >= 0 && j.Kind == rowkey.JoinPlain && !last {
					c.fail(at, maperr.CodeDelim, fmt.Sprintf("segment %q has byte %q, at or below the delimiter", src, p.Lit[k]), "another delimiter, or joiner escaped")
				}
				continue
			}
			switch {
			case !p.Enc.Derived:
				r.rowSlots[p.Slot] = true
			case p.Enc.Identifies && p.Slot < r.keys:
				r.hashed[p.Slot] = true
			}
			if p.Enc.Shards > 0 {
				if salted {
					c.fail(at, maperr.CodeSyntax, "the row key has two salts", "one per row")
				}
				salted = true
			}
			if p.Enc.Width == 0 {
				width = -1 << 30
			}
			width += p.Enc.Width
			if p.Enc.Name == "nord" && j.Kind == rowkey.JoinPlain && j.Delim >= '0' && !last {
				c.fail(at, maperr.CodeDelim, fmt.Sprintf("encoder nord before delimiter %q does not preserve the order", j.Delim), "a delimiter below '0'")
			}
		}
		if j.Kind == rowkey.JoinFixed && !last {
			if width <= 0 {
				c.fail(at, maperr.CodeDelim, fmt.Sprintf("segment %q varies in width", src), "with joiner fixed, encoders of fixed width in all segments except the last")
			}
			r.widths = append(r.widths, width)
		}
		r.row = append(r.row, t)
	}
}
