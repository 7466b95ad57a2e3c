package filter

import (
	"bytes"
	"strings"
)

// regex compiles an expression of the filter.
func (d *decoder) regex(pattern []byte, at place) (*regex, error) {
	re, err := compileRegex(pattern)
	if err != nil {
		return nil, at.errorf("%w", err)
	}
	if d.instructions += re.instructions; d.instructions > hardMaxInstructions {
		return nil, at.errorf("the filter's regular expressions compile to more than %d instructions", hardMaxInstructions)
	}
	return re, nil
}

// rowKeyRegex implements row_key_regex_filter.
type rowKeyRegex struct {
	leaf
	re *regex
}

// EmptyError is the error for an empty row_key_regex_filter or family_name_regex_filter. Such a
// filter cannot match, because row keys and family names are never empty.
type EmptyError struct {
	Field string // name of the filter, without the enclosing filters
}

func (e *EmptyError) Error() string { return e.Field + ": argument must not be empty" }

func (d *decoder) rowKeyRegex(pattern []byte, at place) (node, error) {
	if len(pattern) == 0 {
		return nil, &EmptyError{"row_key_regex_filter"}
	}
	re, err := d.regex(pattern, at)
	if err != nil {
		return nil, err
	}
	return rowKeyRegex{re: re}, nil
}

func (n rowKeyRegex) rows() RowSet {
	switch {
	case n.re.isLiteral:
		return OneRow(n.re.prefix)
	case len(n.re.prefix) > 0:
		return Prefix(n.re.prefix)
	default:
		return AllRows()
	}
}

func (n rowKeyRegex) link(l *linker, next stage) stage {
	s := &rowKeyRegexStage{re: n.re, next: next}
	l.p.perRow = append(l.p.perRow, s)
	return s
}

type rowKeyRegexStage struct {
	re             *regex
	next           stage
	known, matches bool // for the current row
}

func (s *rowKeyRegexStage) resetRow() { s.known = false }

func (s *rowKeyRegexStage) push(r *run, c *Cell) hint {
	if !s.known {
		s.known, s.matches = true, s.re.match(r, r.row)
	}
	if !s.matches {
		return hint{to: nextRow}
	}
	return s.next.push(r, c)
}

// familyRegex implements family_name_regex_filter.
type familyRegex struct {
	leaf
	re *regex
}

func (d *decoder) familyRegex(pattern string, at place) (node, error) {
	if pattern == "" {
		return nil, &EmptyError{"family_name_regex_filter"}
	}
	if strings.Contains(pattern, ":") {
		return nil, at.errorf("%q contains ':'", pattern)
	}
	re, err := d.regex([]byte(pattern), at)
	if err != nil {
		return nil, err
	}
	return familyRegex{re: re}, nil
}

func (n familyRegex) onlyFamily() string {
	if n.re.isLiteral {
		return string(n.re.prefix)
	}
	return ""
}

func (n familyRegex) link(l *linker, next stage) stage {
	s := &familyRegexStage{re: n.re, literal: string(n.re.prefix), next: next}
	l.p.perRow = append(l.p.perRow, s)
	return s
}

type familyRegexStage struct {
	re      *regex
	literal string
	next    stage
	known   bool // matches is valid for the family ordinal
	ordinal uint16
	matches bool
}

func (s *familyRegexStage) resetRow() { s.known = false }

func (s *familyRegexStage) push(r *run, c *Cell) hint {
	if s.re.isLiteral {
		if c.Family != s.literal {
			return r.seek(c, s.literal, nil)
		}
		return oneFamily(s.next.push(r, c))
	}
	if !s.known || s.ordinal != c.Ordinal {
		s.known, s.ordinal, s.matches = true, c.Ordinal, s.re.match(r, []byte(c.Family))
	}
	if !s.matches {
		return hint{to: nextFamily}
	}
	return s.next.push(r, c)
}

// qualifierRegex implements column_qualifier_regex_filter.
type qualifierRegex struct {
	leaf
	re *regex
}

func (d *decoder) qualifierRegex(pattern []byte, at place) (node, error) {
	re, err := d.regex(pattern, at)
	if err != nil {
		return nil, err
	}
	return qualifierRegex{re: re}, nil
}

func (n qualifierRegex) link(_ *linker, next stage) stage {
	return &qualifierRegexStage{re: n.re, next: next}
}

type qualifierRegexStage struct {
	re   *regex
	next stage
}

func (s *qualifierRegexStage) push(r *run, c *Cell) hint {
	if s.re.match(r, c.Qualifier) {
		h := s.next.push(r, c)
		if s.re.isLiteral && (h.to == nextColumn || h.to == seekHere) {
			return hint{to: nextFamily}
		}
		return h
	}
	switch {
	case len(s.re.prefix) == 0 && !s.re.isLiteral:
		return hint{to: nextColumn}
	case bytes.Compare(c.Qualifier, s.re.prefix) < 0:
		return r.seek(c, c.Family, s.re.prefix)
	case !s.re.isLiteral && bytes.HasPrefix(c.Qualifier, s.re.prefix):
		return hint{to: nextColumn}
	default:
		return hint{to: nextFamily}
	}
}

// valueRegex implements value_regex_filter.
type valueRegex struct {
	leaf
	re *regex
}

func (d *decoder) valueRegex(pattern []byte, at place) (node, error) {
	re, err := d.regex(pattern, at)
	if err != nil {
		return nil, err
	}
	return valueRegex{re: re}, nil
}

func (n valueRegex) link(_ *linker, next stage) stage {
	return &valueRegexStage{re: n.re, next: next}
}

type valueRegexStage struct {
	re   *regex
	next stage
}

func (s *valueRegexStage) push(r *run, c *Cell) hint {
	if !s.re.match(r, c.Value) {
		return hint{}
	}
	return s.next.push(r, c)
}
