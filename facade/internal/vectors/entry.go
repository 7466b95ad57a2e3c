package vectors

import (
	"maps"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
)

// Of returns the vector of an item in an index of a table. ok is false if the index does
// not include the item. The item may have been written natively, so any of its attributes
// may be invalid.
func Of(t *tabledef.Table, ix *tabledef.VectorIndex, item attr.Item) (vector []float32, ok bool) {
	for _, name := range ix.Schema {
		switch value, there := item[name]; {
		case !there && name == ix.Hash, there && value.Type != t.AttributeType(name), there && name == ix.Hash && value.Str == "":
			return nil, false
		}
	}
	value, there := item[ix.Attribute]
	if !there {
		return nil, false
	}
	vector, fault := Parse(value, ix.Dimensions)
	return vector, fault.Problem == Fits
}

// projects reports whether an index holds the attribute name.
func projects(t *tabledef.Table, ix *tabledef.VectorIndex, name string) bool {
	return ix.Projection == tabledef.ProjectAll || t.Key.IsKey(name) || slices.Contains(ix.Schema, name) || slices.Contains(ix.NonKey, name)
}

// Project returns the attributes of an item that an index includes, with the vector in
// the precision of the index.
func Project(t *tabledef.Table, ix *tabledef.VectorIndex, item attr.Item, vector []float32) attr.Item {
	entry := maps.Clone(item)
	maps.DeleteFunc(entry, func(name string, _ attr.Value) bool { return !projects(t, ix, name) })
	if _, there := entry[ix.Attribute]; there {
		entry[ix.Attribute] = value(vector)
	}
	return entry
}

// minBytes is the minimum charge of a write or a search.
const minBytes = 1 << 10

// Bytes returns the size of an item's entry in an index: 4 bytes per dimension, plus the
// name of the vector and the other projected attributes. Source: captures of the service
// of August 2026.
func Bytes(t *tabledef.Table, ix *tabledef.VectorIndex, item attr.Item) int {
	size := 4*ix.Dimensions + len(ix.Attribute)
	for name, value := range item {
		if name != ix.Attribute && projects(t, ix, name) {
			size += len(name) + value.Size()
		}
	}
	return size
}

// AtLeast returns the number of bytes that are charged for a write or a search of the
// given size.
func AtLeast(size int) float64 { return float64(max(minBytes, size)) }

// WriteBytes returns the number of bytes that a write costs on an index. It is the size
// of the entry before or after the write, whichever is larger, or 0 if the entry does not
// change. A nil item means that the item does not exist.
func WriteBytes(t *tabledef.Table, ix *tabledef.VectorIndex, before, after attr.Item) float64 {
	was, had := Of(t, ix, before)
	is, has := Of(t, ix, after)
	size := 0
	if had {
		size = Bytes(t, ix, before)
	}
	if has {
		size = max(size, Bytes(t, ix, after))
	}
	if !had && !has || had && has && slices.Equal(was, is) && attr.EqualItems(Project(t, ix, before, was), Project(t, ix, after, is)) {
		return 0
	}
	return AtLeast(size)
}
