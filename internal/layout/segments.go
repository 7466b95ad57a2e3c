package layout

import (
	"slices"

	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/rowkey"
)

// Segment is one segment of the row key of a rule.
type Segment struct {
	Template string // as the mapping file has it
	// Attrs are the key attributes whose values it holds, whole or in part.
	Attrs []string
	// Encoders are those of its references, as written: "s", "revms(13)".
	Encoders []string
	// Time says that a reference is an instant, Reversed that greater values
	// come first, Unordered that the bytes do not sort as the values do.
	Time, Reversed, Unordered bool
}

// Segments are the segments of the row key of a rule, nil where the mapping has
// no such rule.
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

// SplitRowKey takes the row key of a rule apart into its segments, without
// delimiters and escapes; false where it is none of the rule's.
func (m *Mapping) SplitRowKey(rule string, key []byte) ([][]byte, bool) {
	l, r := m.ruleNamed(rule)
	if r == nil {
		return nil, false
	}
	return l.split(r, key)
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
