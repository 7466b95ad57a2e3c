package emu

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/emu/internal/resname"
)

// The headers from which official clients take what their metrics report:
// which cluster answered, and how long the service took to its first byte.
// Without either they count a call as one that never arrived. The cluster is
// named in the trailer too, where the clients of Node and C++ look, but not for
// those that look into the header first; no cluster answers a call to a table or
// instance that does not exist.
const (
	locationHeader     = "x-goog-ext-425905942-bin" // ResponseParams
	serverTimingHeader = "server-timing"
)

// usualHeaders are those of most calls: to an instance that nobody created,
// answered within two milliseconds. They are shared.
var usualHeaders = sync.OnceValues(func() (header, trailer metadata.MD) {
	where := locationValues(implicitLocation)
	return metadata.MD{locationHeader: where, serverTimingHeader: serverTimingValues(1)}, metadata.MD{locationHeader: where}
})

func locationValues(where *btpb.ResponseParams) []string {
	raw, err := proto.Marshal(where)
	if err != nil {
		return nil
	}
	return []string{string(raw)}
}

func serverTimingValues(millis int64) []string {
	return []string{"gfet4t7; dur=" + strconv.FormatInt(millis, 10)}
}

// responseParams are the header and the trailer of a call that began so long
// ago and has no error yet, or ended with err; neither is to be written to. The
// trailer is for who wantsTrailer. Clients take a latency of 0 for none: it is at
// least a millisecond.
func (s *Server) responseParams(ctx context.Context, req any, began time.Time, err error) (header, trailer metadata.MD) {
	millis := s.now().Sub(began).Milliseconds()
	if err != nil && !s.exists(req) {
		return metadata.MD{serverTimingHeader: serverTimingValues(max(millis, 1))}, nil
	}
	header, trailer = usualHeaders()
	var where *btpb.ResponseParams
	if told := s.drawn(ctx); told != nil && told.known {
		where = told.where
	} else {
		where = s.answeredBy(req)
	}
	switch {
	case where == nil:
		return metadata.MD{serverTimingHeader: serverTimingValues(max(millis, 1))}, nil
	case where != implicitLocation:
		trailer = metadata.MD{locationHeader: locationValues(where)}
	case millis <= 1:
		return header, trailer
	}
	return metadata.MD{locationHeader: trailer[locationHeader], serverTimingHeader: serverTimingValues(max(millis, 1))}, trailer
}

// wantsTrailer reports whether a call may be from a client that looks for its
// cluster in the trailer alone, by the library that it says it is made with. The
// clients of Go and Java look into the header first, and a trailer with a field takes
// up to a tenth of the CPU of a small call.
func wantsTrailer(ctx context.Context) bool {
	for _, agent := range metadata.ValueFromIncomingContext(ctx, "user-agent") {
		for product := range strings.FieldsSeq(agent) {
			if strings.HasPrefix(product, "grpc-") {
				return !strings.HasPrefix(product, "grpc-go/") && !strings.HasPrefix(product, "grpc-java")
			}
		}
	}
	return true
}

// exists reports whether there is the table, view or instance that a request is to.
func (s *Server) exists(req any) bool {
	name, _ := targetOf(req)
	switch {
	case resname.HasShape(name, "projects", "instances", "tables"):
		_, err := s.db.Table(name)
		return err == nil
	case resname.HasShape(name, "projects", "instances", "tables", "authorizedViews"):
		_, err := findAuthorizedView(s.db, "name", name)
		return err == nil
	case resname.HasShape(name, "projects", "instances"):
		return checkInstance(s.db, name) == nil
	default:
		return false
	}
}

// withResponseParams makes the methods of desc send the headers. It is for
// services on a wire: a caller in this process measures nothing by them.
func (s *Server) withResponseParams(desc *grpc.ServiceDesc) *grpc.ServiceDesc {
	out := *desc
	out.Methods = make([]grpc.MethodDesc, len(desc.Methods))
	for i, m := range desc.Methods {
		handler := m.Handler
		m.Handler = func(impl any, ctx context.Context, decode func(any) error, ic grpc.UnaryServerInterceptor) (any, error) {
			began := s.now()
			ctx = s.drawing(ctx)
			var req any
			resp, err := handler(impl, ctx, func(m any) error {
				req = m
				return decode(m)
			}, ic)
			header, trailer := s.responseParams(ctx, req, began, err)
			// These fail only if the client is gone.
			_ = grpc.SetHeader(ctx, header)
			if wantsTrailer(ctx) {
				_ = grpc.SetTrailer(ctx, trailer)
			}
			return resp, err
		}
		out.Methods[i] = m
	}
	out.Streams = make([]grpc.StreamDesc, len(desc.Streams))
	for i, st := range desc.Streams {
		handler := st.Handler
		st.Handler = func(impl any, stream grpc.ServerStream) error {
			timed := &timedStream{ServerStream: stream, ctx: s.drawing(stream.Context()), s: s, began: s.now()}
			err := handler(impl, timed)
			timed.describe(err)
			return err
		}
		out.Streams[i] = st
	}
	return &out
}

// timedStream sends the headers with the first message, or with the end of a
// stream that has none, and the trailer.
type timedStream struct {
	grpc.ServerStream
	ctx       context.Context
	s         *Server
	began     time.Time
	req       any // the first message
	described bool
}

// Context implements grpc.ServerStream.
func (t *timedStream) Context() context.Context { return t.ctx }

func (t *timedStream) describe(err error) {
	if !t.described {
		t.described = true
		header, trailer := t.s.responseParams(t.Context(), t.req, t.began, err)
		_ = t.SetHeader(header)
		if wantsTrailer(t.Context()) {
			t.SetTrailer(trailer)
		}
	}
}

// RecvMsg implements grpc.ServerStream.
func (t *timedStream) RecvMsg(m any) error {
	err := t.ServerStream.RecvMsg(m)
	if t.req == nil && err == nil {
		t.req = m
	}
	return err
}

// SendMsg implements grpc.ServerStream.
func (t *timedStream) SendMsg(m any) error {
	t.describe(nil)
	return t.ServerStream.SendMsg(m)
}
