package emu

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"strings"

	"google.golang.org/grpc/tap"

	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
)

// tokenGate returns what refuses the RPCs that do not carry a token, as
// `authorization: Bearer TOKEN`, the form of gRPC's OAuth credentials. It looks
// at the headers alone, before a byte of a request is read, and stands before
// every service of a listener, health and reflection with them.
func tokenGate(token string) tap.ServerInHandle {
	want := sha256.Sum256([]byte(token)) // comparing sums tells nothing of the token's length
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
