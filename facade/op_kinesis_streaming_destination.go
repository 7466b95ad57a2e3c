package facade

import (
	"context"

	"github.com/tabletop-emu/tabletop/facade/internal/kinesis"
	"github.com/tabletop-emu/tabletop/facade/internal/request"
)

// destinations returns the implementation of an operation on Kinesis destinations.
func (s *Server) destinations(operation string) kinesis.Operations {
	return kinesis.Operations{
		Store: s.store, Worker: s.opts.deliveries(s.store), Validator: s.validator(operation).Validator,
		Now: s.opts.Now(), Delay: s.opts.StatusDelays.Update, Region: s.opts.Region,
	}
}

// kinesisAnswer returns out, and err as converted by controlError for the table of the request.
func kinesisAnswer(in *kinesis.Input, out *kinesis.Output, err error) (*kinesis.Output, error) {
	if err != nil && in.TableName != nil {
		err = controlError(err, request.TableOfARN(*in.TableName))
	}
	return out, err
}

// enableKinesisStreamingDestination starts to deliver the changes of a table to a stream.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_EnableKinesisStreamingDestination.html
func (s *Server) enableKinesisStreamingDestination(ctx context.Context, in *kinesis.Input) (*kinesis.Output, error) {
	out, err := s.destinations("EnableKinesisStreamingDestination").Enable(ctx, in)
	return kinesisAnswer(in, out, err)
}

// disableKinesisStreamingDestination ends the delivery to a stream.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_DisableKinesisStreamingDestination.html
func (s *Server) disableKinesisStreamingDestination(ctx context.Context, in *kinesis.Input) (*kinesis.Output, error) {
	out, err := s.destinations("DisableKinesisStreamingDestination").Disable(ctx, in)
	return kinesisAnswer(in, out, err)
}

// updateKinesisStreamingDestination changes the precision of the times in delivered records.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateKinesisStreamingDestination.html
func (s *Server) updateKinesisStreamingDestination(ctx context.Context, in *kinesis.Input) (*kinesis.Output, error) {
	out, err := s.destinations("UpdateKinesisStreamingDestination").Update(ctx, in)
	return kinesisAnswer(in, out, err)
}

// describeKinesisStreamingDestination returns the current and former destinations of a
// table's changes.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_DescribeKinesisStreamingDestination.html
func (s *Server) describeKinesisStreamingDestination(ctx context.Context, in *tableInput) (*kinesis.WorkerDescription, error) {
	t, err := s.settledTable(ctx, "DescribeKinesisStreamingDestination", in.TableName)
	if err != nil {
		return nil, err
	}
	return kinesis.Describe(t, s.opts.Now()), nil
}

// KinesisWaiting calls visit with the changes that are pending for Kinesis data streams,
// in their delivered form. It visits table by table, and the changes for each stream in
// order.
func (s *Server) KinesisWaiting(ctx context.Context, visit func(streamARN string, record []byte) error) error {
	for name, err := range s.tableNames(ctx, "") {
		if err != nil {
			return err
		}
		t, err := s.store.TableNow(ctx, name)
		if err != nil {
			continue // the table was deleted, or its mapping is missing
		}
		if err := kinesis.Waiting(ctx, s.store, t, s.opts.Region, s.opts.Now(), visit); err != nil {
			return err
		}
	}
	return nil
}
