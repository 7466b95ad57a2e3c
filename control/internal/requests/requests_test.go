package requests

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/internal/test/memory"
	"github.com/tabletop-emu/tabletop/internal/test/race"
)

func call(key string) *emu.Call {
	return &emu.Call{
		Method: "/google.bigtable.v2.Bigtable/MutateRow", Context: context.Background(),
		Request: &btpb.MutateRowRequest{TableName: "projects/p/instances/i/tables/t", RowKey: []byte(key)},
	}
}

// TestBounds: of many requests from many clients the newest are kept, once each, in the order
// in which they ended; large ones leave room for fewer.
func TestBounds(t *testing.T) {
	t.Parallel()
	l := New()
	const clients, each = 100, 100
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for range each {
				l.Bigtable(call("k"))
			}
		})
	}
	all.Wait()
	kept, newest := l.Since(0, maxRecords+1)
	if newest != clients*each || len(kept) != maxRecords || l.Bytes() > maxBytes {
		t.Fatalf("%d requests, %d kept in %d bytes", newest, len(kept), l.Bytes())
	}
	for i, r := range kept {
		if r.ID != newest-maxRecords+1+uint64(i) {
			t.Fatalf("place %d has %d", i, r.ID)
		}
	}
	var large facade.Call
	large.Operation, large.HTTP = "PutItem", httptest.NewRequest(http.MethodPost, "/", http.NoBody)
	large.Request = []byte(`{"TableName":"orders","Item":"` + strings.Repeat("x", 1<<20) + `"}`)
	for range 2 * maxBytes / maxBodyBytes {
		l.DynamoDB(&large)
	}
	kept, newest = l.Since(0, maxRecords)
	if l.Bytes() > maxBytes || l.Bytes() < maxBytes-2*maxBodyBytes || kept[len(kept)-1].ID != newest {
		t.Errorf("%d requests in %d bytes", len(kept), l.Bytes())
	}
	last := kept[len(kept)-1]
	if request, _, cut := last.Bodies(); request != nil || !cut || last.Table() != "orders" {
		t.Errorf("%d bytes of a request to %q, cut %v", len(request), last.Table(), cut)
	}
	total := maxRecords * entryBytes
	for i := range kept {
		r := &kept[i]
		total += len(r.Operation+r.RequestID+r.Cause+r.Test+r.Text+r.table) + len(r.key) + len(r.request) + len(r.response)
	}
	if total != l.Bytes() {
		t.Errorf("%d bytes are counted, there are %d", l.Bytes(), total)
	}
}

// TestRing: requests of any sizes are kept unchanged while the memory grows and is reused.
func TestRing(t *testing.T) {
	t.Parallel()
	l, random := New(), rand.New(rand.NewPCG(1, 2))
	var made [][]byte
	for i := range 3 * maxRecords {
		size := random.IntN(200)
		switch {
		case i%997 == 0:
			size = maxBodyBytes
		case i > maxRecords && i < 2*maxRecords:
			size *= 60
		}
		body := bytes.Repeat([]byte{byte(i)}, size)
		made = append(made, body)
		l.DynamoDB(&facade.Call{
			ID: strconv.Itoa(i), Operation: "PutItem", HTTP: httptest.NewRequest(http.MethodPost, "/", http.NoBody), Request: body, Response: body[:size/2],
		})
		if i%1999 != 0 {
			continue
		}
		kept, newest := l.Since(0, maxRecords)
		back := len(kept)
		l.Newest(func(r *Record) bool {
			back--
			if r.ID != kept[back].ID || !bytes.Equal(r.request, kept[back].request) {
				t.Fatalf("place %d has %d backwards, %d forwards", back, r.ID, kept[back].ID)
			}
			return true
		})
		if back != 0 || newest != uint64(i+1) || l.Bytes() > maxBytes {
			t.Fatalf("%d of %d are not among the newest, in %d bytes", back, newest, l.Bytes())
		}
		for j := range kept {
			r := &kept[j]
			want := made[r.ID-1]
			if r.RequestID != strconv.FormatUint(r.ID-1, 10) || !bytes.Equal(r.request, want) || !bytes.Equal(r.response, want[:len(want)/2]) {
				t.Fatalf("%d has changed: %d and %d bytes", r.ID, len(r.request), len(r.response))
			}
		}
	}
}

// TestUnwritten: a request that cannot be encoded does not affect its neighbors.
func TestUnwritten(t *testing.T) {
	t.Parallel()
	l := New()
	for _, name := range []string{"a", "\xff", "b"} {
		c := call("k")
		c.Request.(*btpb.MutateRowRequest).AppProfileId = name
		l.Bigtable(c)
	}
	kept, _ := l.Since(0, 10)
	for i, want := range []bool{true, false, true} {
		if text, _, _ := kept[i].Bodies(); (len(kept[i].request) > 0) != want || want && !json.Valid(text) {
			t.Errorf("request %d: %q", i, text)
		}
	}
}

// TestAllocations: recording a request of either endpoint, with any outcome, allocates
// nothing.
func TestAllocations(t *testing.T) { //nolint:paralleltest // it counts allocations
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	l := New()
	refused := call("k")
	refused.Err = status.Error(codes.NotFound, "there is none")
	answered := &facade.Call{
		ID: "1", Operation: "GetItem", HTTP: httptest.NewRequest(http.MethodPost, "/", http.NoBody),
		Request: []byte(`{"TableName":"orders"}`), Status: 200, Response: []byte("{}"),
	}
	answered.HTTP.Header.Set("Amz-Sdk-Request", "ttl=20300101T000000Z; attempt=2; max=3")
	failed := *answered
	failed.Status, failed.Response = 400, []byte(`{"__type":"com.amazonaws#X","message":"y"}`)
	made := call("k")
	for name, keep := range map[string]func(){
		"a call": func() { l.Bigtable(made) }, "one that fails": func() { l.Bigtable(refused) },
		"a request": func() { l.DynamoDB(answered) }, "one that is refused": func() { l.DynamoDB(&failed) },
	} {
		for range maxRecords {
			keep()
		}
		if n := testing.AllocsPerRun(1000, keep); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// TestSince: a reader gets the records after the last one that it has seen, and the next one
// wakes it.
func TestSince(t *testing.T) {
	t.Parallel()
	l := New()
	for range 5 {
		l.Bigtable(call("k"))
	}
	for after, want := range map[uint64]int{0: 5, 3: 2, 5: 0, 9: 0} {
		if got, newest := l.Since(after, 10); len(got) != want || newest != 5 {
			t.Errorf("after %d: %d of %d", after, len(got), newest)
		}
	}
	if got, _ := l.Since(1, 2); len(got) != 2 || got[0].ID != 2 {
		t.Errorf("got %+v", got)
	}
	woken := l.Changed(5)
	select {
	case <-woken:
		t.Error("woken by nothing")
	default:
	}
	l.Bigtable(call("k"))
	<-woken
	<-l.Changed(5)
}

// TestBodies: bodies from outside are shown unchanged, whatever they are.
func TestBodies(t *testing.T) {
	t.Parallel()
	l := New()
	l.Bigtable(call("<b>\x00\xff"))
	for _, body := range []string{"", "{", "\xff", `{"TableName":"arn:aws:dynamodb:us-east-1:000000000000:table/orders"}`} {
		l.DynamoDB(&facade.Call{
			Operation: "Get\xffItem", HTTP: httptest.NewRequest(http.MethodPost, "/", http.NoBody), Request: []byte(body),
			Status: 400, Response: []byte(`{"__type":"com.amazonaws#X","message":"<script>"}`),
		})
	}
	l.DynamoDB(&facade.Call{HTTP: httptest.NewRequest(http.MethodGet, "/", http.NoBody)}) // a health check
	kept, newest := l.Since(0, 10)
	if newest != 5 || string(kept[0].Key()) != "<b>\x00\xff" || kept[0].Table() != "projects/p/instances/i/tables/t" {
		t.Fatalf("got %+v", kept)
	}
	var request struct{ RowKey []byte }
	if text, _, _ := kept[0].Bodies(); json.Unmarshal(text, &request) != nil || string(request.RowKey) != "<b>\x00\xff" {
		t.Errorf("got %s", text)
	}
	if kept[4].Table() != "orders" || kept[4].Status != "X" || kept[4].Text != "<script>" {
		t.Errorf("got %+v", kept[4])
	}
	for i := range kept[1:4] {
		if text, _, _ := kept[1+i].Bodies(); text != nil {
			t.Errorf("%q is JSON", text)
		}
	}
}

// TestMemory: a full log takes the memory that it reports, and not much more.
func TestMemory(t *testing.T) { //nolint:paralleltest // Alone makes it parallel
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	memory.Alone(t, func(t *testing.T) {
		before := memory.Live()
		l := New()
		c := call("k")
		c.Request.(*btpb.MutateRowRequest).Mutations = []*btpb.Mutation{{Mutation: &btpb.Mutation_SetCell_{SetCell: &btpb.Mutation_SetCell{Value: make([]byte, 10<<10)}}}}
		for range 3 * maxRecords {
			l.Bigtable(c)
		}
		held := int64(memory.Live()) - int64(before)
		t.Logf("%d MiB are held of %d", held>>20, l.Bytes()>>20)
		if held > maxBytes+4<<20 {
			t.Errorf("%d bytes are held, of %d that are counted", held, l.Bytes())
		}
		runtime.KeepAlive(l)
	})
}

func BenchmarkDynamoDB(b *testing.B) {
	l := New()
	c := &facade.Call{
		ID: "1", Operation: "GetItem", HTTP: httptest.NewRequest(http.MethodPost, "/", http.NoBody),
		Request: []byte(`{"TableName":"orders","Key":{"k":{"S":"customer7"}}}`), Status: 200, Response: []byte(`{"Item":{"k":{"S":"customer7"}}}`),
	}
	b.ReportAllocs()
	for b.Loop() {
		l.DynamoDB(c)
	}
}

func BenchmarkBigtable(b *testing.B) {
	l, c := New(), call("customer7")
	c.Start = time.Unix(1, 0)
	b.ReportAllocs()
	for b.Loop() {
		l.Bigtable(c)
	}
}

// TestAttempts: the attempts that clients send are kept, counted from 1; other texts are not.
func TestAttempts(t *testing.T) {
	t.Parallel()
	for header, want := range map[string][2]int{
		"":                                   {},
		"attempt=2; max=3":                   {2, 3},
		"ttl=20300101T000000Z; attempt=1":    {1, 0},
		"attempt=-1; max=99999999999999":     {},
		"attempt; =; max=x; attempt=4;;":     {4, 0},
		strings.Repeat("attempt=1;", 10_000): {1, 0},
	} {
		l := New()
		r := httptest.NewRequest(http.MethodPost, "/", http.NoBody)
		r.Header.Set("Amz-Sdk-Request", header)
		l.DynamoDB(&facade.Call{ID: "1", Operation: "GetItem", HTTP: r})
		if got, _ := l.Since(0, 1); got[0].Attempt != want[0] || got[0].Attempts != want[1] {
			t.Errorf("%.40q: attempt %d of %d, want %v", header, got[0].Attempt, got[0].Attempts, want)
		}
	}
	for header, want := range map[string]int{"": 0, "0": 1, "3": 4, "-1": 0, "x": 0} {
		l, c := New(), call("k")
		if header != "" {
			c.Context = metadata.NewIncomingContext(t.Context(), metadata.Pairs("bigtable-attempt", header))
		}
		l.Bigtable(c)
		if got, _ := l.Since(0, 1); got[0].Attempt != want {
			t.Errorf("%q: attempt %d, want %d", header, got[0].Attempt, want)
		}
	}
}

// TestStopped: a read that its caller canceled after some data was stopped; one without data, one
// that the server canceled, and one with another error were not.
func TestStopped(t *testing.T) {
	t.Parallel()
	left, leave := context.WithCancel(t.Context())
	leave()
	for _, c := range []struct {
		ctx  context.Context
		code codes.Code
		data int64
		want bool
	}{
		{left, codes.Canceled, 1, true},
		{left, codes.Canceled, 0, false},
		{t.Context(), codes.Canceled, 1, false},
		{left, codes.Unavailable, 1, false},
	} {
		l, made := New(), call("k")
		made.Context, made.Err, made.Bytes = c.ctx, status.Error(c.code, ""), c.data
		l.Bigtable(made)
		if got, _ := l.Since(0, 1); got[0].Stopped != c.want {
			t.Errorf("%v after %d bytes: stopped is %v", c.code, c.data, got[0].Stopped)
		}
	}
}

// TestClear: an empty log keeps the next records, with later ids.
func TestClear(t *testing.T) {
	t.Parallel()
	l := New()
	for range 3 {
		l.Bigtable(call("k"))
	}
	l.Clear()
	if got, newest := l.Since(0, 10); len(got) != 0 || newest != 3 {
		t.Errorf("%d remain of %d", len(got), newest)
	}
	l.Newest(func(r *Record) bool { t.Errorf("%d remains", r.ID); return true })
	l.Bigtable(call("a"))
	if got, newest := l.Since(0, 10); len(got) != 1 || newest != 4 || got[0].ID != 4 || string(got[0].Key()) != "a" {
		t.Errorf("got %+v of %d", got, newest)
	}
}

// TestNames: an RPC names the rows of its keys and of its ranges with two ends.
func TestNames(t *testing.T) {
	t.Parallel()
	entries := func(keys ...string) *btpb.MutateRowsRequest {
		out := &btpb.MutateRowsRequest{}
		for _, key := range keys {
			out.Entries = append(out.Entries, &btpb.MutateRowsRequest_Entry{RowKey: []byte(key)})
		}
		return out
	}
	reads := func(ranges ...*btpb.RowRange) *btpb.ReadRowsRequest {
		return &btpb.ReadRowsRequest{Rows: &btpb.RowSet{RowKeys: [][]byte{[]byte("x")}, RowRanges: ranges}}
	}
	closed := func(key string) *btpb.RowRange_StartKeyClosed {
		return &btpb.RowRange_StartKeyClosed{StartKeyClosed: []byte(key)}
	}
	for name, c := range map[string]struct {
		request proto.Message
		is, not []string
	}{
		"a write":            {&btpb.MutateRowRequest{RowKey: []byte("k")}, []string{"k"}, []string{"", "kk", "j"}},
		"a bulk write":       {entries("a", "c"), []string{"a", "c"}, []string{"b"}},
		"a key":              {reads(), []string{"x"}, []string{"y"}},
		"a whole table":      {&btpb.ReadRowsRequest{}, nil, []string{"", "x"}},
		"a half-open range":  {reads(&btpb.RowRange{StartKey: closed("b"), EndKey: &btpb.RowRange_EndKeyOpen{EndKeyOpen: []byte("d")}}), []string{"x", "b", "c"}, []string{"a", "d"}},
		"the other half":     {reads(&btpb.RowRange{StartKey: &btpb.RowRange_StartKeyOpen{StartKeyOpen: []byte("b")}, EndKey: &btpb.RowRange_EndKeyClosed{EndKeyClosed: []byte("d")}}), []string{"c", "d"}, []string{"b", "d\x00"}},
		"one without an end": {reads(&btpb.RowRange{StartKey: closed("b")}), nil, []string{"b", "c"}},
		"a large request":    {&btpb.MutateRowRequest{RowKey: []byte("k"), Mutations: []*btpb.Mutation{{Mutation: &btpb.Mutation_SetCell_{SetCell: &btpb.Mutation_SetCell{Value: make([]byte, maxBodyBytes)}}}}}, []string{"k"}, []string{"j"}},
	} {
		l, made := New(), call("")
		made.Request = c.request
		l.Bigtable(made)
		got, _ := l.Since(0, 1)
		for _, key := range c.is {
			if !got[0].Names([]byte(key)) {
				t.Errorf("%s does not name %q", name, key)
			}
		}
		for _, key := range c.not {
			if got[0].Names([]byte(key)) {
				t.Errorf("%s names %q", name, key)
			}
		}
	}
}
