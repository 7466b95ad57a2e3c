package attr

import (
	"encoding/base64"
	"slices"
	"strings"
)

// newSet makes a set of canonical members, which it takes over.
func newSet(t Type, members []string) (Value, error) {
	if len(members) == 0 {
		return Value{}, newError(EmptySet, t, "")
	}
	v := SetOf(t, members...)
	if len(v.Set) != len(members) {
		shown := showMembers(t, members)
		err := newError(DuplicateMember, t, strings.Join(shown, ", "))
		err.Members = shown
		return Value{}, err
	}
	return v, nil
}

// showMembers shows members as they stand in a request.
func showMembers(t Type, members []string) []string {
	if t != BS {
		return members
	}
	shown := make([]string, len(members))
	for i, m := range members {
		shown[i] = base64.StdEncoding.EncodeToString([]byte(m))
	}
	return shown
}

// SetOf returns the set of type SS, NS or BS that holds the given members,
// which are canonical already (numbers in canonical text, binaries as raw
// bytes) but may come in any order and more than once. Without members there
// is no set: the value is absent.
func SetOf(t Type, members ...string) Value {
	if len(members) == 0 {
		return Value{}
	}
	sorted := slices.Clone(members)
	slices.SortFunc(sorted, memberOrder(t))
	return Value{Type: t, Set: slices.Compact(sorted)}
}

// memberOrder returns the canonical order of a set's members.
func memberOrder(t Type) func(a, b string) int {
	if t == NS {
		return CompareNumbers
	}
	return strings.Compare
}

// HasMember reports whether the set v holds a canonical member.
func (v Value) HasMember(member string) bool {
	_, found := slices.BinarySearchFunc(v.Set, member, memberOrder(v.Type))
	return found
}
