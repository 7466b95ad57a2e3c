package facade

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

func signed(r *http.Request) {
	r.Header.Set("X-Amz-Date", "20261120T120000Z")
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=any/20261120/mars/dynamodb/aws4_request, SignedHeaders=host, Signature=00")
}

// spelled returns the values of a header with exactly this spelling.
func spelled(w *httptest.ResponseRecorder, name string) []string { return w.Header()[name] }

// TestServer_Framing sends requests to the handler, and over each transport.
func TestServer_Framing(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, func(o *Options) { o.NoAuth = false })
	addrs := map[string]string{}
	for _, transport := range transports {
		addrs[transport] = listening(t, transport, s.Handler())
	}
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	const (
		serialization = `{"__type":"com.amazon.coral.service#SerializationException"}`
		unknown       = `{"__type":"com.amazon.coral.service#UnknownOperationException"}`
		missingToken  = `{"__type":"com.amazon.coral.service#MissingAuthenticationTokenException","message":"Request is missing Authentication Token"}`
	)
	for _, c := range []struct {
		name   string
		body   string
		change []func(*http.Request)
		status int
		want   string
	}{
		{"a signature of any key and region", `{}`, []func(*http.Request){signed}, 200, `{"TableNames":[]}`},
		{"content type with a charset", `{}`, []func(*http.Request){signed, header("Content-Type", "application/x-amz-json-1.0; charset=utf-8")}, 200, `{"TableNames":[]}`},
		{"unknown content type", `{}`, []func(*http.Request){signed, header("Content-Type", "text/plain")}, 404, "<UnknownOperationException/>\n"},
		{"other method", `{}`, []func(*http.Request){signed, func(r *http.Request) { r.Method = http.MethodPut }}, 404, "<UnknownOperationException/>\n"},
		{"no body", ``, []func(*http.Request){signed}, 400, serialization},
		{"not JSON", `{"a"`, []func(*http.Request){signed}, 400, serialization},
		{"no target", `{}`, []func(*http.Request){signed, header("X-Amz-Target", "")}, 400, unknown},
		{"target of another service", `{}`, []func(*http.Request){signed, header("X-Amz-Target", "SQS.ListTables")}, 400, unknown},
		{"streams", `{}`, []func(*http.Request){signed, header("X-Amz-Target", "DynamoDBStreams_20120810.ListStreams")}, 200, `{"Streams":[]}`},
		{"no signature", `{}`, nil, 400, missingToken},
		{"another scheme", `{}`, []func(*http.Request){header("Authorization", "Basic YTpi")}, 400, missingToken},
		{"JSON before target", `[`, []func(*http.Request){header("X-Amz-Target", "")}, 400, serialization},
		{"target before signature", `{}`, []func(*http.Request){header("X-Amz-Target", "")}, 400, unknown},
		{
			"incomplete signature", `{}`,
			[]func(*http.Request){header("Authorization", "AWS4-HMAC-SHA256 Credential=a")},
			400,
			`{"__type":"com.amazon.coral.service#IncompleteSignatureException","message":"Authorization header requires 'Signature' parameter. Authorization header requires 'SignedHeaders' parameter. Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. Authorization=AWS4-HMAC-SHA256 Credential=a"}`, // row 251, unconfirmed
		},
		{
			"signed twice", `{}`,
			[]func(*http.Request){signed, func(r *http.Request) { r.URL.RawQuery = "X-Amz-Algorithm=AWS4-HMAC-SHA256" }},
			400,
			`{"__type":"com.amazon.coral.service#InvalidSignatureException","message":"Found both 'X-Amz-Algorithm' as a query-string param and 'Authorization' as HTTP header."}`, // row 249, unconfirmed
		},
		{"signed in the query", `{}`, []func(*http.Request){func(r *http.Request) {
			r.URL.RawQuery = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=a&X-Amz-Signature=b&X-Amz-SignedHeaders=c&X-Amz-Date=d"
		}}, 200, `{"TableNames":[]}`},
		{"a type error", `{"Limit":"1"}`, []func(*http.Request){signed}, 400, `{"__type":"com.amazon.coral.service#SerializationException","Message":"STRING_VALUE cannot be converted to Integer"}`},
		{"an error of validation", `{"Limit":0}`, []func(*http.Request){signed}, 400, `{"__type":"com.amazon.coral.validate#ValidationException","message":"1 validation error detected: Value '0' at 'limit' failed to satisfy constraint: Member must have value greater than or equal to 1"}`},
		{"an unknown encoding", `{}`, []func(*http.Request){signed, header("Content-Encoding", "br")}, 500, `{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError","message":"Content-Encoding \"br\" is not supported"}`},
		{"a body that is not gzip", `{}`, []func(*http.Request){signed, header("Content-Encoding", "gzip")}, 500, `{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError","message":"the request body does not match its Content-Encoding: unexpected EOF"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for transport, addr := range addrs {
				status, header, body := postOver(t, addr, "ListTables", c.body, c.change...)
				if status != c.status || string(body) != c.want {
					t.Errorf("%s: %d %s; want %d %s", transport, status, body, c.status, c.want)
				} else if crc := header.Get("x-amz-crc32"); crc != strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10) {
					t.Errorf("%s: x-amz-crc32 is %s", transport, crc)
				}
			}
			w := post(s, "ListTables", c.body, c.change...)
			if w.Code != c.status {
				t.Errorf("status %d, want %d", w.Code, c.status)
			}
			if diff := cmp.Diff(c.want, w.Body.String()); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
			if id := spelled(w, "x-amzn-RequestId"); len(id) != 1 || !regexp.MustCompile("^[0-9A-Z]{52}$").MatchString(id[0]) {
				t.Errorf("x-amzn-RequestId is %q", id)
			}
			want := strconv.FormatUint(uint64(crc32.ChecksumIEEE(w.Body.Bytes())), 10)
			if got := spelled(w, "x-amz-crc32"); len(got) != 1 || got[0] != want {
				t.Errorf("x-amz-crc32 is %q, want %s", got, want)
			}
		})
	}
}

// The checksums of the two fixed answers are AWS's.
func TestServer_FixedAnswers(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://dynamodb.us-east-1.amazonaws.com/", nil))
	if got := w.Body.String(); w.Code != http.StatusOK || got != "healthy: dynamodb.us-east-1.amazonaws.com " {
		t.Errorf("GET /: %d %q", w.Code, got)
	}
	if got := spelled(w, "x-amz-crc32"); len(got) != 1 || got[0] != "3128867991" {
		t.Errorf("health checksum %q", got)
	}
	w = post(s, "ListTables", "{}", func(r *http.Request) { r.Header.Del("Content-Type") })
	if got := spelled(w, "x-amz-crc32"); len(got) != 1 || got[0] != "3552371480" {
		t.Errorf("404 checksum %q", got)
	}
}

func TestServer_CORS(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	r := httptest.NewRequest(http.MethodOptions, "/", nil)
	r.Header.Set("Origin", "http://example.test")
	r.Header.Set("Access-Control-Request-Headers", "x-amz-target")
	r.Header.Set("Access-Control-Request-Method", "POST")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	want := map[string]string{
		"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Headers": "x-amz-target",
		"Access-Control-Allow-Methods": "POST", "Access-Control-Max-Age": "172800",
	}
	for name, value := range want {
		if got := w.Header().Get(name); got != value {
			t.Errorf("%s: %q, want %q", name, got, value)
		}
	}
	w = post(s, "ListTables", "{}", func(r *http.Request) { r.Header.Set("Origin", "http://example.test") })
	if w.Header().Get("Access-Control-Allow-Origin") != "*" || w.Header().Get("Access-Control-Expose-Headers") == "" {
		t.Errorf("answer to a page: %v", w.Header())
	}
}

func gzipped(tb testing.TB, text string) []byte {
	tb.Helper()
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	if _, err := io.WriteString(w, text); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return buf.Bytes()
}

func TestServer_Compression(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	createPlain(t, s, "plain")
	long := strings.Repeat("x", 5000)
	put := `{"TableName": "plain", "Item": {"id": {"S": "1"}, "v": {"S": "` + long + `"}}}`
	w := post(s, "PutItem", string(gzipped(t, put)), func(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") })
	if w.Code != http.StatusOK {
		t.Fatalf("compressed request: %d %s", w.Code, w.Body)
	}
	get := `{"TableName": "plain", "Key": {"id": {"S": "1"}}}`
	accept := func(value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Accept-Encoding", value) }
	}
	w = post(s, "GetItem", get, accept("gzip;q=1.0, deflate"))
	if got := w.Header().Get("Content-Encoding"); got != "gzip" {
		t.Fatalf("Content-Encoding %q", got)
	}
	sent := w.Body.Bytes()
	if got, want := spelled(w, "x-amz-crc32")[0], strconv.FormatUint(uint64(crc32.ChecksumIEEE(sent)), 10); got != want {
		t.Errorf("the checksum is not that of the bytes sent: %s, want %s", got, want)
	}
	zr, err := gzip.NewReader(bytes.NewReader(sent))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(zr)
	if err != nil || !strings.Contains(string(plain), long) {
		t.Errorf("unpacked %d bytes: %v", len(plain), err)
	}
	var deflated bytes.Buffer
	zw := zlib.NewWriter(&deflated)
	if _, err := io.WriteString(zw, put); err != nil {
		t.Fatal(err)
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	w = post(s, "PutItem", deflated.String(), func(r *http.Request) { r.Header.Set("Content-Encoding", "deflate") })
	if w.Code != http.StatusOK {
		t.Errorf("deflated request: %d %s", w.Code, w.Body)
	}
	w = post(s, "GetItem", get, accept("deflate"))
	if got := w.Header().Get("Content-Encoding"); got != "deflate" {
		t.Fatalf("Content-Encoding %q", got)
	}
	inflated, err := zlib.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := io.ReadAll(inflated); err != nil || !strings.Contains(string(plain), long) {
		t.Errorf("inflated %d bytes: %v", len(plain), err)
	}
	for _, value := range []string{"", "identity", "gzip;q=0"} {
		if got := post(s, "GetItem", get, accept(value)).Header().Get("Content-Encoding"); got != "" {
			t.Errorf("Accept-Encoding %q: answered with %q", value, got)
		}
	}
	if got := post(s, "ListTables", "{}", accept("gzip")).Header().Get("Content-Encoding"); got != "" {
		t.Errorf("a short answer came as %q", got)
	}
}

func TestServer_BodyLimit(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	pad := strings.Repeat(" ", wire.MaxRequestBytes)
	if w := post(s, "ListTables", "{}"+pad[:wire.MaxRequestBytes-2]); w.Code != http.StatusOK {
		t.Errorf("16 MB: %d", w.Code)
	}
	if w := post(s, "ListTables", "{}"+pad); w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("above 16 MB: %d", w.Code)
	}
	// The bomb has some kilobytes, which decompress to more than the limit.
	bomb := gzipped(t, "{}"+pad)
	w := post(s, "ListTables", string(bomb), func(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") })
	if w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("%d bytes that unpack to more than 16 MB: %d", len(bomb), w.Code)
	}
}

func TestServer_PanicIsInternalServerError(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	op := &operation{name: "Broken", handle: func(context.Context, *Server, *operation, rawRequest) ([]byte, error) { panic("broken") }}
	_, err := s.run(t.Context(), op, rawRequest{})
	e, ok := awserr.As(err)
	if !ok || e.Code != awserr.CodeInternalServerError || e.HTTPStatus != http.StatusInternalServerError {
		t.Fatalf("a panic answers %v", err)
	}
	must(t, s, "ListTables", "{}")
}

// createPlain creates a table whose key is the string id.
func createPlain(tb testing.TB, s *Server, name string) {
	tb.Helper()
	must(tb, s, "CreateTable", `{"TableName": "`+name+`", "BillingMode": "PAY_PER_REQUEST",
		"AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
		"KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}]}`)
}

func FuzzCall(f *testing.F) {
	s := newTestServer(f)
	createPlain(f, s, "plain")
	indexOf := map[string]uint8{}
	for i, op := range operations {
		indexOf[op.name] = uint8(i)
	}
	for _, seed := range []struct{ operation, body string }{
		{"ListTables", `{}`},
		{"ListTables", `null`},
		{"PutItem", `{"TableName": "plain", "Item": {"id": {"S": "1"}, "v": {"L": [{"N": "1e9"}, {"M": {"x": {"BS": ["AQ=="]}}}]}}}`},
		{"PutItem", `{"TableName": "plain", "Item": {"id": {"S": "1"}}, "Expected": {"a": {"ComparisonOperator": "BETWEEN", "AttributeValueList": [{"N": "1"}, {"N": "2"}]}}}`},
		{"UpdateItem", `{"TableName": "plain", "Key": {"id": {"S": "1"}}, "UpdateExpression": "SET a = :a", "ExpressionAttributeValues": {":a": {"NULL": true}}}`},
		{"UpdateItem", `{"TableName": "plain", "Key": {"id": {"S": "1"}}, "AttributeUpdates": {"a": {"Action": "ADD", "Value": {"L": []}}}}`},
		{"DeleteItem", `{"TableName": "plain", "Key": {"id": {"S": "1"}}, "ConditionExpression": "attribute_exists(id)"}`},
		{"GetItem", `{"TableName": "plain", "Key": {"id": {"S": "1"}}, "AttributesToGet": ["v"]}`},
		{"Query", `{"TableName": "plain", "KeyConditionExpression": "id = :a", "ExpressionAttributeValues": {":a": {"S": "1"}}, "ScanIndexForward": "yes"}`},
		{"Scan", `{"TableName": "plain", "Segment": 0, "TotalSegments": 2, "ExclusiveStartKey": {"id": {"S": "1"}}}`},
		{"BatchGetItem", `{"RequestItems": {"plain": {"Keys": [{"id": {"S": "1"}}]}}}`},
		{"BatchWriteItem", `{"RequestItems": {"plain": [{"PutRequest": {"Item": {"id": {"S": "1"}}}}, {"DeleteRequest": null}]}}`},
		{"TransactGetItems", `{"TransactItems": [{"Get": {"TableName": "plain", "Key": {"id": {"S": "1"}}, "ProjectionExpression": "v"}}, {"Get": null}]}`},
		{"TransactWriteItems", `{"ClientRequestToken": "t", "TransactItems": [{"Put": {"TableName": "plain", "Item": {"id": {"S": "1"}}}}, {"ConditionCheck": {"TableName": "plain", "Key": {"id": {"S": "2"}}, "ConditionExpression": "attribute_not_exists(id)"}}]}`},
		{"UpdateTable", `{"TableName": "plain", "GlobalSecondaryIndexUpdates": [{"Create": null}, {"Delete": {}}]}`},
		{"CreateTable", `{"TableName": "abc", "KeySchema": [], "AttributeDefinitions": [{}], "GlobalSecondaryIndexes": [{"Projection": {}}]}`},
		{"TagResource", `{"ResourceArn": "arn:aws:dynamodb:r:1:table/plain", "Tags": [{"Key": "k"}]}`},
	} {
		f.Add(indexOf[seed.operation], seed.body)
	}
	f.Fuzz(func(t *testing.T, op uint8, body string) {
		name := operations[int(op)%len(operations)].name
		_, err := s.Call(t.Context(), name, []byte(body))
		if err == nil {
			return
		}
		if e, ok := awserr.As(err); !ok || e.HTTPStatus >= http.StatusInternalServerError {
			t.Errorf("%s %s: %v", name, body, err)
		}
	})
}
