package failures

import (
	"context"
	"io"
	"maps"
	"path"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/internal/btclient"
)

// failure is a kind of failure of a call.
type failure struct {
	name    string
	err     error    // nil without an answer
	applied bool     // the call takes effect nevertheless
	begun   bool     // the first message of a stream arrives; only for streams
	only    string   // the only RPC with this failure; "": all
	raced   bool     // also tested with the race detector, as the representative of failures with similar paths
	quick   []string // RPCs with this failure in the quick tier; nil: all
}

// failures are all kinds of failures. The quick tier tests each kind, and each RPC in use.
var failures = []failure{
	{name: "`UNAVAILABLE`", err: status.Error(codes.Unavailable, "a fault"), raced: true, quick: []string{"GetTable", "GetMaterializedView"}},
	{name: "`ABORTED`", err: status.Error(codes.Aborted, "a fault"), quick: []string{"CreateTable"}},
	{name: "`DEADLINE_EXCEEDED`", err: status.Error(codes.DeadlineExceeded, "a fault"), quick: []string{"ListTables"}},
	{name: "`RESOURCE_EXHAUSTED`", err: status.Error(codes.ResourceExhausted, "a fault"), quick: []string{"MutateRow"}},
	{name: "no connection", err: &btclient.UnsentError{Err: status.Error(codes.Unavailable, "a fault: no server")}, quick: []string{"ReadModifyWriteRow"}},
	{name: "connection cut", err: status.Error(codes.Unavailable, "a fault: cut"), begun: true, quick: []string{"ReadRows"}},
	{name: "the answer ends early", err: io.EOF, only: "MutateRows", quick: []string{"MutateRows"}},
	{name: "answer lost", err: status.Error(codes.Unavailable, "a fault: lost"), applied: true, raced: true, quick: []string{"CheckAndMutateRow"}},
	{name: "hangs", err: nil, raced: true, quick: []string{"ModifyColumnFamilies", "SampleRowKeys"}},
	{name: "done, then hangs", err: nil, applied: true, quick: []string{"DeleteTable"}},
}

// failingConn is a connection on which some calls of one RPC fail.
type failingConn struct {
	grpc.ClientConnInterface

	mu      sync.Mutex
	calls   map[string]int // by RPC, since the last call of set
	streams map[string]bool
	rpc     string  // "": no RPC fails
	how     failure // kind of the failure
	from    int     // number of the first failing call
	most    int     // number of failing calls
	failed  int
}

func newFailingConn(conn grpc.ClientConnInterface) *failingConn {
	return &failingConn{ClientConnInterface: conn, calls: map[string]int{}, streams: map[string]bool{}}
}

// set makes calls fail, and resets the counters.
func (c *failingConn) set(rpc string, how failure, from, most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls, c.rpc, c.how, c.from, c.most, c.failed = map[string]int{}, rpc, how, from, most, 0
}

// heal lets all calls succeed, including those in the background. It does not reset the counters.
func (c *failingConn) heal() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rpc = ""
}

// counted returns the number of calls of each RPC since the last call of set, and the RPCs
// that are streams.
func (c *failingConn) counted() (calls map[string]int, streams map[string]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.calls), maps.Clone(c.streams)
}

// strikes counts a call and reports whether it fails.
func (c *failingConn) strikes(method string, stream bool) (failure, bool) {
	rpc := path.Base(method)
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.calls[rpc]
	c.calls[rpc]++
	c.streams[rpc] = stream
	if rpc != c.rpc || n < c.from || c.failed >= c.most {
		return failure{}, false
	}
	c.failed++
	return c.how, true
}

// end ends a failed call.
func (f failure) end(ctx context.Context) error {
	if f.err == nil {
		<-ctx.Done()
		return status.FromContextError(ctx.Err()).Err()
	}
	return f.err
}

func (c *failingConn) Invoke(ctx context.Context, method string, req, resp any, opts ...grpc.CallOption) error {
	how, fails := c.strikes(method, false)
	if !fails {
		return c.ClientConnInterface.Invoke(ctx, method, req, resp, opts...)
	}
	if how.applied {
		_ = c.ClientConnInterface.Invoke(ctx, method, req, resp, opts...) // its result is lost
		proto.Reset(resp.(proto.Message))
	}
	return how.end(ctx)
}

func (c *failingConn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	how, fails := c.strikes(method, true)
	stream, err := c.ClientConnInterface.NewStream(ctx, desc, method, opts...)
	if err != nil || !fails {
		return stream, err
	}
	return &failingStream{ClientStream: stream, how: how}, nil
}

// failingStream is the stream of a call that fails.
type failingStream struct {
	grpc.ClientStream
	how  failure
	came bool
}

func (s *failingStream) SendMsg(m any) error {
	if !s.how.applied && !s.how.begun {
		return nil
	}
	return s.ClientStream.SendMsg(m)
}

func (s *failingStream) CloseSend() error {
	if !s.how.applied && !s.how.begun {
		return nil
	}
	return s.ClientStream.CloseSend()
}

func (s *failingStream) RecvMsg(m any) error {
	switch {
	case s.how.begun && !s.came:
		s.came = true
		return s.ClientStream.RecvMsg(m)
	case s.how.applied:
		for s.ClientStream.RecvMsg(m) == nil { // its result is lost
		}
		proto.Reset(m.(proto.Message))
	}
	return s.how.end(s.Context())
}
