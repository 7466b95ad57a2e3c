package emu

import (
	"context"
	"strconv"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// The headers from which official clients take what their metrics report:
// which cluster answered, and how long the service took to its first byte.
// Without either they count a call as one that never arrived.
const (
	locationHeader     = "x-goog-ext-425905942-bin" // ResponseParams
	serverTimingHeader = "server-timing"
)

// implicitLocation is the value of locationHeader.
var implicitLocation = func() string {
	raw, err := proto.Marshal(&btpb.ResponseParams{ZoneId: proto.String(implicitZone), ClusterId: proto.String(implicitCluster)})
	if err != nil {
		panic(err) // two constant strings
	}
	return string(raw)
}()

// responseParams are the headers of a call that began so long ago. Clients
// take a latency of 0 for none: it is at least a millisecond.
func responseParams(took time.Duration) metadata.MD {
	millis := max(took.Milliseconds(), 1)
	return metadata.MD{
		locationHeader:     {implicitLocation},
		serverTimingHeader: {"gfet4t7; dur=" + strconv.FormatInt(millis, 10)},
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
			resp, err := handler(impl, ctx, decode, ic)
			// It fails only if the client is gone.
			_ = grpc.SetHeader(ctx, responseParams(s.now().Sub(began)))
			return resp, err
		}
		out.Methods[i] = m
	}
	out.Streams = make([]grpc.StreamDesc, len(desc.Streams))
	for i, st := range desc.Streams {
		handler := st.Handler
		st.Handler = func(impl any, stream grpc.ServerStream) error {
			timed := &timedStream{ServerStream: stream, s: s, began: s.now()}
			err := handler(impl, timed)
			timed.describe()
			return err
		}
		out.Streams[i] = st
	}
	return &out
}

// timedStream sends the headers with the first message, or with the end of a
// stream that has none.
type timedStream struct {
	grpc.ServerStream
	s         *Server
	began     time.Time
	described bool
}

func (t *timedStream) describe() {
	if !t.described {
		t.described = true
		_ = t.SetHeader(responseParams(t.s.now().Sub(t.began)))
	}
}

// SendMsg implements grpc.ServerStream.
func (t *timedStream) SendMsg(m any) error {
	t.describe()
	return t.ServerStream.SendMsg(m)
}
