package layout

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/rowkey"
	"github.com/tabletop-emu/tabletop/internal/strictyaml"
)

// closeLast sets closed for the rules whose last segments must be escaped: if the joiner escapes
// all segments, all rules except those with the most segments. A joiner auto does so if rules
// with different numbers of segments can have equal rows. It also sets strays for each rule.
func (c *compiler) closeLast() {
	j := &c.l.joiner
	most, meet := 0, false
	for i, r := range c.l.rules {
		most = max(most, len(r.row))
		for _, o := range c.l.rules[:i] {
			meet = meet || len(r.row) != len(o.row) && c.rowsMeet(r, o)
		}
	}
	j.All = j.All || j.Auto && meet
	for _, r := range c.l.rules {
		r.closed = j.All && len(r.row) < most
	}
	for _, r := range c.l.rules {
		for _, o := range c.l.rules {
			if len(r.row) < len(o.row) && c.rowsMeet(r, o) {
				r.strays = append(r.strays, o)
			}
		}
	}
}

// Stray reports whether the row of an item of a rule is also the row of an item of another rule
// with more segments. This happens if the last segment of one contains a delimiter, which ends a
// segment for the other. key is the key of the other item, as far as the row determines it.
func (m *Mapping) Stray(rule string, row []byte) (other string, key attr.Item, ok bool) {
	l, r := m.ruleNamed(rule)
	if r == nil {
		return "", nil, false
	}
	for _, o := range r.strays {
		vars, ok := l.parseRow(o, Row{Key: row})
		if !ok {
			continue
		}
		key := attr.Item{}
		for i, a := range l.key.Attrs() {
			if !vars[i].IsAbsent() {
				key[a.Name] = vars[i]
			}
		}
		if of, _, err := l.bind(key); len(key) == r.keys && (err != nil || of != o) {
			continue // the key belongs to no rule, or to another one
		}
		return o.name, key, true
	}
	return "", nil, false
}

// exclusive sets exclusive and shared for each rule; a row of an exclusive rule belongs to one
// item. It rejects an attribute that is stored in one cell by a rule that puts several items into a
// row. It also rejects a list of an exclusive rule if garbage collection would remove its elements.
func (c *compiler) exclusive() {
	for _, r := range c.l.rules {
		r.exclusive = len(r.identity) == 0 && !r.byCell
		r.shared = r.byCell
		for _, o := range c.l.rules {
			if o != r && c.rowsMeet(r, o) {
				r.exclusive = false
			}
		}
		if len(r.identity) > 0 {
			for _, slot := range slices.Sorted(maps.Keys(r.stored)) {
				p := r.stored[slot]
				c.fail(p.path+".attr", maperr.CodeInverse, fmt.Sprintf("%q is in one cell, but the rule puts several items into a row", p.attr), "a row for each item")
			}
		}
		if !r.exclusive {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(r.schema)) {
			p := cmp.Or(r.byAttr[name], r.star)
			if r.schema[name].Type == attr.L && p != nil && p.native(r) && r.ttl == nil {
				if c.l.listRoom(p.family) == 0 {
					c.fail(strictyaml.Join("target.families", p.family), maperr.CodeFamily, fmt.Sprintf("garbage collection would remove elements of list %q", name), "a family for lists without gc, or with as many versions as a list has elements, or codec ddbjson")
				}
			}
		}
	}
}

// absences rejects two rules that record missing attributes of versions in one row.
func (c *compiler) absences() {
	if !c.l.sidecar {
		return
	}
	for i, r := range c.l.rules {
		for _, o := range c.l.rules[:i] {
			if len(r.versioned) > 0 && len(o.versioned) > 0 && c.rowsMeet(r, o) {
				c.fail(fmt.Sprintf("rules[%d].row", i), maperr.CodeCollision, fmt.Sprintf("rules %s and %s have versions in the same rows", o.name, r.name), "separate rows")
			}
		}
	}
}

// rowsMeet reports whether two rules may write the same row: false only if that is impossible.
func (c *compiler) rowsMeet(a, b *rule) bool {
	if c.direct(a) && c.direct(b) && slices.EqualFunc(a.row, b.row, func(x, y *rowkey.Template) bool { return x.Src == y.Src }) {
		return false // the row determines the whole key, and so the rule
	}
	n := min(len(a.row), len(b.row))
	if c.l.joiner.Kind == rowkey.JoinFixed && !slices.Equal(a.widths, b.widths) {
		// Segments of one rule differ from those of the other.
		ap, _ := a.row[0].LiteralEnds(nil)
		bp, _ := b.row[0].LiteralEnds(nil)
		return bytes.HasPrefix(ap, bp) || bytes.HasPrefix(bp, ap)
	}
	if len(a.row) != len(b.row) {
		switch c.l.joiner.Kind {
		case rowkey.JoinOC:
			return false
		case rowkey.JoinFixed:
			return true
		case rowkey.JoinPlain, rowkey.JoinEscaped:
			if c.l.joiner.All {
				return false
			}
			n--
		}
	}
	for i := range n {
		ap, as := a.row[i].LiteralEnds(a.prefixOf)
		bp, bs := b.row[i].LiteralEnds(b.prefixOf)
		if !bytes.HasPrefix(ap, bp) && !bytes.HasPrefix(bp, ap) || !bytes.HasSuffix(as, bs) && !bytes.HasSuffix(bs, as) {
			return false
		}
		if a.row[i].IsLiteral() && b.row[i].IsLiteral() && a.row[i].Src != b.row[i].Src {
			return false
		}
		if aw, bw := a.row[i].Width(), b.row[i].Width(); aw > 0 && bw > 0 && aw != bw {
			return false
		}
	}
	return true
}

// direct reports whether the row refers to all key attributes, and to no capture.
func (c *compiler) direct(r *rule) bool {
	for s := range r.rowSlots {
		if s >= rowkey.FirstCapture {
			return false
		}
	}
	return len(r.rowSlots) == r.keys
}

// prefixOf returns the literal prefix that all texts of p share, a reference to a key attribute
// whose template begins with a literal. It returns nil for other references.
func (r *rule) prefixOf(p *rowkey.Part) []byte {
	if p.Slot < 0 || p.Slot >= r.keys || r.when[p.Slot] == nil || p.Enc.Name != "s" {
		return nil
	}
	prefix, _ := r.when[p.Slot].LiteralEnds(nil)
	return prefix
}

// claims rejects two puts that can write the same cell, unless tags distinguish them. It also
// rejects a put in a family that belongs to sets and maps.
func (c *compiler) claims() {
	type claim struct {
		r *rule
		p *put
	}
	var all []claim
	for _, r := range c.l.rules {
		for _, p := range r.puts {
			if p.family == c.l.shared {
				c.fail(p.path+".cell", maperr.CodeCollision, fmt.Sprintf("family %s is reserved for sets and maps (target.shared)", p.family), "another family")
			}
			if f := c.l.familyAttr[p.family]; f != "" && (f != p.attr || p.shape() != shapeCells) {
				c.fail(p.path+".cell", maperr.CodeCollision, fmt.Sprintf("family %s belongs to attribute %q", p.family, f), "another family")
			}
			all = append(all, claim{r, p})
		}
	}
	for i, x := range all {
		for _, y := range all[:i] {
			switch {
			case x.p.family != y.p.family || !qualifiersMeet(x.p.qual, y.p.qual):
				continue
			case x.r != y.r && (x.r.tag || y.r.tag || !c.rowsMeet(x.r, y.r)):
				if c.rowsMeet(x.r, y.r) {
					x.r.shared, y.r.shared = true, true
				}
				continue
			case x.r == y.r && (x.p == x.r.star && y.p.qual.IsLiteral() || y.p == y.r.star && x.p.qual.IsLiteral()):
				continue // an attribute with this very name is rejected at runtime
			}
			c.fail(x.p.path+".cell", maperr.CodeCollision,
				fmt.Sprintf("rules %s and %s can write the same cell (%s:%s and %s:%s)", y.r.name, x.r.name, y.p.family, y.p.qual.Src, x.p.family, x.p.qual.Src),
				"distinct columns, or tag: true on all but one of the rules")
			break // once per put
		}
	}
}

func qualifiersMeet(a, b *rowkey.Template) bool {
	if a.IsLiteral() && b.IsLiteral() {
		return a.Src == b.Src
	}
	if a.IsLiteral() {
		a, b = b, a
	}
	ap, as := a.LiteralEnds(nil)
	bp, bs := b.LiteralEnds(nil)
	if b.IsLiteral() { // a literal continues nothing after its end
		return bytes.HasPrefix(bp, ap) && bytes.HasSuffix(bs, as)
	}
	return (bytes.HasPrefix(ap, bp) || bytes.HasPrefix(bp, ap)) && (bytes.HasSuffix(as, bs) || bytes.HasSuffix(bs, as))
}

// SharedColumns returns the first rule whose columns may hold another item: tags distinguish its
// cells from those of another rule, or only a cell determines the key. It returns "" if no rule
// has such columns.
func (m *Mapping) SharedColumns() (rule string) {
	l, ok := m.layout.(*rules)
	if !ok {
		return ""
	}
	for _, r := range l.rules {
		if r.shared {
			return r.name
		}
	}
	return ""
}
