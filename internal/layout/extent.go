package layout

import (
	"fmt"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/rowkey"
)

// own are the extents of an item.
func (l *rules) own(r *rule, vars []attr.Value, item attr.Item) ([]Extent, *Error) {
	if r.exclusive {
		return l.wholeRow(), nil
	}
	var own []Extent
	for _, p := range r.puts {
		e, err := l.extent(r, p, vars, item)
		if err != nil {
			return nil, err
		}
		own = append(own, e)
		if l.sidecar && !p.byTime {
			for _, form := range [2]string{"c/", "r/"} {
				if form == "c/" || l.tags {
					own = append(own, Extent{Family: FamilyTypes, Qualifier: []byte(form + e.Family + ":" + string(e.Qualifier)), Prefix: e.Prefix})
				}
			}
		}
	}
	switch {
	case !l.sidecar:
	case r.isCopy(vars):
		own = append(own, Extent{Family: FamilyTypes, Qualifier: []byte("i/" + r.name + "/"), Prefix: true})
	default:
		own = append(own, Extent{Family: FamilyTypes, Qualifier: []byte("i/" + r.name + "/" + r.identityText(vars))})
		if len(r.versioned) > 0 {
			millis, _ := codec.Integer(vars[r.version])
			own = append(own, Extent{Family: FamilyTypes, Qualifier: []byte("a/"), Prefix: true, MinTime: millis * 1000, MaxTime: (millis + 1) * 1000})
		}
	}
	return own, nil
}

func (l *rules) wholeRow() []Extent {
	own := make([]Extent, len(l.families))
	for i, f := range l.families {
		own[i] = Extent{Family: f.Name, Prefix: true}
	}
	return own
}

// extent are the cells of one put; variables without a value stand for all.
func (l *rules) extent(r *rule, p *put, vars []attr.Value, item attr.Item) (Extent, *Error) {
	qual, whole, bad := p.qual.RenderKnown(nil, vars, -1)
	if bad != nil {
		return Extent{}, l.outside(r, bad, vars, item)
	}
	if p.qual.Ambiguous() && !slices.ContainsFunc(p.qual.Slots(), func(s int) bool { return s >= 0 && vars[s].IsAbsent() }) {
		again := make([]attr.Value, len(vars))
		if !p.qual.Match(qual, again, new(string)) || !agree(again, vars) {
			return Extent{}, l.fault(CodeDelim, r, item, "", fmt.Sprintf("qualifier %q of template %q is taken apart otherwise", qual, p.qual.Src), "values without the literals of the template")
		}
	}
	e := Extent{Family: p.family, Qualifier: qual, Prefix: !whole}
	if p.timeSlot != rowkey.SlotNone && p.byTime && !vars[p.timeSlot].IsAbsent() && !r.isCopy(vars) {
		millis, ok := codec.Integer(vars[p.timeSlot])
		if !ok || millis > codec.MaxTimeMillis-1 {
			return Extent{}, l.fault(CodeDomain, r, item, "", "the time is beyond what a timestamp holds", fmt.Sprintf("at most %d ms", int64(codec.MaxTimeMillis-1)))
		}
		e.MinTime, e.MaxTime = millis*1000, (millis+1)*1000
	}
	return e, nil
}

func (l *rules) locate(key attr.Item) (Location, error) {
	r, vars, err := l.bind(key)
	if err != nil {
		return Location{}, err
	}
	row, err := l.rowKey(r, vars, key)
	if err != nil {
		return Location{}, err
	}
	own, err := l.own(r, vars, key)
	if err != nil {
		return Location{}, err
	}
	return Location{Rule: r.name, Row: row, Own: own, Shared: r.shared, Derived: r.isCopy(vars)}, nil
}

// Collision reports that a row holds another item in the place of the given
// key's: two items of rules that share a column cannot both be there. row is the
// row of key, or the part of it in the key's extents. Errors are *Error:
// E-COLLISION, or those of Items.
func (m *Mapping) Collision(row Row, key attr.Item) error {
	at, err := m.Locate(key)
	if err != nil {
		return err
	}
	part := Row{Key: row.Key, Cells: slices.DeleteFunc(slices.Clone(row.Cells), func(c Cell) bool {
		return !slices.ContainsFunc(at.Own, func(e Extent) bool { return e.Covers(c) })
	})}
	items, err := m.Items(part)
	if err != nil {
		return err
	}
	for _, item := range items {
		other := m.key.KeyOf(item)
		if of, err := m.Locate(other); err != nil || of.Derived {
			continue // it has no cell
		}
		if !attr.EqualItems(other, m.key.KeyOf(key)) {
			return &Error{Code: CodeCollision, Table: m.source, Rule: at.Rule, Key: m.key.KeyOf(key), What: fmt.Sprintf("its cell is taken by item %s", attr.AppendItemJSON(nil, other)), Expected: "one of the two items"}
		}
	}
	return nil
}
