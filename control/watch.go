package control

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tabletop-emu/tabletop/control/internal/access"
	"github.com/tabletop-emu/tabletop/control/internal/requests"
	"github.com/tabletop-emu/tabletop/control/lab/dynamodb"
	"github.com/tabletop-emu/tabletop/control/lab/fault"
	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/cause"
	"github.com/tabletop-emu/tabletop/internal/days"
	"github.com/tabletop-emu/tabletop/internal/probe"
)

// record is a request in its shown form.
type record struct {
	ID        uint64    `json:"id"`
	Endpoint  string    `json:"endpoint"`
	Operation string    `json:"operation"`
	Table     string    `json:"table,omitempty"`
	Key       *Bytes    `json:"key,omitempty"`
	Status    string    `json:"status"`
	Text      string    `json:"text,omitempty"`
	Start     time.Time `json:"start"`
	Millis    float64   `json:"millis"`
	Rows      int       `json:"rows,omitempty"`
	RowsRead  int       `json:"rowsRead,omitempty"`  // of tables, by a SQL query
	Statement string    `json:"statement,omitempty"` // the beginning of the SQL
	Bytes     int64     `json:"bytes,omitempty"`
	RequestID string    `json:"requestID,omitempty"`
	Cause     string    `json:"cause,omitempty"`
	Test      string    `json:"test,omitempty"`
	Own       bool      `json:"own,omitempty"`      // of the console itself
	Stopped   bool      `json:"stopped,omitempty"`  // the caller canceled the read after it had enough
	Attempt   int       `json:"attempt,omitempty"`  // of the client, from 1 on
	Attempts  int       `json:"attempts,omitempty"` // its maximum
	Fault     uint64    `json:"fault,omitempty"`    // of DynamoDB, that answered it

	// Of a DynamoDB request.
	Item      json.RawMessage `json:"item,omitempty"`  // the first key that it names
	Items     int             `json:"items,omitempty"` // the number of keys
	Condition string          `json:"condition,omitempty"`

	Write bool `json:"write,omitempty"` // in a history: it, or one of its calls, writes the row

	// Of a single record.
	Request  json.RawMessage `json:"request,omitempty"`
	Response json.RawMessage `json:"response,omitempty"`
	Cut      bool            `json:"cut,omitempty"` // the bodies were too large to be recorded
	Calls    []record        `json:"calls,omitempty"`
	Touched  []touched       `json:"touched,omitempty"` // the rows that it, or its calls, name
	More     int             `json:"more,omitempty"`    // further rows
}

func recordOf(r *requests.Record, whole bool) record {
	out := record{
		ID: r.ID, Endpoint: r.Endpoint, Operation: r.Operation, Table: r.Table(), Status: r.Status, Text: r.Text, Start: r.Start,
		Millis: float64(r.Duration.Microseconds()) / 1000, Rows: r.Rows, RowsRead: r.RowsRead, Statement: r.Statement, Bytes: r.Bytes, RequestID: r.RequestID, Cause: r.Cause, Test: r.Test,
		Own: r.Own, Stopped: r.Stopped, Attempt: r.Attempt, Attempts: r.Attempts, Fault: r.Fault,
	}
	if len(r.Key()) > 0 {
		key := bytesOf(r.Key())
		out.Key = &key
	}
	if whole {
		out.Request, out.Response, out.Cut = r.Bodies()
	}
	return out
}

// wantedParameters lists the query parameters that wanted reads.
const wantedParameters = "endpoint operation table status failed internal own test"

// wanted returns the filter of a query for records. It rejects values that no record can have.
func wanted(r *http.Request) (func(*requests.Record) bool, error) {
	q := r.URL.Query()
	endpoint, operation, table, test := q.Get("endpoint"), q.Get("operation"), q.Get("table"), q.Get("test")
	if endpoint != "" && endpoint != requests.Bigtable && endpoint != requests.DynamoDB {
		return nil, badRequest("endpoint is %q, want %s or %s", endpoint, requests.Bigtable, requests.DynamoDB)
	}
	status, err := statusParam(q)
	failed, err1 := yes(q, "failed", false)
	internal, err2 := yes(q, "internal", true)
	own, err3 := yes(q, "own", false)
	if err := cmp.Or(err, err1, err2, err3); err != nil {
		return nil, err
	}
	return func(rec *requests.Record) bool {
		switch {
		case endpoint != "" && rec.Endpoint != endpoint,
			operation != "" && rec.Operation != operation,
			status != "" && rec.Status != status,
			failed && (rec.Status == "OK" || rec.Stopped),
			!internal && rec.Cause != "",
			!own && rec.Own,
			test != "" && rec.Test != test,
			table != "" && rec.Table() != table && !strings.HasSuffix(rec.Table(), "/tables/"+table) && !strings.HasSuffix(rec.Table(), "/materializedViews/"+table):
			return false
		}
		return true
	}, nil
}

// plainCodes are the codes of DynamoDB without the suffix Exception.
var plainCodes = []string{awserr.CodeInternalServerError, awserr.CodeRequestLimit, awserr.CodeServiceUnavailable}

// statusParam returns the status that a query asks for, in the form that records use; "" for any.
func statusParam(q url.Values) (string, error) {
	text := q.Get("status")
	if text == "" || text == "OK" || strings.HasSuffix(text, "Exception") || slices.Contains(plainCodes, text) {
		return text, nil
	}
	if code, ok := statusCode(text); ok {
		return code.String(), nil
	}
	return "", badRequest("status is %q, want OK, a gRPC code such as Unavailable, or a DynamoDB code such as ThrottlingException", text)
}

func (s *Server) requests(r *http.Request) (any, error) {
	most, err := limit(r.URL.Query(), defaultRows)
	if err != nil {
		return nil, err
	}
	var before uint64 = math.MaxUint64
	if text := r.URL.Query().Get("before"); text != "" {
		if before, err = strconv.ParseUint(text, 10, 64); err != nil {
			return nil, badRequest("before is %q, want the id of a request", text)
		}
	}
	is, err := wanted(r)
	if err != nil {
		return nil, err
	}
	out := struct {
		Requests []record `json:"requests"`
		Before   uint64   `json:"before,omitempty"` // further records exist: ?before= returns them
	}{Requests: []record{}}
	keys := s.itemKeys(own(r))
	s.log.Newest(func(rec *requests.Record) bool {
		if rec.ID >= before || !is(rec) {
			return true
		}
		if len(out.Requests) == most {
			out.Before = out.Requests[most-1].ID
			return false
		}
		out.Requests = append(out.Requests, recordOf(rec, false))
		keys.describe(&out.Requests[len(out.Requests)-1], rec)
		return true
	})
	return out, nil
}

func (s *Server) request(r *http.Request) (any, error) { return s.found(r) }

// found returns the request in a path, with its bodies and calls.
func (s *Server) found(r *http.Request) (record, error) {
	id, err := strconv.ParseUint(r.PathValue("id"), 10, 64)
	if err == nil && id > 0 {
		if found, _ := s.log.Since(id-1, 1); len(found) == 1 && found[0].ID == id {
			out := recordOf(&found[0], true)
			s.itemKeys(own(r)).describe(&out, &found[0])
			calls := found
			if out.RequestID != "" {
				calls = s.log.CausedBy(out.RequestID)
				out.Calls = recordsOf(calls)
			}
			out.Touched, out.More = touchedBy(calls)
			return out, nil
		}
	}
	return record{}, notFound("request", r.PathValue("id"), "only the newest are kept: GET "+Prefix+"requests lists them")
}

// pattern returns a request as an access pattern.
func (s *Server) pattern(r *http.Request) (any, error) {
	rec, err := s.found(r)
	if err != nil {
		return nil, err
	}
	if rec.Endpoint != requests.DynamoDB || rec.Status != "OK" {
		return nil, badRequest("request %d is not a successful DynamoDB request: %s, %s", rec.ID, rec.Operation, rec.Status)
	}
	in := access.Request{ID: fmt.Sprintf("r%d", rec.ID), Operation: rec.Operation, Request: rec.Request, Response: rec.Response}
	for _, c := range rec.Calls {
		in.Calls = append(in.Calls, access.Call{Operation: c.Operation, Request: c.Request, Rows: c.Rows})
	}
	text, err := access.Pattern(in)
	if err != nil {
		return nil, badRequest("request %d cannot become an access pattern: %v", rec.ID, err)
	}
	return map[string]any{"file": in.ID + ".yaml", "text": text}, nil
}

// trace returns the served DynamoDB requests as a trace for lint, the oldest first: a file for
// the folder trace of a fixture.
func (s *Server) trace(r *http.Request) (any, error) {
	var lines []traced
	is, err := wanted(r)
	if err != nil {
		return nil, err
	}
	s.log.Newest(func(rec *requests.Record) bool {
		if rec.Endpoint == requests.DynamoDB && rec.Status == "OK" && rec.Table() != "" && is(rec) {
			if request, _, _ := rec.Bodies(); json.Valid(request) { // otherwise too large to be recorded
				lines = append(lines, traced{rec.Start.UTC(), rec.Operation, request})
			}
		}
		return true
	})
	// They are recorded in the order of their answers; a trace is in the order of their
	// starts.
	slices.SortStableFunc(lines, func(a, b traced) int { return a.At.Compare(b.At) })
	var text strings.Builder
	for _, line := range lines {
		out, err := json.Marshal(line)
		if err != nil {
			return nil, err
		}
		text.Write(append(out, '\n'))
	}
	return map[string]any{"file": "trace.jsonl", "text": text.String(), "requests": len(lines)}, nil
}

// traced is a line of a trace.
type traced struct {
	At      time.Time       `json:"at"`
	Op      string          `json:"op"`
	Request json.RawMessage `json:"request"`
}

// clear empties the list of requests.
func (s *Server) clear(*http.Request) (any, error) {
	s.log.Clear()
	return nothing{}, nil
}

// recordsOf returns the calls of a DynamoDB request with their bodies.
func recordsOf(calls []requests.Record) []record {
	out := make([]record, len(calls))
	for i := range calls {
		out[i] = recordOf(&calls[i], true)
	}
	return out
}

// query runs a DynamoDB operation and returns its calls. Like a request of the endpoint, it is
// recorded, and faults affect it.
func (s *Server) query(r *http.Request) (any, error) {
	var in struct {
		Operation string          `json:"operation"`
		Request   json.RawMessage `json:"request"`
		Faults    *bool           `json:"faults"` // false: faults of DynamoDB do not affect it
		Own       bool            `json:"own"`    // the request inspects data: faults do not affect it, and it is not counted
	}
	if err := read(r, &in); err != nil {
		return nil, err
	}
	ask, ctx, id := s.opts.Endpoint.Ask, r.Context(), s.queryID()
	if in.Faults != nil && !*in.Faults || in.Own {
		ask = s.opts.Endpoint.Call
	}
	if in.Own {
		ctx, id = own(r), probe.ID(s.queries.Load())
	}
	answer, err := s.recorded(ctx, ask, &facade.Call{ID: id, Operation: in.Operation, HTTP: r, Request: in.Request})
	if err != nil {
		return nil, err
	}
	return map[string]any{"response": json.RawMessage(answer), "calls": recordsOf(s.log.CausedBy(id))}, nil
}

// queryID returns the id of a request that does not come over the endpoint's connection.
func (s *Server) queryID() string { return fmt.Sprintf("query-%d", s.queries.Add(1)) }

// recorded runs the operation of a call with ask, completes the call, and records it.
func (s *Server) recorded(ctx context.Context, ask func(context.Context, string, []byte) ([]byte, error), call *facade.Call) (answer []byte, err error) {
	call.Start, call.Status = s.opts.Lab.Clock().Now(), http.StatusOK
	began := from(0)
	answer, err = ask(cause.With(ctx, call.ID), call.Operation, call.Request)
	call.Duration, call.Response = from(0).Sub(began), answer
	if err != nil {
		said := asError(err)
		call.Status = said.Status
		if by, ok := errors.AsType[*dynamodb.FaultError](err); ok {
			call.HTTP = call.HTTP.WithContext(fault.With(call.HTTP.Context(), by.Fault))
		}
		call.Response, _ = json.Marshal(map[string]string{"__type": said.Code, "message": said.Text}) // a map of strings never fails
	}
	s.log.DynamoDB(call)
	return answer, err
}

func (s *Server) heatPlaces(*http.Request) (any, error) {
	type place struct {
		Cluster string `json:"cluster"`
		Table   string `json:"table"`
	}
	out := []place{}
	for _, p := range s.opts.Lab.Bigtable().LoadPlaces() {
		out = append(out, place{p.Cluster, p.Table})
	}
	return map[string]any{"places": out}, nil
}

// insights returns the most used keys of a DynamoDB table, or of its index, while contributor
// insights are on.
func (s *Server) insights(r *http.Request) (any, error) {
	keys, err := s.opts.Endpoint.TopKeys(own(r), r.PathValue("table"), r.URL.Query().Get("index"))
	if err != nil {
		return nil, s.naming(r, err)
	}
	return keys, nil
}

// counts are emu.LoadCounts in JSON.
type counts struct {
	Reads  uint64 `json:"reads"`
	Writes uint64 `json:"writes"`
	Rows   uint64 `json:"rows"`
	Bytes  uint64 `json:"bytes"`
	Errors uint64 `json:"errors"`
}

type bucket struct {
	First Bytes     `json:"first"`           // its first counted key
	Last  Bytes     `json:"last"`            // and its last; equal if a row has a separate bucket
	Parts []keyPart `json:"parts,omitempty"` // of First
	counts
}

type heatColumn struct {
	Start time.Time `json:"start"`
	Cells []counts  `json:"cells"` // by the indexes of the keys
}

// heatMap returns the load of requests on the keys of a table, in all clusters or in
// ?cluster=. Columns are at least ?step= wide, from ?last= ago on, with at most ?limit=
// buckets. It also returns the oversized rows.
func (s *Server) heatMap(r *http.Request) (any, error) {
	q := r.URL.Query()
	buckets, err := limit(q, 256)
	if err != nil {
		return nil, err
	}
	step, last := time.Second, 15*time.Minute
	for name, into := range map[string]*time.Duration{"step": &step, "last": &last} {
		if q.Has(name) {
			if *into, err = days.Parse(q.Get(name)); err != nil || *into < time.Second {
				return nil, badRequest("%s is %q, want a duration of at least 1s", name, q.Get(name))
			}
		}
	}
	table := s.tableName(r)
	if _, err := s.opts.Lab.DB().Table(table); err != nil {
		return nil, noTable(own(r), s, table)
	}
	var places []emu.LoadPlace
	clusters := []string{}
	bigtable := s.opts.Lab.Bigtable()
	for _, p := range bigtable.LoadPlaces() {
		if p.Table == table && (!q.Has("cluster") || p.Cluster == q.Get("cluster")) {
			places = append(places, p)
			clusters = append(clusters, p.Cluster)
		}
	}
	mappings, err := s.mappingsOf(r, table)
	if err != nil {
		return nil, err
	}
	now := s.opts.Lab.Clock().Now()
	m := bigtable.LoadMap(now.Add(-last), now.Add(time.Second), step, buckets, places...)
	keys, columns := []bucket{}, []heatColumn{}
	for _, k := range m.Keys {
		keys = append(keys, bucket{bytesOf(k.First), bytesOf(k.Last), partsBy(mappings, mapping.Row{Key: k.First}), counts(k.LoadCounts)})
	}
	for _, c := range m.Columns {
		cells := make([]counts, len(c.Cells))
		for i, n := range c.Cells {
			cells[i] = counts(n)
		}
		columns = append(columns, heatColumn{c.Start, cells})
	}
	tooLarge, err := s.rowLevels.largeRows(r.Context(), s.opts.Lab.DB(), table, keys)
	if err != nil {
		return nil, err
	}
	return map[string]any{"clusters": clusters, "keys": keys, "columns": columns, "large": tooLarge}, nil
}
