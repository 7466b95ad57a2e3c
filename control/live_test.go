package control_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/control"
	"github.com/tabletop-emu/tabletop/internal/test/labserver"
)

// streaming is a stream of events on a fake connection.
type streaming struct {
	conn  *fakeConn
	leave context.CancelFunc
	ended chan struct{}
}

// stream opens a stream, and returns when it was answered.
func (e *env) stream(query string) *streaming {
	e.t.Helper()
	ctx, leave := context.WithCancel(e.t.Context())
	s := &streaming{&fakeConn{flushed: make(chan struct{})}, leave, make(chan struct{})}
	r := httptest.NewRequestWithContext(ctx, "GET", "http://localhost"+control.Prefix+"events"+query, http.NoBody)
	r.Header.Set("Authorization", "Bearer "+token)
	go func() {
		defer close(s.ended)
		e.api.ServeHTTP(s.conn, r)
	}()
	s.flush()
	e.t.Cleanup(s.end)
	return s
}

// flush waits until data was sent, and reports whether the stream continues.
func (s *streaming) flush() bool {
	select {
	case <-s.conn.flushed:
		return true
	case <-s.ended:
		return false
	}
}

// end makes the client leave.
func (s *streaming) end() {
	s.leave()
	for s.flush() {
	}
}

// until waits for an event that contains a text.
func (s *streaming) until(text string) bool {
	for {
		s.conn.mu.Lock()
		found := strings.Contains(s.conn.text.String(), text)
		s.conn.mu.Unlock()
		if found || !s.flush() {
			return found
		}
	}
}

// TestEvents_Maximum: eight streams are allowed, the next is refused, and gets the place of
// one that leaves.
func TestEvents_Maximum(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	var open []*streaming
	for range 8 {
		open = append(open, e.stream(""))
	}
	refused := func() failed {
		t.Helper()
		c := &fakeConn{}
		got := e.serve(c, "GET", "events", http.NoBody, 0)
		if c.status != http.StatusTooManyRequests {
			t.Fatalf("a ninth stream: %d %+v", c.status, got)
		}
		return got
	}
	if got := refused(); got.Error.Code != "limit" || !strings.Contains(got.Error.Text, "8 event streams") || got.Error.Remedy == "" {
		t.Errorf("got %+v", got)
	}
	open[3].end()
	open = append(open, e.stream(""))
	refused()
	if open[8].conn.status != http.StatusOK {
		t.Errorf("a stream in a place that was free: %d", open[8].conn.status)
	}
}

// TestEvents_Cleared: a stream that begins after the requests were deleted waits for the next one.
func TestEvents_Cleared(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.query("CreateTable", createTable)
	e.must("DELETE", "requests", "", nil)
	for range 30 { // a stream that does not wait ends at once in half of the cases
		s := e.stream("")
		s.leave()
		if s.flush() {
			t.Fatal("a stream without events does not wait")
		}
	}
	s := e.stream("")
	e.query("ListTables", "{}")
	if !s.until(`"operation":"ListTables"`) {
		t.Errorf("the next request is missing: %s", s.conn.text.String())
	}
}

// TestEvents_Unread: a reader that stops loses its place after a deadline.
func TestEvents_Unread(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	var open []*streaming
	for range 8 {
		open = append(open, e.stream(""))
	}
	for _, s := range open {
		s.conn.stop()
	}
	e.query("CreateTable", createTable) // an event to send
	for _, s := range open {
		for s.flush() {
		}
	}
	for range 8 {
		if s := e.stream(""); s.conn.status != http.StatusOK {
			t.Fatalf("readers that stopped keep their places: %d", s.conn.status)
		}
	}
}

// TestEvents_Kinds: pages of tables and of the lab are notified of the changes that they show,
// by any client, and of nothing else.
func TestEvents_Kinds(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.query("CreateTable", strings.Replace(createTable, `"orders"`, `"before"`, 1))
	lab, tables, requests := e.stream("?kinds=lab"), e.stream("?kinds=tables"), e.stream("?kinds=requests")
	if !lab.until(`"faults":0`) {
		t.Error("a page of the lab does not get the state")
	}
	if text := tables.conn.text.String(); text != "" {
		t.Errorf("the earlier state is news: %q", text)
	}
	e.must("POST", "faults", `{"endpoint":"bigtable","method":"MutateRow","effect":"delay","delay":"1s"}`, nil)
	if !lab.until(`"faults":1`) {
		t.Error("the lab got no news of a fault")
	}
	e.must("POST", "clock", `{"advance":"1h"}`, nil)
	if !lab.until("2023-11-14T23:13:20Z") {
		t.Error("the lab got no news of the time")
	}
	e.must("DELETE", "faults", "", nil)
	e.query("CreateTable", createTable) // by the DynamoDB endpoint
	if !tables.until("event: tables\ndata: {}\n\n") {
		t.Error("no news of a table")
	}
	e.must("POST", "snapshots", `{"name":"s"}`, nil)
	if !lab.until(`"snapshots":1`) {
		t.Error("the lab got no news of a snapshot")
	}
	if !requests.until("event: request\n") {
		t.Error("no news of a request")
	}
	before := strings.Count(tables.conn.text.String(), "event: ")
	e.must("POST", "snapshots/s/restore", "", nil)
	if !lab.until(`"snapshots":1}`) || !tables.until(strings.Repeat("event: tables\ndata: {}\n\n", before+1)) {
		t.Error("no news of restored tables")
	}
	for s, want := range map[*streaming]string{lab: "lab", tables: "tables", requests: "request"} {
		s.end()
		if text := s.conn.text.String(); strings.Count(text, "event: ") != strings.Count(text, fmt.Sprintf("event: %s\n", want)) {
			t.Errorf("the stream of %s has %q", want, text)
		}
	}
}

// TestEvents_Runs: the progress of a migrate run, started by any client, is reported until it
// is done.
func TestEvents_Runs(t *testing.T) {
	t.Parallel()
	files := labserver.Hold(os.DirFS("../fixtures/subjects"), "s2-video/expect/schema.golden")
	e := newEnvOf(t, labserver.Options{Control: control.Options{Fixtures: files}})
	early := e.stream("?kinds=runs")
	if !early.until("event: runs\ndata: {\"runs\":[]}\n\n") {
		t.Error("no report that nothing runs")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.must("POST", "migrate/verify", `{"fixture":"s2-video"}`, nil)
	}()
	const loaded = `{"runs":[{"fixture":"s2-video","verb":"verify","table":"Videos","phase":"loading","items":9,"total":9}]}`
	if !early.until(loaded) {
		t.Error("no report of the progress")
	}
	if late := e.stream("?kinds=runs"); !late.until(loaded) {
		t.Error("a later reader does not get the progress")
	} else {
		late.end()
	}
	files.Give()
	ended := func() bool {
		early.conn.mu.Lock()
		defer early.conn.mu.Unlock()
		return strings.HasSuffix(early.conn.text.String(), "data: {\"runs\":[]}\n\n")
	}
	for !ended() && early.flush() {
	}
	if !ended() {
		t.Error("no report of the end")
	}
	<-done
}

// TestEvents_Moment: a stream after a moment of GET info reports the changes of tables since then, by clients
// and by the API. Without a change it reports none, and neither does a stream without a moment.
func TestEvents_Moment(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	moment := func() string {
		t.Helper()
		var info struct{ Events string }
		e.must("GET", "info", "", &info)
		return info.Events
	}
	// changed reports whether a stream reports tables before the state of the lab, which comes last.
	changed := func(after string) bool {
		t.Helper()
		s := e.stream("?kinds=tables,lab&after=" + after)
		defer s.end()
		if !s.until("event: lab") {
			t.Fatal("the stream has ended")
		}
		s.conn.mu.Lock()
		defer s.conn.mu.Unlock()
		return strings.Contains(s.conn.text.String(), "event: tables")
	}
	before := moment()
	if changed(before) {
		t.Error("tables have changed at the start")
	}
	e.query("CreateTable", createTable)
	after := moment()
	if !changed(before) || changed(after) || changed("") {
		t.Errorf("a client created a table: the change is after %s, not after %s", before, after)
	}
	e.must("POST", "reset", "", nil)
	if !changed(after) || changed(moment()) {
		t.Errorf("the API removed it: the change is after %s, not after %s", after, moment())
	}
	if got := (failed{}); e.ask("GET", "events?after=1.x", "", &got) != http.StatusBadRequest || !strings.Contains(got.Error.Text, "events of GET /api/v1/info") {
		t.Errorf("the answer to an invalid time: %+v", got)
	}
}
