package filter

import (
	"bytes"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
)

// byteRange is a range of byte strings. An unset side has no bound.
type byteRange struct {
	start, end         []byte
	startOpen, endOpen bool
	noEnd              bool
}

// check rejects a range that starts after its end.
func (b byteRange) check(at place) error {
	if b.noEnd {
		return nil
	}
	if c := bytes.Compare(b.start, b.end); c > 0 || c == 0 && (b.startOpen || b.endOpen) {
		return at.errorf("the range starts at %+q and ends at %+q; the start must come first", b.start, b.end)
	}
	return nil
}

// place returns -1, 0 or 1 if v is before, in or after the range.
func (b byteRange) place(v []byte) int {
	if c := bytes.Compare(v, b.start); c < 0 || c == 0 && b.startOpen {
		return -1
	}
	if b.noEnd {
		return 0
	}
	if c := bytes.Compare(v, b.end); c > 0 || c == 0 && b.endOpen {
		return 1
	}
	return 0
}

// columnRange implements column_range_filter.
type columnRange struct {
	leaf
	family string
	byteRange
}

func decodeColumnRange(m *btpb.ColumnRange, at place) (node, error) {
	n := columnRange{family: m.GetFamilyName()}
	if n.family == "" {
		return nil, at.errorf("family_name is empty")
	}
	switch s := m.GetStartQualifier().(type) {
	case *btpb.ColumnRange_StartQualifierClosed:
		n.start = s.StartQualifierClosed
	case *btpb.ColumnRange_StartQualifierOpen:
		n.start, n.startOpen = s.StartQualifierOpen, true
	}
	switch e := m.GetEndQualifier().(type) {
	case *btpb.ColumnRange_EndQualifierClosed:
		n.end = e.EndQualifierClosed
	case *btpb.ColumnRange_EndQualifierOpen:
		n.end, n.endOpen = e.EndQualifierOpen, true
	case nil:
		n.noEnd = true
	}
	return n, n.check(at)
}

func (n columnRange) link(_ *linker, next stage) stage {
	return &columnRangeStage{columnRange: n, next: next}
}

type columnRangeStage struct {
	columnRange
	next stage
}

func (s *columnRangeStage) push(r *run, c *Cell) hint {
	if c.Family != s.family {
		return r.seek(c, s.family, s.start)
	}
	switch s.place(c.Qualifier) {
	case -1:
		if bytes.Equal(c.Qualifier, s.start) {
			return hint{to: nextColumn}
		}
		return r.seek(c, s.family, s.start)
	case 1:
		return hint{to: nextRow}
	}
	h := s.next.push(r, c)
	if h.to == nextColumn && !s.noEnd && bytes.Equal(c.Qualifier, s.end) {
		return hint{to: nextRow} // of the last column of the range
	}
	return oneFamily(h)
}

// timestampRange implements timestamp_range_filter: [start, end) in microseconds.
// Bounds need not be multiples of the table's granularity: production accepts
// any (google-cloud-go#9149).
type timestampRange struct {
	leaf
	start, end int64 // end 0 is unbounded
}

func decodeTimestampRange(m *btpb.TimestampRange, at place) (node, error) {
	n := timestampRange{start: m.GetStartTimestampMicros(), end: m.GetEndTimestampMicros()}
	if n.start < 0 || n.end < 0 {
		return nil, at.errorf("has a negative bound: [%d, %d)", n.start, n.end)
	}
	if n.end != 0 && n.start >= n.end {
		return nil, at.errorf("the range starts at %d and ends at %d; the start must come first", n.start, n.end)
	}
	return n, nil
}

func (n timestampRange) link(_ *linker, next stage) stage {
	return &timestampRangeStage{timestampRange: n, next: next}
}

type timestampRangeStage struct {
	timestampRange
	next stage
}

func (s *timestampRangeStage) push(r *run, c *Cell) hint {
	switch {
	case c.TimestampMicros < s.start:
		return hint{to: nextColumn} // the column's other cells are older
	case s.end != 0 && c.TimestampMicros >= s.end:
		return hint{}
	}
	return s.next.push(r, c)
}

// valueRange implements value_range_filter.
type valueRange struct {
	leaf
	byteRange
}

func decodeValueRange(m *btpb.ValueRange, at place) (node, error) {
	var n valueRange
	switch s := m.GetStartValue().(type) {
	case *btpb.ValueRange_StartValueClosed:
		n.start = s.StartValueClosed
	case *btpb.ValueRange_StartValueOpen:
		n.start, n.startOpen = s.StartValueOpen, true
	}
	switch e := m.GetEndValue().(type) {
	case *btpb.ValueRange_EndValueClosed:
		n.end = e.EndValueClosed
	case *btpb.ValueRange_EndValueOpen:
		n.end, n.endOpen = e.EndValueOpen, true
	case nil:
		n.noEnd = true
	}
	return n, n.check(at)
}

func (n valueRange) link(_ *linker, next stage) stage {
	return &valueRangeStage{valueRange: n, next: next}
}

type valueRangeStage struct {
	valueRange
	next stage
}

func (s *valueRangeStage) push(r *run, c *Cell) hint {
	if s.place(c.Value) != 0 {
		return hint{}
	}
	return s.next.push(r, c)
}

// valueBitmask implements value_bitmask_filter: value & mask == mask, for values of the
// mask's length.
type valueBitmask struct {
	leaf
	mask []byte
}

func (n valueBitmask) link(_ *linker, next stage) stage {
	return &valueBitmaskStage{mask: n.mask, next: next}
}

type valueBitmaskStage struct {
	mask []byte
	next stage
}

func (s *valueBitmaskStage) push(r *run, c *Cell) hint {
	if len(c.Value) != len(s.mask) {
		return hint{}
	}
	for i, m := range s.mask {
		if c.Value[i]&m != m {
			return hint{}
		}
	}
	return s.next.push(r, c)
}
