package control_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/control"
	"github.com/tabletop-emu/tabletop/control/lab"
	"github.com/tabletop-emu/tabletop/control/lab/dynamodb"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/test/labserver"
	"github.com/tabletop-emu/tabletop/internal/test/memory"
)

func TestMain(m *testing.M) {
	memory.CollectSeldom()
	goleak.VerifyTestMain(m)
}

const token = labserver.Token

// env is a lab with its control API, which a test calls over HTTP.
type env struct {
	t   *testing.T
	lab *lab.Lab
	ddb *dynamodb.Endpoint
	api *control.Server
	url string
}

func newEnv(t *testing.T) *env {
	t.Helper()
	return newEnvOf(t, labserver.Options{})
}

// newEnvOf starts a server with the shipped fixtures, unless o has others.
func newEnvOf(t *testing.T, o labserver.Options) *env {
	t.Helper()
	if o.Control.Fixtures == nil {
		o.Control.Fixtures = os.DirFS("../fixtures/subjects")
	}
	o.Control.AllowHosts = []string{"desk.example"}
	s := labserver.Start(t, o)
	return &env{t, s.Lab, s.DynamoDB, s.API, s.URL}
}

// send sends a request to the API and returns the status and the answer.
func (e *env) send(method, path, body string, change ...func(*http.Request)) (status int, text []byte) {
	e.t.Helper()
	r, err := http.NewRequestWithContext(e.t.Context(), method, e.url+control.Prefix+path, strings.NewReader(body))
	if err != nil {
		e.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	for _, c := range change {
		c(r)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		e.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if text, err = io.ReadAll(resp.Body); err != nil {
		e.t.Fatal(err)
	}
	return resp.StatusCode, text
}

// ask sends a request to the API and decodes the answer.
func (e *env) ask(method, path, body string, into any, change ...func(*http.Request)) int {
	e.t.Helper()
	status, text := e.send(method, path, body, change...)
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			e.t.Fatalf("%s %s: %s: %v", method, path, text, err)
		}
	}
	return status
}

// must acts like ask for a request that must succeed.
func (e *env) must(method, path, body string, into any) {
	e.t.Helper()
	code, text := e.send(method, path, body)
	if code != http.StatusOK || into == nil && !json.Valid(text) {
		e.t.Fatalf("%s %s: %d %s", method, path, code, text)
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			e.t.Fatalf("%s %s: %s: %v", method, path, text, err)
		}
	}
}

type failed struct {
	Error struct{ Code, Text, Remedy string }
}

const createTable = `{"TableName":"orders","BillingMode":"PAY_PER_REQUEST","KeySchema":[{"AttributeName":"k","KeyType":"HASH"}],
	"AttributeDefinitions":[{"AttributeName":"k","AttributeType":"S"}]}`

func (e *env) query(operation, request string) {
	e.t.Helper()
	e.must("POST", "query", fmt.Sprintf(`{"operation":%q,"request":%s}`, operation, request), nil)
}

func (e *env) createRows(table string, keys ...string) {
	e.t.Helper()
	conn := e.lab.Bigtable().Conn()
	_, err := btapb.NewBigtableTableAdminClient(conn).CreateTable(e.t.Context(), &btapb.CreateTableRequest{
		Parent: "projects/p/instances/i", TableId: table, Table: &btapb.Table{ColumnFamilies: map[string]*btapb.ColumnFamily{
			"f": {GcRule: &btapb.GcRule{Rule: &btapb.GcRule_MaxNumVersions{MaxNumVersions: 1}}},
		}},
	})
	if err != nil {
		e.t.Fatal(err)
	}
	for _, key := range keys {
		e.must("POST", "tables/i/"+table+"/rows", fmt.Sprintf(`{"rows":[{"key":{"base64":%q},"cells":[
			{"family":"f","qualifier":{"text":"q"},"timestamp":1000,"value":{"text":"old"}},
			{"family":"f","qualifier":{"text":"q"},"timestamp":2000,"value":{"base64":"/w=="}}]}]}`, base64.StdEncoding.EncodeToString([]byte(key))), nil)
	}
}

// TestAcceptance does with HTTP alone, as a program in any language can: items, a snapshot,
// deleting half of them, a restore, expiry, and a fault that a client survives.
func TestAcceptance(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.query("CreateTable", createTable)
	e.query("UpdateTimeToLive", `{"TableName":"orders","TimeToLiveSpecification":{"AttributeName":"ttl","Enabled":true}}`)
	const items = 300
	var body strings.Builder
	for i := range items {
		fmt.Fprintf(&body, `%s{"k":{"S":"k%04d"},"ttl":{"N":"%d"}}`, strings.Repeat(",", min(i, 1)), i, 1_700_000_000+24*3600)
	}
	e.must("POST", "items/orders", `{"items":[`+body.String()+`]}`, nil)
	count := func() (n int) {
		t.Helper()
		for cursor := ""; ; {
			var page struct {
				Items  []json.RawMessage
				Cursor string
			}
			e.must("GET", "items/orders?limit=70"+cursor, "", &page)
			if n += len(page.Items); page.Cursor == "" {
				return n
			}
			cursor = "&cursor=" + page.Cursor
		}
	}
	if n := count(); n != items {
		t.Fatalf("%d items", n)
	}
	var taken struct{ Bytes int64 }
	e.must("POST", "snapshots", `{"name":"all"}`, &taken)
	if taken.Bytes <= 0 {
		t.Errorf("a snapshot of %d bytes", taken.Bytes)
	}
	for i := 0; i < items; i += 2 {
		e.query("DeleteItem", fmt.Sprintf(`{"TableName":"orders","Key":{"k":{"S":"k%04d"}}}`, i))
	}
	if n := count(); n != items/2 {
		t.Fatalf("%d items are left", n)
	}
	e.must("POST", "snapshots/all/restore", "", nil)
	if n := count(); n != items {
		t.Fatalf("%d items are back", n)
	}

	// A fault that a client survives.
	var fault struct {
		ID   int
		Hits int
	}
	e.must("POST", "faults", `{"endpoint":"bigtable","method":"MutateRow","effect":"fail","code":"UNAVAILABLE","times":2}`, &fault)
	e.createRows("t")
	data := btpb.NewBigtableClient(e.lab.Bigtable().Conn())
	write := &btpb.MutateRowRequest{TableName: "projects/p/instances/i/tables/t", RowKey: []byte("k"), Mutations: []*btpb.Mutation{
		{Mutation: &btpb.Mutation_SetCell_{SetCell: &btpb.Mutation_SetCell{FamilyName: "f", Value: []byte("v")}}},
	}}
	// In this process only the DynamoDB endpoint calls; cmd/tabletop tests clients over a
	// port.
	if _, err := data.MutateRow(t.Context(), write); err != nil {
		t.Errorf("behind the endpoint: %v", err)
	}
	e.must("DELETE", "faults", "", nil)
	e.must("POST", "faults", `{"endpoint":"bigtable","method":"MutateRow","effect":"fail","code":"UNAVAILABLE","times":2,"behindDynamoDB":true}`, nil)
	for i, want := range []codes.Code{codes.Unavailable, codes.Unavailable, codes.OK} {
		if _, err := data.MutateRow(t.Context(), write); status.Code(err) != want {
			t.Errorf("attempt %d: %v, want %v", i, err, want)
		}
	}
	var armed struct{ Faults []struct{ Hits, Times int } }
	e.must("GET", "faults", "", &armed)
	if len(armed.Faults) != 1 || armed.Faults[0].Hits != 2 || armed.Faults[0].Times != 2 {
		t.Errorf("got %+v", armed)
	}

	var dump struct{ Text string }
	e.must("GET", "dump?table=orders", "", &dump)
	if rows := strings.Count(dump.Text, "k0"); rows == 0 {
		t.Errorf("the dump of the DynamoDB table is %q", dump.Text)
	}
	e.must("GET", "dump", "", &dump)
	before := strings.Count(dump.Text, "k0")
	var now struct {
		Now     time.Time
		Expired int
	}
	if e.must("POST", "clock", `{"advance":"25h"}`, &now); now.Expired != items {
		t.Errorf("the clock deleted %d items, want %d", now.Expired, items)
	}
	if want := time.Unix(1_700_000_000, 0).Add(25 * time.Hour); !now.Now.Equal(want) {
		t.Errorf("it is %v, want %v", now.Now, want)
	}
	if n := count(); n != 0 {
		t.Errorf("%d items did not expire", n)
	}
	e.must("GET", "dump", "", &dump)
	if after := strings.Count(dump.Text, "k0"); before == 0 || after != 0 {
		t.Errorf("the dump has %d rows of items, before %d", after, before)
	}
	e.must("POST", "reset", "", nil)
	var tables struct {
		Bigtable []struct{ Own bool }
		DynamoDB []string
	}
	e.must("GET", "tables", "", &tables)
	if slices.ContainsFunc(tables.Bigtable, func(t struct{ Own bool }) bool { return !t.Own }) || len(tables.DynamoDB) != 0 {
		t.Errorf("after a reset there are %+v", tables)
	}
}

func TestRows(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.createRows("t", "a", "b1", "b2", "c", "<b>\x00")
	type key struct{ Text, Base64 string }
	type page struct {
		Rows []struct {
			Key   key
			Cells []struct {
				Family    string
				Timestamp int64
				Value     struct {
					Base64 string
					Text   *string
				}
			}
		}
		Cursor string
	}
	for query, want := range map[string]string{
		"": "<b>\x00 a b1 b2 c", "?prefix=b": "b1 b2", "?start=b1&end=c": "b1 b2", "?reverse=true": "c b2 b1 a <b>\x00",
		"?prefix64=Yg==&start=b2": "b2", "?start=z": "", "?start=c&end=a": "",
	} {
		var got page
		e.must("GET", "tables/i/t/rows"+query, "", &got)
		var keys []string
		for _, r := range got.Rows {
			keys = append(keys, r.Key.Text)
		}
		if strings.Join(keys, " ") != want {
			t.Errorf("%s: got %q, want %q", query, keys, want)
		}
	}
	for _, reverse := range []string{"", "&reverse=true"} {
		var keys []string
		for cursor := ""; ; {
			var got page
			e.must("GET", "tables/i/t/rows?limit=2"+reverse+cursor, "", &got)
			for _, r := range got.Rows {
				keys = append(keys, r.Key.Text)
			}
			if got.Cursor == "" {
				break
			}
			cursor = "&cursor=" + got.Cursor
		}
		if len(keys) != 5 || len(slices.Compact(slices.Sorted(slices.Values(keys)))) != 5 {
			t.Errorf("pages of %q", keys)
		}
	}
	var one struct {
		Cells []struct {
			Timestamp int64
			Value     struct {
				Base64 string
				Text   *string
			}
		}
	}
	e.must("GET", "tables/i/t/row?key64=PGI%2BAA==", "", &one)
	if len(one.Cells) != 2 || one.Cells[0].Timestamp != 2000 || one.Cells[0].Value.Text != nil || one.Cells[0].Value.Base64 != "/w==" || *one.Cells[1].Value.Text != "old" {
		t.Errorf("got %+v", one)
	}
	var removed struct{ Cells int }
	if e.must("POST", "gc", "", &removed); removed.Cells != 5 {
		t.Errorf("%d cells were collected, want 5", removed.Cells)
	}
	e.must("POST", "tables/i/t/rows", `{"rows":[{"key":{"text":"a"},"delete":true}]}`, nil)
	var missing failed
	if code := e.ask("GET", "tables/i/t/row?key=a", "", &missing); code != http.StatusNotFound {
		t.Errorf("%d %+v", code, missing)
	}
	var keys struct {
		Rows []struct {
			Cells []json.RawMessage
			Count int
		}
	}
	e.must("GET", "tables/i/t/rows?keys=true", "", &keys)
	if len(keys.Rows) == 0 {
		t.Error("there are no keys")
	}
	for _, r := range keys.Rows {
		if r.Count == 0 || len(r.Cells) != 0 {
			t.Errorf("a row of keys alone has %d cells and counts %d", len(r.Cells), r.Count)
		}
	}
	// The sums of the map are the clients' requests: the six here, without the API's own
	// above.
	client := btclient.New(e.lab.Bigtable().Conn(), "p", "i", btclient.Options{})
	for i := range 6 {
		if err := client.MutateRow(t.Context(), "t", fmt.Appendf(nil, "k%d", i), []*btpb.Mutation{btclient.SetCell("f", []byte("q"), 1000, []byte("v"))}); err != nil {
			t.Fatal(err)
		}
	}
	var heat struct {
		Keys []struct{ Writes int }
	}
	e.must("GET", "heat/i/t", "", &heat)
	writes := 0
	for _, k := range heat.Keys {
		writes += k.Writes
	}
	if writes != 6 {
		t.Errorf("the heat map has %d writes, want 6", writes)
	}
}

// TestRefusals: for any faulty request, the answer has the fault and a remedy.
func TestRefusals(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.query("CreateTable", createTable)
	e.createRows("visits")
	set := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for _, c := range []struct {
		name, method, path, body string
		change                   func(*http.Request)
		status                   int
		code, text, remedy       string
	}{
		{"no token", "GET", "info", "", set("Authorization", ""), 401, "token", "no token", "--token-file"},
		{"another token", "GET", "info", "", set("Authorization", "Bearer secret2"), 401, "token", "a wrong one", ""},
		{"another host", "GET", "info", "", func(r *http.Request) { r.Host = "evil.example" }, 403, "host", "evil.example", ""},
		{"a page of another origin", "POST", "reset", "", set("Origin", "http://evil.example"), 403, "cross_origin", "origin", ""},
		{"another site reads", "GET", "info", "", set("Sec-Fetch-Site", "cross-site"), 403, "cross_origin", "origin", ""},
		{"another site reads, by a browser that does not say so", "GET", "info", "", set("Origin", "http://evil.example"), 403, "cross_origin", "origin", ""},
		{"a page of no origin reads", "GET", "events", "", set("Origin", "null"), 403, "cross_origin", "origin", ""},
		{"another port of this machine reads", "GET", "info", "", set("Origin", "http://127.0.0.1:1"), 403, "cross_origin", "origin", ""},
		{"no such path", "GET", "nonsense", "", nil, 404, "not_found", "/api/v1/nonsense", ""},
		{"no such method", "DELETE", "clock", "", nil, 405, "method", "DELETE /api/v1/clock", "GET, HEAD, POST"},
		{"an effect that is read", "GET", "reset", "", nil, 405, "method", "GET /api/v1/reset", "POST"},
		{"a method of nothing", "PUT", "snapshots/one", "", nil, 405, "method", "PUT /api/v1/snapshots/one", "DELETE"},
		{"no JSON", "POST", "clock", "{", nil, 400, "bad_request", "ends too early", ""},
		{"an unknown member", "POST", "clock", `{"backwards":true}`, nil, 400, "bad_request", "backwards", "docs/control.md"},
		{"a member of no one", "POST", "reset", `{"all":true}`, nil, 400, "bad_request", `"all"`, ""},
		{"a member within", "POST", "items/orders", `{"items":[{"k":{"S":"x"}}],"table":"orders"}`, nil, 400, "bad_request", `"table"`, ""},
		{"a member of a cell", "POST", "tables/p/t/rows", `{"rows":[{"key":{"hex":"00"}}]}`, nil, 404, "not_found", "p/tables/t", ""},
		{"two values", "POST", "clock", `{"freeze":true}{"run":true}`, nil, 400, "bad_request", "more than one value", ""},
		{"no JSON at all", "POST", "clock", `freeze`, nil, 400, "bad_request", "byte 2", ""},
		{"a value of another type", "POST", "clock", `{"advance":7}`, nil, 400, "bad_request", `"advance" is a number, want a string`, ""},
		{"a value of another type", "POST", "clock", `{"freeze":"yes"}`, nil, 400, "bad_request", `"freeze" is a string, want true or false`, ""},
		{"a value of another type", "POST", "faults", `{"times":1.5}`, nil, 400, "bad_request", `"times" is a number, want a whole number`, ""},
		{"a value of another type", "POST", "faults", `{"probability":[]}`, nil, 400, "bad_request", `"probability" is an array, want a number`, ""},
		{"a body of another type", "POST", "snapshots", `["x"]`, nil, 400, "bad_request", "the body is an array, want an object", ""},
		{"no time", "POST", "clock", `{"set":"tomorrow"}`, nil, 400, "bad_request", `set is "tomorrow", want a time`, ""},
		{"an unknown parameter", "GET", "items/orders?limits=3", "", nil, 400, "bad_request", `"limits", want index, limit, cursor`, ""},
		{"an unknown parameter", "POST", "reset?force=true", "", nil, 400, "bad_request", `"force"`, ""},
		{"a parameter twice", "GET", "requests?endpoint=dynamodb&endpoint=bigtable", "", nil, 400, "bad_request", `"endpoint" occurs 2 times`, ""},
		{"a query that is none", "GET", "requests?endpoint=%zz", "", nil, 400, "bad_request", "%25", ""},
		{"no such endpoint", "GET", "requests?endpoint=ddb", "", nil, 400, "bad_request", `endpoint is "ddb", want bigtable or dynamodb`, ""},
		{"no such status", "GET", "requests?status=nope", "", nil, 400, "bad_request", `status is "nope", want OK, a gRPC code such as Unavailable`, ""},
		{"neither true nor false", "GET", "requests?failed=maybe", "", nil, 400, "bad_request", `failed is "maybe", want true or false`, ""},
		{"neither true nor false", "GET", "requests?internal=no", "", nil, 400, "bad_request", `internal is "no", want true or false`, ""},
		{"neither true nor false", "GET", "requests/trace?internal=no", "", nil, 400, "bad_request", `internal is "no", want true or false`, ""},
		{"neither true nor false", "GET", "events?failed=1", "", nil, 400, "bad_request", `failed is "1", want true or false`, ""},
		{"events of a kind", "GET", "events?kinds=requests,heat", "", nil, 400, "bad_request", `"heat", want a comma-separated list of requests, tables, lab, runs`, ""},
		{"two wishes", "POST", "clock", `{"freeze":true,"run":true}`, nil, 400, "bad_request", "one of", ""},
		{"back in time", "POST", "clock", `{"set":"2001-01-01T00:00:00Z"}`, nil, 400, "bad_request", "time moves only forward", ""},
		{"back in time", "POST", "clock", `{"advance":"-1s"}`, nil, 400, "bad_request", "time moves only forward", ""},
		{"more than time can tell", "POST", "clock", `{"set":"9999-01-01T00:00:00Z"}`, nil, 400, "bad_request", "290 years", ""},
		{"too much", "POST", "items/orders", `{"items":["` + strings.Repeat("x", 16<<20) + `"]}`, nil, 413, "too_large", "16 MiB", ""},
		{"no such table", "GET", "tables/i/none/rows", "", nil, 404, "not_found", "tables/none", "GET /api/v1/tables"},
		{"where its rows are", "GET", "tables/i/orders/rows", "", nil, 404, "not_found", "tables/orders", "the rows of DynamoDB table orders are in Bigtable table i/"},
		{"no such item table", "GET", "items/none", "", nil, 400, "ResourceNotFoundException", `not found: DynamoDB table "none" does not exist`, "GET /api/v1/tables"},
		{"nearly an item table", "GET", "items/order", "", nil, 400, "ResourceNotFoundException", `"order"`, `the nearest name is "orders"; GET`},
		{"items for nearly a table", "POST", "items/Orders", `{"items":[{"k":{"S":"a"}}]}`, nil, 400, "ResourceNotFoundException", `"Orders"`, `the nearest name is "orders"; GET`},
		{"records of nearly a table", "GET", "streams/order/records", "", nil, 400, "ResourceNotFoundException", `"order"`, `the nearest name is "orders"; GET`},
		{"insights of nearly a table", "GET", "insights/order", "", nil, 400, "ResourceNotFoundException", `"order"`, `the nearest name is "orders"; GET`},
		{"the rows of nearly a table", "GET", "tables?dynamodb=order", "", nil, 404, "not_found", `there is no DynamoDB table "order"`, `the nearest name is "orders"; GET`},
		{"a dump of nearly a table", "GET", "dump?table=order", "", nil, 404, "NotFound", "dump of order", `the nearest name is "orders"; GET`},
		{"a dump of nearly a Bigtable table", "GET", "dump?table=visit", "", nil, 404, "NotFound", "dump of visit", `the nearest name is "visits"; GET`},
		{"a bad item", "POST", "items/orders", `{"items":[{}]}`, nil, 400, "ValidationException", "k", ""},
		{"a plain item", "POST", "items/orders", `{"items":[{"k":{"S":"a"}},{"k":"a"}]}`, nil, 400, "bad_request", `item 1 is {"k":"a"}, want attributes in DynamoDB's JSON, such as {"id":{"S":"a"}}`, ""},
		{"an item of another type", "POST", "items/orders", `{"items":["a"]}`, nil, 400, "bad_request", `item 0 is "a", want`, ""},
		{"a limit", "GET", "requests?limit=0", "", nil, 400, "bad_request", "1 to 1000", ""},
		{"no base64", "GET", "tables/i/orders/row?key64=!", "", nil, 404, "not_found", "", ""},
		{"no such request", "GET", "requests/999999", "", nil, 404, "not_found", "999999", ""},
		{"no such snapshot", "POST", "snapshots/none/restore", "", nil, 404, "not_found", "none", ""},
		{"a snapshot that addresses cannot name", "POST", "snapshots", `{"name":".."}`, nil, 400, "bad_request", "..", ""},
		{"a nameless snapshot", "POST", "snapshots", "{}", nil, 400, "bad_request", "name", ""},
		{"no such RPC", "POST", "faults", `{"endpoint":"bigtable","method":"Mutate","effect":"fail","code":"UNAVAILABLE"}`, nil, 400, "bad_request", `"Mutate"`, ""},
		{"nearly an RPC", "POST", "faults", `{"endpoint":"bigtable","method":"ReadRow","effect":"fail","code":"UNAVAILABLE"}`, nil, 400, "bad_request", `"ReadRow", nearest to ReadRows`, ""},
		{"nearly an operation", "POST", "faults", `{"endpoint":"dynamodb","method":"putitems","effect":"fail","code":"Throttling"}`, nil, 400, "bad_request", `"putitems", nearest to PutItem`, ""},
		{"warnings are the answer's", "POST", "faults", `{"warnings":[]}`, nil, 400, "bad_request", "warnings", ""},
		{"no such effect", "POST", "faults", `{"endpoint":"bigtable","method":"*","effect":"explode"}`, nil, 400, "bad_request", "delay", ""},
		{"no such code", "POST", "faults", `{"endpoint":"bigtable","method":"*","effect":"fail","code":"OK"}`, nil, 400, "bad_request", "UNAVAILABLE", ""},
		{"no such failure", "POST", "faults", `{"endpoint":"dynamodb","method":"*","effect":"fail","code":"UNAVAILABLE"}`, nil, 400, "bad_request", "Throttling", ""},
		{"no item of DynamoDB", "POST", "faults", `{"endpoint":"dynamodb","method":"*","effect":"fail","code":"Throttling","item":{"k":"a"}}`, nil, 400, "bad_request", "item", ""},
		{"no delay", "POST", "faults", `{"endpoint":"bigtable","method":"*","effect":"delay"}`, nil, 400, "bad_request", "delay", ""},
		{"a delay of no time", "POST", "faults", `{"endpoint":"bigtable","method":"*","effect":"delay","delay":"0s"}`, nil, 400, "bad_request", "delay", ""},
		{"no such endpoint", "POST", "faults", `{"method":"*","effect":"fail"}`, nil, 400, "bad_request", "dynamodb", ""},
		{"no such fault", "DELETE", "faults/bigtable/7", "", nil, 404, "not_found", "bigtable/7", ""},
		{"outside of the fixtures", "POST", "migrate/verify", `{"fixture":"../x"}`, nil, 400, "bad_request", "../x", ""},
		{"no such verb", "POST", "migrate/load", `{"fixture":"s2-video"}`, nil, 404, "not_found", "load", ""},
		{"no such operation", "POST", "query", `{"operation":"Get","request":{}}`, nil, 400, "UnknownOperationException", "Get", ""},
		{"an event of nobody", "GET", "events?after=x", "", nil, 400, "bad_request", "after", ""},
	} {
		var got failed
		change := c.change
		if change == nil {
			change = func(*http.Request) {}
		}
		code := e.ask(c.method, c.path, c.body, &got, change)
		if code != c.status || got.Error.Code != c.code || !strings.Contains(got.Error.Text, c.text) || got.Error.Remedy == "" {
			t.Errorf("%s: got %d %+v", c.name, code, got)
		}
		if c.remedy != "" && !strings.Contains(got.Error.Remedy, c.remedy) {
			t.Errorf("%s: got the remedy %q", c.name, got.Error.Remedy)
		}
	}
	for name, change := range map[string]func(*http.Request){
		"a page of its own":  set("Sec-Fetch-Site", "same-origin"),
		"its own origin":     set("Origin", e.url),
		"an allowed host":    func(r *http.Request) { r.Host = "Desk.example:1" },
		"a name of loopback": func(r *http.Request) { r.Host = "tabletop.localhost" },
		"an address of IPv6": func(r *http.Request) { r.Host = "[::1]:80" },
		"the cookie of pages": func(r *http.Request) {
			r.Header.Del("Authorization")
			r.AddCookie(&http.Cookie{Name: "tabletop_console_" + e.url[strings.LastIndex(e.url, ":")+1:], Value: token})
		},
	} {
		if code := e.ask("GET", "info", "", nil, change); code != http.StatusOK {
			t.Errorf("%s: %d", name, code)
		}
	}
}

// TestRefusals_Allow: a refused method lists the accepted ones.
func TestRefusals_Allow(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for _, c := range []struct{ method, path, allow string }{
		{"GET", "reset", "POST"}, {"PATCH", "faults", "GET, HEAD, POST, DELETE"}, {"DELETE", "snapshots/a%2Fb/restore", "POST"}, {"POST", "events", "GET, HEAD"},
	} {
		r := httptest.NewRequest(c.method, "http://localhost"+control.Prefix+c.path, http.NoBody)
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		e.api.ServeHTTP(w, r)
		if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != c.allow {
			t.Errorf("%s %s: %d, allow %q, want %q", c.method, c.path, w.Code, w.Header().Get("Allow"), c.allow)
		}
	}
}

// TestSnapshots_Bounds: snapshots beyond the limits are refused, and one with an existing name
// replaces the old one.
func TestSnapshots_Bounds(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for i := range 32 {
		e.must("POST", "snapshots", fmt.Sprintf(`{"name":"s%d"}`, i), nil)
	}
	var full failed
	if code := e.ask("POST", "snapshots", `{"name":"more"}`, &full); code != http.StatusConflict || full.Error.Code != "limit" {
		t.Errorf("%d %+v", code, full)
	}
	e.must("POST", "snapshots", `{"name":"s1"}`, nil)
	e.must("DELETE", "snapshots/s0", "", nil)
	e.must("POST", "snapshots", `{"name":"more"}`, nil)
	var all struct{ Snapshots []struct{ Name string } }
	if e.must("GET", "snapshots", "", &all); len(all.Snapshots) != 32 {
		t.Errorf("%d snapshots", len(all.Snapshots))
	}
}

// TestRequests: requests of both endpoints are recorded, with the calls between them, live and
// afterwards.
func TestRequests(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.query("CreateTable", createTable)
	client := &http.Client{Transport: e.ddb}
	put := func(body string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "POST", "http://x/", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Amz-Target", "DynamoDB_20120810.PutItem")
		r.Header.Set("Content-Type", "application/x-amz-json-1.0")
		r.Header.Set("X-Tabletop-Test", "TestRequests")
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", e.url+control.Prefix+"events?endpoint=dynamodb&test=TestRequests", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	live, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = live.Body.Close() }()
	put(`{"TableName":"orders","Item":{"k":{"S":"a"}}}`)
	e.must("POST", "faults", `{"endpoint":"dynamodb","method":"PutItem","effect":"fail","code":"Throttling","item":{"k":{"S":"b"}}}`, nil)
	put(`{"TableName":"orders","Item":{"k":{"S":"b"}}}`)
	var events []string
	for lines := bufio.NewScanner(live.Body); len(events) < 2 && lines.Scan(); {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			events = append(events, data)
		}
	}
	type record struct {
		ID, Fault                                                  int
		Endpoint, Operation, Table, Status, RequestID, Cause, Test string
		Request                                                    json.RawMessage
		Calls                                                      []record
	}
	var seen struct{ Requests []record }
	e.must("GET", "requests?endpoint=dynamodb&test=TestRequests", "", &seen)
	if len(seen.Requests) != 2 || seen.Requests[0].Status != "ThrottlingException" || seen.Requests[1].Status != "OK" || seen.Requests[1].Table != "orders" {
		t.Fatalf("got %+v", seen)
	}
	if seen.Requests[0].Fault == 0 || seen.Requests[1].Fault != 0 {
		t.Errorf("the faults of a failed and a served request are %d and %d", seen.Requests[0].Fault, seen.Requests[1].Fault)
	}
	for i, data := range events {
		var got record
		if err := json.Unmarshal([]byte(data), &got); err != nil || got.ID != seen.Requests[1-i].ID {
			t.Errorf("event %d: %s: %v", i, data, err)
		}
	}
	var one record
	e.must("GET", fmt.Sprintf("requests/%d", seen.Requests[1].ID), "", &one)
	if len(one.Calls) == 0 || one.Calls[0].Endpoint != "bigtable" || one.Calls[0].Cause != one.RequestID || !bytes.Contains(one.Request, []byte(`"orders"`)) || len(one.Calls[0].Request) == 0 {
		t.Errorf("got %+v", one)
	}
	// The Bigtable calls of a query.
	var query struct {
		Response struct{ Count int }
		Calls    []record
	}
	e.must("POST", "query", `{"operation":"Query","request":{"TableName":"orders","KeyConditionExpression":"k = :k","ExpressionAttributeValues":{":k":{"S":"a"}}}}`, &query)
	if query.Response.Count != 1 || !slices.ContainsFunc(query.Calls, func(c record) bool {
		return c.Operation == "ReadRows" && bytes.Contains(c.Request, []byte("rowRanges")) || bytes.Contains(c.Request, []byte("rowKeys"))
	}) {
		t.Errorf("got %+v", query)
	}
	// Requests through the API are recorded like those of the endpoint.
	if code := e.ask("POST", "query", `{"operation":"GetItem","request":{"TableName":"none","Key":{"k":{"S":"a"}}}}`, nil); code != http.StatusBadRequest {
		t.Errorf("%d", code)
	}
	if e.must("GET", "requests?endpoint=dynamodb&limit=2", "", &seen); len(seen.Requests) != 2 || seen.Requests[0].Operation != "GetItem" || seen.Requests[0].Status != "ResourceNotFoundException" ||
		seen.Requests[1].Operation != "Query" || seen.Requests[1].Status != "OK" || seen.Requests[1].Table != "orders" {
		t.Fatalf("got %+v", seen)
	}
	if e.must("GET", fmt.Sprintf("requests/%d", seen.Requests[1].ID), "", &one); len(one.Calls) != len(query.Calls) {
		t.Errorf("got %+v", one)
	}
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	var list struct{ Fixtures []string }
	e.must("GET", "migrate", "", &list)
	if !slices.Contains(list.Fixtures, "s2-video") {
		t.Errorf("got %q", list.Fixtures)
	}
	var report struct {
		Compared    bool
		Differences int
		Tables      []json.RawMessage
	}
	e.must("POST", "migrate/verify", `{"fixture":"s2-video"}`, &report)
	if !report.Compared || report.Differences != 0 {
		t.Errorf("got %+v", report)
	}
	for _, verb := range []string{"plan", "lint"} {
		if e.must("POST", "migrate/"+verb, `{"fixture":"s2-video"}`, &report); len(report.Tables) == 0 {
			t.Errorf("%s: got %+v", verb, report)
		}
	}
}

// TestOpenAPI: the description has exactly the served paths.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	home, err := os.ReadFile("routes.go")
	if err != nil {
		t.Fatal(err)
	}
	described, taken := map[string]bool{}, map[string]string{}
	path, route := "", ""
	for line := range strings.Lines(string(text)) {
		if m := regexp.MustCompile(`^  /(\S*):`).FindStringSubmatch(line); m != nil {
			path = m[1]
		} else if m := regexp.MustCompile(`^    (get|post|delete):`).FindStringSubmatch(line); m != nil {
			route = strings.ToUpper(m[1]) + " " + path
			described[route] = true
		} else if m := regexp.MustCompile(`\{name: (\w+), in: query`).FindStringSubmatch(line); m != nil {
			taken[route] += " " + m[1]
		} else if strings.Contains(line, "requestBody:") {
			taken[route] += " body"
		}
	}
	// Each route rejects unknown names, and the error lists its own.
	e := newEnv(t)
	for route := range described {
		method, path, _ := strings.Cut(route, " ")
		path = regexp.MustCompile(`\{\w+\}`).ReplaceAllString(path, "x")
		var got failed
		if code := e.ask(method, path+"?nonsense=1", "", &got); code != http.StatusBadRequest || !strings.Contains(got.Error.Text, `"nonsense"`) {
			t.Errorf("%s with a parameter that it does not have: %d %+v", route, code, got)
		}
		var takes []string
		if _, names, ok := strings.Cut(got.Error.Text, "want "); ok {
			takes = strings.Split(names, ", ")
		}
		var want []string
		for _, name := range strings.Fields(taken[route]) {
			if name != "body" {
				want = append(want, name)
			}
		}
		slices.Sort(takes)
		if slices.Sort(want); !slices.Equal(takes, want) {
			t.Errorf("%s takes %q, openapi.yaml has %q", route, takes, want)
		}
		if !strings.Contains(taken[route], " body") {
			if code := e.ask(method, path, `{"nonsense":1}`, &got); code != http.StatusBadRequest || !strings.Contains(got.Error.Text, `"nonsense"`) {
				t.Errorf("%s with a member that it does not have: %d %+v", route, code, got)
			}
		}
	}
	answered := map[string]bool{"GET events": true, "POST session": true, "GET openapi.yaml": true}
	for _, m := range regexp.MustCompile(`"((?:GET|POST|DELETE) [^"]+)":`).FindAllStringSubmatch(string(home), -1) {
		answered[m[1]] = true
	}
	for route := range answered {
		if !described[route] {
			t.Errorf("openapi.yaml does not describe %s", route)
		}
	}
	for route := range described {
		if !answered[route] {
			t.Errorf("nothing answers %s", route)
		}
	}
}

// TestInsights: the most used keys are counted while insights are on, for an index by the
// reads of it, and not while they are off.
func TestInsights(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.query("CreateTable", `{"TableName":"orders","BillingMode":"PAY_PER_REQUEST","KeySchema":[{"AttributeName":"k","KeyType":"HASH"},{"AttributeName":"s","KeyType":"RANGE"}],
		"AttributeDefinitions":[{"AttributeName":"k","AttributeType":"S"},{"AttributeName":"s","AttributeType":"N"},{"AttributeName":"g","AttributeType":"S"}],
		"GlobalSecondaryIndexes":[{"IndexName":"by-g","KeySchema":[{"AttributeName":"g","KeyType":"HASH"}],"Projection":{"ProjectionType":"ALL"}}]}`)
	var bad failed
	if code := e.ask("GET", "insights/orders", "", &bad); code != http.StatusBadRequest || !strings.Contains(bad.Error.Text, "UpdateContributorInsights") {
		t.Errorf("insights that are off: %d %+v", code, bad)
	}
	e.query("UpdateContributorInsights", `{"TableName":"orders","ContributorInsightsAction":"ENABLE"}`)
	e.query("UpdateContributorInsights", `{"TableName":"orders","IndexName":"by-g","ContributorInsightsAction":"ENABLE"}`)
	for i := range 5 {
		e.query("PutItem", fmt.Sprintf(`{"TableName":"orders","Item":{"k":{"S":"hot"},"s":{"N":"%d"},"g":{"S":"x"}}}`, i%2))
	}
	e.query("GetItem", `{"TableName":"orders","Key":{"k":{"S":"cold"},"s":{"N":"1"}}}`)
	e.query("Query", `{"TableName":"orders","KeyConditionExpression":"k = :k","ExpressionAttributeValues":{":k":{"S":"hot"}}}`)
	e.query("BatchGetItem", `{"RequestItems":{"orders":{"Keys":[{"k":{"S":"hot"},"s":{"N":"0"}}]}}}`)
	e.query("BatchWriteItem", `{"RequestItems":{"orders":[{"DeleteRequest":{"Key":{"k":{"S":"hot"},"s":{"N":"9"}}}}]}}`)
	e.query("TransactGetItems", `{"TransactItems":[{"Get":{"TableName":"orders","Key":{"k":{"S":"hot"},"s":{"N":"0"}}}}]}`)
	e.query("TransactWriteItems", `{"TransactItems":[{"Delete":{"TableName":"orders","Key":{"k":{"S":"hot"},"s":{"N":"9"}}}}]}`)
	e.query("ExecuteStatement", `{"Statement":"SELECT * FROM orders WHERE k = 'hot' AND s = 0"}`)
	e.query("ExecuteStatement", `{"Statement":"SELECT * FROM orders WHERE k = 'hot'"}`)
	e.query("Query", `{"TableName":"orders","IndexName":"by-g","KeyConditionExpression":"g = :g","ExpressionAttributeValues":{":g":{"S":"x"}}}`)
	e.query("Scan", `{"TableName":"orders"}`)
	type counts []struct {
		Key   map[string]map[string]string
		Count int
	}
	texts := func(c counts) (out []string) {
		for _, n := range c {
			out = append(out, strings.TrimSpace(fmt.Sprint(n.Key["g"]["S"], n.Key["k"]["S"], " ", n.Key["s"]["N"], " ", n.Count)))
		}
		return out
	}
	var top, ofIndex struct{ PKC, SKC, PKT counts }
	e.must("GET", "insights/orders", "", &top)
	if got, want := texts(top.PKC), []string{"hot  12", "cold  1"}; !slices.Equal(got, want) {
		t.Errorf("partition keys: %q, want %q", got, want)
	}
	if got, want := texts(top.SKC), []string{"hot 0 6", "hot 1 2", "hot 9 2", "cold 1 1"}; !slices.Equal(got, want) {
		t.Errorf("keys: %q, want %q", got, want)
	}
	if len(top.PKT) > 0 {
		t.Errorf("throttled keys: %v", top.PKT)
	}
	e.must("GET", "insights/orders?index=by-g", "", &ofIndex)
	if got, want := texts(ofIndex.PKC), []string{"x  1"}; !slices.Equal(got, want) {
		t.Errorf("keys of the index: %q, want %q", got, want)
	}
}

// TestTableAdmin: families are created, changed and dropped, rows of a prefix and all rows are
// dropped, and a table is deleted; a faulty request returns an error and changes nothing.
func TestTableAdmin(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.createRows("t", "a1", "a2", "b")
	families := func() string {
		t.Helper()
		var got struct {
			Families []struct{ Name, GC string }
			Bytes    int64
		}
		e.must("GET", "tables/i/t", "", &got)
		var out []string
		for _, f := range got.Families {
			out = append(out, f.Name+" "+f.GC)
		}
		return strings.Join(out, ", ")
	}
	e.must("POST", "tables/i/t/families", `{"modifications":[{"id":"g","create":{"gcRule":{"union":{"rules":[{"maxNumVersions":2},{"maxAge":"3600s"}]}}}},{"id":"f","update":{}}]}`, nil)
	if got, want := families(), "f never, g maxversions=2 or maxage=1h0m0s"; got != want {
		t.Errorf("families: %s, want %s", got, want)
	}
	for _, wrong := range []string{`{"modifications":[{"id":"f","drop":true},{"id":"none","drop":true}]}`, `{"modifications":[{"id":"f","dorp":true}]}`, `{"modifications":[]}`} {
		var bad failed
		if code := e.ask("POST", "tables/i/t/families", wrong, &bad); code == http.StatusOK || bad.Error.Text == "" || bad.Error.Remedy == "" {
			t.Errorf("%s: %d %+v", wrong, code, bad)
		}
	}
	e.must("POST", "tables/i/t/families", `{"modifications":[{"id":"g","drop":true}]}`, nil)
	if got := families(); got != "f never" {
		t.Errorf("families: %s", got)
	}
	keys := func(query string) (out []string) {
		t.Helper()
		var got struct {
			Rows []struct {
				Key   struct{ Text string }
				Cells []json.RawMessage
			}
		}
		e.must("GET", "tables/i/t/rows"+query, "", &got)
		for _, r := range got.Rows {
			out = append(out, fmt.Sprintf("%s:%d", r.Key.Text, len(r.Cells)))
		}
		return out
	}
	for query, want := range map[string]string{
		"?match=a.": "[a1:2 a2:2]", "?match=.%2A&prefix=b": "[b:2]", "?match=a": "[]", `?filter={"cellsPerColumnLimitFilter":1}`: "[a1:1 a2:1 b:1]",
		`?match=a1&filter={"cellsPerColumnLimitFilter":1}`: "[a1:1]",
	} {
		if got := fmt.Sprint(keys(query)); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	for _, wrong := range []string{"match=(", `filter={"x":1}`, "filter=["} {
		var bad failed
		if code := e.ask("GET", "tables/i/t/rows?"+wrong, "", &bad); code != http.StatusBadRequest || bad.Error.Text == "" {
			t.Errorf("%s: %d %+v", wrong, code, bad)
		}
	}
	for _, wrong := range []string{`{}`, `{"all":true,"prefix":{"text":"a"}}`} {
		if code := e.ask("POST", "tables/i/t/drop", wrong, nil); code != http.StatusBadRequest {
			t.Errorf("drop of %s: %d", wrong, code)
		}
	}
	e.must("POST", "tables/i/t/drop", `{"prefix":{"text":"a"}}`, nil)
	if got := fmt.Sprint(keys("")); got != "[b:2]" {
		t.Errorf("after a drop: %s", got)
	}
	e.must("POST", "tables/i/t/drop", `{"all":true}`, nil)
	if got := fmt.Sprint(keys("")); got != "[]" {
		t.Errorf("after all was dropped: %s", got)
	}
	e.must("DELETE", "tables/i/t", "", nil)
	for _, path := range []string{"DELETE tables/i/t", "POST tables/i/t/drop", "POST tables/i/t/families", "POST tables/i/t/changes"} {
		method, at, _ := strings.Cut(path, " ")
		body := ""
		if method == "POST" {
			body = "{}"
		}
		if code := e.ask(method, at, body, nil); code != http.StatusNotFound {
			t.Errorf("%s of a deleted table: %d", path, code)
		}
	}
}
