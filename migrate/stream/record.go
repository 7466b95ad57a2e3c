package stream

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// Position orders the changes of an item, as bytes: 2 of the epoch and 20 of the sequence
// number, both big-endian.
type Position [2 + orderBytes]byte

const (
	orderBytes = 20
	// maxDigits is the length of the longest sequence number.
	// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_streams_StreamRecord.html
	maxDigits = 40
)

// Record is a change of an item.
type Record struct {
	Shard    string
	Sequence string // the sequence number, up to 40 digits
	Position Position
	// Time is the time of the change. That of the service is approximate and has whole seconds.
	Time time.Time
	Keys attr.Item // the key attributes
	New  attr.Item // the item after the change; nil if it was deleted
	Old  attr.Item // the item before the change; nil if it was created, or without Stream.OldImages
	// Expired marks a deletion of the service after the item's time to live.
	Expired bool
}

// order is a sequence number as an integer.
type order [orderBytes]byte

// parseOrder parses a sequence number. ok is false if it is not one.
func parseOrder(sequence string) (o order, ok bool) {
	if sequence == "" || len(sequence) > maxDigits {
		return o, false
	}
	for i := range len(sequence) {
		if sequence[i] < '0' || sequence[i] > '9' {
			return o, false
		}
	}
	n, ok := new(big.Int).SetString(sequence, 10)
	if ok {
		n.FillBytes(o[:]) // 40 digits need 17 bytes
	}
	return o, ok
}

func (o order) above(p order) bool { return bytes.Compare(o[:], p[:]) > 0 }

func (o order) position(epoch uint16) (p Position) {
	copy(p[copy(p[:], binary.BigEndian.AppendUint16(nil, epoch)):], o[:])
	return p
}

// cursor is the place up to which the records of a shard were read.
type cursor struct {
	shard    string
	sequence string // of the last record; "" if none was read
	last     order  // its number
	before   string // the last sequence number of the parent's lineage; "" if it had no records
	epoch    uint16
	kept     bool      // a record of the lineage was kept, so that all others are
	from     time.Time // earlier records are dropped until one is kept
}

// take converts the next record and moves the cursor behind it. keep is false if the record is
// dropped.
func (c *cursor) take(in *types.Record, oldImages, exact bool) (r Record, keep bool, err error) {
	d := in.Dynamodb
	if d == nil || d.SequenceNumber == nil {
		return r, false, errors.New("a record without a sequence number")
	}
	r = Record{Shard: c.shard, Sequence: *d.SequenceNumber}
	number, ok := parseOrder(r.Sequence)
	if !ok {
		return r, false, fmt.Errorf("the sequence number %.50q does not have 1 to %d digits", r.Sequence, maxDigits)
	}
	switch {
	case c.sequence != "" && !number.above(c.last):
		return r, false, fmt.Errorf("the record %s follows %s, but its number is not greater", r.Sequence, c.sequence)
	case c.sequence == "" && c.before != "":
		if parent, ok := parseOrder(c.before); ok && !number.above(parent) {
			if c.epoch == math.MaxUint16 {
				return r, false, fmt.Errorf("the record %s begins epoch %d, expected at most %d", r.Sequence, math.MaxUint16+1, math.MaxUint16)
			}
			c.epoch++
		}
	}
	c.sequence, c.last = r.Sequence, number
	if t, ok := numberTime(r.Sequence); exact && ok {
		r.Time = t
	} else if d.ApproximateCreationDateTime != nil {
		r.Time = d.ApproximateCreationDateTime.UTC()
	} else {
		return r, false, fmt.Errorf("the record %s has no time", r.Sequence)
	}
	if !c.kept && r.Time.Before(c.from) {
		return r, false, nil
	}
	c.kept = true
	r.Position = number.position(c.epoch)
	r.Expired = in.UserIdentity != nil && aws.ToString(in.UserIdentity.Type) == "Service" && aws.ToString(in.UserIdentity.PrincipalId) == "dynamodb.amazonaws.com"
	for _, image := range []struct {
		name string
		from map[string]types.AttributeValue
		into *attr.Item
	}{{"Keys", d.Keys, &r.Keys}, {"NewImage", d.NewImage, &r.New}, {"OldImage", d.OldImage, &r.Old}} {
		if len(image.from) == 0 {
			continue
		}
		if *image.into, err = itemOf(image.from); err != nil {
			return r, false, fmt.Errorf("the %s of the record %s: %w", image.name, r.Sequence, err)
		}
	}
	return r, true, r.check(in.EventName, oldImages)
}

// check compares the images of a record with its event.
func (r *Record) check(event types.OperationType, oldImages bool) error {
	var hasNew, hasOld bool
	switch event {
	case types.OperationTypeInsert:
		hasNew = true
	case types.OperationTypeModify:
		hasNew, hasOld = true, oldImages
	case types.OperationTypeRemove:
		hasOld = oldImages
	default:
		return fmt.Errorf("the record %s has the event %.40q, expected INSERT, MODIFY or REMOVE", r.Sequence, event)
	}
	switch {
	case r.Keys == nil:
		return fmt.Errorf("the record %s has no Keys", r.Sequence)
	case hasNew != (r.New != nil):
		return fmt.Errorf("the NewImage of the record %s contradicts its event %s", r.Sequence, event)
	case hasOld != (r.Old != nil):
		return fmt.Errorf("the OldImage of the record %s contradicts its event %s", r.Sequence, event)
	}
	return nil
}

// itemOf converts an item of the SDK.
func itemOf(in map[string]types.AttributeValue) (attr.Item, error) {
	item := make(attr.Item, len(in))
	for name, v := range in {
		value, err := valueOf(v)
		if err != nil {
			return nil, fmt.Errorf("attribute %.80q: %w", name, err)
		}
		item[name] = value
	}
	return item, nil
}

// valueOf converts a value of the SDK to the canonical one.
func valueOf(in types.AttributeValue) (attr.Value, error) {
	switch in := in.(type) {
	case *types.AttributeValueMemberS:
		return attr.String(in.Value), nil
	case *types.AttributeValueMemberN:
		return attr.Number(in.Value)
	case *types.AttributeValueMemberB:
		return attr.Binary(in.Value), nil
	case *types.AttributeValueMemberBOOL:
		return attr.Boolean(in.Value), nil
	case *types.AttributeValueMemberNULL:
		return attr.Null(), nil
	case *types.AttributeValueMemberSS:
		return setOf(attr.SS, in.Value)
	case *types.AttributeValueMemberNS:
		members := make([]string, len(in.Value))
		for i, text := range in.Value {
			var err error
			if members[i], err = attr.ParseNumber(text); err != nil {
				return attr.Value{}, err
			}
		}
		return setOf(attr.NS, members)
	case *types.AttributeValueMemberBS:
		members := make([]string, len(in.Value))
		for i, b := range in.Value {
			members[i] = string(b)
		}
		return setOf(attr.BS, members)
	case *types.AttributeValueMemberL:
		list := make([]attr.Value, len(in.Value))
		for i, v := range in.Value {
			var err error
			if list[i], err = valueOf(v); err != nil {
				return attr.Value{}, err
			}
		}
		return attr.ListOf(list...), nil
	case *types.AttributeValueMemberM:
		m, err := itemOf(in.Value)
		return attr.MapOf(m), err
	}
	return attr.Value{}, fmt.Errorf("a value of the unknown type %T", in)
}

func setOf(t attr.Type, members []string) (attr.Value, error) {
	if len(members) == 0 {
		return attr.Value{}, fmt.Errorf("a set of type %s without members", t)
	}
	return attr.SetOf(t, members...), nil
}

// cost returns the memory of a record, in bytes, approximately.
func (r *Record) cost() int64 {
	return costOf(r.Keys) + costOf(r.Old) + costOf(r.New)
}

// valueBytes is about the memory of a value in a map, besides its content.
const valueBytes = 200

func costOf(m map[string]attr.Value) (n int64) {
	for name, v := range m {
		n += int64(len(name)) + costOfValue(v)
	}
	return n
}

func costOfValue(v attr.Value) int64 {
	n := valueBytes + int64(len(v.Str)) + costOf(v.Map)
	for _, member := range v.Set {
		n += int64(len(member)) + 16
	}
	for _, element := range v.List {
		n += costOfValue(element)
	}
	return n
}
