// Package streams serves the change log of a table as DynamoDB Streams: the shards that a
// stream has at a time, iterators, and records in the form of answers. It stores nothing:
// shards follow from the start of the stream and its rotation, and iterators contain their
// whole state.
package streams

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tabletop-emu/tabletop/facade/internal/changelog"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
)

// View is a stream as of a time.
type View struct {
	Stream *tabledef.Stream
	// Floor is the sequence number below which nothing is added any more; Trim the one
	// from which on records are still there.
	Floor, Trim uint64
}

// At returns a stream as of a time, read up to floor.
func At(s *tabledef.Stream, floor uint64, now time.Time) View {
	return View{s, floor, changelog.SequenceAt(now.Add(-s.Kept()))}
}

// Shard is the part of a stream that a slot has in a generation.
type Shard struct {
	Generation uint64
	Slot       int
}

const shardPrefix = "shardId-"

// ID returns the name of a shard: when it begins, in milliseconds, and its slot.
func (v View) ID(sh Shard) string {
	return fmt.Sprintf("%s%020d-%08x", shardPrefix, v.Stream.Shards.Begin(sh.Generation)/uint64(time.Millisecond), sh.Slot)
}

// Find returns the shard of a name. ok is false where the stream never had it, or
// nothing of it is left.
func (v View) Find(id string) (sh Shard, ok bool) {
	ms, slot, ok := strings.Cut(strings.TrimPrefix(id, shardPrefix), "-")
	begin, err := strconv.ParseUint(ms, 10, 43) // so that nanoseconds do not overflow
	n, err2 := strconv.ParseUint(slot, 16, 16)
	if !ok || err != nil || err2 != nil {
		return sh, false
	}
	sh = Shard{v.Stream.Shards.Generation(begin * uint64(time.Millisecond)), int(n)}
	return sh, v.exists(sh) && v.ID(sh) == id
}

func (v View) exists(sh Shard) bool {
	return sh.Generation >= v.first() && sh.Generation <= v.last() && sh.Slot < v.Stream.Shards.SlotsOf(sh.Generation)
}

// first and last are the generations that are listed.
func (v View) first() uint64 { return v.Stream.Shards.Generation(v.Trim) }

func (v View) last() uint64 {
	if v.Stream.Until != 0 {
		return v.Stream.Shards.Generation(v.Stream.Until - 1)
	}
	return v.Stream.Shards.Generation(v.Floor)
}

// Begin and End are the sequence numbers that a shard begins at and ends before.
func (v View) Begin(sh Shard) uint64 { return v.Stream.Shards.Begin(sh.Generation) }

// End is behind Begin.
func (v View) End(sh Shard) uint64 {
	end := v.Stream.Shards.Begin(sh.Generation + 1)
	if until := v.Stream.Until; until != 0 && until < end {
		return until
	}
	return end
}

// Closed reports whether a shard takes no more records.
func (v View) Closed(sh Shard) bool { return v.Floor >= v.End(sh) }

// Parent returns the shard whose partitions a shard has.
func (v View) Parent(sh Shard) (parent Shard, ok bool) {
	if sh.Generation == 0 {
		return parent, false
	}
	return Shard{sh.Generation - 1, sh.Slot % v.Stream.Shards.SlotsOf(sh.Generation-1)}, true
}

// List returns up to limit shards behind a name ("": from the first), in the order of
// names, and whether there are more.
func (v View) List(after string, limit int) (shards []Shard, more bool) {
	sh := Shard{Generation: v.first()}
	// What the name begins with may be of no shard: then it goes on behind it.
	if ms, _, ok := strings.Cut(strings.TrimPrefix(after, shardPrefix), "-"); ok {
		if begin, err := strconv.ParseUint(ms, 10, 43); err == nil {
			sh.Generation = max(sh.Generation, v.Stream.Shards.Generation(begin*uint64(time.Millisecond)))
		}
	}
	for ; sh.Generation <= v.last(); sh = (Shard{Generation: sh.Generation + 1}) {
		for ; sh.Slot < v.Stream.Shards.SlotsOf(sh.Generation); sh.Slot++ {
			if after != "" && v.ID(sh) <= after {
				continue
			}
			if len(shards) == limit {
				return shards, true
			}
			shards = append(shards, sh)
		}
	}
	return shards, false
}

// Children returns the shards that go on with the partitions of one.
func (v View) Children(of Shard) (shards []Shard) {
	next := of.Generation + 1
	if !v.exists(of) || next > v.last() {
		return nil
	}
	for slot := of.Slot; slot < v.Stream.Shards.SlotsOf(next); slot += v.Stream.Shards.SlotsOf(of.Generation) {
		shards = append(shards, Shard{next, slot})
	}
	return shards
}

// ShardDescription is how answers describe a shard.
type ShardDescription struct {
	ParentShardID       string `json:"ParentShardId,omitzero"`
	SequenceNumberRange SequenceRange
	ShardID             string `json:"ShardId"`
}

// SequenceRange is where a shard begins and ends; one that is open does not.
type SequenceRange struct {
	EndingSequenceNumber   string `json:",omitzero"`
	StartingSequenceNumber string
}

// Describe describes a shard.
func (v View) Describe(sh Shard) ShardDescription {
	d := ShardDescription{ShardID: v.ID(sh)}
	d.SequenceNumberRange.StartingSequenceNumber = changelog.Position{Sequence: v.Begin(sh)}.String()
	if v.Closed(sh) {
		d.SequenceNumberRange.EndingSequenceNumber = changelog.Position{Sequence: v.End(sh) - 1, Writer: 1<<16 - 1}.String()
	}
	if parent, ok := v.Parent(sh); ok {
		d.ParentShardID = v.ID(parent)
	}
	return d
}

// Status is that of a stream of a table: while the table changes it does too.
func (v View) Status(t *tabledef.Table) string {
	changing := t.Status != tabledef.StatusActive && v.Stream.Label == t.StreamLabel
	switch {
	case v.Stream.Until == 0 && changing:
		return "ENABLING"
	case v.Stream.Until == 0:
		return "ENABLED"
	case changing && t.Status != tabledef.StatusDeleting:
		return "DISABLING"
	default:
		return "DISABLED"
	}
}
