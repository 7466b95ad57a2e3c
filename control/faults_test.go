package control_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"

	"github.com/tabletop-emu/tabletop/internal/test/labserver"
)

// hits returns the hits of the armed faults.
func (e *env) hits() (out []int) {
	e.t.Helper()
	var armed struct{ Faults []struct{ Hits int } }
	e.must("GET", "faults", "", &armed)
	for _, f := range armed.Faults {
		out = append(out, f.Hits)
	}
	return out
}

// TestQuery_Faults: faults of DynamoDB affect requests of query like those of the endpoint's
// clients, unless the query excludes them.
func TestQuery_Faults(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.query("CreateTable", createTable)
	e.query("PutItem", `{"TableName":"orders","Item":{"k":{"S":"a"},"v":{"S":"old"}}}`)
	e.must("POST", "snapshots", `{"name":"old"}`, nil)
	e.query("PutItem", `{"TableName":"orders","Item":{"k":{"S":"a"},"v":{"S":"new"}}}`)
	const put, get = `{"operation":"PutItem","request":{"TableName":"orders","Item":{"k":{"S":"b"}}}`, `{"operation":"GetItem","request":{"TableName":"orders","Key":{"k":{"S":"%s"}}}}`
	there := func(key string) bool {
		t.Helper()
		var got struct{ Response struct{ Item map[string]any } }
		e.must("POST", "query", fmt.Sprintf(get, key), &got)
		return got.Response.Item != nil
	}
	for _, c := range []struct {
		fault  string
		there  bool // the item exists afterwards
		status int
		code   string
	}{
		{`"effect":"fail","code":"Throttling"`, false, 400, "ThrottlingException"},
		{`"effect":"fail","code":"InternalServerError","applied":true`, true, 500, "InternalServerError"},
		{`"effect":"fail","code":"Throttling","item":{"k":{"S":"b"}}`, false, 400, "ThrottlingException"},
	} {
		e.query("DeleteItem", `{"TableName":"orders","Key":{"k":{"S":"b"}}}`)
		e.must("POST", "faults", `{"endpoint":"dynamodb","method":"PutItem",`+c.fault+`,"times":1}`, nil)
		if code := e.ask("POST", "query", put+`,"faults":false}`, nil); code != http.StatusOK || e.hits()[0] != 0 {
			t.Errorf("%s is affected by faults: %d", c.fault, code)
		}
		e.query("DeleteItem", `{"TableName":"orders","Key":{"k":{"S":"b"}}}`)
		var got failed
		code := e.ask("POST", "query", put+"}", &got)
		if code != c.status || got.Error.Code != c.code || !strings.Contains(got.Error.Remedy, "DELETE /api/v1/faults/dynamodb/") {
			t.Errorf("%s: %d %+v", c.fault, code, got)
		}
		if hits := e.hits(); hits[0] != 1 || there("b") != c.there {
			t.Errorf("%s: %d hits, the item is there: %v", c.fault, hits, there("b"))
		}
		e.must("POST", "query", put+"}", nil)
		e.must("DELETE", "faults", "", nil)
	}

	var read struct {
		Response struct {
			Item             map[string]struct{ S string }
			UnprocessedItems map[string][]any
		}
	}
	e.must("POST", "faults", `{"endpoint":"dynamodb","method":"*","effect":"stale","snapshot":"old","times":1}`, nil)
	for _, want := range []string{"old", "new"} {
		if e.must("POST", "query", fmt.Sprintf(get, "a"), &read); read.Response.Item["v"].S != want {
			t.Errorf("got %+v, want %s", read, want)
		}
	}
	e.must("POST", "faults", `{"endpoint":"dynamodb","method":"BatchWriteItem","effect":"unprocessed","times":1}`, nil)
	e.must("POST", "query", `{"operation":"BatchWriteItem","request":{"RequestItems":{"orders":[{"PutRequest":{"Item":{"k":{"S":"c"}}}},{"PutRequest":{"Item":{"k":{"S":"d"}}}}]}}}`, &read)
	if len(read.Response.UnprocessedItems["orders"]) != 1 || there("c") || !there("d") {
		t.Errorf("got %+v", read)
	}
	// Faults do not affect the API's own calls.
	e.must("POST", "faults", `{"endpoint":"dynamodb","method":"*","effect":"fail","code":"Throttling"}`, nil)
	e.must("POST", "items/orders", `{"items":[{"k":{"S":"e"}}]}`, nil)
	e.must("GET", "items/orders", "", nil)
	e.must("GET", "tables", "", nil)
}

// TestClock_Last: the clock continues from any accepted time.
func TestClock_Last(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.must("POST", "clock", `{"run":true}`, nil)
	for range 2 {
		e.must("POST", "clock", `{"advance":"50000d"}`, nil)
	}
	var got failed
	if code := e.ask("POST", "clock", `{"advance":"99999d"}`, &got); code != http.StatusBadRequest || !strings.Contains(got.Error.Text, "290 years") {
		t.Errorf("%d %+v", code, got)
	}
	first := e.lab.Clock().Now()
	for e.lab.Clock().Now().Equal(first) { // otherwise it stands still
		if t.Context().Err() != nil {
			t.Fatal("the clock stands still")
		}
	}
}

// TestSnapshots_Names: every accepted name of a snapshot works for a restore.
func TestSnapshots_Names(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for name, path := range map[string]string{"a/b c": "a%2Fb%20c", "a//b": "a%2F%2Fb", "../x": "..%2Fx", "ä?#%": "%C3%A4%3F%23%25"} {
		e.must("POST", "snapshots", fmt.Sprintf(`{"name":%q}`, name), nil)
		e.must("POST", "snapshots/"+path+"/restore", "", nil)
		e.must("DELETE", "snapshots/"+path, "", nil)
	}
}

// TestFaults_Codes: a code is accepted by the names that clients use for it, and by that of
// GET faults.
func TestFaults_Codes(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for code, want := range map[string]string{
		"UNAVAILABLE": "Unavailable", "Unavailable": "Unavailable", "DEADLINE_EXCEEDED": "DeadlineExceeded",
		"ThrottlingException": "Throttling", "ProvisionedThroughputExceededException": "ProvisionedThroughputExceeded", "RequestLimitExceeded": "RequestLimitExceeded",
	} {
		endpoint := "dynamodb"
		if strings.HasPrefix(strings.ToUpper(want), "UNAV") || strings.HasPrefix(want, "Dead") {
			endpoint = "bigtable"
		}
		var got struct{ Code string }
		e.must("POST", "faults", fmt.Sprintf(`{"endpoint":%q,"method":"*","effect":"fail","code":%q}`, endpoint, code), &got)
		if got.Code != want {
			t.Errorf("%s: got %q", code, got.Code)
		}
	}
}

// TestFaults_Errors: a fault has the fields of its error, and unknown codes are refused.
func TestFaults_Errors(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	const body = `{"endpoint":"dynamodb","method":"TransactWriteItems","effect":"fail","code":"TransactionCanceledException","reasons":[%q],"message":"ours"}`
	var got struct {
		Code, Message string
		Reasons       []string
	}
	e.must("POST", "faults", fmt.Sprintf(body, "ConditionalCheckFailed"), &got)
	if got.Code != "TransactionCanceled" || got.Message != "ours" || len(got.Reasons) != 1 || got.Reasons[0] != "ConditionalCheckFailed" {
		t.Errorf("got %+v", got)
	}
	var known struct {
		Errors []struct {
			Name       string
			Operations []string
		}
		Reasons, Operations []string
	}
	e.must("GET", "faults/errors", "", &known)
	at := slices.IndexFunc(known.Errors, func(f struct {
		Name       string
		Operations []string
	},
	) bool {
		return f.Name == "TransactionCanceled"
	})
	if at < 0 || len(known.Errors[at].Operations) != 3 || !slices.Contains(known.Reasons, "ValidationError") || !slices.Contains(known.Operations, "PutItem") {
		t.Errorf("got %+v", known)
	}
	var refused failed
	write := `{"operation":"TransactWriteItems","request":{"TransactItems":[{"Put":{"TableName":"orders","Item":{"k":{"S":"a"}}}}]}}`
	if code := e.ask("POST", "query", write, &refused); code != http.StatusBadRequest || !strings.Contains(refused.Error.Text, "[ConditionalCheckFailed]") {
		t.Errorf("%d %+v", code, refused)
	}
	for fault, want := range map[string]string{
		fmt.Sprintf(body, "Conflict"): `unknown cancellation reason "Conflict"`,
		`{"endpoint":"dynamodb","method":"*","effect":"fail","code":"AccessDeniedExeption"}`:                        "nearest to AccessDeniedException",
		`{"endpoint":"bigtable","method":"*","effect":"fail","code":"UNAVAILABLE","reasons":["None"]}`:              "reasons may be set only for",
		`{"endpoint":"dynamodb","method":"BatchGetItem","effect":"unprocessed","code":"ResourceNotFoundException"}`: "apply only to failures",
	} {
		if code := e.ask("POST", "faults", fault, &refused); code != http.StatusBadRequest || !strings.Contains(refused.Error.Text, want) {
			t.Errorf("%s: %d %+v, want %s", fault, code, refused, want)
		}
	}
}

// TestFaults_Delay: a delay of DynamoDB passes on the clock for a query.
func TestFaults_Delay(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.query("CreateTable", createTable)
	e.must("POST", "faults", `{"endpoint":"dynamodb","method":"PutItem","effect":"delay","delay":"90s"}`, nil)
	start := e.lab.Clock().Now()
	e.must("POST", "query", `{"operation":"PutItem","request":{"TableName":"orders","Item":{"k":{"S":"a"}}}}`, nil)
	if got := e.lab.Clock().Now().Sub(start); got != 90*time.Second || e.hits()[0] != 1 {
		t.Errorf("%v passed, %d hits", got, e.hits()[0])
	}
}

// TestFaults_Warnings: a fault for a missing table is armed, and the answer explains why it
// has no effect.
func TestFaults_Warnings(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.query("CreateTable", createTable)
	e.createRows("rows", "a")
	view := &btapb.CreateMaterializedViewRequest{
		Parent: "projects/p/instances/i", MaterializedViewId: "view", MaterializedView: &btapb.MaterializedView{Query: "SELECT _key, COUNT(*) AS n FROM `rows` GROUP BY _key"},
	}
	if _, err := btapb.NewBigtableInstanceAdminClient(e.lab.Bigtable().Conn()).CreateMaterializedView(t.Context(), view); err != nil {
		t.Fatal(err)
	}
	const ddb, bt = `"endpoint":"dynamodb","method":"*","effect":"fail","code":"Throttling"`, `"endpoint":"bigtable","method":"*","effect":"fail","code":"UNAVAILABLE"`
	for fault, want := range map[string]string{
		ddb: "", bt: "",
		ddb + `,"table":"orders"`:                                       "",
		ddb + `,"table":"nosuch"`:                                       `DynamoDB table "nosuch" does not exist at present`,
		ddb + `,"table":"orders","item":{"k":{"S":"a"}}`:                "",
		ddb + `,"table":"orders","item":{"k":{"N":"1"}}`:                `key attribute "k" of table orders has type S, not N`,
		ddb + `,"table":"orders","item":{"id":{"S":"a"},"k":{"S":"a"}}`: `"id" is not a key attribute of table orders (k); only puts of whole items contain it`,
		bt + `,"table":"rows"`:                                          "",
		bt + `,"table":"view"`:                                          "",
		bt + `,"table":"nosuch"`:                                        `Bigtable table "nosuch" does not exist at present`,
		bt + `,"table":"orders"`:                                        "",
	} {
		var got struct{ Warnings []string }
		e.must("POST", "faults", "{"+fault+"}", &got)
		if text := strings.Join(got.Warnings, "; "); (text == "") != (want == "") || !strings.HasPrefix(text, want) {
			t.Errorf("%s: %q, want %q", fault, text, want)
		}
	}
	var armed any
	e.must("GET", "faults", "", &armed)
	if strings.Contains(fmt.Sprint(armed), "warnings") {
		t.Errorf("got %v", armed)
	}
}

// TestRequests_Before: a partial list of requests links to the rest.
func TestRequests_Before(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.query("CreateTable", createTable)
	for i := range 5 {
		e.query("PutItem", fmt.Sprintf(`{"TableName":"orders","Item":{"k":{"S":"k%d"}}}`, i))
	}
	type page struct {
		Requests []struct{ ID uint64 }
		Before   uint64
	}
	seen := 0
	for path := "requests?operation=PutItem&endpoint=dynamodb&status=OK&limit=2"; ; {
		var got page
		e.must("GET", path, "", &got)
		seen += len(got.Requests)
		if got.Before == 0 {
			break
		}
		path = fmt.Sprintf("requests?operation=PutItem&endpoint=dynamodb&status=OK&limit=2&before=%d", got.Before)
	}
	if seen != 5 {
		t.Errorf("%d requests", seen)
	}
}

// TestFaults_Log: errors of faults are not errors in the log, others are.
func TestFaults_Log(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer // written only by the requests below
	e := newEnvOf(t, labserver.Options{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	e.query("CreateTable", createTable)
	const put = `{"operation":"PutItem","request":{"TableName":"orders","Item":{"k":{"S":"a"}}}}`
	e.must("POST", "faults", `{"endpoint":"bigtable","method":"*","effect":"fail","code":"UNAVAILABLE","behindDynamoDB":true}`, nil)
	var got failed
	if code := e.ask("POST", "query", put, &got); code < http.StatusInternalServerError || !strings.Contains(got.Error.Remedy, "GET /api/v1/faults") {
		t.Errorf("%d %+v", code, got)
	}
	if log.Len() > 0 {
		t.Errorf("the log has %s", &log)
	}
}
