package server

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
)

const (
	// target names the server in this process. It is never resolved.
	target = "passthrough:///tabletop"
	// maxMessageBytes is the limit for received and sent messages, as in the official clients
	// against the cloud.
	maxMessageBytes = 256 << 20
	// bufconnBytes is the buffer of the in-process listener. A connection has two, which are
	// allocated at its start; gRPC writes up to this size at once.
	bufconnBytes = 32 << 10
	// clientReadBytes is the size of a client's read, unless it waits for more.
	clientReadBytes = 4 << 10
)

// Connect returns the connection that all clients share.
func (s *Server) Connect() (*grpc.ClientConn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		return s.conn, nil
	}
	lis := bufconn.Listen(bufconnBytes)
	conn, err := grpc.NewClient(target,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }),
		// A large buffer saves system calls, which this connection does not make.
		grpc.WithReadBufferSize(clientReadBytes),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageBytes), grpc.MaxCallSendMsgSize(maxMessageBytes)))
	if err != nil {
		return nil, err
	}
	s.serveLocked(lis)
	s.conn = conn
	return conn, nil
}

// ClientConn returns a connection for a single client. Official clients close their connection, so
// they cannot use that of Connect directly. Calls still go through the shared connection, because
// another handshake would cost half as much as opening the store.
//
// Its calls carry the given header pairs.
func (s *Server) ClientConn(tb testing.TB, header ...string) *grpc.ClientConn {
	tb.Helper()
	s.Use(tb)
	shared, err := s.Connect()
	if err != nil {
		tb.Fatalf("testkit: %v", err)
	}
	conn, err := grpc.NewClient(target,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(over{shared, header}.unary),
		grpc.WithStreamInterceptor(over{shared, header}.stream))
	if err != nil {
		tb.Fatalf("testkit: %v", err)
	}
	return conn
}

// over is a connection that sends its calls over a shared connection while it is open. It has no
// separate network connection.
type over struct {
	shared *grpc.ClientConn
	header []string
}

// carrying adds o.header to the outgoing metadata of ctx.
func (o over) carrying(ctx context.Context) context.Context {
	if len(o.header) == 0 {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, o.header...)
}

func (o over) unary(ctx context.Context, method string, req, resp any, conn *grpc.ClientConn, _ grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if conn.GetState() == connectivity.Shutdown {
		return errClientClosed
	}
	return o.shared.Invoke(o.carrying(ctx), method, req, resp, opts...)
}

func (o over) stream(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, _ grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if conn.GetState() == connectivity.Shutdown {
		return nil, errClientClosed
	}
	return o.shared.NewStream(o.carrying(ctx), desc, method, opts...)
}

// errClientClosed is gRPC's error for a call over a closed connection.
var errClientClosed = status.Error(codes.Canceled, "grpc: the client connection is closing")
