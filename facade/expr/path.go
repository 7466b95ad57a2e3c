package expr

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// Step is one step of a path. It leads to a map member by Name or, if IsIndex is set, to
// a list element by Index.
type Step struct {
	Name    string
	Index   int
	IsIndex bool
}

// Path is a document path with all placeholders resolved. The first step is
// the name of a top-level attribute.
type Path []Step

// AttributePath returns the path to a top-level attribute.
func AttributePath(name string) Path { return Path{{Name: name}} }

// Attribute returns the name of the top-level attribute.
func (p Path) Attribute() string { return p[0].Name }

// Equal reports whether p and q are the same path.
func (p Path) Equal(q Path) bool { return slices.Equal(p, q) }

// String returns the path in DynamoDB's notation for messages: "[a, b, [0]]".
func (p Path) String() string {
	steps := make([]string, len(p))
	for i, s := range p {
		if steps[i] = s.Name; s.IsIndex {
			steps[i] = "[" + strconv.Itoa(s.Index) + "]"
		}
	}
	return "[" + strings.Join(steps, ", ") + "]"
}

// Lookup returns the value at p in item, or an absent value.
func (p Path) Lookup(item attr.Item) attr.Value {
	v := item[p[0].Name]
	for _, s := range p[1:] {
		if v = child(v, s); v.IsAbsent() {
			break
		}
	}
	return v
}

// child returns the value to which step s leads inside v, or an absent value.
func child(v attr.Value, s Step) attr.Value {
	switch {
	case !s.IsIndex && v.Type == attr.M:
		return v.Map[s.Name]
	case s.IsIndex && v.Type == attr.L && s.Index < len(v.List):
		return v.List[s.Index]
	}
	return attr.Value{}
}

// checkPaths returns an error for the first path that overlaps with an earlier one: they are
// equal, or one leads inside the other. If none does, it returns an error for the first path
// that conflicts with an earlier one: they treat the same value as a map and as a list.
func checkPaths(k Kind, paths []Path) *Error {
	if len(paths) < 2 {
		return nil
	}
	var conflict *Error
	earlier := make(map[string][]Path, len(paths)) // by attribute
	for _, b := range paths {
		for _, a := range earlier[b.Attribute()] {
			switch comparePaths(a, b) {
			case pathsOverlap:
				return k.invalid(msgOverlap, a, b)
			case pathsConflict:
				if conflict == nil {
					conflict = k.invalid(msgConflict, a, b)
				}
			case pathsDiffer:
			}
		}
		earlier[b.Attribute()] = append(earlier[b.Attribute()], b)
	}
	return conflict
}

type pathRelation uint8

const (
	pathsDiffer pathRelation = iota
	pathsOverlap
	pathsConflict
)

func comparePaths(a, b Path) pathRelation {
	for i := range min(len(a), len(b)) {
		switch {
		case a[i].IsIndex != b[i].IsIndex:
			return pathsConflict
		case a[i] != b[i]:
			return pathsDiffer
		}
	}
	return pathsOverlap
}
