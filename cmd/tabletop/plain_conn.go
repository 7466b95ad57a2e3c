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

// plainConn is a connection to a Bigtable over plain gRPC, as emulators use. It detects TLS
// servers, which silently close a plain-text connection, like a server that is still starting.
type plainConn struct {
	*grpc.ClientConn
	secured *atomic.Bool // the server uses TLS
	advice  string       // advice for that case
}

// dialBigtable connects to a Bigtable over plain gRPC; advice is shown if the server uses TLS.
func dialBigtable(addr, advice string, options ...grpc.DialOption) (*plainConn, error) {
	c := &plainConn{secured: &atomic.Bool{}, advice: advice}
	options = append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		btclient.ReportUnsent(),
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

// asItIs makes package grpc use an address without resolving it.
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

// explain returns the error of a call, or a permanent error if the server uses TLS.
func (c *plainConn) explain(err error) error {
	if err == nil || !c.secured.Load() {
		return err
	}
	return status.Errorf(codes.FailedPrecondition, "the server uses TLS, but was called in plain text: %s", c.advice)
}

// firstWords is a connection that checks the first bytes of its server.
type firstWords struct {
	net.Conn
	heard   bool // the first bytes were not TLS; used only by Read
	secured *atomic.Bool
}

// tlsAlert is the first byte of some TLS servers' answer to plain text.
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
		return 0, fmt.Errorf("the server uses TLS: %w", io.ErrUnexpectedEOF)
	}
	return n, err
}

// tlsPatience is how long a silent server may take to begin a handshake.
const tlsPatience = 3 * time.Second

// speaksTLS tries a TLS handshake with a server. It sends nothing after that, so the
// certificate does not matter.
func speaksTLS(addr net.Addr) bool {
	d := tls.Dialer{NetDialer: &net.Dialer{Timeout: tlsPatience}, Config: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}} //nolint:gosec // see above
	ctx, cancel := context.WithTimeout(context.Background(), tlsPatience)
	defer cancel()
	conn, err := d.DialContext(ctx, addr.Network(), addr.String())
	if err != nil {
		return false
	}
	_ = conn.Close() // nothing was sent
	return true
}
