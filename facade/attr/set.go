package attr

import (
	"encoding/base64"
	"slices"
	"strings"
)

// newSet returns a set of canonical members. It returns an *Error for an empty set and for
// duplicate members.
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

// showMembers returns members in their JSON form: binaries in base64.
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

// SetOf returns a set of type SS, NS or BS. Each member must be canonical: numbers as
// canonical text, binaries as raw bytes. The members may be in any order, and may contain
// duplicates. If there are no members, the result is the absent value.
func SetOf(t Type, members ...string) Value {
	if len(members) == 0 {
		return Value{}
	}
	sorted := slices.Clone(members)
	slices.SortFunc(sorted, memberOrder(t))
	return Value{Type: t, Set: slices.Compact(sorted)}
}

// memberOrder returns the function that compares the members of a set of type t.
func memberOrder(t Type) func(a, b string) int {
	if t == NS {
		return CompareNumbers
	}
	return strings.Compare
}

// HasMember reports whether the set v contains a canonical member.
func (v Value) HasMember(member string) bool {
	_, found := slices.BinarySearchFunc(v.Set, member, memberOrder(v.Type))
	return found
}
