package facade

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tabletop-emu/tabletop/facade/internal/changelog"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/test/intercept"
)

// streamRecord is a record as clients decode it.
type streamRecord struct {
	EventID, EventName, EventVersion, EventSource, AwsRegion string
	Dynamodb                                                 struct {
		ApproximateCreationDateTime    int64
		Keys, NewImage, OldImage       map[string]map[string]any
		SequenceNumber, StreamViewType string
		SizeBytes                      int
	}
	UserIdentity map[string]string
}

func (r *streamRecord) UnmarshalJSON(data []byte) error {
	var raw struct {
		EventID      string          `json:"eventID"`
		EventName    string          `json:"eventName"`
		EventVersion string          `json:"eventVersion"`
		EventSource  string          `json:"eventSource"`
		AwsRegion    string          `json:"awsRegion"`
		Dynamodb     json.RawMessage `json:"dynamodb"`
		UserIdentity map[string]string
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	r.EventID, r.EventName, r.EventVersion, r.EventSource, r.AwsRegion = raw.EventID, raw.EventName, raw.EventVersion, raw.EventSource, raw.AwsRegion
	r.UserIdentity = raw.UserIdentity
	return json.Unmarshal(raw.Dynamodb, &r.Dynamodb)
}

// text formats a record: its event, and its images.
func (r *streamRecord) text() string {
	of := func(item map[string]map[string]any) string {
		b, _ := json.Marshal(item)
		return string(b)
	}
	text := r.EventName + " " + of(r.Dynamodb.Keys) + " new " + of(r.Dynamodb.NewImage) + " old " + of(r.Dynamodb.OldImage)
	if r.UserIdentity != nil {
		text += " by " + r.UserIdentity["Type"] + " " + r.UserIdentity["PrincipalId"]
	}
	return text
}

func answerOf[T any](tb testing.TB, s *Server, operation, req string) (out T) {
	tb.Helper()
	if err := json.Unmarshal([]byte(must(tb, s, operation, req)), &out); err != nil {
		tb.Fatal(err)
	}
	return out
}

// streamReader reads a stream as the adapters of the SDKs do: parents before children, each
// shard to its end.
type streamReader struct {
	arn      string
	iterator map[string]string // by shard; "" once it is read to its end
}

func newStreamReader(arn string) *streamReader {
	return &streamReader{arn: arn, iterator: map[string]string{}}
}

func (sr *streamReader) read(tb testing.TB, s *Server) (records []streamRecord) {
	tb.Helper()
	type described struct {
		StreamDescription struct {
			LastEvaluatedShardID string `json:"LastEvaluatedShardId"`
			Shards               []struct {
				ShardID       string `json:"ShardId"`
				ParentShardID string `json:"ParentShardId"`
			}
		}
	}
	for start := ""; ; {
		d := answerOf[described](tb, s, "DescribeStream", `{"StreamArn": "`+sr.arn+`"`+start+`}`).StreamDescription
		for _, sh := range d.Shards {
			if at, known := sr.iterator[sh.ShardID]; known && at == "" {
				continue
			} else if !known {
				sr.iterator[sh.ShardID] = answerOf[struct{ ShardIterator string }](tb, s, "GetShardIterator",
					`{"StreamArn": "`+sr.arn+`", "ShardId": "`+sh.ShardID+`", "ShardIteratorType": "TRIM_HORIZON"}`).ShardIterator
			}
			if p, known := sr.iterator[sh.ParentShardID]; known && p != "" {
				tb.Fatalf("%s is there while its parent can still be read", sh.ShardID)
			}
			for sr.iterator[sh.ShardID] != "" {
				out := answerOf[struct {
					Records           []streamRecord
					NextShardIterator string
				}](tb, s, "GetRecords", `{"ShardIterator": "`+sr.iterator[sh.ShardID]+`", "Limit": 7}`)
				records, sr.iterator[sh.ShardID] = append(records, out.Records...), out.NextShardIterator
				if len(out.Records) == 0 {
					break
				}
			}
		}
		if d.LastEvaluatedShardID == "" {
			return records
		}
		start = `, "ExclusiveStartShardId": "` + d.LastEvaluatedShardID + `"`
	}
}

const streamedTable = `{"TableName": "streamed", "BillingMode": "PAY_PER_REQUEST", "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
	"AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}], "StreamSpecification": {"StreamEnabled": true, "StreamViewType": "%s"}}`

// createStreamed creates the table and returns its stream.
func createStreamed(tb testing.TB, s *Server, view string) (arn string) {
	tb.Helper()
	return answerOf[struct {
		TableDescription struct{ LatestStreamArn string }
	}](tb, s, "CreateTable", fmt.Sprintf(streamedTable, view)).TableDescription.LatestStreamArn
}

func expectRecords(t *testing.T, got []streamRecord, want ...string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Errorf("no record %d, want %s", i, want[i])
		case i >= len(want):
			t.Errorf("record %d is %s", i, got[i].text())
		case got[i].text() != want[i]:
			t.Errorf("record %d is\n%s, want\n%s", i, got[i].text(), want[i])
		}
	}
}

func put(id, more string) string {
	return `{"TableName": "streamed", "Item": {"id": {"S": "` + id + `"}` + more + `}}`
}

func keyOf(id, more string) string {
	return `{"TableName": "streamed", "Key": {"id": {"S": "` + id + `"}}` + more + `}`
}

// A write that does not change its item has no record.
func TestStreams_Point9_NoChange(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	arn := createStreamed(t, s, "NEW_AND_OLD_IMAGES")
	reader := newStreamReader(arn)
	must(t, s, "PutItem", put("Fred", ""))
	got := reader.read(t, s)
	expectRecords(t, got, `INSERT {"id":{"S":"Fred"}} new {"id":{"S":"Fred"}} old null`)
	if r := got[0]; r.Dynamodb.SizeBytes != 12 || r.EventVersion != "1.1" || r.EventSource != "aws:dynamodb" || len(r.EventID) != 32 ||
		r.Dynamodb.StreamViewType != "NEW_AND_OLD_IMAGES" || r.Dynamodb.ApproximateCreationDateTime != testTime.Unix() || len(r.Dynamodb.SequenceNumber) != 26 {
		t.Errorf("%+v", r)
	}
	must(t, s, "PutItem", put("Fred", ""))
	must(t, s, "DeleteItem", keyOf("none", ""))
	must(t, s, "UpdateItem", keyOf("Fred", `, "UpdateExpression": "REMOVE nothing"`))
	must(t, s, "BatchWriteItem", `{"RequestItems": {"streamed": [{"PutRequest": {"Item": {"id": {"S": "Fred"}}}}, {"DeleteRequest": {"Key": {"id": {"S": "none"}}}}]}}`)
	must(t, s, "TransactWriteItems", `{"TransactItems": [{"Put": `+put("Fred", "")+`}, {"Delete": `+keyOf("none", "")+`}]}`)
	for operation, req := range map[string]string{
		"PutItem":            `{"TableName": "streamed", "Item": {"id": {"S": "Fred"}, "a": {"N": "1"}}, "ConditionExpression": "attribute_not_exists(id)"}`,
		"TransactWriteItems": `{"TransactItems": [{"Put": ` + put("new", "") + `}, {"ConditionCheck": ` + keyOf("none", `, "ConditionExpression": "attribute_exists(id)"`) + `}]}`,
	} {
		if _, err := s.Call(t.Context(), operation, []byte(req)); err == nil {
			t.Errorf("%s is not refused", operation)
		}
	}
	expectRecords(t, reader.read(t, s))
}

// Every kind of write has its records, in each view.
func TestStreams_Views(t *testing.T) {
	t.Parallel()
	for view, has := range map[string]struct{ new, old bool }{
		"KEYS_ONLY": {}, "NEW_IMAGE": {new: true}, "OLD_IMAGE": {old: true}, "NEW_AND_OLD_IMAGES": {true, true},
	} {
		t.Run(view, func(t *testing.T) {
			t.Parallel()
			s := newTestServer(t)
			reader := newStreamReader(createStreamed(t, s, view))
			must(t, s, "PutItem", put("a", `, "n": {"N": "1"}`))
			must(t, s, "UpdateItem", keyOf("a", `, "UpdateExpression": "SET n = :n", "ExpressionAttributeValues": {":n": {"N": "2"}}`))
			must(t, s, "UpdateItem", keyOf("b", ""))
			must(t, s, "DeleteItem", keyOf("a", ""))
			must(t, s, "BatchWriteItem", `{"RequestItems": {"streamed": [{"PutRequest": {"Item": {"id": {"S": "c"}}}}, {"DeleteRequest": {"Key": {"id": {"S": "b"}}}}]}}`)
			must(t, s, "TransactWriteItems", `{"TransactItems": [{"Put": `+put("d", "")+`}, {"Delete": `+keyOf("c", "")+`}]}`)
			image := func(there bool, text string) string {
				if !there || text == "" {
					return "null"
				}
				return text
			}
			record := func(event, id, updated, old string) string {
				return event + ` {"id":{"S":"` + id + `"}} new ` + image(has.new, updated) + " old " + image(has.old, old)
			}
			a1, a2 := `{"id":{"S":"a"},"n":{"N":"1"}}`, `{"id":{"S":"a"},"n":{"N":"2"}}`
			only := func(id string) string { return `{"id":{"S":"` + id + `"}}` }
			got := reader.read(t, s)
			if len(got) != 8 {
				t.Fatalf("%d records", len(got))
			}
			expectRecords(t, got[:6], record("INSERT", "a", a1, ""), record("MODIFY", "a", a2, a1), record("INSERT", "b", only("b"), ""),
				record("REMOVE", "a", "", a2), record("INSERT", "c", only("c"), ""), record("REMOVE", "b", "", only("b")))
			for _, r := range got[6:] { // the items of a transaction have no order
				if want := record("INSERT", "d", only("d"), ""); r.text() != want && r.text() != record("REMOVE", "c", "", only("c")) {
					t.Errorf("%s", r.text())
				}
			}
		})
	}
}

// The record of a deletion by time to live names the service that deleted the item.
func TestStreams_Point10_Expired(t *testing.T) {
	t.Parallel()
	now := clock.NewFrozen(testTime)
	s := newTestServer(t, func(o *Options) { o.Now = now.Now })
	reader := newStreamReader(createStreamed(t, s, "KEYS_ONLY"))
	must(t, s, "UpdateTimeToLive", `{"TableName": "streamed", "TimeToLiveSpecification": {"AttributeName": "until", "Enabled": true}}`)
	s.store.Wait()
	for _, id := range []string{"client", "reaped"} {
		must(t, s, "PutItem", put(id, fmt.Sprintf(`, "until": {"N": "%d"}`, testTime.Unix()+60)))
	}
	now.Advance(2 * time.Minute)
	must(t, s, "DeleteItem", keyOf("client", ""))
	if n, err := s.ReapExpired(t.Context()); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	expectRecords(t, reader.read(t, s)[2:], `REMOVE {"id":{"S":"client"}} new null old null`,
		`REMOVE {"id":{"S":"reaped"}} new null old null by Service dynamodb.amazonaws.com`)
}

func streamError(t *testing.T, s *Server, operation, req, want string) {
	t.Helper()
	if got, err := s.Call(t.Context(), operation, []byte(req)); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s %s: answered %s, %v, want %s", operation, req, got, err, want)
	}
}

// A stream that is disabled, or whose table is deleted, keeps its records for 24 hours, and each
// new stream of the table has another ARN.
func TestStreams_Point12_Lives(t *testing.T) {
	t.Parallel()
	now := clock.NewFrozen(testTime)
	s := newTestServer(t, func(o *Options) { o.Now = now.Now })
	first := createStreamed(t, s, "NEW_IMAGE")
	shard := func(arn string) string {
		return answerOf[struct {
			StreamDescription struct {
				Shards []struct {
					ShardID string `json:"ShardId"`
				}
			}
		}](t, s, "DescribeStream", `{"StreamArn": "`+arn+`"}`).StreamDescription.Shards[0].ShardID
	}
	must(t, s, "PutItem", put("before", ""))
	latest := answerOf[struct{ ShardIterator string }](t, s, "GetShardIterator", `{"StreamArn": "`+first+`", "ShardId": "`+shard(first)+`", "ShardIteratorType": "LATEST"}`).ShardIterator
	must(t, s, "PutItem", put("after", ""))
	if got := must(t, s, "GetRecords", `{"ShardIterator": "`+latest+`"}`); strings.Contains(got, "before") || strings.Count(got, "eventID") != 1 {
		t.Errorf("from the latest on: %s", got)
	}
	const disable = `{"TableName": "streamed", "StreamSpecification": {"StreamEnabled": false}}`
	enable := `{"TableName": "streamed", "StreamSpecification": {"StreamEnabled": true, "StreamViewType": "KEYS_ONLY"}}`
	streamError(t, s, "UpdateTable", enable, "Table already has an enabled stream: TableName: streamed")
	must(t, s, "UpdateTable", disable)
	streamError(t, s, "UpdateTable", disable, "Table has no stream to disable: TableName: streamed")
	must(t, s, "PutItem", put("unseen", ""))
	if got := must(t, s, "DescribeTable", `{"TableName": "streamed"}`); strings.Contains(got, "StreamSpecification") || !strings.Contains(got, `"LatestStreamArn":"`+first+`"`) {
		t.Errorf("disabled: %s", got)
	}
	if got := must(t, s, "DescribeStream", `{"StreamArn": "`+first+`"}`); !strings.Contains(got, `"StreamStatus":"DISABLED"`) || !strings.Contains(got, "EndingSequenceNumber") {
		t.Errorf("disabled: %s", got)
	}
	old := newStreamReader(first)
	if got := old.read(t, s); len(got) != 2 || old.iterator[shard(first)] != "" {
		t.Errorf("%d records, iterators %v", len(got), old.iterator)
	}
	second := answerOf[struct {
		TableDescription struct{ LatestStreamArn string }
	}](t, s, "UpdateTable", enable).TableDescription.LatestStreamArn
	if second == first {
		t.Error("the second stream has the ARN of the first")
	}
	must(t, s, "PutItem", put("second", ""))
	must(t, s, "DeleteTable", `{"TableName": "streamed"}`)
	third := createStreamed(t, s, "KEYS_ONLY")
	if third == second {
		t.Error("a table that was created again has the stream of the one before")
	}
	list := must(t, s, "ListStreams", `{"TableName": "streamed"}`)
	for _, arn := range []string{first, second, third} {
		if !strings.Contains(list, arn) {
			t.Errorf("%s is not listed: %s", arn, list)
		}
	}
	expectRecords(t, newStreamReader(second).read(t, s), `INSERT {"id":{"S":"second"}} new null old null`)
	if got := must(t, s, "ListStreams", `{"Limit": 1}`); !strings.Contains(got, `"LastEvaluatedStreamArn":"`+first+`"`) {
		t.Errorf("the first page: %s", got)
	}
	now.Advance(24 * time.Hour)
	if _, err := s.ReapExpired(t.Context()); err != nil {
		t.Fatal(err)
	}
	streamError(t, s, "DescribeStream", `{"StreamArn": "`+first+`"}`, "ResourceNotFoundException: Requested resource not found: Stream: "+first+" not found")
	if got := must(t, s, "ListStreams", `{}`); strings.Contains(got, first) || !strings.Contains(got, third) {
		t.Errorf("after a day: %s", got)
	}
	if tables, err := s.store.BigtableTables(t.Context()); err != nil || strings.Count(strings.Join(tables, " "), "_tabletop.l.") != 1 {
		t.Errorf("the tables are %v, %v", tables, err)
	}
}

// Pages of ListStreams have each stream once, in the order of the ARNs, for any names: some
// characters of names sort before the slash after a name. A recreated table has a stream for
// each life.
func TestStreams_ListedOnce(t *testing.T) {
	t.Parallel()
	now := clock.NewFrozen(testTime)
	s := newTestServer(t, func(o *Options) { o.Now = now.Now })
	var want []string
	for _, name := range []string{"abc", "abc-d", "abc.e", "abc_f", "abc0", "abc", "abc-d"} {
		now.Advance(time.Second)
		_, _ = s.Call(t.Context(), "DeleteTable", []byte(`{"TableName": "`+name+`"}`))
		want = append(want, answerOf[struct {
			TableDescription struct{ LatestStreamArn string }
		}](t, s, "CreateTable", strings.ReplaceAll(fmt.Sprintf(streamedTable, "KEYS_ONLY"), `"streamed"`, `"`+name+`"`)).TableDescription.LatestStreamArn)
	}
	slices.Sort(want)
	for limit := 1; limit <= len(want)+1; limit++ {
		var got []string
		for start := ""; ; {
			page := answerOf[struct {
				Streams                []struct{ StreamArn string }
				LastEvaluatedStreamArn string
			}](t, s, "ListStreams", fmt.Sprintf(`{"Limit": %d%s}`, limit, start))
			for _, st := range page.Streams {
				got = append(got, st.StreamArn)
			}
			if page.LastEvaluatedStreamArn == "" {
				break
			}
			start = `, "ExclusiveStartStreamArn": "` + page.LastEvaluatedStreamArn + `"`
		}
		if !slices.Equal(got, want) {
			t.Errorf("pages of %d: %q, want %q", limit, got, want)
		}
	}
}

// Iterators expire after 15 minutes, and records after 24 hours, even if the server is restarted
// in between.
func TestStreams_Point11_Ages(t *testing.T) {
	t.Parallel()
	now := clock.NewFrozen(testTime)
	var shared Options
	s := newTestServer(t, func(o *Options) { o.Now = now.Now; shared = *o })
	arn := createStreamed(t, s, "KEYS_ONLY")
	must(t, s, "PutItem", put("a", ""))
	sr := newStreamReader(arn)
	number := sr.read(t, s)[0].Dynamodb.SequenceNumber
	var shard string
	for shard = range sr.iterator {
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := New(t.Context(), shared)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = again.Close() })
	now.Advance(14 * time.Minute)
	must(t, again, "PutItem", put("b", ""))
	expectRecords(t, sr.read(t, again), `INSERT {"id":{"S":"b"}} new null old null`)
	now.Advance(15 * time.Minute)
	streamError(t, again, "GetRecords", `{"ShardIterator": "`+sr.iterator[shard]+`"}`, "ExpiredIteratorException")
	iterator := func(kind, number string) string {
		return `{"StreamArn": "` + arn + `", "ShardId": "` + shard + `", "ShardIteratorType": "` + kind + `"` + number + `}`
	}
	at := `, "SequenceNumber": "` + number + `"`
	after := answerOf[struct{ ShardIterator string }](t, again, "GetShardIterator", iterator("AFTER_SEQUENCE_NUMBER", at)).ShardIterator
	if got := must(t, again, "GetRecords", `{"ShardIterator": "`+after+`"}`); strings.Count(got, "eventID") != 1 {
		t.Errorf("after the first: %s", got)
	}
	streamError(t, again, "GetShardIterator", iterator("LATEST", at), "SequenceNumber should not be passed for this iterator type")
	streamError(t, again, "GetShardIterator", iterator("AT_SEQUENCE_NUMBER", ""), "SequenceNumber cannot be null")
	streamError(t, again, "GetShardIterator", iterator("AT_SEQUENCE_NUMBER", `, "SequenceNumber": "1"`), "Member must have length greater than or equal to 21")
	streamError(t, again, "GetShardIterator", iterator("AT_SEQUENCE_NUMBER", `, "SequenceNumber": "`+changelog.Position{}.String()+`"`), "Invalid SequenceNumber for the shard")
	streamError(t, again, "GetShardIterator", strings.ReplaceAll(iterator("LATEST", ""), shard, shard[:len(shard)-1]+"7"), "Requested resource not found: Shard does not exist")
	streamError(t, again, "GetRecords", `{"ShardIterator": "nonsense"}`, "ValidationException")
	for _, limit := range []string{"0", "-1", "1001"} {
		streamError(t, again, "GetRecords", `{"ShardIterator": "`+after+`", "Limit": `+limit+`}`, "imit")
	}
	for _, arn := range []string{strings.Repeat("x", 40), "arn:aws:dynamodb:us-east-1:000000000000:table/streamed"} {
		streamError(t, again, "DescribeStream", `{"StreamArn": "`+arn+`"}`, "Invalid StreamArn")
	}
	now.Advance(25 * time.Hour) // more than the rotation: everything read is gone
	expectRecords(t, newStreamReader(arn).read(t, again))
}

// With any number of shards that rotate each second, a reader gets each record once, and those of
// an item in order.
func TestStreams_Point13_Rotation(t *testing.T) {
	t.Parallel()
	for _, shards := range [][]int{{4}, {1, 2, 4}} {
		now := clock.NewFrozen(testTime)
		s := newTestServer(t, func(o *Options) {
			o.Now, o.StreamShardRotation, o.StreamShards = now.Now, time.Second, shards
		})
		reader := newStreamReader(createStreamed(t, s, "NEW_IMAGE"))
		last := map[string]int{}
		read := func() {
			for _, r := range reader.read(t, s) {
				id, n := r.Dynamodb.Keys["id"]["S"].(string), 0
				_, _ = fmt.Sscan(r.Dynamodb.NewImage["n"]["N"].(string), &n)
				if n != last[id]+1 {
					t.Fatalf("item %s: %d follows %d", id, n, last[id])
				}
				last[id] = n
			}
		}
		for n := range 50 * 4 {
			must(t, s, "PutItem", put(fmt.Sprint("item", n%5), fmt.Sprintf(`, "n": {"N": "%d"}`, n/5+1)))
			now.Advance(250 * time.Millisecond)
			if n%9 == 0 {
				read()
			}
		}
		read()
		for id, n := range last {
			if n != 40 || len(last) != 5 {
				t.Errorf("%d items, %s was seen until %d", len(last), id, n)
			}
		}
		if len(reader.iterator) < 50*shards[0] {
			t.Errorf("%d shards", len(reader.iterator))
		}
	}
}

// The number of calls of a write to a table with a log is limited.
func TestRequest_CallsWithLog(t *testing.T) {
	t.Parallel()
	conn := newCountingConn()
	s := newTestServer(t, func(o *Options) { conn.ClientConnInterface, o.Conn, o.Concurrency = o.Conn, conn, 100 })
	createStreamed(t, s, "NEW_AND_OLD_IMAGES")
	must(t, s, "PutItem", put("a", ""))
	for _, c := range []struct {
		name, operation, request string
		want                     int64
	}{
		{"a put", "PutItem", put("a", `, "n": {"N": "1"}`), 3}, // read, write, append
		{"a put of what is there", "PutItem", put("a", `, "n": {"N": "1"}`), 2},
		{"an update", "UpdateItem", `{"TableName": "streamed", "Key": {"id": {"S": "a"}}, "UpdateExpression": "ADD n :n", "ExpressionAttributeValues": {":n": {"N": "1"}}}`, 3},
		{"a statement", "ExecuteStatement", `{"Statement": "UPDATE streamed SET n = 7 WHERE id = 'a'"}`, 3},
		{"a delete", "DeleteItem", `{"TableName": "streamed", "Key": {"id": {"S": "a"}}}`, 3},
		{"a delete of nothing", "DeleteItem", `{"TableName": "streamed", "Key": {"id": {"S": "a"}}}`, 1},
	} {
		if got := conn.callsOf(t, s, c.operation, c.request); got != c.want {
			t.Errorf("%s makes %d calls, want %d", c.name, got, c.want)
		}
	}
}

// pairConn delays the first call after it is armed until the second has begun.
type pairConn struct {
	intercept.Conn
	calls  atomic.Int64
	second chan struct{}
}

func (c *pairConn) begin(ctx context.Context, _ any) error {
	switch c.calls.Add(1) {
	case 1:
		select {
		case <-c.second:
		case <-ctx.Done():
			return ctx.Err()
		}
	case 2:
		close(c.second)
	}
	return nil
}

// The first write of a row marks the row while it reads the item, so that it takes three round
// trips.
func TestRequest_FirstWriteWithLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, firstWriteWithLog) // there, calls that deadlock fail at once
}

func firstWriteWithLog(t *testing.T) {
	conn := &pairConn{}
	conn.Before(conn.begin)
	conn.calls.Store(2) // not armed
	s := newTestServer(t, func(o *Options) { conn.ClientConnInterface, o.Conn, o.Concurrency = o.Conn, conn, 100 })
	createStreamed(t, s, "KEYS_ONLY")
	must(t, s, "PutItem", put("a", ""))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, c := range []struct{ operation, request string }{
		{"PutItem", put("b", "")},
		{"UpdateItem", `{"TableName": "streamed", "Key": {"id": {"S": "c"}}, "UpdateExpression": "SET n = :n", "ExpressionAttributeValues": {":n": {"N": "1"}}}`},
		{"ExecuteStatement", `{"Statement": "INSERT INTO streamed VALUE {'id': 'd'}"}`},
	} {
		conn.second = make(chan struct{})
		conn.calls.Store(0)
		_, err := s.Call(ctx, c.operation, []byte(c.request))
		if n := conn.calls.Load(); err != nil || n != 4 {
			t.Errorf("%s: %v, and %d calls, want 4, the first two together", c.operation, err, n)
		}
	}
	// A rejected write leaves the row unchanged; its unused mark is harmless.
	if _, err := s.Call(ctx, "PutItem", []byte(strings.TrimSuffix(put("e", ""), "}")+`, "ConditionExpression": "attribute_exists(id)"}`)); err == nil {
		t.Error("a condition that fails lets an item in")
	}
	must(t, s, "PutItem", put("e", ""))
}

// A header of GetRecords has the watermark: all records below it were delivered.
func TestStreams_Watermark(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	sr := newStreamReader(createStreamed(t, s, "KEYS_ONLY"))
	must(t, s, "PutItem", put("a", ""))
	record := sr.read(t, s)[0]
	for _, iterator := range sr.iterator {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"ShardIterator": "`+iterator+`"}`))
		r.Header.Set("X-Amz-Target", targetStreams+"GetRecords")
		r.Header.Set("Content-Type", "application/x-amz-json-1.0")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		values := w.Header().Values("X-Tabletop-Watermark")
		if len(values) != 1 || values[0] <= record.Dynamodb.SequenceNumber || !strings.Contains(w.Body.String(), `"Records":[]`) {
			t.Errorf("watermark %v behind %s: %s", values, record.Dynamodb.SequenceNumber, w.Body)
		}
	}
}
