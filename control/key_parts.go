package control

import (
	"strconv"
	"time"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

// keyPart is what a part of the template of a rule wrote into a row key.
type keyPart struct {
	Segment int    `json:"segment"`           // that it is of, from 0
	Name    string `json:"name,omitempty"`    // of the attribute or the capture; none of a literal
	Encoder string `json:"encoder,omitempty"` // as the mapping has it
	Bytes   Bytes  `json:"bytes"`             // without delimiters and escapes
	Value   string `json:"value,omitempty"`   // what was encoded: a time as RFC 3339
}

// keyParts are the parts of the key of a row, as a rule or, for "", the rule that fits best wrote it; none of a
// layout without rules.
func keyParts(m *mapping.Mapping, rule string, row mapping.Row) []keyPart {
	cut := (*layout.Mapping)(m).CutRowKey(rule, row)
	out := make([]keyPart, 0, len(cut))
	for _, p := range cut {
		part := keyPart{Segment: p.Segment, Name: p.Name, Encoder: p.Encoder, Bytes: bytesOf(p.Bytes)}
		switch {
		case p.Value.Type == attr.Absent, p.Value.Type == attr.B: // it is what the bytes say
		case p.Time:
			part.Value = p.Value.Str
			if ms, err := strconv.ParseInt(p.Value.Str, 10, 64); err == nil {
				part.Value = time.UnixMilli(ms).UTC().Format(time.RFC3339Nano)
			}
		default:
			part.Value = p.Value.Str
		}
		out = append(out, part)
	}
	return out
}
