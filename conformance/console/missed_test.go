package console

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/tabletop-emu/tabletop/internal/test/labserver"
)

// gate holds requests of a server back.
type gate struct {
	path    string        // of the held requests
	late    bool          // they are served at once, and only their answers are held
	arrived chan struct{} // receives for each
	pass    chan struct{} // closed: they continue
}

// hold waits until the gate opens. It reports false if the client is gone first: a test that failed
// never opens the gate, and its server waits for all requests.
func (g *gate) hold(r *http.Request) bool {
	g.arrived <- struct{}{}
	select {
	case <-g.pass:
		return true
	case <-r.Context().Done():
		return false
	}
}

// wait waits until a request has arrived.
func (g *gate) wait(p *tab) {
	p.t.Helper()
	select {
	case <-g.arrived:
	case <-p.ctx.Done():
		p.t.Fatalf("the page sends no request for %s: %v", g.path, p.complaints())
	}
}

// gated puts a gate before a server.
func gated(t *testing.T, s *labserver.Server, g *gate) *server {
	t.Helper()
	g.arrived, g.pass = make(chan struct{}, 10), make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != g.path:
			s.API.ServeHTTP(w, r)
		case !g.late:
			if g.hold(r) {
				s.API.ServeHTTP(w, r)
			}
		default:
			answer := httptest.NewRecorder()
			s.API.ServeHTTP(answer, r)
			if !g.hold(r) {
				return
			}
			maps.Copy(w.Header(), answer.Header())
			w.WriteHeader(answer.Code)
			_, _ = w.Write(answer.Body.Bytes())
		}
	}))
	t.Cleanup(srv.Close)
	t.Cleanup(srv.CloseClientConnections)
	return &server{s.Lab, s.DynamoDB, srv.URL}
}

// query runs an operation as a client's request, so that it is recorded when it is done.
func (s *server) query(t *testing.T, operation, request string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/api/v1/query", strings.NewReader(fmt.Sprintf(`{"operation":%q,"request":%s}`, operation, request)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", operation, resp.Status, err)
	}
}

// TestStreams_Missed: a page shows a change that comes after its first answer and before the stream of
// events is open, and one that comes while it reads that answer.
func TestStreams_Missed(t *testing.T) {
	ctx := browser(t)
	const shown = "document.querySelector('main tbody a')?.textContent === 'things'"
	start := func(t *testing.T, g *gate) (*server, *tab) {
		t.Helper()
		srv := gated(t, startWith(t, labserver.Options{Closed: true}), g)
		if err := srv.ddb.Open(); err != nil {
			t.Fatal(err)
		}
		srv.call(t, "CreateTable", createThings)
		return srv, open(t, ctx, srv)
	}
	t.Run("before the events", func(t *testing.T) {
		g := &gate{path: "/api/v1/events"}
		srv, p := start(t, g)
		p.visit("/streams") // its first answer is shown
		p.until("document.querySelector('main').innerText.includes('No table has a stream yet')")
		g.wait(p)
		srv.query(t, "UpdateTable", streamThings)
		close(g.pass)
		p.until(shown)
	})
	t.Run("during the first answer", func(t *testing.T) {
		g := &gate{path: "/api/v1/streams", late: true}
		srv, p := start(t, g)
		p.do(chromedp.Navigate(srv.url + "/streams"))
		g.wait(p)
		ask[bool](p, "import('/static/api.js').then(({ live }) => { live.addEventListener('tables', () => { window.heard = true; }); return true; })")
		srv.query(t, "UpdateTable", streamThings)
		p.until("window.heard === true")
		close(g.pass)
		p.until(shown)
		p.sound("a change during the first answer")
	})
}
