package control

import (
	"net/http"
	"strconv"
	"time"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
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
		if p.Value.Type != attr.Absent && p.Value.Type != attr.B { // else it is what the bytes say
			part.Value = p.Value.Str
		}
		n, err := strconv.ParseInt(part.Value, 10, 64)
		switch {
		case err != nil:
		case p.Time || p.Encoder == "epoch(ms)":
			part.Value = time.UnixMilli(n).UTC().Format(time.RFC3339Nano)
		case p.Encoder == "epoch(s)":
			part.Value = time.Unix(n, 0).UTC().Format(time.RFC3339Nano)
		}
		out = append(out, part)
	}
	return out
}

// mappingsOver are the mappings of the DynamoDB tables whose items the rows of the table in a path are.
func (s *Server) mappingsOver(r *http.Request) ([]*mapping.Mapping, error) {
	return s.mappingsOf(r, s.tableName(r))
}

// mappingsOf are those of a table with a resource name.
func (s *Server) mappingsOf(r *http.Request, table string) ([]*mapping.Mapping, error) {
	_, id := ids(table)
	if table != s.opts.Lab.TableName(id) {
		return nil, nil // DynamoDB's tables are in one instance
	}
	names, err := s.dynamoDBTables(own(r))
	if err != nil {
		return nil, err
	}
	var out []*mapping.Mapping
	for _, name := range names {
		if m, err := s.opts.Endpoint.Mapping(own(r), name); err == nil && m.TargetTable() == id {
			out = append(out, m)
		}
	}
	return out, nil
}

// partsBy are the parts of the key of a row by the first mapping that has some.
func partsBy(mappings []*mapping.Mapping, row mapping.Row) []keyPart {
	for _, m := range mappings {
		if parts := keyParts(m, "", row); len(parts) > 0 {
			return parts
		}
	}
	return nil
}

// keySegment is a segment of the row keys of a rule, as a mapping has it.
type keySegment struct {
	Template   string   `json:"template"`
	Attributes []string `json:"attributes,omitempty"` // of the DynamoDB key, whose values it holds
	Encoders   []string `json:"encoders,omitempty"`
	Time       bool     `json:"time,omitempty"`
	Reversed   bool     `json:"reversed,omitempty"`  // greater values come first
	Unordered  bool     `json:"unordered,omitempty"` // the bytes do not sort as the values do
}

// ruleKeys are the row keys of a rule of a mapping.
type ruleKeys struct {
	Table    string       `json:"table"` // of DynamoDB
	Rule     string       `json:"rule"`
	Segments []keySegment `json:"segments"`
}

// keysOf says of which segments the row keys of mappings are; nothing of layouts without rules.
func keysOf(mappings []*mapping.Mapping) []ruleKeys {
	var out []ruleKeys
	for _, m := range mappings {
		spec := (*mapfile.Sealed)(m.Spec()).Open()
		if spec == nil {
			continue
		}
		for _, rule := range spec.Rules {
			keys := ruleKeys{Table: m.SourceTable(), Rule: rule.Name, Segments: []keySegment{}}
			for _, g := range (*layout.Mapping)(m).Segments(rule.Name) {
				keys.Segments = append(keys.Segments, keySegment{g.Template, g.Attrs, g.Encoders, g.Time, g.Reversed, g.Unordered})
			}
			out = append(out, keys)
		}
	}
	return out
}
