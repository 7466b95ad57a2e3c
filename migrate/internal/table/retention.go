package table

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/tabletop-emu/tabletop/internal/layout"
)

// Retention determines the cells that the garbage-collection rules of a table's families
// remove. A mapping may put items into cells that its own rules remove. The next run of
// garbage collection deletes these cells, which an earlier comparison would not show.
type Retention struct {
	gc  map[string]layout.GC // by family; only families with a rule
	now time.Time            // zero: ages are not checked
}

// NewRetention returns the garbage-collection rules of families at the current time, as now
// returns it. If now is nil, ages are not checked.
func NewRetention(families []layout.Family, now func() time.Time) Retention {
	k := Retention{gc: map[string]layout.GC{}}
	for _, f := range families {
		if f.GC != (layout.GC{}) {
			k.gc[f.Name] = f.GC
		}
	}
	if now != nil {
		k.now = now()
	}
	return k
}

// Of returns the rule of a family, or the zero GC if it has none.
func (k Retention) Of(family string) layout.GC { return k.gc[family] }

// Unjudged lists the families whose maxAge cannot be checked because no clock is given.
func (k Retention) Unjudged() []string {
	var names []string
	for name, gc := range k.gc {
		if gc.MaxAge > 0 && k.now.IsZero() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// judgesAge reports whether a family has a maxAge that can be checked.
func (k Retention) judgesAge() bool {
	for _, gc := range k.gc {
		if gc.MaxAge > 0 {
			return !k.now.IsZero()
		}
	}
	return false
}

// expired reports whether a family's maxAge removes a cell: its age exceeds maxAge. Source: the
// guide to garbage collection.
func (k Retention) expired(c layout.Cell) bool {
	gc := k.gc[c.Family]
	return gc.MaxAge > 0 && !k.now.IsZero() && c.Timestamp < k.now.Add(-gc.MaxAge).UnixMicro()
}

// Lost calls yield with each cell that the rules remove, and with the responsible rule.
// The cells are those of one row in storage order.
func (k Retention) Lost(cells []layout.Cell, yield func(c layout.Cell, rule string)) {
	l := LostCells{k: k}
	for _, c := range cells {
		if rule := l.Rule(c); rule != "" {
			yield(c, rule)
		}
	}
}

// LostCells finds the cells of one row that garbage collection removes. The cells must
// come in storage order.
type LostCells struct {
	k       Retention
	last    layout.Cell
	version int // of the last cell, 0 for the newest
}

// Rule returns the rule that removes the next cell, or "" if the cell is kept. If a
// family has both rules, each of them removes cells.
func (l *LostCells) Rule(c layout.Cell) string {
	if l.last.Family == c.Family && bytes.Equal(l.last.Qualifier, c.Qualifier) {
		l.version++
	} else {
		l.version = 0
	}
	l.last = c
	gc, ok := l.k.gc[c.Family]
	switch {
	case !ok:
	case gc.Versions > 0 && l.version >= gc.Versions:
		return versionsText(gc)
	case l.k.expired(c):
		return ageText(gc)
	}
	return ""
}

// versionsText and ageText format one part of a rule.
func versionsText(gc layout.GC) string { return layout.GC{Versions: gc.Versions}.String() }
func ageText(gc layout.GC) string      { return layout.GC{MaxAge: gc.MaxAge}.String() }

// Empty reports whether all families lack a rule.
func (k Retention) Empty() bool { return len(k.gc) == 0 }

// NewLostCells returns a LostCells for a new row.
func NewLostCells(k Retention) LostCells { return LostCells{k: k} }

// Kept returns the cells that the rules keep, in storage order.
func (k Retention) Kept(cells []layout.Cell) []layout.Cell {
	gone := map[string]bool{}
	id := func(c layout.Cell) string { return fmt.Sprintf("%s:%d:%s", c.Family, c.Timestamp, c.Qualifier) }
	k.Lost(cells, func(c layout.Cell, _ string) { gone[id(c)] = true })
	return slices.DeleteFunc(slices.Clone(cells), func(c layout.Cell) bool { return gone[id(c)] })
}
