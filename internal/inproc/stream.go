package inproc

import (
	"context"
	"errors"
	"io"
	"sync"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/cells"
	"github.com/tabletop-emu/tabletop/internal/pull"
)

// clientStream is the client's side of a server stream. The handler runs as a
// coroutine inside RecvMsg, or at once if its answer is short.
type clientStream struct {
	ch   *Channel
	cl   *call
	desc *grpc.StreamDesc
	impl any
	opts []grpc.CallOption
	rows cells.RowSink // see Channel.ReadRows; nil for none

	server   serverStream
	mu       sync.Mutex // held while the handler runs or is stopped; guards all below
	req      proto.Message
	begun    bool
	running  bool        // the handler has begun and not returned
	release  func() bool // detaches a coroutine from its context
	next     func() (proto.Message, bool) // of a coroutine
	stop     func()
	peeked   proto.Message   // read ahead by Header
	short    []proto.Message // the messages of a handler that ran at once
	single   [1]proto.Message
	reported bool // the client's options have the end of the call
	done     bool
	err      error // why the stream ended; io.EOF after success
	handler  error // error of the handler
}

// abandon ends the handler of a stream whose context has ended.
func (s *clientStream) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finishLocked(s.cl.contextStatus())
}

// Header runs the handler up to its first message or its end, and returns the header.
func (s *clientStream) Header() (metadata.MD, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.peeked == nil && !s.done {
		s.cl.mu.Lock()
		sent := s.cl.sent
		s.cl.mu.Unlock()
		if !sent {
			s.peeked, _ = s.pullLocked()
		}
	}
	h, _ := s.cl.metadata()
	if s.done && !errors.Is(s.err, io.EOF) && len(h) == 0 {
		return nil, s.err
	}
	return h, nil
}

// Trailer returns the trailer once the stream has ended.
func (s *clientStream) Trailer() metadata.MD {
	_, t := s.cl.metadata()
	return t
}

// Context returns the client's context.
func (s *clientStream) Context() context.Context { return s.cl.parent }

// SendMsg sends the request, which must be the only one.
func (s *clientStream) SendMsg(m any) error {
	req, err := s.ch.handOver(m)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.done:
		return io.EOF // RecvMsg returns the reason
	case s.req != nil:
		return status.Errorf(codes.Internal, "inproc: %s takes one request", s.cl.method)
	}
	s.req = req
	return nil
}

// CloseSend does nothing, because a server stream has only one request.
func (s *clientStream) CloseSend() error { return nil }

// RecvMsg runs the handler until it sends its next message, and shares that
// message with m. At the end it returns io.EOF or the handler's status.
func (s *clientStream) RecvMsg(m any) error {
	out, ok := m.(proto.Message)
	if !ok {
		return status.Errorf(codes.Internal, "inproc: reply of %s is a %T, not a protobuf message", s.cl.method, m)
	}
	msg, err := s.receive()
	if err != nil {
		return err
	}
	return share(out, msg)
}

// receive returns the handler's next message.
func (s *clientStream) receive() (proto.Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leftLocked() && !s.done {
		s.finishLocked(s.cl.contextStatus())
	}
	if msg := s.peeked; msg != nil {
		s.peeked = nil
		return msg, nil
	}
	return s.pullLocked()
}

// pullLocked runs the handler to its next message.
func (s *clientStream) pullLocked() (proto.Message, error) {
	if s.done {
		return nil, s.err
	}
	if !s.begun {
		s.begun = true
		if err := s.beginLocked(); err != nil {
			s.finishLocked(err)
			return nil, s.err
		}
	}
	msg, ok := s.nextLocked()
	switch {
	case s.leftLocked():
		s.finishLocked(s.cl.contextStatus())
	case ok:
		return msg, nil
	default:
		s.finishLocked(s.outcome())
	}
	return nil, s.err
}

// beginLocked starts the handler. If its answer is short the handler also returns, so nothing has
// to be ended if the client leaves early.
func (s *clientStream) beginLocked() error {
	if err := s.ch.begin(s.cl); err != nil {
		return err
	}
	s.running = true
	if !isShort(s.req) {
		s.release = context.AfterFunc(s.cl.own, s.abandon)
		s.next, s.stop = pull.Seq(s.run)
		return nil
	}
	// An interceptor may also end the goroutine, as the failure of a test does.
	defer s.endLocked()
	s.short = s.single[:0]
	s.run(nil)
	if s.cl.ended() {
		return s.cl.contextStatus()
	}
	s.reportLocked(s.outcome())
	return nil
}

// outcome returns the client's status of a handler that has returned.
func (s *clientStream) outcome() error {
	if s.handler != nil {
		return toStatus(s.handler)
	}
	return io.EOF
}

// leftLocked reports whether the client has left or, while the handler runs, the
// channel was closed.
func (s *clientStream) leftLocked() bool {
	if s.running {
		return s.cl.ended()
	}
	return s.cl.parent.Err() != nil
}

// endLocked ends the handler, if it runs.
func (s *clientStream) endLocked() {
	if s.release != nil {
		s.release()
	}
	s.cl.cancel()
	if s.stop != nil {
		s.stop()
	}
	if s.running {
		s.running = false
		s.ch.end(s.cl)
	}
}

// finishLocked ends the stream with err, once.
func (s *clientStream) finishLocked(err error) {
	if s.done {
		return
	}
	s.done, s.err, s.peeked = true, err, nil
	s.endLocked()
	s.reportLocked(err)
}

// reportLocked passes the header, the trailer, the peer and the final status of the call to its
// CallOptions, once.
func (s *clientStream) reportLocked(err error) {
	if s.reported {
		return
	}
	s.reported = true
	s.cl.report(s.opts)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	finish(s.opts, err)
}

// isShort reports whether the client holds the whole answer to a request anyway: that of a read
// of one row, or the statuses of a write.
func isShort(req proto.Message) bool {
	switch req := req.(type) {
	case *btpb.MutateRowsRequest:
		return true
	case *btpb.ReadRowsRequest:
		return len(req.GetRows().GetRowKeys()) == 1 && len(req.GetRows().GetRowRanges()) == 0
	default:
		return false
	}
}

// nextLocked returns the next message of the coroutine, or of a handler that has run.
func (s *clientStream) nextLocked() (proto.Message, bool) {
	if s.next != nil {
		return s.next()
	}
	if len(s.short) == 0 {
		return nil, false
	}
	m := s.short[0]
	s.short = s.short[1:]
	return m, true
}

// run runs the handler, and passes its messages to yield. If yield is nil, it keeps them in short.
func (s *clientStream) run(yield func(proto.Message) bool) {
	defer recoverTo(&s.handler, s.cl.method)
	ss := &s.server
	ss.yield = yield
	if icept := s.ch.opts.Stream; icept != nil {
		info := &grpc.StreamServerInfo{FullMethod: s.cl.method, IsServerStream: true}
		s.handler = icept(s.impl, ss, info, s.desc.Handler)
		return
	}
	s.handler = s.desc.Handler(s.impl, ss)
}

// serverStream is the handler's side. All of it runs inside run, while the
// client's side holds its lock.
type serverStream struct {
	s       *clientStream
	yield   func(proto.Message) bool
	got     bool // the request was received
	stopped bool // the client has left: yield must not be called again
}

// SetHeader adds metadata to the header.
func (ss *serverStream) SetHeader(md metadata.MD) error { return ss.s.cl.SetHeader(md) }

// SendHeader adds metadata to the header and sends the header.
func (ss *serverStream) SendHeader(md metadata.MD) error { return ss.s.cl.SendHeader(md) }

// SetTrailer adds metadata to the trailer. It cannot fail.
func (ss *serverStream) SetTrailer(md metadata.MD) {
	_ = ss.s.cl.SetTrailer(md) // only a network could refuse it
}

// Context returns the handler's context.
func (ss *serverStream) Context() context.Context { return &ss.s.cl.ctx }

// RecvMsg shares the client's request with m. Later calls return io.EOF.
func (ss *serverStream) RecvMsg(m any) error {
	if ss.got {
		return io.EOF
	}
	in, ok := m.(proto.Message)
	if !ok {
		return status.Errorf(codes.Internal, "inproc: request of %s is a %T, not a protobuf message", ss.s.cl.method, m)
	}
	if ss.s.req == nil {
		return status.Errorf(codes.Internal, "inproc: %s was read before its request was sent", ss.s.cl.method)
	}
	ss.got = true
	return share(in, ss.s.req)
}

// SendMsg passes m to the client and waits until the client reads the next message. It fails once
// the client has canceled the stream.
func (ss *serverStream) SendMsg(m any) error {
	if ss.stopped {
		return status.Error(codes.Canceled, context.Canceled.Error())
	}
	msg, err := ss.s.ch.handOver(m)
	if err != nil {
		return err
	}
	ss.s.cl.closeHeader()
	if ss.yield == nil {
		ss.s.short = append(ss.s.short, msg)
		return nil
	}
	if !ss.yield(msg) {
		ss.stopped = true
		return ss.s.cl.contextStatus()
	}
	return nil
}
