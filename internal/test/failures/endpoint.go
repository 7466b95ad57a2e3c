package failures

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/facade/awserr"
)

// callTimeout is the deadline of calls.
const callTimeout = 10 * time.Second

// open starts an endpoint over a Bigtable.
func open(ctx context.Context, conn grpc.ClientConnInterface, instance string, change ...func(*facade.Options)) (*facade.Server, error) {
	o := facade.Options{
		Conn: conn, Instance: instance, Deadline: callTimeout, Concurrency: 100, NoAuth: true, Rand: rand.NewChaCha8([32]byte{1}),
	}
	for _, set := range change {
		set(&o)
	}
	return facade.New(ctx, o)
}

// request is a request that meets a failure.
type request struct {
	name, operation, body string
	kind                  requestKind
}

// requestKind selects the checks after a request.
type requestKind int

const (
	reads      requestKind = iota // the answer equals that without a failure
	writesOne                     // the item a is the old or the new one
	writesAny                     // likewise a, b and c, each independently
	writesAll                     // likewise a, b and c, all together
	makesTable                    // the table exists, or can be created
	dropsTable                    // the table was deleted, or can be deleted
	addsIndex                     // the index exists, or can be added
	changes                       // the request can be repeated, or reports that it was done
	repeats                       // the request can be repeated
)

const schema = `"BillingMode":"PAY_PER_REQUEST","KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],
	"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"},{"AttributeName":"g","AttributeType":"S"}],
	"GlobalSecondaryIndexes":[{"IndexName":"byG","KeySchema":[{"AttributeName":"g","KeyType":"HASH"}],"Projection":{"ProjectionType":"ALL"}}]`

// item returns an item of a generation.
func item(id, generation string) string {
	return `{"id":{"S":"` + id + `"},"g":{"S":"` + generation + `"},"v":{"S":"` + generation + id + `"}}`
}

func key(id string) string { return `{"id":{"S":"` + id + `"}}` }

// namespaced is a start that reads the namespaces of callers.
const namespaced = "start, with namespaces"

// earlier has the requests that must precede another.
var earlier = map[string]struct{ operation, body string }{
	"UpdateContinuousBackups": {"UpdateTable", `{"TableName":"things","StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_IMAGE"}}`},
}

var requests = []request{
	{"start", "", "", changes},
	{namespaced, "", "", changes},
	{"GetItem", "GetItem", `{"TableName":"things","Key":` + key("a") + `}`, reads},
	{"Query of an index", "Query", `{"TableName":"things","IndexName":"byG","KeyConditionExpression":"g = :g","ExpressionAttributeValues":{":g":{"S":"old"}}}`, reads},
	{"Scan", "Scan", `{"TableName":"things"}`, reads},
	{"Scan of a segment", "Scan", `{"TableName":"things","Segment":0,"TotalSegments":2}`, reads},
	{"BatchGetItem", "BatchGetItem", `{"RequestItems":{"things":{"Keys":[` + key("a") + `,` + key("b") + `]}}}`, reads},
	{"TransactGetItems", "TransactGetItems", `{"TransactItems":[{"Get":{"TableName":"things","Key":` + key("a") + `}},{"Get":{"TableName":"things","Key":` + key("x") + `}}]}`, reads},
	{"PutItem", "PutItem", `{"TableName":"things","Item":` + item("a", "new") + `}`, writesOne},
	{"UpdateItem", "UpdateItem", `{"TableName":"things","Key":` + key("a") + `,"UpdateExpression":"SET g = :g, v = :v","ExpressionAttributeValues":{":g":{"S":"new"},":v":{"S":"newa"}}}`, writesOne},
	{"DeleteItem", "DeleteItem", `{"TableName":"things","Key":` + key("a") + `}`, writesOne},
	{"BatchWriteItem", "BatchWriteItem", `{"RequestItems":{"things":[{"PutRequest":{"Item":` + item("a", "new") + `}},{"PutRequest":{"Item":` + item("b", "new") + `}},{"DeleteRequest":{"Key":` + key("c") + `}}]}}`, writesAny},
	{"TransactWriteItems", "TransactWriteItems", `{"ClientRequestToken":"token","TransactItems":[{"Put":{"TableName":"things","Item":` + item("a", "new") + `}},{"Put":{"TableName":"things","Item":` + item("b", "new") + `}},{"Delete":{"TableName":"things","Key":` + key("c") + `}}]}`, writesAll},
	{"CreateTable", "CreateTable", `{"TableName":"others",` + schema + `}`, makesTable},
	{"UpdateTable, an index", "UpdateTable", `{"TableName":"things","AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"},{"AttributeName":"v","AttributeType":"S"}],
		"GlobalSecondaryIndexUpdates":[{"Create":{"IndexName":"byV","KeySchema":[{"AttributeName":"v","KeyType":"HASH"}],"Projection":{"ProjectionType":"ALL"}}}]}`, addsIndex},
	{"UpdateTable, a stream", "UpdateTable", `{"TableName":"things","StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_IMAGE"}}`, changes},
	{"UpdateContinuousBackups", "UpdateContinuousBackups", `{"TableName":"things","PointInTimeRecoverySpecification":{"PointInTimeRecoveryEnabled":true}}`, repeats},
	{"UpdateTimeToLive", "UpdateTimeToLive", `{"TableName":"things","TimeToLiveSpecification":{"Enabled":true,"AttributeName":"t"}}`, changes},
	{"DeleteTable", "DeleteTable", `{"TableName":"things"}`, dropsTable},
	{"ListTables", "ListTables", `{}`, reads},
}

// outcome is the caller's view of a request.
type outcome struct {
	text  string
	after time.Duration
}

// endpointRun is one request over a Bigtable of its own.
type endpointRun struct {
	t    *testing.T
	what string
	conn *failingConn
	name string // of the instance
}

// call sends a request, and returns its answer or error.
func (r *endpointRun) call(s *facade.Server, operation, body string) (string, error) {
	answer, err := s.Call(r.t.Context(), operation, []byte(body))
	return string(answer), err
}

// must acts like call for a request that cannot fail.
func (r *endpointRun) must(s *facade.Server, operation, body string) string {
	r.t.Helper()
	answer, err := r.call(s, operation, body)
	if err != nil {
		r.t.Errorf("%s: then %s fails: %v", r.what, operation, err)
	}
	return answer
}

// meet sends a request while calls fail, and checks the resulting state. want is the answer
// without a failure.
func (r *endpointRun) meet(q request, want, rpc string, how failure, from, most int) (o outcome, answer string) {
	t, ctx := r.t, r.t.Context()
	r.conn.set("", failure{}, 0, 0)
	s, err := open(ctx, r.conn, r.name)
	if err != nil {
		t.Fatal(err)
	}
	r.must(s, "CreateTable", `{"TableName":"things",`+schema+`}`)
	for _, id := range []string{"a", "b", "c"} {
		r.must(s, "PutItem", `{"TableName":"things","Item":`+item(id, "old")+`}`)
	}
	if e, ok := earlier[q.name]; ok {
		r.must(s, e.operation, e.body)
	}
	if q.operation == "" {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = nil
	}
	r.conn.set(rpc, how, from, most)
	begun := time.Now()
	if s == nil {
		s, err = open(ctx, r.conn, r.name, func(o *facade.Options) { o.Namespaced = q.name == namespaced })
	} else {
		answer, err = r.call(s, q.operation, q.body)
	}
	o.after = time.Since(begun)
	o.text = r.text(q, err)
	if err == nil && q.kind == reads && want != "" && answer != want {
		t.Errorf("%s: answered with %s, want %s", r.what, answer, want)
	}
	r.conn.heal()
	if s != nil {
		if err := s.Close(); err != nil {
			t.Errorf("%s: %v", r.what, err)
		}
	}
	r.look(q, err == nil, answer)
	return o, answer
}

// text describes the outcome of a request in one word.
func (r *endpointRun) text(q request, err error) string {
	known, ok := awserr.As(err)
	switch {
	case err == nil && q.operation == "":
		return "starts"
	case err == nil:
		return "200"
	case q.operation == "":
		return "no start"
	case !ok:
		r.t.Errorf("%s: %v is not an error of DynamoDB", r.what, err)
		return err.Error()
	}
	switch known.Code {
	case awserr.CodeRequestLimit, awserr.CodeInternalServerError, awserr.CodeServiceUnavailable:
	default:
		r.t.Errorf("%s: %v is not an error that clients retry", r.what, err)
	}
	return fmt.Sprint(known.HTTPStatus, " ", known.Code)
}

// look checks the state after a request, from another endpoint. done reports that it was
// answered.
func (r *endpointRun) look(q request, done bool, answer string) {
	t, ctx := r.t, r.t.Context()
	t.Helper()
	time.Sleep(5 * time.Minute) // pending work of the previous endpoint expires
	s, err := open(ctx, r.conn, r.name)
	if err != nil {
		t.Errorf("%s: then no endpoint opens: %v", r.what, err)
		return
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Errorf("%s: %v", r.what, err)
		}
	}()
	again := func(unless string) {
		t.Helper()
		if _, err := r.call(s, q.operation, q.body); err != nil && !strings.Contains(err.Error(), unless) || err == nil && done && unless != "" {
			t.Errorf("%s: made again: %v", r.what, err)
		}
	}
	switch q.kind {
	case makesTable:
		again("ResourceInUseException")
		r.must(s, "PutItem", `{"TableName":"others","Item":`+item("a", "new")+`}`)
		r.consistent(s, "others", "byG", 1)
	case dropsTable:
		again("ResourceNotFoundException")
		r.must(s, "CreateTable", `{"TableName":"things",`+schema+`}`)
		r.consistent(s, "things", "byG", 0)
	case addsIndex:
		if _, err := r.call(s, q.operation, q.body); err != nil && !strings.Contains(err.Error(), "ValidationException") && !strings.Contains(err.Error(), "ResourceInUseException") {
			t.Errorf("%s: made again: %v", r.what, err)
		}
		time.Sleep(5 * time.Minute) // the index is filled after the answer
		r.consistent(s, "things", "byV", 3)
	case changes:
		if q.operation != "" {
			again("ValidationException")
		}
		r.consistent(s, "things", "byG", 3)
	case repeats:
		again("")
		r.consistent(s, "things", "byG", 3)
	case writesOne, writesAny, writesAll:
		r.written(s, q, done && !strings.Contains(answer, `"UnprocessedItems":{"`))
		r.consistent(s, "things", "byG", -1)
	case reads:
	}
}

// written checks the state after a write.
func (r *endpointRun) written(s *facade.Server, q request, done bool) {
	generations := map[string]bool{}
	ids := []string{"a", "b", "c"}
	if q.kind == writesOne {
		ids = ids[:1]
	}
	for _, id := range ids {
		got := r.must(s, "GetItem", `{"TableName":"things","Key":`+key(id)+`,"ConsistentRead":true}`)
		gone := q.name == "DeleteItem" || id == "c"
		switch {
		case strings.Contains(got, `"old`+id+`"`) && strings.Contains(got, `"old"`):
			generations["old"] = true
		case gone && got == "{}", !gone && strings.Contains(got, `"new`+id+`"`) && strings.Contains(got, `"new"`):
			generations["new"] = true
		default:
			r.t.Errorf("%s: half a write: %s is %s", r.what, id, got)
		}
	}
	if q.kind == writesAll && len(generations) != 1 {
		r.t.Errorf("%s: half a transaction: %v", r.what, generations)
	}
	if done && generations["old"] {
		r.t.Errorf("%s: answered, and not there", r.what)
	}
}

// consistent compares a table with an index of all its n items; a negative n allows any
// number.
func (r *endpointRun) consistent(s *facade.Server, table, index string, n int) {
	r.t.Helper()
	items := func(body string) (texts []string) {
		var page struct{ Items []json.RawMessage }
		if err := json.Unmarshal([]byte(r.must(s, "Scan", body)), &page); err != nil {
			r.t.Errorf("%s: %v", r.what, err)
		}
		for _, i := range page.Items {
			texts = append(texts, string(i))
		}
		slices.Sort(texts)
		return texts
	}
	all, indexed := items(`{"TableName":"`+table+`"}`), items(`{"TableName":"`+table+`","IndexName":"`+index+`"}`)
	if !slices.Equal(all, indexed) || n >= 0 && len(all) != n {
		r.t.Errorf("%s: %s has %d items %s, its index %s", r.what, table, len(all), all, indexed)
	}
}

// always is the number of failing calls of a permanent failure.
const always = math.MaxInt
