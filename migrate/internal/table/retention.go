package table

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/tabletop-emu/tabletop/internal/layout"
)

// Retention judges which cells the garbage-collection rules of a table's families remove. A
// mapping may lay out items on cells that its own rules remove: they are lost at the next
// run, which no comparison before it would show.
type Retention struct {
	gc  map[string]layout.GC // by family; those with a rule
	now time.Time            // zero: ages are not judged
}

// NewRetention returns the rules of families at the time now; nil judges no ages.
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

// Of returns the rule of a family; the zero GC without one.
func (k Retention) Of(family string) layout.GC { return k.gc[family] }

// Unjudged lists the families whose maxAge nobody can judge without a clock.
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

// judgesAge reports whether a family has a maxAge that can be judged.
func (k Retention) judgesAge() bool {
	for _, gc := range k.gc {
		if gc.MaxAge > 0 {
			return !k.now.IsZero()
		}
	}
	return false
}

// expired reports whether a family's maxAge takes a cell. Source: the guide to
// garbage collection: a cell goes when it is older than the age.
func (k Retention) expired(c layout.Cell) bool {
	gc := k.gc[c.Family]
	return gc.MaxAge > 0 && !k.now.IsZero() && c.Timestamp < k.now.Add(-gc.MaxAge).UnixMicro()
}

// Lost calls yield with each cell that the rules take, and the rule. The cells
// are those of one row in storage order.
func (k Retention) Lost(cells []layout.Cell, yield func(c layout.Cell, rule string)) {
	l := LostCells{k: k}
	for _, c := range cells {
		if rule := l.Rule(c); rule != "" {
			yield(c, rule)
		}
	}
}

// LostCells judges the cells of one row, which come in storage order.
type LostCells struct {
	k       Retention
	last    layout.Cell
	version int // of the last, 0 for the newest
}

// Rule returns the rule that removes the next cell, "" for none. With both rules in a family,
// either is enough.
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

// versionsText and ageText are the texts of one part of a rule.
func versionsText(gc layout.GC) string { return layout.GC{Versions: gc.Versions}.String() }
func ageText(gc layout.GC) string      { return layout.GC{MaxAge: gc.MaxAge}.String() }

// Empty reports whether no family has a rule.
func (k Retention) Empty() bool { return len(k.gc) == 0 }

// NewLostCells judges a row from its first cell on.
func NewLostCells(k Retention) LostCells { return LostCells{k: k} }

// Kept returns the cells that the rules leave, in storage order.
func (k Retention) Kept(cells []layout.Cell) []layout.Cell {
	gone := map[string]bool{}
	id := func(c layout.Cell) string { return fmt.Sprintf("%s:%d:%s", c.Family, c.Timestamp, c.Qualifier) }
	k.Lost(cells, func(c layout.Cell, _ string) { gone[id(c)] = true })
	return slices.DeleteFunc(slices.Clone(cells), func(c layout.Cell) bool { return gone[id(c)] })
}
