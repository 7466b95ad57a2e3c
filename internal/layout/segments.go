package layout

import (
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/rowkey"
)

// Segment is one segment of the row key of a rule.
type Segment struct {
	Template string // template in the mapping file
	// Attrs lists the key attributes whose values it contains, in whole or in part.
	Attrs []string
	// Encoders lists the encoders of its references as in the mapping file, such as "s" or
	// "revms(13)".
	Encoders []string
	// Time means that a reference is an instant, Reversed that greater values come first, and
	// Unordered that the bytes do not sort like the values.
	Time, Reversed, Unordered bool
}

// Segments returns the segments of the row key of a rule, or nil if the rule does not exist.
func (m *Mapping) Segments(rule string) []Segment {
	l, r := m.ruleNamed(rule)
	if r == nil {
		return nil
	}
	segments := make([]Segment, len(r.row))
	for i, t := range r.row {
		s := Segment{Template: t.Src}
		for _, p := range t.Parts {
			if p.Lit != nil {
				continue
			}
			s.Encoders = append(s.Encoders, p.Enc.Name)
			s.Time = s.Time || p.Enc.Time || codec.TimeFormats[p.Enc.Name] != (codec.TimeFormat{})
			s.Reversed = s.Reversed || p.Enc.Order == rowkey.ReversedOrder
			s.Unordered = s.Unordered || p.Enc.Order == rowkey.NoOrder
			for slot, a := range l.key.Attrs() {
				held := p.Slot == slot || r.when[slot] != nil && r.when[slot].Uses(p.Slot)
				if held && !slices.Contains(s.Attrs, a.Name) {
					s.Attrs = append(s.Attrs, a.Name)
				}
			}
		}
		segments[i] = s
	}
	return segments
}

// SplitRowKey splits a row key of a rule into its segments, without delimiters and escapes. It
// returns false if the key does not match the rule.
func (m *Mapping) SplitRowKey(rule string, key []byte) ([][]byte, bool) {
	l, r := m.ruleNamed(rule)
	if r == nil {
		return nil, false
	}
	return l.split(r, key)
}

// KeyPart is the text in a row key that belongs to one part of a segment template.
type KeyPart struct {
	Segment int    // index of its segment
	Name    string // name of the key attribute or the capture; "" for a literal
	Encoder string // as in the mapping file, such as "revms(13)"; "" for a literal
	Bytes   []byte // without delimiters and escapes
	// Value is the decoded value. It is Absent for a literal, a salt or a hash.
	Value attr.Value
	Time  bool // Value is an instant, in milliseconds
}

// CutRowKey splits a row key into the parts of a rule. If the rule is "", it uses the matching rule
// with the most parts. It returns nil if no rule matches or the layout has no rules.
func (m *Mapping) CutRowKey(rule string, row Row) (parts []KeyPart) {
	l, ok := m.layout.(*rules)
	if !ok {
		return nil
	}
	for _, r := range l.rules {
		if rule != "" && r.name != rule {
			continue
		}
		vars, fits := l.parseRow(r, row)
		segments, ok := l.split(r, row.Key)
		if !ok || !fits && rule == "" {
			continue
		}
		var cut []KeyPart
		for i, t := range r.row {
			for j, bytes := range t.Cut(segments[i]) {
				part := KeyPart{Segment: i, Bytes: bytes}
				if p := t.Parts[j]; p.Lit == nil {
					part.Name, part.Encoder = l.slotName(r, p.Slot), p.Enc.Name
					if !p.Enc.Derived && fits {
						part.Value, part.Time = vars[p.Slot], p.Enc.Time && !p.Enc.Version
					}
				}
				cut = append(cut, part)
			}
		}
		if len(cut) > len(parts) {
			parts = cut
		}
	}
	return parts
}

// slotName returns the name of a variable in templates.
func (l *rules) slotName(r *rule, slot int) string {
	if slot >= rowkey.FirstCapture {
		return r.captures[slot-rowkey.FirstCapture].name
	}
	return l.key.Attrs()[slot].Name
}

func (m *Mapping) ruleNamed(name string) (*rules, *rule) {
	l, ok := m.layout.(*rules)
	if !ok {
		return nil, nil
	}
	i := slices.IndexFunc(l.rules, func(r *rule) bool { return r.name == name })
	if i < 0 {
		return l, nil
	}
	return l, l.rules[i]
}
