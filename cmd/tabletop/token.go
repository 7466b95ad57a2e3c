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

// tokenPatience is how long a server of tokens may take to answer; then it is asked anew.
const tokenPatience = 10 * time.Second

// fetchedToken shows, with each call, the token that source makes. To make one may take
// as long as the server of tokens likes, and source cannot be told to stop: it works apart
// from the calls, each of which waits no longer than it may take itself.
type fetchedToken struct {
	source oauth2.TokenSource

	mu   sync.Mutex
	last *tokenFetch // nil: none was asked for
}

// tokenFetch is one question for a token.
type tokenFetch struct {
	done  chan struct{} // closed when there are the others
	token *oauth2.Token
	err   error
}

// defaultCredentials are the application default credentials of this machine.
func defaultCredentials(ctx context.Context) (*fetchedToken, error) {
	ctx = context.WithValue(ctx, oauth2.HTTPClient, &http.Client{Timeout: tokenPatience})
	found, err := google.FindDefaultCredentials(ctx, cloudScope)
	if err != nil {
		return nil, fmt.Errorf("application default credentials: %w", err)
	}
	return &fetchedToken{source: found.TokenSource}, nil
}

// GetRequestMetadata returns the header. An error that may pass by itself is Unavailable.
func (f *fetchedToken) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	info, _ := credentials.RequestInfoFromContext(ctx)
	if err := credentials.CheckSecurityLevel(info.AuthInfo, credentials.PrivacyAndIntegrity); err != nil {
		return nil, status.Errorf(codes.Unauthenticated, "a token is only shown over TLS: %v", err)
	}
	for {
		fetch, own := f.fetch()
		select {
		case <-fetch.done:
		case <-ctx.Done():
			return nil, status.Error(codes.Unavailable, "there is no token to show: the server of tokens of the application default credentials gives no answer")
		}
		switch {
		case fetch.err == nil:
			return map[string]string{"authorization": fetch.token.Type() + " " + fetch.token.AccessToken}, nil
		case !own && tookTooLong(fetch.err): // what others waited for says nothing of this call
		default:
			return nil, status.Errorf(refusalCode(fetch.err), "there is no token to show: application default credentials: %v", fetch.err)
		}
	}
}

// RequireTransportSecurity says that the token may only go over TLS.
func (*fetchedToken) RequireTransportSecurity() bool { return true }

// fetch returns the question whose answer counts, own if it was begun for the caller.
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

// over reports whether another question is to be asked.
func (t *tokenFetch) over() bool {
	select {
	case <-t.done:
		return t.err != nil || !t.token.Valid()
	default:
		return false
	}
}

// tookTooLong reports whether err says that no answer came in time.
func tookTooLong(err error) bool {
	timed, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	return ok && timed.Timeout()
}

// refusalCode is the status of a call for which there is no token: a server of tokens
// that refuses will do so again, any other error may pass.
func refusalCode(err error) codes.Code {
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refused.Response != nil && refused.Response.StatusCode < http.StatusInternalServerError {
		return codes.Unauthenticated
	}
	return codes.Unavailable
}
