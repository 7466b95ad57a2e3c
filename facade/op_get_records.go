package facade

import (
	"cmp"
	"context"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/changelog"
	"github.com/tabletop-emu/tabletop/facade/internal/streams"
)

type getRecordsInput struct {
	ShardIterator *string
	Limit         *int32
}

// getRecords returns the records of a shard, beginning at the position of an iterator.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_streams_GetRecords.html
func (s *Server) getRecords(ctx context.Context, in *getRecordsInput) (*streams.Records, error) {
	v := s.validator("GetRecords")
	v.Required("ShardIterator", in.ShardIterator != nil)
	v.Length("ShardIterator", in.ShardIterator, 1, maxShardIterator)
	limit := v.page(in.Limit, maxRecords)
	if err := v.Constrained(); err != nil {
		return nil, err
	}
	it, ok := streams.ParseIterator(*in.ShardIterator)
	if !ok {
		return nil, awserr.Validation(awserr.MsgInvalidIterator)
	}
	now := s.opts.Now()
	if it.Expired(now) {
		return nil, awserr.New(awserr.CodeExpiredIterator, awserr.MsgExpiredIterator)
	}
	of, err := s.streamOfIterator(ctx, &it)
	if err != nil {
		return nil, err
	}
	if of.t == nil {
		return nil, awserr.ResourceNotFound(awserr.MsgResourceNotFound)
	}
	from := it.From
	if from.Sequence < of.Trim {
		if !it.Trims {
			return nil, awserr.New(awserr.CodeTrimmedData, awserr.MsgTrimmedData)
		}
		from = changelog.Position{Sequence: of.Trim}
	}
	end := of.End(it.Shard)
	before := min(end, of.Floor)
	out := &streams.Records{View: of.View, Region: s.opts.Region, TableID: of.t.ID, Complete: before}
	next := changelog.Position{Sequence: max(before, from.Sequence)}
	most, size := cmp.Or(s.opts.batchBytes, maxRecordsBytes), 0
	for r, err := range s.store.ReadLog(ctx, of.t.Log, uint16(it.Shard.Slot), from, before, limit+1) {
		if err != nil {
			return nil, err
		}
		r.Record = r.Seen(of.Stream.View)
		size += r.Key.Size + r.Old.Size + r.New.Size
		if len(out.Records) == limit || size > most && len(out.Records) > 0 {
			next = r.At
			out.Complete = r.At.Sequence
			break
		}
		out.Records = append(out.Records, r)
	}
	if next.Sequence < end {
		it.From, it.Issued, it.Trims = next, now.UnixMilli(), false
		text := it.String()
		out.Next = &text
	}
	return out, nil
}

// streamOfIterator returns the stream of an iterator. If the stream does not exist, t is nil in
// the result. A cached definition of the table suffices, because the iterator has the table's
// id; consumers poll often.
func (s *Server) streamOfIterator(ctx context.Context, it *streams.Iterator) (openStream, error) {
	if t, err := s.store.Table(ctx, it.Table); err == nil && t.ID == it.TableID {
		if o, ok, err := s.openStream(ctx, t, it.Label); ok {
			return o, err
		}
	}
	return s.streamOf(ctx, it.Table, it.TableID, it.Label)
}
