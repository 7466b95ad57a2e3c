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

// trackedListener is a listener that knows its connections, so that a stop waits for
// requests alone, and not for clients that hold a connection and send nothing, or
// half of a request.
type trackedListener struct {
	net.Listener
	greeting int // bytes after which a connection counts as asked; 0: the handler says so

	mu       sync.Mutex
	conns    map[*trackedConn]bool
	stopping bool
}

// http2Greeting is what a client of HTTP/2 sends before any request: the preface
// and the head of its settings. Until then package grpc can neither drain a
// connection nor end it.
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
		_ = accepted.Close() // it asked nothing yet
	}
}

// cut closes the connections on which no request stands that has wholly arrived,
// or all of them, and those that come from now on.
func (d *trackedListener) cut(all bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopping = true
	for c := range d.conns {
		if all || !c.asked.Load() {
			_ = c.Conn.Close() // who holds it closes it again
		}
	}
}

// trackedConn is a connection of an endpoint.
type trackedConn struct {
	net.Conn
	listener *trackedListener
	greeting int         // bytes that are still to come; only Read has it
	asked    atomic.Bool // a request that has wholly arrived may stand on it
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

// trackedConnOf is the connection of an endpoint under one that may be encrypted.
func trackedConnOf(c net.Conn) *trackedConn {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	return c.(*trackedConn)
}

// arrivals marks the connections of a server of HTTP on which a request has wholly
// arrived. It is the server's handler, in front of its own.
type arrivals struct{ http.Handler }

type arrivalsKey struct{}

// withTrackedConn is a server's ConnContext.
func withTrackedConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, arrivalsKey{}, trackedConnOf(c))
}

// idle is a server's ConnState: an answered request is none.
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
		r = r.WithContext(r.Context()) // the server looks at the body of its own
		r.Body = arrivingBody{r.Body, c}
	}
	a.Handler.ServeHTTP(w, r)
}

// arrivingBody is the body of a request, whose end is the end of its arrival.
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
