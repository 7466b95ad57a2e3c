package layout

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/tabletop-emu/tabletop/cells"
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/rowkey"
)

// Slice represents the items of one rule in a shared row, so that they can be read in portions.
// Each item has a position: bytes that sort like the cells of the items in the row, by qualifier or
// by timestamp. The items between two positions are therefore in a few ranges of cells.
type Slice struct {
	l    *rules
	r    *rule
	vars []attr.Value // from the row key
	// one reports that the rule has one item in the row, without a position.
	one bool
	// core is the part of the qualifiers after their known beginnings: its text is the
	// position. nil: the timestamp is the position.
	core  []rowkey.Part
	width int // of the text; 0: variable
	// order is the order of the positions relative to the sort key.
	order lens.Order
	// own holds the ranges of all items; begins[i] is the part of the qualifiers in own[i] before
	// the position. The ranges of rest are neither counted nor bounded.
	own    []lens.CellRange
	begins [][]byte
	rest   []lens.CellRange
	// absences reports that cells a/ of the sidecar have the timestamps of items.
	absences bool
}

// SharesRows reports whether a row can hold several items.
func (m *Mapping) SharesRows() bool {
	l, ok := m.layout.(*rules)
	return ok && slices.ContainsFunc(l.rules, func(r *rule) bool { return !r.exclusive })
}

// Slices returns the slices in which the items of a row can be read, one per rule. It returns
// nothing if all items must be read at once, because the row has only one item or qualifiers do not
// sort like the sort keys.
func (m *Mapping) Slices(row []byte) []*Slice {
	l, ok := m.layout.(*rules)
	if !ok {
		return nil
	}
	var all []*Slice
	for _, r := range l.rules {
		switch {
		case r.exclusive:
			continue // its rows contain no other item
		case len(r.stored) > 0:
			return nil // only a cell determines its item
		}
		vars, ok := l.parseRow(r, Row{Key: row})
		if !ok {
			continue
		}
		s := &Slice{l: l, r: r, vars: vars}
		if !s.compile() {
			return nil
		}
		all = append(all, s)
	}
	if slices.ContainsFunc(all, func(s *Slice) bool {
		return s.one && slices.ContainsFunc(all, func(o *Slice) bool { return !o.one && s.meets(o) })
	}) {
		return nil // the one item would be read with all others
	}
	return all
}

// compile computes the places of the items; false if they cannot be read in parts.
func (s *Slice) compile() bool {
	switch r := s.r; {
	case r.latest || s.vars[rowkey.SlotHash].IsAbsent():
		return false
	case len(r.identity) == 0:
		s.one = true
		own, err := s.l.own(r, s.vars, nil)
		for i, e := range own {
			if !slices.ContainsFunc(own[:i], e.Within) && !slices.ContainsFunc(own[i+1:], func(o lens.Extent) bool { return e.Within(o) && !o.Within(e) }) {
				s.own = append(s.own, e.Cells())
			}
		}
		return err == nil
	case r.puts[0].byTime:
		return s.byTime()
	}
	return s.byQualifier()
}

// meets reports whether a cell can be in ranges of both.
func (s *Slice) meets(o *Slice) bool {
	return slices.ContainsFunc(s.own, func(a lens.CellRange) bool {
		return slices.ContainsFunc(o.own, func(b lens.CellRange) bool { return a.Meets(b) })
	})
}

// add adds the columns of a family whose qualifiers begin with begin. It returns false if they
// overlap with a range of the slice that is not equal.
func (s *Slice) add(family string, begin []byte) bool {
	r := lens.Extent{Family: family, Qualifier: begin, Prefix: true}.Cells()
	for i, o := range s.own {
		if o.Family == family && bytes.Equal(s.begins[i], begin) {
			return true
		}
		if o.Meets(r) {
			return false
		}
	}
	s.own, s.begins = append(s.own, r), append(s.begins, begin)
	return true
}

// byQualifier compiles a slice of a rule whose items have separate columns. It returns false if
// it cannot.
func (s *Slice) byQualifier() bool {
	for i, p := range s.r.puts {
		begin, core, fixedTail, ok := s.split(p)
		if !ok || p.byTime {
			return false
		}
		if i == 0 {
			s.core = core
			s.width = (&rowkey.Template{Parts: core}).Width()
		}
		if !slices.EqualFunc(core, s.core, samePart) || !fixedTail && s.width == 0 || !s.add(p.family, begin) {
			return false
		}
		if !s.r.sidecar {
			continue
		}
		for _, form := range [2]string{"c/", "r/"} {
			if (form == "c/" || s.l.tags) && !s.add(lens.FamilyTypes, append([]byte(form+p.family+":"), begin...)) {
				return false
			}
		}
	}
	if s.r.sidecar {
		begin := []byte("i/" + s.r.name + "/")
		if s.r.writesIdentity(&s.core[0]) && len(s.core) == 1 {
			if !s.add(lens.FamilyTypes, begin) {
				return false
			}
		} else {
			s.rest = append(s.rest, lens.Extent{Family: lens.FamilyTypes, Qualifier: begin, Prefix: true}.Cells())
		}
	}
	_, order := s.texts(attr.KeyRange{Hash: s.vars[rowkey.SlotHash]})
	s.order = order
	return order == lens.SameOrder || order == lens.ReversedOrder
}

// split splits the qualifier of a put: the row key determines begin, core distinguishes the
// items, and noTail reports that core is the end. ok is false if core does not determine the key.
func (s *Slice) split(p *put) (begin []byte, core []rowkey.Part, noTail, ok bool) {
	parts := p.qual.Parts
	first, last := -1, -1
	for i := range parts {
		if q := &parts[i]; q.Lit == nil && q.Slot >= 0 && s.vars[q.Slot].IsAbsent() {
			if q.Enc.Derived {
				return nil, nil, false, false
			}
			if last = i; first < 0 {
				first = i
			}
		}
	}
	if first < 0 {
		return nil, nil, false, false
	}
	begin, _, bad := p.qual.RenderKnown(nil, s.vars, -1)
	if bad != nil || slices.ContainsFunc(parts[:first], func(q rowkey.Part) bool { return q.Lit == nil && q.Slot < 0 }) {
		return nil, nil, false, false
	}
	core = parts[first : last+1]
	known := map[int]bool{}
	for slot, v := range s.vars {
		if !v.IsAbsent() {
			known[slot] = true
		}
	}
	for _, q := range core {
		if q.Lit == nil {
			known[q.Slot] = true
		}
	}
	return begin, core, last+1 == len(parts), s.r.knowsKey(s.r.closure(known))
}

func samePart(a, b rowkey.Part) bool {
	return bytes.Equal(a.Lit, b.Lit) && (a.Lit == nil) == (b.Lit == nil) && a.Slot == b.Slot && (a.Lit != nil || a.Enc.Name == b.Enc.Name)
}

// writesIdentity reports whether qualifiers of the sidecar's cells i/ contain the part
// unchanged.
func (r *rule) writesIdentity(p *rowkey.Part) bool {
	return len(r.identity) == 1 && p.Slot == r.identity[0] && p.Enc.In == attr.S && p.Enc.Order == rowkey.SameOrder && p.Enc.Prefix == "" && r.typeOf(p.Slot) == attr.S
}

// byTime compiles a slice of a rule whose items are versions of the same columns. It returns
// false if it cannot.
func (s *Slice) byTime() bool {
	slot := s.r.puts[0].timeSlot
	for _, p := range s.r.puts {
		e, err := s.l.extent(s.r, p, s.vars, nil)
		if err != nil || !p.byTime || p.timeSlot != slot || e.Prefix {
			return false
		}
		s.own = append(s.own, e.Cells())
	}
	if s.r.sidecar {
		s.rest = append(s.rest, lens.Extent{Family: lens.FamilyTypes, Qualifier: []byte("i/" + s.r.name + "/"), Prefix: true}.Cells())
		s.absences = len(s.r.versioned) > 0
	}
	x := s.candidate(attr.KeyRange{})
	if _, ok := s.l.captureBounds(&x, slot); !ok {
		return false
	}
	// The newest cells come first.
	switch e := s.r.captures[slot-rowkey.FirstCapture].enc; {
	case e.Order == rowkey.ReversedOrder:
		s.order = lens.SameOrder
	case e.Order == rowkey.SameOrder, codec.TimeFormats[e.Name] != codec.TimeFormat{}:
		s.order = lens.ReversedOrder
	default:
		return false
	}
	return true
}

// candidate returns the plan by the slice's rule for a condition on the sort key, without its spans.
func (s *Slice) candidate(c attr.KeyRange) candidate {
	x := candidate{r: s.r, vars: s.vars}
	if s.r.keys == 2 && s.l.key.Range.Type == attr.S {
		x.text = s.r.sortTexts(c)
	}
	return x
}

// texts returns the bounds of the positions of the items that satisfy a condition, and the
// order of positions.
func (s *Slice) texts(c attr.KeyRange) (lens.Interval, lens.Order) {
	x := s.candidate(c)
	if len(s.core) == 1 {
		return s.l.textBounds(&x, c, &s.core[0])
	}
	t := s.r.when[rowkey.SlotRange]
	if t == nil || s.l.key.Range.Type != attr.S {
		return lens.Interval{}, lens.SortOrder
	}
	parts, prefix := t.Parts, []byte(nil)
	if parts[0].Lit != nil {
		parts, prefix = parts[1:], parts[0].Lit
	}
	named := func(p rowkey.Part) rowkey.Part {
		if p.Lit == nil && p.Slot >= rowkey.FirstCapture && s.r.captures[p.Slot-rowkey.FirstCapture].enc.Name != p.Enc.Name {
			p.Slot = rowkey.SlotNone // written differently than in the key
		}
		return p
	}
	if !slices.EqualFunc(parts, s.core, func(a, b rowkey.Part) bool { return samePart(named(a), named(b)) }) {
		return lens.Interval{}, lens.SortOrder
	}
	return x.text.Within(prefix), lens.SameOrder
}

// Hash returns the partition key of the items.
func (s *Slice) Hash() attr.Value { return s.vars[rowkey.SlotHash] }

// Reversed reports whether positions ascend as sort keys descend.
func (s *Slice) Reversed() bool { return s.order == lens.ReversedOrder }

// Single reports whether the slice has at most one item.
func (s *Slice) Single() bool { return s.one }

// Bounds returns a range of positions that includes all items that satisfy a condition, and
// possibly others. A nil before means no bound. ok is false if no item can satisfy the condition.
func (s *Slice) Bounds(c attr.KeyRange) (from, before []byte, ok bool) {
	if !attr.Equal(c.Hash, s.Hash()) {
		return nil, nil, false
	}
	if s.one {
		return nil, nil, s.r.keys == 1 || c.Matches(s.vars[rowkey.SlotRange])
	}
	x := s.candidate(c)
	if s.r.keys == 2 && s.l.key.Range.Type == attr.S && x.text.Empty() {
		return nil, nil, false
	}
	if s.core != nil {
		v, _ := s.texts(c)
		if w := s.width; w > 0 && len(v.Hi) > w {
			v.Hi = cells.PrefixEnd(v.Hi[:w]) // the text after it in a qualifier is unordered
		}
		return v.Lo, v.Hi, !v.Empty()
	}
	least, most := s.l.timeBounds(&x, s.r.puts[0].timeSlot)
	if most != 0 {
		from = timePosition(most - 1)
	}
	if least != 0 {
		before = timePosition(least - 1)
	}
	return from, before, before == nil || bytes.Compare(from, before) < 0
}

// timePosition returns the position of an item from the timestamp of its cells.
func timePosition(micros int64) []byte { return binary.BigEndian.AppendUint64(nil, ^uint64(micros)) }

// positionTime is the inverse of timePosition.
func positionTime(position []byte) int64 { return int64(^binary.BigEndian.Uint64(position)) }

// Counted returns the cell ranges of the items from one position up to another; nil means up to the
// end. The cells of each range are in the order of the items.
func (s *Slice) Counted(from, before []byte) []lens.CellRange {
	ranges := slices.Clone(s.own)
	for i := range ranges {
		r := &ranges[i]
		switch {
		case s.one:
		case s.core == nil:
			r.MinTime, r.MaxTime = timesBetween(from, before)
		default:
			r.From = append(bytes.Clone(s.begins[i]), from...)
			if before != nil {
				r.Before = append(bytes.Clone(s.begins[i]), before...)
			}
		}
	}
	return ranges
}

// timesBetween returns the range of the timestamps of the items from one position up to another,
// exclusive: at least minMicros, less than maxMicros. 0 means no bound.
func timesBetween(from, before []byte) (minMicros, maxMicros int64) {
	if from != nil {
		maxMicros = positionTime(from) + 1
	}
	if before != nil {
		minMicros = positionTime(before) + 1
	}
	return minMicros, maxMicros
}

// Uncounted returns the ranges of the other cells of these items. Cells of other items may be in
// these ranges too.
func (s *Slice) Uncounted(from, before []byte) []lens.CellRange {
	if !s.absences {
		return s.rest
	}
	marks := lens.Extent{Family: lens.FamilyTypes, Qualifier: []byte("a/"), Prefix: true}.Cells()
	marks.MinTime, marks.MaxTime = timesBetween(from, before)
	return append(slices.Clone(s.rest), marks)
}

// At returns the position of the item to which a counted cell belongs. If positions are in
// qualifiers, it returns false for cells outside the counted ranges.
func (s *Slice) At(c Cell) ([]byte, bool) {
	if s.core == nil {
		return timePosition(c.Timestamp), true
	}
	for i, begin := range s.begins {
		text, ok := bytes.CutPrefix(c.Qualifier, begin)
		if !ok || c.Family != s.own[i].Family {
			continue
		}
		if s.width > 0 && len(text) > s.width {
			text = text[:s.width]
		}
		return text, true
	}
	return nil, false
}

// Items returns the items whose positions are in [from, before), in the order of their sort
// keys. row is the part of the slice's row that holds their cells. Errors are those of
// Mapping.Items.
func (s *Slice) Items(row Row, from, before []byte) ([]attr.Item, error) {
	d := &decoder{l: s.l, r: s.r, row: row, rowVars: s.vars, side: lens.Sidecar(row), items: map[string]*partial{}}
	if err := d.run(); err != nil {
		return nil, err
	}
	items := make([]attr.Item, 0, len(d.items))
	for _, p := range d.items {
		if at, ok := s.position(p.vars); ok && bytes.Compare(at, from) >= 0 && (before == nil || bytes.Compare(at, before) < 0) {
			items = append(items, p.item)
		}
	}
	sortByKey(s.l.key, items)
	return items, nil
}

// position returns the position of the item with these variables.
func (s *Slice) position(vars []attr.Value) ([]byte, bool) {
	switch {
	case s.one:
		return nil, true
	case s.core == nil:
		millis, ok := codec.Integer(vars[s.r.puts[0].timeSlot])
		return timePosition(millis * 1000), ok
	}
	text, bad := (&rowkey.Template{Parts: s.core}).Render(nil, vars, "")
	return text, bad == nil
}
