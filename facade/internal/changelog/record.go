package changelog

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// Kind is the effect of a write on its item, in the terms of DynamoDB Streams.
type Kind byte

// Kinds of changes.
const (
	Insert Kind = 'I'
	Modify Kind = 'M'
	Remove Kind = 'R'
)

// String returns the name of the event, such as INSERT.
func (k Kind) String() string {
	switch k {
	case Insert:
		return "INSERT"
	case Modify:
		return "MODIFY"
	case Remove:
		return "REMOVE"
	default:
		return fmt.Sprintf("Kind(%d)", byte(k))
	}
}

// Image is the state of an item in a record: the JSON text of its attributes, as in
// responses, and its size as DynamoDB counts it. The zero value means that the item does
// not exist.
type Image struct {
	JSON []byte
	Size int
}

// ImageOf returns the image of an item. For a nil item it returns the zero value.
func ImageOf(item attr.Item) Image {
	if item == nil {
		return Image{}
	}
	return Image{JSON: attr.AppendItemJSON(make([]byte, 0, item.JSONSizeHint()), item), Size: item.Size()}
}

// Record is a change to an item, without its position in the log.
type Record struct {
	Kind Kind
	// Expired means that the item was deleted because its time to live had ended.
	Expired bool
	// Origin identifies the writer if the writer set it, and is "" for ordinary clients.
	// A process that replicates changes uses it to skip the changes that it wrote.
	Origin string
	Key    Image
	// Old and New are the images of the item before and after the change, if the log
	// keeps them.
	Old, New Image
}

// IsWhole reports whether the record has all images of its change.
func (r *Record) IsWhole() bool {
	return (r.Kind == Insert || r.Old.JSON != nil) && (r.Kind == Remove || r.New.JSON != nil)
}

// recordVersion begins a record. A reader rejects unknown versions, since skipping one would
// lose a change.
const recordVersion = 1

// The flags of a record.
const (
	flagExpired = 1 << iota
	flagOld
	flagNew
	flagsKnown = flagExpired | flagOld | flagNew
)

// Append appends the stored form of the record: version, kind, flags, origin, key, and
// the images, each preceded by the size of the item.
func (r *Record) Append(to []byte) []byte {
	flags := byte(0)
	if r.Expired {
		flags |= flagExpired
	}
	if r.Old.JSON != nil {
		flags |= flagOld
	}
	if r.New.JSON != nil {
		flags |= flagNew
	}
	to = append(to, recordVersion, byte(r.Kind), flags)
	to = appendText(to, []byte(r.Origin))
	to = appendImage(to, r.Key)
	if flags&flagOld != 0 {
		to = appendImage(to, r.Old)
	}
	if flags&flagNew != 0 {
		to = appendImage(to, r.New)
	}
	return to
}

// Bytes estimates the size of the record's stored form.
func (r *Record) Bytes() int {
	const rest = 32
	return rest + len(r.Origin) + len(r.Key.JSON) + len(r.Old.JSON) + len(r.New.JSON)
}

func appendText(to, text []byte) []byte {
	return append(binary.AppendUvarint(to, uint64(len(text))), text...)
}

func appendImage(to []byte, i Image) []byte {
	return appendText(binary.AppendUvarint(to, uint64(i.Size)), i.JSON)
}

var errRecordText = errors.New("a record of the log is truncated")

// ParseRecord parses the form that Append writes. The images share memory with data.
func ParseRecord(data []byte) (r Record, err error) {
	if len(data) < 3 {
		return r, errRecordText
	}
	if data[0] != recordVersion {
		return r, fmt.Errorf("a record of the log has version %d, expected %d: another program wrote it", data[0], recordVersion)
	}
	r.Kind = Kind(data[1])
	if r.Kind != Insert && r.Kind != Modify && r.Kind != Remove {
		return r, fmt.Errorf("a record of the log has the unknown kind %q", data[1])
	}
	flags := data[2]
	if flags&^byte(flagsKnown) != 0 {
		return r, fmt.Errorf("a record of the log has the unknown flags %#x", flags)
	}
	r.Expired = flags&flagExpired != 0
	origin, data, ok := cutText(data[3:])
	r.Origin = string(origin)
	if ok {
		r.Key, data, ok = cutImage(data)
	}
	if ok && flags&flagOld != 0 {
		r.Old, data, ok = cutImage(data)
	}
	if ok && flags&flagNew != 0 {
		r.New, data, ok = cutImage(data)
	}
	if !ok || len(data) > 0 {
		return Record{}, errRecordText
	}
	return r, nil
}

func cutText(data []byte) (text, rest []byte, ok bool) {
	n, size := binary.Uvarint(data)
	if size <= 0 || n > uint64(len(data)-size) {
		return nil, nil, false
	}
	end := size + int(n)
	return data[size:end:end], data[end:], true
}

func cutImage(data []byte) (i Image, rest []byte, ok bool) {
	n, size := binary.Uvarint(data)
	if size <= 0 || n > 1<<31 {
		return i, nil, false
	}
	i.Size = int(n)
	i.JSON, rest, ok = cutText(data[size:])
	return i, rest, ok
}

// Entry is a record with its position.
type Entry struct {
	At Position
	Record
}

// NewRecord returns the record of a write, with the images that the view of a stream
// includes. A nil item means that the item does not exist.
func NewRecord(view string, key, old, updated attr.Item) Record {
	r := Record{Kind: Modify, Key: ImageOf(key)}
	if viewsNew(view) {
		r.New = ImageOf(updated)
	}
	if viewsOld(view) {
		r.Old = ImageOf(old)
	}
	switch {
	case old == nil:
		r.Kind = Insert
	case updated == nil:
		r.Kind = Remove
	}
	return r
}

func viewsNew(view string) bool { return view == "NEW_IMAGE" || view == "NEW_AND_OLD_IMAGES" }

func viewsOld(view string) bool { return view == "OLD_IMAGE" || view == "NEW_AND_OLD_IMAGES" }

// Seen returns the record with only the images that the view of a stream includes, since
// the log may keep more.
func (r Record) Seen(view string) Record {
	if !viewsNew(view) {
		r.New = Image{}
	}
	if !viewsOld(view) {
		r.Old = Image{}
	}
	return r
}
