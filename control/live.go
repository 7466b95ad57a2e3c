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
	// maxStreams limits the number of concurrent event streams.
	maxStreams = 8
	// maxEvents is the maximum number of events that are sent at a time.
	maxEvents = 500
	// streamTime is the longest time that a reader may leave data unread.
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

// news counts changes.
type news struct {
	mu     sync.Mutex
	count  newsCount
	newest chan struct{} // closed by the next change; nil without readers
}

type newsCount struct{ tables, lab, runs int }

// changed counts the changes that a request made, and wakes waiting readers.
func (n *news) changed(what change) {
	if what == changesNothing {
		return
	}
	n.add(func(c *newsCount) {
		c.lab++
		if what == changesAll {
			c.tables++
		}
	})
}

// add counts a change.
func (n *news) add(add func(*newsCount)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	add(&n.count)
	if n.newest != nil {
		close(n.newest)
		n.newest = nil
	}
}

// now returns the counts of changes, and a channel that the next change closes.
func (n *news) now() (newsCount, <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.newest == nil {
		n.newest = make(chan struct{})
	}
	return n.count, n.newest
}

// moment identifies the present moment, for events after it: the newest request, and the changes of tables by
// the API.
func (s *Server) moment() string {
	count, _ := s.live.now()
	_, last := s.log.Since(math.MaxUint64-1, 0)
	return fmt.Sprintf("%d.%d", last, count.tables)
}

// changesTables reports whether a client's request may have changed the list of tables or views,
// or their definitions.
func changesTables(r *requests.Record) bool {
	if r.Status != "OK" || r.Cause != "" || !strings.Contains(r.Operation, "Table") && !strings.Contains(r.Operation, "View") && r.Operation != "ModifyColumnFamilies" && r.Operation != "UpdateTimeToLive" {
		return false
	}
	for _, reads := range []string{"Get", "List", "Describe", "Check", "Export", "Open"} {
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

// send writes an event; a client can continue after an event with an id.
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

// events streams events until the client leaves, or reads nothing for streamTime. A slow
// reader misses dropped events, which shows in the ids.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	var last uint64
	sent, _ := s.live.now()
	after := cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("after"))
	if after != "" {
		id, changes, moment := strings.Cut(after, ".")
		var err error
		if last, err = strconv.ParseUint(id, 10, 64); err == nil && moment {
			sent.tables, err = strconv.Atoi(changes)
		}
		if err != nil {
			fail(w, badRequest("after is %q, want the id of an event, or events of GET "+Prefix+"info", after))
			return
		}
	}
	kinds := strings.Split(cmp.Or(r.URL.Query().Get("kinds"), requestEvents), ",")
	for _, kind := range kinds {
		if !slices.Contains(eventKinds, kind) {
			fail(w, badRequest("kinds contains %q, want a comma-separated list of %s", kind, strings.Join(eventKinds, ", ")))
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
		fail(w, &Error{http.StatusTooManyRequests, "limit", fmt.Sprintf("%d event streams are open, the maximum", maxStreams), "close one"})
		return
	}
	defer s.streams.Add(-1)
	out := stream{w, http.NewResponseController(w)}
	// The current state comes first: a reader that connects again may have missed changes.
	if slices.Contains(kinds, labEvents) {
		sent.lab--
	}
	if slices.Contains(kinds, runEvents) {
		sent.runs--
	}
	if after == "" && !slices.Contains(kinds, requestEvents) {
		_, last = s.log.Since(math.MaxUint64-1, 0) // the effects of earlier requests are not news
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	for {
		// A stopped reader would keep its place forever.
		if out.to.SetWriteDeadline(from(streamTime)) != nil || out.to.Flush() != nil {
			return
		}
		count, changed := s.live.now()
		found, newest := s.log.Since(last, maxEvents)
		if last > newest { // from an earlier server
			last = 0
			continue
		}
		tables, keys := count.tables != sent.tables, s.itemKeys(own(r))
		for i := range found {
			last = found[i].ID
			tables = tables || changesTables(&found[i])
			if !slices.Contains(kinds, requestEvents) || !is(&found[i]) {
				continue
			}
			shown := recordOf(&found[i], false)
			keys.describe(&shown, &found[i])
			if out.send(last, "request", shown) != nil {
				return
			}
		}
		if len(found) < maxEvents {
			last = newest // also after deleted requests, for which the stream would not wait
		}
		if tables && slices.Contains(kinds, tableEvents) && out.send(0, tableEvents, nothing{}) != nil {
			return
		}
		if count.lab != sent.lab && slices.Contains(kinds, labEvents) && out.send(0, labEvents, s.state()) != nil {
			return
		}
		if count.runs != sent.runs && slices.Contains(kinds, runEvents) && out.send(0, runEvents, s.runs.list()) != nil {
			return
		}
		if again := len(found) > 0 || count != sent; again {
			sent = count
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
