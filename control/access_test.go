package control_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/tabletop-emu/tabletop/control"
	"github.com/tabletop-emu/tabletop/control/lab"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/migrate"
)

// endpoint sends a request to the DynamoDB endpoint, and returns the status; 0 if the test has
// failed.
func (e *env) endpoint(operation string, body []byte, headers ...string) int {
	e.t.Helper()
	r, err := http.NewRequestWithContext(e.t.Context(), "POST", "http://x/", strings.NewReader(string(body)))
	if err != nil {
		e.t.Error(err)
		return 0
	}
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := (&http.Client{Transport: e.ddb}).Do(r)
	if err != nil {
		e.t.Error(err)
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// TestPattern_OrderEntry: the requests of the fourteen patterns of the order entry are sent to
// the endpoint, saved as access patterns, and verified unchanged through both endpoints.
func TestPattern_OrderEntry(t *testing.T) {
	t.Parallel()
	all := subjects(t)
	files := all[slices.IndexFunc(all, func(s fixtures.Subject) bool { return s.Name == "s5-order-entry" })].Files
	f, err := fixtures.Open(files)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Patterns) != 14 {
		t.Fatalf("%d patterns, want 14", len(f.Patterns))
	}
	e, m := fixtureEnv(t, files)
	saved := fstest.MapFS{}
	err = fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(path, "access/") {
			return err
		}
		text, err := fs.ReadFile(files, path)
		saved[path] = &fstest.MapFile{Data: text}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, p := range f.Patterns {
		for i, q := range p.DynamoDB.Requests() {
			q.Request["TableName"] = m.SourceTable()
			body, err := json.Marshal(q.Request)
			if err != nil {
				t.Fatal(err)
			}
			name := fmt.Sprintf("%s-%d", p.ID, i)
			if status := e.endpoint(q.Op, body, "X-Tabletop-Test", name); status != http.StatusOK {
				t.Fatalf("%s: status %d", name, status)
			}
			var seen struct{ Requests []struct{ ID int } }
			e.must("GET", "requests?endpoint=dynamodb&test="+name, "", &seen)
			if len(seen.Requests) != 1 {
				t.Fatalf("%s: %d requests", name, len(seen.Requests))
			}
			var pattern struct{ File, Text string }
			e.must("GET", fmt.Sprintf("requests/%d/pattern", seen.Requests[0].ID), "", &pattern)
			saved["access/"+pattern.File] = &fstest.MapFile{Data: []byte(pattern.Text)}
			asked++
			// For a shard of GSI2 the endpoint reads all shards, and omits the others.
			if native := strings.Contains(pattern.Text, "\nbigtable:\n"); native == (p.ID == "P5") {
				t.Errorf("%s: it has a native read: %v\n%s", name, native, pattern.Text)
			}
		}
	}
	l := lab.New(lab.Options{Clock: clock.NewFrozen(time.Unix(1_800_000_000, 0)), Logger: e.lab.Options().Logger, Project: "tabletop", Instance: "tabletop"})
	if err := l.Open(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	done, err := migrate.Verify(t.Context(), l.Bigtable().Conn(), migrate.OfFixture(saved), migrate.VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := done.WriteJSON(&text); err != nil {
		t.Fatal(err)
	}
	if !done.Equal() || len(done.Patterns) != asked {
		t.Errorf("verify of %d patterns reports: %s", asked, text.String())
	}
}

// TestTrace: lint judges requests of the endpoint that were saved as a trace, in the order in
// which they were sent.
func TestTrace(t *testing.T) {
	t.Parallel()
	all := subjects(t)
	files := all[slices.IndexFunc(all, func(s fixtures.Subject) bool { return s.Name == "s5-order-entry" })].Files
	e, m := fixtureEnv(t, files)
	f, err := fixtures.Open(files)
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, p := range f.Patterns {
		for _, q := range p.DynamoDB.Requests() {
			q.Request["TableName"] = m.SourceTable()
			body, err := json.Marshal(q.Request)
			if err != nil {
				t.Fatal(err)
			}
			if status := e.endpoint(q.Op, body, "X-Tabletop-Test", "traced"); status != http.StatusOK {
				t.Fatalf("%s: status %d", p.ID, status)
			}
			asked++
		}
	}
	e.endpoint("GetItem", []byte(`{"TableName":"none","Key":{}}`), "X-Tabletop-Test", "traced") // the endpoint rejects it
	var trace struct {
		File, Text string
		Requests   int
	}
	e.must("GET", "requests/trace?test=traced&table="+m.SourceTable(), "", &trace)
	if trace.Requests != asked || strings.Count(trace.Text, "\n") != asked {
		t.Errorf("%d requests in %q, want %d", trace.Requests, trace.Text, asked)
	}
	saved := fstest.MapFS{}
	err = fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			var text []byte
			text, err = fs.ReadFile(files, path)
			saved[path] = &fstest.MapFile{Data: text}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	saved["trace/"+trace.File] = &fstest.MapFile{Data: []byte(trace.Text)}
	if _, err := migrate.Lint(t.Context(), migrate.OfFixture(saved), migrate.LintOptions{}); err != nil {
		t.Errorf("lint: %v", err)
	}
	e.must("GET", "requests/trace?table=none", "", &trace)
	if trace.Requests != 0 || trace.Text != "" {
		t.Errorf("of no table: %+v", trace)
	}
}

// TestPattern_Refused: the error for a request without an access pattern has the reason.
func TestPattern_Refused(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.query("CreateTable", createTable)
	if status := e.endpoint("PutItem", []byte(`{"TableName":"orders","Item":{"k":{"S":"a"}}}`)); status != http.StatusOK {
		t.Fatal(status)
	}
	e.endpoint("GetItem", []byte(`{"TableName":"none","Key":{"k":{"S":"a"}}}`))
	var seen struct {
		Requests []struct {
			ID                  int
			Endpoint, Operation string
		}
	}
	e.must("GET", "requests", "", &seen)
	for _, r := range seen.Requests {
		var got failed
		if code := e.ask("GET", fmt.Sprintf("requests/%d/pattern", r.ID), "", &got); code != http.StatusBadRequest || got.Error.Code != "bad_request" || got.Error.Text == "" {
			t.Errorf("%+v: %d %+v", r, code, got)
		}
	}
	var got failed
	if code := e.ask("GET", "requests/100000/pattern", "", &got); code != http.StatusNotFound || got.Error.Remedy == "" || len(seen.Requests) == 0 {
		t.Errorf("%d %+v", code, got)
	}
}

// TestRequests_Many: of ten thousand requests of a hundred clients the newest are kept, once
// each, in the order in which they ended, while a viewer has stopped reading.
func TestRequests_Many(t *testing.T) {
	t.Parallel()
	const clients, each = 100, 60 // more than the capacity of the ring
	e := newEnv(t)
	e.query("CreateTable", createTable)
	// The viewer reads nothing: events stay in the buffers of the connection until these are
	// full.
	viewer, err := net.Dial("tcp", strings.TrimPrefix(e.url, "http://")) //nolint:noctx // it is closed below
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = viewer.Close() }()
	if _, err := fmt.Fprintf(viewer, "GET %sevents HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", control.Prefix, token); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			for i := range each {
				body := fmt.Sprintf(`{"TableName":"orders","Item":{"k":{"S":"%d/%d"},"v":{"S":%q}}}`, c, i, strings.Repeat("x", 200))
				if status := e.endpoint("PutItem", []byte(body), "X-Tabletop-Test", fmt.Sprintf("%d/%d", c, i)); status != http.StatusOK {
					t.Errorf("%d/%d: status %d", c, i, status)
				}
			}
		})
	}
	all.Wait()
	type record struct {
		ID               int
		Endpoint, Test   string
		RequestID, Cause string
	}
	var kept []record
	for before := ""; ; {
		var page struct{ Requests []record }
		e.must("GET", "requests?limit=1000"+before, "", &page)
		if len(page.Requests) == 0 {
			break
		}
		kept = append(kept, page.Requests...)
		before = fmt.Sprintf("&before=%d", kept[len(kept)-1].ID)
	}
	if len(kept) != 5000 {
		t.Fatalf("%d requests are kept, want as many as the ring has", len(kept))
	}
	// The newest first: the ids have no gap, and the requests of each client are its last
	// ones, in order.
	next := map[int]int{}
	for i, r := range kept {
		if r.ID != kept[0].ID-i {
			t.Fatalf("place %d has the request %d, want %d", i, r.ID, kept[0].ID-i)
		}
		if r.Endpoint != "dynamodb" || r.Test == "" {
			continue
		}
		var c, n int
		if _, err := fmt.Sscanf(r.Test, "%d/%d", &c, &n); err != nil {
			t.Fatal(err)
		}
		if want := each - 1 - next[c]; n != want {
			t.Fatalf("the request %d of client %d is in the place of %d", n, c, want)
		}
		next[c]++
	}
	if kept[0].ID < clients*each {
		t.Errorf("the newest is %d", kept[0].ID)
	}
}
