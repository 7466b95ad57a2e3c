package facade

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/test/intercept"
	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/internal/test/race"
)

func TestOperations_Table(t *testing.T) {
	t.Parallel()
	ops := Operations()
	if len(ops) != 66 {
		t.Errorf("%d operations, want 62 and 4 of streams", len(ops))
	}
	for i, op := range ops[1:] {
		if before := ops[i]; before.Service == op.Service && before.Name >= op.Name {
			t.Errorf("%s stands before %s", before.Name, op.Name)
		}
	}
}

// A request has room for a million names. Code that compares each with all others would
// exceed the time limit of tests.
func TestOperations_ManyNames(t *testing.T) {
	race.OneAfterTheOther(t)
	t.Parallel()
	names := 100_000
	if long.Enabled() {
		names = 1_000_000
	}
	s := newTestServer(t)
	must(t, s, "CreateTable", createPair)
	list := func(n int, format string) string {
		elements := make([]string, n)
		for i := range elements {
			elements[i] = strings.ReplaceAll(format, "$", strconv.FormatInt(int64(i), 36))
		}
		return "[" + strings.Join(elements, ",") + "]"
	}
	const (
		create     = `{"TableName": "many", "BillingMode": "PAY_PER_REQUEST", "KeySchema": [{"AttributeName": "1", "KeyType": "HASH"}, `
		definition = `{"AttributeName":"$","AttributeType":"S"}`
		element    = `{"AttributeName":"$","KeyType":"HASH"}`
		index      = `{"IndexName":"ix$","KeySchema":[{"AttributeName":"1","KeyType":"HASH"}],"Projection":{"ProjectionType":"ALL"}}`
	)
	table := `{"TableName": "many", "BillingMode": "PAY_PER_REQUEST", "KeySchema": [{"AttributeName": "1", "KeyType": "HASH"}], "AttributeDefinitions": `
	for _, c := range []struct{ name, operation, body, want string }{
		{"attributes to get", "GetItem", `{"TableName": "pairs", "Key": {"pk": {"S": "a"}, "sk": {"N": "1"}}, "AttributesToGet": ` + list(names, `"$"`) + `}`, ""},
		{"definitions", "CreateTable", create + `{"AttributeName": "-", "KeyType": "RANGE"}], "AttributeDefinitions": ` + list(names*3/10, definition) + `}`, "Keys: [1, -], AttributeDefinitions: ["},
		{"key attributes", "CreateTable", table + list(names*3/20, definition) + `, "GlobalSecondaryIndexes": [{"IndexName": "index",
			"Projection": {"ProjectionType": "ALL"}, "KeySchema": ` + list(names*3/20, element) + `}]}`, "exceeds the maximum allowed number of HASH key attributes"},
		{"indexes", "CreateTable", table + list(names/10, definition) + `, "GlobalSecondaryIndexes": ` + list(names/20, index) + `}`, "exceeds the per-table limit of 20"},
	} {
		_, err := s.Call(t.Context(), c.operation, []byte(c.body))
		if c.want == "" && err != nil || c.want != "" && !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s: %.300v, want %q", c.name, err, c.want)
		}
	}
}

// AttributeUpdates are limited only by the item and the request, though an equivalent
// expression would be too long.
func TestUpdateItem_ManyAttributeUpdates(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	must(t, s, "CreateTable", createPair)
	name := "a"
	update := func(n int, change string) string {
		updates := make([]string, n)
		for i := range updates {
			updates[i] = fmt.Sprintf(`"%s%d": %s`, name, i, change)
		}
		return `{"TableName": "pairs", "Key": {"pk": {"S": "a"}, "sk": {"N": "1"}}, "AttributeUpdates": {` + strings.Join(updates, ",") + `}}`
	}
	for _, change := range []string{`{"Value": {"N": "1"}}`, `{"Action": "ADD", "Value": {"N": "2"}}`} {
		must(t, s, "UpdateItem", update(1000, change))
	}
	must(t, s, "UpdateItem", update(998, `{"Action": "DELETE"}`))
	got := must(t, s, "GetItem", `{"TableName": "pairs", "Key": {"pk": {"S": "a"}, "sk": {"N": "1"}}}`)
	if want := `{"Item":{"a998":{"N":"3"},"a999":{"N":"3"},"pk":{"S":"a"},"sk":{"N":"1"}}}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	// More updates than an item can have attributes are rejected, and quickly.
	const many = 10_000
	name = strings.Repeat("a", 400<<10/many)
	if _, err := s.Call(t.Context(), "UpdateItem", []byte(update(many, `{"Value": {"N": "1"}}`))); err == nil || !strings.Contains(err.Error(), "size") {
		t.Errorf("10,000 attributes: %v", err)
	}
}

// readPage is one page of a Query or Scan.
type readPage struct {
	Items            []map[string]map[string]string
	Count            int
	LastEvaluatedKey map[string]map[string]string
	ConsumedCapacity struct{ CapacityUnits float64 }
}

func decodePage(tb testing.TB, answer string) readPage {
	tb.Helper()
	var page readPage
	if err := json.Unmarshal([]byte(answer), &page); err != nil {
		tb.Fatal(err)
	}
	return page
}

const createPair = `{"TableName": "pairs", "BillingMode": "PAY_PER_REQUEST",
	"AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}, {"AttributeName": "sk", "AttributeType": "N"}],
	"KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}]}`

// A page ends with the item that exceeds 1 MB, and consumes the units of the items that the
// server examined.
func TestQuery_PageBytes(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	must(t, s, "CreateTable", createPair)
	pad := strings.Repeat("x", 300_000)
	for i := range 9 {
		must(t, s, "PutItem", `{"TableName": "pairs", "Item": {"pk": {"S": "a"}, "sk": {"N": "`+strconv.Itoa(i)+`"}, "v": {"S": "`+pad+`"}}}`)
	}
	var counts []int
	var units []float64
	start := ""
	for {
		page := decodePage(t, must(t, s, "Query", `{"TableName": "pairs", "KeyConditionExpression": "pk = :a", "ReturnConsumedCapacity": "TOTAL",
			"ProjectionExpression": "sk", "ExpressionAttributeValues": {":a": {"S": "a"}}`+start+`}`))
		counts = append(counts, page.Count)
		units = append(units, page.ConsumedCapacity.CapacityUnits)
		if page.LastEvaluatedKey == nil {
			break
		}
		start = `, "ExclusiveStartKey": {"pk": {"S": "a"}, "sk": {"N": "` + page.LastEvaluatedKey["sk"]["N"] + `"}}`
	}
	if diff := cmp.Diff([]int{4, 4, 1}, counts); diff != "" {
		t.Errorf("items a page (-want +got):\n%s", diff)
	}
	// ceil(4 x 300,007 / 4096) / 2 and ceil(300,007 / 4096) / 2
	if diff := cmp.Diff([]float64{146.5, 146.5, 37}, units); diff != "" {
		t.Errorf("units a page (-want +got):\n%s", diff)
	}
}

// Each item counts with an overhead for the 1 MB of a page: here ten items are a page, although
// their bytes are below 1 MB. The consumed capacity counts only the bytes of the items, however
// they are read.
func TestPages_PageOverhead(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	must(t, s, "CreateTable", strings.Replace(createPair, `"BillingMode"`, `"LocalSecondaryIndexes": [{"IndexName": "by-sk",
		"KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}], "Projection": {"ProjectionType": "ALL"}}], "BillingMode"`, 1))
	put := func(i, bytes int) {
		t.Helper()
		must(t, s, "PutItem", fmt.Sprintf(`{"TableName": "pairs", "Item": {"pk": {"S": "0123456789"}, "sk": {"N": "%d"}, "v": {"S": "%s"}}}`, i, strings.Repeat("x", bytes)))
	}
	for i := 11; i < 20; i++ {
		put(i, 104_000)
	}
	put(21, 110_000)
	put(22, 1)
	for operation, reads := range map[string][]string{
		"Query": {
			`"KeyConditionExpression": "pk = :p"`, `"KeyConditionExpression": "pk = :p", "Select": "COUNT"`,
			`"KeyConditionExpression": "pk = :p", "ProjectionExpression": "sk"`, `"KeyConditionExpression": "pk = :p", "IndexName": "by-sk"`,
		},
		"Scan": {`"FilterExpression": "pk = :p"`},
	} {
		for _, read := range reads {
			t.Run(operation+" "+read, func(t *testing.T) {
				page := decodePage(t, must(t, s, operation, `{"TableName": "pairs", "ReturnConsumedCapacity": "TOTAL", "ExpressionAttributeValues": {":p": {"S": "0123456789"}}, `+read+`}`))
				// ceil((9 x 104,017 + 110,017) / 4096) / 2, which is below 1 MB
				if page.Count != 10 || page.LastEvaluatedKey["sk"]["N"] != "21" || page.ConsumedCapacity.CapacityUnits != 128 {
					t.Errorf("%d items to %v, %v units, want 10 to 21, 128", page.Count, page.LastEvaluatedKey, page.ConsumedCapacity.CapacityUnits)
				}
			})
		}
	}
}

// In the 1 MB of a page of an index, an item counts with the sort key of the index, not with that
// of the table. We have no recording of that. The test checks it to the byte.
func TestPages_PageOverheadOfGlobalIndex(t *testing.T) {
	t.Parallel()
	for last, want := range map[int]int{98_399: 10, 98_400: 9} {
		s := newTestServer(t)
		must(t, s, "CreateTable", `{"TableName": "pairs", "BillingMode": "PAY_PER_REQUEST",
			"AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}, {"AttributeName": "sk", "AttributeType": "N"}, {"AttributeName": "rk", "AttributeType": "S"}],
			"KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
			"GlobalSecondaryIndexes": [{"IndexName": "by-rk", "Projection": {"ProjectionType": "ALL"},
				"KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "rk", "KeyType": "RANGE"}]}]}`)
		put := func(i, bytes int) {
			must(t, s, "PutItem", fmt.Sprintf(`{"TableName": "pairs", "Item": {"pk": {"S": "0123456789"}, "sk": {"N": "%d"}, "rk": {"S": "%0200d"}, "v": {"S": "%s"}}}`, i, i, strings.Repeat("x", bytes)))
		}
		// An item counts its bytes, and 18 and its sort key for each block of 3,072 bytes
		// begun. Eight items of 110,022 + 36 x 218 are followed by one of 98,422 + 33 x 218,
		// the size from which the nine are 1 MB.
		for i := 11; i < 19; i++ {
			put(i, 110_000)
		}
		put(19, last)
		put(20, 1)
		for read, want := range map[string]int{`"IndexName": "by-rk"`: want, `"ConsistentRead": true`: 10} {
			page := decodePage(t, must(t, s, "Query", `{"TableName": "pairs", "KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": {"S": "0123456789"}}, `+read+`}`))
			if page.Count != want {
				t.Errorf("%s, the ninth item of %d bytes: %d items, want %d", read, last, page.Count, want)
			}
		}
	}
}

// Keys whose items would exceed 16 MB come back as unprocessed, and can be requested again
// unchanged.
func TestBatchGetItem_UnprocessedKeys(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	must(t, s, "CreateTable", createPair)
	pad := strings.Repeat("x", 400_000)
	var keys []string
	for i := range 45 {
		must(t, s, "PutItem", `{"TableName": "pairs", "Item": {"pk": {"S": "a"}, "sk": {"N": "`+strconv.Itoa(i)+`"}, "v": {"S": "`+pad+`"}}}`)
		keys = append(keys, `{"pk": {"S": "a"}, "sk": {"N": "`+strconv.Itoa(i)+`"}}`)
	}
	req := `{"pairs": {"ProjectionExpression": "sk", "Keys": [` + strings.Join(keys, ",") + `]}}`
	var counts []int
	for {
		var out struct {
			Responses       map[string][]map[string]map[string]string
			UnprocessedKeys jsonText
		}
		if err := json.Unmarshal([]byte(must(t, s, "BatchGetItem", `{"RequestItems": `+req+`}`)), &out); err != nil {
			t.Fatal(err)
		}
		counts = append(counts, len(out.Responses["pairs"]))
		if string(out.UnprocessedKeys) == "{}" {
			break
		}
		req = string(out.UnprocessedKeys)
	}
	if diff := cmp.Diff([]int{41, 4}, counts); diff != "" {
		t.Errorf("items an answer (-want +got):\n%s", diff)
	}
}

// jsonText is the JSON of a member.
type jsonText []byte

// UnmarshalJSON implements json.Unmarshaler.
func (j *jsonText) UnmarshalJSON(b []byte) error {
	*j = append((*j)[:0], b...)
	return nil
}

// Each item of a table is in one segment of a Scan, and each segment has pages. A start key of
// another segment is rejected.
func TestScan_Segments(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	must(t, s, "CreateTable", createPair)
	const items, total = 60, 4
	for i := range items {
		must(t, s, "PutItem", `{"TableName": "pairs", "Item": {"pk": {"S": "p`+strconv.Itoa(i%20)+`"}, "sk": {"N": "`+strconv.Itoa(i)+`"}}}`)
	}
	seen := map[string]int{}
	for segment := range total {
		start := ""
		for {
			req := `{"TableName": "pairs", "Limit": 7, "Segment": ` + strconv.Itoa(segment) + `, "TotalSegments": ` + strconv.Itoa(total) + start + `}`
			page := decodePage(t, must(t, s, "Scan", req))
			for _, item := range page.Items {
				seen[item["sk"]["N"]]++
			}
			last := page.LastEvaluatedKey
			if last == nil {
				break
			}
			start = `, "ExclusiveStartKey": {"pk": {"S": "` + last["pk"]["S"] + `"}, "sk": {"N": "` + last["sk"]["N"] + `"}}`
			other := `{"TableName": "pairs", "Segment": ` + strconv.Itoa((segment+1)%total) + `, "TotalSegments": ` + strconv.Itoa(total) + start + `}`
			if _, err := s.Call(t.Context(), "Scan", []byte(other)); err == nil || !strings.Contains(err.Error(), "correct Segment") {
				t.Errorf("a start key of another segment: %v", err)
			}
		}
	}
	if len(seen) != items {
		t.Errorf("the segments hold %d items, want %d", len(seen), items)
	}
	for sk, n := range seen {
		if n != 1 {
			t.Errorf("item %s was read %d times", sk, n)
		}
	}
}

// A new global index contains the existing items, and is removed with its attribute
// definition.
func TestUpdateTable_Index(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	must(t, s, "CreateTable", createPair)
	for i := range 30 {
		must(t, s, "PutItem", `{"TableName": "pairs", "Item": {"pk": {"S": "a"}, "sk": {"N": "`+strconv.Itoa(i)+`"}, "g": {"S": "`+strconv.Itoa(i%3)+`"}}}`)
	}
	must(t, s, "UpdateTable", `{"TableName": "pairs", "AttributeDefinitions": [{"AttributeName": "g", "AttributeType": "S"}, {"AttributeName": "sk", "AttributeType": "N"}],
		"GlobalSecondaryIndexUpdates": [{"Create": {"IndexName": "by-g", "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}], "Projection": {"ProjectionType": "KEYS_ONLY"}}}]}`)
	s.store.Wait() // waits for the backfill
	got := must(t, s, "Query", `{"TableName": "pairs", "IndexName": "by-g", "Select": "COUNT", "KeyConditionExpression": "g = :g AND sk >= :n", "ExpressionAttributeValues": {":g": {"S": "1"}, ":n": {"N": "16"}}}`)
	if want := `{"Count":5,"ScannedCount":5}`; got != want {
		t.Errorf("the new index answers %s, want %s", got, want)
	}
	if d := must(t, s, "DescribeTable", `{"TableName": "pairs"}`); !strings.Contains(d, `"IndexStatus":"ACTIVE"`) || strings.Contains(d, "Backfilling") {
		t.Errorf("after the backfill: %s", d)
	}
	must(t, s, "UpdateTable", `{"TableName": "pairs", "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "by-g"}}]}`)
	s.store.Wait()
	if d := must(t, s, "DescribeTable", `{"TableName": "pairs"}`); strings.Contains(d, "by-g") || strings.Contains(d, `"AttributeName":"g"`) {
		t.Errorf("after the deletion: %s", d)
	}
}

// If the Bigtable fails, the status is 503 if a retry may help, and otherwise 500 without the text
// of the error.
func TestServer_BrokenBigtable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    error
		status int
		code   string
	}{
		{status.Error(codes.Unavailable, "gone"), http.StatusServiceUnavailable, awserr.CodeServiceUnavailable},
		{status.Error(codes.DataLoss, "secret"), http.StatusInternalServerError, awserr.CodeInternalServerError},
		{errors.New("secret"), http.StatusInternalServerError, awserr.CodeInternalServerError},
	} {
		conn := &intercept.Conn{}
		s := newTestServer(t, func(o *Options) {
			conn.ClientConnInterface, o.Conn = o.Conn, conn
		})
		createPlain(t, s, "plain")
		conn.Before(func(context.Context, any) error { return c.err })
		w := post(s, "GetItem", `{"TableName": "plain", "Key": {"id": {"S": "1"}}}`)
		conn.Before(nil)
		if w.Code != c.status || !strings.Contains(w.Body.String(), "#"+c.code+`"`) || strings.Contains(w.Body.String(), "secret") {
			t.Errorf("%v: answered %d %s", c.err, w.Code, w.Body)
		}
	}
}

// A canceled call is not logged as a failure.
func TestServer_CanceledCall(t *testing.T) {
	t.Parallel()
	for _, gone := range []bool{true, false} {
		conn := &intercept.Conn{}
		var log strings.Builder
		s := newTestServer(t, func(o *Options) {
			conn.ClientConnInterface = o.Conn
			o.Conn, o.Logger = conn, slog.New(slog.NewTextHandler(&log, nil))
		})
		createPlain(t, s, "plain")
		ctx, cancel := context.WithCancel(t.Context())
		if gone {
			cancel()
		}
		conn.Before(func(context.Context, any) error { return status.Error(codes.Canceled, "context canceled") })
		_, err := s.Call(ctx, "GetItem", []byte(`{"TableName": "plain", "Key": {"id": {"S": "1"}}}`))
		conn.Before(nil)
		cancel()
		if logged := log.Len() > 0; err == nil || logged == gone {
			t.Errorf("client gone %v: %v, logged %q", gone, err, log.String())
		}
	}
}

// closer counts how often a body is closed.
type closer struct {
	*strings.Reader
	closed int
}

func (c *closer) Close() error {
	c.closed++
	return nil
}

func TestRoundTripper(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, canceled := range []bool{false, true} {
		body := &closer{Reader: strings.NewReader("{}")}
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://dynamodb.invalid/", body)
		r.Header.Set("Content-Type", wire.ContentTypeJSON)
		r.Header.Set("X-Amz-Target", targetDynamoDB+"ListTables")
		if canceled {
			cancel()
		}
		resp, err := s.RoundTripper().RoundTrip(r)
		if canceled != errors.Is(err, context.Canceled) {
			t.Errorf("canceled %v: %v", canceled, err)
		}
		if body.closed != 1 {
			t.Errorf("canceled %v: the body was closed %d times", canceled, body.closed)
		}
		if err != nil {
			continue
		}
		if resp.StatusCode != http.StatusOK || resp.Header.Get("X-Amzn-Requestid") == "" || resp.ContentLength != int64(len(`{"TableNames":[]}`)) {
			t.Errorf("answer %v", resp)
		}
		_ = resp.Body.Close()
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	conn := &intercept.Conn{}
	for _, c := range []struct {
		name string
		opts Options
		want string
	}{
		{"no connection", Options{}, "Options.Conn is nil"},
		{"account", Options{Conn: conn, AccountID: "12"}, `Options.AccountID is "12"`},
		{"messages", Options{Conn: conn, Messages: "none"}, `Options.Messages: "none" is unknown, want current, classic, af-south-1, `},
		{"lag", Options{Conn: conn, IndexLag: -1}, "Options.IndexLag is -1ns"},
		{"keys without signatures", Options{Conn: conn, NoAuth: true, AccessKeys: map[string]string{}}, "cannot be combined"},
		{"namespaces of mappings", Options{Conn: conn, Namespaced: true, Mappings: []*mapping.Mapping{nil}}, "cannot be combined"},
		{"mapping", Options{Conn: conn, Mappings: []*mapping.Mapping{nil}}, "Options.Mappings[0] is nil"},
	} {
		if _, err := New(t.Context(), c.opts); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// Items outside a mapping are rejected with the reason by every kind of write, and nothing is
// stored.
func TestOperations_OutsideMapping(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, func(o *Options) {
		o.Mappings = []*mapping.Mapping{mappingOf(t, catalogYAML), mappingOf(t, videoYAML)}
	})
	for _, c := range []struct{ operation, request, want string }{
		{"PutItem", `{"TableName": "Products", "Item": {"PK": {"S": "a#b"}, "SK": {"S": "c"}}}`, "E-DELIM"},
		{"UpdateItem", `{"TableName": "Products", "Key": {"PK": {"S": "a#b"}, "SK": {"S": "c"}}, "UpdateExpression": "SET v = :v", "ExpressionAttributeValues": {":v": {"S": "x"}}}`, "E-DELIM"},
		{"BatchWriteItem", `{"RequestItems": {"Products": [{"PutRequest": {"Item": {"PK": {"S": "a#b"}, "SK": {"S": "c"}}}}]}}`, "E-DELIM"},
		{"PutItem", `{"TableName": "Videos", "Item": {"PK": {"S": "1"}, "SK": {"S": "Other"}}}`, "SK"},
		{"BatchWriteItem", `{"RequestItems": {"Products": [{"PutRequest": {"Item": {"PK": {"S": "a"}, "SK": {"S": "b"}, "Price": {"N": "1"}}}}], "Videos": [{"PutRequest": {"Item": {"PK": {"S": "1"}, "SK": {"S": "Other"}}}}]}}`, "SK"},
	} {
		_, err := s.Call(t.Context(), c.operation, []byte(c.request))
		e, ok := awserr.As(err)
		if !ok || e.Code != awserr.CodeValidation || !strings.Contains(e.Message, c.want) {
			t.Errorf("%s %s: %v, want a ValidationException with %s", c.operation, c.request, err, c.want)
		}
	}
	for _, table := range []string{"Products", "Videos"} {
		if got := must(t, s, "Scan", `{"TableName": "`+table+`"}`); got != `{"Items":[],"Count":0,"ScannedCount":0}` {
			t.Errorf("%s holds %s", table, got)
		}
	}
	got := must(t, s, "PutItem", `{"TableName": "Products", "Item": {"PK": {"S": "1"}, "SK": {"S": "2"}, "Price": {"N": "3.50"}}}`)
	if got != "{}" {
		t.Errorf("PutItem inside the mapping: %s", got)
	}
	want := `{"Item":{"PK":{"S":"1"},"Price":{"N":"3.5"},"SK":{"S":"2"}}}`
	if got := must(t, s, "GetItem", `{"TableName": "Products", "Key": {"PK": {"S": "1"}, "SK": {"S": "2"}}}`); got != want {
		t.Errorf("the mapped item is %s, want %s", got, want)
	}
	if d := must(t, s, "DescribeTable", `{"TableName": "Products"}`); !strings.Contains(d, `"BillingMode":"PAY_PER_REQUEST"`) {
		t.Errorf("a mapped table is described as %s", d)
	}
}
