package tabletsim

import (
	"context"
	"errors"
	"io"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// conn is the connection of a part to the service, with half a round trip each way.
type conn struct {
	s     *service
	until func(ctx context.Context, t time.Duration) error // waits until t
}

// Invoke implements grpc.ClientConnInterface; a stream of rows makes no such call.
func (conn) Invoke(_ context.Context, method string, _, _ any, _ ...grpc.CallOption) error {
	return status.Errorf(codes.Unimplemented, "the model has no %s", method)
}

// NewStream implements grpc.ClientConnInterface.
func (c conn) NewStream(ctx context.Context, _ *grpc.StreamDesc, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	return &stream{c: c, ctx: ctx}, nil
}

// stream is a call with at most one message.
type stream struct {
	c      conn
	ctx    context.Context // of the call
	done   time.Duration   // time of the answer
	answer *btpb.MutateRowsResponse
	err    error // final error
}

// SendMsg implements grpc.ClientStream: it sends and serves the request.
func (s *stream) SendMsg(m any) error {
	service := s.c.s
	if err := s.c.until(s.ctx, service.now()+service.p.Wire/2); err != nil {
		return status.FromContextError(err).Err()
	}
	switch req := m.(type) {
	case *btpb.MutateRowsRequest:
		s.answer, s.done, s.err = service.write(req.GetEntries())
	case *btpb.ReadRowsRequest:
		s.done, s.err = service.read(req.GetRows().GetRowKeys())
	default:
		return status.Errorf(codes.Unimplemented, "the model has no answer to a %T", m)
	}
	if s.err == nil {
		s.err = io.EOF
	}
	s.done += service.p.Wire / 2
	return nil
}

// RecvMsg implements grpc.ClientStream: it receives the answer.
func (s *stream) RecvMsg(m any) error {
	if s.done > 0 {
		if err := s.c.until(s.ctx, s.done); err != nil {
			return status.FromContextError(err).Err()
		}
		s.done = 0
	}
	if s.answer == nil {
		return s.err
	}
	to, ok := m.(*btpb.MutateRowsResponse)
	if !ok {
		return errors.New("the answer is one of MutateRows")
	}
	to.Entries, to.RateLimitInfo = s.answer.GetEntries(), s.answer.GetRateLimitInfo()
	s.answer = nil
	return nil
}

// Header implements grpc.ClientStream.
func (*stream) Header() (metadata.MD, error) { return nil, nil }

// Trailer implements grpc.ClientStream.
func (*stream) Trailer() metadata.MD { return nil }

// CloseSend implements grpc.ClientStream.
func (*stream) CloseSend() error { return nil }

// Context implements grpc.ClientStream.
func (s *stream) Context() context.Context { return s.ctx }
