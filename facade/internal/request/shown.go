package request

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// ShownItem formats an item as AWS shows it in a failed constraint, in the notation of
// Java.
func ShownItem(item attr.Item) string {
	members := make([]string, 0, len(item))
	for _, name := range slices.Sorted(maps.Keys(item)) {
		members = append(members, name+"="+shownValue(item[name]))
	}
	return "{" + strings.Join(members, ", ") + "}"
}

// valueFields are the members of a value in the service's own model. It includes types that
// requests cannot have.
var valueFields = []string{
	"s", "n", "b", "iNT", "dECIMAL", "dOUBLE", "sS", "nS", "bS", "iNTSET", "dECIMALSET", "dOUBLESET", "m", "l", "nULL", "bOOL",
}

func shownValue(v attr.Value) string {
	var field, shown string
	switch v.Type {
	case attr.S:
		field, shown = "s", v.Str
	case attr.N:
		field, shown = "n", v.Str
	case attr.B:
		field, shown = "b", shownBytes(v.Str)
	case attr.SS:
		field, shown = "sS", "["+strings.Join(v.Set, ", ")+"]"
	case attr.NS:
		field, shown = "nS", "["+strings.Join(v.Set, ", ")+"]"
	case attr.BS:
		members := make([]string, len(v.Set))
		for i, member := range v.Set {
			members[i] = shownBytes(member)
		}
		field, shown = "bS", "["+strings.Join(members, ", ")+"]"
	case attr.M:
		field, shown = "m", ShownItem(v.Map)
	case attr.L:
		elements := make([]string, len(v.List))
		for i, element := range v.List {
			elements[i] = shownValue(element)
		}
		field, shown = "l", "["+strings.Join(elements, ", ")+"]"
	case attr.NULL:
		field, shown = "nULL", "true"
	case attr.BOOL:
		field, shown = "bOOL", fmt.Sprint(v.Bool)
	case attr.Absent:
	}
	fields := make([]string, len(valueFields))
	for i, name := range valueFields {
		fields[i] = name + "=null"
		if name == field {
			fields[i] = name + "=" + shown
		}
	}
	return "AttributeValue(" + strings.Join(fields, ", ") + ")"
}

func shownBytes(b string) string {
	return fmt.Sprintf("java.nio.HeapByteBuffer[pos=0 lim=%d cap=%d]", len(b), len(b))
}
