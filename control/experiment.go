package control

import (
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/control/lab/dynamodb"
	"github.com/tabletop-emu/tabletop/control/lab/fault"
	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/days"
)

type nothing struct{}

func (s *Server) reset(r *http.Request) (any, error) {
	return nothing{}, s.opts.Lab.Reset(r.Context())
}

func (s *Server) listSnapshots(*http.Request) (any, error) {
	return map[string]any{"snapshots": s.snapshots.list()}, nil
}

func (s *Server) takeSnapshot(r *http.Request) (any, error) {
	var in struct {
		Name string `json:"name"`
	}
	if err := read(r, &in); err != nil {
		return nil, err
	}
	return s.snapshots.take(r, s.opts.Lab, in.Name)
}

func (s *Server) removeSnapshot(r *http.Request) (any, error) {
	return nothing{}, s.snapshots.remove(r.PathValue("name"))
}

func (s *Server) restoreSnapshot(r *http.Request) (any, error) {
	kept, err := s.snapshots.get(r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	return kept, s.opts.Lab.Restore(r.Context(), kept.kept)
}

// maxLead is the largest lead of the clock over the machine's. Differences of two times end at
// 292 years: a clock further ahead would stop.
const maxLead = 290 * 365 * 24 * time.Hour

type clockState struct {
	Now    time.Time `json:"now"`
	Frozen bool      `json:"frozen"`
	// Expired is the number of items that the move of the clock deleted.
	Expired int64 `json:"expired,omitempty"`
}

func (s *Server) clockNow() clockState {
	c := s.opts.Lab.Clock()
	return clockState{Now: c.Now(), Frozen: c.Frozen()}
}

func (s *Server) clock(*http.Request) (any, error) { return s.clockNow(), nil }

func (s *Server) setClock(r *http.Request) (any, error) {
	var in struct {
		Advance string  `json:"advance"` // a duration: "25h", "3d"
		Set     *string `json:"set"`     // RFC 3339, not before now
		Freeze  bool    `json:"freeze"`
		Run     bool    `json:"run"`
	}
	if err := read(r, &in); err != nil {
		return nil, err
	}
	given := 0
	for _, is := range []bool{in.Advance != "", in.Set != nil, in.Freeze, in.Run} {
		if is {
			given++
		}
	}
	if given != 1 {
		return nil, badRequest("want one of advance, set, freeze and run")
	}
	c := s.opts.Lab.Clock()
	var by time.Duration
	switch {
	case in.Freeze:
		c.Freeze()
	case in.Run:
		c.Run()
	case in.Set != nil:
		to, err := time.Parse(time.RFC3339Nano, *in.Set)
		if err != nil {
			return nil, badRequest("set is %q, want a time such as 2030-01-01T00:00:00Z", *in.Set)
		}
		if by = to.Sub(c.Now()); by < 0 {
			return nil, badRequest("the time is already %v: time moves only forward", c.Now().Format(time.RFC3339Nano))
		}
	default:
		var err error
		if by, err = days.Parse(in.Advance); err != nil || by < 0 {
			return nil, badRequest("advance is %q, want a duration such as 90s, 25h or 3d: time moves only forward", in.Advance)
		}
	}
	// Sub, which computed by for a set, saturates at 292 years.
	if last := from(maxLead); by > 0 && (by == math.MaxInt64 || c.Now().Add(by).After(last)) {
		return nil, badRequest("the clock may be at most 290 years ahead of the machine's clock, until %s", last.UTC().Format(time.RFC3339))
	}
	before := s.opts.Endpoint.Reaped()
	if by > 0 {
		if _, err := s.opts.Lab.Advance(by); err != nil {
			return nil, err
		}
	}
	if s.opts.ClockMoved != nil {
		if err := s.opts.ClockMoved(); err != nil {
			return nil, err
		}
	}
	out := s.clockNow()
	out.Expired = s.opts.Endpoint.Reaped() - before
	return out, nil
}

func (s *Server) gc(r *http.Request) (any, error) {
	n, err := s.opts.Lab.RunGC(r.Context())
	return map[string]int64{"cells": n}, err
}

func (s *Server) ttl(r *http.Request) (any, error) {
	n, err := s.opts.Endpoint.ReapExpired(r.Context())
	return map[string]int{"items": n}, err
}

func (s *Server) dump(r *http.Request) (any, error) {
	var text string
	var err error
	if id := r.URL.Query().Get("table"); id != "" {
		if text, err = s.opts.Lab.Dump(r.Context(), id); err != nil {
			return nil, s.nearestDump(r, id, asError(err))
		}
	} else {
		text, err = s.opts.Lab.DumpAll(r.Context())
	}
	return map[string]string{"text": text}, err
}

// nearestDump adds the nearest name to the error for a missing table, which may be of either endpoint.
func (s *Server) nearestDump(r *http.Request, table string, err *Error) error {
	names, unknown := s.dynamoDBTables(own(r))
	if err.Remedy != tablesRemedy || unknown != nil {
		return err
	}
	for _, t := range s.opts.Lab.DB().Tables(s.opts.Lab.TableName("")) {
		_, id := ids(t.Name)
		names = append(names, id)
	}
	err.Remedy = nearestTable(table, names)
	return err
}

// faultJSON is a fault in requests and answers.
type faultJSON struct {
	ID   uint64 `json:"id,omitempty"`   // of an armed fault
	Hits *int   `json:"hits,omitempty"` // of an armed fault

	Endpoint       string                     `json:"endpoint"` // "bigtable" or "dynamodb"
	Method         string                     `json:"method"`   // an RPC or an operation; "*" for all
	Effect         string                     `json:"effect"`
	Code           string                     `json:"code,omitempty"` // "UNAVAILABLE", or of DynamoDB "Throttling"
	Message        string                     `json:"message,omitempty"`
	Reasons        []string                   `json:"reasons,omitempty"` // of TransactionCanceled, for each action
	Applied        bool                       `json:"applied,omitempty"`
	Delay          string                     `json:"delay,omitempty"`
	Rows           int                        `json:"rows,omitempty"`
	Snapshot       string                     `json:"snapshot,omitempty"`
	BehindDynamoDB bool                       `json:"behindDynamoDB,omitempty"`
	Table          string                     `json:"table,omitempty"`
	Row            *Bytes                     `json:"row,omitempty"`
	Item           map[string]json.RawMessage `json:"item,omitempty"`
	Skip           int                        `json:"skip,omitempty"`
	Times          *int                       `json:"times,omitempty"`
	Probability    *float64                   `json:"probability,omitempty"`

	Warnings []string `json:"warnings,omitempty"` // of the answer: reasons why the fault has no effect at present
}

// effects holds the names of effects in requests, by effect.
var effects = []string{fault.FailCall: "fail", fault.DelayCall: "delay", fault.CutRows: "cut", fault.DuplicateCall: "duplicate", fault.LeaveEntries: "unprocessed", fault.ReadOld: "stale"}

// statusCode returns the code with a name such as UNAVAILABLE, or Unavailable.
func statusCode(name string) (codes.Code, bool) {
	for c := codes.OK + 1; c <= codes.Unauthenticated; c++ {
		if c.String() == name {
			return c, true
		}
	}
	var c codes.Code
	err := c.UnmarshalJSON([]byte(strconv.Quote(name)))
	return c, err == nil && c != codes.OK
}

func (s *Server) spec(f *faultJSON) (fault.Spec, error) {
	out := fault.Spec{
		Method: f.Method, Applied: f.Applied, Rows: f.Rows, BehindDynamoDB: f.BehindDynamoDB,
		Table: f.Table, Item: f.Item, Skip: f.Skip, Times: fault.Unlimited, Probability: 1,
	}
	effect := slices.Index(effects, f.Effect)
	if effect < 0 {
		return out, badRequest("effect is %q, want one of %s", f.Effect, strings.Join(effects, ", "))
	}
	out.Effect = fault.Effect(effect)
	switch f.Endpoint {
	case "dynamodb":
		out.DynamoDB = true
	case "bigtable":
	default:
		return out, badRequest("endpoint is %q, want bigtable or dynamodb", f.Endpoint)
	}
	if f.Times != nil {
		if out.Times = *f.Times; out.Times < 1 {
			return out, badRequest("times is %d, want 1 or more", *f.Times)
		}
	}
	if f.Skip < 0 {
		return out, badRequest("skip is %d, want 0 or more", f.Skip)
	}
	if f.Probability != nil {
		out.Probability = *f.Probability
	}
	if f.Row != nil {
		key, err := f.Row.decode()
		if err != nil {
			return out, err
		}
		out.Row = key
	}
	if f.Item != nil {
		if err := checkItem(f.Item); err != nil {
			return out, err
		}
	}
	if out.Effect == fault.DelayCall || f.Delay != "" {
		var err error
		if out.Delay, err = days.Parse(f.Delay); err != nil || out.Delay <= 0 {
			return out, badRequest("delay is %q, want a duration such as 90s", f.Delay)
		}
	}
	if f.Snapshot != "" {
		kept, err := s.snapshots.get(f.Snapshot)
		if err != nil {
			return out, err
		}
		out.As = kept.kept
	}
	switch fails := out.Effect == fault.FailCall || out.Effect == fault.CutRows; {
	case out.DynamoDB:
		out.Failure = fault.Failure{Code: f.Code, Message: f.Message, Reasons: f.Reasons} // Arm checks it
	case f.Reasons != nil:
		return out, badRequest("reasons may be set only for TransactionCanceled of the endpoint dynamodb")
	case fails:
		code, ok := statusCode(f.Code)
		if !ok {
			return out, badRequest("code is %q, want a gRPC code such as UNAVAILABLE", f.Code)
		}
		message := f.Message
		if message == "" {
			message = "fault of the control API"
		}
		out.Err = status.Error(code, message)
	}
	return out, nil
}

// checkItem rejects an item that no request can name: its fault would never have an effect.
func checkItem(item map[string]json.RawMessage) error {
	text, err := json.Marshal(item)
	if err == nil {
		_, err = attr.UnmarshalItem(text)
	}
	if err != nil {
		return badRequest("item is %s, want the attributes of a key in DynamoDB's JSON, such as {\"id\":{\"S\":\"a\"}}: %v", text, err)
	}
	return nil
}

// armed returns the JSON of an armed fault: its request, with its number and hits.
func armed(f *fault.Fault) faultJSON {
	spec, hits := *f.Spec(), f.Hits()
	out := faultJSON{
		ID: f.ID(), Hits: &hits, Endpoint: "bigtable", Method: spec.Method, Effect: effects[spec.Effect], Applied: spec.Applied, Rows: spec.Rows,
		BehindDynamoDB: spec.BehindDynamoDB, Table: spec.Table, Item: spec.Item, Skip: spec.Skip,
	}
	if spec.DynamoDB {
		out.Endpoint = "dynamodb"
		if spec.Effect == fault.FailCall {
			out.Code, out.Message, out.Reasons = dynamodb.FailureName(spec.Failure.Code), spec.Failure.Message, spec.Failure.Reasons
		}
	}
	if spec.Err != nil {
		st := status.Convert(spec.Err)
		out.Code, out.Message = st.Code().String(), st.Message()
	}
	if spec.Delay > 0 {
		out.Delay = spec.Delay.String()
	}
	if spec.Row != nil {
		key := bytesOf(spec.Row)
		out.Row = &key
	}
	if spec.Times != fault.Unlimited {
		out.Times = &spec.Times
	}
	if spec.Probability < 1 {
		out.Probability = &spec.Probability
	}
	return out
}

// armed returns the armed faults of both endpoints.
func (s *Server) armed() []*fault.Fault {
	return slices.Concat(s.opts.Lab.Faults(), s.opts.Endpoint.Faults())
}

func (s *Server) faults(*http.Request) (any, error) {
	out := []faultJSON{}
	for _, f := range s.armed() {
		out = append(out, armed(f))
	}
	return map[string]any{"faults": out}, nil
}

// faultErrors returns the errors, cancellation reasons and operations that a fault of
// DynamoDB can name.
func (s *Server) faultErrors(*http.Request) (any, error) {
	operations := []string{}
	for _, op := range facade.Operations() {
		operations = append(operations, op.Name)
	}
	return map[string]any{"errors": dynamodb.Failures(), "reasons": dynamodb.Reasons(), "operations": operations}, nil
}

// maxFaults limits the number of armed faults.
const maxFaults = 256

func (s *Server) addFault(r *http.Request) (any, error) {
	var in faultJSON
	if err := read(r, &in); err != nil {
		return nil, err
	}
	if in.Warnings != nil {
		return nil, badRequest("unknown member \"warnings\"")
	}
	if len(s.armed()) >= maxFaults {
		return nil, &Error{http.StatusConflict, "limit", "there are " + strconv.Itoa(maxFaults) + " faults", "DELETE " + Prefix + "faults removes all"}
	}
	spec, err := s.spec(&in)
	if err != nil {
		return nil, err
	}
	arm := s.opts.Lab.Arm
	if spec.DynamoDB {
		arm = s.opts.Endpoint.Arm
	}
	f, err := arm(spec)
	if err != nil {
		return nil, badRequest("%v", err)
	}
	out := armed(f)
	out.Warnings, err = warnings(own(r), s, spec)
	return out, err
}

func (s *Server) removeFaults(*http.Request) (any, error) {
	for _, f := range s.armed() {
		f.Remove()
	}
	return nothing{}, nil
}

func (s *Server) removeFault(r *http.Request) (any, error) {
	for _, f := range s.armed() {
		if is := armed(f); is.Endpoint == r.PathValue("endpoint") && strconv.FormatUint(f.ID(), 10) == r.PathValue("id") {
			f.Remove()
			return is, nil
		}
	}
	return nil, notFound("fault", r.PathValue("endpoint")+"/"+r.PathValue("id"), "GET "+Prefix+"faults lists them")
}
