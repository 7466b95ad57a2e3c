package btclient_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/internal/btclient"
)

// TestDeadline: a call to a server that hangs ends with an error that names the server,
// without a retry.
func TestDeadline(t *testing.T) {
	t.Parallel()
	patient := btclient.Retry{Reads: 3, Writes: 3, First: time.Millisecond}
	for _, c := range []struct {
		call string
		want string // of the error, before the text of the deadline
		do   func(context.Context, *btclient.Client) error
	}{
		{"ReadRows", "reading table t: ", func(ctx context.Context, c *btclient.Client) error {
			_, err := keysOf(ctx, c, btclient.Read{Spans: everything})
			return err
		}},
		{"MutateRows", "writing to table t: ", func(ctx context.Context, c *btclient.Client) error {
			_, err := c.MutateRows(ctx, "t", entries("a"))
			return err
		}},
		{"MutateRow", `writing row "a" of table t: `, func(ctx context.Context, c *btclient.Client) error {
			return c.MutateRow(ctx, "t", []byte("a"), nil)
		}},
		{"CheckAndMutateRow", `writing row "a" of table t: `, func(ctx context.Context, c *btclient.Client) error {
			_, err := c.CheckAndMutate(ctx, "t", []byte("a"), nil, nil, nil)
			return err
		}},
		{"SampleRowKeys", "sampling table t: ", func(ctx context.Context, c *btclient.Client) error {
			_, _, err := c.SampleKeys(ctx, "t")
			return err
		}},
		{"ListTables", "listing the tables of projects/p/instances/i: ", func(ctx context.Context, c *btclient.Client) error {
			_, err := c.Tables(ctx)
			return err
		}},
		{"CreateTable", "creating table t: ", func(ctx context.Context, c *btclient.Client) error {
			_, err := c.EnsureTable(ctx, "t", nil, nil)
			return err
		}},
	} {
		t.Run(c.call, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := &fake{answer: func(int, proto.Message) ([]proto.Message, error) { return nil, nil }}
				begun := time.Now()
				err := c.do(t.Context(), f.client(btclient.Options{Retry: patient, Deadline: time.Minute}))
				late := (*btclient.DeadlineError)(nil)
				want := c.want + "no answer from fake:1, projects/p/instances/i to " + c.call + " for 1m0s"
				if err == nil || err.Error() != want || !errors.As(err, &late) || status.Code(err) != codes.DeadlineExceeded {
					t.Errorf("got %v, want %s", err, want)
				}
				if after := time.Since(begun); after != time.Minute || f.calls() != 1 {
					t.Errorf("after %v and %d calls", after, f.calls())
				}
				// Without a deadline, the caller's own context ends the call with its error.
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				if err := c.do(ctx, f.client(btclient.Options{})); errors.As(err, &late) || status.Code(err) != codes.DeadlineExceeded {
					t.Errorf("without a deadline: %v", err)
				}
				if err := c.do(ctx, f.client(btclient.Options{Deadline: time.Minute})); errors.As(err, &late) || err == nil {
					t.Errorf("a context that has ended: %v", err)
				}
			})
		})
	}
}

// TestDeadline_Stream: the deadline applies between two messages; the caller's own work does
// not count.
func TestDeadline_Stream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{every: 50 * time.Second, answer: func(call int, _ proto.Message) ([]proto.Message, error) {
			if call == 0 {
				return messages(row("a", "1"), row("b", "2", "3"), row("c", "4")), io.EOF
			}
			return messages(row("a", "1")), nil
		}}
		c := f.client(btclient.Options{Deadline: time.Minute})
		rows := 0
		for _, err := range c.Read(t.Context(), btclient.Read{Table: "t", Spans: everything}) {
			if err != nil {
				t.Fatal(err)
			}
			rows++
			time.Sleep(time.Hour)
		}
		if rows != 3 {
			t.Errorf("%d rows", rows)
		}
		got, err := keysOf(t.Context(), c, btclient.Read{Spans: everything})
		if late := (*btclient.DeadlineError)(nil); got != "a" || !errors.As(err, &late) {
			t.Errorf("a server that hangs behind a row: %q, %v", got, err)
		}
	})
}

// TestDeadline_Late: an idempotent call is retried after its deadline, up to Retry.Late times
// in a row; other calls are not.
func TestDeadline_Late(t *testing.T) {
	t.Parallel()
	patient := btclient.Retry{Reads: 5, Writes: 5, Late: 2, First: time.Millisecond}
	lost := func(n int, answers ...proto.Message) *fake {
		return &fake{answer: func(call int, _ proto.Message) ([]proto.Message, error) {
			if first := 1; call >= first && call < first+n {
				return nil, nil
			}
			return answers, io.EOF
		}}
	}
	for name, c := range map[string]struct {
		most   int // lost calls
		answer proto.Message
		do     func(context.Context, *btclient.Client) error
	}{
		"ReadRows": {2, messages(row("a", "1"))[0], func(ctx context.Context, c *btclient.Client) error {
			_, err := keysOf(ctx, c, btclient.Read{Spans: everything})
			return err
		}},
		"MutateRows": {2, &btpb.MutateRowsResponse{Entries: []*btpb.MutateRowsResponse_Entry{{Status: &spb.Status{}}}}, func(ctx context.Context, c *btclient.Client) error {
			_, err := c.MutateRows(ctx, "t", entries("a"))
			return err
		}},
		"MutateRow": {2, &btpb.MutateRowResponse{}, func(ctx context.Context, c *btclient.Client) error {
			return c.MutateRow(ctx, "t", []byte("a"), nil)
		}},
		"CheckAndMutateRow": {0, &btpb.CheckAndMutateRowResponse{}, func(ctx context.Context, c *btclient.Client) error {
			_, err := c.CheckAndMutate(ctx, "t", []byte("a"), nil, nil, nil)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				for n := range 4 {
					bt := lost(n, c.answer).client(btclient.Options{Retry: patient, Deadline: time.Minute})
					if err := c.do(t.Context(), bt); err != nil { // a first answer, so that the server is known
						t.Fatal(err)
					}
					begun := time.Now()
					err := c.do(t.Context(), bt)
					late := (*btclient.DeadlineError)(nil)
					if errors.As(err, &late) != (n > c.most) || err != nil && late == nil {
						t.Errorf("%d calls are lost: %v", n, err)
					}
					if want := time.Duration(min(n, c.most+1)) * time.Minute; time.Since(begun) != want {
						t.Errorf("%d calls are lost: after %v, want %v", n, time.Since(begun), want)
					}
				}
			})
		})
	}
}

// TestDeadline_LateAtFirst: before the first answer of the server, a call without an answer is
// not retried.
func TestDeadline_LateAtFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: func(int, proto.Message) ([]proto.Message, error) { return nil, nil }}
		bt, begun := f.client(btclient.Options{Retry: btclient.Retry{Reads: 5, Writes: 5, Late: 2}, Deadline: 10 * time.Second}), time.Now()
		if err := bt.MutateRow(t.Context(), "t", []byte("a"), nil); err == nil || time.Since(begun) != 10*time.Second {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
	})
}

// TestDeadline_LateAnew: after progress a read is as patient as at first.
func TestDeadline_LateAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		keys := []string{"a", "b", "c", "d", "e"}
		f := &fake{answer: func(call int, _ proto.Message) ([]proto.Message, error) {
			if call == len(keys) {
				return nil, io.EOF
			}
			return messages(row(keys[call], "1")), nil
		}}
		got, err := keysOf(t.Context(), f.client(btclient.Options{Retry: btclient.Retry{Reads: 1, Late: 1}, Deadline: time.Minute}), btclient.Read{Spans: everything})
		if got != "a b c d e" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
}
