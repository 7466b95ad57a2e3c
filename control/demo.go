package control

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"

	"github.com/tabletop-emu/tabletop/control/internal/requests"
	"github.com/tabletop-emu/tabletop/control/lab"
	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// demo loads the shipped fixtures, with their mappings. Tables of clients would collide with
// theirs, so it needs a server without tables.
func (s *Server) demo(r *http.Request) (any, error) {
	if !s.opts.Demo {
		return nil, &Error{http.StatusConflict, "no_demo", "this server cannot load the demo: it keeps its data longer than the mappings of the demo, or its DynamoDB endpoint is off", "run tabletop demo --console"}
	}
	if !s.demos.TryLock() {
		return nil, &Error{http.StatusConflict, "not_empty", "another request loads the demo", "GET " + Prefix + "tables lists its tables"}
	}
	defer s.demos.Unlock()
	for _, t := range s.opts.Lab.DB().Tables("") {
		if !tableOf(t).Own {
			return nil, &Error{http.StatusConflict, "not_empty", "the server has tables, such as " + t.Name, "POST " + Prefix + "reset removes them"}
		}
	}
	names, err := s.dynamoDBTables(own(r))
	if err != nil {
		return nil, err
	}
	if len(names) > 0 {
		return nil, &Error{http.StatusConflict, "not_empty", "the server has tables, such as " + names[0] + " of DynamoDB", "POST " + Prefix + "reset removes them"}
	}
	subjects, err := fixtures.Subjects()
	if err != nil {
		return nil, err
	}
	options := s.opts.Lab.Options()
	var mappings []*mapping.Mapping
	var items int64
	for _, subject := range subjects {
		src, m, err := migrate.OpenFixture(subject.Files, source.Options{})
		if err != nil {
			return nil, fmt.Errorf("fixture %s: %w", subject.Name, err)
		}
		o := migrate.LoadOptions{Common: migrate.Common{Project: options.Project, Instance: options.Instance, Mappings: []*mapping.Mapping{m}}}
		loaded, err := migrate.Load(own(r), s.opts.Lab.Bigtable().Conn(), src, o)
		if err != nil {
			return nil, fmt.Errorf("fixture %s: %w", subject.Name, err)
		}
		mappings = append(mappings, m)
		items += loaded.Items
	}
	if err := s.opts.Endpoint.Map(mappings); err != nil {
		return nil, err
	}
	if err := s.PlayDemo(r.Context()); err != nil {
		return nil, err
	}
	return map[string]int64{"tables": int64(len(mappings)), "items": items}, nil
}

// The tables of the demo that get streams, and a skewed load.
const (
	demoStreamed     = "Videos"
	demoStreamedRows = "videos"
	demoHot          = "Events"
	demoHotWrites    = 300
	demoHotEvery     = 5 // every fifth write is of another item
	demoTest         = "demo"
)

// PlayDemo sends requests as a client of the test "demo" does, after the shipped fixtures
// were loaded. So the pages of requests, keys, streams and history have data from the
// beginning. It enables the DynamoDB stream and the Bigtable change stream of one table, puts
// the items of another table again (one of them most often), and runs the access patterns of
// all fixtures, except those that delete items.
func (s *Server) PlayDemo(ctx context.Context) error {
	s.demoLoaded.Store(true)
	if err := s.playStreams(ctx); err != nil {
		return fmt.Errorf("demo: the streams of %s: %w", demoStreamed, err)
	}
	if err := s.playHot(ctx); err != nil {
		return fmt.Errorf("demo: the load on %s: %w", demoHot, err)
	}
	subjects, err := fixtures.Subjects()
	if err != nil {
		return err
	}
	for _, subject := range subjects {
		f, err := fixtures.Open(subject.Files)
		if err != nil {
			return err
		}
		for i := range f.Patterns {
			if err := s.playPattern(ctx, f.Mapping.SourceTable(), f.Patterns[i].DynamoDB); err != nil {
				return fmt.Errorf("demo: access pattern %s of fixture %s: %w", f.Patterns[i].ID, subject.Name, err)
			}
		}
	}
	return nil
}

func (s *Server) playStreams(ctx context.Context) error {
	if _, err := s.play(ctx, "UpdateTable", []byte(`{"TableName":"`+demoStreamed+`","StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_AND_OLD_IMAGES"}}`)); err != nil {
		return err
	}
	return s.enableChangeStream(lab.Probe(ctx), s.opts.Lab.TableName(demoStreamedRows))
}

// playHot puts unchanged items again, so that the data of the fixture stays the same.
func (s *Server) playHot(ctx context.Context) error {
	answer, err := s.play(ctx, "Scan", []byte(`{"TableName":"`+demoHot+`"}`))
	if err != nil {
		return err
	}
	var page struct{ Items []json.RawMessage }
	if err := json.Unmarshal(answer, &page); err != nil {
		return err
	}
	for i := range demoHotWrites {
		item := page.Items[0]
		if i%demoHotEvery == 0 {
			item = page.Items[i/demoHotEvery%len(page.Items)]
		}
		if _, err := s.play(ctx, "PutItem", fmt.Appendf(nil, `{"TableName":%q,"Item":%s}`, demoHot, item)); err != nil {
			return err
		}
	}
	return nil
}

// playPattern sends q, a request of an access pattern, and those that follow it. q may be nil.
// It leaves out a BatchWriteItem and what follows it.
func (s *Server) playPattern(ctx context.Context, table string, q *fixtures.Request) error {
	if q == nil || q.Op == "BatchWriteItem" { // those of the fixtures delete items
		return nil
	}
	for _, one := range q.Requests() {
		body := maps.Clone(one.Request)
		if !strings.HasPrefix(one.Op, "Batch") {
			body["TableName"] = cmp.Or[any](body["TableName"], table)
		}
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		if _, err := s.play(ctx, one.Op, text); err != nil {
			return err
		}
	}
	return s.playPattern(ctx, table, q.Then)
}

// play runs an operation as the request of a client, except that faults of DynamoDB do not affect it.
func (s *Server) play(ctx context.Context, operation string, request []byte) (answer []byte, err error) {
	header := http.Header{}
	header.Set(requests.TestHeader, demoTest)
	return s.recorded(ctx, s.opts.Endpoint.Call, &facade.Call{ID: s.queryID(), Operation: operation, HTTP: &http.Request{Header: header}, Request: request})
}
