package inproc

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/internal/cause"
)

// handlerContext is the context of a handler. It ends with the call's own context. As over a
// network, it has no values of the client's except the outgoing metadata and the cause.
type handlerContext struct {
	context.Context
	call     *call
	once     sync.Once
	metadata metadata.MD // the client's; may be nil
}

// Value returns the metadata, the peer and the call. It allocates only a copy of the metadata,
// because observers request the values of every call.
func (c *handlerContext) Value(key any) any {
	switch {
	case cause.IsKey(key):
		id, _ := cause.Of(c.call.parent)
		return id
	case key == keys.peer:
		return &inprocPeer
	case key == keys.stream:
		return c.call
	case key == keys.metadata:
		c.once.Do(func() { c.metadata, _ = metadata.FromOutgoingContext(c.call.parent) })
		if c.metadata != nil {
			return c.metadata
		}
	}
	return nil
}

// keys are the unexported context keys of gRPC for values of a server.
var keys = struct{ peer, stream, metadata any }{
	peer:     askedFor(func(ctx context.Context) { peer.FromContext(ctx) }),
	stream:   askedFor(func(ctx context.Context) { grpc.ServerTransportStreamFromContext(ctx) }),
	metadata: askedFor(func(ctx context.Context) { metadata.FromIncomingContext(ctx) }),
}

// askedFor returns the context key that a function reads.
func askedFor(ask func(context.Context)) any {
	asked := &listening{Context: context.Background()}
	ask(asked)
	return asked.key
}

// listening is a context without values that records the last key it was asked for.
type listening struct {
	context.Context
	key any
}

// Value records a key that was looked up.
func (l *listening) Value(key any) any {
	l.key = key
	return nil
}

// AfterFunc lets package context attach child contexts without starting a goroutine, as it would
// for a context of another type.
func (c *handlerContext) AfterFunc(f func()) func() bool { return context.AfterFunc(c.Context, f) }

type addr struct{}

// Network returns the name of the network.
func (addr) Network() string { return "inproc" }

// String returns the address, which is the same for all calls in this process.
func (addr) String() string { return "inproc" }

var inprocPeer = peer.Peer{Addr: addr{}, LocalAddr: addr{}}

// call is the server's side of one call, which grpc.SetHeader and its kin find in the handler's
// context.
type call struct {
	method string
	parent context.Context // the client's
	own    context.Context // the call's: it ends with the client's, or by cancel
	ctx    handlerContext  // own, with the values for a handler
	cancel context.CancelFunc

	mu      sync.Mutex
	header  metadata.MD
	sent    bool // the header was sent and can no longer change
	trailer metadata.MD
}

var _ grpc.ServerTransportStream = (*call)(nil)

// Method returns the full name of the method.
func (cl *call) Method() string { return cl.method }

// SetHeader adds metadata to the header. It fails if the header has already been sent.
func (cl *call) SetHeader(md metadata.MD) error {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.sent {
		return status.Error(codes.Internal, "inproc: the header was already sent")
	}
	cl.header = metadata.Join(cl.header, md)
	return nil
}

// SendHeader adds metadata to the header and sends the header.
func (cl *call) SendHeader(md metadata.MD) error {
	if err := cl.SetHeader(md); err != nil {
		return err
	}
	cl.closeHeader()
	return nil
}

// SetTrailer adds metadata to the trailer.
func (cl *call) SetTrailer(md metadata.MD) error {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	cl.trailer = metadata.Join(cl.trailer, md)
	return nil
}

func (cl *call) closeHeader() {
	cl.mu.Lock()
	cl.sent = true
	cl.mu.Unlock()
}

func (cl *call) metadata() (header, trailer metadata.MD) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.header.Copy(), cl.trailer.Copy()
}

// report fills the addresses that the client's options carry.
func (cl *call) report(opts []grpc.CallOption) {
	for _, o := range opts {
		switch o := o.(type) {
		case grpc.HeaderCallOption:
			*o.HeaderAddr, _ = cl.metadata()
		case grpc.TrailerCallOption:
			_, *o.TrailerAddr = cl.metadata()
		case grpc.PeerCallOption:
			*o.PeerAddr = inprocPeer
		}
	}
}

func finish(opts []grpc.CallOption, err error) {
	for _, o := range opts {
		if o, ok := o.(grpc.OnFinishCallOption); ok {
			o.OnFinish(err)
		}
	}
}

// ended reports whether the client has left or the channel was closed.
func (cl *call) ended() bool { return cl.own.Err() != nil }

// contextStatus returns the client's status of a call whose context has ended: the reason of
// the context, or a closed channel.
func (cl *call) contextStatus() error {
	if err := cl.parent.Err(); err != nil {
		return status.FromContextError(err).Err()
	}
	return closingStatus()
}

// closingStatus returns the client's status of a call on a closed channel.
func closingStatus() error {
	return status.Error(codes.Canceled, "grpc: the client connection is closing")
}

// runUnary calls the handler of desc with req itself. A generated handler decodes into a
// message of its own first; the interceptor replaces it with the caller's.
func (cl *call) runUnary(desc *grpc.MethodDesc, impl any, req proto.Message, icept grpc.UnaryServerInterceptor) (resp any, err error) {
	defer recoverTo(&err, cl.method)
	swap := func(ctx context.Context, own any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if want, ok := own.(proto.Message); !ok || want.ProtoReflect().Descriptor() != req.ProtoReflect().Descriptor() {
			return nil, status.Errorf(codes.Internal, "inproc: %s takes a %T, not a %T", cl.method, own, req)
		}
		if icept == nil {
			return handler(ctx, req)
		}
		return icept(ctx, req, info, handler)
	}
	return desc.Handler(impl, &cl.ctx, func(any) error { return nil }, swap)
}

// recoverTo turns a panic into an Internal error that names the method.
func recoverTo(err *error, method string) {
	if p := recover(); p != nil {
		*err = status.Error(codes.Internal, fmt.Sprintf("inproc: %s panicked: %v\n%s", method, p, debug.Stack()))
	}
}
