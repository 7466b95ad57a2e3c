// Package peer wraps Google's bttest so that tests can rely on it as a Bigtable.
//
// It serves one call at a time: the reads of bttest share the list of a row's
// columns with its writes, so that a cell of a row can be missing from a read or
// occur twice. Bigtable reads a row as it is at one moment.
//
// It collects no garbage: bttest does so by the time of day, by which the cells of
// a test with a frozen clock may have any age.
package peer

import (
	"context"
	"sync"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc"
)

const maxReceiveBytes = 256 << 20 // gRPC's own bound is 4 MiB

// ServerOptions returns the options of a server that serves one call at a time
// and knows no rules of garbage collection. What a stream answers is held until
// its handler has returned, so that no client waits for one that reads slowly;
// its messages must not be changed once they are sent. It takes messages as
// large as the service does.
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

// forgetRules takes the rules of garbage collection out of a request.
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

// heldStream keeps what is sent. Its turn comes with the first message from the
// client, who may have other calls to make before that.
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
