package pending

import (
	"errors"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Record is a stored resource.
type Record[M proto.Message] struct {
	Message M // the final state
	State
}

// State is the part of a record other than its message.
type State struct {
	At   time.Time // when the resource reaches the state of the message; zero if it already has
	Note []byte    // data of the resource's owner; nil if absent
}

// Before reports whether the resource reaches the state of its message after t.
func (s State) Before(t time.Time) bool { return s.At.After(t) }

// A record is stored as a mark and a separate protobuf message. No protobuf tag
// equals the mark: earlier versions stored the API's message alone, see
// Earlier.
const (
	mark         = 0
	messageField = 1 // bytes
	atField      = 2 // varint: microseconds since 1970; absent: zero
	noteField    = 3 // bytes
)

var errRecord = errors.New("the stored record is damaged")

// Encode returns the stored form of a record. It is deterministic.
func Encode(m proto.Message, s State) ([]byte, error) {
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, err
	}
	out := protowire.AppendTag([]byte{mark}, messageField, protowire.BytesType)
	out = protowire.AppendBytes(out, raw)
	if !s.At.IsZero() {
		out = protowire.AppendTag(out, atField, protowire.VarintType)
		out = protowire.AppendVarint(out, uint64(s.At.UnixMicro()))
	}
	if s.Note != nil {
		out = protowire.AppendTag(out, noteField, protowire.BytesType)
		out = protowire.AppendBytes(out, s.Note)
	}
	return out, nil
}

// IsRecord reports whether a stored value is a record rather than a bare message.
func IsRecord(raw []byte) bool { return len(raw) > 0 && raw[0] == mark }

// Decode decodes a record, or a value in the format of earlier versions, into m. The note of the
// returned state does not share memory with raw.
func Decode(raw []byte, m proto.Message) (State, error) {
	if !IsRecord(raw) {
		if err := proto.Unmarshal(raw, m); err != nil {
			return State{}, err
		}
		return Earlier(m), nil
	}
	var s State
	for raw = raw[1:]; len(raw) > 0; {
		number, kind, n := protowire.ConsumeTag(raw)
		if n < 0 {
			return State{}, errRecord
		}
		raw = raw[n:]
		n = protowire.ConsumeFieldValue(number, kind, raw)
		if n < 0 {
			return State{}, errRecord
		}
		switch value := raw[:n]; {
		case number == messageField && kind == protowire.BytesType:
			message, _ := protowire.ConsumeBytes(value)
			if err := proto.Unmarshal(message, m); err != nil {
				return State{}, err
			}
		case number == atField && kind == protowire.VarintType:
			micros, _ := protowire.ConsumeVarint(value)
			s.At = time.UnixMicro(int64(micros))
		case number == noteField && kind == protowire.BytesType:
			note, _ := protowire.ConsumeBytes(value)
			s.Note = append([]byte{}, note...)
		}
		raw = raw[n:]
	}
	return s, nil
}

// Earlier versions stored the state of a message in these unknown fields. They
// have the highest numbers, which messages of the API do not use.
const (
	earlierAt   = protowire.MaxValidNumber     // varint, in microseconds
	earlierNote = protowire.MaxValidNumber - 1 // bytes
)

// Earlier returns the state that an earlier version of Tabletop stored in the unknown fields of a
// message. It removes all unknown fields from the message.
func Earlier(m proto.Message) State {
	var s State
	for raw := m.ProtoReflect().GetUnknown(); len(raw) > 0; {
		number, kind, tag := protowire.ConsumeTag(raw)
		n := protowire.ConsumeFieldValue(number, kind, raw[max(tag, 0):])
		if tag < 0 || n < 0 {
			break
		}
		switch value := raw[tag:][:n]; {
		case number == earlierAt && kind == protowire.VarintType && s.At.IsZero():
			micros, _ := protowire.ConsumeVarint(value)
			s.At = time.UnixMicro(int64(micros))
		case number == earlierNote && kind == protowire.BytesType && s.Note == nil:
			note, _ := protowire.ConsumeBytes(value)
			s.Note = append([]byte{}, note...)
		}
		raw = raw[tag+n:]
	}
	m.ProtoReflect().SetUnknown(nil)
	return s
}
