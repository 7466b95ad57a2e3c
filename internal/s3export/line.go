package s3export

import (
	"strconv"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// Change is a line of an incremental export: what became of one item between the two
// times of the export.
type Change struct {
	WriteMicros int64     // when the last write was, in microseconds since 1970
	Keys        attr.Item // the key of the item
	Old, New    attr.Item // nil: there was, or is, no item
}

// AppendItem appends the line of an item in a full export, with its line end.
func AppendItem(b []byte, item attr.Item) []byte {
	return append(attr.AppendItemJSON(append(b, `{"Item":`...), item), "}\n"...)
}

// AppendChange appends the line of a change in an incremental export, with its line
// end.
func AppendChange(b []byte, c Change) []byte {
	b = append(b, `{"Metadata":{"WriteTimestampMicros":{"N":"`...)
	b = append(strconv.AppendInt(b, c.WriteMicros, 10), `"}},"Keys":`...)
	b = attr.AppendItemJSON(b, c.Keys)
	if c.Old != nil {
		b = attr.AppendItemJSON(append(b, `,"OldImage":`...), c.Old)
	}
	if c.New != nil {
		b = attr.AppendItemJSON(append(b, `,"NewImage":`...), c.New)
	}
	return append(b, "}\n"...)
}
