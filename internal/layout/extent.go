package layout

import (
	"fmt"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/rowkey"
)

// own returns the extents of an item: the whole row if the rule is exclusive, else those of its
// puts and of its sidecar cells.
func (l *rules) own(r *rule, vars []attr.Value, item attr.Item) ([]lens.Extent, *maperr.Error) {
	if r.exclusive {
		return l.wholeRow(), nil
	}
	var own []lens.Extent
	for _, p := range r.puts {
		e, err := l.extent(r, p, vars, item)
		if err != nil {
			return nil, err
		}
		own = append(own, e)
		if r.sidecar && !p.byTime {
			for _, form := range [2]string{"c/", "r/"} {
				if form == "c/" || l.tags {
					own = append(own, lens.Extent{Family: lens.FamilyTypes, Qualifier: []byte(form + e.Family + ":" + string(e.Qualifier)), Prefix: e.Prefix})
				}
			}
		}
	}
	switch {
	case !r.sidecar:
	case r.isCopy(vars):
		own = append(own, lens.Extent{Family: lens.FamilyTypes, Qualifier: []byte("i/" + r.name + "/"), Prefix: true})
	default:
		own = append(own, lens.Extent{Family: lens.FamilyTypes, Qualifier: []byte("i/" + r.name + "/" + r.identityText(vars))})
		if len(r.versioned) > 0 {
			millis, _ := codec.Integer(vars[r.version])
			own = append(own, lens.Extent{Family: lens.FamilyTypes, Qualifier: []byte("a/"), Prefix: true, MinTime: millis * 1000, MaxTime: (millis + 1) * 1000})
		}
	}
	return own, nil
}

func (l *rules) wholeRow() []lens.Extent {
	own := make([]lens.Extent, len(l.families))
	for i, f := range l.families {
		own[i] = lens.Extent{Family: f.Name, Prefix: true}
	}
	return own
}

// extent returns the extent of the cells that put p writes. A variable without a value matches
// all values.
func (l *rules) extent(r *rule, p *put, vars []attr.Value, item attr.Item) (lens.Extent, *maperr.Error) {
	qual, whole, bad := p.qual.RenderKnown(nil, vars, -1)
	if bad != nil {
		return lens.Extent{}, l.outside(r, bad, vars, item)
	}
	if p.qual.Ambiguous() && !slices.ContainsFunc(p.qual.Slots(), func(s int) bool { return s >= 0 && vars[s].IsAbsent() }) {
		again := make([]attr.Value, len(vars))
		if !p.qual.Match(qual, again, new(string)) || !agree(again, vars) {
			return lens.Extent{}, l.fault(maperr.CodeDelim, r, item, "", fmt.Sprintf("qualifier %q of template %q would be split differently", qual, p.qual.Src), "values without the literals of the template")
		}
	}
	e := lens.Extent{Family: p.family, Qualifier: qual, Prefix: !whole}
	if p.timeSlot != rowkey.SlotNone && p.byTime && !vars[p.timeSlot].IsAbsent() && !r.isCopy(vars) {
		millis, ok := codec.Integer(vars[p.timeSlot])
		if !ok || millis > codec.MaxTimeMillis-1 {
			return lens.Extent{}, l.fault(maperr.CodeDomain, r, item, "", "the time is beyond the range of a timestamp", fmt.Sprintf("at most %d ms", int64(codec.MaxTimeMillis-1)))
		}
		e.MinTime, e.MaxTime = millis*1000, (millis+1)*1000
	}
	return e, nil
}

func (l *rules) locate(key attr.Item) (lens.Location, error) {
	r, vars, err := l.bind(key)
	if err != nil {
		return lens.Location{}, err
	}
	row, err := l.rowKey(r, vars, key)
	if err != nil {
		return lens.Location{}, err
	}
	own, err := l.own(r, vars, key)
	if err != nil {
		return lens.Location{}, err
	}
	return lens.Location{Rule: r.name, Row: row, Own: own, Shared: r.shared, Derived: r.isCopy(vars)}, nil
}

// Collision returns an error if the place of key in a row holds another item, because two items
// of rules that share a column cannot both exist. row is the row of key, or the part of it in the
// key's extents. Errors are *maperr.Error: E-COLLISION, or those of Locate and Items.
func (m *Mapping) Collision(row Row, key attr.Item) error {
	at, err := m.Locate(key)
	if err != nil {
		return err
	}
	part := Row{Key: row.Key, Cells: slices.DeleteFunc(slices.Clone(row.Cells), func(c Cell) bool {
		return !slices.ContainsFunc(at.Own, func(e lens.Extent) bool { return e.Covers(c) })
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
			return &maperr.Error{Code: maperr.CodeCollision, Table: m.source, Rule: at.Rule, Key: m.key.KeyOf(key), What: fmt.Sprintf("its cell holds item %s", attr.AppendItemJSON(nil, other)), Expected: "one of the two items"}
		}
	}
	return nil
}
