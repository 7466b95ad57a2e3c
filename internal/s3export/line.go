package s3export

import (
	"strconv"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/iontext"
)

// Change is a line of an incremental export: an item before and after the period of the export.
type Change struct {
	WriteMicros int64     // time of the last write, in microseconds since 1970
	Keys        attr.Item // the key of the item
	Old, New    attr.Item // nil if the item did not exist
}

// metadata returns the Metadata of a change.
func metadata(writeMicros int64) attr.Item {
	return attr.Item{"WriteTimestampMicros": attr.Value{Type: attr.N, Str: strconv.FormatInt(writeMicros, 10)}}
}

// appendIonChange is like AppendChange, but writes Ion.
func appendIonChange(b []byte, c Change) []byte {
	members := []iontext.Member{{Name: "Metadata", Item: metadata(c.WriteMicros)}, {Name: "Keys", Item: c.Keys}}
	if c.Old != nil {
		members = append(members, iontext.Member{Name: "OldImage", Item: c.Old})
	}
	if c.New != nil {
		members = append(members, iontext.Member{Name: "NewImage", Item: c.New})
	}
	return append(iontext.AppendLine(b, members...), '\n')
}

// The texts around an item in its line.
const (
	itemBegin = `{"Item":`
	itemEnd   = "}\n"
)

// AppendItem appends the line of an item in a full export, including the line end.
func AppendItem(b []byte, item attr.Item) []byte {
	return append(attr.AppendItemJSON(append(b, itemBegin...), item), itemEnd...)
}

// AppendChange appends the line of a change in an incremental export, including the line end.
func AppendChange(b []byte, c Change) []byte {
	b = appendKeys(b, c.WriteMicros, c.Keys)
	if c.Old != nil {
		b = attr.AppendItemJSON(append(b, oldImage...), c.Old)
	}
	if c.New != nil {
		b = attr.AppendItemJSON(append(b, newImage...), c.New)
	}
	return append(b, itemEnd...)
}

// The names of images in the line of a change.
const (
	oldImage = `,"OldImage":`
	newImage = `,"NewImage":`
)

// appendKeys appends the beginning of the line of a change.
func appendKeys(b []byte, writeMicros int64, keys attr.Item) []byte {
	b = attr.AppendItemJSON(append(b, `{"Metadata":`...), metadata(writeMicros))
	return attr.AppendItemJSON(append(b, `,"Keys":`...), keys)
}

// ChangeText is a Change whose images are texts.
type ChangeText struct {
	WriteMicros int64
	Keys        attr.Item
	Old, New    Text
}

// Text is an item in the format of attr.AppendItemJSON. The zero value means no item.
type Text struct {
	JSON []byte
	Size int // size as DynamoDB counts it
}

// appendChangeText is like AppendChange, but takes texts.
func appendChangeText(b []byte, c ChangeText) []byte {
	b = appendKeys(b, c.WriteMicros, c.Keys)
	if c.Old.JSON != nil {
		b = append(append(b, oldImage...), c.Old.JSON...)
	}
	if c.New.JSON != nil {
		b = append(append(b, newImage...), c.New.JSON...)
	}
	return append(b, itemEnd...)
}
