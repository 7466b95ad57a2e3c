package ddbmodel

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Step is one step of a path: a name, or an index into a list.
type Step struct {
	Name    string
	IsIndex bool
	Index   int
}

// Path is the path from an item to a value inside it.
type Path []Step

// Attribute returns the path of a top-level attribute.
func Attribute(name string) Path { return Path{{Name: name}} }

// lookup returns the value at a path, or an absent one.
func (p Path) lookup(item Item) Value {
	v := MapOf(item)
	for _, s := range p {
		switch {
		case !s.IsIndex && v.Type == "M":
			v = v.Map[s.Name]
		case s.IsIndex && v.Type == "L" && s.Index < len(v.List):
			v = v.List[s.Index]
		default:
			return Value{}
		}
	}
	return v
}

// Collides reports whether two paths cannot be changed or projected together. This is the case if
// one is inside the other, or if they diverge at a value that one treats as a list and the other as
// a map.
func (p Path) Collides(q Path) bool {
	for i := range min(len(p), len(q)) {
		if p[i] != q[i] {
			return p[i].IsIndex != q[i].IsIndex
		}
	}
	return true
}

// project returns the parts of an item at the paths. Lists keep the requested elements, in
// order.
func project(item Item, paths []Path) Item {
	out := pick(MapOf(item), paths)
	if !out.isPresent() {
		return Item{}
	}
	return out.Map
}

func pick(v Value, paths []Path) Value {
	if slices.ContainsFunc(paths, func(p Path) bool { return len(p) == 0 }) {
		return v
	}
	within := func(s Step) []Path {
		var rest []Path
		for _, p := range paths {
			if p[0] == s {
				rest = append(rest, p[1:])
			}
		}
		return rest
	}
	switch v.Type {
	case "M":
		out := Item{}
		for name, member := range v.Map {
			if picked := pick(member, within(Step{Name: name})); picked.isPresent() {
				out[name] = picked
			}
		}
		if len(out) > 0 {
			return MapOf(out)
		}
	case "L":
		var out []Value
		for i, element := range v.List {
			if picked := pick(element, within(Step{IsIndex: true, Index: i})); picked.isPresent() {
				out = append(out, picked)
			}
		}
		if len(out) > 0 {
			return ListOf(out...)
		}
	}
	return Value{}
}

// replace returns v with change applied to the value at a path. ok is false if the path's parent
// does not exist. An element beyond the end of a list is appended. A removed one leaves a gap,
// which compact closes.
func replace(v Value, p Path, change func(Value) Value) (changed Value, ok bool) {
	if len(p) == 0 {
		return change(v), true
	}
	s := p[0]
	switch {
	case !s.IsIndex && v.Type == "M":
		member, has := v.Map[s.Name]
		if !has && len(p) > 1 {
			return v, false
		}
		if member, ok = replace(member, p[1:], change); !ok {
			return v, false
		}
		m := maps.Clone(v.Map)
		if m == nil {
			m = Item{}
		}
		m[s.Name] = member
		if !member.isPresent() {
			delete(m, s.Name)
		}
		return MapOf(m), true
	case s.IsIndex && v.Type == "L":
		list := slices.Clone(v.List)
		if s.Index >= len(list) {
			if len(p) > 1 {
				return v, false
			}
			if element := change(Value{}); element.isPresent() {
				list = append(list, element)
			}
			return ListOf(list...), true
		}
		if !list[s.Index].isPresent() && len(p) > 1 {
			return v, false
		}
		if list[s.Index], ok = replace(list[s.Index], p[1:], change); !ok {
			return v, false
		}
		return ListOf(list...), true
	}
	return v, false
}

// compact removes the gaps from the lists in a value.
func compact(v Value) Value {
	switch v.Type {
	case "M":
		m := Item{}
		for name, member := range v.Map {
			m[name] = compact(member)
		}
		return MapOf(m)
	case "L":
		var list []Value
		for _, element := range v.List {
			if element.isPresent() {
				list = append(list, compact(element))
			}
		}
		return ListOf(list...)
	}
	return v
}

// Placeholders collects the names and values of the expressions of a request.
type Placeholders struct {
	names  map[string]string // placeholder -> name
	values Item
}

func (p *Placeholders) name(name string) string {
	for placeholder, known := range p.names {
		if known == name {
			return placeholder
		}
	}
	if p.names == nil {
		p.names = map[string]string{}
	}
	placeholder := fmt.Sprintf("#n%d", len(p.names))
	p.names[placeholder] = name
	return placeholder
}

func (p *Placeholders) value(v Value) string {
	if p.values == nil {
		p.values = Item{}
	}
	placeholder := fmt.Sprintf(":v%d", len(p.values))
	p.values[placeholder] = v
	return placeholder
}

func (p *Placeholders) path(path Path) string {
	var b strings.Builder
	for i, s := range path {
		switch {
		case s.IsIndex:
			fmt.Fprintf(&b, "[%d]", s.Index)
		case i > 0:
			b.WriteString("." + p.name(s.Name))
		default:
			b.WriteString(p.name(s.Name))
		}
	}
	return b.String()
}

func (p *Placeholders) paths(paths []Path) string {
	texts := make([]string, len(paths))
	for i, path := range paths {
		texts[i] = p.path(path)
	}
	return strings.Join(texts, ", ")
}

// into adds the members that the expressions need to a request.
func (p *Placeholders) into(request map[string]any) {
	if len(p.names) > 0 {
		request["ExpressionAttributeNames"] = p.names
	}
	if len(p.values) > 0 {
		request["ExpressionAttributeValues"] = p.values
	}
}
