package layout

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/internal/layout/rowkey"
)

// Class is the degree to which a mapping preserves an attribute.
type Class uint8

// These are the classes, best first.
const (
	Lossless         Class = iota
	LosslessInDomain       // items outside the domain are rejected
	Lossy                  // data is lost, which accept_loss or a GC rule permits
)

// String returns "lossless", "lossless in domain" or "lossy".
func (c Class) String() string {
	return [...]string{"lossless", "lossless in domain", "lossy"}[c]
}

// MarshalText returns the result of String.
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Fidelity is the class of one attribute under one rule.
type Fidelity struct {
	Rule      string `json:"rule"`
	Attribute string `json:"attribute"`
	Class     Class  `json:"class"`
	Why       string `json:"why,omitempty"` // the domain, or the loss; "" for lossless
}

// String returns one line: rule, attribute, class, reason.
func (f Fidelity) String() string {
	line := fmt.Sprintf("%s %s: %s", f.Rule, f.Attribute, f.Class)
	if f.Why != "" {
		line += " (" + f.Why + ")"
	}
	return line
}

// Fidelity returns the class of each key attribute, and of each attribute that the file names,
// rule by rule. For the default layout, which is lossless, it returns nil.
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
		for i, a := range l.key.Attrs() {
			all = append(all, l.keyFidelity(r, i, a))
		}
		for _, name := range l.attributesOf(r) {
			all = append(all, l.attrFidelity(r, cmp.Or(r.byAttr[name], r.star), name))
		}
		for _, f := range r.formulas {
			all = append(all, l.derivedFidelity(r, f))
		}
		if r.ttl != nil {
			f := Fidelity{Rule: r.name, Attribute: r.ttl.name}
			if !r.sidecar {
				f.Class, f.Why = LosslessInDomain, "seconds since 1970 that let the item expire"
			}
			all = append(all, f)
		}
		for _, name := range slices.Sorted(maps.Keys(r.timeAttrs)) {
			f := Fidelity{Rule: r.name, Attribute: name}
			if !r.sidecar {
				f.Class, f.Why = LosslessInDomain, "canonical times, with the cell that has them as its timestamp"
			}
			all = append(all, f)
		}
	}
	return all
}

// attributesOf returns the attributes that the file names and the rule places.
func (l *rules) attributesOf(r *rule) []string {
	names := map[string]bool{}
	for name := range r.byAttr {
		names[name] = !l.key.IsKey(name)
	}
	for name := range r.schema {
		names[name] = names[name] || r.star != nil && !l.key.IsKey(name) && !r.timeAttrs[name]
	}
	return slices.Sorted(func(yield func(string) bool) {
		for name, placed := range names {
			if placed && !yield(name) {
				return
			}
		}
	})
}

func (l *rules) keyFidelity(r *rule, slot int, a attr.KeyAttr) Fidelity {
	f := Fidelity{Rule: r.name, Attribute: a.Name}
	var domain []string
	if r.when[slot] != nil {
		domain = append(domain, "matches "+r.when[slot].Src)
	}
	for i, t := range r.row {
		for _, p := range t.Parts {
			if p.Lit == nil && !p.Enc.Derived && (p.Slot == slot || p.Slot >= rowkey.FirstCapture && r.when[slot] != nil && r.when[slot].Uses(p.Slot)) {
				if l.joiner.Kind == rowkey.JoinPlain && i < len(r.row)-1 {
					domain = append(domain, fmt.Sprintf("no byte up to %q", l.joiner.Delim))
				}
				if p.Slot == slot && p.Enc.Expected != "text" && p.Enc.Expected != "a binary" && p.Enc.Expected != "a number" {
					domain = append(domain, p.Enc.Expected)
				}
			}
		}
	}
	if r.latest && r.when[slot] != nil && r.when[slot].Uses(r.version) {
		domain = append(domain, "version 0 is a copy of the highest")
	}
	if len(domain) > 0 {
		f.Class, f.Why = LosslessInDomain, strings.Join(slices.Compact(domain), "; ")
	}
	return f
}

func (l *rules) attrFidelity(r *rule, p *put, name string) Fidelity {
	f := Fidelity{Rule: r.name, Attribute: name}
	s := r.schema[name]
	var why []string
	note := func(class Class, text string) {
		f.Class = max(f.Class, class)
		why = append(why, text)
	}
	if gc := l.retention(r, p, name); gc != "" {
		if r.accepted[mapfile.LossRetention] {
			note(Lossy, "accepted: garbage collection removes cells beyond "+gc)
		} else {
			note(LosslessInDomain, "within "+gc)
		}
	}
	if p.codec.OmitsNull {
		if r.accepted[mapfile.LossNull] {
			note(Lossy, "accepted: a NULL is left out")
		} else {
			note(LosslessInDomain, "no NULL")
		}
	}
	if p.codec.Round != nil && r.accepted[mapfile.LossPrecision] {
		note(Lossy, "accepted: rounded to 64 bits of floating point")
	}
	if slices.Contains(r.versioned, name) && !r.sidecar {
		if r.accepted[mapfile.LossAbsent] {
			note(Lossy, "accepted: the newest cell may be an older version's")
		} else {
			note(LosslessInDomain, "in every version")
		}
	}
	switch {
	case r.sidecar || p.codec.Domain == nil:
	case r.accepted[mapfile.LossTypes]:
		note(Lossy, "accepted: another type comes back as "+cmp.Or(typeText(s), "the codec's"))
	case r.accepted[mapfile.LossEmpty] && (s.Type == attr.M || s.Type == attr.L):
		note(Lossy, "accepted: empty ones vanish")
	case p.codec.Round != nil && r.accepted[mapfile.LossPrecision]:
	default:
		domain := cmp.Or(p.codec.Expected(s), "one of the put's kind")
		if e := p.elementEncoder(); e != nil {
			domain += ", each " + e.Expected
		}
		if room := l.listRoom(p.family); s.Type == attr.L && p.native(r) && room < math.MaxInt {
			domain += fmt.Sprintf(" of at most %d elements (family %s)", room, p.family)
		}
		note(LosslessInDomain, domain)
	}
	f.Why = strings.Join(why, "; ")
	return f
}

func typeText(s codec.Schema) string {
	if s.Type == attr.Absent {
		return ""
	}
	return s.Type.String()
}

// retention describes the part of an attribute that garbage collection leaves, "" for all of
// it. Deleting expired items is not a loss.
func (l *rules) retention(r *rule, p *put, name string) string {
	family := p.family
	if of := cmp.Or(l.setFamily[name], l.mapFamily[name]); of != "" && r.exclusive && p.codec.ByType && p.shape() == shapeCell && l.expiresWith(r, of) {
		family = of
	}
	gc := l.declared[family]
	var rules []string
	if gc.Versions > 0 && p.byTime {
		rules = append(rules, fmt.Sprintf("%d versions", gc.Versions))
	}
	if gc.MaxAge > 0 && r.ttl == nil {
		rules = append(rules, fmt.Sprintf("an age of %s", gc.MaxAge))
	}
	if len(rules) == 0 {
		return ""
	}
	return strings.Join(rules, " and ") + " (family " + family + ")"
}

// expiryNotes returns the Notes about expired items.
func (l *rules) expiryNotes(e Expiry) (notes []string) {
	if e.Collected {
		var expiring, others []string
		ages := map[int64]bool{}
		for _, r := range l.rules {
			if r.ttl != nil {
				expiring, ages[r.ttl.age] = append(expiring, r.name), true
			} else if r.has(e.Attribute) {
				others = append(others, r.name)
			}
		}
		if len(others) > 0 && !e.Kept {
			notes = append(notes, fmt.Sprintf("garbage collection deletes expired items only of rules %s; items of rules %s keep attribute %s, and nothing deletes them", strings.Join(expiring, ", "), strings.Join(others, ", "), e.Attribute))
		}
		before := "the maxAge of their family"
		if len(ages) == 1 {
			before = (time.Duration(l.ttls[0].age) * time.Microsecond).String()
		}
		notes = append(notes, "items expire by garbage collection, up to a week late; native reads must skip timestamps before now minus "+before)
		if e.Kept {
			notes = append(notes, fmt.Sprintf("garbage collection deletes expired items of rules %s; the DynamoDB endpoint or the readers must delete the others, which expire by attribute %s", strings.Join(expiring, ", "), e.Attribute))
		}
	} else if e.Kept {
		notes = append(notes, fmt.Sprintf("nothing in Bigtable deletes the items that expire by attribute %s: the DynamoDB endpoint or the readers must", e.Attribute))
	}
	return notes
}

// Notes describes the changes for users of the table that do not concern single attributes, one
// sentence each. For the default layout and those of other tools it returns nil.
func (m *Mapping) Notes() []string {
	l, ok := m.layout.(*rules)
	if !ok {
		return nil
	}
	var notes []string
	var shared []string
	for _, r := range l.rules {
		if !r.exclusive {
			shared = append(shared, r.name)
		}
		for _, t := range r.row {
			for _, p := range t.Parts {
				if p.Lit == nil && p.Enc.Shards > 1 && p.Slot != rowkey.SlotHash {
					notes = append(notes, fmt.Sprintf("rule %s: a query of a partition reads %d ranges of rows, one per shard", r.name, p.Enc.Shards))
				}
			}
		}
		if r.latest {
			notes = append(notes, fmt.Sprintf("rule %s: the copies of the highest version are not written; they follow the versions", r.name))
		}
	}
	if len(shared) > 0 {
		notes = append(notes, fmt.Sprintf("rules %s put several items into a row: deleting the row deletes them all, which DynamoDB does not do", strings.Join(shared, ", ")))
	}
	notes = append(notes, l.expiryNotes(m.Expiry())...)
	for i := range m.spec.Source.GSIs {
		g := &m.spec.Source.GSIs[i]
		switch g.As {
		case mapfile.IndexAsNone:
			notes = append(notes, fmt.Sprintf("index %s has no counterpart", g.Name))
		case mapfile.IndexAsView:
			notes = append(notes, fmt.Sprintf("index %s is a view that follows the table with a delay; load creates it, as does gcloud bigtable materialized-views create %s --instance=INSTANCE --query=QUERY",
				g.Name, mapfile.IndexTable(m.spec.Target.Table, g.Name)))
		}
	}
	notes = append(notes, "streams, capacity, access policies and backups of the DynamoDB table are not mapped")
	return notes
}
