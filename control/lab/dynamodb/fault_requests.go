package dynamodb

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tabletop-emu/tabletop/control/lab"
	"github.com/tabletop-emu/tabletop/control/lab/fault"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/internal/httpbody"
)

// dynamoDBRequest is the part of a request that faults examine.
type dynamoDBRequest struct {
	operation string
	sent      []byte // as received, compressed or not
	body      []byte
	content   requestContent
	unsigned  bool // from Ask
}

type requestContent struct {
	TableName      string
	IndexName      string
	ConsistentRead bool
	Key, Item      map[string]json.RawMessage
	RequestItems   map[string]json.RawMessage
	TransactItems  []map[string]struct {
		TableName                           string
		Key, Item                           map[string]json.RawMessage
		ReturnValuesOnConditionCheckFailure string
	}
	TransactStatements                  []json.RawMessage
	ReturnValuesOnConditionCheckFailure string

	// Names in the texts of errors.
	TargetTableName, GlobalTableName, TableArn, SourceTableName, BackupArn, ExportArn, ImportArn, ResourceArn string
}

// maxRequestBytes is the server's limit for a compressed body.
const maxRequestBytes = 16 << 20

// readRequest reads the request of an operation. ok is false for a request that it cannot read;
// req.sent then has the bytes read so far.
func readRequest(r *http.Request) (req dynamoDBRequest, ok bool, err error) {
	_, operation, found := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if !found || r.Method != http.MethodPost || r.Body == nil {
		return req, false, nil
	}
	req.operation = operation
	req.sent, err = io.ReadAll(r.Body)
	if err = errors.Join(err, r.Body.Close()); err != nil {
		return req, false, err
	}
	// The server rejects unreadable requests.
	if req.body, err = httpbody.Decode(r.Header.Get("Content-Encoding"), req.sent, maxRequestBytes); err != nil {
		return req, false, nil //nolint:nilerr // see above
	}
	return req, json.Unmarshal(req.body, &req.content) == nil, nil
}

// again returns a copy of r, whose body was read, with sent as its body.
func again(r *http.Request, sent []byte) *http.Request {
	r = r.Clone(r.Context())
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(sent)), int64(len(sent))
	return r
}

// spec is the spec of a fault with methods for requests.
type spec fault.Spec

// tableOf returns the name in a member TableName, which can be an ARN.
func tableOf(name string) string { return name[strings.LastIndex(name, "/")+1:] }

// names reports whether an entry of a request matches the fault: the table is the fault's,
// and one of the items has the attributes of the fault's item.
func (s *spec) names(table string, items ...map[string]json.RawMessage) bool {
	if s.Table != "" && s.Table != tableOf(table) {
		return false
	}
	return s.Item == nil || slices.ContainsFunc(items, func(item map[string]json.RawMessage) bool {
		for name, want := range s.Item {
			var got any
			if json.Unmarshal(item[name], &got) != nil {
				return false
			}
			if text, err := json.Marshal(got); err != nil || !bytes.Equal(text, want) {
				return false
			}
		}
		return true
	})
}

// batchEntries are the entries of one table of a batch: write requests, or
// keys.
type batchEntries struct {
	table   string
	rest    map[string]json.RawMessage // of a BatchGetItem: its other members
	entries []json.RawMessage
}

// batch splits the RequestItems of a request by table.
func (req *dynamoDBRequest) batch() []batchEntries {
	var out []batchEntries
	for _, table := range slices.Sorted(maps.Keys(req.content.RequestItems)) {
		b := batchEntries{table: table}
		list := req.content.RequestItems[table]
		if req.operation == "BatchGetItem" {
			if json.Unmarshal(list, &b.rest) != nil {
				return nil
			}
			list = b.rest["Keys"]
		}
		if json.Unmarshal(list, &b.entries) != nil {
			return nil
		}
		out = append(out, b)
	}
	return out
}

// namesEntry reports whether an entry of a batch matches the fault.
func (s *spec) namesEntry(table string, entry json.RawMessage) bool {
	var key map[string]json.RawMessage
	var write struct {
		PutRequest    struct{ Item map[string]json.RawMessage }
		DeleteRequest struct{ Key map[string]json.RawMessage }
	}
	if json.Unmarshal(entry, &write) != nil || json.Unmarshal(entry, &key) != nil {
		return false
	}
	return s.names(table, key, write.PutRequest.Item, write.DeleteRequest.Key)
}

// conflicts returns the indexes of the actions or statements of a transaction that match the
// fault.
func (s *spec) conflicts(req *dynamoDBRequest) []int {
	var out []int
	if s.names("") { // statements name neither a table nor an item
		for i := range req.content.TransactStatements {
			out = append(out, i)
		}
	}
	for i, element := range req.content.TransactItems {
		for _, action := range element {
			if s.names(action.TableName, action.Key, action.Item) {
				out = append(out, i)
			}
		}
	}
	return out
}

// fits reports whether the fault may affect a request.
func (s *spec) fits(req *dynamoDBRequest) bool {
	if s.Method != "*" && s.Method != req.operation {
		return false
	}
	c := &req.content
	switch {
	case s.Effect == fault.LeaveEntries:
		return true // decided entry by entry
	case s.Effect == fault.ReadOld && (!slices.Contains(stale, req.operation) || c.ConsistentRead):
		return false
	case s.Effect == fault.FailCall && !failures[FailureName(s.Failure.Code)].meets(req.operation):
		return false
	case c.TransactItems != nil:
		return len(s.conflicts(req)) > 0
	case c.RequestItems == nil:
		return s.names(c.TableName, c.Key, c.Item)
	}
	for _, b := range req.batch() {
		if s.Effect == fault.ReadOld && string(b.rest["ConsistentRead"]) == "true" {
			return false
		}
		if slices.ContainsFunc(b.entries, func(entry json.RawMessage) bool { return s.namesEntry(b.table, entry) }) {
			return true
		}
	}
	return false
}

// unprocessed moves the entries of a batch that the fault affects from req to left, and
// returns the number of remaining entries.
func unprocessed(f *fault.Fault, req *dynamoDBRequest, left map[string]json.RawMessage) (remaining int, err error) {
	s := (*spec)(f.Spec())
	kept := map[string]json.RawMessage{}
	for _, b := range req.batch() {
		var stay, gone []json.RawMessage
		for _, entry := range b.entries {
			if s.namesEntry(b.table, entry) && f.Strike() {
				gone = append(gone, entry)
			} else {
				stay = append(stay, entry)
			}
		}
		remaining += len(stay)
		for _, part := range []struct {
			to      map[string]json.RawMessage
			entries []json.RawMessage
		}{{kept, stay}, {left, gone}} {
			if part.entries == nil {
				continue
			}
			if part.to[b.table], err = b.with(part.entries, part.to[b.table]); err != nil {
				return 0, err
			}
		}
	}
	req.content.RequestItems = kept
	req.body, err = replaceMember(req.body, "RequestItems", kept)
	return remaining, err
}

// with returns the part of a batch for b's table, with the given entries instead of its own.
// If earlier is such a part, its entries come first.
func (b batchEntries) with(entries []json.RawMessage, earlier json.RawMessage) (json.RawMessage, error) {
	if earlier != nil {
		list := earlier
		if b.rest != nil {
			var members map[string]json.RawMessage
			if err := json.Unmarshal(earlier, &members); err != nil {
				return nil, err
			}
			list = members["Keys"]
		}
		var before []json.RawMessage
		if err := json.Unmarshal(list, &before); err != nil {
			return nil, err
		}
		entries = append(before, entries...)
	}
	if b.rest == nil {
		return json.Marshal(entries)
	}
	members := maps.Clone(b.rest)
	var err error
	if members["Keys"], err = json.Marshal(entries); err != nil {
		return nil, err
	}
	return json.Marshal(members)
}

// replaceMember replaces a member of a JSON object.
func replaceMember(object []byte, name string, value any) ([]byte, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil {
		return nil, err
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	members[name] = text
	return json.Marshal(members)
}

// faulty returns the faults' answer to a request. If no fault answers it, resp is nil, and the server
// must answer the request next.
func (e *Endpoint) faulty(r *http.Request) (resp *http.Response, next *http.Request, err error) {
	if len(e.faults.All()) == 0 {
		return nil, r, nil
	}
	req, ok, err := readRequest(r)
	if req.sent != nil {
		r = again(r, req.sent)
	}
	if err != nil || !ok {
		return nil, r, err
	}
	resp, err = e.applyFaults(r, &req)
	if refused, ok := awserr.As(err); ok {
		if by, ok := errors.AsType[*FaultError](err); ok {
			r = r.WithContext(fault.With(r.Context(), by.Fault))
		}
		resp, err = answered(r, refused.HTTPStatus, facade.ErrorBody(refused)), nil
	}
	if observe := e.opts.Observe; resp != nil && observe != nil {
		err = e.reportFault(observe, r, &req, resp)
	}
	return resp, r, err
}

// FaultError is the error of a request that failed because of a fault.
type FaultError struct {
	Fault *fault.Fault
	Err   *awserr.Error // DynamoDB's answer
}

// Error returns the text of DynamoDB's answer.
func (e *FaultError) Error() string { return e.Err.Error() }

// Unwrap returns DynamoDB's answer.
func (e *FaultError) Unwrap() error { return e.Err }

// Ask runs an operation like Call, but faults affect it as they affect a client's request. An error
// that a fault causes is a *FaultError.
func (e *Endpoint) Ask(ctx context.Context, operation string, request []byte) ([]byte, error) {
	req := dynamoDBRequest{operation: operation, body: request, unsigned: true}
	if len(e.faults.All()) == 0 || json.Unmarshal(request, &req.content) != nil {
		return e.Call(ctx, operation, request)
	}
	if err := e.delay(ctx, &req, e.lab.Pass); err != nil {
		return nil, err
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.server == nil {
		return nil, ErrClosed
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "/", http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := e.applyFaults(r, &req)
	if err != nil {
		return nil, err
	}
	if resp == nil {
		return e.server.Call(ctx, operation, req.body)
	}
	body, err := io.ReadAll(resp.Body)
	return body, errors.Join(err, resp.Body.Close())
}

// reportFault calls observe with a request that a fault answered.
func (e *Endpoint) reportFault(observe func(*facade.Call), r *http.Request, req *dynamoDBRequest, resp *http.Response) error {
	body, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	observe(&facade.Call{
		ID: resp.Header.Get("X-Amzn-Requestid"), Operation: req.operation, HTTP: r, Request: req.body,
		Status: resp.StatusCode, Response: body, Start: e.lab.Clock().Now(),
	})
	return nil
}

// applyFaults returns the answer to a request that a fault affects; nil if the rest of the
// request must be served. The error is a *FaultError if a fault refuses the request, and an
// *awserr.Error if the server does.
func (e *Endpoint) applyFaults(r *http.Request, req *dynamoDBRequest) (*http.Response, error) {
	left := map[string]json.RawMessage{}
	for _, f := range e.faults.All() {
		s := (*spec)(f.Spec())
		if delays(f) || !s.fits(req) {
			continue
		}
		if s.Effect == fault.LeaveEntries {
			refused := e.refusal(leftAll, r, req)
			remaining, err := unprocessed(f, req, left)
			if err != nil {
				return nil, err
			}
			if remaining == 0 {
				return nil, &FaultError{f, refused}
			}
			continue
		}
		if !f.Strike() {
			continue
		}
		if s.Effect == fault.ReadOld {
			if resp, err := e.readOld(s.As, r, req); err != nil || resp != nil {
				return resp, err
			}
			continue
		}
		refused := e.refusal(s, r, req) // with the item before the request
		if s.Applied {
			resp, err := req.servedBy(e.server, r)
			if err != nil || resp.StatusCode != http.StatusOK {
				return resp, err
			}
		}
		return nil, &FaultError{f, refused}
	}
	if len(left) == 0 {
		return nil, nil
	}
	return e.servePart(r, req, left)
}

// servedBy returns a server's answer to the original request.
func (req *dynamoDBRequest) servedBy(s *facade.Server, r *http.Request) (*http.Response, error) {
	if !req.unsigned {
		return s.RoundTripper().RoundTrip(again(r, req.sent))
	}
	body, err := s.Call(r.Context(), req.operation, req.body)
	if err != nil {
		return nil, err
	}
	return answered(r, http.StatusOK, body), nil
}

// tableARN returns the name of a table in the reasons of a throttled request.
func (e *Endpoint) tableARN(name string) string {
	o := e.opts
	return "arn:aws:dynamodb:" + cmp.Or(o.Region, facade.DefaultRegion) + ":" + cmp.Or(o.AccountID, facade.DefaultAccountID) + ":table/" + name
}

// servePart answers the remaining entries of a batch, and returns the entries of left as unprocessed.
func (e *Endpoint) servePart(r *http.Request, req *dynamoDBRequest, left map[string]json.RawMessage) (*http.Response, error) {
	body, err := e.run(r, req, req.operation, req.body)
	if err != nil {
		return nil, err
	}
	member := "UnprocessedItems"
	if req.operation == "BatchGetItem" {
		member = "UnprocessedKeys"
	}
	if body, err = addEntries(body, member, left); err != nil {
		return nil, err
	}
	return answered(r, http.StatusOK, body), nil
}

// addEntries adds removed entries to the server's own unprocessed ones.
func addEntries(answer []byte, member string, left map[string]json.RawMessage) ([]byte, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(answer, &members); err != nil {
		return nil, err
	}
	var own map[string]json.RawMessage
	if err := json.Unmarshal(members[member], &own); err != nil {
		return nil, err
	}
	batch := dynamoDBRequest{content: requestContent{RequestItems: own}}
	if member == "UnprocessedKeys" {
		batch.operation = "BatchGetItem"
	}
	for _, b := range batch.batch() {
		var err error
		if left[b.table], err = b.with(b.entries, left[b.table]); err != nil {
			return nil, err
		}
	}
	return replaceMember(answer, member, left)
}

func answered(r *http.Request, status int, body []byte) *http.Response {
	header := http.Header{}
	header.Set("Content-Type", "application/x-amz-json-1.0")
	header.Set("X-Amzn-Requestid", strings.Repeat("0", 52))
	header.Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10))
	header.Set("Content-Length", strconv.Itoa(len(body)))
	return &http.Response{
		Status: strconv.Itoa(status) + " " + http.StatusText(status), StatusCode: status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
}

// past is an endpoint over a snapshot, with a separate lab.
type past struct {
	lab    *lab.Lab
	server *facade.Server
}

func (p *past) close() error {
	var err error
	if p.server != nil {
		err = p.server.Close()
	}
	return errors.Join(err, p.lab.Close())
}

// readOld answers a request from the data of a snapshot. The answer is nil if that data gives
// an error: the caller must then read current data.
func (e *Endpoint) readOld(as *engine.Snapshot, r *http.Request, req *dynamoDBRequest) (*http.Response, error) {
	p, err := e.pastOf(as)
	if err != nil {
		return nil, err
	}
	resp, err := req.servedBy(p.server, r)
	if _, refused := awserr.As(err); refused || err == nil && resp.StatusCode != http.StatusOK {
		return nil, nil
	}
	return resp, err
}

// pastOf returns the server of a snapshot, and starts it on first use. It ends with the endpoint.
func (e *Endpoint) pastOf(as *engine.Snapshot) (*past, error) {
	e.pastMu.Lock()
	defer e.pastMu.Unlock()
	if p := e.past[as]; p != nil {
		return p, nil
	}
	o := e.lab.Options()
	l := lab.New(lab.Options{Clock: o.Clock, Logger: o.Logger, Project: o.Project, Instance: o.Instance, Faultless: true})
	if err := l.Open(); err != nil {
		return nil, err
	}
	p := &past{lab: l}
	err := l.Restore(e.lab.Context(), as)
	if err == nil {
		p.server, err = facade.New(e.lab.Context(), e.options(l))
	}
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	if e.past == nil {
		e.past = map[*engine.Snapshot]*past{}
	}
	e.past[as] = p
	return p, nil
}
