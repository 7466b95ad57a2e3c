package facade

import (
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/internal/cause"
)

// Call is a request that has been answered, as Options.Observe is told of it. It and
// its bodies belong to the server again when the one who is told returns: what is to be kept is copied.
type Call struct {
	// ID is that of the answer's header. The calls to the Bigtable behind carry it, over a connection
	// to another process in their metadata, as x-tabletop-cause.
	ID        string
	Operation string // "GetItem"; "" of what is no call of the protocol
	HTTP      *http.Request
	Request   []byte // the JSON of the body, unpacked
	Status    int
	Response  []byte        // the JSON of the answer
	Start     time.Time     // by Options.Now
	Duration  time.Duration // of wall time, until the answer was handed over
}

// stopwatch is the time by which calls take as long as they do, also where the clock stands still.
func stopwatch() time.Time { return time.Now() } //nolint:forbidigo // see above

// serveObserved answers a request and tells of it.
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

// observing returns the request with that id as it goes on: what it asks the Bigtable behind is
// asked in its name, if somebody is told of it.
func (c *Call) observing(r *http.Request, id string) *http.Request {
	if c == nil {
		return r
	}
	c.ID = id
	return r.WithContext(cause.With(r.Context(), id))
}

// conn is the connection to the Bigtable behind. It tells for which request a call is made, if somebody
// is told of it.
func (o *Options) conn() grpc.ClientConnInterface {
	if o.Observe == nil {
		return o.Conn
	}
	return cause.Carry(o.Conn)
}

// asks keeps what a request asks for, if somebody is told of it.
func (c *Call) asks(body []byte) {
	if c != nil {
		c.Request = body
	}
}
