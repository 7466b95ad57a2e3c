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
// answered within two milliseconds, by the tenths of a millisecond. They are shared.
var usualHeaders = sync.OnceValue(func() []metadata.MD {
	where := locationValues(implicitLocation)
	out := make([]metadata.MD, 20)
	for tenths := range out {
		out[tenths] = metadata.MD{locationHeader: where, serverTimingHeader: serverTimingValues(int64(tenths))}
	}
	return out
})

// usualTrailer is the trailer beside usualHeaders.
var usualTrailer = sync.OnceValue(func() metadata.MD { return metadata.MD{locationHeader: locationValues(implicitLocation)} })

func locationValues(where *btpb.ResponseParams) []string {
	raw, err := proto.Marshal(where)
	if err != nil {
		return nil
	}
	return []string{string(raw)}
}

// serverTimingValues is a latency in tenths of a millisecond, so that it is not more than what
// a client measures of a short call. Clients ignore a latency of 0: it is at least a tenth.
func serverTimingValues(tenths int64) []string {
	return []string{"gfet4t7; dur=" + strconv.FormatFloat(float64(max(tenths, 1))/10, 'f', -1, 64)}
}

// responseParams returns the header and the trailer of a call that has no error yet, or
// ended with err; neither is to be written to. The trailer is for clients of wantsTrailer.
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
		_, err := admin.FindAuthorizedView(s.db, "name", name)
		return err == nil
	case resname.HasShape(name, "projects", "instances"):
		return admin.CheckInstance(s.db, name) == nil
	default:
		return false
	}
}
