package streams

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tabletop-emu/tabletop/facade/internal/changelog"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
)

// View is the state of a stream at a given time.
type View struct {
	Stream *tabledef.Stream
	// Floor is the sequence number below which no more records are added. Trim is the
	// number below which records are trimmed.
	Floor, Trim uint64
}

// At returns the view of a stream at a given time, with its records up to floor.
func At(s *tabledef.Stream, floor uint64, now time.Time) View {
	return View{s, floor, changelog.SequenceAt(now.Add(-s.Kept()))}
}

// Shard is one slot of a stream in one generation.
type Shard struct {
	Generation uint64
	Slot       int
}

const shardPrefix = "shardId-"

// ID returns the id of a shard, which consists of its start in milliseconds and its slot.
func (v View) ID(sh Shard) string {
	return fmt.Sprintf("%s%020d-%08x", shardPrefix, v.Stream.Shards.Begin(sh.Generation)/uint64(time.Millisecond), sh.Slot)
}

// Find returns the shard with a given id. ok is false if that shard never existed or was
// trimmed.
func (v View) Find(id string) (sh Shard, ok bool) {
	ms, slot, ok := strings.Cut(strings.TrimPrefix(id, shardPrefix), "-")
	begin, err := strconv.ParseUint(ms, 10, 43) // limits ms so that nanoseconds do not overflow
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

// first and last return the range of listed generations.
func (v View) first() uint64 { return v.Stream.Shards.Generation(v.Trim) }

func (v View) last() uint64 {
	if v.Stream.Until != 0 {
		return v.Stream.Shards.Generation(v.Stream.Until - 1)
	}
	return v.Stream.Shards.Generation(v.Floor)
}

// Begin returns the sequence number at which a shard begins.
func (v View) Begin(sh Shard) uint64 { return v.Stream.Shards.Begin(sh.Generation) }

// End returns the sequence number at which a shard ends. That number is not part of the
// shard.
func (v View) End(sh Shard) uint64 {
	end := v.Stream.Shards.Begin(sh.Generation + 1)
	if until := v.Stream.Until; until != 0 && until < end {
		return until
	}
	return end
}

// Closed reports whether a shard no longer accepts records.
func (v View) Closed(sh Shard) bool { return v.Floor >= v.End(sh) }

// Parent returns the shard that held the same partitions in the previous generation.
func (v View) Parent(sh Shard) (parent Shard, ok bool) {
	if sh.Generation == 0 {
		return parent, false
	}
	return Shard{sh.Generation - 1, sh.Slot % v.Stream.Shards.SlotsOf(sh.Generation-1)}, true
}

// List returns up to limit shards that follow a given id, sorted by id. The id "" means
// the beginning. more reports whether others follow.
func (v View) List(after string, limit int) (shards []Shard, more bool) {
	sh := Shard{Generation: v.first()}
	// The shard after may not exist; its start gives the position anyway.
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

// Children returns the shards that hold the partitions of a shard in the next generation.
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

// ShardDescription describes a shard in a response.
type ShardDescription struct {
	ParentShardID       string `json:"ParentShardId,omitzero"`
	SequenceNumberRange SequenceRange
	ShardID             string `json:"ShardId"`
}

// SequenceRange holds the first and the last sequence number of a shard. An open shard
// has no last one.
type SequenceRange struct {
	EndingSequenceNumber   string `json:",omitzero"`
	StartingSequenceNumber string
}

// Describe returns the description of a shard.
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

// Status returns the status of a table's stream, which changes together with that of the
// table.
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
