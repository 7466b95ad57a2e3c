package facade

import (
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/test/peer"
	"github.com/tabletop-emu/tabletop/internal/test/race"
)

// TestObserve: a request is reported after its answer, and its calls to the Bigtable carry
// its id.
func TestObserve(t *testing.T) {
	t.Parallel()
	native := map[string][]string{}
	srv := peer.Start(t, engine.Options{}, emu.Options{Observe: func(c *emu.Call) {
		native[c.Cause()] = append(native[c.Cause()], c.Method[strings.LastIndex(c.Method, "/")+1:])
	}})
	type observed struct {
		id, operation, request, response string
		status                           int
	}
	var calls []observed
	s, err := New(t.Context(), Options{Conn: srv.Conn(), NoAuth: true, Observe: func(c *Call) {
		calls = append(calls, observed{c.ID, c.Operation, string(c.Request), string(c.Response), c.Status})
		if c.Duration < 0 || c.Start.IsZero() || c.HTTP.Header.Get("X-Tabletop-Test") != "T" {
			t.Errorf("observed %+v", c)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	const create = `{"TableName":"Tab","BillingMode":"PAY_PER_REQUEST","KeySchema":[{"AttributeName":"k","KeyType":"HASH"}],
		"AttributeDefinitions":[{"AttributeName":"k","AttributeType":"S"}]}`
	for i, c := range []struct {
		operation, body string
		status          int
		native          string // one of the calls that it makes; "" if it makes none
	}{
		{"CreateTable", create, 200, "CreateTable"},
		{"PutItem", `{"TableName":"Tab","Item":{"k":{"S":"a"}}}`, 200, "CheckAndMutateRow"},
		{"GetItem", `{"TableName":"Tab","Key":{"k":{"S":"a"}}}`, 200, "ReadRows"},
		{"GetItem", `{"TableName":`, 400, ""},
		{"", "", 200, ""},
	} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(c.body))
		if c.operation == "" {
			r = httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		} else {
			r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+c.operation)
			r.Header.Set("Content-Type", "application/x-amz-json-1.0")
		}
		r.Header.Set("X-Tabletop-Test", "T")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		answered, err := io.ReadAll(w.Result().Body)
		if err != nil || len(calls) != i+1 {
			t.Fatalf("%s: %d observed calls, %v", c.operation, len(calls), err)
		}
		got := calls[i]
		want := observed{got.id, c.operation, c.body, string(answered), c.status}
		if got != want || !slices.Equal(spelled(w, "x-amzn-RequestId"), []string{got.id}) {
			t.Errorf("observed %+v\nwant %+v", got, want)
		}
		if made := strings.Join(native[got.id], " "); c.native == "" && made != "" || !strings.Contains(made, c.native) {
			t.Errorf("%s made the calls %q", c.operation, made)
		}
	}
}

// TestObserve_Off: without an observer, a request has no allocation for it, the unchanged
// connection, and calls without an id.
func TestObserve_Off(t *testing.T) { //nolint:paralleltest // it counts allocations
	if race.Enabled {
		t.Skip("the race detector allocates too")
	}
	allocations := func(observed func(*Call)) map[string]float64 {
		t.Helper()
		db, err := engine.Open(engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		causes := map[bool]int{}
		counting := false
		srv, err := emu.New(emu.Options{DB: db, Observe: func(c *emu.Call) {
			if counting {
				causes[c.Cause() != ""]++
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		o := Options{Conn: srv.Conn(), NoAuth: true, Observe: observed}
		if observed == nil && o.conn() != o.Conn {
			t.Error("the connection is wrapped")
		}
		s, err := New(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := errors.Join(s.Close(), srv.Close(), db.Close()); err != nil {
				t.Error(err)
			}
		}()
		ask := func(operation, body string) {
			r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
			r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
			r.Header.Set("Content-Type", "application/x-amz-json-1.0")
			w := httptest.NewRecorder()
			if s.ServeHTTP(w, r); w.Code != http.StatusOK {
				t.Fatalf("%s: %d %s", operation, w.Code, w.Body)
			}
		}
		ask("CreateTable", `{"TableName":"Tab","BillingMode":"PAY_PER_REQUEST","KeySchema":[{"AttributeName":"k","KeyType":"HASH"}],
			"AttributeDefinitions":[{"AttributeName":"k","AttributeType":"S"}]}`)
		out := map[string]float64{}
		counting = true
		for operation, body := range map[string]string{
			"PutItem": `{"TableName":"Tab","Item":{"k":{"S":"a"},"v":{"S":"value"}}}`,
			"GetItem": `{"TableName":"Tab","Key":{"k":{"S":"a"}},"ConsistentRead":true}`,
		} {
			ask("PutItem", `{"TableName":"Tab","Item":{"k":{"S":"a"},"v":{"S":"value"}}}`)
			// The minimum of several runs: the store also allocates in the background.
			out[operation] = math.Inf(1)
			for range 100 {
				out[operation] = min(out[operation], testing.AllocsPerRun(3, func() { ask(operation, body) }))
			}
		}
		if (causes[true] > 0) != (observed != nil) || observed == nil && causes[false] == 0 {
			t.Errorf("observed %v: calls with a cause and without: %v", observed != nil, causes)
		}
		return out
	}
	off, on := allocations(nil), allocations(func(*Call) {})
	for operation := range off {
		// Observing allocates at least the Call, the context with the id, and the request with it.
		if off[operation]+3 > on[operation] {
			t.Errorf("%s: %v allocations without an observer, %v with one", operation, off[operation], on[operation])
		}
	}
}
