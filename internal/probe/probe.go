// Package probe marks the calls that a lab, a console or a test makes to inspect data. These
// are not a client's: faults do not affect them, and they are not recorded or counted.
package probe

import (
	"context"
	"strconv"
	"strings"

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

// ids begins the ids of DynamoDB requests that are probes. No endpoint makes such an id.
const ids = "console-"

// ID returns the id of the n-th DynamoDB request that is a probe.
func ID(n uint64) string { return ids + strconv.FormatUint(n, 10) }

// IsID reports whether a DynamoDB request with that id is a probe.
func IsID(id string) bool { return strings.HasPrefix(id, ids) }

// Is reports whether a call that arrived belongs to a probe instead of a client. A call for a
// DynamoDB request belongs to that request, marked or not.
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
