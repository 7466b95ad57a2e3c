// Package requests keeps the latest requests to both endpoints within memory limits. Endpoints
// never wait for a reader, so a slow reader may miss some requests.
package requests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/cespare/xxhash/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/tabletop-emu/tabletop/control/lab/fault"
	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/internal/probe"
)

// Limits of a record.
const (
	// maxBodyBytes is the retained size of a request, and of an answer.
	maxBodyBytes = 64 << 10
	maxKeyBytes  = 256
	// maxTextBytes is the retained size of a name, or of any text from outside.
	maxTextBytes = 1024
)

// TestHeader is the HTTP header, or gRPC metadata key, that holds the name of the client's test.
const TestHeader = "x-tabletop-test"

// Canonical HTTP forms: a lookup of any other spelling allocates.
const (
	testHeader = "X-Tabletop-Test"
	// retryHeader has the attempt of an AWS SDK: "attempt=2; max=3".
	retryHeader = "Amz-Sdk-Request"
)

// attemptHeader is the metadata with the attempt of the Bigtable clients for Java, JavaScript and
// C++, which count from 0.
const attemptHeader = "bigtable-attempt"

// These are the values of Record.Endpoint.
const (
	Bigtable = "bigtable"
	DynamoDB = "dynamodb"
)

// Record is a finished request.
type Record struct {
	ID        uint64 // increases by one per request, in the order in which requests end
	Endpoint  string // Bigtable or DynamoDB
	Operation string // such as "GetItem" or "ReadRows"
	// RequestID is the id in the response header of a DynamoDB request, or the id of the prepared query of
	// an ExecuteQuery.
	RequestID string
	// Cause is the RequestID of the request that caused a call by the DynamoDB endpoint, or of the
	// executions of a PrepareQuery.
	Cause     string
	Start     time.Time     // on the server's clock
	Duration  time.Duration // wall time
	Status    string        // "OK", or the error code
	Text      string        // error text
	Rows      int           // rows that ReadRows or ExecuteQuery returned
	RowsRead  int           // rows of tables that ExecuteQuery read
	Statement string        // of PrepareQuery and ExecuteQuery: the beginning of the SQL
	Bytes     int64         // size of these rows, or of the response to a DynamoDB request
	Test      string        // see TestHeader
	// Own marks a request by the console itself, and the calls that it caused.
	Own bool
	// Stopped marks a ReadRows call that the caller canceled after it had received enough data.
	Stopped bool
	// Attempt is the number of the client's attempt, from 1, and Attempts the maximum number of
	// attempts. Each is 0 if the client did not send it.
	Attempt, Attempts int
	// Fault is the number of the fault that answered a DynamoDB request; 0 if the server did.
	Fault    uint64
	table    string
	key      []byte
	kind     protoreflect.MessageType // of an RPC's request
	request  []byte                   // complete, or its first maxBodyBytes
	response []byte                   // likewise; of DynamoDB
	cut      bool                     // request or response is incomplete
}

// Log keeps the latest records. It is safe for concurrent use.
type Log struct {
	mu      sync.Mutex
	ring    ring          // guarded by mu, like all below
	last    uint64        // the ID of the newest
	changed chan struct{} // closed by the next record; nil without readers
}

// New returns an empty log.
func New() *Log { return &Log{} }

// newer wakes waiting readers after a new record. mu must be held.
func (l *Log) newer() {
	l.last++
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// Bigtable logs a call of the Bigtable endpoint, for emu.Options.Observe of a lab. It skips
// the lab's own calls.
//
// Every response waits for it, so it does not allocate, and copies the retained bytes only once.
func (l *Log) Bigtable(c *emu.Call) {
	madeFor, test, attempt := c.Cause(), "", int32(0)
	if madeFor == "" { // a call for a DynamoDB request is not a probe, and belongs to that request's test
		if probe.Marked(c.Context) {
			return
		}
		test = c.Header(TestHeader)
		if sent := c.Header(attemptHeader); sent != "" {
			if n, ok := small(sent); ok {
				attempt = n + 1
			}
		}
	}
	e := entry{endpoint: Bigtable, start: c.Start, duration: c.Duration, rows: c.Rows, bytes: c.Bytes, attempt: attempt}
	var p [request]string
	p[operation] = c.Method[strings.LastIndexByte(c.Method, '/')+1:]
	p[causeID], p[testName], p[table] = madeFor, test, tableOf(c.Request)
	if c.Err != nil {
		st := status.Convert(c.Err)
		e.code, p[text] = st.Code(), st.Message()
		e.stopped = e.code == codes.Canceled && c.Bytes > 0 && c.Context.Err() != nil
	}
	if c.Query != nil {
		p[statement], e.rowsRead = c.Query.Text, c.Query.RowsRead
		if len(c.Query.Tables) > 0 {
			p[table] = c.Query.Tables[0]
		}
	}
	switch req := c.Request.(type) {
	case *btpb.PrepareQueryRequest:
		if resp, ok := c.Response.(*btpb.PrepareQueryResponse); ok && madeFor == "" {
			p[causeID] = QueryID(resp.GetPreparedQuery())
		}
	case *btpb.ExecuteQueryRequest:
		p[requestID] = QueryID(req.GetPreparedQuery())
	}
	key := keyOf(c.Request)
	e.lengths[rowKey] = int32(len(key))
	if c.Request != nil {
		e.kind = c.Request.ProtoReflect().Type()
		size := proto.Size(c.Request)
		if e.cut = size > maxBodyBytes; !e.cut {
			e.lengths[request] = int32(size)
		}
	}
	clip(&e, &p)

	l.mu.Lock()
	defer l.mu.Unlock()
	to := appended(l.ring.add(e), &p)
	to = append(to, key...)
	if e.lengths[request] > 0 {
		if _, err := (proto.MarshalOptions{UseCachedSize: true}).MarshalAppend(to, c.Request); err != nil {
			l.ring.unwritten() // a request that cannot be encoded was rejected, and is not shown
		}
	}
	l.newer()
}

// DynamoDB logs a call of the DynamoDB endpoint, for facade.Options.Observe of a lab. Like
// Bigtable, it skips the lab's own calls and does not allocate.
func (l *Log) DynamoDB(c *facade.Call) {
	if c.Operation == "" { // not a call of the protocol: a health check, a preflight
		return
	}
	e := entry{
		endpoint: DynamoDB, start: c.Start, duration: c.Duration, status: c.Status, bytes: int64(len(c.Response)),
		cut: len(c.Request) > maxBodyBytes || len(c.Response) > maxBodyBytes,
	}
	var p [request]string
	p[operation], p[requestID], p[testName] = c.Operation, c.ID, c.HTTP.Header.Get(testHeader)
	e.attempt, e.attempts = attemptOf(c.HTTP.Header.Get(retryHeader))
	asked, answered := c.Request[:min(len(c.Request), maxBodyBytes)], c.Response[:min(len(c.Response), maxBodyBytes)]
	e.lengths[request], e.lengths[response] = int32(len(asked)), int32(len(answered))
	if f := fault.Of(c.HTTP.Context()); f != nil {
		e.fault = f.ID()
	}
	clip(&e, &p)

	l.mu.Lock()
	defer l.mu.Unlock()
	to := append(appended(l.ring.add(e), &p), asked...)
	_ = append(to, answered...) // there is room
	l.newer()
}

// QueryID returns the id of a prepared query by its token.
func QueryID(prepared []byte) string {
	if len(prepared) == 0 {
		return ""
	}
	return fmt.Sprintf("sql-%016x", xxhash.Sum64(prepared))
}

// attemptOf reads the attempt in a header of an AWS SDK, such as "ttl=20300101T000000Z; attempt=2;
// max=3", and the maximum.
func attemptOf(header string) (attempt, most int32) {
	for header != "" {
		var member string
		member, header, _ = strings.Cut(header, ";")
		name, value, _ := strings.Cut(strings.TrimSpace(member), "=")
		switch name {
		case "attempt":
			attempt, _ = small(value)
		case "max":
			most, _ = small(value)
		}
	}
	return attempt, most
}

// small parses a number of attempts; ok is false for text that is not a number below 32768.
func small(text string) (n int32, ok bool) {
	parsed, err := strconv.ParseUint(text, 10, 15)
	if err != nil {
		return 0, false
	}
	return int32(parsed), true
}

// clip shortens texts, and stores their lengths.
func clip(e *entry, p *[request]string) {
	for i, s := range p {
		if s != "" {
			p[i] = s[:min(len(s), maxTextBytes)]
			e.lengths[i] = int32(len(p[i]))
		}
	}
}

func appended(to []byte, p *[request]string) []byte {
	for _, s := range p {
		to = append(to, s...)
	}
	return to
}

// of returns the record of an entry. kept is a copy of the entry's parts, which the record
// retains.
func of(id uint64, e *entry, kept []byte) Record {
	var p [parts][]byte
	for i, n := range e.lengths {
		p[i], kept = kept[:n:n], kept[n:]
	}
	r := Record{
		ID: id, Endpoint: e.endpoint, Start: e.start, Duration: e.duration, Status: "OK", Rows: e.rows, RowsRead: e.rowsRead, Bytes: e.bytes,
		Operation: valid(p[operation]), RequestID: valid(p[requestID]), Cause: valid(p[causeID]), Test: valid(p[testName]), Text: valid(p[text]), Statement: valid(p[statement]),
		table: valid(p[table]), key: p[rowKey], kind: e.kind, request: p[request], response: p[response], cut: e.cut,
		Stopped: e.stopped, Attempt: int(e.attempt), Attempts: int(e.attempts), Fault: e.fault,
	}
	r.Own = probe.IsID(r.RequestID) || probe.IsID(r.Cause)
	switch {
	case e.code != codes.OK:
		r.Status = e.code.String()
	case e.status >= 400:
		var said struct {
			Message string `json:"message"`
		}
		_ = json.Unmarshal(r.response, &said) // an answer of the endpoint, unless it was cut
		r.Status, r.Text = "", valid([]byte(said.Message))
		if m := errorType.FindSubmatch(r.response); m != nil {
			r.Status = valid(m[1][bytes.LastIndexByte(m[1], '#')+1:])
		}
	}
	return r
}

var errorType = regexp.MustCompile(`"__type"\s*:\s*"([^"]*)"`)

// valid returns the retained part of a text from outside, as valid UTF-8.
func valid(b []byte) string {
	return strings.ToValidUTF8(string(b[:min(len(b), maxTextBytes)]), "\uFFFD")
}

// tableOf returns the resource name of the table or of the materialized view of an RPC, or "" if
// the RPC names neither.
func tableOf(req proto.Message) string {
	var name string
	switch r := req.(type) {
	case interface{ GetTableName() string }:
		name = r.GetTableName()
	case interface{ GetName() string }:
		name = r.GetName()
	}
	if view, ok := req.(interface{ GetAuthorizedViewName() string }); ok && name == "" {
		name, _, _ = strings.Cut(view.GetAuthorizedViewName(), "/authorizedViews/")
	}
	if view, ok := req.(interface{ GetMaterializedViewName() string }); ok && name == "" {
		name = view.GetMaterializedViewName()
	}
	if !strings.Contains(name, "/tables/") && !strings.Contains(name, "/materializedViews/") {
		return ""
	}
	return name
}

// keyOf returns the first row key that an RPC names, cut to maxKeyBytes.
func keyOf(req proto.Message) []byte {
	var key []byte
	switch r := req.(type) {
	case interface{ GetRowKey() []byte }:
		key = r.GetRowKey()
	case *btpb.ReadRowsRequest:
		switch rows := r.GetRows(); {
		case len(rows.GetRowKeys()) > 0:
			key = rows.GetRowKeys()[0]
		case len(rows.GetRowRanges()) > 0:
			first := rows.GetRowRanges()[0]
			if key = first.GetStartKeyClosed(); key == nil {
				key = first.GetStartKeyOpen()
			}
		}
	case *btpb.MutateRowsRequest:
		if len(r.GetEntries()) > 0 {
			key = r.GetEntries()[0].GetRowKey()
		}
	}
	return key[:min(len(key), maxKeyBytes)]
}

// tableName finds the first table of a DynamoDB request, and batchTable that of a batch, which is
// the name of a member.
var (
	tableName  = regexp.MustCompile(`"TableName"\s*:\s*"([^"]*)"`)
	batchTable = regexp.MustCompile(`"RequestItems"\s*:\s*\{\s*"([^"]*)"`)
)

// Table returns the resource name of the request's Bigtable table, or the name of its DynamoDB
// table. It returns "" if the request does not name a table.
func (r *Record) Table() string {
	if r.Endpoint == Bigtable {
		return r.table
	}
	m := tableName.FindSubmatch(r.request)
	if m == nil && strings.HasPrefix(r.Operation, "Batch") {
		m = batchTable.FindSubmatch(r.request)
	}
	if m != nil {
		name := string(m[1])
		return name[strings.LastIndex(name, "/")+1:]
	}
	return ""
}

// Key returns the row key that an RPC names, or the retained part of it.
func (r *Record) Key() []byte { return r.key }

// Bodies returns the request and the response as JSON. If a body was not kept completely, it is
// nil, and cut is true. The responses of RPCs are not kept, so response is nil for them.
func (r *Record) Bodies() (request, response json.RawMessage, cut bool) {
	if r.Endpoint == Bigtable {
		if r.kind == nil || r.cut {
			return nil, nil, r.cut
		}
		m := r.kind.New().Interface()
		if err := proto.Unmarshal(r.request, m); err != nil {
			return nil, nil, false
		}
		text, err := protojson.Marshal(m)
		if err != nil {
			return nil, nil, false
		}
		return text, nil, false
	}
	if json.Valid(r.request) {
		request = r.request
	}
	if json.Valid(r.response) {
		response = r.response
	}
	return request, response, r.cut
}

// pageRecords is the number of records copied at a time, which bounds the wait of the
// endpoints.
const pageRecords = 32

// page returns at most pageRecords records with IDs above after and up to last, the oldest first.
// oldest and newest are the first and the last ID in the whole log.
func (l *Log) page(after, last uint64) (found []Record, oldest, newest uint64) {
	var entries [pageRecords]entry
	var kept []byte
	n := 0
	l.mu.Lock()
	oldest, newest = l.last-uint64(l.ring.count)+1, l.last
	first := max(after+1, oldest)
	for id := first; id <= min(last, newest) && n < pageRecords; id++ {
		e := l.ring.nth(int(id - oldest))
		entries[n] = *e
		kept = append(kept, l.ring.memory[e.at:e.at+e.size()]...)
		n++
	}
	l.mu.Unlock()
	found = make([]Record, n)
	for i := range found {
		size := entries[i].size()
		found[i], kept = of(first+uint64(i), &entries[i], kept[:size:size]), kept[size:]
	}
	return found, oldest, newest
}

// Since returns up to limit records with an ID above after, oldest first, and the ID of the newest
// record.
func (l *Log) Since(after uint64, limit int) ([]Record, uint64) {
	var out []Record
	for {
		found, _, newest := l.page(after, math.MaxUint64)
		found = found[:min(len(found), limit-len(out))]
		if out = append(out, found...); len(found) < pageRecords {
			return out, newest
		}
		after = out[len(out)-1].ID
	}
}

// Newest calls yield for each record, newest first, until yield returns false.
func (l *Log) Newest(yield func(*Record) bool) {
	_, oldest, last := l.page(math.MaxUint64-1, 0)
	for last >= oldest && last > 0 {
		after := max(last, pageRecords) - pageRecords
		var found []Record
		found, oldest, _ = l.page(after, last)
		for i := len(found) - 1; i >= 0; i-- {
			if !yield(&found[i]) {
				return
			}
		}
		last = after
	}
}

// CausedBy returns the calls that a DynamoDB request caused, oldest first.
func (l *Log) CausedBy(requestID string) []Record {
	var out []Record
	l.Newest(func(r *Record) bool {
		if r.Cause == requestID {
			out = append(out, *r)
		}
		return true
	})
	slices.Reverse(out)
	return out
}

// Clear removes all records. IDs continue with the next number.
func (l *Log) Clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ring.clear()
}

// Changed returns a channel that is closed once a record with an ID above after exists.
func (l *Log) Changed(after uint64) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last > after {
		now := make(chan struct{})
		close(now)
		return now
	}
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.changed
}

// Bytes returns the memory that the records use, including unused entries.
func (l *Log) Bytes() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.ring.entries)*entryBytes + l.ring.bytes
}
