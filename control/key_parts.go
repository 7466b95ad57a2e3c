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

// keyPart is the part of a row key that a part of a rule's template wrote.
type keyPart struct {
	Segment int    `json:"segment"`           // its segment, from 0
	Name    string `json:"name,omitempty"`    // name of the attribute or the capture; empty for a literal
	Encoder string `json:"encoder,omitempty"` // as in the mapping
	Bytes   Bytes  `json:"bytes"`             // without delimiters and escapes
	Value   string `json:"value,omitempty"`   // the encoded value; a time as RFC 3339
}

// keyParts divides the key of a row into parts as a rule does, or as the best matching rule does if
// rule is "". It returns no parts for layouts without rules.
func keyParts(m *mapping.Mapping, rule string, row mapping.Row) []keyPart {
	cut := (*layout.Mapping)(m).CutRowKey(rule, row)
	out := make([]keyPart, 0, len(cut))
	for _, p := range cut {
		part := keyPart{Segment: p.Segment, Name: p.Name, Encoder: p.Encoder, Bytes: bytesOf(p.Bytes)}
		if p.Value.Type != attr.Absent && p.Value.Type != attr.B { // otherwise Bytes is the value
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

// mappingsOver returns the mappings of the DynamoDB tables whose items are in the rows of the
// table in a path.
func (s *Server) mappingsOver(r *http.Request) ([]*mapping.Mapping, error) {
	return s.mappingsOf(r, s.tableName(r))
}

// mappingsOf returns the mappings of a table with a resource name.
func (s *Server) mappingsOf(r *http.Request, table string) ([]*mapping.Mapping, error) {
	_, id := ids(table)
	if table != s.opts.Lab.TableName(id) {
		return nil, nil // all DynamoDB tables are in one instance
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

// partsBy returns the parts of the key of a row by the first mapping that matches.
func partsBy(mappings []*mapping.Mapping, row mapping.Row) []keyPart {
	for _, m := range mappings {
		if parts := keyParts(m, "", row); len(parts) > 0 {
			return parts
		}
	}
	return nil
}

// keySegment is a segment of the row keys of a rule.
type keySegment struct {
	Template   string   `json:"template"`
	Attributes []string `json:"attributes,omitempty"` // DynamoDB key attributes whose values it contains
	Encoders   []string `json:"encoders,omitempty"`
	Time       bool     `json:"time,omitempty"`
	Reversed   bool     `json:"reversed,omitempty"`  // greater values come first
	Unordered  bool     `json:"unordered,omitempty"` // the bytes do not sort as the values do
}

// ruleKeys describes the row keys of a rule of a mapping.
type ruleKeys struct {
	Table    string       `json:"table"` // of DynamoDB
	Rule     string       `json:"rule"`
	Segments []keySegment `json:"segments"`
}

// keysOf returns the segments of the row keys of mappings, without layouts that have no rules.
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
