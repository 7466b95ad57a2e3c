// Package inproc implements an in-process gRPC channel that does not copy messages: a
// [grpc.ClientConnInterface] that calls registered service implementations directly, without a
// network, a codec or a goroutine.
//
// A unary call runs its handler in the caller's goroutine, with the caller's request message. A
// server stream runs its handler as a coroutine: after each message, the handler waits until the
// client reads on. A slow reader therefore slows down the handler, and nothing is buffered.
//
// A handler whose whole answer the client holds anyway, such as a read of one row, runs at once
// instead. [Channel.ReadRows] lets a handler pass rows without messages, and
// [Channel.CheckAndMutateRows] makes several calls together.
//
// The channel keeps gRPC's guarantees for a call: status errors with details, deadlines and
// cancellation, metadata, headers and trailers, interceptors, and an error instead of a crash
// for an unknown method. A panic in a handler becomes Internal.
//
// Sharing messages requires a contract: neither side may change a message after sending it, and a
// handler must not retain its request after it returns. [Options.Clone] copies every message, as a
// network would. A test that passes only with Clone has found a breach of the contract.
//
// Size limits, compression, credentials and the UTF-8 check of strings belong to the network, and
// have no effect. Calls that stream from the client return Unimplemented. The handler of a stream
// starts when the client first waits for a response.
package inproc

import (
	"context"
	"strings"
	"sync"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Options configures New. The zero value has no interceptors and does not copy messages.
type Options struct {
	// Unary wraps every unary handler. Default: none.
	Unary grpc.UnaryServerInterceptor
	// Stream wraps every handler of a server stream. Default: none.
	Stream grpc.StreamServerInterceptor
	// Clone copies each message, so that each side may change messages that it has sent, and retain
	// messages that it has received. It is for tests. Default: messages are shared.
	Clone bool
	// CheckAndMutateRows answers several calls of CheckAndMutateRow together, which costs less. It sets
	// the result of each call. If it returns false, it has done nothing. Default: calls are made
	// one by one.
	CheckAndMutateRows func(ctx context.Context, reqs []*btpb.CheckAndMutateRowRequest, matched []bool, errs []error) (together bool)
}

// Channel dispatches calls to the services registered with it. All services must be registered
// before the first call; from then on it is safe for concurrent use.
type Channel struct {
	opts     Options
	services map[string]*service

	mu     sync.Mutex // guards closed and calls
	closed bool
	calls  map[*call]struct{} // whose handlers run
	live   sync.WaitGroup     // one for each of calls; Add under mu, before closed
}

var (
	_ grpc.ServiceRegistrar    = (*Channel)(nil)
	_ grpc.ClientConnInterface = (*Channel)(nil)
)

type service struct {
	impl    any
	unary   map[string]*grpc.MethodDesc
	streams map[string]*grpc.StreamDesc
}

// New returns a channel without services.
func New(o Options) *Channel {
	return &Channel{opts: o, services: make(map[string]*service), calls: make(map[*call]struct{})}
}

// RegisterService adds a service, as the generated Register functions do. The implementation must
// match the description. Registering a service again replaces it.
func (c *Channel) RegisterService(desc *grpc.ServiceDesc, impl any) {
	s := &service{
		impl:    impl,
		unary:   make(map[string]*grpc.MethodDesc, len(desc.Methods)),
		streams: make(map[string]*grpc.StreamDesc, len(desc.Streams)),
	}
	for i := range desc.Methods {
		s.unary[desc.Methods[i].MethodName] = &desc.Methods[i]
	}
	for i := range desc.Streams {
		s.streams[desc.Streams[i].StreamName] = &desc.Streams[i]
	}
	c.services[desc.ServiceName] = s
}

// Close ends every stream with a running handler, and rejects further calls with Canceled, like a
// closed connection. It cancels the contexts of unary calls in flight. It returns after all
// handlers have returned, so that their resources can be closed. A handler must not call it.
func (c *Channel) Close() error {
	c.mu.Lock()
	c.closed = true
	for cl := range c.calls {
		cl.cancel()
	}
	c.mu.Unlock()
	c.live.Wait()
	return nil
}

// Invoke runs a unary call in the caller's goroutine. args and reply must be protobuf messages.
// reply shares memory with the handler's result.
func (c *Channel) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) (err error) {
	defer func() { finish(opts, err) }()
	svc, name, err := c.lookup(method)
	if err != nil {
		return err
	}
	desc := svc.unary[name]
	if desc == nil {
		return unknownMethod(svc, method, name)
	}
	req, err := c.handOver(args)
	if err != nil {
		return err
	}
	cl, err := newCall(ctx, method)
	if err != nil {
		return err
	}
	if err := c.begin(cl); err != nil {
		return err
	}
	defer c.end(cl)
	resp, err := cl.runUnary(desc, svc.impl, req, c.opts.Unary)
	cl.report(opts)
	if cl.ended() {
		// Over a network the client has left by now, whatever the handler returns.
		return cl.contextStatus()
	}
	if err != nil {
		return toStatus(err)
	}
	out, ok := reply.(proto.Message)
	if !ok {
		return status.Errorf(codes.Internal, "inproc: reply of %s is a %T, not a protobuf message", method, reply)
	}
	shared, err := c.handOver(resp)
	if err != nil {
		return err
	}
	return share(out, shared)
}

// CarriesCause marks a channel whose handlers receive the cause of a call; see package cause.
func (*Channel) CarriesCause() {}

// NewStream opens a server stream. As with any gRPC stream, the client must read it to its end or
// cancel ctx.
func (c *Channel) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := c.open(ctx, desc, method, opts)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (c *Channel) open(ctx context.Context, desc *grpc.StreamDesc, method string, opts []grpc.CallOption) (*clientStream, error) {
	svc, name, err := c.lookup(method)
	if err != nil {
		return nil, err
	}
	sd := svc.streams[name]
	if sd == nil {
		return nil, unknownMethod(svc, method, name)
	}
	if sd.ClientStreams || (desc != nil && desc.ClientStreams) {
		return nil, status.Errorf(codes.Unimplemented, "inproc: %s streams from the client, which this channel does not support", method)
	}
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	if closed {
		return nil, closingStatus()
	}
	cl, err := newCall(ctx, method)
	if err != nil {
		return nil, err
	}
	s := &clientStream{ch: c, cl: cl, impl: svc.impl, desc: sd, opts: opts}
	s.server.s = s
	return s, nil
}

// lookup splits "/package.Service/Method" into the service and the name of the method. Its errors
// have the texts of grpc.Server.
func (c *Channel) lookup(method string) (svc *service, name string, err error) {
	path, name, ok := cutLast(strings.TrimPrefix(method, "/"), "/")
	if !ok {
		return nil, "", status.Errorf(codes.Unimplemented, "malformed method name: %q", method)
	}
	svc = c.services[path]
	if svc == nil {
		return nil, "", status.Errorf(codes.Unimplemented, "unknown service %s", path)
	}
	return svc, name, nil
}

func unknownMethod(svc *service, method, name string) error {
	path, _, _ := cutLast(strings.TrimPrefix(method, "/"), "/")
	if svc.streams[name] != nil || svc.unary[name] != nil {
		return status.Errorf(codes.Internal, "inproc: method %s for service %s was called with the wrong kind of call", name, path)
	}
	return status.Errorf(codes.Unimplemented, "unknown method %s for service %s", name, path)
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return "", "", false
	}
	return s[:i], s[i+len(sep):], true
}

// newCall makes the server's side of a call. Its context has the client's deadline, cancellation
// and outgoing metadata, but not its values.
func newCall(ctx context.Context, method string) (*call, error) {
	if err := ctx.Err(); err != nil {
		return nil, status.FromContextError(err).Err()
	}
	cl := &call{method: method, parent: ctx}
	cl.own, cl.cancel = context.WithCancel(ctx)
	cl.ctx.Context, cl.ctx.call = cl.own, cl
	return cl, nil
}

// begin registers the running handler of a call; the caller must call end. It fails on a
// closed channel.
func (c *Channel) begin(cl *call) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		cl.cancel()
		return closingStatus()
	}
	c.calls[cl] = struct{}{}
	c.live.Add(1)
	return nil
}

// end removes a call whose handler has returned.
func (c *Channel) end(cl *call) {
	cl.cancel()
	c.mu.Lock()
	delete(c.calls, cl)
	c.mu.Unlock()
	c.live.Done()
}

// handOver returns m as a message for the other side. If Options.Clone is set, it returns a copy.
func (c *Channel) handOver(m any) (proto.Message, error) {
	msg, ok := m.(proto.Message)
	if !ok {
		return nil, status.Errorf(codes.Internal, "inproc: message is a %T, not a protobuf message", m)
	}
	if c.opts.Clone {
		msg = proto.Clone(msg)
	}
	return msg, nil
}

// share makes dst equal to src, sharing everything below the top level.
func share(dst, src proto.Message) error {
	if shareKnown(dst, src) {
		return nil
	}
	d, s := dst.ProtoReflect(), src.ProtoReflect()
	if d.Descriptor() != s.Descriptor() {
		return status.Errorf(codes.Internal, "inproc: got a message of type %s, want %s", s.Descriptor().FullName(), d.Descriptor().FullName())
	}
	proto.Reset(dst)
	s.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		d.Set(fd, v)
		return true
	})
	if u := s.GetUnknown(); len(u) > 0 {
		d.SetUnknown(u)
	}
	return nil
}

// toStatus converts a handler's error to the one that a client would receive.
func toStatus(err error) error {
	s, ok := status.FromError(err)
	if !ok {
		s = status.FromContextError(err)
	}
	return s.Err()
}
