package rowtext

import (
	"bytes"

	"github.com/tabletop-emu/tabletop/cells"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
)

// SidecarKind is the meaning of a cell of FamilyTypes.
type SidecarKind string

// These are the kinds of sidecar cells.
const (
	SidecarPresence   SidecarKind = "presence"   // i/: the item exists and has no other cell
	SidecarAttributes SidecarKind = "attributes" // i/: attributes of an item that do not have a separate cell
	SidecarType       SidecarKind = "type"       // a/ and c/: a value whose type differs from the schema
	SidecarEmpty      SidecarKind = "empty"      // a/ and c/: an empty map or list
	SidecarJSON       SidecarKind = "json"       // a/ and c/: a set, map or list kept as JSON
	SidecarAbsent     SidecarKind = "absent"     // a/: a version lacks an attribute
	SidecarRule       SidecarKind = "rule"       // r/: the rule that wrote a shared column
	SidecarUnknown    SidecarKind = "unknown"    // any other cell, which no mapping wrote
)

// SidecarKindOf returns the kind of a cell of FamilyTypes.
func SidecarKindOf(c cells.Cell) SidecarKind {
	form, _, ok := bytes.Cut(c.Qualifier, []byte("/"))
	if !ok {
		return SidecarUnknown
	}
	switch string(form) {
	case "i":
		if len(c.Value) == 0 {
			return SidecarPresence
		}
		return SidecarAttributes
	case "r":
		return SidecarRule
	case "a", "c":
		if len(c.Value) == 1 && c.Value[0] == codec.MarkAbsent {
			return SidecarAbsent
		}
		_, mark, ok := codec.ParseMark(c.Value)
		switch {
		case !ok:
			return SidecarUnknown
		case mark == codec.MarkEmpty:
			return SidecarEmpty
		case mark == codec.MarkJSON:
			return SidecarJSON
		}
		return SidecarType
	}
	return SidecarUnknown
}

// String describes the meaning of cells of this kind.
func (k SidecarKind) String() string {
	switch k {
	case SidecarPresence:
		return "presence of an item that has only key attributes"
	case SidecarAttributes:
		return "attributes that the mapping gives no cell of their own"
	case SidecarType:
		return "type of a value that is not the mapping's"
	case SidecarEmpty:
		return "an empty map or list"
	case SidecarJSON:
		return "a set, map or list kept as JSON"
	case SidecarAbsent:
		return "an attribute that a version lacks"
	case SidecarRule:
		return "the rule of a column that several rules write"
	case SidecarUnknown:
	}
	return "nothing that a mapping writes"
}
