package stream

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// state is the progress of a shard.
type state uint8

const (
	waiting state = iota // for its parent
	reading
	done // applied to its end, or trimmed before it was begun
)

// shard is a shard that is listed, or that a checkpoint has.
type shard struct {
	id, parent string
	state      state
	listed     bool
	kept       bool // records of its lineage were kept: it belongs to the checkpoint once begun
	begun      bool // the checkpoint has it: its loss would be a gap
	epoch      uint16
	sequence   string // of the last applied record; "" if none
	before     string // the last sequence number of the parent's lineage
	watermark  time.Time
	idle       uint64 // the number of the latest call after which everything was applied
	throttles  int
}

// lineage has the shards of a stream and their progress. Its methods call nothing.
type lineage struct {
	shards map[string]*shard
	from   time.Time // records before it are dropped, until one is kept
	epoch  uint16    // of shards whose parent is unknown
	floor  time.Time // the watermark at the beginning
	listed bool      // the shards are known
	ended  bool      // the stream is disabled, and all its records were applied
}

// restore adds the shards of a checkpoint.
func (l *lineage) restore(shards []ShardCheckpoint) {
	for _, c := range shards {
		sh := &shard{
			id: c.ID, parent: c.Parent, kept: true, begun: true, epoch: c.Epoch,
			sequence: c.Sequence, before: c.Before, watermark: c.Watermark,
		}
		if c.Done {
			sh.state = done
		}
		l.shards[sh.id] = sh
	}
}

// list takes all shards that the source describes. It returns those to read now, or one whose
// records can no longer be read. disabled: the source adds no shards any more.
func (l *lineage) list(described []types.Shard, disabled bool) (start []*shard, lost *shard) {
	least := l.watermark() // it covers unknown shards too
	for _, sh := range l.shards {
		sh.listed = false
	}
	for _, d := range described {
		id := aws.ToString(d.ShardId)
		sh := l.shards[id]
		if sh == nil {
			sh = &shard{id: id, epoch: l.epoch, kept: l.from.IsZero(), watermark: least}
			l.shards[id] = sh
		}
		sh.listed, sh.parent = true, aws.ToString(d.ParentShardId)
	}
	for _, sh := range l.sorted() {
		if p := l.shards[sh.parent]; p != nil && p.state == done {
			p.pass(sh)
		}
	}
	parents := l.parents()
	for _, sh := range l.sorted() {
		// The calls that read a shard find out whether they can continue.
		if !sh.listed && sh.begun && (sh.state == waiting || sh.state == done && !parents[sh.id]) {
			return nil, sh
		}
	}
	for id, sh := range l.shards {
		// A shard that was trimmed before it was begun. One that is done is needed while a shard
		// may still name it.
		if !sh.listed && (sh.state == waiting || sh.state == done && l.shards[sh.parent] == nil) {
			delete(l.shards, id)
		}
	}
	l.listed, l.ended = l.listed || len(described) > 0, disabled
	for _, sh := range l.sorted() {
		l.ended = l.ended && sh.state == done
		if p := l.shards[sh.parent]; sh.state == waiting && (p == nil || p.state == done) {
			sh.state = reading
			start = append(start, sh)
		}
	}
	return start, nil
}

// parents returns the shards with a known child.
func (l *lineage) parents() map[string]bool {
	parents := map[string]bool{}
	for _, sh := range l.shards {
		parents[sh.parent] = true
	}
	return parents
}

// sorted returns the shards in the order of their ids.
func (l *lineage) sorted() []*shard {
	return slices.SortedFunc(maps.Values(l.shards), func(a, b *shard) int { return strings.Compare(a.id, b.id) })
}

// pass passes the state of a parent that is done to its child.
func (sh *shard) pass(child *shard) {
	if child.state != waiting || child.begun {
		return
	}
	child.raise(sh.watermark)
	if !sh.begun {
		return // the numbers of dropped records do not count: another run may not see them
	}
	child.kept, child.begun, child.epoch, child.before = true, true, sh.epoch, sh.sequence
	if sh.sequence == "" {
		child.before = sh.before
	}
}

// raise moves the watermark of a shard, forward only.
func (sh *shard) raise(to time.Time) {
	if to.After(sh.watermark) {
		sh.watermark = to
	}
}

// apply notes that everything up to an answer was applied.
func (l *lineage) apply(sh *shard, a *answer) {
	if a.sequence != "" {
		sh.kept, sh.begun, sh.sequence, sh.epoch = true, true, a.sequence, a.epoch
	}
	sh.raise(a.watermark)
	sh.idle = max(sh.idle, a.idle)
	if !a.end {
		return
	}
	sh.state, sh.begun = done, sh.kept && !a.trimmed
	for _, child := range l.shards {
		if child.parent == sh.id {
			sh.pass(child)
		}
	}
}

// open yields the shards whose records are still to come, and those whose children are unknown:
// those of a waiting shard come after those of its parent.
func (l *lineage) open(yield func(*shard) bool) {
	parents := l.parents()
	for _, sh := range l.shards {
		p := l.shards[sh.parent]
		if sh.state == done && parents[sh.id] || sh.state == waiting && p != nil && p.state != done {
			continue
		}
		if !yield(sh) {
			return
		}
	}
}

// watermark returns the least watermark; the zero time if one is unknown.
func (l *lineage) watermark() (least time.Time) {
	if !l.listed {
		return l.floor
	}
	first := true
	for sh := range l.open {
		if first || sh.watermark.Before(least) {
			least, first = sh.watermark, false
		}
	}
	return least
}

// checkpoint returns the state of all shards that were begun.
func (l *lineage) checkpoint() (shards []ShardCheckpoint) {
	for _, sh := range l.sorted() {
		if sh.begun {
			shards = append(shards, ShardCheckpoint{
				ID: sh.id, Parent: sh.parent, Epoch: sh.epoch, Sequence: sh.sequence, Before: sh.before,
				Done: sh.state == done, Watermark: sh.watermark,
			})
		}
	}
	return shards
}
