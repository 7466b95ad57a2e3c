package facade

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

// The answers for endpoint discovery, and the text of the health check, name the server's own
// endpoint.
func TestEndpoints(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	host := strings.TrimPrefix(h.URL, "http://")
	for url, want := range map[string]string{h.URL: host, "http://dynamodb.invalid:8000": "dynamodb.invalid:8000"} {
		client := &http.Client{Transport: s.RoundTripper()}
		if url == h.URL {
			client = h.Client()
		}
		db := dynamodb.New(dynamodb.Options{
			BaseEndpoint: aws.String(url), Region: "localhost", HTTPClient: client,
			Credentials: credentials.NewStaticCredentialsProvider(testKey, testSecret, ""),
		})
		out, err := db.DescribeEndpoints(t.Context(), &dynamodb.DescribeEndpointsInput{})
		if err != nil || len(out.Endpoints) != 1 || *out.Endpoints[0].Address != want {
			t.Errorf("%s: %+v, %v; want %s", url, out, err, want)
		}
	}
	r := httptest.NewRequest(http.MethodPost, "http://here:8000/", nil)
	if got, err := s.CallAs(r, nil, "DescribeEndpoints", []byte("{}")); err != nil || string(got) != `{"Endpoints":[{"Address":"here:8000","CachePeriodInMinutes":1440}]}` {
		t.Errorf("CallAs: %s, %v", got, err)
	}
	for path, want := range map[string]string{"/": "healthy: here:8000 ", "/health": "<UnknownOperationException/>\n"} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://here:8000"+path, nil))
		if got := w.Body.String(); got != want {
			t.Errorf("GET %s: %d %q, want %q", path, w.Code, got, want)
		}
	}
}

// A body that cannot be decompressed is an internal error, as on AWS.
func TestBody_BrokenEncoding(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	whole := string(gzipped(t, `{}`))
	for name, c := range map[string]struct{ coding, body, want string }{
		"unknown":      {"garbage", `{}`, `Content-Encoding \"garbage\" is not supported`},
		"no gzip":      {"gzip", `{}`, "the request body does not match its Content-Encoding: unexpected EOF"},
		"no deflate":   {"deflate", `{}`, "the request body does not match its Content-Encoding: zlib: invalid header"},
		"part of gzip": {"gzip", whole[:len(whole)-1], "unexpected EOF"},
		"empty":        {"gzip", "", "the request body does not match its Content-Encoding: EOF"},
	} {
		w := post(s, "ListTables", c.body, func(r *http.Request) { r.Header.Set("Content-Encoding", c.coding) })
		got := w.Body.String()
		if w.Code != http.StatusInternalServerError || !strings.HasPrefix(got, `{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError","message":"`) || !strings.Contains(got, c.want) {
			t.Errorf("%s: %d %s, want 500 and %q", name, w.Code, got, c.want)
		}
	}
	if w := post(s, "ListTables", whole, func(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") }); w.Code != http.StatusOK {
		t.Errorf("gzip: %d %s", w.Code, w.Body)
	}
}

// Operations without an answer send an empty body, which clients treat as success.
func TestBody_EmptyAnswers(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	createPlain(t, s, "plain")
	const arn = "arn:aws:dynamodb:us-east-1:000000000000:table/plain"
	for operation, body := range map[string]string{
		"TagResource": `{"ResourceArn": "` + arn + `", "Tags": [{"Key": "a", "Value": "b"}]}`, "UntagResource": `{"ResourceArn": "` + arn + `", "TagKeys": ["a"]}`,
	} {
		if w := post(s, operation, body); w.Code != http.StatusOK || w.Body.Len() > 0 || w.Header().Get("Content-Length") != "0" {
			t.Errorf("%s: %d %q, %v", operation, w.Code, w.Body, w.Header())
		}
	}
	db := dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String("http://dynamodb.invalid"), Region: "localhost", HTTPClient: &http.Client{Transport: s.RoundTripper()},
		Credentials: credentials.NewStaticCredentialsProvider(testKey, testSecret, ""),
	})
	if _, err := db.TagResource(t.Context(), &dynamodb.TagResourceInput{ResourceArn: aws.String(arn), Tags: []types.Tag{{Key: aws.String("a"), Value: aws.String("b")}}}); err != nil {
		t.Error(err)
	}
	if _, err := db.UntagResource(t.Context(), &dynamodb.UntagResourceInput{ResourceArn: aws.String(arn), TagKeys: []string{"a"}}); err != nil {
		t.Error(err)
	}
	// A put has an answer without members.
	if w := post(s, "PutItem", `{"TableName": "plain", "Item": {"id": {"S": "1"}}}`); w.Body.String() != "{}" {
		t.Errorf("PutItem: %q", w.Body)
	}
}

// Without a body, the signature is checked before the body's absence, and the target before
// both.
func TestBody_NoBody(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, func(o *Options) { o.NoAuth, o.AccessKeys = false, map[string]string{testKey: testSecret} })
	lax := newTestServer(t, func(o *Options) { o.NoAuth = false })
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	const scope = "AWS4-HMAC-SHA256 Credential=cassandra/2/3/4/aws4_request SignedHeaders=x-amz-date;host Signature=123"
	for _, c := range []struct {
		name   string
		server *Server
		change []func(*http.Request)
		want   string
	}{
		{"no signature", s, nil, "MissingAuthenticationTokenException"},
		{"no signature, any taken", lax, nil, "MissingAuthenticationTokenException"},
		{"parts apart by blanks, expired", s, []func(*http.Request){header("X-Amz-Date", "20170101T010101Z"), header("Authorization", scope)}, `InvalidSignatureException","message":"Signature expired`},
		{"from the future", s, []func(*http.Request){header("X-Amz-Date", "30200101T010101Z"), header("Authorization", scope)}, `InvalidSignatureException","message":"Signature not yet current`},
		{"a scope of other days", s, []func(*http.Request){header("X-Amz-Date", "20261120T120000Z"), header("Authorization", scope)}, `InvalidSignatureException","message":"Date in Credential scope`},
		{"any taken", lax, []func(*http.Request){signed}, "SerializationException"},
		{"no target", s, []func(*http.Request){header("X-Amz-Target", "")}, "UnknownOperationException"},
	} {
		if w := post(c.server, "ListTables", "", c.change...); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s: %d %s, want %s", c.name, w.Code, w.Body, c.want)
		}
	}
}

// A request without content type and without body is treated as JSON. A request with another
// content type, or with a body but no content type, gets the status 404. Both are recorded on
// AWS, in dynalite's tests of connections.
func TestHTTP_ContentTypes(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	for _, c := range []struct {
		contentType, target, body string
		status                    int
		answerType, want          string
	}{
		{"", "", "", 400, "application/json", "UnknownOperationException"},
		{"", "DynamoDB_20120810.ListTables", "", 400, "application/json", "SerializationException"},
		{"", "DynamoDB_20120810.ListTables", "{}", 404, "", "<UnknownOperationException/>"},
		{"application/json", "DynamoDB_20120810.ListTables", "{}", 200, "application/json", "TableNames"},
		{"  application/json  ;  charset=utf-8", "", "{}", 400, "application/json", "UnknownOperationException"},
		{"application/json", "DynamoDB_20120810.ListTables", "hi", 400, "application/json", "SerializationException"},
		{"application/x-amz-json-1.0", "DynamoDB_20120810.ListTables", "{}", 200, "application/x-amz-json-1.0", "TableNames"},
		{"application/x-amz-json-1.0;x", "", "{}", 400, "application/x-amz-json-1.0", "UnknownOperationException"},
		{"application/x-amz-json-1.1", "DynamoDB_20120810.ListTables", "{}", 404, "", "<UnknownOperationException/>"},
		{"application/jsonasdf", "DynamoDB_20120810.ListTables", "", 404, "", "<UnknownOperationException/>"},
		{"", "", strings.Repeat("a", 16<<20), 404, "", "<UnknownOperationException/>"},
		{"", "", strings.Repeat("a", 16<<20+1), 413, "application/json", "16777217 bytes"},
	} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(c.body))
		if c.contentType != "" {
			r.Header.Set("Content-Type", c.contentType)
		}
		if c.target != "" {
			r.Header.Set("X-Amz-Target", c.target)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != c.status || w.Header().Get("Content-Type") != c.answerType || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%q, %q, %q: %d %s %s", c.contentType, c.target, c.body[:min(len(c.body), 80)], w.Code, w.Header().Get("Content-Type"), w.Body)
		}
	}
}

// The CORS headers let a web page read the headers of an answer. An answer to a request without
// Origin has no CORS headers.
func TestHTTP_ExposedHeaders(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	for _, method := range []string{http.MethodOptions, http.MethodGet, http.MethodPost} {
		for _, origin := range []string{"", "http://example.test"} {
			r := httptest.NewRequest(method, "/", nil)
			if origin != "" {
				r.Header.Set("Origin", origin)
			}
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			if got := w.Header().Get("Access-Control-Expose-Headers"); (got != "") != (origin != "") {
				t.Errorf("%s from %q: Access-Control-Expose-Headers is %q", method, origin, got)
			}
			if got := w.Header().Get("Access-Control-Max-Age"); (got != "") != (origin != "" && method == http.MethodOptions) {
				t.Errorf("%s from %q: Access-Control-Max-Age is %q", method, origin, got)
			}
		}
	}
}

// The request line and headers are limited to 16 KB.
func TestHTTP_HeaderLimit(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	for _, c := range []struct {
		name, query string
		headers     map[string]string
		want        int
	}{
		{"short", "", map[string]string{"Header1": "dog", "Header2": "cat"}, http.StatusOK},
		{"long headers", "", map[string]string{"Header1": strings.Repeat("x", 8192), "Header2": strings.Repeat("y", 8192)}, http.StatusBadRequest},
		{"half as long", "", map[string]string{"Header1": strings.Repeat("x", 8192)}, http.StatusOK},
		{"a long line", "?" + strings.Repeat("x", 17000), nil, http.StatusBadRequest},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.URL+"/"+c.query, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", wire.ContentTypeJSON)
		r.Header.Set("X-Amz-Target", targetDynamoDB+"ListTables")
		for name, value := range c.headers {
			r.Header.Set(name, value)
		}
		answer, err := h.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := answer.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if answer.StatusCode != c.want {
			t.Errorf("%s: %d, want %d", c.name, answer.StatusCode, c.want)
		}
	}
}

// If a client writes the whole of a rejected body before it reads, it still gets the answer,
// whether the body has a length or is chunked.
func TestServeHTTP_TooLargeBodyIsAnswered(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(newTestServer(t))
	t.Cleanup(server.Close)
	const size = 24 << 20
	const json = "Content-Type: application/x-amz-json-1.0\r\n"
	for _, head := range []string{
		json + fmt.Sprintf("Content-Length: %d\r\n\r\n", size),
		json + fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n", size),
		fmt.Sprintf("Content-Length: %d\r\n\r\n", size), // with another content type
	} {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_, err = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-Target: DynamoDB_20120810.ListTables\r\n"+head)
		if err == nil {
			_, err = io.Copy(conn, strings.NewReader(strings.Repeat("a", size)+"\r\n0\r\n\r\n"))
		}
		if err != nil {
			t.Fatalf("writing the body: %v", err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("reading the answer: %v", err)
		}
		if resp.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("the answer is %s", resp.Status)
		}
		_ = resp.Body.Close()
	}
}
