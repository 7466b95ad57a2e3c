package facade

import (
	"context"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
)

// everyCallConn counts all calls on the Bigtable.
type everyCallConn struct {
	grpc.ClientConnInterface
	calls atomic.Int64
}

func (c *everyCallConn) Invoke(ctx context.Context, method string, req, resp any, opts ...grpc.CallOption) error {
	c.calls.Add(1)
	return c.ClientConnInterface.Invoke(ctx, method, req, resp, opts...)
}

func (c *everyCallConn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	c.calls.Add(1)
	return c.ClientConnInterface.NewStream(ctx, desc, method, opts...)
}

// TestRequest_Calls holds requests that rewrite items to the calls that they make
// on the Bigtable: what goes over a wire costs a round trip each.
func TestRequest_Calls(t *testing.T) {
	t.Parallel()
	conn := &everyCallConn{}
	s := newTestServer(t, func(o *Options) {
		conn.ClientConnInterface = o.Conn
		o.Conn = conn
	})
	loadCostTables(t, s, 100)
	want := map[string]int64{
		"Get":             1,
		"Put":             3, // read, write, the entry
		"Put_Conditional": 3,
		"Put_Plain":       1,
		"Update_Spread":   3,
		"Update_Hot":      3,
		"Query":           1,
		"Query_Index":     1,
		"BatchWrite":      1 + 25*2,     // one read; for each item its write and its entry
		"TransactWrite":   1 + 10*3 + 3, // one read; for each item its intent, its entry and its write; the record
	}
	for _, r := range costRequests {
		most, ok := want[r.name]
		if !ok {
			continue // of as many pages as a table has
		}
		must(t, s, r.operation, r.body(0))
		before := conn.calls.Load()
		must(t, s, r.operation, r.body(costItems)) // the same items, with other payloads
		if got := conn.calls.Load() - before; got != most {
			t.Errorf("%s: %d calls, want %d", r.name, got, most)
		}
	}
}
