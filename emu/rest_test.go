package emu

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/tabletop-emu/tabletop/engine"
)

// rest makes the request in the input of a command.
func (e *env) rest(d *datadriven.TestData) (string, error) {
	h, err := e.srv.REST()
	if err != nil {
		return "", err
	}
	line, body, _ := strings.Cut(d.Input, "\n")
	method, path, ok := strings.Cut(line, " ")
	if !ok {
		d.Fatalf(e.t, "expected METHOD PATH in the first line")
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(e.ctx(), method, path, strings.NewReader(body)))
	return fmt.Sprintf("%d\n%s", w.Code, w.Body), nil
}

// TestREST_Token checks that REST requires the token as the listener does.
func TestREST_Token(t *testing.T) {
	t.Parallel()
	e := newEnvWith(t, Options{Token: "secret"}, engine.Options{})
	h, err := e.srv.REST()
	if err != nil {
		t.Fatal(err)
	}
	for authorization, want := range map[string]int{
		"": http.StatusUnauthorized, "Bearer other": http.StatusUnauthorized, "Bearer secret": http.StatusOK,
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v2/"+testInstance+"/tables", nil)
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("authorization %q: status %d, want %d: %s", authorization, w.Code, want, w.Body)
		}
	}
}

// TestREST_LargeBody checks that a body above the limit is rejected.
func TestREST_LargeBody(t *testing.T) {
	t.Parallel()
	h, err := newEnv(t).srv.REST()
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v2/"+testInstance+"/tables", strings.NewReader(strings.Repeat(" ", 64<<20+1)))
	h.ServeHTTP(w, r)
	if w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
}
