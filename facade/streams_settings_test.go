package facade

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/test/race"
)

// A stream keeps its records for the Options.StreamRetention at its start, and exists for that
// time after its end.
func TestStreams_Retention(t *testing.T) {
	t.Parallel()
	now := clock.NewFrozen(testTime)
	var shared Options
	s := newTestServer(t, func(o *Options) { o.Now, o.StreamRetention = now.Now, time.Hour; shared = *o })
	arn := createStreamed(t, s, "KEYS_ONLY")
	must(t, s, "PutItem", put("first", ""))
	now.Advance(50 * time.Minute)
	must(t, s, "PutItem", put("second", ""))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	shared.StreamRetention = 0 // for new streams
	s, err := New(t.Context(), shared)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	now.Advance(20 * time.Minute)
	expectRecords(t, newStreamReader(arn).read(t, s), `INSERT {"id":{"S":"second"}} new null old null`)
	must(t, s, "UpdateTable", `{"TableName": "streamed", "StreamSpecification": {"StreamEnabled": false}}`)
	now.Advance(59 * time.Minute)
	must(t, s, "DescribeStream", `{"StreamArn": "`+arn+`"}`)
	now.Advance(time.Minute)
	streamError(t, s, "DescribeStream", `{"StreamArn": "`+arn+`"}`, "ResourceNotFoundException")
	if _, err := New(t.Context(), Options{Conn: shared.Conn, StreamRetention: -1}); err == nil || !strings.Contains(err.Error(), "StreamRetention: -1ns") {
		t.Errorf("a negative retention: %v", err)
	}
}

// The Date of an answer is the time of the server's clock, even in this process, since the reader
// of a stream computes its lag from it.
func TestServer_Date(t *testing.T) {
	t.Parallel()
	now := clock.NewFrozen(testTime)
	s := newTestServer(t, func(o *Options) { o.Now = now.Now })
	client := http.Client{Transport: s.RoundTripper()}
	for range 2 {
		now.Advance(90 * time.Minute)
		for _, body := range []string{"{}", "nonsense"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("X-Amz-Target", targetDynamoDB+"ListTables")
			r.Header.Set("Content-Type", "application/x-amz-json-1.0")
			answer, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
			if got, err := http.ParseTime(answer.Header.Get("Date")); err != nil || !got.Equal(now.Now()) {
				t.Errorf("%s: dated %v, %v, want %v", body, got, err, now.Now())
			}
		}
	}
}

// Tables with a mapping have streams too, with whole items, even for rows that were written
// natively before.
func TestStreams_Mapped(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, func(o *Options) { o.Mappings = []*mapping.Mapping{mappingOf(t, catalogYAML)} })
	const item = `{"PK": {"S": "hats"}, "SK": {"S": "1"}, "Description": {"S": "felt"}, "Price": {"N": "3"}}`
	must(t, s, "PutItem", `{"TableName": "Products", "Item": `+item+`}`)
	arn := answerOf[struct {
		TableDescription struct{ LatestStreamArn string }
	}](t, s, "UpdateTable", `{"TableName": "Products", "StreamSpecification": {"StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES"}}`).TableDescription.LatestStreamArn
	must(t, s, "PutItem", `{"TableName": "Products", "Item": `+item+`}`) // no change
	must(t, s, "UpdateItem", `{"TableName": "Products", "Key": {"PK": {"S": "hats"}, "SK": {"S": "1"}}, "UpdateExpression": "SET Price = :p", "ExpressionAttributeValues": {":p": {"N": "4"}}}`)
	must(t, s, "TransactWriteItems", `{"TransactItems": [{"Put": {"TableName": "Products", "Item": `+strings.Replace(item, `"1"`, `"2"`, 1)+`}}]}`)
	must(t, s, "DeleteItem", `{"TableName": "Products", "Key": {"PK": {"S": "hats"}, "SK": {"S": "1"}}}`)
	const (
		one    = ` {"PK":{"S":"hats"},"SK":{"S":"1"}} new `
		before = `{"Description":{"S":"felt"},"PK":{"S":"hats"},"Price":{"N":"3"},"SK":{"S":"1"}}`
		after  = `{"Description":{"S":"felt"},"PK":{"S":"hats"},"Price":{"N":"4"},"SK":{"S":"1"}}`
		two    = `{"Description":{"S":"felt"},"PK":{"S":"hats"},"Price":{"N":"3"},"SK":{"S":"2"}}`
	)
	expectRecords(t, newStreamReader(arn).read(t, s), "MODIFY"+one+after+" old "+before,
		`INSERT {"PK":{"S":"hats"},"SK":{"S":"2"}} new `+two+" old null", "REMOVE"+one+"null old "+after)
}

// The largest records: two images whose texts have seven times the bytes that an item counts.
// They are written singly and in batches, and each is read alone.
func TestStreams_LargestRecords(t *testing.T) {
	race.OneAfterTheOther(t)
	t.Parallel()
	s := newTestServer(t)
	arn := createStreamed(t, s, "NEW_AND_OLD_IMAGES")
	nulls := "[" + strings.Repeat(`{"NULL":true},`, 199_999) + `{"NULL":true}]`
	item := func(id, n string) string {
		return `{"id": {"S": "` + id + `"}, "n": {"N": "` + n + `"}, "l": {"L": ` + nulls + `}}`
	}
	for _, n := range []string{"1", "2"} {
		must(t, s, "BatchWriteItem", `{"RequestItems": {"streamed": [{"PutRequest": {"Item": `+item("a", n)+`}}, {"PutRequest": {"Item": `+item("b", n)+`}}]}}`)
	}
	must(t, s, "DeleteItem", keyOf("a", ""))
	type image struct {
		List struct{ L string } `json:"l"`
	}
	type record struct {
		EventName string
		Dynamodb  struct {
			SizeBytes          int
			NewImage, OldImage *image
		}
	}
	var records []record
	shard := between(must(t, s, "DescribeStream", `{"StreamArn": "`+arn+`"}`), `"ShardId":"`, `"`)
	next := answerOf[struct{ ShardIterator string }](t, s, "GetShardIterator",
		`{"StreamArn": "`+arn+`", "ShardId": "`+shard+`", "ShardIteratorType": "TRIM_HORIZON"}`).ShardIterator
	for {
		var page struct {
			Records           []record
			NextShardIterator string
		}
		answer := must(t, s, "GetRecords", `{"ShardIterator": "`+next+`"}`)
		// Decoding the lists would take longer than everything else.
		if err := json.Unmarshal([]byte(strings.ReplaceAll(answer, nulls, `"all"`)), &page); err != nil {
			t.Fatal(err)
		}
		if len(page.Records) == 0 {
			break
		}
		records, next = append(records, page.Records...), page.NextShardIterator
	}
	if n := len(records); n != 5 {
		t.Fatalf("%d records", n)
	}
	for i, r := range records {
		size := 0
		for _, image := range []*image{r.Dynamodb.NewImage, r.Dynamodb.OldImage} {
			if image == nil {
				continue
			}
			size += 400_000
			if image.List.L != "all" {
				t.Errorf("record %d has an image with the list %q", i, image.List.L)
			}
		}
		if got := r.Dynamodb.SizeBytes; got < size || got > size+100 {
			t.Errorf("record %d, %s, counts %d bytes, want about %d", i, r.EventName, got, size)
		}
	}
}
