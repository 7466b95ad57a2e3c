package facade

import (
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/internal/cause"
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
	Duration  time.Duration // wall time until the response was written
}

// stopwatch returns wall time, which advances even if Options.Now does not.
func stopwatch() time.Time { return time.Now() } //nolint:forbidigo // see above

// serveObserved serves a request like ServeHTTP, and reports it to Options.Observe.
func (s *Server) serveObserved(w http.ResponseWriter, r *http.Request) {
	c := &Call{Start: s.opts.Now(), HTTP: r}
	_, c.Operation, _ = strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	began := stopwatch()
	a := s.serve(r, c)
	a.Write(w, r)
	c.Duration, c.Status, c.Response = stopwatch().Sub(began), a.Status, a.Body
	s.opts.Observe(c)
	s.pages.GiveBack(a.Body)
}

// observing sets the request id of c, and returns r with a context that names this id as the
// cause of Bigtable calls. If c is nil, because nothing observes, it returns r.
func (c *Call) observing(r *http.Request, id string) *http.Request {
	if c == nil {
		return r
	}
	c.ID = id
	return r.WithContext(cause.With(r.Context(), id))
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
