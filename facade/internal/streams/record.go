package streams

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/changelog"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

// Records is the response of GetRecords. It implements wire.Answer.
type Records struct {
	View
	Region, TableID string
	Records         []changelog.Entry
	Next            *string // value of NextShardIterator
	Complete        uint64  // number below which everything was delivered
}

// Watermark returns the sequence number below which everything was delivered.
func (a *Records) Watermark() string { return changelog.Position{Sequence: a.Complete}.String() }

// WriteJSON implements wire.Answer.
func (a *Records) WriteJSON(w *wire.Writer) {
	const rest = 512 // of a record, besides its images
	room := 0
	for _, r := range a.Records {
		room += rest + len(r.Key.JSON) + len(r.Old.JSON) + len(r.New.JSON)
	}
	w.Reserve(room)
	wire.Optional(w, "NextShardIterator", a.Next)
	w.BeginList("Records")
	for i := range a.Records {
		_, _ = w.Element(func(dst []byte) ([]byte, attr.Sizes, error) { // the function does not fail
			dst, size := a.append(dst, &a.Records[i])
			return dst, attr.Sizes{Item: size}, nil
		})
	}
	w.EndList()
}

// append appends the JSON of a record of a table, and returns its size as DynamoDB counts it.
// It copies the images from the log as they are.
func (a *Records) append(b []byte, r *changelog.Entry) ([]byte, int) {
	id := sha256.Sum256(append([]byte(a.TableID), changelog.Key(0, r.At)...))
	b = append(b, `{"awsRegion":"`...)
	b = append(b, a.Region...)
	b = append(b, `","dynamodb":{"ApproximateCreationDateTime":`...)
	b = strconv.AppendInt(b, r.At.Time().Unix(), 10)
	b = append(append(b, `,"Keys":`...), r.Key.JSON...)
	size := r.Key.Size
	if r.New.JSON != nil {
		b = append(append(b, `,"NewImage":`...), r.New.JSON...)
		size += r.New.Size
	}
	if r.Old.JSON != nil {
		b = append(append(b, `,"OldImage":`...), r.Old.JSON...)
		size += r.Old.Size
	}
	b = append(append(append(b, `,"SequenceNumber":"`...), r.At.String()...), `","SizeBytes":`...)
	b = strconv.AppendInt(b, int64(size), 10)
	b = append(append(append(b, `,"StreamViewType":"`...), a.Stream.View...), `"},"eventID":"`...)
	b = hex.AppendEncode(b, id[:16])
	b = append(append(append(b, `","eventName":"`...), r.Kind.String()...), `","eventSource":"aws:dynamodb","eventVersion":"1.1"`...)
	if r.Expired {
		b = append(b, `,"userIdentity":{"PrincipalId":"dynamodb.amazonaws.com","Type":"Service"}`...)
	}
	return append(b, '}'), size
}
