package emu

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/emu/internal/admin"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
)

// Official clients read these headers for their metrics: the cluster that answered, and the
// service's latency to the first byte. They count a call without them as lost. The trailer
// names the cluster too, for the clients of Node and C++, but not for clients that read the
// header first. A call to a table or instance that does not exist names no cluster.
const (
	locationHeader     = "x-goog-ext-425905942-bin" // ResponseParams
	serverTimingHeader = "server-timing"
)

// usualHeaders returns shared headers for most calls: calls to an implicit instance that took
// less than two milliseconds, by tenths of a millisecond.
var usualHeaders = sync.OnceValue(func() []metadata.MD {
	where := locationValues(implicitLocation)
	out := make([]metadata.MD, 20)
	for tenths := range out {
		out[tenths] = metadata.MD{locationHeader: where, serverTimingHeader: serverTimingValues(int64(tenths))}
	}
	return out
})

// usualTrailer returns the trailer for usualHeaders.
var usualTrailer = sync.OnceValue(func() metadata.MD { return metadata.MD{locationHeader: locationValues(implicitLocation)} })

func locationValues(where *btpb.ResponseParams) []string {
	raw, err := proto.Marshal(where)
	if err != nil {
		return nil
	}
	return []string{string(raw)}
}

// serverTimingValues formats a latency in tenths of a millisecond, so that it does not exceed
// the latency that a client measures. It is at least a tenth, as clients ignore 0.
func serverTimingValues(tenths int64) []string {
	return []string{"gfet4t7; dur=" + strconv.FormatFloat(float64(max(tenths, 1))/10, 'f', -1, 64)}
}

// responseParams returns the header and the trailer of a call, which may have failed with err.
// Callers must not change either. The trailer is for clients of wantsTrailer.
func (c *call) responseParams(err error) (header, trailer metadata.MD) {
	tenths := max(int64(c.now().Sub(c.ended.Start)/(100*time.Microsecond)), 0)
	if err != nil && !c.exists(c.req) {
		return metadata.MD{serverTimingHeader: serverTimingValues(tenths)}, nil
	}
	where := c.answeredBy()
	switch usual := usualHeaders(); {
	case where == nil:
		return metadata.MD{serverTimingHeader: serverTimingValues(tenths)}, nil
	case where != implicitLocation:
		trailer = metadata.MD{locationHeader: locationValues(where)}
	case tenths < int64(len(usual)):
		return usual[tenths], usualTrailer()
	default:
		trailer = usualTrailer()
	}
	return metadata.MD{locationHeader: trailer[locationHeader], serverTimingHeader: serverTimingValues(tenths)}, trailer
}

// wantsTrailer reports whether a call's client may read its cluster from the trailer only,
// judging by its user agent. The clients of Go and Java read the header first, and a trailer
// with a field costs up to a tenth of the CPU of a small call.
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

// exists reports whether a request's table, view or instance exists.
func (s *Server) exists(req any) bool {
	name, _ := targetOf(req)
	switch {
	case resname.HasShape(name, "projects", "instances", "tables"):
		_, err := s.db.Table(name)
		return err == nil
	case resname.HasShape(name, "projects", "instances", "tables", "authorizedViews"):
		_, err := admin.FindAuthorizedView(s.db, "name", name)
		return err == nil
	case resname.HasShape(name, "projects", "instances"):
		return admin.CheckInstance(s.db, name) == nil
	default:
		return false
	}
}
