package facade

import (
	"context"
	"errors"

	"github.com/tabletop-emu/tabletop/facade/internal/backups"
	"github.com/tabletop-emu/tabletop/facade/internal/jobs"
	"github.com/tabletop-emu/tabletop/facade/internal/kinesis"
	"github.com/tabletop-emu/tabletop/facade/internal/store"
)

// open opens the store of a catalog, and resumes its jobs and its deliveries to Kinesis.
func (o Options) open(ctx context.Context, catalog string) (*store.Store, error) {
	st, err := store.Open(ctx, o.store(catalog))
	if err != nil {
		return nil, err
	}
	if w := o.deliveries(st); w != nil {
		if err := w.Resume(ctx, o.Region); err != nil {
			return nil, errors.Join(err, st.Close())
		}
	}
	return st, nil
}

// jobKinds returns the kinds of jobs of a store.
func (o Options) jobKinds(st *store.Store) (kinds []jobs.Kind) {
	if b, ok := o.bucketJobs(st); ok {
		kinds = append(kinds, b.Kinds()...)
	}
	if w := o.deliveries(st); w != nil {
		kinds = append(kinds, w.Kind())
	}
	return append(kinds, backups.Kinds(st)...)
}

// deliveries returns the worker that delivers the changes of a store's tables to Kinesis. It
// returns nil if the options name no target.
func (o Options) deliveries(st *store.Store) *kinesis.Worker {
	if o.sink == nil {
		return nil
	}
	return &kinesis.Worker{Store: st, Sink: o.sink, Now: o.Now, Wall: o.wall, Logger: o.Logger, Most: o.maxTables}
}

// openSink opens the target of Kinesis deliveries that the options name, and sets sink. An
// error is an *OptionError.
func (o *Options) openSink() (err error) {
	o.sink, err = kinesis.OpenSink(o.KinesisEndpoint, o.KinesisDir, o.Region, o.wall)
	switch {
	case err == nil:
		return nil
	case o.KinesisEndpoint != "":
		return &OptionError{"KinesisEndpoint", err}
	}
	return &OptionError{"KinesisDir", err}
}
