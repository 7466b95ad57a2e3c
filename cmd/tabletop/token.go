package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
)

// tokenPatience is how long a token server may take to answer before the request is repeated.
const tokenPatience = 10 * time.Second

// fetchedToken sends, with each call, a token from source. source may block for long and cannot
// be canceled, so it runs in the background, and each call waits at most until its own
// deadline.
type fetchedToken struct {
	source oauth2.TokenSource

	mu   sync.Mutex
	last *tokenFetch // nil before the first request
}

// tokenFetch is one request for a token.
type tokenFetch struct {
	done  chan struct{} // closed when the other fields are set
	token *oauth2.Token
	err   error
}

// defaultCredentials returns the application default credentials of this machine.
func defaultCredentials(ctx context.Context) (*fetchedToken, error) {
	ctx = context.WithValue(ctx, oauth2.HTTPClient, &http.Client{Timeout: tokenPatience})
	found, err := google.FindDefaultCredentials(ctx, cloudScope)
	if err != nil {
		return nil, fmt.Errorf("application default credentials: %w", err)
	}
	return &fetchedToken{source: found.TokenSource}, nil
}

// GetRequestMetadata returns the header. A transient error is Unavailable.
func (f *fetchedToken) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	info, _ := credentials.RequestInfoFromContext(ctx)
	if err := credentials.CheckSecurityLevel(info.AuthInfo, credentials.PrivacyAndIntegrity); err != nil {
		return nil, status.Errorf(codes.Unauthenticated, "a token is only sent over TLS: %v", err)
	}
	for {
		fetch, own := f.fetch()
		select {
		case <-fetch.done:
		case <-ctx.Done():
			return nil, status.Error(codes.Unavailable, "no access token is available: the token server of the application default credentials does not answer")
		}
		switch {
		case fetch.err == nil:
			return map[string]string{"authorization": fetch.token.Type() + " " + fetch.token.AccessToken}, nil
		case !own && tookTooLong(fetch.err): // a deadline of an earlier caller does not apply to this call
		default:
			return nil, status.Errorf(refusalCode(fetch.err), "no access token is available: application default credentials: %v", fetch.err)
		}
	}
}

// RequireTransportSecurity reports that the token requires TLS.
func (*fetchedToken) RequireTransportSecurity() bool { return true }

// fetch returns the current request, or starts a new one if that is over. own means that this
// call started it.
func (f *fetchedToken) fetch() (fetch *tokenFetch, own bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last != nil && !f.last.over() {
		return f.last, false
	}
	fetch = &tokenFetch{done: make(chan struct{})}
	f.last = fetch
	go func() {
		defer close(fetch.done)
		fetch.token, fetch.err = f.source.Token()
	}()
	return fetch, true
}

// over reports whether a new request is needed.
func (t *tokenFetch) over() bool {
	select {
	case <-t.done:
		return t.err != nil || !t.token.Valid()
	default:
		return false
	}
}

// tookTooLong reports whether err is a timeout.
func tookTooLong(err error) bool {
	timed, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	return ok && timed.Timeout()
}

// refusalCode returns the status of a call without a token: a refusal of the token server is
// permanent, other errors are transient.
func refusalCode(err error) codes.Code {
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refused.Response != nil && refused.Response.StatusCode < http.StatusInternalServerError {
		return codes.Unauthenticated
	}
	return codes.Unavailable
}
