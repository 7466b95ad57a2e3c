package facade

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/tabletop-emu/tabletop/internal/clock"
)

const (
	testKey    = "AKIDEXAMPLE"
	testSecret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
)

var testCredentials = aws.Credentials{AccessKeyID: testKey, SecretAccessKey: testSecret}

// signedRequest is a request signed by the official signer, in the header or in
// the query.
func signedRequest(tb testing.TB, body string, signed time.Time, inQuery bool, change ...func(*http.Request)) *http.Request {
	tb.Helper()
	target := "http://localhost:8000/?a=b%20c&A=%2F&a=a"
	if inQuery {
		target += "&X-Amz-Expires=300"
	}
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(body))
	r.Header.Set("Content-Type", contentTypeJSON)
	r.Header.Set("X-Amz-Target", targetDynamoDB+"ListTables")
	r.Header.Set("X-Spaces", "  a   b ")
	r.Header.Add("X-Spaces", "c")
	for _, c := range change {
		c(r)
	}
	sum := sha256.Sum256([]byte(body))
	signer := v4.NewSigner()
	if !inQuery {
		err := signer.SignHTTP(tb.Context(), testCredentials, r, hex.EncodeToString(sum[:]), "dynamodb", "localhost", signed)
		if err != nil {
			tb.Fatal(err)
		}
		return r
	}
	uri, headers, err := signer.PresignHTTP(tb.Context(), testCredentials, r, hex.EncodeToString(sum[:]), "dynamodb", "localhost", signed)
	if err != nil {
		tb.Fatal(err)
	}
	if r.URL, err = url.Parse(uri); err != nil {
		tb.Fatal(err)
	}
	for name, values := range headers {
		if name != "Host" {
			r.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	return r
}

func answerTo(s *Server, r *http.Request) string {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Body.String()
}

// What the official signer signs is taken, and nothing that was changed since.
func TestSignature_Verified(t *testing.T) {
	t.Parallel()
	now := clock.NewFrozen(testTime)
	s := newTestServer(t, func(o *Options) {
		o.NoAuth, o.Now, o.AccessKeys = false, now.Now, map[string]string{testKey: testSecret, "other": "secret"}
	})
	const (
		mismatch = `{"__type":"com.amazon.coral.service#InvalidSignatureException","message":"The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. Consult the service documentation for details."}`
		good     = `{"TableNames":[]}`
	)
	fault := func(code, message string) string {
		return `{"__type":"com.amazon.coral.service#` + code + `","message":"` + message + `"}`
	}
	inHeader := func(old, with string) func(*http.Request) {
		return func(r *http.Request) {
			r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), old, with, 1))
		}
	}
	inQuery := func(name, value string) func(*http.Request) {
		return func(r *http.Request) {
			q := r.URL.Query()
			q.Set(name, value)
			r.URL.RawQuery = q.Encode()
		}
	}
	for _, c := range []struct {
		name            string
		query           bool
		signed          time.Duration // after now
		TransitionAfter func(*http.Request)
		want            string
	}{
		{"as signed", false, 0, nil, good},
		{"as signed, in the query", true, 0, nil, good},
		{"another body", false, 0, func(r *http.Request) { r.Body = http.NoBody }, `{"__type":"com.amazon.coral.service#SerializationException"}`},
		{"another body of the same size", false, 0, func(r *http.Request) { r.Body = readCloser(`{"b":1}`) }, mismatch},
		{"another body, in the query", true, 0, func(r *http.Request) { r.Body = readCloser(`{"b":1}`) }, mismatch},
		{"another header", false, 0, func(r *http.Request) { r.Header.Set("X-Spaces", "a b") }, mismatch},
		{"a header that is not signed", false, 0, func(r *http.Request) { r.Header.Set("User-Agent", "other") }, good},
		{"another host", false, 0, func(r *http.Request) { r.Host = "localhost:8001" }, mismatch},
		{"another query", false, 0, inQuery("a", "c"), mismatch},
		{"another query, signed in it", true, 0, inQuery("a", "c"), mismatch},
		{"another path", false, 0, func(r *http.Request) { r.URL.Path = "/a" }, mismatch},
		{"another region", false, 0, inHeader("/localhost/", "/mars/"), mismatch},
		{"a known key, not the one", false, 0, inHeader(testKey, "other"), mismatch},
		{"another signature", false, 0, inHeader("Signature=", "Signature=0"), mismatch},
		{"an unknown key", false, 0, inHeader(testKey, "nobody"), fault("UnrecognizedClientException", "The security token included in the request is invalid.")},
		{"15 minutes old", false, -15 * time.Minute, nil, good},
		{"older", false, -15*time.Minute - time.Second, nil, fault("InvalidSignatureException", "Signature expired: 20261120T114459Z is now earlier than 20261120T114500Z (20261120T120000Z - 15 min.)")},
		{"15 minutes ahead", false, 15 * time.Minute, nil, good},
		{"more", false, 15*time.Minute + time.Second, nil, fault("InvalidSignatureException", "Signature not yet current: 20261120T121501Z is still later than 20261120T121500Z (20261120T120000Z + 15 min.)")},
		{"over its five minutes", true, -5*time.Minute - time.Second, nil, fault("InvalidSignatureException", "Signature expired: 20261120T115459Z is now earlier than 20261120T115500Z (20261120T120000Z - 5 min.)")},
		{"no number of seconds", true, 0, inQuery(queryExpires, "x"), fault("InvalidSignatureException", "X-Amz-Expires should be a number of seconds, got 'x'")},
		{"another algorithm", false, 0, inHeader(signatureAlgorithm, "AWS4-ECDSA-P256-SHA256"), fault("IncompleteSignatureException", "Unsupported AWS 'algorithm': 'AWS4-ECDSA-P256-SHA256'.")},
		{"a date of another form", false, 0, func(r *http.Request) { r.Header.Set("X-Amz-Date", "2026-11-20") }, fault("IncompleteSignatureException", "Date must be in ISO-8601 'basic format'. Got '2026-11-20'.")},
		{"a short scope", false, 0, inHeader("/localhost/dynamodb/aws4_request", "/localhost"), fault("IncompleteSignatureException", "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term, got 'AKIDEXAMPLE/20261120/localhost'")},
		{"a scope of another day", false, 0, inHeader("/20261120/", "/20261119/"), fault("InvalidSignatureException", "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: '20261119' != '20261120', from '20261120T120000Z'.")},
		{"no region", false, 0, inHeader("/localhost/", "//"), fault("InvalidSignatureException", "Credential should be scoped to a valid region.")},
		{"another service", false, 0, inHeader("/dynamodb/", "/sqs/"), fault("InvalidSignatureException", "Credential should be scoped to correct service: 'dynamodb'.")},
		{"another terminator", false, 0, inHeader("aws4_request", "aws5"), fault("InvalidSignatureException", "Credential should be scoped with a valid terminator: 'aws4_request', not 'aws5'.")},
		{"the host not signed", false, 0, inHeader("host;", ""), fault("InvalidSignatureException", "'Host' must be a 'SignedHeader' in the AWS Authorization.")},
		{"no signature", false, 0, func(r *http.Request) { r.Header.Del("Authorization") }, fault("MissingAuthenticationTokenException", "Request is missing Authentication Token")},
		{"no date", false, 0, func(r *http.Request) {
			r.Header.Del("X-Amz-Date")
			r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=a, SignedHeaders=host, Signature=b")
		}, fault("IncompleteSignatureException", "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. Authorization=AWS4-HMAC-SHA256 Credential=a, SignedHeaders=host, Signature=b")},
		{"parts missing in the query", true, 0, func(r *http.Request) { r.URL.RawQuery = "X-Amz-Algorithm=a&X-Amz-Date=b&X-Amz-SignedHeaders=c" }, fault("IncompleteSignatureException", "AWS query-string parameters must include 'X-Amz-Credential'. AWS query-string parameters must include 'X-Amz-Signature'. Re-examine the query-string parameters.")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := signedRequest(t, `{"a":1}`, testTime.Add(c.signed), c.query)
			if c.TransitionAfter != nil {
				c.TransitionAfter(r)
			}
			if got := answerTo(s, r); got != c.want {
				t.Errorf("answered\n%s, want\n%s", got, c.want)
			}
		})
	}
}

func readCloser(text string) *bodyReader { return &bodyReader{strings.NewReader(text)} }

type bodyReader struct{ *strings.Reader }

func (*bodyReader) Close() error { return nil }

// The official client is understood through a port and in this process; the
// signature covers the body as it is sent, compressed.
func TestSignature_Client(t *testing.T) {
	t.Parallel()
	now := clock.New().Now
	s := newTestServer(t, func(o *Options) { o.NoAuth, o.Now, o.AccessKeys = false, now, map[string]string{testKey: testSecret} })
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	list := func(url string, transport http.RoundTripper, secret string) error {
		c := dynamodb.New(dynamodb.Options{
			BaseEndpoint: aws.String(url), Region: "localhost", HTTPClient: &http.Client{Transport: transport},
			Credentials: credentials.NewStaticCredentialsProvider(testKey, secret, "token"),
		})
		_, err := c.ListTables(t.Context(), &dynamodb.ListTablesInput{})
		return err
	}
	for url, transport := range map[string]http.RoundTripper{h.URL: transport, "http://dynamodb.invalid": s.RoundTripper()} {
		if err := list(url, transport, testSecret); err != nil {
			t.Errorf("%s: %v", url, err)
		}
		if err := list(url, transport, "other"); err == nil || !strings.Contains(err.Error(), "InvalidSignatureException") {
			t.Errorf("%s, another secret: %v", url, err)
		}
	}
	packed, err := compress("gzip", []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	r := signedRequest(t, string(packed), now(), false, func(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") })
	if got := answerTo(s, r); got != `{"TableNames":[]}` {
		t.Errorf("a compressed body: %s", got)
	}
}

// Keys and regions share the tables, unless they are kept apart; then they are
// so after a restart too, and what is due in each goes on.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	for _, namespaced := range []bool{false, true} {
		t.Run(fmt.Sprint(namespaced), func(t *testing.T) {
			t.Parallel()
			var opts Options
			now := clock.NewFrozen(testTime)
			s := newTestServer(t, func(o *Options) {
				o.NoAuth, o.Namespaced, o.Now = false, namespaced, now.Now
				opts = *o
			})
			call := func(s *Server, key, region, operation, body string) string {
				return post(s, operation, body, func(r *http.Request) {
					r.Header.Set("X-Amz-Date", "20261120T120000Z")
					r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+key+"/20261120/"+region+"/dynamodb/aws4_request, SignedHeaders=host, Signature=00")
				}).Body.String()
			}
			create := `{"TableName": "plain", "BillingMode": "PAY_PER_REQUEST", "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}], "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}]}`
			put := `{"TableName": "plain", "Item": {"id": {"S": "1"}, "at": {"N": "1795176001"}}}`
			enable := `{"TableName": "plain", "TimeToLiveSpecification": {"AttributeName": "at", "Enabled": true}}`
			call(s, "a", "localhost", "CreateTable", create)
			call(s, "a", "localhost", "PutItem", put)
			call(s, "a", "localhost", "UpdateTimeToLive", enable)
			lists := func(s *Server, want map[string]string) {
				t.Helper()
				for who, tables := range want {
					key, region, _ := strings.Cut(who, "/")
					if got := call(s, key, region, "ListTables", "{}"); got != tables {
						t.Errorf("%s sees %s, want %s", who, got, tables)
					}
				}
			}
			const one, none = `{"TableNames":["plain"]}`, `{"TableNames":[]}`
			want := map[string]string{"a/localhost": one, "a/eu-west-1": one, "b/localhost": one}
			if namespaced {
				want["a/eu-west-1"], want["b/localhost"] = none, none
			}
			lists(s, want)
			if got := must(t, s, "ListTables", "{}"); (got == none) != namespaced {
				t.Errorf("a call without signature sees %s", got)
			}
			region := "us-east-1"
			if namespaced {
				region = "localhost"
				call(s, "b", "localhost", "CreateTable", create)
				call(s, "b", "localhost", "PutItem", put)
			}
			if got := call(s, "a", "localhost", "DescribeTable", `{"TableName": "plain"}`); !strings.Contains(got, `"arn:aws:dynamodb:`+region+`:`) {
				t.Errorf("the table is %s", got)
			}
			again, err := New(t.Context(), opts)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := again.Close(); err != nil {
					t.Error(err)
				}
			})
			now.Advance(2 * time.Second)
			if n, err := again.ReapExpired(t.Context()); n != 1 || err != nil {
				t.Errorf("%d items expired, %v, want 1", n, err)
			}
			if namespaced {
				want["b/localhost"] = one
				if got := call(again, "b", "localhost", "GetItem", `{"TableName": "plain", "Key": {"id": {"S": "1"}}}`); !strings.Contains(got, "1795176001") {
					t.Errorf("the other item of that key is %s", got)
				}
			}
			lists(again, want)
		})
	}
}

// Callers and tables end at a limit. Who was there before goes on.
func TestNamespaces_Limits(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, func(o *Options) {
		o.NoAuth, o.Namespaced = false, true
		o.maxTables, o.maxNamespaces = 2, 2
	})
	call := func(key, operation, body string) string {
		return post(s, operation, body, func(r *http.Request) {
			r.Header.Set("X-Amz-Date", "20261120T120000Z")
			r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+key+"/20261120/localhost/dynamodb/aws4_request, SignedHeaders=host, Signature=00")
		}).Body.String()
	}
	for _, c := range []struct{ key, table, want string }{
		{"a", "one", `"ACTIVE"`},
		{"a", "two", `"ACTIVE"`},
		{"a", "three", "LimitExceededException"},
		{"b", "one", `"ACTIVE"`},
		{"c", "one", "LimitExceededException"},
		{"a", "two", "ResourceInUseException"},
		{"b", "two", `"ACTIVE"`},
	} {
		got := call(c.key, "CreateTable", `{"TableName": "`+c.table+`", "BillingMode": "PAY_PER_REQUEST",
			"AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}], "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}]}`)
		if !strings.Contains(got, c.want) {
			t.Errorf("%s creates %s: %s, want %s", c.key, c.table, got, c.want)
		}
	}
	call("a", "DeleteTable", `{"TableName": "one"}`)
	if got := call("a", "ListTables", "{}"); got != `{"TableNames":["two"]}` {
		t.Errorf("tables %s", got)
	}
}

// No signature, however made up, ends the server or is taken for a right one.
func FuzzSignature(f *testing.F) {
	good := signedRequest(f, "{}", testTime, false)
	f.Add(good.Header.Get("Authorization"), good.Header.Get("X-Amz-Date"), "")
	query := signedRequest(f, "{}", testTime, true)
	f.Add("", "", query.URL.RawQuery)
	for _, header := range []string{
		"AWS4-HMAC-SHA256", "AWS4-HMAC-SHA256 Credential", "AWS4-HMAC-SHA256 Credential=,SignedHeaders=,Signature=", "Basic YTpi",
		"AWS4-HMAC-SHA256 Credential=" + testKey + "/20261120/localhost/dynamodb/aws4_request, SignedHeaders=host;;;, Signature=" + strings.Repeat("0", 64),
	} {
		f.Add(header, "20261120T120000Z", "")
	}
	f.Add("", "", "X-Amz-Algorithm=%&X-Amz-Expires=-1")
	secrets := map[string]string{testKey: testSecret}
	f.Fuzz(func(t *testing.T, header, date, rawQuery string) {
		r := &http.Request{Method: http.MethodPost, Host: "localhost:8000", Header: http.Header{}, URL: &url.URL{Path: "/", RawQuery: rawQuery}}
		if header != "" {
			r.Header.Set("Authorization", header)
		}
		if date != "" {
			r.Header.Set("X-Amz-Date", date)
		}
		sig, err := parseSignature(r)
		if _, ok := asError(err); err != nil && !ok {
			t.Fatalf("%q: %v is no answer", header, err)
		}
		if err != nil {
			return
		}
		sig.caller().namespace()
		if err := sig.verify(r, []byte("{}"), testTime, secrets); err == nil {
			// Only who knows the secret can do that.
			signed := signedRequest(t, "{}", testTime, sig.inQuery)
			if !strings.Contains(signed.Header.Get("Authorization")+signed.URL.RawQuery, sig.signature) {
				t.Fatalf("%q %q %q is taken", header, date, rawQuery)
			}
		} else if _, ok := asError(err); !ok {
			t.Fatalf("%q: %v is no answer", header, err)
		}
	})
}
