package main

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"
)

// pingedServer answers PingAndWarm after a delay.
type pingedServer struct {
	btpb.UnimplementedBigtableServer
	after atomic.Int64
}

func (s *pingedServer) PingAndWarm(ctx context.Context, _ *btpb.PingAndWarmRequest) (*btpb.PingAndWarmResponse, error) {
	select {
	case <-time.After(time.Duration(s.after.Load())):
		return &btpb.PingAndWarmResponse{}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// deadConn is a connection that can silently die: sent data is lost, and nothing arrives.
type deadConn struct {
	net.Conn
	dead <-chan struct{} // closed when it dies
	gone chan struct{}   // closed with the connection
}

func (c *deadConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	select {
	case <-c.dead:
		<-c.gone
		return 0, net.ErrClosed
	default:
		return n, err
	}
}

func (c *deadConn) Write(p []byte) (int, error) {
	select {
	case <-c.dead:
		return len(p), nil
	default:
		return c.Conn.Write(p)
	}
}

func (c *deadConn) Close() error {
	select {
	case <-c.gone:
	default:
		close(c.gone)
	}
	return c.Conn.Close()
}

// pinged is a connection to a gRPC server with the default limits of pings.
type pinged struct {
	server *pingedServer
	client btpb.BigtableClient
	dials  int
	die    func() // kills all current connections
}

func newPinged(t *testing.T, timeout time.Duration) *pinged {
	t.Helper()
	lis := bufconn.Listen(1 << 16)
	srv := grpc.NewServer()
	p := &pinged{server: &pingedServer{}}
	btpb.RegisterBigtableServer(srv, p.server)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(lis) }()
	dead := make(chan struct{})
	p.die = func() {
		close(dead)
		dead = make(chan struct{})
	}
	flags := connectFlags{Project: "p", Instance: "i", CallTimeout: timeout}
	conn, err := dialBigtable("bigtable", caAdvice, append(flags.dialOptions(false), grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		p.dials++
		conn, err := lis.DialContext(ctx)
		return &deadConn{Conn: conn, dead: dead, gone: make(chan struct{})}, err
	}))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		srv.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	p.client = btpb.NewBigtableClient(conn)
	return p
}

func (p *pinged) call(t *testing.T, timeout time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	_, err := p.client.PingAndWarm(ctx, &btpb.PingAndWarmRequest{})
	return err
}

// TestFindDead: a dead connection is closed: calls work again after twice the timeout plus ten
// seconds.
func TestFindDead(t *testing.T) {
	t.Parallel()
	for _, timeout := range []time.Duration{2 * time.Second, 10 * time.Second, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			p := newPinged(t, timeout)
			if err := p.call(t, timeout); err != nil {
				t.Fatal(err)
			}
			p.die()
			begun := time.Now()
			for p.call(t, timeout) != nil {
				if after := time.Since(begun); after > 10*timeout {
					t.Fatalf("calls of %v: none works after %v", timeout, after)
				}
			}
			if after := time.Since(begun); after > 2*max(timeout, 10*time.Second)+10*time.Second || p.dials != 2 {
				t.Errorf("calls of %v: one works after %v and %d connections", timeout, after, p.dials)
			}
		})
	}
}

// TestFindDead_Calm: a server with gRPC's default limits keeps the connection, however rare or
// slow the calls.
func TestFindDead_Calm(t *testing.T) {
	t.Parallel()
	for _, timeout := range []time.Duration{2 * time.Second, 10 * time.Second, 5 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			p := newPinged(t, timeout)
			p.server.after.Store(int64(timeout - time.Millisecond))
			for _, pause := range []time.Duration{0, 0, 0, 0, 0, time.Minute, 11 * time.Second, 20 * time.Minute, 11 * time.Second, 11 * time.Second, 11 * time.Second, 0} {
				if err := p.call(t, timeout); err != nil {
					t.Errorf("calls of %v: %v", timeout, err)
				}
				time.Sleep(pause)
			}
			if p.dials != 1 {
				t.Errorf("calls of %v: %d connections", timeout, p.dials)
			}
		})
	}
}
