package layout

import (
	"maps"
	"slices"
	"strconv"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
)

// Loss describes how an attribute of an item changes when the item is read back.
type Loss struct {
	Attribute string
	What      string // LossTypes, LossEmpty, LossPrecision or LossNull
}

// loses reports whether reading can change items of the rule.
func (r *rule) loses() bool {
	return r.accepted[mapfile.LossTypes] || r.accepted[mapfile.LossEmpty] || r.accepted[mapfile.LossPrecision] || r.accepted[mapfile.LossNull]
}

// Returned returns the item that would be read back from the cells of Place, and the losses that
// the mapping file accepts for it. It omits any other change, which would be a fault and not a
// loss. The values are shared with item. A layout of another tool accepts every loss.
func (m *Mapping) Returned(item attr.Item, placed lens.Placed) (attr.Item, []Loss) {
	if l, ok := m.layout.(*googleUtility); ok {
		return l.returned(item, placed)
	}
	l, r := m.ruleNamed(placed.Rule)
	if r == nil || !r.loses() {
		return item, nil
	}
	key := item
	if placed.Derived { // it equals the highest version, except for the key
		_, vars, bad := l.bind(item)
		if bad != nil {
			return item, nil
		}
		if _, key = l.renumbered(r, vars, 1); key == nil {
			return item, nil
		}
		version := maps.Clone(item)
		maps.Copy(version, key)
		var err error
		if placed, err = m.Place(version, 0); err != nil {
			return item, nil // the fault is reported for the version
		}
	}
	back, err := m.Item(Row{Key: placed.Row, Cells: placed.Cells}, key)
	if err != nil || back == nil {
		return item, nil
	}
	var losses []Loss
	returned := item
	for _, name := range slices.Sorted(maps.Keys(item)) {
		v, ok := back[name]
		what := lossOf(item[name], v)
		if m.key.IsKey(name) || what == "" || !r.accepted[what] {
			continue
		}
		if len(losses) == 0 {
			returned = maps.Clone(item)
		}
		if returned[name] = v; !ok {
			delete(returned, name)
		}
		losses = append(losses, Loss{name, what})
	}
	return returned, losses
}

// lossOf returns the loss that changes was to is; "" if they are equal, or if no loss explains
// the change.
func lossOf(was, is attr.Value) string {
	switch {
	case is.IsAbsent():
		if (was.Type == attr.M || was.Type == attr.L) && len(was.Map)+len(was.List) == 0 {
			return mapfile.LossEmpty
		}
		if was.Type == attr.NULL {
			return mapfile.LossNull
		}
		return ""
	case was.Type != is.Type:
		return mapfile.LossTypes
	case attr.Equal(was, is):
		return ""
	case was.Type == attr.N:
		a, errA := strconv.ParseFloat(was.Str, 64)
		b, errB := strconv.ParseFloat(is.Str, 64)
		if errA == nil && errB == nil && a == b {
			return mapfile.LossPrecision
		}
		return ""
	case was.Type == attr.M && len(was.Map) == len(is.Map):
		for k, v := range was.Map {
			if w := is.Map[k]; w.IsAbsent() || !attr.Equal(v, w) && lossOf(v, w) != mapfile.LossTypes {
				return ""
			}
		}
		return mapfile.LossTypes
	case was.Type == attr.L && len(was.List) == len(is.List):
		for i, v := range was.List {
			if w := is.List[i]; !attr.Equal(v, w) && lossOf(v, w) != mapfile.LossTypes {
				return ""
			}
		}
		return mapfile.LossTypes
	}
	return ""
}
