package control

import (
	"bytes"
	"encoding/json"
	"iter"
	"maps"
	"math"
	"net/http"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/btclient"
)

// maxCarried limits the items of a row that are shown with their cells.
const maxCarried = 100

// carriedAttribute is the place of an attribute in the row.
type carriedAttribute struct {
	Name  string `json:"name"`
	Key   bool   `json:"key,omitempty"` // the key of the row contains it
	Cells []int  `json:"cells"`         // indexes in the cells of the row
}

type carriedItem struct {
	Table      string             `json:"table"` // of DynamoDB
	Item       json.RawMessage    `json:"item"`
	Rule       string             `json:"rule,omitempty"` // of the mapping
	Attributes []carriedAttribute `json:"attributes"`
}

// carried returns a row with its items, and the cells of each attribute.
func (s *Server) carried(r *http.Request) (any, error) {
	found, err := s.namedRow(r)
	if err != nil {
		return nil, err
	}
	out := struct {
		Row      row           `json:"row"`
		Items    []carriedItem `json:"items"`
		More     int           `json:"more,omitempty"` // number of items that are not shown
		Problems []string      `json:"problems,omitempty"`
	}{Row: rowOf(*found), Items: []carriedItem{}}
	mappings, err := s.mappingsOver(r)
	if err != nil {
		return nil, err
	}
	for _, m := range mappings {
		items, err := m.Items(*found)
		if err != nil {
			out.Problems = append(out.Problems, err.Error())
			continue
		}
		for _, item := range items {
			if len(out.Items) == maxCarried {
				out.More++
				continue
			}
			carries := carry(m, *found, item)
			carries.Table = m.SourceTable()
			if out.Row.Parts == nil {
				out.Row.Parts = keyParts(m, carries.Rule, *found)
			}
			out.Items = append(out.Items, carries)
		}
	}
	return out, nil
}

// noTime is the time of placed cells that have no specific time. No stored cell has it.
const noTime = math.MaxInt64 / 1000 * 1000

// carry finds the cells of each attribute: the cells that disappear or change when the item is
// laid out without it.
func carry(m *mapping.Mapping, row btclient.Row, item attr.Item) carriedItem {
	out := carriedItem{Item: attr.AppendItemJSON(nil, item), Attributes: []carriedAttribute{}}
	placed, err := m.Place(item, noTime)
	if err != nil {
		placed.Cells = nil // outside of the mapping by now: shown without its cells
	}
	out.Rule = placed.Rule
	for _, name := range slices.Sorted(maps.Keys(item)) {
		a := carriedAttribute{Name: name, Cells: []int{}}
		for _, other := range otherwise(m, item, name, placed.Rule) {
			a.Key = a.Key || !bytes.Equal(other.Key, placed.Key)
			for _, c := range placed.Cells {
				if slices.ContainsFunc(other.Cells, func(o mapping.Cell) bool { return o.Timestamp == c.Timestamp && sameButTime(o, c) }) {
					continue
				}
				at := slices.IndexFunc(row.Cells, func(o mapping.Cell) bool {
					return sameButTime(o, c) && (c.Timestamp == noTime || o.Timestamp == c.Timestamp)
				})
				if at >= 0 {
					a.Cells = append(a.Cells, at)
				}
			}
		}
		slices.Sort(a.Cells)
		a.Cells = slices.Compact(a.Cells)
		out.Attributes = append(out.Attributes, a)
	}
	return out
}

// otherwise lays the item out without an attribute. If the result is not an item of the rule,
// it lays the item out without each entry of a map, or with another value.
func otherwise(m *mapping.Mapping, item attr.Item, name, rule string) []mapping.Placed {
	changed := maps.Clone(item)
	place := func() (mapping.Placed, bool) {
		p, err := m.Place(changed, noTime)
		return p, err == nil && p.Rule == rule
	}
	delete(changed, name)
	if p, ok := place(); ok {
		return []mapping.Placed{p}
	}
	if v := item[name]; v.Type == attr.M {
		var out []mapping.Placed
		for entry := range v.Map {
			rest := maps.Clone(v.Map)
			delete(rest, entry)
			changed[name] = attr.MapOf(rest)
			p, ok := place()
			for other := range others(v.Map[entry]) {
				if ok {
					break
				}
				rest[entry] = other
				p, ok = place()
			}
			if ok {
				out = append(out, p)
			}
		}
		return out
	}
	for other := range others(item[name]) {
		changed[name] = other
		if p, ok := place(); ok {
			return []mapping.Placed{p}
		}
	}
	return nil
}

// others returns values of a scalar with one character changed, the last ones first.
func others(v attr.Value) iter.Seq[attr.Value] {
	return func(yield func(attr.Value) bool) {
		if v.Type != attr.S && v.Type != attr.N && v.Type != attr.B {
			return
		}
		const most = 40 // number of changed characters
		for i := len(v.Str) - 1; i >= max(0, len(v.Str)-most); i-- {
			text := []byte(v.Str)
			switch c := text[i]; {
			case '0' <= c && c < '9', 'a' <= c && c < 'z', 'A' <= c && c < 'Z':
				text[i]++
			case c == '9', c == 'z', c == 'Z':
				text[i]--
			case v.Type == attr.B:
				text[i] ^= 1
			default:
				continue
			}
			if !yield(attr.Value{Type: v.Type, Str: string(text)}) {
				return
			}
		}
	}
}

func sameButTime(a, b mapping.Cell) bool {
	return a.Family == b.Family && bytes.Equal(a.Qualifier, b.Qualifier) && bytes.Equal(a.Value, b.Value)
}
