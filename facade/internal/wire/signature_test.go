package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/internal/exchange"
)

// testTime is the time of the answers.
var testTime = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

const (
	testKey    = "AKIDEXAMPLE"
	testSecret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
)

var testCredentials = aws.Credentials{AccessKeyID: testKey, SecretAccessKey: testSecret}

// signedRequest returns a request signed by the official signer, in the header or in the
// query.
func signedRequest(tb testing.TB, body string, signed time.Time, inQuery bool, change ...func(*http.Request)) *http.Request {
	tb.Helper()
	target := "http://localhost:8000/?a=b%20c&A=%2F&a=a"
	if inQuery {
		target += "&X-Amz-Expires=300"
	}
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(body))
	r.Header.Set("Content-Type", ContentTypeJSON)
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810.ListTables")
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

// Signatures of the official signer are accepted, unless the request was changed afterwards.
func TestSignature_Verified(t *testing.T) {
	t.Parallel()
	secrets := map[string]string{testKey: testSecret, "other": "secret"}
	const (
		mismatch = `{"__type":"com.amazon.coral.service#InvalidSignatureException","message":"The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. Consult the service documentation for details."}` // row 265, unconfirmed
		good     = ""
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
		signed          time.Duration // relative to now
		TransitionAfter func(*http.Request)
		want            string
	}{
		{"as signed", false, 0, nil, good},
		{"as signed, in the query", true, 0, nil, good},
		{"no body", false, 0, func(r *http.Request) { r.Body = http.NoBody }, mismatch},
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
		{"an unknown key", false, 0, inHeader(testKey, "nobody"), fault("UnrecognizedClientException", "The security token included in the request is invalid.")}, // row 264, unconfirmed
		{"15 minutes old", false, -15 * time.Minute, nil, good},
		{"older", false, -15*time.Minute - time.Second, nil, fault("InvalidSignatureException", "Signature expired: 20261120T114459Z is now earlier than 20261120T114500Z (20261120T120000Z - 15 min.)")}, // row 262, unconfirmed
		{"15 minutes ahead", false, 15 * time.Minute, nil, good},
		{"more", false, 15*time.Minute + time.Second, nil, fault("InvalidSignatureException", "Signature not yet current: 20261120T121501Z is still later than 20261120T121500Z (20261120T120000Z + 15 min.)")}, // row 263, unconfirmed
		{"over its five minutes", true, -5*time.Minute - time.Second, nil, fault("InvalidSignatureException", "Signature expired: 20261120T115459Z is now earlier than 20261120T115500Z (20261120T120000Z - 5 min.)")},
		{"no number of seconds", true, 0, inQuery(queryExpires, "x"), fault("InvalidSignatureException", "X-Amz-Expires should be a number of seconds, got 'x'")},
		{"another algorithm", false, 0, inHeader(signatureAlgorithm, "AWS4-ECDSA-P256-SHA256"), fault("IncompleteSignatureException", "Unsupported AWS 'algorithm': 'AWS4-ECDSA-P256-SHA256'.")},                      // row 254, unconfirmed
		{"a date of another form", false, 0, func(r *http.Request) { r.Header.Set("X-Amz-Date", "2026-11-20") }, fault("IncompleteSignatureException", "Date must be in ISO-8601 'basic format'. Got '2026-11-20'.")}, // row 255, unconfirmed
		{"a short scope", false, 0, inHeader("/localhost/dynamodb/aws4_request", "/localhost"), fault("IncompleteSignatureException", "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term, got 'AKIDEXAMPLE/20261120/localhost'")}, // row 256, unconfirmed
		{"a scope of another day", false, 0, inHeader("/20261120/", "/20261119/"), fault("InvalidSignatureException", "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: '20261119' != '20261120', from '20261120T120000Z'.")},       // row 257, unconfirmed
		{"no region", false, 0, inHeader("/localhost/", "//"), fault("InvalidSignatureException", "Credential should be scoped to a valid region.")},                                                                                                                         // row 258, unconfirmed
		{"another service", false, 0, inHeader("/dynamodb/", "/sqs/"), fault("InvalidSignatureException", "Credential should be scoped to correct service: 'dynamodb'.")},                                                                                                    // row 259, unconfirmed
		{"another terminator", false, 0, inHeader("aws4_request", "aws5"), fault("InvalidSignatureException", "Credential should be scoped with a valid terminator: 'aws4_request', not 'aws5'.")},                                                                           // row 260, unconfirmed
		{"the host not signed", false, 0, inHeader("host;", ""), fault("InvalidSignatureException", "'Host' must be a 'SignedHeader' in the AWS Authorization.")},                                                                                                            // row 261, unconfirmed
		{"no signature", false, 0, func(r *http.Request) { r.Header.Del("Authorization") }, fault("MissingAuthenticationTokenException", "Request is missing Authentication Token")},                                                                                         // row 250, unconfirmed
		{"no date", false, 0, func(r *http.Request) {
			r.Header.Del("X-Amz-Date")
			r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=a, SignedHeaders=host, Signature=b")
		}, fault("IncompleteSignatureException", "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. Authorization=AWS4-HMAC-SHA256 Credential=a, SignedHeaders=host, Signature=b")}, // row 252, unconfirmed
		{"parts missing in the query", true, 0, func(r *http.Request) { r.URL.RawQuery = "X-Amz-Algorithm=a&X-Amz-Date=b&X-Amz-SignedHeaders=c" }, fault("IncompleteSignatureException", "AWS query-string parameters must include 'X-Amz-Credential'. AWS query-string parameters must include 'X-Amz-Signature'. Re-examine the query-string parameters.")}, // row 253, unconfirmed
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := signedRequest(t, `{"a":1}`, testTime.Add(c.signed), c.query)
			if c.TransitionAfter != nil {
				c.TransitionAfter(r)
			}
			received := exchange.FromHTTP(r)
			sent, _, err := ReadBody(received)
			if err != nil {
				t.Fatal(err)
			}
			who, err := Authenticate(received, sent, secrets, testTime)
			if got := answerOf(t, err); got != c.want {
				t.Errorf("answered\n%s, want\n%s", got, c.want)
			}
			if err == nil && (who.AccessKey != testKey || who.Region != "localhost") {
				t.Errorf("signed by %+v", who)
			}
		})
	}
}

// answerOf returns the answer to a request, "" if it is accepted.
func answerOf(tb testing.TB, err error) string {
	tb.Helper()
	if err == nil {
		return ""
	}
	e, ok := awserr.As(err)
	if !ok {
		tb.Fatalf("%v is no answer", err)
	}
	return string(EncodeError(e))
}

func readCloser(text string) *bodyReader { return &bodyReader{strings.NewReader(text)} }

type bodyReader struct{ *strings.Reader }

func (*bodyReader) Close() error { return nil }

// No invented signature ends the server or is accepted.
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
		received := exchange.FromHTTP(r)
		sig, err := parseSignature(received)
		if err != nil {
			answerOf(t, err)
			return
		}
		sig.caller()
		if err := sig.verify(received, []byte("{}"), secrets, []time.Time{testTime}); err == nil {
			// Only the owner of the secret can do that.
			signed := signedRequest(t, "{}", testTime, sig.inQuery)
			if !strings.Contains(signed.Header.Get("Authorization")+signed.URL.RawQuery, sig.signature) {
				t.Fatalf("%q %q %q is taken", header, date, rawQuery)
			}
		} else {
			answerOf(t, err)
		}
	})
}
