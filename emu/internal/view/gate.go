package view

import (
	"bytes"
	"sort"

	"github.com/tabletop-emu/tabletop/emu/internal/filter"
	"github.com/tabletop-emu/tabletop/engine"
)

// Gate is a filter source that passes only those cells of another source that are in a view. It is
// not safe for concurrent use.
type Gate struct {
	src   filter.Source
	table []engine.Family
	held  []heldFamily // in the order of the table's families

	// The first span of columns that does not end before the source's position.
	family, span int
	done         bool // the row has no further cells in the view
	seen         bool // the row has a cell in the view
}

// heldFamily is a family of the table that has qualifiers in the view.
type heldFamily struct {
	name    string
	ordinal uint16
	columns []filter.Span
}

// Over returns a gate over the cells of a table. families are the table's families in its order. It
// returns nil if no column of the table is in the view.
func (v *View) Over(src filter.Source, families []engine.Family) *Gate {
	g := &Gate{src: src, table: families}
	for i := range families {
		if c := v.columns[families[i].Name]; len(c.Spans) > 0 {
			g.held = append(g.held, heldFamily{families[i].Name, families[i].Ordinal, c.Spans})
		}
	}
	if len(g.held) == 0 {
		return nil
	}
	return g
}

// BeginRow resets the gate after its source has moved to another row.
func (g *Gate) BeginRow() {
	g.seen = false
	g.restart()
}

func (g *Gate) restart() { g.family, g.span, g.done = 0, 0, false }

// Seen reports whether NextCell has returned a cell of the current row.
func (g *Gate) Seen() bool { return g.seen }

// NextCell implements filter.Source.
func (g *Gate) NextCell() bool {
	for !g.done && g.src.NextCell() {
		c := g.src.Cell()
		if g.reach(c.Ordinal, c.Qualifier) {
			g.seen = true
			return true
		}
		g.jump()
	}
	g.done = true
	return false
}

// Cell implements filter.Source.
func (g *Gate) Cell() *filter.Cell { return g.src.Cell() }

// SkipColumn implements filter.Source.
func (g *Gate) SkipColumn() { g.src.SkipColumn() }

// SkipFamily implements filter.Source.
func (g *Gate) SkipFamily() { g.src.SkipFamily() }

// SeekColumn implements filter.Source. It seeks directly to a column in the
// view.
func (g *Gate) SeekColumn(family string, qualifier []byte) {
	for i := range g.table {
		if g.table[i].Name != family {
			continue
		}
		if g.reach(g.table[i].Ordinal, qualifier) {
			g.src.SeekColumn(family, qualifier)
		} else {
			g.jump()
		}
		return
	}
	g.done = true // unknown families sort after all existing ones
}

// Rewind implements filter.Source.
func (g *Gate) Rewind() {
	g.restart()
	g.src.Rewind()
}

// reach advances to the first span that does not end before a column, and
// reports whether that span contains the column. It never moves back.
func (g *Gate) reach(ordinal uint16, qualifier []byte) bool {
	for g.family < len(g.held) && g.held[g.family].ordinal < ordinal {
		g.family, g.span = g.family+1, 0
	}
	if g.family == len(g.held) || g.held[g.family].ordinal > ordinal {
		return false
	}
	columns := g.held[g.family].columns
	if endsBefore(columns[g.span], qualifier) { // seldom: most cells are in the span of their predecessor
		g.span++
		if g.span += search(columns[g.span:], qualifier); g.span == len(columns) {
			g.family, g.span = g.family+1, 0
			return false
		}
	}
	return bytes.Compare(qualifier, columns[g.span].Start) >= 0
}

// jump seeks the source to the start of the span that reach found.
func (g *Gate) jump() {
	if g.family == len(g.held) {
		g.done = true
		return
	}
	f := &g.held[g.family]
	g.src.SeekColumn(f.name, f.columns[g.span].Start)
}

// holds reports whether one of spans, which are sorted and disjoint, contains
// key.
func holds(spans []filter.Span, key []byte) bool {
	i := search(spans, key)
	return i < len(spans) && bytes.Compare(key, spans[i].Start) >= 0
}

// search returns the index of the first span that does not end before key, or
// len(spans).
func search(spans []filter.Span, key []byte) int {
	return sort.Search(len(spans), func(i int) bool { return !endsBefore(spans[i], key) })
}

// endsBefore reports whether all of a span lies before key.
func endsBefore(s filter.Span, key []byte) bool {
	return len(s.End) > 0 && bytes.Compare(key, s.End) >= 0
}
