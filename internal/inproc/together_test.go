package inproc_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/internal/inproc"
)

// TestCheckAndMutateRows: a server that makes calls together gets them all, and its errors become
// those of a client. Otherwise nothing happens.
func TestCheckAndMutateRows(t *testing.T) {
	t.Parallel()
	reqs := []*btpb.CheckAndMutateRowRequest{{RowKey: []byte("yes")}, {RowKey: []byte("no")}, {RowKey: []byte("lost")}}
	gone, leave := context.WithCancel(t.Context())
	leave()
	unary := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		return handler(ctx, req)
	}
	for name, c := range map[string]struct {
		o             inproc.Options
		ctx           context.Context //nolint:containedctx // of the case
		reqs          []*btpb.CheckAndMutateRowRequest
		unable, close bool
		want          bool
	}{
		"all":           {reqs: reqs, want: true},
		"none":          {},
		"unable":        {reqs: reqs, unable: true},
		"copies":        {reqs: reqs, o: inproc.Options{Clone: true}},
		"intercepted":   {reqs: reqs, o: inproc.Options{Unary: unary}},
		"closed":        {reqs: reqs, close: true},
		"client is off": {reqs: reqs, ctx: gone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			called := 0
			c.o.CheckAndMutateRows = func(_ context.Context, reqs []*btpb.CheckAndMutateRowRequest, matched []bool, errs []error) bool {
				if called++; c.unable {
					return false
				}
				for i, req := range reqs {
					if matched[i] = string(req.GetRowKey()) == "yes"; string(req.GetRowKey()) == "lost" {
						errs[i] = errors.New("disk full")
					}
				}
				return true
			}
			ch := inproc.New(c.o)
			if c.close {
				if err := ch.Close(); err != nil {
					t.Fatal(err)
				}
			}
			ctx := t.Context()
			if c.ctx != nil {
				ctx = c.ctx
			}
			matched, errs := make([]bool, len(c.reqs)), make([]error, len(c.reqs))
			if got := ch.CheckAndMutateRows(ctx, c.reqs, matched, errs); got != c.want {
				t.Fatalf("together: %v, want %v", got, c.want)
			}
			switch {
			case !c.want:
				if called > 0 && !c.unable || slices.Contains(matched, true) {
					t.Errorf("%d calls, %v", called, matched)
				}
			case !matched[0] || matched[1] || errs[0] != nil || errs[1] != nil || status.Code(errs[2]) != codes.Unknown:
				t.Errorf("%v, %v", matched, errs)
			}
		})
	}
}

// TestCheckAndMutateRows_Left: a client that leaves during the calls gets the error of each.
func TestCheckAndMutateRows_Left(t *testing.T) {
	t.Parallel()
	ctx, leave := context.WithCancel(t.Context())
	ch := inproc.New(inproc.Options{CheckAndMutateRows: func(_ context.Context, _ []*btpb.CheckAndMutateRowRequest, matched []bool, _ []error) bool {
		leave()
		matched[0] = true
		return true
	}})
	errs := make([]error, 1)
	if !ch.CheckAndMutateRows(ctx, []*btpb.CheckAndMutateRowRequest{{}}, make([]bool, 1), errs) || status.Code(errs[0]) != codes.Canceled {
		t.Error(errs)
	}
}
