package control_test

import (
	"encoding/json"
	"net/url"
	"slices"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/control"
	"github.com/tabletop-emu/tabletop/internal/btclient"
)

type shownRequest struct {
	ID                                            uint64
	Endpoint, Operation, Table, Status, Condition string
	RequestID, Cause                              string
	Item                                          json.RawMessage
	Items, Attempt, Attempts                      int
	Own, Stopped, Write                           bool
	Calls                                         []shownRequest
	Touched                                       []struct{ Key, Start, End *control.Bytes }
}

// requests returns the last requests, the oldest first.
func (e *env) requests(query string) []shownRequest {
	e.t.Helper()
	var out struct{ Requests []shownRequest }
	e.must("GET", "requests"+query, "", &out)
	slices.Reverse(out.Requests)
	return out.Requests
}

// TestRequests_Keys: a DynamoDB request shows the keys or the key condition that it names, and the
// rows that its calls name.
func TestRequests_Keys(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.query("CreateTable", `{"TableName":"pairs","BillingMode":"PAY_PER_REQUEST","KeySchema":[{"AttributeName":"a","KeyType":"HASH"},{"AttributeName":"b","KeyType":"RANGE"}],
		"AttributeDefinitions":[{"AttributeName":"a","AttributeType":"S"},{"AttributeName":"b","AttributeType":"N"}]}`)
	e.must("DELETE", "requests", "", nil)
	const item = `{"a":{"S":"x"},"b":{"N":"1"}}`
	for _, c := range []struct {
		operation, request string
		item, condition    string
		items, rows        int
		ranges             bool
	}{
		{"PutItem", `{"TableName":"pairs","Item":{"a":{"S":"x"},"b":{"N":"1"},"c":{"S":"more"}}}`, item, "", 1, 1, false},
		{"GetItem", `{"TableName":"arn:aws:dynamodb:us-east-1:000000000000:table/pairs","Key":` + item + `}`, item, "", 1, 1, false},
		{"UpdateItem", `{"TableName":"pairs","Key":` + item + `,"UpdateExpression":"SET c = :c","ExpressionAttributeValues":{":c":{"S":"y"}}}`, item, "", 1, 1, false},
		{"Query", `{"TableName":"pairs","KeyConditionExpression":"#a = :a AND b > :b","ExpressionAttributeNames":{"#a":"a"},"ExpressionAttributeValues":{":a":{"S":"x"},":b":{"N":"0"}}}`, "", `a = "x" AND b > 0`, 0, 1, true},
		{"Scan", `{"TableName":"pairs"}`, "", "", 0, 0, false},
		{"BatchGetItem", `{"RequestItems":{"pairs":{"Keys":[` + item + `,{"a":{"S":"x"},"b":{"N":"2"}}]}}}`, item, "", 2, 2, false},
		{"BatchWriteItem", `{"RequestItems":{"pairs":[{"DeleteRequest":{"Key":` + item + `}},{"PutRequest":{"Item":{"a":{"S":"z"},"b":{"N":"3"}}}}]}}`, item, "", 2, 2, false},
		{"TransactGetItems", `{"TransactItems":[{"Get":{"TableName":"pairs","Key":` + item + `}}]}`, item, "", 1, 1, false},
	} {
		e.query(c.operation, c.request)
		last := e.requests("?endpoint=dynamodb&limit=1")[0]
		if last.Operation != c.operation || last.Table != "pairs" && last.Table != "arn:aws:dynamodb:us-east-1:000000000000:table/pairs" {
			t.Errorf("%s: listed is %s of %q", c.operation, last.Operation, last.Table)
		}
		if string(last.Item) != c.item || last.Items != c.items || last.Condition != c.condition {
			t.Errorf("%s: the key is %s of %d, the condition %q", c.operation, last.Item, last.Items, last.Condition)
		}
		var whole shownRequest
		e.must("GET", "requests/"+jsonOf(last.ID), "", &whole)
		rows := whole.Touched
		if c.ranges != slices.ContainsFunc(rows, func(r struct{ Key, Start, End *control.Bytes }) bool { return r.Start != nil && r.End != nil }) || c.rows > 0 && len(rows) < c.rows {
			t.Errorf("%s: the rows are %s, want %d", c.operation, jsonOf(rows), c.rows)
		}
	}
}

func jsonOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// TestRequests_Own: a request of the console itself is marked with its calls, listed only on
// demand, and no fault affects it.
func TestRequests_Own(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.query("CreateTable", createTable)
	e.must("DELETE", "requests", "", nil)
	e.must("POST", "faults", `{"endpoint":"dynamodb","method":"*","effect":"fail","code":"Throttling"}`, nil)
	e.must("POST", "faults", `{"endpoint":"bigtable","method":"*","effect":"fail","code":"UNAVAILABLE","behindDynamoDB":true}`, nil)
	var answer struct{ Calls []shownRequest }
	e.must("POST", "query", `{"operation":"PutItem","request":{"TableName":"orders","Item":{"k":{"S":"a"}}},"own":true}`, &answer)
	if len(answer.Calls) == 0 {
		t.Error("the answer has no calls")
	}
	if hits := e.hits(); hits[0] != 0 || hits[1] != 0 {
		t.Errorf("faults count %v hits", hits)
	}
	if got := e.requests(""); len(got) != 0 {
		t.Errorf("the list has %+v", got)
	}
	got := e.requests("?own=true")
	if len(got) != 1+len(answer.Calls) || slices.ContainsFunc(got, func(r shownRequest) bool { return !r.Own }) {
		t.Errorf("with them, the list has %+v", got)
	}
}

// TestRequests_Attempts: a client's attempt and its maximum are shown.
func TestRequests_Attempts(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.endpoint("ListTables", []byte("{}"), "amz-sdk-request", "attempt=2; max=3")
	if got := e.requests("?endpoint=dynamodb"); len(got) != 1 || got[0].Attempt != 2 || got[0].Attempts != 3 {
		t.Errorf("got %+v", got)
	}
}

// TestRequests_Stopped: a read that its caller stops after a row has not failed.
func TestRequests_Stopped(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.createRows("t", "a", "b", "c")
	// Large rows do not fit in one message, so that the server is still sending.
	large := []*btpb.Mutation{btclient.SetCell("f", []byte("q"), 1000, make([]byte, 4<<20))}
	client := btclient.New(e.lab.Bigtable().Conn(), "p", "i", btclient.Options{})
	for _, key := range []string{"a", "b", "c"} {
		if err := client.MutateRow(t.Context(), "t", []byte(key), large); err != nil {
			t.Fatal(err)
		}
	}
	e.must("DELETE", "requests", "", nil)
	for _, err := range client.Read(t.Context(), btclient.Read{Table: "t", Spans: []btclient.Span{{}}}) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	watched := e.stream("?operation=ReadRows")
	if !watched.until("ReadRows") { // the server ends the call after its client
		t.Fatal("the read is not recorded")
	}
	got := e.requests("?operation=ReadRows")
	if len(got) != 1 || got[0].Status != "Canceled" || !got[0].Stopped {
		t.Errorf("got %+v", got)
	}
	if failed := e.requests("?failed=true"); len(failed) != 0 {
		t.Errorf("failed are %+v", failed)
	}
}

// TestHistory: the history of a row has the requests of both endpoints that name it, with their
// calls, and the records of both streams; it has no requests about the whole table.
func TestHistory(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.query("CreateTable", createTable[:len(createTable)-1]+withStream)
	table := e.rowsOf("orders")
	e.changeStream(table)
	e.query("PutItem", `{"TableName":"orders","Item":{"k":{"S":"a"},"n":{"N":"1"}}}`)
	e.query("PutItem", `{"TableName":"orders","Item":{"k":{"S":"b"}}}`)
	e.query("GetItem", `{"TableName":"orders","Key":{"k":{"S":"a"}}}`)
	e.query("Scan", `{"TableName":"orders"}`)
	e.query("BatchWriteItem", `{"RequestItems":{"orders":[{"PutRequest":{"Item":{"k":{"S":"b"}}}},{"DeleteRequest":{"Key":{"k":{"S":"a"}}}}]}}`)
	e.must("POST", "query", `{"operation":"GetItem","request":{"TableName":"orders","Key":{"k":{"S":"a"}}},"own":true}`, nil)
	e.must("POST", "faults", `{"endpoint":"dynamodb","method":"GetItem","effect":"fail","code":"Throttling"}`, nil)
	e.tries("GetItem", `{"TableName":"orders","Key":{"k":{"S":"a"}}}`)

	type history struct {
		Key      control.Bytes
		Requests []shownRequest
		Changes  []changeRecord
		Records  []streamRecord
		Streamed bool
		Recorded []string
		More     bool
	}
	var got, own, short history
	e.must("GET", "history/orders?item="+url.QueryEscape(`{"k":{"S":"a"}}`), "", &got)
	var operations []string
	for _, r := range got.Requests {
		operations = append(operations, r.Operation)
		if len(r.Calls) == 0 != (r.Status != "OK") {
			t.Errorf("%s, %s, has the calls %+v", r.Operation, r.Status, r.Calls)
		}
	}
	if want := []string{"GetItem", "BatchWriteItem", "GetItem", "PutItem"}; !slices.Equal(operations, want) {
		t.Errorf("the requests are %q, want %q", operations, want)
	}
	if !got.Streamed || !slices.Equal(got.Recorded, []string{"orders"}) || got.More {
		t.Errorf("the streams are %v and %q, more is %v", got.Streamed, got.Recorded, got.More)
	}
	var events []string
	for _, r := range got.Records {
		events = append(events, r.EventName+" "+r.DynamoDB.Keys["k"]["S"])
	}
	if want := []string{"REMOVE a", "INSERT a"}; !slices.Equal(events, want) {
		t.Errorf("the records are %q, want %q", events, want)
	}
	if len(got.Changes) != 2 || got.Changes[0].Time.Before(got.Changes[1].Time) {
		t.Errorf("the changes are %v", got.Changes)
	}
	for _, c := range got.Changes {
		if c.Key.Text != *got.Key.Text {
			t.Errorf("a change is of %q", c.Key.Text)
		}
	}

	path := "history/i/" + table + "?key64=" + url.QueryEscape(got.Key.Base64)
	e.must("GET", path+"&own=true", "", &own)
	if len(own.Requests) != len(got.Requests)+1 || !own.Requests[1].Own || len(own.Changes) != 2 {
		t.Errorf("by its key, and with the console's own, it has %+v", own.Requests)
	}
	e.must("GET", path+"&limit=1", "", &short)
	if len(short.Requests) != 1 || len(short.Changes) != 1 || len(short.Records) != 1 || short.Requests[0].Operation != "BatchWriteItem" || !short.More {
		t.Errorf("the newest of each, writes before reads, are %+v", short)
	}
	for query, want := range map[string][]string{
		"limit=3":     {"GetItem", "BatchWriteItem", "PutItem"}, // the newest read and both writes
		"writes=true": {"BatchWriteItem", "PutItem"},
	} {
		var few history
		e.must("GET", path+"&"+query, "", &few)
		var operations []string
		for _, r := range few.Requests {
			operations = append(operations, r.Operation)
			if r.Write != (r.Operation != "GetItem") {
				t.Errorf("%s: write is %v", r.Operation, r.Write)
			}
		}
		if !slices.Equal(operations, want) || few.More != (query == "limit=3") {
			t.Errorf("with %s the requests are %q, more is %v", query, operations, few.More)
		}
	}
	var refused failed
	for _, path := range []string{"history/orders?item=x", "history/orders?item={}", "history/i/" + table, "history/i/none?key=a", "history/none?item=" + url.QueryEscape(`{"k":{"S":"a"}}`)} {
		if code := e.ask("GET", path, "", &refused); code < 400 || code >= 500 {
			t.Errorf("%s: %d %+v", path, code, refused)
		}
	}
}
