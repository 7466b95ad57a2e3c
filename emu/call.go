package emu

import (
	"context"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/cells"
	"github.com/tabletop-emu/tabletop/emu/internal/load"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/replica"
	"github.com/tabletop-emu/tabletop/internal/cause"
	"github.com/tabletop-emu/tabletop/internal/inproc"
)

// Faults makes calls fail. It affects calls only while it is armed.
type Faults interface {
	// Armed reports whether a fault may affect a call. If it returns false, the server does not
	// call the other methods. It runs for every call, so it must not allocate.
	Armed() bool
	// Unary and Stream wrap a handler, like gRPC interceptors. They must not retain messages.
	Unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error)
	Stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error
}

// Call is the argument of Options.Observe; it describes a finished call. The server reuses the
// Call, its context and its messages after Observe returns, so Observe must copy the data that it
// retains.
type Call struct {
	Method  string // "/google.bigtable.v2.Bigtable/ReadRows"
	Context context.Context
	// Request is the request message. It is nil for client streams, and for calls that ended before
	// the request was read.
	Request proto.Message
	// Response is the response of a unary call; nil for a stream or after an error.
	Response any
	Err      error         // the response status; nil for OK
	Start    time.Time     // on the server's clock
	Duration time.Duration // wall time
	Messages int           // sent messages
	Rows     int           // complete rows sent by ReadRows, or rows of the result of ExecuteQuery
	Bytes    int64         // size of the keys, qualifiers and values in those rows, or of that result
	// Query is the SQL of PrepareQuery and ExecuteQuery; nil for other calls, and for an
	// ExecuteQuery that failed before its query was found.
	Query *CallQuery
}

// CallQuery is the SQL of a call.
type CallQuery struct {
	Text     string
	Tables   []string // resource names of the tables that it reads, directly or through views
	RowsRead int      // rows of tables that ExecuteQuery has read
}

// Cause returns the id of the DynamoDB request that caused the call, or "" for other calls.
func (c *Call) Cause() string {
	if id, ok := cause.Of(c.Context); ok {
		return id
	}
	return c.Header(cause.Header)
}

// Header returns the first value of a request header, or "" if it is not set.
func (c *Call) Header(name string) string {
	if values := metadata.ValueFromIncomingContext(c.Context, name); len(values) > 0 {
		return values[0]
	}
	return ""
}

// Internal reports whether the call was made through Server.Conn.
func (c *Call) Internal() bool {
	p, ok := peer.FromContext(c.Context)
	return ok && p.Addr.Network() == "inproc"
}

// method is an RPC of a service.
type method struct {
	name   string // "/google.bigtable.v2.Bigtable/ReadRows"
	served bool   // according to Support
	// described adds the headers of responseParams to responses. Callers in this process do not
	// need them.
	described bool
}

// call is a running call. For the data API it also implements the service, so that the handler,
// the load counts and the headers share one route. callPool keeps its functions, so that a call
// does not allocate them.
type call struct {
	btpb.UnimplementedBigtableServer
	*Server
	grpc.ServerStream // nil in a unary call

	method *method
	ended  Call // completed as the call runs
	req    any  // the handler's request, or the first message of a stream

	headers bool // sent
	routed  bool
	by      *btapb.Cluster // the answering cluster; nil for the implicit one
	at      replica.At     // the same cluster; its id is "" if all are down

	read load.Rows // rows sent by ReadRows
	// sink takes the rows of ReadRows for a client in this process; nil: they are sent in messages.
	sink   cells.RowSink
	reader *rowReader // of ReadRows; nil before the first

	decode     func(any) error
	ic         grpc.UnaryServerInterceptor
	handler    grpc.UnaryHandler
	decodes    func(any) error
	intercepts grpc.UnaryServerInterceptor
	handles    grpc.UnaryHandler
	sendsRows  func(rows int, bytes int64) error
}

var callPool = sync.Pool{New: func() any {
	c := new(call)
	c.decodes = func(m any) error {
		c.req = m
		return c.decode(m)
	}
	c.intercepts = func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		c.handler = handler
		return c.ic(ctx, req, info, c.handles)
	}
	c.handles = func(ctx context.Context, req any) (any, error) {
		c.req = req // an interceptor may have replaced it
		return c.handler(ctx, req)
	}
	c.sendsRows = c.sendRows
	return c
}}

// begin starts a call of m. The caller must call end.
func (s *Server) begin(ctx context.Context, m *method) *call {
	s.calls.Begin()
	c := callPool.Get().(*call)
	c.Server, c.method = s, m
	c.ended = Call{Method: m.name, Context: ctx}
	if m.described || s.observe != nil {
		c.ended.Start = s.now()
	}
	return c
}

// end reports a finished call to the observer and returns c to the pool. began is the start by
// the stopwatch; streams reports whether the client streams requests.
func (c *call) end(began time.Time, streams bool, err error) {
	if c.observe != nil {
		if !streams {
			c.ended.Request, _ = c.req.(proto.Message)
		}
		c.ended.Err, c.ended.Duration = err, stopwatch().Sub(began)
		c.observe(&c.ended)
	}
	c.calls.End()
	c.read.Begin(nil)
	c.reader.release()
	*c = call{decodes: c.decodes, intercepts: c.intercepts, handles: c.handles, sendsRows: c.sendsRows, read: c.read, reader: c.reader}
	callPool.Put(c)
}

// stopwatch returns the wall time, which measures calls even if the server's clock does not
// move.
func stopwatch() time.Time { return time.Now() } //nolint:forbidigo // see above

// guard wraps the methods of desc: a panic returns Internal, and a method with the status Refused
// in Support returns Unimplemented. It also adds faults, the observer and, if described, the
// headers of responseParams. If the registered implementation is a call, the handler runs on the
// current call instead. guard wraps handlers instead of using interceptors so that all transports
// behave the same.
func (s *Server) guard(desc *grpc.ServiceDesc, described bool) *grpc.ServiceDesc {
	out := *desc
	out.Methods, out.Streams = slices.Clone(desc.Methods), slices.Clone(desc.Streams)
	named := func(name string) *method {
		return &method{name: "/" + desc.ServiceName + "/" + name, served: serves(desc.ServiceName, name), described: described}
	}
	for i := range out.Methods {
		m := &out.Methods[i]
		m.Handler = s.unary(named(m.MethodName), m.Handler)
	}
	for i := range out.Streams {
		st := &out.Streams[i]
		st.Handler = s.stream(named(st.StreamName), *st)
	}
	return &out
}

func (s *Server) unary(m *method, next grpc.MethodHandler) grpc.MethodHandler {
	return func(impl any, ctx context.Context, decode func(any) error, ic grpc.UnaryServerInterceptor) (any, error) {
		c := s.begin(ctx, m)
		var began time.Time
		if s.observe != nil {
			began = stopwatch()
		}
		if s.faults != nil && s.faults.Armed() {
			ic = s.withFaults(ic)
		}
		c.decode = decode
		if c.ic = ic; ic != nil {
			ic = c.intercepts
		}
		resp, err := c.runUnary(ctx, next, impl, ic)
		if err == nil {
			c.ended.Response, c.ended.Messages = resp, 1
		}
		if m.described {
			header, trailer := c.responseParams(err)
			// These fail only if the client has disconnected.
			_ = grpc.SetHeader(ctx, header)
			if wantsTrailer(ctx) {
				_ = grpc.SetTrailer(ctx, trailer)
			}
		}
		c.end(began, false, err)
		return resp, err
	}
}

func (c *call) runUnary(ctx context.Context, next grpc.MethodHandler, impl any, ic grpc.UnaryServerInterceptor) (resp any, err error) {
	defer recoverPanic(c.logger, c.method.name, &err)
	if !c.method.served {
		return nil, c.method.notBuilt()
	}
	return next(c.service(impl), ctx, c.decodes, ic)
}

// service returns the implementation that answers the call: the call itself for the data API.
func (c *call) service(impl any) any {
	if _, ok := impl.(*call); ok {
		return c
	}
	return impl
}

func (m *method) notBuilt() error { return refusal.NotBuilt("RPC " + strings.TrimPrefix(m.name, "/")) }

// withFaults returns an interceptor that runs faults between ic and the handler. ic may be nil.
func (s *Server) withFaults(ic grpc.UnaryServerInterceptor) grpc.UnaryServerInterceptor {
	if ic == nil {
		return s.faults.Unary
	}
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		return ic(ctx, req, info, func(ctx context.Context, req any) (any, error) {
			return s.faults.Unary(ctx, req, info, handler)
		})
	}
}

// aroundVirtual returns an interceptor for requests in sessions. It applies ic, which may be
// nil, the faults and the observer as for the equivalent RPC.
func (s *Server) aroundVirtual(ic grpc.UnaryServerInterceptor) grpc.UnaryServerInterceptor {
	if s.faults == nil && s.observe == nil {
		return ic
	}
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		next := func(_ any, ctx context.Context, _ func(any) error, ic grpc.UnaryServerInterceptor) (any, error) {
			return ic(ctx, req, info, handler)
		}
		around := ic
		if around == nil {
			around = func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
				return handler(ctx, req)
			}
		}
		return s.unary(&method{name: info.FullMethod, served: true}, next)(nil, ctx, nil, around)
	}
}

func (s *Server) stream(m *method, desc grpc.StreamDesc) grpc.StreamHandler {
	info := &grpc.StreamServerInfo{FullMethod: m.name, IsClientStream: desc.ClientStreams, IsServerStream: desc.ServerStreams}
	return func(impl any, ss grpc.ServerStream) error {
		c := s.begin(ss.Context(), m)
		var began time.Time
		if s.observe != nil {
			began = stopwatch()
		}
		c.ServerStream = ss
		err := c.runStream(desc.Handler, impl, info)
		c.sendHeaders(err)
		c.end(began, desc.ClientStreams, err)
		return err
	}
}

func (c *call) runStream(handler grpc.StreamHandler, impl any, info *grpc.StreamServerInfo) (err error) {
	defer recoverPanic(c.logger, c.method.name, &err)
	switch {
	case !c.method.served:
		return c.method.notBuilt()
	case c.faults != nil && c.faults.Armed():
		return c.faults.Stream(c.service(impl), c, info, handler) // it may count and cut messages
	}
	c.sink = inproc.SinkOf(c.ServerStream)
	return handler(c.service(impl), c)
}

// sendHeaders sends the headers with the first message of a stream, or at its end if it has no
// messages.
func (c *call) sendHeaders(err error) {
	if !c.method.described || c.headers {
		return
	}
	c.headers = true
	header, trailer := c.responseParams(err)
	_ = c.SetHeader(header)
	if wantsTrailer(c.ended.Context) {
		c.SetTrailer(trailer)
	}
}

// RecvMsg implements grpc.ServerStream.
func (c *call) RecvMsg(m any) error {
	err := c.ServerStream.RecvMsg(m)
	if err == nil && c.req == nil {
		c.req = m
	}
	return err
}

// SendMsg implements grpc.ServerStream. It counts the message before sending it, because the
// receiver may own it afterwards.
func (c *call) SendMsg(m any) error {
	c.sendHeaders(nil)
	rows, bytes := 0, 0
	if resp, ok := m.(*btpb.ReadRowsResponse); ok && (c.observe != nil || c.read.Counted()) {
		rows, bytes = c.read.Count(resp)
	}
	err := c.ServerStream.SendMsg(m)
	if err == nil {
		c.ended.Messages++
		c.ended.Rows += rows
		c.ended.Bytes += int64(bytes)
	}
	return err
}

// sendRows confirms rows that the client's sink has taken, with an empty message.
func (c *call) sendRows(rows int, bytes int64) error {
	err := c.SendMsg(onlyRows)
	if err == nil {
		c.ended.Rows += rows
		c.ended.Bytes += bytes
	}
	return err
}

var onlyRows = &btpb.ReadRowsResponse{}

// recoverPanic turns a panic in a handler into the error of its call.
func recoverPanic(logger *slog.Logger, method string, err *error) {
	if r := recover(); r != nil {
		method = strings.TrimPrefix(method, "/")
		logger.Error("handler panicked", "method", method, "panic", r, "stack", string(debug.Stack()))
		*err = refusal.Panic(method, r)
	}
}
