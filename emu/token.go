package emu

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"strings"

	"google.golang.org/grpc/tap"

	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
)

// tokenGate returns a handle that rejects RPCs without the token, sent as `authorization:
// Bearer TOKEN` like gRPC's OAuth credentials. It runs before a request is read, for every
// service of a listener, including health and reflection.
func tokenGate(token string) tap.ServerInHandle {
	want := sha256.Sum256([]byte(token)) // comparing hashes does not reveal the token's length
	return func(ctx context.Context, info *tap.Info) (context.Context, error) {
		values := info.Header.Get("authorization")
		if len(values) == 0 {
			return nil, refusal.NoToken()
		}
		scheme, given, _ := strings.Cut(values[0], " ")
		got := sha256.Sum256([]byte(given))
		same := subtle.ConstantTimeCompare(got[:], want[:]) == 1
		if len(values) > 1 || !strings.EqualFold(scheme, "Bearer") || !same {
			return nil, refusal.WrongToken()
		}
		return ctx, nil
	}
}
