// Package fastserver serves HTTP/1.1 to a handler of internal/exchange. It parses requests with
// fasthttp, which takes a fraction of the CPU time of package net/http. The connections are its own,
// because fasthttp's server lacks guarantees of net/http that an endpoint needs:
//
//   - An operation ends when its client leaves. watch.go notices that without cost for fast ones.
//   - Bodies are read while the handler asks for them, so that an announced size takes no memory.
//   - A head has a time limit, a body has none.
//   - A panic ends a connection, not the process.
//   - The handler sets the Date of an answer.
package fastserver

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tabletop-emu/tabletop/internal/exchange"
)

// Options configure a Server.
type Options struct {
	Handler exchange.Handler
	Logger  *slog.Logger
	// MaxHeadBytes is the largest size of a request line with headers.
	MaxHeadBytes int
	// HeadTime is the time that a client has for a TLS handshake, for its first request line with
	// headers, and for each later one from its first byte.
	HeadTime time.Duration
	// Arrived is called when a request has arrived, and Idle when its answer was written. They may
	// be nil.
	Arrived, Idle func(net.Conn)
}

// Server serves connections. It is safe for concurrent use.
type Server struct {
	opts Options

	mu        sync.Mutex
	listeners []net.Listener
	conns     map[*conn]bool
	stopping  atomic.Bool // written with mu held
	serving   sync.WaitGroup

	awake atomic.Bool // the timer of look runs
	timer *time.Timer
}

// New returns a server.
func New(o Options) *Server {
	s := &Server{opts: o, conns: map[*conn]bool{}}
	s.timer = time.AfterFunc(time.Hour, s.look)
	s.timer.Stop()
	return s
}

// Serve serves the connections of a listener until Shutdown or Close, and then returns
// http.ErrServerClosed.
func (s *Server) Serve(l net.Listener) error {
	s.mu.Lock()
	s.listeners = append(s.listeners, l)
	stopping := s.stopping.Load()
	s.mu.Unlock()
	if stopping {
		_ = l.Close()
		return http.ErrServerClosed
	}
	pause := time.Duration(0)
	for {
		accepted, err := l.Accept()
		switch {
		case err == nil:
			pause = 0
			s.start(accepted)
		case s.stopping.Load():
			return http.ErrServerClosed
		case temporary(err): // such as too many open files
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			s.opts.Logger.Warn("accepting a connection failed, and will be retried", slog.Any("error", err))
			<-time.NewTimer(pause).C
		default:
			return err
		}
	}
}

func temporary(err error) bool {
	var refused net.Error
	return errors.As(err, &refused) && refused.Temporary() //nolint:staticcheck // package net/http retries the same errors
}

// start serves a connection in its own goroutine.
func (s *Server) start(accepted net.Conn) {
	c := newConn(s, accepted)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping.Load() {
		_ = accepted.Close()
		return
	}
	s.conns[c] = true
	s.serving.Go(func() {
		defer s.end(c)
		if s.secured(c.Conn) {
			c.serve()
		}
	})
}

// end removes a connection. A panic of its goroutine, outside the handler, ends only the connection.
func (s *Server) end(c *conn) {
	if p := recover(); p != nil {
		s.logPanic(p)
	}
	c.cancel()
	_ = c.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

func (s *Server) logPanic(p any) {
	s.opts.Logger.Error("panic in a request", slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
}

// secured completes the handshake of a TLS connection, and reports whether that succeeded.
func (s *Server) secured(c net.Conn) bool {
	secure, ok := c.(*tls.Conn)
	if !ok {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.opts.HeadTime)
	defer cancel()
	err := secure.HandshakeContext(ctx)
	if err == nil {
		return true
	}
	var notTLS tls.RecordHeaderError
	if errors.As(err, &notTLS) && notTLS.Conn != nil {
		_, _ = io.WriteString(notTLS.Conn, "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n") // as net/http does
		err = errors.New("client sent an HTTP request to an HTTPS server")
	}
	s.opts.Logger.Warn("TLS handshake failed", slog.String("client", c.RemoteAddr().String()), slog.Any("error", err))
	return false
}

// Shutdown closes the listeners and the connections without a complete request. It waits for the
// other requests until ctx ends, and then returns its error.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.stop(func(c *conn) bool { return c.phase() == idle })
	ended := make(chan struct{})
	go func() {
		s.serving.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close closes the listeners and all connections. Their operations end.
func (s *Server) Close() error { return s.stop(func(*conn) bool { return true }) }

// stop closes the listeners and some connections.
func (s *Server) stop(ends func(*conn) bool) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping.Store(true)
	for _, l := range s.listeners {
		err = errors.Join(err, l.Close())
	}
	s.listeners = nil
	for c := range s.conns {
		if ends(c) {
			c.cancel()
			_ = c.Close() // its goroutine closes it again
		}
	}
	return err
}
