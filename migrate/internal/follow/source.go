package follow

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/tabletop-emu/tabletop/facade/attr"
	ms "github.com/tabletop-emu/tabletop/internal/layout/migrationstate"
	"github.com/tabletop-emu/tabletop/migrate/internal/apply"
	"github.com/tabletop-emu/tabletop/migrate/source"
	"github.com/tabletop-emu/tabletop/migrate/stream"
)

// change is a change of an item, with its position.
type change struct {
	apply.Change
	undecided error // why it must not be applied; nil if it can be
}

// changeSource is a source of changes. The methods may be called while Run is running.
type changeSource interface {
	// Run gives changes to pass until ctx ends, pass fails, or no more can come. They count as
	// applied when pass returns nil.
	Run(ctx context.Context, pass func(context.Context, []change) error) error
	// Checkpoint returns the progress: exactly the changes up to it are applied.
	Checkpoint() ms.Checkpoint
	Status() sourceStatus
	// Tip returns a function that reports whether all changes made before the call of Tip are applied.
	Tip() (passed func() bool)
}

// sourceStatus is the state of a source.
type sourceStatus struct {
	now, watermark time.Time // watermark is the zero time if it is unknown
	rule           string    // of the watermark
	throttles      int       // calls that the source has throttled
	late           int64     // changes that came after the watermark had passed them
}

// The kinds of sources in checkpoints. That of DynamoDB Streams is "".
const (
	kindIncrements = "increments"
	kindKinesis    = "kinesis"
)

// kind returns the kind of the source that the options select, and its name in messages.
func (o *Options) kind() (kind, name string) {
	switch {
	case o.Increments != "":
		return kindIncrements, "incremental exports"
	case o.KinesisDir != "":
		return kindKinesis, "a Kinesis data stream"
	}
	return "", "DynamoDB Streams"
}

// start is where a source begins.
type start struct {
	checkpoint *ms.Checkpoint // of the same source; nil at its beginning
	since      time.Time      // all changes before it are applied
	epoch      uint16         // of the positions
	tableID    string         // of the source's table; "" if unknown
}

// epochs is the number of epochs that are reserved for a source: a stream may begin several, the last ones
// after its last checkpoint.
const epochs = 256

// nextEpoch returns the epoch of the source after that of a checkpoint.
func nextEpoch(c ms.Checkpoint) (uint16, error) {
	last := c.Epoch
	for _, sh := range c.Shards {
		last = max(last, sh.Epoch)
	}
	if last/epochs == math.MaxUint16/epochs {
		return 0, fmt.Errorf("epoch %d was the last: migrate into another table", last)
	}
	return (last/epochs + 1) * epochs, nil
}

// checkKey rejects a change whose Keys are not exactly the key of the table.
func (f *follower) checkKey(c *apply.Change) error {
	all := f.Mapping.Key().Attrs()
	fits := len(c.Key) == len(all)
	for _, k := range all {
		v, ok := c.Key[k.Name]
		fits = fits && ok && v.Type == k.Type
	}
	if fits {
		return nil
	}
	return source.Damaged(source.KeyMissing, c.At, nil, "the Keys of the change are not the key of table %s in the mapping: the table was created again with another key, or the mapping is of another table", f.Mapping.SourceTable())
}

// streamChanges are the changes of a stream.
type streamChanges struct{ *stream.Stream }

// openStream opens the stream of the table.
func (f *follower) openStream(ctx context.Context, from start) (changeSource, error) {
	o := stream.Options{
		Table: f.Mapping.SourceTable(), Since: from.since, Overlap: f.Overlap, Epoch: from.epoch, IdleMax: f.IdleMax, GiveUp: f.GiveUp,
		Now: f.Now, Sleep: f.Sleep, Jitter: f.Jitter,
	}
	if from.checkpoint != nil {
		o.Checkpoint = fromStored(*from.checkpoint)
	}
	s, err := stream.Open(ctx, f.Clients, o)
	if err != nil {
		return nil, err
	}
	if !s.OldImages {
		f.unordered = "the records of its stream lack the items before the changes (view NEW_IMAGE)"
	}
	return streamChanges{s}, nil
}

// Run implements changeSource.
func (s streamChanges) Run(ctx context.Context, pass func(context.Context, []change) error) error {
	return s.Stream.Run(ctx, func(ctx context.Context, records []stream.Record) error {
		all := make([]change, len(records))
		for i, r := range records {
			c := &all[i].Change
			c.Key, c.Now, c.Complete, c.Time = r.Keys, r.New, s.OldImages, r.Time.UnixMicro()
			c.Position = apply.PositionOf(r.Position[:])
			if r.Old != nil {
				c.Was = []attr.Item{r.Old}
			}
		}
		return pass(ctx, all)
	})
}

// Checkpoint implements changeSource.
func (s streamChanges) Checkpoint() ms.Checkpoint { return toStored(s.Stream.Checkpoint()) }

// Status implements changeSource.
func (s streamChanges) Status() sourceStatus {
	of := s.Stream.Status()
	to := sourceStatus{now: of.Now, watermark: of.Watermark, rule: of.Rule}
	for _, sh := range of.Shards {
		to.throttles += sh.Throttles
	}
	return to
}

// Tip implements changeSource.
func (s streamChanges) Tip() (passed func() bool) {
	tip := s.Stream.Tip()
	return func() bool { return s.Passed(tip) }
}
