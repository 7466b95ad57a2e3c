// Package intercept passes the requests and answers on a connection to functions of a
// test.
package intercept

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc"
)

// Func gets a request or an answer. Its error ends the call.
type Func func(ctx context.Context, message any) error

// Conn is a connection over another one. Its functions may be set at any time.
type Conn struct {
	grpc.ClientConnInterface
	before, after atomic.Pointer[Func]
}

// New returns a connection that passes each request to before.
func New(conn grpc.ClientConnInterface, before Func) *Conn {
	c := &Conn{ClientConnInterface: conn}
	c.Before(before)
	return c
}

// Before passes each request to f before it is sent; nil means no function.
func (c *Conn) Before(f Func) { c.before.Store(&f) }

// After passes each answer to f; nil means no function.
func (c *Conn) After(f Func) { c.after.Store(&f) }

func call(ctx context.Context, f *Func, message any) error {
	if f == nil || *f == nil {
		return nil
	}
	return (*f)(ctx, message)
}

// Invoke implements grpc.ClientConnInterface.
func (c *Conn) Invoke(ctx context.Context, method string, req, resp any, opts ...grpc.CallOption) error {
	if err := call(ctx, c.before.Load(), req); err != nil {
		return err
	}
	if err := c.ClientConnInterface.Invoke(ctx, method, req, resp, opts...); err != nil {
		return err
	}
	return call(ctx, c.after.Load(), resp)
}

// NewStream implements grpc.ClientConnInterface. The stream begins with its request, so that
// no stream stays open after an error of Before.
func (c *Conn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return &stream{conn: c, ctx: ctx, open: func() (grpc.ClientStream, error) {
		return c.ClientConnInterface.NewStream(ctx, desc, method, opts...)
	}}, nil
}

type stream struct {
	grpc.ClientStream // nil before the request
	conn              *Conn
	ctx               context.Context
	open              func() (grpc.ClientStream, error)
}

// SendMsg implements grpc.ClientStream.
func (s *stream) SendMsg(m any) error {
	err := call(s.ctx, s.conn.before.Load(), m)
	if err == nil && s.ClientStream == nil {
		s.ClientStream, err = s.open()
	}
	if err != nil {
		return err
	}
	return s.ClientStream.SendMsg(m)
}

// RecvMsg implements grpc.ClientStream.
func (s *stream) RecvMsg(m any) error {
	if err := s.ClientStream.RecvMsg(m); err != nil {
		return err
	}
	return call(s.ctx, s.conn.after.Load(), m)
}
