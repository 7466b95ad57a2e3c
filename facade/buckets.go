package facade

import (
	"context"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/bucketjobs"
	"github.com/tabletop-emu/tabletop/facade/internal/request"
	"github.com/tabletop-emu/tabletop/facade/internal/store"
)

// bucketJobs returns the service of exports, imports and bulk operations of a store. It
// returns false if Options.Buckets is nil.
func (o Options) bucketJobs(st *store.Store) (*bucketjobs.Service, bool) {
	return bucketjobs.New(bucketjobs.Options{
		Store: st, Buckets: o.Buckets, Region: o.Region, Account: o.AccountID, Now: o.Now, Random: o.random, Wording: o.wording,
		Delay: o.StatusDelays.Create, BatchBytes: o.batchBytes,
	}), o.Buckets != nil
}

// throughBuckets calls do with the service of exports, imports and bulk operations. Without
// Options.Buckets it returns an UnknownOperationException.
func throughBuckets[In, Out any](
	ctx context.Context, s *Server, operation string, in *In, do func(*bucketjobs.Service, context.Context, *request.Validator, *In) (*Out, error),
) (*Out, error) {
	b, ok := s.opts.bucketJobs(s.store)
	if !ok {
		return nil, awserr.New(awserr.CodeUnknownOperation, awserr.MsgBucketsMissing, operation)
	}
	return do(b, ctx, &s.validator(operation).Validator, in)
}
