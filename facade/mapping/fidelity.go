package mapping

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// Class is how well an attribute survives the mapping.
type Class uint8

// The classes, best first.
const (
	Lossless         Class = iota
	LosslessInDomain       // outside of the domain an item is refused
	Lossy                  // something is lost, and accept_loss or a GC rule says so
)

// String returns "lossless", "lossless in domain" or "lossy".
func (c Class) String() string {
	return [...]string{"lossless", "lossless in domain", "lossy"}[c]
}

// Fidelity is the class of one attribute under one rule.
type Fidelity struct {
	Rule, Attribute string
	Class           Class
	Why             string // the domain, or what is lost; "" where lossless
}

// String returns one line: rule, attribute, class, reason.
func (f Fidelity) String() string {
	line := fmt.Sprintf("%s %s: %s", f.Rule, f.Attribute, f.Class)
	if f.Why != "" {
		line += " (" + f.Why + ")"
	}
	return line
}

// Fidelity classifies what the mapping does to the key attributes and to each
// attribute of the schema, rule by rule. The default layout loses nothing and
// yields nil.
func (m *Mapping) Fidelity() []Fidelity {
	if l, ok := m.layout.(*googleUtility); ok {
		return l.fidelity()
	}
	l, ok := m.layout.(*rules)
	if !ok {
		return nil
	}
	var all []Fidelity
	for _, r := range l.rules {
		for i, a := range l.key.attrs() {
			all = append(all, l.keyFidelity(r, i, a))
		}
		for _, name := range slices.Sorted(maps.Keys(l.schema)) {
			if p := cmp.Or(r.byAttr[name], r.star); p != nil && !l.key.isKey(name) && !r.timeAttrs[name] {
				all = append(all, l.attrFidelity(r, p, name))
			}
		}
		if l.ttl != nil {
			f := Fidelity{Rule: r.name, Attribute: l.ttl.name}
			if !l.sidecar {
				f.Class, f.Why = LosslessInDomain, "seconds since 1970 that let the item expire"
			}
			all = append(all, f)
		}
		for _, name := range slices.Sorted(maps.Keys(r.timeAttrs)) {
			f := Fidelity{Rule: r.name, Attribute: name}
			if !l.sidecar {
				f.Class, f.Why = LosslessInDomain, "canonical times, with the cell that has them as its timestamp"
			}
			all = append(all, f)
		}
	}
	return all
}

func (l *rules) keyFidelity(r *rule, slot int, a KeyAttr) Fidelity {
	f := Fidelity{Rule: r.name, Attribute: a.Name}
	var domain []string
	if r.when[slot] != nil {
		domain = append(domain, "matches "+r.when[slot].src)
	}
	for i, t := range r.row {
		for _, p := range t.parts {
			if p.lit == nil && !p.enc.derived && (p.slot == slot || p.slot >= firstCapture && r.when[slot] != nil && r.when[slot].uses(p.slot)) {
				if l.joiner.kind == joinPlain && i < len(r.row)-1 {
					domain = append(domain, fmt.Sprintf("no byte up to %q", l.joiner.delim))
				}
				if p.slot == slot && p.enc.expected != "text" && p.enc.expected != "a binary" && p.enc.expected != "a number" {
					domain = append(domain, p.enc.expected)
				}
			}
		}
	}
	if len(domain) > 0 {
		f.Class, f.Why = LosslessInDomain, strings.Join(slices.Compact(domain), "; ")
	}
	return f
}

func (l *rules) attrFidelity(r *rule, p *put, name string) Fidelity {
	f := Fidelity{Rule: r.name, Attribute: name}
	s := l.schema[name]
	switch {
	case p.byTime && l.declared[p.family] != GC{}:
		f.Class, f.Why = Lossy, "retention loss: garbage collection of family "+p.family+" removes items"
		if r.lossRetention {
			f.Why = "accepted: garbage collection of family " + p.family + " removes items"
		}
	case l.sidecar || p.codec.kind == codecDDBJSON:
	case r.lossTypes:
		f.Class, f.Why = Lossy, "accepted: another type comes back as "+s.Type.String()
	case r.lossEmpty && (s.Type == attr.M || s.Type == attr.L):
		f.Class, f.Why = Lossy, "accepted: empty ones vanish"
	default:
		f.Class, f.Why = LosslessInDomain, cmp.Or(p.codec.expected(s), "one of the put's kind")
	}
	return f
}
