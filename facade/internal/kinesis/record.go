package kinesis

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/tabletop-emu/tabletop/facade/internal/changelog"
)

// Record is a change in the form in which it is delivered.
type Record struct {
	// PartitionKey is the same for all changes of an item.
	PartitionKey string
	Data         []byte // the change as JSON

	at changelog.Position
}

// Form holds the values that all records of a table share.
type Form struct {
	Region, Table, TableID string
	Precision              string // "" means Millisecond
}

// Record returns a change in the form in which it is delivered. The same change always
// has the same eventID.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/kds_gettingstarted.html
func (f Form) Record(e *changelog.Entry) Record {
	const rest, uuidBytes, keyBytes = 512, 16, 16
	id := sha256.Sum256(append([]byte(f.TableID), changelog.Key(0, e.At)...))
	key := sha256.Sum256(e.Key.JSON)
	b := make([]byte, 0, rest+len(e.Key.JSON)+len(e.New.JSON)+len(e.Old.JSON))
	b = append(b, `{"awsRegion":"`...)
	b = append(b, f.Region...)
	b = append(b, `","eventID":"`...)
	b = append(b, uuid.UUID(id[:uuidBytes]).String()...)
	b = append(append(append(b, `","eventName":"`...), e.Kind.String()...), `","userIdentity":`...)
	if e.Expired {
		b = append(b, `{"type":"Service","principalId":"dynamodb.amazonaws.com"}`...)
	} else {
		b = append(b, "null"...)
	}
	b = append(b, `,"recordFormat":"application/json","tableName":`...)
	b, _ = jsontext.AppendQuote(b, f.Table) // table names are ASCII
	b = append(b, `,"dynamodb":{"ApproximateCreationDateTime":`...)
	if f.Precision == Microsecond {
		b = append(strconv.AppendInt(b, e.At.Time().UnixMicro(), 10), `,"ApproximateCreationDateTimePrecision":"MICROSECOND"`...)
	} else {
		b = strconv.AppendInt(b, e.At.Time().UnixMilli(), 10)
	}
	b = append(append(b, `,"Keys":`...), e.Key.JSON...)
	size := e.Key.Size
	if e.New.JSON != nil {
		b = append(append(b, `,"NewImage":`...), e.New.JSON...)
		size += e.New.Size
	}
	if e.Old.JSON != nil {
		b = append(append(b, `,"OldImage":`...), e.Old.JSON...)
		size += e.Old.Size
	}
	b = append(b, `,"SizeBytes":`...)
	b = strconv.AppendInt(b, int64(size), 10)
	b = append(b, `},"eventSource":"aws:dynamodb"}`...)
	return Record{PartitionKey: hex.EncodeToString(key[:keyBytes]), Data: b, at: e.At}
}
