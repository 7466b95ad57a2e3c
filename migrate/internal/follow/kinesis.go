package follow

import (
	"context"

	"github.com/tabletop-emu/tabletop/facade/attr"
	ms "github.com/tabletop-emu/tabletop/internal/layout/migrationstate"
	"github.com/tabletop-emu/tabletop/migrate/internal/kinesis"
	"github.com/tabletop-emu/tabletop/migrate/stream"
)

// The rules of the watermark: it is the time of the newest record, or that up to which the delivery is complete,
// less an allowance.
const (
	ruleNewest    = "newest"
	ruleDelivered = "delivered"
)

// kinesisChanges are the changes of a Kinesis data stream.
type kinesisChanges struct {
	*kinesis.Folder
	f     *follower
	epoch uint16
}

// openKinesis opens the folder with the records of a Kinesis data stream.
func (f *follower) openKinesis(from start) (changeSource, error) {
	o := kinesis.Options{
		Dir: f.KinesisDir, Table: f.Mapping.SourceTable(), Since: from.since, Allowance: f.Allowance, AcceptTies: f.AcceptTies,
		Now: f.Now, Sleep: f.Sleep,
	}
	if f.Items != nil {
		items := stream.NewItems(f.Items, stream.Options{Table: o.Table, Now: f.Now, Sleep: f.Sleep, Jitter: f.Jitter, GiveUp: f.GiveUp})
		o.Fetch = func(ctx context.Context, key attr.Item) (attr.Item, error) {
			all, _, err := items.Get(ctx, key)
			if err != nil {
				return nil, err
			}
			return all[0], nil
		}
	}
	s := kinesisChanges{f: f, epoch: from.epoch}
	if c := from.checkpoint; c != nil {
		s.epoch = c.Epoch
		o.Checkpoint = &kinesis.Checkpoint{Watermark: c.Watermark}
		if of := c.Files; of != nil {
			o.Checkpoint = &kinesis.Checkpoint{Watermark: c.Watermark, Begun: of.Begun, Late: of.Late, Folded: kinesis.Folded(of.Folded)}
			for _, file := range of.Open {
				o.Checkpoint.Files = append(o.Checkpoint.Files, kinesis.File(file))
			}
		}
	}
	f.unordered = "the records of a Kinesis data stream are not delivered in order"
	var err error
	s.Folder, err = kinesis.Open(o)
	return s, err
}

// Run implements changeSource.
func (s kinesisChanges) Run(ctx context.Context, apply func(context.Context, []change) error) error {
	return s.Folder.Run(ctx, func(ctx context.Context, records []kinesis.Record) error {
		all := make([]change, len(records))
		for i, r := range records {
			c := change{Change: timed(s.epoch, r.Time, r.Tie), undecided: r.Undecided}
			c.Key, c.Was, c.Now, c.Complete, c.At = r.Keys, r.Was, r.New, r.Complete, r.At
			if err := s.f.checkKey(&c.Change); err != nil {
				return err
			}
			all[i] = c
		}
		return apply(ctx, all)
	})
}

// Checkpoint implements changeSource.
func (s kinesisChanges) Checkpoint() ms.Checkpoint {
	c := s.Folder.Checkpoint()
	of := &ms.Files{Begun: c.Begun, Late: c.Late, Folded: ms.Folded(c.Folded)}
	for _, file := range c.Files {
		of.Open = append(of.Open, ms.File(file))
	}
	return ms.Checkpoint{Epoch: s.epoch, Watermark: c.Watermark, Files: of}
}

// Status implements changeSource.
func (s kinesisChanges) Status() sourceStatus {
	of := s.Folder.Status()
	to := sourceStatus{now: s.f.Now(), watermark: of.Watermark, rule: ruleNewest, late: of.Late}
	if of.Delivered {
		to.rule = ruleDelivered
	}
	return to
}
