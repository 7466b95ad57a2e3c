package layout

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/internal/layout/rowkey"
	"github.com/tabletop-emu/tabletop/internal/strictyaml"
)

// formula computes an attribute of an item from its key and its other attributes, so that it
// needs no cell (Rule.Derive). An item with another value, or without the attribute, is an
// exception: its cell `i/` of the sidecar has the value, or the absence.
type formula struct {
	name  string
	src   string // in the mapping file
	kind  attr.Type
	text  *rowkey.Template
	attrs []string // the attributes in the template, whose slots follow those of the captures
}

// maxDerivedBytes is the size of the largest item of DynamoDB. Templates of templates could
// otherwise multiply a text without a bound.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
const maxDerivedBytes = 400 << 10

// value returns the attribute of an item; false if the item lacks an attribute of the template,
// or has a value that the template does not take.
func (f *formula) value(vars []attr.Value, item attr.Item) (attr.Value, bool) {
	if len(f.attrs) > 0 {
		vars = slices.Clip(vars)
		for _, name := range f.attrs {
			vars = append(vars, item[name])
		}
	}
	text, bad := f.text.Render(nil, vars, "")
	if bad != nil || len(text) > maxDerivedBytes {
		return attr.Value{}, false
	}
	v, err := codec.ParseScalar(f.kind, text)
	return v, err == nil
}

// size returns the number of bytes of the attribute's name and of the text of v. The formula
// saves a cell with these.
func (f *formula) size(v attr.Value) int { return len(f.name) + len(v.Str) }

// derived stores the exceptions to the rule's formulas in the sidecar; without a sidecar it
// rejects them. It adds the sizes of the other derived attributes to saved.
func (p *placer) derived() *maperr.Error {
	for _, f := range p.r.formulas {
		want, ok := f.value(p.vars, p.item)
		v, has := p.item[f.name]
		switch {
		case ok && has && attr.Equal(want, v):
			p.saved += f.size(v)
			continue
		case !ok && !has:
			continue
		case p.r.sidecar:
			p.keep(f.name, v) // absent if the item lacks it
			continue
		}
		what, expected := "the item lacks the attribute", codec.Shown(want)
		if has {
			what = fmt.Sprintf("%s is not what derive gives", codec.Shown(v))
		}
		if !ok {
			expected = "no such attribute"
		}
		return p.l.fault(maperr.CodeDomain, p.r, p.item, f.name, what, expected+", or a family _t for exceptions")
	}
	return nil
}

// derived computes the derived attributes, except those in extras. It replaces values from cells:
// such cells do not come from the mapping.
func (p *partial) derived(r *rule) {
	for _, f := range r.formulas {
		if _, exception := p.extras[f.name]; exception {
			continue
		}
		delete(p.item, f.name)
		if v, ok := f.value(p.vars, p.item); ok {
			p.item[f.name] = v
		}
	}
}

// derive compiles the formulas of a rule, each after those that it depends on.
func (c *compiler) derive(r *rule, spec *mapfile.Rule, path string) {
	path += ".derive"
	all := map[string]*formula{}
	for _, name := range slices.Sorted(maps.Keys(spec.Derive)) {
		if f := c.formula(r, spec, name, strictyaml.Join(path, name)); f != nil {
			all[name] = f
		}
	}
	var chain []string
	var add func(name string)
	add = func(name string) {
		f := all[name]
		if f == nil || slices.Contains(r.formulas, f) {
			return
		}
		if i := slices.Index(chain, name); i >= 0 {
			c.fail(strictyaml.Join(path, chain[i]), maperr.CodeInverse, fmt.Sprintf("%q depends on itself: %s", name, strings.Join(append(chain[i:], name), ", ")), "a template of other attributes")
			delete(all, name)
			return
		}
		chain = append(chain, name)
		for _, of := range f.attrs {
			add(of)
		}
		chain = chain[:len(chain)-1]
		r.formulas = append(r.formulas, f)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		add(name)
	}
}

// formula compiles one formula; nil if it is faulty.
func (c *compiler) formula(r *rule, spec *mapfile.Rule, name, path string) *formula {
	f := &formula{name: name, src: spec.Derive[name], kind: c.spec.DerivedType(spec, name).Type}
	sound := c.sound(func() {
		switch {
		case c.l.key.IsKey(name):
			c.fail(path, maperr.CodeInverse, fmt.Sprintf("%q is a key attribute", name), "an attribute that is not part of the key")
		case r.byAttr[name] != nil:
			c.fail(path, maperr.CodeInverse, fmt.Sprintf("%q has a put, so it needs no template", name), "one of them")
		case r.timeAttrs[name], r.ttl != nil && r.ttl.name == name:
			c.fail(path, maperr.CodeInverse, fmt.Sprintf("%q is a timestamp of cells", name), "one of them")
		case f.kind != attr.S && f.kind != attr.N:
			c.fail(path, maperr.CodeInverse, fmt.Sprintf("%q is %s in the schema", name, f.kind), "type S or N")
		}
	})
	if constant, ok := strings.CutPrefix(f.src, "const("); ok && strings.HasSuffix(constant, ")") {
		constant = strings.TrimSuffix(constant, ")")
		f.text = &rowkey.Template{Src: f.src, Parts: []rowkey.Part{{Lit: []byte(constant), Slot: rowkey.SlotNone}}}
		if _, err := codec.ParseScalar(f.kind, []byte(constant)); sound && (err != nil || constant == "") {
			c.fail(path, maperr.CodeSyntax, fmt.Sprintf("%q is not a value of type %s", constant, f.kind), "a text, or a number if the schema says so")
			return nil
		}
		return f
	}
	var err error
	if f.text, err = rowkey.ParseTemplate(f.src, func(name, enc string) (int, *rowkey.Encoder, error) { return c.ingredient(r, spec, f, name, enc) }); err != nil {
		c.fail(path, maperr.CodeSyntax, err.Error(), "")
		return nil
	}
	if f.text.IsLiteral() {
		c.fail(path, maperr.CodeSyntax, fmt.Sprintf("%q is without a reference", f.src), "a reference in braces, or const(text)")
		return nil
	}
	if !sound {
		return nil
	}
	return f
}

// ingredient resolves a name in the template of a formula: a capture or key attribute, or else
// an attribute of the rule's schema.
func (c *compiler) ingredient(r *rule, spec *mapfile.Rule, f *formula, name, enc string) (slot int, e *rowkey.Encoder, err error) {
	key := slices.IndexFunc(c.l.key.Attrs(), func(a attr.KeyAttr) bool { return a.Name == name })
	kind, known := c.typeOf(r, spec, name)
	switch {
	case key >= 0:
		slot, kind = key, c.l.key.Attrs()[key].Type
	case c.names(r, name):
		slot, e, err = c.reference(r, name, enc)
	case !known:
		err = fmt.Errorf("{%s} is neither a capture, nor a key attribute, nor an attribute of the rule's schema", name)
	case kind != attr.S && kind != attr.N && kind != attr.B:
		err = fmt.Errorf("{%s} is of type %s; expected S, N or B", name, kind)
	case c.returnsOther(r, name):
		err = fmt.Errorf("{%s} may come back as another value (accept_loss)", name)
	default:
		i := slices.Index(f.attrs, name)
		if i < 0 {
			i = len(f.attrs)
			f.attrs = append(f.attrs, name)
		}
		slot = rowkey.FirstCapture + len(r.captures) + i
	}
	if err == nil && e == nil {
		byType := map[attr.Type]string{attr.S: "s", attr.N: "n", attr.B: "b"}
		e, err = rowkey.ParseEncoder(cmp.Or(enc, byType[kind]), kind)
	}
	if err == nil && e.Bytes {
		err = fmt.Errorf("encoder %s has no text form", e.Name)
	}
	return slot, e, err
}

// typeOf returns the type of an attribute under a rule; false if the file has none.
func (c *compiler) typeOf(r *rule, spec *mapfile.Rule, name string) (attr.Type, bool) {
	if _, derived := r.derives[name]; derived {
		return c.spec.DerivedType(spec, name).Type, true
	}
	if r.ttl != nil && r.ttl.name == name {
		return attr.N, true
	}
	s, known := r.schema[name]
	return s.Type, known
}

// returnsOther reports whether the rule accepts a loss that changes an attribute.
func (c *compiler) returnsOther(r *rule, name string) bool {
	if _, derived := r.derives[name]; derived || r.timeAttrs[name] {
		return false
	}
	p := cmp.Or(r.byAttr[name], r.star)
	return p != nil && (r.accepted[mapfile.LossTypes] && !r.sidecar || r.accepted[mapfile.LossPrecision] && p.codec.Round != nil)
}

// derivedFidelity classifies an attribute that a formula computes. Its class is at most that of
// the attributes in the formula that garbage collection can remove.
func (l *rules) derivedFidelity(r *rule, f *formula) Fidelity {
	of := Fidelity{Rule: r.name, Attribute: f.name, Why: "derived from " + strconv.Quote(f.src)}
	if !r.sidecar {
		of.Class, of.Why = LosslessInDomain, "equal to "+strconv.Quote(f.src)
	}
	for _, name := range f.attrs {
		from := Lossless
		if i := slices.IndexFunc(r.formulas, func(o *formula) bool { return o.name == name }); i >= 0 {
			from = l.derivedFidelity(r, r.formulas[i]).Class
		} else if p := cmp.Or(r.byAttr[name], r.star); p != nil && l.retention(r, p, name) != "" {
			from = l.attrFidelity(r, p, name).Class
		}
		if from > of.Class {
			of.Class, of.Why = from, of.Why+", which is "+from.String()
		}
	}
	return of
}
