package facade

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/internal/btclient"
)

// hanging is a Bigtable that accepts every call and never answers.
type hanging struct{}

func (hanging) Invoke(ctx context.Context, _ string, _, _ any, _ ...grpc.CallOption) error {
	<-ctx.Done()
	return ctx.Err()
}

func (hanging) NewStream(ctx context.Context, _ *grpc.StreamDesc, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// If the Bigtable does not answer within Options.Deadline, New returns a btclient.DeadlineError.
func TestDeadlines_BigtableThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, err := New(t.Context(), Options{Conn: hanging{}, Deadline: time.Millisecond})
		var late *btclient.DeadlineError
		if !errors.As(err, &late) || late.After != time.Millisecond {
			t.Errorf("error %v, want one of a deadline", err)
		}
	})
	if _, err := New(t.Context(), Options{Conn: hanging{}, Deadline: -1}); err == nil {
		t.Error("a negative deadline is taken")
	}
}
