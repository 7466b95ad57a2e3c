package filter

import (
	"bytes"
	"math"
)

// rowOffset implements cells_per_row_offset_filter, which skips the first cells of a
// row.
type rowOffset struct {
	leaf
	skip int32
}

func decodeRowOffset(n int32, at place) (node, error) {
	if n < 0 {
		return nil, at.errorf("is %d; expected at least 0", n)
	}
	return rowOffset{skip: n}, nil
}

func (n rowOffset) link(l *linker, next stage) stage {
	s := &rowOffsetStage{skip: n.skip, next: next}
	l.p.perPass = append(l.p.perPass, s)
	return s
}

type rowOffsetStage struct {
	skip, skipped int32
	next          stage
}

func (s *rowOffsetStage) resetPass() { s.skipped = 0 }

func (s *rowOffsetStage) push(r *run, c *Cell) hint {
	if s.skipped < s.skip {
		s.skipped++
		return hint{}
	}
	return s.next.push(r, c)
}

// rowLimit implements cells_per_row_limit_filter, which passes the first cells of a
// row.
type rowLimit struct {
	leaf
	limit int32
}

func decodeRowLimit(n int32, at place) (node, error) {
	if n <= 0 {
		return nil, at.errorf("is %d; expected at least 1", n)
	}
	return rowLimit{limit: n}, nil
}

func (n rowLimit) link(l *linker, next stage) stage {
	s := &rowLimitStage{limit: n.limit, next: next}
	l.p.perPass = append(l.p.perPass, s)
	return s
}

type rowLimitStage struct {
	limit, passed int32
	next          stage
}

func (s *rowLimitStage) resetPass() { s.passed = 0 }

func (s *rowLimitStage) push(r *run, c *Cell) hint {
	if s.passed == s.limit {
		return hint{to: nextRow}
	}
	s.passed++
	h := s.next.push(r, c)
	if s.passed == s.limit || h.to == nextRow {
		return hint{to: nextRow}
	}
	// Cells that later stages do not want must still be counted.
	return hint{}
}

// columnLimit implements cells_per_column_limit_filter, which passes the newest cells
// of each column.
type columnLimit struct {
	leaf
	limit int32
}

func decodeColumnLimit(n int32, at place) (node, error) {
	if n <= 0 {
		return nil, at.errorf("is %d; expected at least 1", n)
	}
	return columnLimit{limit: n}, nil
}

func (n columnLimit) link(l *linker, next stage) stage {
	s := &columnLimitStage{limit: n.limit, next: next}
	l.p.perPass = append(l.p.perPass, s)
	return s
}

type columnLimitStage struct {
	limit, passed int32 // passed of the column below; 0 before the first
	ordinal       uint16
	qualifier     []byte // a copy
	next          stage
}

func (s *columnLimitStage) resetPass() { s.passed = 0 }

func (s *columnLimitStage) push(r *run, c *Cell) hint {
	if s.passed == 0 || s.ordinal != c.Ordinal || !bytes.Equal(s.qualifier, c.Qualifier) {
		s.passed = 0
		s.ordinal = c.Ordinal
		s.qualifier = append(s.qualifier[:0], c.Qualifier...)
	}
	if s.passed == s.limit {
		return hint{to: nextColumn}
	}
	s.passed++
	h := s.next.push(r, c)
	if s.passed == s.limit {
		return farthest(h, hint{to: nextColumn})
	}
	return h
}

// rowSample implements row_sample_filter, which passes whole rows with a probability.
type rowSample struct {
	leaf
	probability float64
}

func decodeRowSample(p float64, at place) (node, error) {
	if math.IsNaN(p) || p <= 0 || p >= 1 {
		return nil, at.errorf("is %v; expected a number greater than 0 and less than 1", p)
	}
	return rowSample{probability: p}, nil
}

func (n rowSample) link(l *linker, next stage) stage {
	s := &rowSampleStage{probability: n.probability, next: next}
	l.p.perRow = append(l.p.perRow, s)
	return s
}

type rowSampleStage struct {
	probability   float64
	drawn, chosen bool // for the current row
	next          stage
}

func (s *rowSampleStage) resetRow() { s.drawn = false }

func (s *rowSampleStage) push(r *run, c *Cell) hint {
	if !s.drawn {
		s.drawn, s.chosen = true, r.random() < s.probability
	}
	if !s.chosen {
		return hint{to: nextRow}
	}
	return s.next.push(r, c)
}
