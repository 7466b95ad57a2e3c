package cause_test

import (
	"context"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/tabletop-emu/tabletop/internal/cause"
)

// wire is a connection to another process, or, with CarriesCause, inside this one.
type wire struct {
	grpc.ClientConnInterface
	sent []string
}

func (w *wire) Invoke(ctx context.Context, _ string, _, _ any, _ ...grpc.CallOption) error {
	md, _ := metadata.FromOutgoingContext(ctx)
	w.sent = md.Get(cause.Header)
	return nil
}

func (*wire) Target() string { return "there" }

type here struct{ *wire }

func (here) CarriesCause() {}

// TestCarry: over a connection the cause is in the metadata, inside the process it is a value,
// and the first cause stays.
func TestCarry(t *testing.T) {
	t.Parallel()
	ctx := cause.With(cause.With(t.Context(), "one"), "two")
	if id, ok := cause.Of(ctx); id != "one" || !ok {
		t.Errorf("the cause is %q", id)
	}
	if id, ok := cause.Of(t.Context()); id != "" || ok {
		t.Errorf("without one, the cause is %q", id)
	}
	w := &wire{}
	conn := cause.Carry(w)
	if named, ok := conn.(interface{ Target() string }); !ok || named.Target() != "there" {
		t.Error("the name of the connection is missing")
	}
	if err := conn.Invoke(ctx, "", nil, nil); err != nil || !slices.Equal(w.sent, []string{"one"}) {
		t.Errorf("sent %q, %v", w.sent, err)
	}
	if err := conn.Invoke(t.Context(), "", nil, nil); err != nil || len(w.sent) != 0 {
		t.Errorf("sent %q, %v", w.sent, err)
	}
	within := here{w}
	if cause.Carry(within) != grpc.ClientConnInterface(within) {
		t.Error("a connection inside the process was wrapped")
	}
}
