package control_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/control"
)

// serve answers a request on a fake connection.
func (e *env) serve(c *fakeConn, method, path string, body io.Reader, length int64) (got failed) {
	e.t.Helper()
	r := httptest.NewRequestWithContext(e.t.Context(), method, "http://localhost"+control.Prefix+path, body)
	r.ContentLength = length
	r.Header.Set("Authorization", "Bearer "+token)
	e.api.ServeHTTP(c, r)
	if err := json.Unmarshal([]byte(c.text.String()), &got); err != nil {
		e.t.Errorf("%s %s: %q: %v", method, path, c.text.String(), err)
	}
	return got
}

// TestBody_Slow: on any route, a body that does not arrive is awaited until its deadline, and
// has no effect.
func TestBody_Slow(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.query("CreateTable", createTable)
	for _, path := range []string{"reset", "clock", "query", "snapshots"} {
		c := &fakeConn{}
		got := e.serve(c, "POST", path, slowBody{strings.NewReader(`{"name":"x"`), c}, 1000)
		if c.status != http.StatusRequestTimeout || got.Error.Code != "timeout" || !strings.Contains(got.Error.Text, "11 bytes") || got.Error.Remedy == "" {
			t.Errorf("%s: %d %+v", path, c.status, got)
		}
		if c.header.Get("Connection") != "close" {
			t.Errorf("%s: the connection stays, though where the next request begins is unknown", path)
		}
	}
	var tables struct{ DynamoDB []string }
	if e.must("GET", "tables", "", &tables); len(tables.DynamoDB) != 1 {
		t.Errorf("an incomplete reset took effect: %+v", tables)
	}
}

// TestBody_Deadline: the deadline ends with the body; slow answers have no deadline.
func TestBody_Deadline(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	c := &fakeConn{}
	if e.serve(c, "POST", "clock", strings.NewReader(`{"freeze":true}`), 15); c.status != http.StatusOK || !c.read.IsZero() {
		t.Errorf("%d, a deadline at %v", c.status, c.read)
	}
}

// TestBody_Broken: an interrupted body and invalid JSON have different errors.
func TestBody_Broken(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	c := &fakeConn{}
	got := e.serve(c, "POST", "clock", io.MultiReader(strings.NewReader(`{"fr`), broken{}), 100)
	if c.status != http.StatusBadRequest || !strings.Contains(got.Error.Text, "ended early, after 4 bytes") {
		t.Errorf("%d %+v", c.status, got)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
