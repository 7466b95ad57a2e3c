package s3export

import (
	"strconv"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/iontext"
)

// Change is a line of an incremental export: what became of one item between the two
// times of the export.
type Change struct {
	WriteMicros int64     // when the last write was, in microseconds since 1970
	Keys        attr.Item // the key of the item
	Old, New    attr.Item // nil: there was, or is, no item
}

// metadata is what is said of the change beside the item.
func (c Change) metadata() attr.Item {
	return attr.Item{"WriteTimestampMicros": attr.Value{Type: attr.N, Str: strconv.FormatInt(c.WriteMicros, 10)}}
}

// appendIonChange is AppendChange in Ion.
func appendIonChange(b []byte, c Change) []byte {
	members := []iontext.Member{{Name: "Metadata", Item: c.metadata()}, {Name: "Keys", Item: c.Keys}}
	if c.Old != nil {
		members = append(members, iontext.Member{Name: "OldImage", Item: c.Old})
	}
	if c.New != nil {
		members = append(members, iontext.Member{Name: "NewImage", Item: c.New})
	}
	return append(iontext.AppendLine(b, members...), '\n')
}

// What stands around an item in its line.
const (
	itemBegin = `{"Item":`
	itemEnd   = "}\n"
)

// AppendItem appends the line of an item in a full export, with its line end.
func AppendItem(b []byte, item attr.Item) []byte {
	return append(attr.AppendItemJSON(append(b, itemBegin...), item), itemEnd...)
}

// AppendChange appends the line of a change in an incremental export, with its line
// end.
func AppendChange(b []byte, c Change) []byte {
	b = attr.AppendItemJSON(append(b, `{"Metadata":`...), c.metadata())
	b = attr.AppendItemJSON(append(b, `,"Keys":`...), c.Keys)
	if c.Old != nil {
		b = attr.AppendItemJSON(append(b, `,"OldImage":`...), c.Old)
	}
	if c.New != nil {
		b = attr.AppendItemJSON(append(b, `,"NewImage":`...), c.New)
	}
	return append(b, "}\n"...)
}
