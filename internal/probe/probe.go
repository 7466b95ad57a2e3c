// Package probe marks the calls that a lab, a console or a test makes to inspect data. They
// belong to no client: faults do not affect them, and they are neither kept nor counted.
package probe

import (
	"context"

	"google.golang.org/grpc/metadata"

	"github.com/tabletop-emu/tabletop/internal/cause"
)

// Header marks such calls in their metadata.
const Header = "x-tabletop-testkit"

// With returns a context whose calls are marked.
func With(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, Header, "probe")
}

// Marked reports whether a call that arrived is marked.
func Marked(ctx context.Context) bool {
	return len(metadata.ValueFromIncomingContext(ctx, Header)) > 0
}

// Is reports whether a call that arrived is of no client. One that is made for a request of DynamoDB is that
// request's, marked or not.
func Is(ctx context.Context) bool {
	if !Marked(ctx) {
		return false
	}
	id, ok := cause.Of(ctx)
	if !ok {
		return len(metadata.ValueFromIncomingContext(ctx, cause.Header)) == 0
	}
	return id == ""
}
