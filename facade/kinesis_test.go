package facade

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tabletop-emu/tabletop/internal/clock"
)

const (
	kinesisTable  = `{"TableName": "music", "BillingMode": "PAY_PER_REQUEST", "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}], "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}]}`
	kinesisStream = `{"TableName": "music", "StreamArn": "arn:aws:kinesis:us-east-1:000000000000:stream/changes"}`
)

// fakeKinesis is a Kinesis server with the stream "changes".
type fakeKinesis struct {
	url  string
	mu   sync.Mutex
	got  []string // data, in order
	keys map[string]string
	// fail returns what happens to a call: "" if it succeeds, "lose" if its answer is lost,
	// "refuse" if it is refused, "some" if some of its records are refused, or "hang" if it is
	// not answered.
	fail func() string
	more chan struct{} // closed when got grows
}

func newFakeKinesis(t *testing.T) *fakeKinesis {
	t.Helper()
	k := &fakeKinesis{keys: map[string]string{}, more: make(chan struct{}), fail: func() string { return "" }}
	server := httptest.NewServer(k)
	t.Cleanup(server.Close)
	k.url = server.URL
	return k
}

func (k *fakeKinesis) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct {
		StreamName string
		Records    []struct {
			Data         []byte
			PartitionKey string
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=tabletop/") {
		http.Error(w, `{"__type": "SerializationException"}`, http.StatusBadRequest)
		return
	}
	if in.StreamName != "changes" {
		http.Error(w, `{"__type": "ResourceNotFoundException", "message": "Stream `+in.StreamName+` not found"}`, http.StatusBadRequest)
		return
	}
	if r.Header.Get("X-Amz-Target") == "Kinesis_20131202.DescribeStreamSummary" {
		_, _ = w.Write([]byte(`{"StreamDescriptionSummary": {}}`))
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	how := k.fail()
	if how == "refuse" {
		http.Error(w, `{"__type": "ProvisionedThroughputExceededException"}`, http.StatusBadRequest)
		return
	}
	failed, answers := 0, []map[string]string{}
	for i, record := range in.Records {
		if how == "some" && i%2 == 0 {
			failed++
			answers = append(answers, map[string]string{"ErrorCode": "InternalFailure"})
			continue
		}
		k.got = append(k.got, string(record.Data))
		answers = append(answers, map[string]string{"SequenceNumber": "1"})
	}
	close(k.more)
	k.more = make(chan struct{})
	if how == "lose" {
		panic(http.ErrAbortHandler)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"FailedRecordCount": failed, "Records": answers})
}

// wait waits until n records have arrived.
func (k *fakeKinesis) wait(t *testing.T, n int) {
	t.Helper()
	for {
		k.mu.Lock()
		have, more := len(k.got), k.more
		k.mu.Unlock()
		if have >= n {
			return
		}
		select {
		case <-more:
		case <-t.Context().Done():
			t.Fatal("the test is over")
		}
	}
}

// checkChanges checks that n changes of each item arrived, with their first copies in order.
func checkChanges(t *testing.T, got []string, items, n int) {
	t.Helper()
	next := map[string]int{}
	for _, data := range got {
		var record struct {
			EventName string
			DynamoDB  struct {
				Keys, NewImage map[string]struct{ S, N string }
			}
		}
		if err := json.Unmarshal([]byte(data), &record); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		id, at := record.DynamoDB.Keys["id"].S, -1
		if _, err := fmt.Sscan(record.DynamoDB.NewImage["n"].N, &at); err != nil || at > next[id] {
			t.Fatalf("change %d of %s comes after %d: %s", at, id, next[id]-1, data)
		}
		next[id] = max(next[id], at+1)
	}
	for i := range items {
		if id := fmt.Sprint("item", i); next[id] != n {
			t.Errorf("%d changes of %s came, want %d", next[id], id, n)
		}
	}
}

func putChange(t *testing.T, s *Server, item, n int) {
	t.Helper()
	must(t, s, "PutItem", fmt.Sprintf(`{"TableName": "music", "Item": {"id": {"S": "item%d"}, "n": {"N": "%d"}}}`, item, n))
}

// enableKinesis enables the stream and waits until it is ACTIVE.
func enableKinesis(t *testing.T, s *Server) {
	t.Helper()
	must(t, s, "EnableKinesisStreamingDestination", kinesisStream)
	untilKinesis(t, s)
}

// untilKinesis waits until the stream is ACTIVE.
func untilKinesis(t *testing.T, s *Server) {
	t.Helper()
	for !strings.Contains(must(t, s, "DescribeKinesisStreamingDestination", `{"TableName": "music"}`), `"DestinationStatus":"ACTIVE"`) {
		runtime.Gosched()
	}
}

// deliveriesEnded waits until all deliveries have ended.
func (s *Server) deliveriesEnded(t *testing.T) {
	t.Helper()
	if err := s.store.Jobs.Wait(t.Context(), "kinesis"); err != nil {
		t.Fatal(err)
	}
}

// A Kinesis endpoint that fails one of five calls, loses answers, and accepts only some records
// of other calls gets each change at least once, and those of an item in order.
func TestKinesis_Endpoint(t *testing.T) {
	t.Parallel()
	k, random := newFakeKinesis(t), rand.New(rand.NewPCG(1, 2)) //nolint:gosec // of a test
	k.fail = func() string {
		if random.IntN(5) > 0 {
			return ""
		}
		return []string{"refuse", "some", "lose"}[random.IntN(3)]
	}
	s := newTestServer(t, func(o *Options) { o.wall, o.KinesisEndpoint, o.StreamShards = clock.New(), k.url, []int{1, 4} })
	must(t, s, "CreateTable", kinesisTable)
	enableKinesis(t, s)
	const items, changes = 6, 10
	var writers sync.WaitGroup
	for item := range items {
		writers.Go(func() {
			for n := range changes {
				if _, err := s.Call(t.Context(), "PutItem", fmt.Appendf(nil, `{"TableName": "music", "Item": {"id": {"S": "item%d"}, "n": {"N": "%d"}}}`, item, n)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	must(t, s, "DisableKinesisStreamingDestination", kinesisStream)
	s.deliveriesEnded(t)
	checkChanges(t, k.got, items, changes)
}

// A destination whose stream does not exist fails. The table then has no log.
func TestKinesis_NoStream(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, func(o *Options) { o.KinesisEndpoint = newFakeKinesis(t).url })
	must(t, s, "CreateTable", kinesisTable)
	other := strings.Replace(kinesisStream, "changes", "nothing", 1)
	must(t, s, "EnableKinesisStreamingDestination", other)
	s.deliveriesEnded(t)
	if got := must(t, s, "DescribeKinesisStreamingDestination", `{"TableName": "music"}`); !strings.Contains(got, `"DestinationStatus":"ENABLE_FAILED","DestinationStatusDescription":"User does not have a permission to use kinesis stream"`) {
		t.Error(got)
	}
	table, err := s.store.Table(t.Context(), "music")
	if err != nil || table.Log.On() {
		t.Errorf("the log is on for nobody: %v", err)
	}
	must(t, s, "EnableKinesisStreamingDestination", kinesisStream)
}

// If the stream refuses calls, the delivery waits until it accepts them, even over a restart, and
// then delivers the changes of that time.
func TestKinesis_Lost(t *testing.T) {
	t.Parallel()
	k := newFakeKinesis(t)
	lost := true
	k.fail = func() string {
		if lost {
			return "refuse"
		}
		return ""
	}
	var opts Options
	s := newTestServer(t, func(o *Options) { o.KinesisEndpoint = k.url; opts = *o })
	must(t, s, "CreateTable", kinesisTable)
	enableKinesis(t, s)
	putChange(t, s, 0, 0)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	k.mu.Lock()
	lost = false
	k.mu.Unlock()
	again, err := New(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	k.wait(t, 1)
	must(t, again, "DisableKinesisStreamingDestination", kinesisStream)
	again.deliveriesEnded(t)
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	checkChanges(t, k.got, 1, 1)
}

// Changes that a server records without a place to deliver them are delivered by a later server,
// even if the table was deleted.
func TestKinesis_DirLater(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "streams")
	var opts Options
	s := newTestServer(t, func(o *Options) { opts = *o })
	must(t, s, "CreateTable", kinesisTable)
	enableKinesis(t, s)
	if got := must(t, s, "DescribeKinesisStreamingDestination", `{"TableName": "music"}`); !strings.Contains(got, `"DestinationStatus":"ACTIVE"`) {
		t.Error(got)
	}
	for n := range 3 {
		putChange(t, s, 0, n)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	opts.KinesisDir = dir
	again, err := New(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	putChange(t, again, 0, 3)
	must(t, again, "DeleteTable", `{"TableName": "music"}`)
	if _, err := again.ReapExpired(t.Context()); err != nil {
		t.Error(err)
	}
	again.deliveriesEnded(t)
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "changes.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	checkChanges(t, strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"), 1, 4)
}

// One of two servers delivers what both write.
func TestKinesis_TwoServers(t *testing.T) {
	t.Parallel()
	k, now := newFakeKinesis(t), clock.NewFrozen(testTime)
	a, b := newTwoTestServers(t, func(o *Options) { o.Now, o.wall, o.KinesisEndpoint = now.Now, clock.New(), k.url })
	must(t, a, "CreateTable", kinesisTable)
	must(t, a, "EnableKinesisStreamingDestination", kinesisStream)
	now.Advance(2 * time.Second) // then no server uses an older definition
	untilKinesis(t, a)
	const changes = 20
	for n := range changes {
		putChange(t, []*Server{a, b}[n%2], 0, n)
		putChange(t, b, 1, n)
		now.Advance(100 * time.Millisecond)
	}
	must(t, a, "DisableKinesisStreamingDestination", kinesisStream)
	now.Advance(5 * time.Second) // then no server is below the end
	meet(t, a, b)
	a.deliveriesEnded(t)
	checkChanges(t, k.got, 2, changes)
}

// A stream of keys shows only keys, even if the log keeps all images for Kinesis.
func TestKinesis_BesideStream(t *testing.T) {
	t.Parallel()
	now := clock.NewFrozen(testTime)
	s := newTestServer(t, func(o *Options) { o.Now = now.Now; o.KinesisDir = t.TempDir() })
	must(t, s, "CreateTable", kinesisTable)
	enableKinesis(t, s)
	putChange(t, s, 0, 0)
	must(t, s, "UpdateTable", `{"TableName": "music", "StreamSpecification": {"StreamEnabled": true, "StreamViewType": "KEYS_ONLY"}}`)
	putChange(t, s, 0, 1)
	records := func() string {
		t.Helper()
		table, err := s.store.Table(t.Context(), "music")
		if err != nil {
			t.Fatal(err)
		}
		arn := s.streamARN(table, table.StreamLabel)
		shard := between(must(t, s, "DescribeStream", `{"StreamArn": "`+arn+`"}`), `"ShardId":"`, `"`)
		iterator := between(must(t, s, "GetShardIterator", `{"StreamArn": "`+arn+`", "ShardId": "`+shard+`", "ShardIteratorType": "TRIM_HORIZON"}`), `"ShardIterator":"`, `"`)
		return must(t, s, "GetRecords", `{"ShardIterator": "`+iterator+`"}`)
	}
	if got := records(); strings.Count(got, `"eventName"`) != 1 || strings.Contains(got, "Image") || !strings.Contains(got, `"SizeBytes":7`) {
		t.Errorf("the stream shows more than the keys of what was written since it began: %s", got)
	}
	must(t, s, "UpdateTable", `{"TableName": "music", "StreamSpecification": {"StreamEnabled": false}}`)
	putChange(t, s, 0, 2)
	must(t, s, "DisableKinesisStreamingDestination", kinesisStream)
	putChange(t, s, 0, 3)
	s.deliveriesEnded(t)
	text, err := os.ReadFile(filepath.Join(s.opts.KinesisDir, "changes.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	checkChanges(t, strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"), 1, 3)
	if table, err := s.store.Table(t.Context(), "music"); err != nil || table.Log.On() {
		t.Errorf("the log is on for nobody: %v", err)
	}
}

func between(text, before, after string) string {
	_, text, _ = strings.Cut(text, before)
	text, _, _ = strings.Cut(text, after)
	return text
}
