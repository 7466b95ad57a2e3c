// Package probe marks calls that a lab, a console or a test makes to inspect data. Faults do not
// affect such calls, and they are not recorded or counted like calls of clients.
package probe

import (
	"context"
	"strconv"
	"strings"

	"google.golang.org/grpc/metadata"

	"github.com/tabletop-emu/tabletop/internal/cause"
)

// Header is the metadata key that marks such calls.
const Header = "x-tabletop-testkit"

// With returns a context that marks its calls as probes.
func With(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, Header, "probe")
}

// Marked reports whether an incoming call is marked as a probe.
func Marked(ctx context.Context) bool {
	return len(metadata.ValueFromIncomingContext(ctx, Header)) > 0
}

// ids begins the ids of DynamoDB requests that are probes. No endpoint makes such an id.
const ids = "console-"

// ID returns the request id of the n-th DynamoDB request that is a probe.
func ID(n uint64) string { return ids + strconv.FormatUint(n, 10) }

// IsID reports whether the DynamoDB request with the given id is a probe.
func IsID(id string) bool { return strings.HasPrefix(id, ids) }

// Is reports whether an incoming call belongs to a probe rather than a client. For a call that a
// DynamoDB request caused, only the request decides, not the mark of the call.
func Is(ctx context.Context) bool {
	if !Marked(ctx) {
		return false
	}
	id, ok := cause.Of(ctx)
	if !ok {
		return len(metadata.ValueFromIncomingContext(ctx, cause.Header)) == 0
	}
	return id == "" || IsID(id)
}
