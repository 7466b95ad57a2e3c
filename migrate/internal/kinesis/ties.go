package kinesis

import (
	"slices"

	"github.com/tabletop-emu/tabletop/internal/extsort"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// moment is an item at a time, in microseconds.
type moment struct {
	item   extsort.Hash
	micros int64
}

// link is a change by its images; the zero hash means that the item does not exist.
type link struct{ old, new extsort.Hash }

// group has the changes of an item at one time.
type group struct {
	moment
	file    string // file of the first change of the group
	offset  int64
	line    int
	chain   []link // placed changes, in order; no state occurs twice
	first   uint64 // the tie of chain[0]
	others  []link // changes whose place is unknown
	waiting []*change
	settled uint64 // number of fetches of the item
}

// change is a record that waits for its place.
type change struct {
	link
	source.KinesisRecord
	at source.Position
}

// tieFirst is the tie of the first change of a group: earlier changes get smaller ties, and
// later ones greater ties. tieTop is the tie of the first fetched item.
const (
	tieFirst = 1 << 32
	tieTop   = 1 << 33
)

// ties orders changes of an item with the same time.
type ties struct {
	groups map[moment]*group
	open   int // groups with waiting changes
}

// maxGroups bounds the groups in memory: 10 s of 25,000 changes a second.
const maxGroups = 1 << 18

// add places a change. It returns the changes that have a place now, with their ties; none for a
// repeated one.
func (t *ties) add(g *group, c *change) (placed []*change, tied []uint64) {
	if slices.Contains(g.chain, c.link) || slices.Contains(g.others, c.link) {
		return nil, nil
	}
	before := len(g.waiting)
	g.waiting, g.others = append(g.waiting, c), append(g.others, c.link)
	for again := true; again; {
		again = false
		for i, w := range g.waiting {
			if tie, ok := g.place(w.link); ok {
				placed, tied = append(placed, w), append(tied, tie)
				g.waiting = slices.Delete(g.waiting, i, i+1)
				g.others = slices.DeleteFunc(g.others, func(l link) bool { return l == w.link })
				again = true
				break
			}
		}
	}
	t.recount(before, len(g.waiting))
	return placed, tied
}

// recount updates the number of groups with waiting changes after a group's changes went from
// before to after.
func (t *ties) recount(before, after int) {
	if before == 0 && after > 0 {
		t.open++
	} else if before > 0 && after == 0 {
		t.open--
	}
}

// place adds a change to the chain, if its place is certain.
func (g *group) place(l link) (tie uint64, ok bool) {
	switch n := len(g.chain); {
	case g.settled > 0:
		return 0, false
	case n == 0:
		g.chain, g.first = []link{l}, tieFirst
		return g.first, true
	case l.old == g.chain[n-1].new && !g.has(l.new):
		g.chain = append(g.chain, l)
		return g.first + uint64(n), true
	case l.new == g.chain[0].old && !g.has(l.old):
		g.chain = slices.Insert(g.chain, 0, l)
		g.first--
		return g.first, true
	}
	return 0, false
}

// has reports whether the item had a state in the chain. A change from or to it has two places.
func (g *group) has(state extsort.Hash) bool {
	return state == g.chain[0].old || slices.ContainsFunc(g.chain, func(l link) bool { return l.new == state })
}
