package failures

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// quotaConn is a connection to a Bigtable that takes so many rows at a time, and a
// millisecond for each call.
type quotaConn struct {
	grpc.ClientConnInterface
	most int

	mu             sync.Mutex
	under          int
	taken, refused int
}

// take has a call wait for its millisecond, and refuses it where there are too many rows.
func (c *quotaConn) take(rows int) error {
	c.mu.Lock()
	c.under += rows
	full := c.under > c.most
	if full {
		c.refused++
	} else {
		c.taken++
	}
	c.mu.Unlock()
	time.Sleep(time.Millisecond) // of the bubble
	c.mu.Lock()
	defer c.mu.Unlock()
	c.under -= rows
	if full {
		return status.Error(codes.ResourceExhausted, "a fault: no room")
	}
	return nil
}

func (c *quotaConn) Invoke(ctx context.Context, method string, req, resp any, opts ...grpc.CallOption) error {
	if rpc := path.Base(method); rpc == "MutateRow" || rpc == "CheckAndMutateRow" {
		if err := c.take(1); err != nil {
			return err
		}
	}
	return c.ClientConnInterface.Invoke(ctx, method, req, resp, opts...)
}

func (c *quotaConn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := c.ClientConnInterface.NewStream(ctx, desc, method, opts...)
	if err != nil || path.Base(method) != "MutateRows" {
		return stream, err
	}
	return &quotaStream{ClientStream: stream, c: c}, nil
}

// quotaStream is a MutateRows call.
type quotaStream struct {
	grpc.ClientStream
	c   *quotaConn
	err error
}

func (s *quotaStream) SendMsg(m any) error {
	s.err = s.c.take(len(m.(*btpb.MutateRowsRequest).GetEntries()))
	if s.err == nil {
		return s.ClientStream.SendMsg(m)
	}
	return nil // a stream says at its end why it ended
}

func (s *quotaStream) RecvMsg(m any) error {
	if s.err != nil {
		return s.err
	}
	return s.ClientStream.RecvMsg(m)
}

// TestQuota: a load into a Bigtable that takes seven rows at a time is whole, and so are
// the batches of a door, whose client asks again for what was not processed; and most of
// their calls are taken.
func TestQuota(t *testing.T) {
	t.Parallel()
	run := func(name string, do func(t *testing.T, conn *quotaConn)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				overBigtable(t, failure{}, func(t *testing.T, conn grpc.ClientConnInterface, _ failure) map[string]*cell {
					t.Helper()
					quota := &quotaConn{ClientConnInterface: conn, most: 7}
					do(t, quota)
					if quota.refused == 0 || quota.refused > quota.taken/2 {
						t.Errorf("%d calls were refused, %d taken", quota.refused, quota.taken)
					}
					return nil
				})
			})
		})
	}
	run("load", func(t *testing.T, conn *quotaConn) {
		t.Helper()
		m := newMigration(t, conn, "load", 1)
		if o := m.meet(m.load, "", failure{}, 0, 0); o.text != "done" || o.after > longest {
			t.Errorf("it %s after %v", o.text, o.after)
		}
		if err := m.verify(); err != nil {
			t.Error(err)
		}
	})
	run("door", func(t *testing.T, conn *quotaConn) {
		t.Helper()
		s, err := open(t.Context(), conn, "instance")
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}()
		r := &doorRun{t: t, what: "batches"}
		r.must(s, "CreateTable", `{"TableName":"things",`+schema+`}`)
		for batch := range 8 {
			var puts []string
			for i := range 25 {
				puts = append(puts, `{"PutRequest":{"Item":`+item(fmt.Sprint(batch, "-", i), "new")+`}}`)
			}
			left := json.RawMessage(`{"things":[` + strings.Join(puts, ",") + `]}`)
			for again := 0; len(left) > 2; again++ {
				var answer struct{ UnprocessedItems json.RawMessage }
				text, err := r.call(s, "BatchWriteItem", `{"RequestItems":`+string(left)+`}`)
				switch {
				case again > 20:
					t.Fatalf("batch %d is not written after %d requests", batch, again)
				case err != nil && !strings.HasPrefix(err.Error(), "RequestLimitExceeded"):
					t.Fatal(err)
				case err != nil:
					continue
				}
				if err := json.Unmarshal([]byte(text), &answer); err != nil {
					t.Fatal(err)
				}
				left = answer.UnprocessedItems
			}
		}
		r.consistent(s, "things", "byG", 200)
	})
}
