// Package hooks wraps RPC handlers with fault injection and an observer. It wraps handlers
// instead of using gRPC's interceptors, so that every transport has the same hooks. Without
// hooks the handlers are registered unchanged.
package hooks

import (
	"context"
	"slices"
	"sync"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/internal/cause"
)

// Faults are what goes wrong with calls.
type Faults interface {
	// Armed reports whether a call may be struck. If not, the others are not called.
	// It is asked for each call, and allocates nothing.
	Armed() bool
	// Unary and Stream are around a handler, as gRPC's interceptors are. They keep no
	// message that passes them.
	Unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error)
	Stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error
}

// Call is a call that has ended. It, its context and its messages belong to the server again when
// the one who is told returns: what is to be kept is copied.
type Call struct {
	Method  string // "/google.bigtable.v2.Bigtable/ReadRows"
	Context context.Context
	// Request is nil of a call that ended before it was read, and of one that streams
	// from the client.
	Request proto.Message
	// Response is that of a unary call without an error; nil of a stream.
	Response any
	Err      error         // the status that it was answered with; nil for OK
	Start    time.Time     // by the clock of the server
	Duration time.Duration // of wall time
	Messages int           // that were sent
	Rows     int           // whole rows in them, of ReadRows
	Bytes    int64         // of keys, qualifiers and values in those rows
}

// Cause returns the id of the DynamoDB request that a call was made for, "" for others.
func (c *Call) Cause() string {
	if id, ok := cause.Of(c.Context); ok {
		return id
	}
	return first(c.Context, cause.Header)
}

// Header returns the first value of a header of the call, "" without one.
func (c *Call) Header(name string) string { return first(c.Context, name) }

// Internal reports whether the call came over the channel inside the process.
func (c *Call) Internal() bool {
	p, ok := peer.FromContext(c.Context)
	return ok && p.Addr.Network() == "inproc"
}

func first(ctx context.Context, header string) string {
	if values := metadata.ValueFromIncomingContext(ctx, header); len(values) > 0 {
		return values[0]
	}
	return ""
}

// Hooks are those of a server. The zero value is none.
type Hooks struct {
	Faults  Faults
	Observe func(*Call)
	Now     func() time.Time // the clock of Call.Start; required with Observe
}

// stopwatch is the time by which calls take as long as they do, also where the clock stands still.
func stopwatch() time.Time { return time.Now() } //nolint:forbidigo // see above

// Wrap returns a service whose handlers have the hooks around them: desc itself
// without any.
func (h Hooks) Wrap(desc *grpc.ServiceDesc) *grpc.ServiceDesc {
	if h.Faults == nil && h.Observe == nil {
		return desc
	}
	out := *desc
	out.Methods, out.Streams = slices.Clone(desc.Methods), slices.Clone(desc.Streams)
	for i := range out.Methods {
		m := &out.Methods[i]
		if h.Faults != nil {
			m.Handler = h.struck(m.Handler)
		}
		if h.Observe != nil {
			m.Handler = h.observed("/"+desc.ServiceName+"/"+m.MethodName, m.Handler)
		}
	}
	for i := range out.Streams {
		s := &out.Streams[i]
		if h.Faults != nil {
			s.Handler = h.struckStream("/"+desc.ServiceName+"/"+s.StreamName, *s)
		}
		if h.Observe != nil {
			s.Handler = h.observedStream("/"+desc.ServiceName+"/"+s.StreamName, *s)
		}
	}
	return &out
}

// struck lets faults strike between interceptors and the handler.
func (h Hooks) struck(next grpc.MethodHandler) grpc.MethodHandler {
	return func(impl any, ctx context.Context, decode func(any) error, ic grpc.UnaryServerInterceptor) (any, error) {
		if !h.Faults.Armed() {
			return next(impl, ctx, decode, ic)
		}
		if ic == nil {
			return next(impl, ctx, decode, h.Faults.Unary)
		}
		return next(impl, ctx, decode, func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			return ic(ctx, req, info, func(ctx context.Context, req any) (any, error) {
				return h.Faults.Unary(ctx, req, info, handler)
			})
		})
	}
}

func (h Hooks) struckStream(fullMethod string, desc grpc.StreamDesc) grpc.StreamHandler {
	info := &grpc.StreamServerInfo{FullMethod: fullMethod, IsClientStream: desc.ClientStreams, IsServerStream: desc.ServerStreams}
	return func(impl any, ss grpc.ServerStream) error {
		if !h.Faults.Armed() {
			return desc.Handler(impl, ss)
		}
		return h.Faults.Stream(impl, ss, info, desc.Handler)
	}
}

// Session returns what stands around a request in a session, as around the call that does the
// same: what ic does, which may be nil, and the hooks. It is ic without any.
func (h Hooks) Session(ic grpc.UnaryServerInterceptor) grpc.UnaryServerInterceptor {
	if h.Faults == nil && h.Observe == nil {
		return ic
	}
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		next := func(_ any, ctx context.Context, _ func(any) error, ic grpc.UnaryServerInterceptor) (any, error) {
			if ic == nil {
				return handler(ctx, req)
			}
			return ic(ctx, req, info, handler)
		}
		if h.Faults != nil {
			next = h.struck(next)
		}
		if h.Observe != nil {
			next = h.observed(info.FullMethod, next)
		}
		if ic == nil {
			ic = func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
				return handler(ctx, req)
			}
		}
		return next(nil, ctx, nil, ic)
	}
}

// unary is a unary call under way. Its functions are made once: a call of which
// somebody is told allocates no more than others.
type unary struct {
	call    Call
	decode  func(any) error
	ic      grpc.UnaryServerInterceptor
	handler grpc.UnaryHandler

	decodes    func(any) error
	intercepts grpc.UnaryServerInterceptor
	handles    grpc.UnaryHandler
}

var unaries = sync.Pool{New: func() any {
	u := new(unary)
	u.decodes = func(m any) error {
		u.call.Request, _ = m.(proto.Message)
		return u.decode(m)
	}
	u.intercepts = func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		u.handler = handler
		return u.ic(ctx, req, info, u.handles)
	}
	u.handles = func(ctx context.Context, req any) (any, error) {
		u.call.Request, _ = req.(proto.Message) // an interceptor may have put another in its place
		return u.handler(ctx, req)
	}
	return u
}}

func (h Hooks) observed(fullMethod string, next grpc.MethodHandler) grpc.MethodHandler {
	return func(impl any, ctx context.Context, decode func(any) error, ic grpc.UnaryServerInterceptor) (any, error) {
		u := unaries.Get().(*unary)
		u.call = Call{Method: fullMethod, Context: ctx, Start: h.Now()}
		u.decode, u.ic = decode, ic
		began := stopwatch()
		if ic != nil {
			ic = u.intercepts
		}
		resp, err := next(impl, ctx, u.decodes, ic)
		if u.call.Err = err; err == nil {
			u.call.Response, u.call.Messages = resp, 1
		}
		u.call.Duration = stopwatch().Sub(began)
		h.Observe(&u.call)
		u.call, u.decode, u.ic, u.handler = Call{}, nil, nil, nil
		unaries.Put(u)
		return resp, err
	}
}

// stream is a stream under way.
type stream struct {
	grpc.ServerStream
	call          Call
	clientStreams bool
}

var streams = sync.Pool{New: func() any { return new(stream) }}

// RecvMsg implements grpc.ServerStream.
func (s *stream) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	if err == nil && !s.clientStreams && s.call.Request == nil {
		s.call.Request, _ = m.(proto.Message)
	}
	return err
}

// SendMsg implements grpc.ServerStream. What is sent may be another's once it
// was: it is counted before.
func (s *stream) SendMsg(m any) error {
	rows, bytes := 0, 0
	if resp, ok := m.(*btpb.ReadRowsResponse); ok {
		for _, c := range resp.GetChunks() {
			if c.GetCommitRow() {
				rows++
			}
			bytes += len(c.GetRowKey()) + len(c.GetQualifier().GetValue()) + len(c.GetValue())
		}
	}
	err := s.ServerStream.SendMsg(m)
	if err == nil {
		s.call.Messages++
		s.call.Rows += rows
		s.call.Bytes += int64(bytes)
	}
	return err
}

func (h Hooks) observedStream(fullMethod string, desc grpc.StreamDesc) grpc.StreamHandler {
	return func(impl any, ss grpc.ServerStream) error {
		s := streams.Get().(*stream)
		*s = stream{ServerStream: ss, clientStreams: desc.ClientStreams, call: Call{Method: fullMethod, Context: ss.Context(), Start: h.Now()}}
		began := stopwatch()
		err := desc.Handler(impl, s)
		s.call.Err, s.call.Duration = err, stopwatch().Sub(began)
		h.Observe(&s.call)
		*s = stream{}
		streams.Put(s)
		return err
	}
}
