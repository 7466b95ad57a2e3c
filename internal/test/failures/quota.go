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

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/test/peer"
)

// quotaConn is a connection to a Bigtable that accepts a limited number of rows at a time, and
// takes a millisecond for each call.
type quotaConn struct {
	grpc.ClientConnInterface
	most int

	mu             sync.Mutex
	under          int
	taken, refused int
}

// take waits a millisecond, and refuses a call with too many rows.
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
	time.Sleep(time.Millisecond) // virtual time
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
	return nil // a stream returns its error at its end
}

func (s *quotaStream) RecvMsg(m any) error {
	if s.err != nil {
		return s.err
	}
	return s.ClientStream.RecvMsg(m)
}

// Quota tests that a load into a Bigtable that accepts seven rows at a time is complete, and so are
// the batches of an endpoint. Its client repeats unprocessed items, and halves a refused
// request; a request of no more items than the Bigtable accepts is not refused. Most calls are
// accepted.
func Quota(t *testing.T) {
	t.Helper()
	run := func(name string, do func(t *testing.T, conn *quotaConn)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				quota := &quotaConn{ClientConnInterface: peer.Start(t, engine.Options{}, emu.Options{}).Conn(), most: 7}
				do(t, quota)
				if quota.refused == 0 || quota.refused > quota.taken/2 {
					t.Errorf("%d calls were refused, %d taken", quota.refused, quota.taken)
				}
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
	run("endpoint", func(t *testing.T, conn *quotaConn) {
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
		r := &endpointRun{t: t, what: "batches"}
		r.must(s, "CreateTable", `{"TableName":"things",`+schema+`}`)
		for batch := range 8 {
			var left []json.RawMessage
			for i := range 25 {
				left = append(left, json.RawMessage(`{"PutRequest":{"Item":`+item(fmt.Sprint(batch, "-", i), "new")+`}}`))
			}
			for most := len(left); len(left) > 0; {
				part, err := json.Marshal(left[:min(most, len(left))])
				if err != nil {
					t.Fatal(err)
				}
				text, err := r.call(s, "BatchWriteItem", `{"RequestItems":{"things":`+string(part)+`}}`)
				if err != nil {
					if most <= conn.most || !strings.HasPrefix(err.Error(), "RequestLimitExceeded") {
						t.Fatalf("batch %d, a request of %d items: %v", batch, most, err)
					}
					most /= 2
					time.Sleep(time.Second) // virtual time: clients wait before a retry
					continue
				}
				var answer struct {
					UnprocessedItems struct{ Things []json.RawMessage }
				}
				if err := json.Unmarshal([]byte(text), &answer); err != nil {
					t.Fatal(err)
				}
				left = append(answer.UnprocessedItems.Things, left[min(most, len(left)):]...)
			}
		}
		// A read of the index writes the entries that refused requests left pending, and can
		// be refused too.
		begun := time.Now()
		for {
			_, err := r.call(s, "Scan", `{"TableName":"things","IndexName":"byG"}`)
			if err == nil {
				break
			}
			if !strings.HasPrefix(err.Error(), "RequestLimitExceeded") || time.Since(begun) > time.Hour {
				t.Fatalf("reading the index for %v: %v", time.Since(begun), err)
			}
			time.Sleep(time.Second) // virtual time
		}
		r.consistent(s, "things", "byG", 200)
	})
}
