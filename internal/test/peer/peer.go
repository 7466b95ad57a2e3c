// Package peer opens the Bigtables that the tests of the DynamoDB endpoint use. For tests on
// Google's bttest, it has server options that make bttest reliable.
//
// A server with these options serves one call at a time, since reads of bttest share the list of
// a row's columns with writes: a read can miss a cell or return it twice. Bigtable reads a row at
// one moment.
//
// It does not collect garbage, because bttest uses the wall clock, and the cells of a test with a
// frozen clock may have any age.
package peer

import (
	"context"
	"sync"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc"
)

const maxReceiveBytes = 256 << 20 // gRPC's own limit is 4 MiB

// ServerOptions returns options for a server that serves one call at a time and ignores
// garbage-collection rules. The server holds the responses of a stream until the handler has
// returned, so that a slow reader does not delay other clients; handlers must not change sent
// messages. It accepts messages as large as the service does.
func ServerOptions() []grpc.ServerOption {
	var mu sync.Mutex
	unary := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		forgetRules(req)
		mu.Lock()
		defer mu.Unlock()
		return handler(ctx, req)
	}
	stream := func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		held := &heldStream{ServerStream: stream, turn: &mu}
		err := held.serve(srv, handler)
		for _, m := range held.messages {
			if sendErr := stream.SendMsg(m); sendErr != nil {
				return sendErr
			}
		}
		return err
	}
	return []grpc.ServerOption{grpc.UnaryInterceptor(unary), grpc.StreamInterceptor(stream), grpc.MaxRecvMsgSize(maxReceiveBytes)}
}

// forgetRules removes the garbage-collection rules from a request.
func forgetRules(req any) {
	switch req := req.(type) {
	case *btapb.CreateTableRequest:
		for _, family := range req.GetTable().GetColumnFamilies() {
			family.GcRule = nil
		}
	case *btapb.ModifyColumnFamiliesRequest:
		for _, m := range req.GetModifications() {
			for _, family := range []*btapb.ColumnFamily{m.GetCreate(), m.GetUpdate()} {
				if family != nil {
					family.GcRule = nil
				}
			}
		}
	}
}

// heldStream holds the sent messages. Its turn begins with the first message from the client, which
// may make other calls before that.
type heldStream struct {
	grpc.ServerStream
	turn     *sync.Mutex
	ours     bool // turn is held
	messages []any
}

func (s *heldStream) serve(srv any, handler grpc.StreamHandler) error {
	defer func() {
		if s.ours {
			s.turn.Unlock()
		}
	}()
	return handler(srv, s)
}

// RecvMsg implements grpc.ServerStream.
func (s *heldStream) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	if !s.ours {
		s.turn.Lock()
		s.ours = true
	}
	return err
}

// SendMsg implements grpc.ServerStream.
func (s *heldStream) SendMsg(m any) error {
	s.messages = append(s.messages, m)
	return nil
}
