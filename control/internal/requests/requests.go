// Package requests keeps the last requests that both doors have answered. It holds
// the newest of them within bounds, whoever reads them: who reads slowly misses some, and
// no door waits.
package requests

import (
	"encoding/json"
	"path"
	"regexp"
	"strings"
	"sync"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/tabletop-emu/tabletop/control/lab"
	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/facade"
)

// Bounds of a Log.
const (
	maxRecords = 5000
	maxBytes   = 16 << 20
	// maxBodyBytes is how much of a request, and of an answer, is kept.
	maxBodyBytes = 64 << 10
	// recordBytes is about what a record takes beside its bodies.
	recordBytes = 320
	maxKeyBytes = 256
)

// TestHeader is the header, or metadata, by which a client says for which test it asks.
const TestHeader = "x-tabletop-test"

// The doors.
const (
	Bigtable = "bigtable"
	DynamoDB = "dynamodb"
)

// Record is a request that was answered.
type Record struct {
	ID        uint64        // rises by one with each, in the order in which they ended
	Door      string        // Bigtable or DynamoDB
	Operation string        // "GetItem", "ReadRows"
	RequestID string        // of a DynamoDB request: that of its answer's header
	Cause     string        // of a call that the DynamoDB door made: the RequestID that it was made for
	Start     time.Time     // by the clock of the server
	Duration  time.Duration // of wall time
	Status    string        // "OK", or the code of the error
	Text      string        // of the error
	Rows      int           // of ReadRows
	Bytes     int64         // in those rows, or of the answer of a DynamoDB request
	Test      string        // see TestHeader
	table     string
	key       []byte
	kind      protoreflect.MessageType // of an RPC's request
	request   []byte                   // whole, or its beginning if it is longer than maxBodyBytes
	response  []byte                   // likewise; of DynamoDB
	cut       bool                     // there was more
}

func (r *Record) size() int {
	return recordBytes + len(r.Text) + len(r.key) + len(r.request) + len(r.response)
}

// Log keeps records. It is safe for concurrent use.
type Log struct {
	mu      sync.Mutex
	records []Record // a ring; guarded by mu, like all below
	first   int      // the place of the oldest
	count   int
	bytes   int
	last    uint64        // the ID of the newest
	changed chan struct{} // closed by the next record; nil if nobody waits
}

// New returns an empty log.
func New() *Log { return &Log{} }

// add takes a record in, and gives up the oldest ones that it has no room beside.
func (l *Log) add(r Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.records == nil {
		l.records = make([]Record, maxRecords)
	}
	l.last++
	r.ID = l.last
	for l.count > 0 && (l.count == maxRecords || l.bytes+r.size() > maxBytes) {
		oldest := &l.records[l.first]
		l.bytes -= oldest.size()
		*oldest = Record{}
		l.first = (l.first + 1) % maxRecords
		l.count--
	}
	l.records[(l.first+l.count)%maxRecords] = r
	l.count++
	l.bytes += r.size()
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// Bigtable is what emu.Options.Observe is to be. Calls that a lab makes for itself are left out.
func (l *Log) Bigtable(c *emu.Call) {
	if c.Header(lab.ProbeHeader) != "" {
		return
	}
	r := Record{
		Door: Bigtable, Operation: path.Base(c.Method), Cause: c.Cause(), Start: c.Start, Duration: c.Duration,
		Status: "OK", Rows: c.Rows, Bytes: c.Bytes, Test: clipped(c.Header(TestHeader)), table: tableOf(c.Request), key: keyOf(c.Request),
	}
	if c.Err != nil {
		st := status.Convert(c.Err)
		r.Status, r.Text = st.Code().String(), clipped(st.Message())
	}
	if c.Request != nil {
		if r.kind = c.Request.ProtoReflect().Type(); proto.Size(c.Request) <= maxBodyBytes {
			r.request, _ = proto.Marshal(c.Request) // what cannot be written was refused, and is not shown
		} else {
			r.cut = true
		}
	}
	l.add(r)
}

// DynamoDB is what facade.Options.Observe is to be.
func (l *Log) DynamoDB(c *facade.Call) {
	if c.Operation == "" { // no call of the protocol: a question for health, a preflight
		return
	}
	r := Record{
		Door: DynamoDB, Operation: clipped(c.Operation), RequestID: c.ID, Start: c.Start, Duration: c.Duration,
		Status: "OK", Bytes: int64(len(c.Response)), Test: clipped(c.HTTP.Header.Get(TestHeader)),
		request: beginning(c.Request), response: beginning(c.Response),
		cut: len(c.Request) > maxBodyBytes || len(c.Response) > maxBodyBytes,
	}
	if c.Status >= 400 {
		var e struct {
			Type    string `json:"__type"`
			Message string `json:"message"`
		}
		_ = json.Unmarshal(c.Response, &e) // an answer of the door
		r.Status, r.Text = clipped(e.Type[strings.LastIndex(e.Type, "#")+1:]), clipped(e.Message)
	}
	l.add(r)
}

func beginning(b []byte) []byte { return append([]byte(nil), b[:min(len(b), maxBodyBytes)]...) }

// clipped is a text of a stranger, as much of it as is kept.
func clipped(s string) string {
	const most = 1024
	return strings.ToValidUTF8(strings.Clone(s[:min(len(s), most)]), "\uFFFD")
}

// tableOf returns the resource name of the table that an RPC is to, "" without one.
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
	if !strings.Contains(name, "/tables/") {
		return ""
	}
	return clipped(name)
}

// keyOf returns the first row key that an RPC names.
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
	return append([]byte(nil), key[:min(len(key), maxKeyBytes)]...)
}

var tableName = regexp.MustCompile(`"TableName"\s*:\s*"([^"]*)"`)

// Table returns the resource name of the table that was asked, or the name of a DynamoDB table; "" if none is named.
func (r *Record) Table() string {
	if r.Door == Bigtable {
		return r.table
	}
	if m := tableName.FindSubmatch(r.request); m != nil {
		name := string(m[1])
		return name[strings.LastIndex(name, "/")+1:]
	}
	return ""
}

// Key returns the row key that an RPC names, or as much of it as is kept.
func (r *Record) Key() []byte { return r.key }

// Bodies returns the request and the answer as JSON. Of what is not kept as a whole there is
// nil, and cut is true; of the answers of RPCs there is none.
func (r *Record) Bodies() (request, response json.RawMessage, cut bool) {
	if r.Door == Bigtable {
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

// Since returns the records with an ID above after, the oldest first, at most limit, and the ID of the newest of all.
func (l *Log) Since(after uint64, limit int) ([]Record, uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	oldest := l.last - uint64(l.count) + 1
	skip := 0
	if after >= oldest {
		skip = int(min(after-oldest+1, uint64(l.count)))
	}
	out := make([]Record, 0, min(l.count-skip, limit))
	for i := skip; i < l.count && len(out) < limit; i++ {
		out = append(out, l.records[(l.first+i)%maxRecords])
	}
	return out, l.last
}

// Newest calls yield for the records that are kept, the newest first, until it returns false.
func (l *Log) Newest(yield func(*Record) bool) {
	all, _ := l.Since(0, maxRecords)
	for i := len(all) - 1; i >= 0; i-- {
		if !yield(&all[i]) {
			return
		}
	}
}

// CausedBy returns the calls that were made for a DynamoDB request, the oldest first.
func (l *Log) CausedBy(requestID string) []Record {
	all, _ := l.Since(0, maxRecords)
	var out []Record
	for i := range all {
		if all[i].Cause == requestID {
			out = append(out, all[i])
		}
	}
	return out
}

// Changed returns a channel that is closed when there is a record above an ID.
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

// Bytes is about what the records take.
func (l *Log) Bytes() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes
}
