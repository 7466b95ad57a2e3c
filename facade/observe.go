package facade

import (
	"context"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/facade/internal/wire"
	"github.com/tabletop-emu/tabletop/internal/cause"
	"github.com/tabletop-emu/tabletop/internal/exchange"
)

// Call describes a completed HTTP request for Options.Observe. Observe must copy the data
// that it keeps: the server reuses the Call and its bodies after Observe returns.
type Call struct {
	// ID is the request id in the header of the response. The calls to the Bigtable that
	// the request causes carry it; to a Bigtable in another process, they carry it as the
	// metadata x-tabletop-cause.
	ID        string
	Operation string // such as "GetItem"; "" for a request outside the protocol
	HTTP      *http.Request
	Request   []byte // JSON of the body, decompressed
	Status    int
	Response  []byte        // JSON of the response
	Start     time.Time     // start of the request, by Options.Now
	Duration  time.Duration // wall time until the response was ready

	began time.Time
}

// stopwatch returns wall time, which advances even if Options.Now does not.
func stopwatch() time.Time { return time.Now() } //nolint:forbidigo // see above

// observing returns the Call to report for a request, and ctx with the request id as the cause of
// Bigtable calls. If nothing observes, call is nil, and ctx is unchanged.
func (s *Server) observing(ctx context.Context, r *exchange.Request, id string) (_ context.Context, call *Call) {
	if s.opts.Observe == nil {
		return ctx, nil
	}
	ctx = cause.With(ctx, id)
	call = &Call{ID: id, Start: s.opts.Now(), HTTP: r.HTTP(ctx), began: stopwatch()}
	_, call.Operation, _ = strings.Cut(call.HTTP.Header.Get("X-Amz-Target"), ".")
	return ctx, call
}

// done reports a call with its response. It does nothing if c is nil. A panic of the observer is
// logged: the operation has taken effect, so its client must get the response.
func (c *Call) done(s *Server, response *wire.Response) {
	if c == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			s.logPanic(c.HTTP.Context(), "Options.Observe after "+c.Operation, p)
		}
	}()
	c.Duration, c.Status, c.Response = stopwatch().Sub(c.began), response.Status, response.Body
	s.opts.Observe(c)
}

// conn returns the connection to the Bigtable. If Options.Observe is set, calls on it carry
// the id of the request that causes them.
func (o *Options) conn() grpc.ClientConnInterface {
	if o.Observe == nil {
		return o.Conn
	}
	return cause.Carry(o.Conn)
}

// asks records the body of a request. It does nothing if c is nil.
func (c *Call) asks(body []byte) {
	if c != nil {
		c.Request = body
	}
}
