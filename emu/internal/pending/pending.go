// Package pending stores resources in their final state, with the time at which they reach it.
// Everything that is shown before follows from that time and the clock, also after a
// restart.
package pending

import (
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// The fields of what the API does not show of a message that is stored. They have the
// highest numbers there are; no message of the API has them.
const (
	timeField = protowire.MaxValidNumber     // when it will be what it says, in microseconds
	noteField = protowire.MaxValidNumber - 1 // what was noted
)

// Set records in a message, before it is stored, the time at which the resource reaches
// the state of the message. The zero time means now.
func Set(m proto.Message, t time.Time) {
	raw := noted(Note(m))
	if !t.IsZero() {
		raw = protowire.AppendTag(raw, timeField, protowire.VarintType)
		raw = protowire.AppendVarint(raw, uint64(t.UnixMicro()))
	}
	m.ProtoReflect().SetUnknown(raw)
}

// Of returns what Set said; the zero time if it said nothing.
func Of(m proto.Message) time.Time {
	value := hidden(m, timeField, protowire.VarintType)
	if value == nil {
		return time.Time{}
	}
	micros, _ := protowire.ConsumeVarint(value)
	return time.UnixMicro(int64(micros))
}

// SetNote records a note in a message, before it is stored, and replaces the note before.
func SetNote(m proto.Message, note []byte) {
	at := Of(m)
	m.ProtoReflect().SetUnknown(noted(note))
	Set(m, at)
}

// Note returns what SetNote noted; nil if it noted nothing.
func Note(m proto.Message) []byte {
	note, _ := protowire.ConsumeBytes(hidden(m, noteField, protowire.BytesType))
	return note
}

func noted(note []byte) []byte {
	if note == nil {
		return nil
	}
	return protowire.AppendBytes(protowire.AppendTag(nil, noteField, protowire.BytesType), note)
}

// hidden returns the value of a field that the API does not have; nil if there is none.
func hidden(m proto.Message, field protowire.Number, of protowire.Type) []byte {
	for raw := m.ProtoReflect().GetUnknown(); len(raw) > 0; {
		number, kind, tag := protowire.ConsumeTag(raw)
		n := protowire.ConsumeFieldValue(number, kind, raw[max(tag, 0):])
		if tag < 0 || n < 0 {
			break
		}
		if number == field && kind == of {
			return raw[tag:][:n]
		}
		raw = raw[tag+n:]
	}
	return nil
}

// Take is Of and takes the time and the note out of the message, which can be shown
// then: with whatever else the API does not have.
func Take(m proto.Message) time.Time {
	at := Of(m)
	m.ProtoReflect().SetUnknown(nil)
	return at
}

// Broadcast wakes who waits for something to happen. The zero value is ready to
// use and safe for concurrent use.
type Broadcast struct {
	mu sync.Mutex
	ch chan struct{} // closed when it happens; nil: nobody waits
}

// Next returns a channel that is closed when it happens next.
func (b *Broadcast) Next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

// Notify closes the channels that Next returned.
func (b *Broadcast) Notify() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}
