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

// failure is a way in which a call fails.
type failure struct {
	name    string
	err     error    // nil without an answer
	applied bool     // what was asked for is done nonetheless
	begun   bool     // the first message of a stream comes; for streams alone
	only    string   // the RPC that can fail so; "": all
	raced   bool     // it is met with the race detector too: of those that take alike paths, one is
	quick   []string // the RPCs that fail so in the quick tier; nil: all
}

// failures are all ways to fail. The quick tier meets each way, and each RPC that is
// called.
var failures = []failure{
	{name: "`UNAVAILABLE`", err: status.Error(codes.Unavailable, "a fault"), raced: true, quick: []string{"GetTable"}},
	{name: "`ABORTED`", err: status.Error(codes.Aborted, "a fault"), quick: []string{"CreateTable"}},
	{name: "`DEADLINE_EXCEEDED`", err: status.Error(codes.DeadlineExceeded, "a fault"), quick: []string{"ListTables"}},
	{name: "`RESOURCE_EXHAUSTED`", err: status.Error(codes.ResourceExhausted, "a fault"), quick: []string{"MutateRow"}},
	{name: "no connection", err: &btclient.UnsentError{Err: status.Error(codes.Unavailable, "a fault: nobody is there")}, quick: []string{"ReadModifyWriteRow"}},
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
	calls   map[string]int // by RPC, since the last set
	streams map[string]bool
	rpc     string  // "": none fails
	how     failure // how they fail
	from    int     // the first that does
	most    int     // how many do
	struck  int
}

func newFailingConn(conn grpc.ClientConnInterface) *failingConn {
	return &failingConn{ClientConnInterface: conn, calls: map[string]int{}, streams: map[string]bool{}}
}

// set makes calls fail, and counts anew.
func (c *failingConn) set(rpc string, how failure, from, most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls, c.rpc, c.how, c.from, c.most, c.struck = map[string]int{}, rpc, how, from, most, 0
}

// heal lets all calls through, which may still be made in the background. What
// was counted stays.
func (c *failingConn) heal() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rpc = ""
}

// counted returns the number of calls of each RPC since the last set, and which
// RPCs are streams.
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
	if rpc != c.rpc || n < c.from || c.struck >= c.most {
		return failure{}, false
	}
	c.struck++
	return c.how, true
}

// end is how a failed call ends.
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
		_ = c.ClientConnInterface.Invoke(ctx, method, req, resp, opts...) // what came of it is lost
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
		for s.ClientStream.RecvMsg(m) == nil { // what came of it is lost
		}
		proto.Reset(m.(proto.Message))
	}
	return s.how.end(s.Context())
}
