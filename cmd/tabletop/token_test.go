package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/oauth2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
)

// tokenAnswer is a delayed answer of a token server.
type tokenAnswer struct {
	after time.Duration
	token string // "": see err
	valid time.Duration
	err   error
}

// answers are the answers of a token server, in turn.
type tokenAnswers struct {
	t    *testing.T
	next []tokenAnswer
}

func (a *tokenAnswers) Token() (*oauth2.Token, error) {
	if len(a.next) == 0 {
		a.t.Error("a token more is asked for")
		return nil, errors.New("no more")
	}
	answer := a.next[0]
	a.next = a.next[1:]
	time.Sleep(answer.after)
	if answer.token == "" {
		return nil, answer.err
	}
	return &oauth2.Token{AccessToken: answer.token, Expiry: time.Now().Add(answer.valid)}, nil
}

// TestFetchedToken: a call waits for a token at most until its own deadline, and the request
// continues for later calls.
func TestFetchedToken(t *testing.T) {
	t.Parallel()
	late := &url.Error{Op: "Post", URL: "https://tokens", Err: context.DeadlineExceeded}
	refused := &oauth2.RetrieveError{Response: &http.Response{StatusCode: http.StatusBadRequest}, ErrorCode: "invalid_grant"}
	down := &oauth2.RetrieveError{Response: &http.Response{StatusCode: http.StatusServiceUnavailable}}
	for name, c := range map[string]struct {
		answers []tokenAnswer
		calls   []string // in turn, two seconds apart: token, or code and text
		each    time.Duration
	}{
		"one token for all":   {[]tokenAnswer{{token: "a", valid: time.Hour}}, []string{"a", "a", "a"}, 0},
		"one that runs out":   {[]tokenAnswer{{token: "a", valid: 13 * time.Second}, {token: "b", valid: time.Hour}}, []string{"a", "a", "b"}, 0},
		"one that takes long": {[]tokenAnswer{{after: 8 * time.Second, token: "a", valid: time.Hour}}, []string{"Unavailable does not answer", "a"}, 0},
		"a server that hangs": {
			[]tokenAnswer{{after: 8 * time.Second, err: late}, {after: 7 * time.Second, token: "a", valid: time.Hour}},
			[]string{"Unavailable does not answer", "Unavailable does not answer", "a"},
			0,
		},
		"a server that refuses":    {[]tokenAnswer{{err: refused}}, []string{"Unauthenticated invalid_grant"}, 0},
		"a server that is down":    {[]tokenAnswer{{err: down}, {token: "a", valid: time.Hour}}, []string{"Unavailable no access token is available", "a"}, 0},
		"a call without an end":    {[]tokenAnswer{{after: 10 * time.Second, err: late}}, []string{"Unavailable deadline exceeded"}, time.Hour},
		"a machine without a road": {[]tokenAnswer{{err: &url.Error{Op: "Post", URL: "https://tokens", Err: errors.New("no route")}}}, []string{"Unavailable no route"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := &fetchedToken{source: &tokenAnswers{t: t, next: c.answers}}
				each := c.each
				if each == 0 {
					each = 5 * time.Second
				}
				for i, want := range c.calls {
					begun := time.Now()
					got, err := showToken(t, f, each)
					if token, ok := strings.CutPrefix(got, "Bearer "); ok && (token != want || err != nil) || !ok && !explains(err, want) {
						t.Errorf("call %d: %q, %v, want %s", i, got, err, want)
					}
					if after := time.Since(begun); after > each {
						t.Errorf("call %d: after %v", i, after)
					}
					time.Sleep(2 * time.Second)
				}
			})
		})
	}
	if _, err := (&fetchedToken{}).GetRequestMetadata(t.Context()); status.Code(err) != codes.Unauthenticated {
		t.Errorf("in plain text: %v", err)
	}
}

// explains reports whether an error has the wanted code and text.
func explains(err error, want string) bool {
	code, text, _ := strings.Cut(want, " ")
	return err != nil && status.Code(err).String() == code && strings.Contains(err.Error(), text)
}

// showToken returns the header of a call over TLS.
func showToken(t *testing.T, f *fetchedToken, patience time.Duration) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ctx = credentials.NewContextWithRequestInfo(ctx, credentials.RequestInfo{AuthInfo: securedInfo{}})
	header, err := f.GetRequestMetadata(ctx)
	return header["authorization"], err
}

// securedInfo describes a TLS connection.
type securedInfo struct{}

func (securedInfo) AuthType() string { return "tls" }

func (securedInfo) GetCommonAuthInfo() credentials.CommonAuthInfo {
	return credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}
}

// TestConnect_TokensHang: if the token server does not answer, an endpoint and a load end
// within the deadline of a call, and name the token server.
func TestConnect_TokensHang(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key, _ := certificate(t)
	ports := filepath.Join(dir, "ports.json")
	serveHere(t, "--bigtable", "127.0.0.1:0", "--dynamodb", "off", "--tls-cert", cert, "--tls-key", key,
		"--token-file", writeFile(t, dir, "token", "a-static-token\n"), "--port-file", ports)
	endpoint := bigtableOf(t, ports)
	items := writeFile(t, dir, "items.jsonl", `{"id":{"S":"a"},"n":{"N":"1"}}`)
	const target = "projects/my-project/instances/my-instance"
	reach := []string{"--endpoint", endpoint, "--ca", cert, "--call-timeout", "1s"}
	for _, args := range [][]string{
		{"serve", "--target", target, "--dynamodb", "127.0.0.1:0"},
		{"serve", "--target", target, "--dynamodb", "127.0.0.1:0", "--check"},
		{"migrate", "load", items, "--key", "id", "--target", target},
		{"migrate", "verify", items, "--key", "id", "--against", target},
	} {
		t.Run(strings.Join(args[:2], " "), func(t *testing.T) {
			t.Parallel()
			tokens := listen(t)
			var asked atomic.Bool
			go func() {
				for {
					conn, err := tokens.Accept()
					if err != nil {
						return
					}
					defer func() { _ = conn.Close() }()
					asked.Store(true)
				}
			}()
			env := []string{"GOOGLE_APPLICATION_CREDENTIALS=" + writeFile(t, t.TempDir(), "adc.json",
				`{"type":"authorized_user","client_id":"c","client_secret":"s","refresh_token":"r","token_uri":"http://`+tokens.Addr().String()+`"}`)}
			out, code := tabletopIn(t, env, slices.Concat(args, reach)...)
			if !asked.Load() { // a busy machine may need the second for the connection
				t.Logf("%s did not come to ask for a token:\n%s", strings.Join(args, " "), out)
			} else if code != exitEnvironment || !strings.Contains(out, "no access token is available") || !strings.Contains(out, "within 1s") {
				t.Errorf("%s: exit code %d, want %d and the hanging server:\n%s", strings.Join(args, " "), code, exitEnvironment, out)
			}
		})
	}
}

// bigtableOf returns the Bigtable address in a port file.
func bigtableOf(t *testing.T, ports string) string {
	t.Helper()
	text, err := os.ReadFile(ports)
	if err != nil {
		t.Fatal(err)
	}
	var found struct{ Bigtable string }
	if err := json.Unmarshal(text, &found); err != nil {
		t.Fatal(err)
	}
	return found.Bigtable
}
