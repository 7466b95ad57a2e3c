package probe_test

import (
	"context"
	"testing"

	"google.golang.org/grpc/metadata"

	"github.com/tabletop-emu/tabletop/internal/cause"
	"github.com/tabletop-emu/tabletop/internal/probe"
)

// TestIs: a marked call does not belong to a client, unless it serves a DynamoDB request,
// whose id is in the context or in metadata.
func TestIs(t *testing.T) {
	t.Parallel()
	sent, _ := metadata.FromOutgoingContext(probe.With(t.Context()))
	if len(sent.Get(probe.Header)) != 1 {
		t.Fatalf("the mark is not sent: %v", sent)
	}
	arrived := func(ctx context.Context, pairs ...string) context.Context {
		return metadata.NewIncomingContext(ctx, metadata.Pairs(pairs...))
	}
	marked := []string{probe.Header, "probe"}
	for _, c := range []struct {
		name       string
		ctx        context.Context
		marked, is bool
	}{
		{"a client's", t.Context(), false, false},
		{"a client's with metadata", arrived(t.Context(), "a", "b"), false, false},
		{"marked", arrived(t.Context(), marked...), true, true},
		{"marked, for a request in this process", arrived(cause.With(t.Context(), "id"), marked...), true, false},
		{"marked, for a request in another process", arrived(t.Context(), append(marked, cause.Header, "id")...), true, false},
		{"marked, for a request of a console", arrived(cause.With(t.Context(), probe.ID(7)), marked...), true, true},
		{"for a request", arrived(cause.With(t.Context(), "id")), false, false},
	} {
		if got := probe.Marked(c.ctx); got != c.marked {
			t.Errorf("%s: marked %v", c.name, got)
		}
		if got := probe.Is(c.ctx); got != c.is {
			t.Errorf("%s: of no client %v", c.name, got)
		}
	}
}
