package layout

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/tabletop-emu/tabletop/cells"
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/rowkey"
)

// candidate is the part of a plan for one rule: the read of its items that satisfy a
// condition.
type candidate struct {
	r     *rule
	vars  []attr.Value
	text  lens.Interval // of the sort key's text; only for type S
	spans []Span        // one per shard
	order lens.Order
	point bool // a single row
}

func (l *rules) planQuery(c attr.KeyRange) (lens.Plan, error) {
	if err := lens.CheckRange(c, l.table, l.key); err != nil {
		return lens.Plan{}, err
	}
	var found []candidate
	for _, r := range l.rules {
		x := candidate{r: r, vars: make([]attr.Value, rowkey.FirstCapture+len(r.captures))}
		if l.candidate(&x, c) {
			found = append(found, x)
		}
	}
	if len(found) == 0 {
		return lens.Plan{}, nil
	}
	plan := lens.Plan{Order: orderOf(found), Extents: l.extentsOf(found, c)}
	for _, x := range found {
		plan.Spans = append(plan.Spans, x.spans...)
	}
	plan.Spans = lens.MergeSpans(plan.Spans)
	return plan, nil
}

// candidate fills in the plan for the items of rule x.r that satisfy c; false if none can.
func (l *rules) candidate(x *candidate, c attr.KeyRange) bool {
	r := x.r
	x.vars[rowkey.SlotHash] = c.Hash
	if c.Op == attr.RangeEqual {
		x.vars[rowkey.SlotRange] = c.A
	}
	if c.Hash.Str == "" || !r.derive(x.vars) {
		return false
	}
	if r.keys == 2 {
		if v := x.vars[rowkey.SlotRange]; !v.IsAbsent() && !c.Matches(v) {
			return false
		}
		if l.key.Range.Type == attr.S {
			if x.text = r.sortTexts(c); x.text.Empty() {
				return false
			}
		}
	}
	salt := r.unknownSalt(x.vars)
	if salt == nil {
		return l.span(x, c, -1)
	}
	for shard := range salt.Enc.Shards {
		l.span(x, c, shard)
	}
	if x.point = false; salt.Enc.Shards > 1 {
		switch x.order {
		case lens.SameOrder:
			x.order = lens.MergeOrder
		case lens.ReversedOrder:
			x.order = lens.MergeReversedOrder
		case lens.MergeOrder, lens.MergeReversedOrder, lens.SortOrder:
		}
	}
	return len(x.spans) > 0
}

// sortTexts returns the interval of the rule's sort keys, of type S, that satisfy c.
func (r *rule) sortTexts(c attr.KeyRange) lens.Interval {
	texts := lens.Bounds(c, func(v attr.Value) ([]byte, bool) { return []byte(v.Str), true })
	if t := r.when[rowkey.SlotRange]; t != nil {
		prefix, _ := t.LiteralEnds(nil)
		texts = texts.Intersect(lens.Interval{Lo: prefix, Hi: cells.PrefixEnd(prefix)})
	}
	return texts
}

// unknownSalt returns the salt of the row key whose variable has no value, or nil.
func (r *rule) unknownSalt(vars []attr.Value) *rowkey.Part {
	for _, t := range r.row {
		for i := range t.Parts {
			if t.Parts[i].UnknownSalt(vars) {
				return &t.Parts[i]
			}
		}
	}
	return nil
}

// span adds the rows that can hold items of a candidate. If shard is not negative, it stands for
// the salt whose variable is unknown. span returns false if no row can hold such an item.
func (l *rules) span(x *candidate, c attr.KeyRange, shard int) bool {
	r := x.r
	var key []byte
	for i, t := range r.row {
		last := i == len(r.row)-1
		seg, whole, bad := t.RenderKnown(nil, x.vars, shard)
		if bad != nil {
			return false // no item of the rule has such a key
		}
		if i > 0 {
			key = append(key, l.joiner.Delimiter()...)
		}
		open := last && !r.closed
		key = l.joiner.AppendSegment(key, seg, open)
		if whole {
			continue
		}
		x.order = lens.SortOrder
		bounds := lens.Interval{}
		if p := t.Unknown(x.vars, shard); p == &t.Parts[len(t.Parts)-1] {
			bounds, x.order = l.textBounds(x, c, p)
		}
		span := l.bounded(key, bounds, open, widthAt(r.widths, i)-len(seg))
		if span.End != nil && bytes.Compare(span.Start, span.End) >= 0 {
			return false
		}
		x.spans = append(x.spans, span)
		return true
	}
	if len(key) == 0 || len(key) > lens.MaxRowKeyBytes {
		return false
	}
	x.point, x.order = true, lens.SameOrder
	x.spans = append(x.spans, Span{Start: key, End: append(bytes.Clone(key), 0)})
	return true
}

func widthAt(widths []int, i int) int {
	if i < len(widths) {
		return widths[i]
	}
	return 0
}

// textBounds returns the bounds that the condition c on the sort key sets for the text of p, a
// reference in a row key or qualifier, and the order of items that are sorted by this text.
func (l *rules) textBounds(x *candidate, c attr.KeyRange, p *rowkey.Part) (lens.Interval, lens.Order) {
	switch {
	case p.Slot == rowkey.SlotRange && p.Enc.Prefix != "":
		prefix := []byte(p.Enc.Prefix)
		text := lens.Bounds(c, func(v attr.Value) ([]byte, bool) { return []byte(v.Str), true })
		if text = text.Intersect(lens.Interval{Lo: prefix, Hi: cells.PrefixEnd(prefix)}); text.Empty() {
			return lens.Interval{Lo: []byte{0}, Hi: []byte{0}}, lens.SameOrder
		}
		return text.Within(prefix), lens.SameOrder
	case p.Slot == rowkey.SlotRange && p.Enc.Order == rowkey.SameOrder:
		return lens.Bounds(c, func(v attr.Value) ([]byte, bool) {
			if p.Enc.In == attr.S { // other such encoders write the text unchanged
				return []byte(v.Str), true
			}
			return p.Enc.EncodeKey(nil, v)
		}), lens.SameOrder
	case p.Slot == rowkey.SlotRange && p.Enc.Order == rowkey.ReversedOrder:
		return lens.Bounds(lens.Reversed(c), func(v attr.Value) ([]byte, bool) { return p.Enc.EncodeKey(nil, v) }), lens.ReversedOrder
	case p.Slot == rowkey.SlotRange || p.Slot < rowkey.FirstCapture:
		return lens.Interval{}, lens.SortOrder
	}
	text, ok := l.captureBounds(x, p.Slot)
	if !ok || x.r.captures[p.Slot-rowkey.FirstCapture].enc.Name != p.Enc.Name {
		return lens.Interval{}, lens.SortOrder
	}
	return text, lens.SameOrder
}

// captureBounds returns the bounds of the text of a capture if it ends the sort key, after a
// literal or nothing. Otherwise it returns false.
func (l *rules) captureBounds(x *candidate, slot int) (lens.Interval, bool) {
	t := x.r.when[rowkey.SlotRange]
	if t == nil || l.key.Range.Type != attr.S || len(t.Parts) > 2 || t.Parts[len(t.Parts)-1].Slot != slot || t.Parts[len(t.Parts)-1].Lit != nil {
		return lens.Interval{}, false
	}
	if len(t.Parts) == 2 && t.Parts[0].Lit == nil {
		return lens.Interval{}, false
	}
	prefix, _ := t.LiteralEnds(nil)
	return x.text.Within(prefix), true
}

// bounded returns the span of the keys that continue base with a text of the interval. width
// is the text's width if the joiner fixes it.
func (l *rules) bounded(base []byte, v lens.Interval, open bool, width int) Span {
	s := Span{Start: l.joiner.AppendSegment(bytes.Clone(base), v.Lo, open), End: cells.PrefixEnd(base)}
	if v.Hi != nil {
		hi := v.Hi
		switch k := l.joiner.DelimOffence(hi); {
		case l.joiner.Kind == rowkey.JoinPlain && !open && k >= 0:
			// Smaller texts have no such byte: they are hi[:k] or below it.
			s.End = cells.PrefixEnd(append(append(bytes.Clone(base), hi[:k]...), l.joiner.Delim))
		case l.joiner.Kind == rowkey.JoinFixed && !open && len(hi) > width:
			s.End = cells.PrefixEnd(append(bytes.Clone(base), hi[:width]...))
		default:
			s.End = l.joiner.AppendSegment(bytes.Clone(base), hi, open)
		}
	}
	return lens.Clamp(s)
}

// orderOf returns the order of the union of several rules' items.
func orderOf(found []candidate) lens.Order {
	same := func(f func(a, b candidate) bool) bool {
		return !slices.ContainsFunc(found[1:], func(x candidate) bool { return !f(found[0], x) })
	}
	sameRow := func(a, b candidate) bool {
		return a.point && b.point && bytes.Equal(a.spans[0].Start, b.spans[0].Start)
	}
	sameTemplate := func(a, b candidate) bool {
		return a.order == b.order && a.r.exclusive && b.r.exclusive &&
			slices.EqualFunc(a.r.row, b.r.row, func(x, y *rowkey.Template) bool { return x.Src == y.Src && !x.UsesCapture() })
	}
	switch {
	case len(found) == 1:
		return found[0].order
	case same(sameRow):
		return lens.SameOrder
	case same(sameTemplate):
		return found[0].order
	}
	for i, x := range found {
		if x.order != lens.SameOrder {
			return lens.SortOrder
		}
		for _, y := range found[:i] {
			if !sameRow(x, y) && lens.Overlap(x.spans[0], y.spans[0]) {
				return lens.SortOrder
			}
		}
	}
	return lens.MergeOrder
}

// extentsOf limits the read of shared rows to the cells that can match; nil means whole rows.
func (l *rules) extentsOf(found []candidate, c attr.KeyRange) []lens.Extent {
	if c.Op == attr.NoRange || slices.ContainsFunc(found, func(x candidate) bool { return !x.point || x.r.exclusive }) {
		return nil
	}
	var all []lens.Extent
	add := func(e lens.Extent) {
		if !slices.ContainsFunc(all, func(o lens.Extent) bool { return fmt.Sprint(o) == fmt.Sprint(e) }) {
			all = append(all, e)
		}
	}
	for _, x := range found {
		for _, p := range x.r.puts {
			e, err := l.extent(x.r, p, x.vars, nil)
			if err != nil {
				continue // no item of the rule has such a key
			}
			if next := p.qual.Unknown(x.vars, -1); next != nil && next.Slot >= rowkey.FirstCapture && x.r.captures[next.Slot-rowkey.FirstCapture].enc.Name == next.Enc.Name {
				if text, ok := l.captureBounds(&x, next.Slot); ok {
					e.Qualifier = append(e.Qualifier, text.Common()...)
				}
			}
			if p.byTime && x.vars[p.timeSlot].IsAbsent() {
				e.MinTime, e.MaxTime = l.timeBounds(&x, p.timeSlot)
			}
			add(e)
			if x.r.sidecar && !p.byTime {
				for _, form := range [2]string{"c/", "r/"} {
					add(lens.Extent{Family: lens.FamilyTypes, Qualifier: []byte(form + e.Family + ":" + string(e.Qualifier)), Prefix: e.Prefix})
				}
			}
		}
		if x.r.sidecar {
			add(lens.Extent{Family: lens.FamilyTypes, Qualifier: []byte("i/" + x.r.name + "/"), Prefix: true})
		}
	}
	return all
}

// timeBounds returns the bounds of the timestamps of a candidate's cells, in microseconds:
// minMicros inclusive, maxMicros exclusive. 0 means no bound. slot is the capture that is the
// timestamp.
func (l *rules) timeBounds(x *candidate, slot int) (minMicros, maxMicros int64) {
	e := x.r.captures[slot-rowkey.FirstCapture].enc
	text, ok := l.captureBounds(x, slot)
	if !ok || e.Width == 0 {
		return 0, 0
	}
	if format := codec.TimeFormats[e.Name]; format.Layout != "" {
		if from, ok := format.From(text.Lo); ok {
			minMicros = from * 1000
		}
		if to, ok := format.From(text.Hi); ok && text.Hi != nil && to < codec.MaxTimeMillis-1 {
			maxMicros = (to + 1) * 1000
		}
		return minMicros, maxMicros
	}
	least := digitsNear(text.Lo, e.Width)
	most := bytes.Repeat([]byte{'9'}, e.Width)
	if text.Hi != nil {
		most = digitsNear(text.Hi, e.Width)
	}
	a, okA := e.Decode(least)
	b, okB := e.Decode(most)
	from, isA := codec.Integer(a)
	to, isB := codec.Integer(b)
	if e.Order == rowkey.ReversedOrder {
		from, to, okA, okB, isA, isB = to, from, okB, okA, isB, isA
	}
	if okA && isA && from > 0 && from < codec.MaxTimeMillis {
		minMicros = from * 1000
	}
	if okB && isB && to >= 0 && to < codec.MaxTimeMillis-1 {
		maxMicros = (to + 1) * 1000
	}
	return minMicros, maxMicros
}

// digitsNear returns a text of w digits next to b: no other such text is strictly between
// them.
func digitsNear(b []byte, w int) []byte {
	out := make([]byte, 0, w)
	for _, c := range b {
		if len(out) == w || c < '0' {
			break
		}
		if c > '9' {
			return append(out, bytes.Repeat([]byte{'9'}, w-len(out))...)
		}
		out = append(out, c)
	}
	return append(out, bytes.Repeat([]byte{'0'}, w-len(out))...)
}

func (l *rules) planScan() lens.Plan { return lens.Plan{Spans: []Span{{}}} }

func (l *rules) columnFamilies() []Family { return l.families }
