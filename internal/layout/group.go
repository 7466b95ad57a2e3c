package layout

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// Groups assigns the cells of a shared row to groups, so that a reader need not hold the whole row.
// All cells of an item are in one group. Passing each group as a row to Mapping.Items yields the
// items of the row.
type Groups struct {
	l        *rules
	decoders []*decoder // one per rule that can have items in the row
}

// Groups returns the grouping of the cells of a row. It returns nil if the row must be read as a
// whole: because it has only one item, or because an item depends on its neighbors (rule.latest) or
// on a cell that many items share (hash(f), rule.tag).
func (m *Mapping) Groups(row []byte) *Groups {
	l, ok := m.layout.(*rules)
	if !ok {
		return nil
	}
	g := &Groups{l: l}
	many := false
	for _, r := range l.rules {
		if !r.exclusive && len(r.stored) > 0 {
			return nil
		}
		vars, ok := l.parseRow(r, Row{Key: row})
		if !ok {
			continue
		}
		mixed := slices.ContainsFunc(r.puts, func(p *put) bool { return p.byTime != r.puts[0].byTime })
		if r.exclusive || r.latest || mixed || r.shared && len(r.identity) > 0 {
			return nil
		}
		many = many || len(r.identity) > 0
		g.decoders = append(g.decoders, &decoder{l: l, r: r, rowVars: vars})
	}
	if !many {
		return nil
	}
	return g
}

// Names of groups, or their beginnings. The name of every other group is the key of its item, in
// JSON.
const (
	groupOfOne   = ""  // the item of a rule with one item in the row
	groupOfTime  = "t" // followed by the timestamp, which identifies the item
	groupOfOther = "o" // followed by the column, which belongs to no item
)

// Of returns the group of a cell of the row. It does not use the value of the cell.
func (g *Groups) Of(c Cell) string {
	column := c
	if c.Family == lens.FamilyTypes {
		qualifier := string(c.Qualifier)
		for _, d := range g.decoders {
			if rest, ok := strings.CutPrefix(qualifier, "i/"+d.r.name+"/"); ok {
				if group, ok := d.groupOfPresence(rest); ok {
					return group
				}
			}
		}
		switch form, of, _ := strings.Cut(qualifier, "/"); form {
		case "a":
			return groupOfTime + strconv.FormatInt(c.Timestamp, 10)
		case "c", "r":
			family, name, _ := strings.Cut(of, ":")
			column.Family, column.Qualifier = family, []byte(name)
		}
	}
	for _, d := range g.decoders {
		for _, put := range d.r.columns {
			if put.family != column.Family {
				continue
			}
			if group, ok := d.groupOfPut(put, column); ok {
				return group
			}
		}
	}
	return groupOfOther + c.Family + ":" + string(c.Qualifier)
}

// groupOfPut returns the group of a cell that a put of the rule wrote; false for other cells.
func (d *decoder) groupOfPut(put *put, c Cell) (string, bool) {
	vars, special := slices.Clone(d.rowVars), ""
	if !put.takes(d.l, c.Qualifier, vars, &special) {
		return "", false
	}
	switch {
	case len(d.r.identity) == 0:
		return groupOfOne, true
	case put.byTime:
		return groupOfTime + strconv.FormatInt(c.Timestamp, 10), true
	}
	return d.groupOf(vars)
}

// groupOfPresence returns the group of an item from the captures in the qualifier of its presence
// cell; false if the rule does not write such captures.
func (d *decoder) groupOfPresence(captures string) (string, bool) {
	vars := slices.Clone(d.rowVars)
	if !d.present(captures, vars) {
		return "", false
	}
	if put := d.r.puts[0]; put.byTime {
		millis, ok := codec.Integer(vars[put.timeSlot])
		return groupOfTime + strconv.FormatInt(millis*1000, 10), ok
	}
	if len(d.r.identity) == 0 {
		return groupOfOne, true
	}
	return d.groupOf(vars)
}

// groupOf returns the group of the item with the given variables; false if the rule has no such
// item.
func (d *decoder) groupOf(vars []attr.Value) (string, bool) {
	if !d.r.derive(vars) {
		return "", false
	}
	key, ok := d.l.keyItem(d.r, vars)
	return string(attr.AppendItemJSON(nil, key)), ok
}
