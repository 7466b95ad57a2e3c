package main

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// trackedListener tracks its connections, so that a stop waits only for requests, and not for
// idle clients or incomplete requests.
type trackedListener struct {
	net.Listener
	greeting int // bytes after which a connection counts as having a request; 0: the handler decides

	mu       sync.Mutex
	conns    map[*trackedConn]bool
	stopping bool
}

// http2Greeting is the number of bytes that an HTTP/2 client sends before any request: the
// preface and the head of its settings. Before that, package grpc can neither drain nor close a
// connection.
const http2Greeting = len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") + 9

func newTrackedListener(l net.Listener, greeting int) *trackedListener {
	return &trackedListener{Listener: l, greeting: greeting, conns: map[*trackedConn]bool{}}
}

// Accept implements net.Listener.
func (d *trackedListener) Accept() (net.Conn, error) {
	for {
		accepted, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &trackedConn{Conn: accepted, listener: d, greeting: d.greeting}
		d.mu.Lock()
		stopping := d.stopping
		if !stopping {
			d.conns[c] = true
		}
		d.mu.Unlock()
		if !stopping {
			return c, nil
		}
		_ = accepted.Close() // it has no request yet
	}
}

// cut closes the connections without a complete request, or all connections, and all later
// ones.
func (d *trackedListener) cut(all bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopping = true
	for c := range d.conns {
		if all || !c.asked.Load() {
			_ = c.Conn.Close() // its owner closes it again
		}
	}
}

// trackedConn is a connection of an endpoint.
type trackedConn struct {
	net.Conn
	listener *trackedListener
	greeting int         // pending bytes; used only by Read
	asked    atomic.Bool // it may have a complete request
}

// CloseWrite ends the output of a TCP connection, so that its client reads all of it.
func (c *trackedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Read implements net.Conn.
func (c *trackedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.greeting > 0 {
		if c.greeting -= n; c.greeting <= 0 {
			c.asked.Store(true)
		}
	}
	return n, err
}

// Close implements net.Conn.
func (c *trackedConn) Close() error {
	c.listener.mu.Lock()
	delete(c.listener.conns, c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

// trackedConnOf returns the endpoint's connection inside a possibly encrypted one.
func trackedConnOf(c net.Conn) *trackedConn {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	return c.(*trackedConn)
}

// arrivals is an HTTP handler that marks connections with a complete request, and calls the
// server's own handler.
type arrivals struct{ http.Handler }

type arrivalsKey struct{}

// withTrackedConn implements http.Server.ConnContext: the context of a request holds its
// connection.
func withTrackedConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, arrivalsKey{}, trackedConnOf(c))
}

// idle implements http.Server.ConnState: it marks a connection without a pending request.
func (arrivals) idle(c net.Conn, state http.ConnState) {
	if state == http.StateIdle {
		trackedConnOf(c).asked.Store(false)
	}
}

// ServeHTTP implements http.Handler.
func (a arrivals) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := r.Context().Value(arrivalsKey{}).(*trackedConn)
	if r.Body == http.NoBody {
		c.asked.Store(true)
	} else {
		r = r.WithContext(r.Context()) // the server uses the original body
		r.Body = arrivingBody{r.Body, c}
	}
	a.Handler.ServeHTTP(w, r)
}

// arrivingBody is the body of a request; the request is complete at its end.
type arrivingBody struct {
	io.ReadCloser
	conn *trackedConn
}

// Read implements io.Reader.
func (b arrivingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.conn.asked.Store(true)
	}
	return n, err
}
