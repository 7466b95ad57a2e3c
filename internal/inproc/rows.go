package inproc

import (
	"context"
	"io"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/cells"
)

// ReadRows begins a ReadRows call whose handler may pass rows to a sink, which costs less than
// chunks in messages. Each message confirms the rows before it, and may be empty; rows that no
// message confirms are void. The sink gets no labels. The caller must read the stream to its end,
// close end, or cancel ctx. With Options.Clone, or if an interceptor replaces the handler's stream,
// all rows arrive in messages.
func (c *Channel) ReadRows(ctx context.Context, req *btpb.ReadRowsRequest, rows cells.RowSink) (stream btpb.Bigtable_ReadRowsClient, end io.Closer, err error) {
	s, err := c.open(ctx, nil, btpb.Bigtable_ReadRows_FullMethodName, nil)
	if err != nil {
		return nil, nil, err
	}
	if !c.opts.Clone {
		s.rows = rows
	}
	if err := s.SendMsg(req); err != nil {
		_ = rowStream{s}.Close()
		return nil, nil, err
	}
	return rowStream{s}, rowStream{s}, nil
}

// SinkOf returns the sink for the rows of a handler's stream, or nil if the client takes messages.
// The handler must send a message after the last row that it passes.
func SinkOf(stream grpc.ServerStream) cells.RowSink {
	if ss, ok := stream.(*serverStream); ok {
		return ss.s.rows
	}
	return nil
}

// rowStream is the client's side of a ReadRows call.
type rowStream struct{ *clientStream }

// Recv returns the next message, which belongs to the handler.
func (s rowStream) Recv() (*btpb.ReadRowsResponse, error) {
	msg, err := s.receive()
	if err != nil {
		return nil, err
	}
	resp, ok := msg.(*btpb.ReadRowsResponse)
	if !ok {
		return nil, status.Errorf(codes.Internal, "inproc: %s sent a %T", s.cl.method, msg)
	}
	return resp, nil
}

// Close ends the call.
func (s rowStream) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finishLocked(errClosed)
	return nil
}

var errClosed = status.Error(codes.Canceled, context.Canceled.Error())
