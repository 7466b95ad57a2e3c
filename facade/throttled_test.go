package facade

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/capacity"
	"github.com/tabletop-emu/tabletop/facade/internal/throttle"
	"github.com/tabletop-emu/tabletop/internal/clock"
)

const throttledTable = `{"TableName": "orders", "ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5},
	"AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}], "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}]}`

// throttledServer returns a server with the table orders, which has 5 units per second.
func throttledServer(tb testing.TB, change ...func(*Options)) (*Server, *clock.Clock) {
	tb.Helper()
	now := clock.NewFrozen(testTime)
	s := newTestServer(tb, append(change, func(o *Options) { o.Now, o.Throttle = now.Now, ThrottleTables })...)
	must(tb, s, "CreateTable", throttledTable)
	return s, now
}

// After 301 seconds without requests, a table of one unit per second admits requests for 300
// units, of any kind.
func TestThrottle_ExactCounts(t *testing.T) {
	t.Parallel()
	for operation, c := range map[string]struct {
		body string
		want int
	}{
		"PutItem":          {`{"TableName": "orders", "Item": {"id": {"S": "1"}}}`, 300},
		"DeleteItem":       {`{"TableName": "orders", "Key": {"id": {"S": "1"}}}`, 300},
		"UpdateItem":       {`{"TableName": "orders", "Key": {"id": {"S": "1"}}}`, 300},
		"GetItem":          {`{"TableName": "orders", "Key": {"id": {"S": "1"}}, "ConsistentRead": true}`, 300},
		"Query":            {`{"TableName": "orders", "KeyConditionExpression": "id = :i", "ExpressionAttributeValues": {":i": {"S": "1"}}}`, 600},
		"Scan":             {`{"TableName": "orders", "ConsistentRead": true}`, 300},
		"TransactGetItems": {`{"TransactItems": [{"Get": {"TableName": "orders", "Key": {"id": {"S": "1"}}}}]}`, 150},
		"ExecuteStatement": {`{"Statement": "SELECT * FROM orders WHERE id = '1'"}`, 600},
		"BatchGetItem":     {`{"RequestItems": {"orders": {"Keys": [{"id": {"S": "1"}}], "ConsistentRead": true}}}`, 300},
		"BatchWriteItem":   {`{"RequestItems": {"orders": [{"DeleteRequest": {"Key": {"id": {"S": "1"}}}}]}}`, 300},
	} {
		t.Run(operation, func(t *testing.T) {
			t.Parallel()
			now := clock.NewFrozen(testTime)
			s := newTestServer(t, func(o *Options) { o.Now, o.Throttle = now.Now, ThrottleTables })
			must(t, s, "CreateTable", strings.ReplaceAll(throttledTable, "Units\": 5", "Units\": 1"))
			now.Advance(301 * time.Second)
			n := 0
			var err error
			for err == nil && n <= c.want {
				if _, err = s.Call(t.Context(), operation, []byte(c.body)); err == nil {
					n++
				}
			}
			e, ok := awserr.As(err)
			if n != c.want || !ok || e.HTTPStatus != http.StatusBadRequest {
				t.Errorf("%d calls are admitted, then %v; want %d, then a refusal", n, err, c.want)
			}
		})
	}
}

// Concurrent writers do not consume more than the available units.
func TestThrottle_AtOnce(t *testing.T) {
	t.Parallel()
	s, now := throttledServer(t)
	now.Advance(19 * time.Second) // 100 units
	var passed atomic.Int64
	var group sync.WaitGroup
	for w := range 8 {
		group.Go(func() {
			for i := range 25 {
				body := fmt.Sprintf(`{"TableName": "orders", "Item": {"id": {"S": "%d"}}}`, (w+i)%3)
				if _, err := s.Call(t.Context(), "PutItem", []byte(body)); err == nil {
					passed.Add(1)
				}
			}
		})
	}
	group.Wait()
	if passed.Load() != 100 {
		t.Errorf("%d writes passed, want 100", passed.Load())
	}
}

// A transaction consumes two units for each of its small items, and no more.
func TestThrottle_Transactions(t *testing.T) {
	t.Parallel()
	s, now := throttledServer(t)
	now.Advance(19 * time.Second)
	body := []byte(`{"TransactItems": [{"Put": {"TableName": "orders", "Item": {"id": {"S": "1"}}}}, {"ConditionCheck": {"TableName": "orders", "Key": {"id": {"S": "2"}}, "ConditionExpression": "attribute_not_exists(id)"}}]}`)
	n := 0
	for ; n < 100; n++ {
		if _, err := s.Call(t.Context(), "TransactWriteItems", body); err != nil {
			break
		}
	}
	if n != 25 {
		t.Errorf("%d transactions of four units passed, want 25 of 100 units", n)
	}
}

// A large item costs its size, whatever the operation reads.
func TestThrottle_Sizes(t *testing.T) {
	t.Parallel()
	s, now := throttledServer(t)
	large := strings.Repeat("a", 39_000) // 39 write units, 10 read units
	must(t, s, "PutItem", `{"TableName": "orders", "Item": {"id": {"S": "1"}, "text": {"S": "`+large+`"}}}`)
	for _, c := range []struct {
		operation, body string
		read, write     float64
	}{
		{"GetItem", `{"TableName": "orders", "Key": {"id": {"S": "1"}}}`, 5, 0},
		{"Scan", `{"TableName": "orders", "Select": "COUNT"}`, 5, 0},
		{"BatchGetItem", `{"RequestItems": {"orders": {"Keys": [{"id": {"S": "1"}}, {"id": {"S": "2"}}]}}}`, 5.5, 0},
		{"TransactGetItems", `{"TransactItems": [{"Get": {"TableName": "orders", "Key": {"id": {"S": "1"}}}}]}`, 20, 0},
		{"ExecuteStatement", `{"Statement": "SELECT id FROM orders"}`, 5, 0},
		{"UpdateItem", `{"TableName": "orders", "Key": {"id": {"S": "1"}}, "UpdateExpression": "SET n = :n", "ExpressionAttributeValues": {":n": {"N": "1"}}}`, 0, 39},
		{"BatchWriteItem", `{"RequestItems": {"orders": [{"PutRequest": {"Item": {"id": {"S": "1"}}}}]}}`, 0, 39},
	} {
		now.Advance(time.Hour)
		must(t, s, c.operation, c.body)
		table, err := s.store.Table(t.Context(), "orders")
		if err != nil {
			t.Fatal(err)
		}
		for use, want := range map[throttle.Use]float64{throttle.Read: c.read, throttle.Write: c.write} {
			left := 0.0
			for s.throttle.Take(table, use, nil, capacity.Tally{Table: 0.5}) == nil {
				left += 0.5
			}
			if left != 1500-want {
				t.Errorf("%s takes %v units of %s, want %v", c.operation, 1500-left, use, want)
			}
		}
	}
}

// The error of a throttled request has the reason in the types of the AWS SDK, and the SDK retries
// until units are available.
func TestThrottle_SDK(t *testing.T) {
	t.Parallel()
	s, now := throttledServer(t)
	ctx := t.Context()
	put := &dynamodb.PutItemInput{TableName: aws.String("orders"), Item: map[string]types.AttributeValue{"id": str("1")}}
	client := sdkClient("http://tabletop.invalid", s.RoundTripper())
	once := func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }
	var err error
	for range 6 {
		_, err = client.PutItem(ctx, put, once)
	}
	exceeded, ok := errors.AsType[*types.ProvisionedThroughputExceededException](err)
	if !ok || len(exceeded.ThrottlingReasons) != 1 || *exceeded.ThrottlingReasons[0].Reason != "TableWriteProvisionedThroughputExceeded" ||
		*exceeded.ThrottlingReasons[0].Resource != "arn:aws:dynamodb:us-east-1:000000000000:table/orders" {
		t.Errorf("%v", err)
	}
	waited := 0
	if _, err := client.PutItem(ctx, put, func(o *dynamodb.Options) {
		o.Retryer = retry.NewStandard(func(o *retry.StandardOptions) {
			o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) {
				if waited++; waited == 2 {
					now.Advance(time.Second)
				}
				return 0, nil
			})
		})
	}); err != nil || waited != 2 {
		t.Errorf("after %d refusals: %v", waited, err)
	}
	_, err = client.UpdateTable(ctx, &dynamodb.UpdateTableInput{
		TableName: aws.String("orders"), BillingMode: types.BillingModePayPerRequest,
		OnDemandThroughput: &types.OnDemandThroughput{MaxWriteRequestUnits: aws.Int64(1)},
	})
	for i := 0; err == nil && i < 10; i++ {
		_, err = client.PutItem(ctx, put, once)
	}
	throttling, ok := errors.AsType[*types.ThrottlingException](err)
	if !ok || len(throttling.ThrottlingReasons) != 1 || *throttling.ThrottlingReasons[0].Reason != "TableWriteMaxOnDemandThroughputExceeded" {
		t.Errorf("%v", err)
	}
}

// Before a retry, the SDK waits as long as the throttled answer says, which is longer than it
// would otherwise wait.
func TestThrottle_SDKWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer(t, func(o *Options) { o.Now, o.Throttle = time.Now, ThrottleTables })
		must(t, s, "CreateTable", throttledTable)
		client := sdkClient("http://tabletop.invalid", s.RoundTripper())
		put := func(text string) {
			t.Helper()
			if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("orders"), Item: map[string]types.AttributeValue{"id": str("1"), "text": str(text)}}); err != nil {
				t.Error(err)
			}
		}
		put(strings.Repeat("a", 11<<10-10)) // within the 5 available units, and 6 beyond them
		start := time.Now()
		put("")
		if waited := time.Since(start); waited != 1201*time.Millisecond {
			t.Errorf("the SDK waited %v", waited)
		}
	})
}

// If the tables of callers are kept apart, each caller has the throughput of its own tables, and
// ARNs of its region.
func TestThrottle_Namespaces(t *testing.T) {
	t.Parallel()
	now := clock.NewFrozen(testTime)
	s := newTestServer(t, func(o *Options) { o.Now, o.Throttle, o.Namespaced = now.Now, ThrottleTables, true })
	call := func(region, operation, body string) string {
		t.Helper()
		return post(s, operation, body, func(r *http.Request) {
			r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=key/20261120/"+region+"/dynamodb/aws4_request, SignedHeaders=host;x-amz-date, Signature=0")
			r.Header.Set("X-Amz-Date", "20261120T120000Z")
		}).Body.String()
	}
	for _, region := range []string{"eu-west-1", "us-west-2"} {
		call(region, "CreateTable", throttledTable)
		const put = `{"TableName": "orders", "Item": {"id": {"S": "1"}}}`
		for i := range 5 {
			if got := call(region, "PutItem", put); got != "{}" {
				t.Errorf("write %d in %s: %s", i, region, got)
			}
		}
		if got := call(region, "PutItem", put); !strings.Contains(got, `"ThrottlingReasons":[{"reason":"TableWriteProvisionedThroughputExceeded","resource":"arn:aws:dynamodb:`+region+`:000000000000:table/orders"}]`) {
			t.Errorf("in %s: %s", region, got)
		}
	}
}

// Of a batch on a throttled table and on another one, the server processes the writes to the other.
func TestThrottle_BatchOfTwoTables(t *testing.T) {
	t.Parallel()
	s, _ := throttledServer(t)
	must(t, s, "CreateTable", strings.Replace(throttledTable, "orders", "others", 1))
	for range 5 {
		must(t, s, "PutItem", `{"TableName": "orders", "Item": {"id": {"S": "1"}}}`)
	}
	got := must(t, s, "BatchWriteItem", `{"RequestItems": {
		"orders": [{"PutRequest": {"Item": {"id": {"S": "2"}}}}],
		"others": [{"PutRequest": {"Item": {"id": {"S": "2"}}}}]}}`)
	if want := `{"UnprocessedItems":{"orders":[{"PutRequest":{"Item":{"id":{"S":"2"}}}}]}}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// A throttled answer says how many milliseconds to wait. Other answers do not.
func TestThrottle_RetryAfter(t *testing.T) {
	t.Parallel()
	s, now := throttledServer(t)
	put := func(text string) (int, string) {
		w := post(s, "PutItem", `{"TableName": "orders", "Item": {"id": {"S": "1"}, "text": {"S": "`+text+`"}}}`)
		return w.Code, w.Header().Get("X-Amz-Retry-After")
	}
	if code, after := put(strings.Repeat("a", 11<<10-10)); code != http.StatusOK || after != "" { // within the 5 available units
		t.Errorf("the write answers %d, %q", code, after)
	}
	if code, after := put(""); code != http.StatusBadRequest || after != "1201" {
		t.Errorf("the throttled write answers %d, %q", code, after)
	}
	now.Advance(1201 * time.Millisecond)
	if code, after := put(""); code != http.StatusOK || after != "" {
		t.Errorf("the write after it answers %d, %q", code, after)
	}
	w := post(s, "DescribeTimeToLive", `{"TableName": "orders"}`)
	for w.Code == http.StatusOK {
		w = post(s, "DescribeTimeToLive", `{"TableName": "orders"}`)
	}
	if after := w.Header().Get("X-Amz-Retry-After"); after != "250" {
		t.Errorf("the fifth call in a second answers %d, %q", w.Code, after)
	}
}
