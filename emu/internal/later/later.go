// Package later is about what is stored as it will be, and shown as it is: work
// that takes a while is recorded once, with the time at which it is done, and
// everything before follows from that record and the clock, also after a restart.
package later

import (
	"sync"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// timeField holds what the API does not show of a message that is stored: the time
// at which it will be what it says, in microseconds. It is the highest number there
// is; no message of the API has it.
const timeField = protowire.MaxValidNumber

// Set says in a message that is to be stored that it will be so at a time. The
// zero time is as none: it is so now.
func Set(m proto.Message, t time.Time) {
	Take(m)
	if t.IsZero() {
		return
	}
	raw := protowire.AppendTag(nil, timeField, protowire.VarintType)
	m.ProtoReflect().SetUnknown(protowire.AppendVarint(raw, uint64(t.UnixMicro())))
}

// Of returns what Set said; the zero time if it said nothing.
func Of(m proto.Message) time.Time {
	for raw := m.ProtoReflect().GetUnknown(); len(raw) > 0; {
		number, kind, tag := protowire.ConsumeTag(raw)
		n := protowire.ConsumeFieldValue(number, kind, raw[max(tag, 0):])
		if tag < 0 || n < 0 {
			break
		}
		if number == timeField && kind == protowire.VarintType {
			micros, _ := protowire.ConsumeVarint(raw[tag:])
			return time.UnixMicro(int64(micros))
		}
		raw = raw[tag+n:]
	}
	return time.Time{}
}

// Take is Of and takes the time out of the message, which can be shown then: with
// whatever else the API does not have.
func Take(m proto.Message) time.Time {
	at := Of(m)
	m.ProtoReflect().SetUnknown(nil)
	return at
}

// Pending makes the metadata of an operation that is done at a time what it is
// before: without an end, and with a progress in between. It knows them by the
// names that all messages of metadata give them.
func Pending(metadata protoreflect.Message, doneAt, now time.Time) {
	fields := metadata.Descriptor().Fields()
	for _, name := range []protoreflect.Name{"end_time", "finish_time"} {
		if f := fields.ByName(name); f != nil {
			metadata.Clear(f)
		}
	}
	switch m := metadata.Interface().(type) {
	case *btapb.OperationProgress:
		began := m.GetStartTime().AsTime()
		m.ProgressPercent = int32(100 * (float64(max(now.Sub(began), 0)) / float64(max(doneAt.Sub(began), 1))))
	case *btapb.CreateClusterMetadata:
		for _, t := range m.GetTables() {
			t.State = btapb.CreateClusterMetadata_TableProgress_COPYING
		}
	}
	if f := fields.ByName("progress"); f != nil && metadata.Has(f) {
		Pending(metadata.Mutable(f).Message(), doneAt, now)
	}
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

// Tell says that it has happened.
func (b *Broadcast) Tell() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}
