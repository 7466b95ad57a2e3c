package facade

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/race"
)

// TestObserve: a request is told of after its answer, and what it asks of the Bigtable
// behind carries its id.
func TestObserve(t *testing.T) {
	t.Parallel()
	native := map[string][]string{}
	db, err := engine.Open(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	srv, err := emu.New(emu.Options{DB: db, Observe: func(c *emu.Call) {
		native[c.Cause()] = append(native[c.Cause()], c.Method[strings.LastIndex(c.Method, "/")+1:])
	}})
	if err != nil {
		t.Fatal(err)
	}
	type told struct {
		id, operation, request, response string
		status                           int
	}
	var calls []told
	s, err := New(t.Context(), Options{Conn: srv.Conn(), NoAuth: true, Observe: func(c *Call) {
		calls = append(calls, told{c.ID, c.Operation, string(c.Request), string(c.Response), c.Status})
		if c.Duration < 0 || c.Start.IsZero() || c.HTTP.Header.Get("X-Tabletop-Test") != "T" {
			t.Errorf("told %+v", c)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), srv.Close(), db.Close()); err != nil {
			t.Error(err)
		}
	})
	const create = `{"TableName":"Tab","BillingMode":"PAY_PER_REQUEST","KeySchema":[{"AttributeName":"k","KeyType":"HASH"}],
		"AttributeDefinitions":[{"AttributeName":"k","AttributeType":"S"}]}`
	for i, c := range []struct {
		operation, body string
		status          int
		native          string // one of the calls that it makes; "" for none
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
			t.Fatalf("%s: %d calls told of, %v", c.operation, len(calls), err)
		}
		got := calls[i]
		want := told{got.id, c.operation, c.body, string(answered), c.status}
		if got != want || !slices.Equal(spelled(w, "x-amzn-RequestId"), []string{got.id}) {
			t.Errorf("told %+v\nwant %+v", got, want)
		}
		if made := strings.Join(native[got.id], " "); c.native == "" && made != "" || !strings.Contains(made, c.native) {
			t.Errorf("%s made the calls %q", c.operation, made)
		}
	}
}

// TestObserve_Off: nobody who is told, nothing that is allocated for it.
func TestObserve_Off(t *testing.T) { //nolint:paralleltest // it counts allocations
	if race.Enabled {
		t.Skip("the race detector allocates too")
	}
	var c *Call
	r := httptest.NewRequest(http.MethodPost, "/", http.NoBody)
	if n := testing.AllocsPerRun(100, func() {
		c.asks(nil)
		r = c.observing(r, "id")
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
