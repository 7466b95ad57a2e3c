package facade

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
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

// The server accepts the signatures of the AWS SDK, through a port and in this process. They cover
// the compressed body.
func TestServer_SignedByClient(t *testing.T) {
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
	packed := gzipped(t, `{}`)
	w := post(s, "ListTables", string(packed), func(r *http.Request) {
		r.Header.Set("Content-Encoding", "gzip")
		sum := sha256.Sum256(packed)
		key := aws.Credentials{AccessKeyID: testKey, SecretAccessKey: testSecret}
		if err := v4.NewSigner().SignHTTP(t.Context(), key, r, hex.EncodeToString(sum[:]), "dynamodb", "localhost", now()); err != nil {
			t.Fatal(err)
		}
	})
	if got := w.Body.String(); got != `{"TableNames":[]}` {
		t.Errorf("a compressed body: %s", got)
	}
}

// Clients sign with the time of their machine, or with the Date of an answer. The server accepts
// both after its clock was moved.
func TestServer_SignedWhileClockIsMoved(t *testing.T) {
	t.Parallel()
	wall, now := clock.NewFrozen(testTime), clock.NewFrozen(testTime)
	s := newTestServer(t, func(o *Options) {
		o.NoAuth, o.Now, o.wall, o.AccessKeys = false, now.Now, wall, map[string]string{testKey: testSecret}
	})
	now.Advance(25 * time.Hour)
	for _, c := range []struct {
		signed time.Time
		want   string
	}{
		{wall.Now(), `{"TableNames":[]}`},
		{now.Now(), `{"TableNames":[]}`},
		{wall.Now().Add(time.Hour), "Signature expired: 20261120T130000Z is now earlier than 20261121T124500Z (20261121T130000Z - 15 min.)"},
	} {
		w := post(s, "ListTables", `{}`, func(r *http.Request) {
			sum := sha256.Sum256([]byte(`{}`))
			key := aws.Credentials{AccessKeyID: testKey, SecretAccessKey: testSecret}
			if err := v4.NewSigner().SignHTTP(t.Context(), key, r, hex.EncodeToString(sum[:]), "dynamodb", "localhost", c.signed); err != nil {
				t.Fatal(err)
			}
		})
		if got := w.Body.String(); !strings.Contains(got, c.want) {
			t.Errorf("signed at %v: %s", c.signed, got)
		}
	}
}
