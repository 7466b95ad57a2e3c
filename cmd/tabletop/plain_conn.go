package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/internal/btclient"
)

// plainConn is a connection to a Bigtable that speaks plain gRPC, as emulators do. It
// knows one that does not: a server of TLS ends a connection in plain text without a
// word, which looks like one that is not there yet.
type plainConn struct {
	*grpc.ClientConn
	secured *atomic.Bool // the server speaks TLS
	advice  string       // what to do then
}

// dialBigtable connects to a Bigtable that speaks plain gRPC; advice is what to do
// about one that speaks TLS.
func dialBigtable(addr, advice string, options ...grpc.DialOption) (*plainConn, error) {
	c := &plainConn{secured: &atomic.Bool{}, advice: advice}
	options = append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		btclient.TellUnsent(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageBytes), grpc.MaxCallSendMsgSize(maxMessageBytes)),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
			if err != nil {
				return nil, err
			}
			return &firstWords{Conn: conn, secured: c.secured}, nil
		}),
	}, options...)
	var err error
	c.ClientConn, err = grpc.NewClient(asItIs+addr, options...)
	return c, err
}

// asItIs lets package grpc take an address without resolving it.
const asItIs = "passthrough:///"

// Target names the server in errors.
func (c *plainConn) Target() string { return strings.TrimPrefix(c.ClientConn.Target(), asItIs) }

// Invoke implements grpc.ClientConnInterface.
func (c *plainConn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	return c.explain(c.ClientConn.Invoke(ctx, method, args, reply, opts...))
}

// NewStream implements grpc.ClientConnInterface.
func (c *plainConn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := c.ClientConn.NewStream(ctx, desc, method, opts...)
	return stream, c.explain(err)
}

// explain is the error of a call, or that it can never be answered.
func (c *plainConn) explain(err error) error {
	if err == nil || !c.secured.Load() {
		return err
	}
	return status.Errorf(codes.FailedPrecondition, "the server speaks TLS, and was spoken to in plain text: %s", c.advice)
}

// firstWords is a connection until its server has said something.
type firstWords struct {
	net.Conn
	heard   bool // what came first was no TLS; only Read has it
	secured *atomic.Bool
}

// tlsAlert begins what some servers of TLS answer to plain text.
const tlsAlert = 0x15

// Read implements net.Conn.
func (c *firstWords) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.heard {
		return n, err
	}
	switch {
	case n > 0 && p[0] != tlsAlert:
		c.heard = true
	case n > 0, err != nil && speaksTLS(c.RemoteAddr()):
		c.secured.Store(true)
		return 0, fmt.Errorf("the server speaks TLS: %w", io.ErrUnexpectedEOF)
	}
	return n, err
}

// tlsPatience is how long a server that said nothing may take to begin a handshake.
const tlsPatience = 3 * time.Second

// speaksTLS asks a server for a handshake. Nothing is sent behind it: whose
// certificate it is does not matter here.
func speaksTLS(addr net.Addr) bool {
	d := tls.Dialer{NetDialer: &net.Dialer{Timeout: tlsPatience}, Config: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}} //nolint:gosec // see above
	ctx, cancel := context.WithTimeout(context.Background(), tlsPatience)
	defer cancel()
	conn, err := d.DialContext(ctx, addr.Network(), addr.String())
	if err != nil {
		return false
	}
	_ = conn.Close() // nothing was said
	return true
}
