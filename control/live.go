package control

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tabletop-emu/tabletop/control/internal/requests"
)

const (
	// maxStreams bounds the streams of events at a time.
	maxStreams = 8
	// maxEvents is how many are sent before it is looked for more.
	maxEvents = 500
	// streamTime is how long a reader may leave what it was sent unread.
	streamTime = 10 * time.Second
)

// The kinds of events.
const (
	requestEvents = "requests"
	tableEvents   = "tables"
	labEvents     = "lab"
	runEvents     = "runs"
)

var eventKinds = []string{requestEvents, tableEvents, labEvents, runEvents}

// news says how often something has changed.
type news struct {
	mu     sync.Mutex
	count  newsCount
	newest chan struct{} // closed by the next change; nil if nobody waits
}

type newsCount struct{ tables, lab, runs int }

// changed tells those who wait.
func (n *news) changed(what change) {
	if what == changesNothing {
		return
	}
	n.tell(func(c *newsCount) {
		c.lab++
		if what == changesAll {
			c.tables++
		}
	})
}

// tell counts what has changed.
func (n *news) tell(add func(*newsCount)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	add(&n.count)
	if n.newest != nil {
		close(n.newest)
		n.newest = nil
	}
}

// now returns how often something has changed, and what the next change closes.
func (n *news) now() (newsCount, <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.newest == nil {
		n.newest = make(chan struct{})
	}
	return n.count, n.newest
}

// changesTables says whether a request of a client may have changed what tables there are, or what they are like.
func changesTables(r *requests.Record) bool {
	if r.Status != "OK" || r.Cause != "" || !strings.Contains(r.Operation, "Table") && r.Operation != "ModifyColumnFamilies" && r.Operation != "UpdateTimeToLive" {
		return false
	}
	for _, reads := range []string{"Get", "List", "Describe", "Check", "Export"} {
		if strings.HasPrefix(r.Operation, reads) {
			return false
		}
	}
	return true
}

// stream is a reader of events.
type stream struct {
	w  http.ResponseWriter
	to *http.ResponseController
}

// send writes an event; one with an id can be asked for again.
func (s stream) send(id uint64, name string, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	if id > 0 {
		_, err = fmt.Fprintf(s.w, "id: %d\nevent: %s\ndata: %s\n\n", id, name, text)
	} else {
		_, err = fmt.Fprintf(s.w, "event: %s\ndata: %s\n\n", name, text)
	}
	return err
}

// events streams what happens, until the client leaves, or reads nothing for streamTime. One that
// reads slowly misses what was given up meanwhile: the ids tell.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	var last uint64
	after := cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("after"))
	if after != "" {
		var err error
		if last, err = strconv.ParseUint(after, 10, 64); err != nil {
			fail(w, badRequest("after is %q, want the id of an event", after))
			return
		}
	}
	kinds := strings.Split(cmp.Or(r.URL.Query().Get("kinds"), requestEvents), ",")
	for _, kind := range kinds {
		if !slices.Contains(eventKinds, kind) {
			fail(w, badRequest("kinds has %q, want %s, with commas between them", kind, strings.Join(eventKinds, ", ")))
			return
		}
	}
	is, err := wanted(r)
	if err != nil {
		fail(w, err)
		return
	}
	if s.streams.Add(1) > maxStreams {
		s.streams.Add(-1)
		fail(w, &Error{http.StatusTooManyRequests, "limit", fmt.Sprintf("%d streams of events are open", maxStreams), "close one"})
		return
	}
	defer s.streams.Add(-1)
	out := stream{w, http.NewResponseController(w)}
	told, _ := s.live.now()
	// What it is like now comes first: who asked before may have missed something.
	if slices.Contains(kinds, labEvents) {
		told.lab--
	}
	if slices.Contains(kinds, runEvents) {
		told.runs--
	}
	if after == "" && !slices.Contains(kinds, requestEvents) {
		_, last = s.log.Since(math.MaxUint64-1, 0) // what requests have done until now is no news
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	for {
		// A reader that has stopped would hold its place for ever.
		if out.to.SetWriteDeadline(from(streamTime)) != nil || out.to.Flush() != nil {
			return
		}
		count, changed := s.live.now()
		found, newest := s.log.Since(last, maxEvents)
		if last > newest { // of a server before this one
			last = 0
			continue
		}
		tables := count.tables != told.tables
		for i := range found {
			last = found[i].ID
			tables = tables || changesTables(&found[i])
			if slices.Contains(kinds, requestEvents) && is(&found[i]) && out.send(last, "request", recordOf(&found[i], false)) != nil {
				return
			}
		}
		if tables && slices.Contains(kinds, tableEvents) && out.send(0, tableEvents, nothing{}) != nil {
			return
		}
		if count.lab != told.lab && slices.Contains(kinds, labEvents) && out.send(0, labEvents, s.state()) != nil {
			return
		}
		if count.runs != told.runs && slices.Contains(kinds, runEvents) && out.send(0, runEvents, s.runs.list()) != nil {
			return
		}
		if again := len(found) > 0 || count != told; again {
			told = count
			continue
		}
		select {
		case <-s.log.Changed(last):
		case <-changed:
		case <-s.stopping:
			return
		case <-r.Context().Done():
			return
		}
	}
}
