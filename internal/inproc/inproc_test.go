package inproc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/internal/inproc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// service answers as its request asks; the app profile is the script.
type service struct {
	btpb.UnimplementedBigtableServer
	sent chan int   // a token for every row that ReadRows could send
	left chan error // error with which ReadRows stopped early
}

func newService() *service {
	return &service{sent: make(chan int, 1000), left: make(chan error, 1)}
}

type clientKey struct{}

func (s *service) MutateRow(ctx context.Context, req *btpb.MutateRowRequest) (*btpb.MutateRowResponse, error) {
	switch req.GetAppProfileId() {
	case "panic":
		panic("no row")
	case "details":
		st, err := status.New(codes.FailedPrecondition, "no family").WithDetails(&errdetails.ErrorInfo{Reason: "FAMILY"})
		if err != nil {
			return nil, err
		}
		return nil, st.Err()
	case "wrapped":
		return nil, fmt.Errorf("outer: %w", status.Error(codes.NotFound, "inner"))
	case "plain":
		return nil, errors.New("disk full")
	case "deadline":
		return nil, fmt.Errorf("waiting: %w", context.DeadlineExceeded)
	case "block":
		<-ctx.Done()
		return nil, ctx.Err()
	case "metadata":
		md, _ := metadata.FromIncomingContext(ctx)
		if _, ok := metadata.FromOutgoingContext(ctx); ok || ctx.Value(clientKey{}) != nil {
			return nil, status.Error(codes.Internal, "the client's values are visible")
		}
		if err := grpc.SetHeader(ctx, metadata.Pairs("h", strings.Join(md.Get("ask"), "+"))); err != nil {
			return nil, err
		}
		if err := grpc.SendHeader(ctx, metadata.Pairs("h", "sent")); err != nil {
			return nil, err
		}
		if err := grpc.SetHeader(ctx, metadata.Pairs("h", "late")); err == nil {
			return nil, status.Error(codes.Internal, "the header was still open")
		}
		return &btpb.MutateRowResponse{}, grpc.SetTrailer(ctx, metadata.Pairs("t", "end"))
	}
	return &btpb.MutateRowResponse{}, nil
}

func (s *service) CheckAndMutateRow(_ context.Context, req *btpb.CheckAndMutateRowRequest) (*btpb.CheckAndMutateRowResponse, error) {
	return &btpb.CheckAndMutateRowResponse{PredicateMatched: string(req.GetRowKey()) == "yes"}, nil
}

func (s *service) ReadRows(req *btpb.ReadRowsRequest, stream btpb.Bigtable_ReadRowsServer) error {
	if req.GetAppProfileId() == "metadata" {
		md, _ := metadata.FromIncomingContext(stream.Context())
		if err := stream.SetHeader(metadata.Pairs("h", strings.Join(md.Get("ask"), "+"))); err != nil {
			return err
		}
		stream.SetTrailer(metadata.Pairs("t", "end"))
	}
	for i := range int(req.GetRowsLimit()) {
		if err := stream.Send(row(i)); err != nil {
			s.left <- stream.Context().Err()
			return err
		}
		s.sent <- i
	}
	switch req.GetAppProfileId() {
	case "panic":
		panic("no rows")
	case "details":
		return status.Error(codes.OutOfRange, "no more")
	case "block":
		<-stream.Context().Done()
		s.left <- stream.Context().Err()
		return stream.Context().Err()
	}
	return nil
}

func row(i int) *btpb.ReadRowsResponse {
	return &btpb.ReadRowsResponse{
		Chunks:            []*btpb.ReadRowsResponse_CellChunk{{RowKey: fmt.Appendf(nil, "row%d", i), Value: []byte("v")}},
		LastScannedRowKey: []byte("k"),
	}
}

// recoverUnary and recoverStream represent the interceptors of a real server.
func recoverUnary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = status.Errorf(codes.Internal, "recovered: %v", p)
		}
	}()
	return handler(ctx, req)
}

func recoverStream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = status.Errorf(codes.Internal, "recovered: %v in %s", p, info.FullMethod)
		}
	}()
	return handler(srv, ss)
}

// channels are the connections to a service that must be indistinguishable.
func channels(t *testing.T, svc btpb.BigtableServer) map[string]grpc.ClientConnInterface {
	t.Helper()
	lis := bufconn.Listen(1 << 20)
	srv := grpc.NewServer(grpc.UnaryInterceptor(recoverUnary), grpc.StreamInterceptor(recoverStream))
	btpb.RegisterBigtableServer(srv, svc)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(lis) }()
	wire, err := grpc.NewClient("passthrough:bufconn", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = wire.Close()
		srv.Stop()
		<-served
	})
	shared := open(t, svc, inproc.Options{Unary: recoverUnary, Stream: recoverStream})
	cloned := open(t, svc, inproc.Options{Unary: recoverUnary, Stream: recoverStream, Clone: true})
	return map[string]grpc.ClientConnInterface{"bufconn": wire, "shared": shared, "cloned": cloned}
}

func open(t *testing.T, svc btpb.BigtableServer, o inproc.Options) *inproc.Channel {
	t.Helper()
	ch := inproc.New(o)
	btpb.RegisterBigtableServer(ch, svc)
	t.Cleanup(func() { _ = ch.Close() })
	return ch
}

// describe makes an error comparable: code, message, details.
func describe(err error) string {
	if err == nil || errors.Is(err, io.EOF) {
		return fmt.Sprint(err)
	}
	return fmt.Sprintf("%v %q %v", status.Code(err), status.Convert(err).Message(), status.Convert(err).Details())
}

// TestSameOutcome runs each call over bufconn and in process: the client must see the same
// results.
func TestSameOutcome(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		call func(ctx context.Context, cc grpc.ClientConnInterface) string
		want string
	}{
		{"MutateRow", mutate(""), "<nil>"},
		{"CheckAndMutateRow", func(ctx context.Context, cc grpc.ClientConnInterface) string {
			resp, err := btpb.NewBigtableClient(cc).CheckAndMutateRow(ctx, &btpb.CheckAndMutateRowRequest{RowKey: []byte("yes")})
			return fmt.Sprint(resp.GetPredicateMatched(), err)
		}, "true <nil>"},
		{"details", mutate("details"), ""},
		{"wrapped", mutate("wrapped"), `NotFound "outer: rpc error: code = NotFound desc = inner" []`},
		{"plain", mutate("plain"), `Unknown "disk full" []`},
		{"deadline of the server", mutate("deadline"), `DeadlineExceeded "waiting: context deadline exceeded" []`},
		{"panic", mutate("panic"), `Internal "recovered: no row" []`},
		{"not offered", func(ctx context.Context, cc grpc.ClientConnInterface) string {
			_, err := btpb.NewBigtableClient(cc).PingAndWarm(ctx, &btpb.PingAndWarmRequest{})
			return describe(err)
		}, `Unimplemented "method PingAndWarm not implemented" []`},
		{"unknown service", invoke("/no.Service/Method"), `Unimplemented "unknown service no.Service" []`},
		{"unknown method", invoke("/google.bigtable.v2.Bigtable/Nope"), `Unimplemented "unknown method Nope for service google.bigtable.v2.Bigtable" []`},
		{"metadata", func(ctx context.Context, cc grpc.ClientConnInterface) string {
			ctx = metadata.AppendToOutgoingContext(context.WithValue(ctx, clientKey{}, 1), "ask", "a", "ask", "b")
			var h, tr metadata.MD
			_, err := btpb.NewBigtableClient(cc).MutateRow(ctx, &btpb.MutateRowRequest{AppProfileId: "metadata"}, grpc.Header(&h), grpc.Trailer(&tr))
			return fmt.Sprint(h.Get("h"), tr.Get("t"), err)
		}, "[a+b sent] [end] <nil>"},
		{"ReadRows", read("", 3), "row0 row1 row2 EOF [] []"},
		{"ReadRows of nothing", read("", 0), "EOF [] []"},
		{"ReadRows, metadata", read("metadata", 1), "row0 EOF [x] [end]"},
		{"ReadRows, late error", read("details", 2), `row0 row1 OutOfRange "no more" [] [] []`},
		{"ReadRows, panic", read("panic", 1), `row0 Internal "recovered: no rows in /google.bigtable.v2.Bigtable/ReadRows" [] [] []`},
		{"SampleRowKeys, not offered", func(ctx context.Context, cc grpc.ClientConnInterface) string {
			stream, err := btpb.NewBigtableClient(cc).SampleRowKeys(ctx, &btpb.SampleRowKeysRequest{})
			if err != nil {
				return "at once: " + describe(err)
			}
			_, err = stream.Recv()
			return describe(err)
		}, `Unimplemented "method SampleRowKeys not implemented" []`},
		{"canceled before", func(ctx context.Context, cc grpc.ClientConnInterface) string {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			_, err := btpb.NewBigtableClient(cc).MutateRow(ctx, &btpb.MutateRowRequest{})
			return status.Code(err).String()
		}, "Canceled"},
		{"deadline", func(ctx context.Context, cc grpc.ClientConnInterface) string {
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			_, err := btpb.NewBigtableClient(cc).MutateRow(ctx, &btpb.MutateRowRequest{AppProfileId: "block"})
			return status.Code(err).String()
		}, "DeadlineExceeded"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { // a deadline passes once the call waits for it
				got := make(map[string]string)
				for name, cc := range channels(t, newService()) {
					got[name] = tc.call(t.Context(), cc)
				}
				want := tc.want
				if want == "" {
					want = got["bufconn"]
				}
				if diff := cmp.Diff(map[string]string{"bufconn": want, "shared": want, "cloned": want}, got); diff != "" {
					t.Errorf("outcomes (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func mutate(script string) func(context.Context, grpc.ClientConnInterface) string {
	return func(ctx context.Context, cc grpc.ClientConnInterface) string {
		_, err := btpb.NewBigtableClient(cc).MutateRow(ctx, &btpb.MutateRowRequest{AppProfileId: script})
		return describe(err)
	}
}

func invoke(method string) func(context.Context, grpc.ClientConnInterface) string {
	return func(ctx context.Context, cc grpc.ClientConnInterface) string {
		return describe(cc.Invoke(ctx, method, &btpb.MutateRowRequest{}, &btpb.MutateRowResponse{}))
	}
}

// read returns the rows, the end of the stream, and its header and trailer.
func read(script string, rows int64) func(context.Context, grpc.ClientConnInterface) string {
	return func(ctx context.Context, cc grpc.ClientConnInterface) string {
		ctx = metadata.AppendToOutgoingContext(ctx, "ask", "x")
		stream, err := btpb.NewBigtableClient(cc).ReadRows(ctx, &btpb.ReadRowsRequest{AppProfileId: script, RowsLimit: rows})
		if err != nil {
			return describe(err)
		}
		h, err := stream.Header()
		if err != nil {
			return describe(err)
		}
		var out []string
		for {
			resp, err := stream.Recv()
			if err != nil {
				return strings.TrimSpace(fmt.Sprint(strings.Join(append(out, describe(err)), " "), " ", h.Get("h"), " ", stream.Trailer().Get("t")))
			}
			if string(resp.GetLastScannedRowKey()) != "k" {
				return "a field was lost"
			}
			out = append(out, string(resp.GetChunks()[0].GetRowKey()))
		}
	}
}

// TestNoCopy: the handler gets the caller's request, and the client gets the handler's
// response, with the same slices; clone mode copies both.
func TestNoCopy(t *testing.T) {
	t.Parallel()
	for _, clone := range []bool{false, true} {
		t.Run(fmt.Sprint("clone=", clone), func(t *testing.T) {
			t.Parallel()
			req := &btpb.ReadModifyWriteRowRequest{RowKey: []byte("k")}
			var seen *btpb.ReadModifyWriteRowRequest
			resp := &btpb.ReadModifyWriteRowResponse{Row: &btpb.Row{Key: []byte("k")}}
			ch := open(t, echo{fn: func(r *btpb.ReadModifyWriteRowRequest) *btpb.ReadModifyWriteRowResponse {
				seen = r
				return resp
			}}, inproc.Options{Clone: clone})
			got, err := btpb.NewBigtableClient(ch).ReadModifyWriteRow(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			if (seen == req) == clone {
				t.Errorf("handler's request is the caller's: %v", seen == req)
			}
			if (got.GetRow() == resp.GetRow()) == clone {
				t.Errorf("client's row is the handler's: %v", got.GetRow() == resp.GetRow())
			}
			if !proto.Equal(got, resp) {
				t.Errorf("got %v, want %v", got, resp)
			}
		})
	}
}

type echo struct {
	btpb.UnimplementedBigtableServer
	fn func(*btpb.ReadModifyWriteRowRequest) *btpb.ReadModifyWriteRowResponse
}

func (e echo) ReadModifyWriteRow(_ context.Context, r *btpb.ReadModifyWriteRowRequest) (*btpb.ReadModifyWriteRowResponse, error) {
	return e.fn(r), nil
}

// TestPanic_NoInterceptor: the channel itself shields the caller from a panic.
func TestPanic_NoInterceptor(t *testing.T) {
	t.Parallel()
	ch := open(t, newService(), inproc.Options{})
	client := btpb.NewBigtableClient(ch)
	_, err := client.MutateRow(t.Context(), &btpb.MutateRowRequest{AppProfileId: "panic"})
	if status.Code(err) != codes.Internal || !strings.Contains(err.Error(), "no row") {
		t.Errorf("unary: %v", err)
	}
	stream, err := client.ReadRows(t.Context(), &btpb.ReadRowsRequest{AppProfileId: "panic"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = stream.Recv(); status.Code(err) != codes.Internal || !strings.Contains(err.Error(), "no rows") {
		t.Errorf("stream: %v", err)
	}
}

// TestBackPressure: the handler is never ahead of the client.
func TestBackPressure(t *testing.T) {
	t.Parallel()
	svc := newService()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := btpb.NewBigtableClient(open(t, svc, inproc.Options{})).ReadRows(ctx, &btpb.ReadRowsRequest{RowsLimit: 100})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
		if got := len(svc.sent); got != i { // the token follows the return of Send
			t.Errorf("after %d messages the handler has gone past %d", i+1, got)
		}
	}
}

// TestAbandon: a client that cancels ends the handler, whether it waits in Send, waits for its
// context, or has not begun.
func TestAbandon(t *testing.T) {
	t.Parallel()
	t.Run("in Send", func(t *testing.T) {
		t.Parallel()
		svc := newService()
		ctx, cancel := context.WithCancel(t.Context())
		stream, err := btpb.NewBigtableClient(open(t, svc, inproc.Options{})).ReadRows(ctx, &btpb.ReadRowsRequest{RowsLimit: 100})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := <-svc.left; !errors.Is(err, context.Canceled) {
			t.Errorf("handler left with %v", err)
		}
		for range 2 {
			if _, err := stream.Recv(); status.Code(err) != codes.Canceled {
				t.Errorf("after cancel: %v", err)
			}
		}
	})
	t.Run("waiting", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			svc := newService()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			stream, err := btpb.NewBigtableClient(open(t, svc, inproc.Options{})).ReadRows(ctx, &btpb.ReadRowsRequest{AppProfileId: "block"})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := stream.Recv(); status.Code(err) != codes.DeadlineExceeded {
				t.Errorf("got %v", err)
			}
			if err := <-svc.left; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("handler left with %v", err)
			}
		})
	})
	t.Run("not begun", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		stream, err := btpb.NewBigtableClient(open(t, newService(), inproc.Options{})).ReadRows(ctx, &btpb.ReadRowsRequest{RowsLimit: 1})
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if _, err := stream.Recv(); status.Code(err) != codes.Canceled {
			t.Errorf("got %v", err)
		}
	})
}

// TestReadRows: a stream for rows without messages has the messages and the end of any other, and
// closing it ends the handler. A handler of this test sends messages, as one that finds no sink.
func TestReadRows(t *testing.T) {
	t.Parallel()
	svc := newService()
	ch := open(t, svc, inproc.Options{})
	stream, end, err := ch.ReadRows(t.Context(), &btpb.ReadRowsRequest{RowsLimit: 2, AppProfileId: "details"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if got, err := stream.Recv(); err != nil || !proto.Equal(got, row(i)) {
			t.Errorf("message %d: %v, %v", i, got, err)
		}
	}
	if _, err := stream.Recv(); status.Code(err) != codes.OutOfRange {
		t.Errorf("after the messages: %v", err)
	}
	if err := end.Close(); err != nil {
		t.Error(err)
	}
	if _, err := stream.Recv(); status.Code(err) != codes.OutOfRange {
		t.Errorf("after the end: %v", err)
	}

	stream, end, err = ch.ReadRows(t.Context(), &btpb.ReadRowsRequest{RowsLimit: 100}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	if err := end.Close(); err != nil {
		t.Error(err)
	}
	if err := <-svc.left; !errors.Is(err, context.Canceled) {
		t.Errorf("handler left with %v", err)
	}
	if _, err := stream.Recv(); status.Code(err) != codes.Canceled {
		t.Errorf("a message of a closed stream: %v", err)
	}
}

// TestClose ends open streams and calls in flight, and refuses new calls.
func TestClose(t *testing.T) {
	t.Parallel()
	svc := newService()
	ch := open(t, svc, inproc.Options{})
	client := btpb.NewBigtableClient(ch)
	stream, err := client.ReadRows(context.Background(), &btpb.ReadRowsRequest{RowsLimit: 100})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	if err := ch.Close(); err != nil {
		t.Fatal(err)
	}
	<-svc.left
	if _, err := stream.Recv(); status.Code(err) != codes.Canceled {
		t.Errorf("open stream: %v", err)
	}
	if _, err := client.MutateRow(context.Background(), &btpb.MutateRowRequest{}); status.Code(err) != codes.Canceled {
		t.Errorf("new call: %v", err)
	}
}

// TestClientStreaming: the error names the method.
func TestClientStreaming(t *testing.T) {
	t.Parallel()
	_, err := btpb.NewBigtableClient(open(t, newService(), inproc.Options{})).OpenTable(t.Context())
	if status.Code(err) != codes.Unimplemented || !strings.Contains(err.Error(), "OpenTable") {
		t.Errorf("got %v", err)
	}
}

// TestOnFinish: the option is called at the end of every call, once.
func TestOnFinish(t *testing.T) {
	t.Parallel()
	client := btpb.NewBigtableClient(open(t, newService(), inproc.Options{}))
	var got []string
	note := grpc.OnFinish(func(err error) { got = append(got, describe(err)) })
	_, _ = client.MutateRow(t.Context(), &btpb.MutateRowRequest{}, note)
	_, _ = client.MutateRow(t.Context(), &btpb.MutateRowRequest{AppProfileId: "plain"}, note)
	stream, err := client.ReadRows(t.Context(), &btpb.ReadRowsRequest{}, note)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"<nil>", `Unknown "disk full" []`, "<nil>"}, got); diff != "" {
		t.Error(diff)
	}
}

func BenchmarkInvoke(b *testing.B) {
	ch := inproc.New(inproc.Options{})
	btpb.RegisterBigtableServer(ch, newService())
	client, req := btpb.NewBigtableClient(ch), &btpb.CheckAndMutateRowRequest{RowKey: []byte("yes")}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := client.CheckAndMutateRow(b.Context(), req); err != nil {
			b.Fatal(err)
		}
	}
}

// TestShortRead_Left: the handler of a read of one row has returned when its first message
// arrives. A client that leaves then leaves nothing to end.
func TestShortRead_Left(t *testing.T) {
	t.Parallel()
	ch := open(t, newService(), inproc.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var reported []string
	req := &btpb.ReadRowsRequest{RowsLimit: 2, Rows: &btpb.RowSet{RowKeys: [][]byte{[]byte("row0")}}}
	stream, err := btpb.NewBigtableClient(ch).ReadRows(ctx, req, grpc.OnFinish(func(err error) { reported = append(reported, describe(err)) }))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"<nil>"}, reported); diff != "" {
		t.Errorf("reported end of the handler (-want +got):\n%s", diff)
	}
	cancel()
	if _, err := stream.Recv(); status.Code(err) != codes.Canceled {
		t.Errorf("a message after the client has left: %v", err)
	}
	if len(reported) != 1 {
		t.Errorf("the end was reported %d times", len(reported))
	}
}

// TestShortRead_Goexit: a goroutine that ends inside an interceptor, such as a failing test,
// does not block Close.
func TestShortRead_Goexit(t *testing.T) {
	t.Parallel()
	ch := inproc.New(inproc.Options{Stream: func(any, grpc.ServerStream, *grpc.StreamServerInfo, grpc.StreamHandler) error {
		runtime.Goexit()
		return nil
	}})
	ch.RegisterService(&btpb.Bigtable_ServiceDesc, newService())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		stream, err := btpb.NewBigtableClient(ch).ReadRows(t.Context(), &btpb.ReadRowsRequest{Rows: &btpb.RowSet{RowKeys: [][]byte{[]byte("row0")}}})
		if err != nil {
			t.Error(err)
			return
		}
		_, err = stream.Recv()
		t.Errorf("the interceptor returned: %v", err)
	}()
	<-ended
	if err := ch.Close(); err != nil {
		t.Error(err)
	}
}

// TestClose_Waits checks that no handler runs after Close has returned, whether its reader has
// left or still reads.
func TestClose_Waits(t *testing.T) {
	t.Parallel()
	for range 50 {
		var running atomic.Int32
		ch := inproc.New(inproc.Options{Stream: func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) error {
			running.Add(1)
			defer running.Add(-1)
			return h(srv, ss)
		}})
		ch.RegisterService(&btpb.Bigtable_ServiceDesc, endless{})
		left, leave := context.WithCancel(t.Context())
		for _, ctx := range []context.Context{left, t.Context()} {
			stream, err := btpb.NewBigtableClient(ch).ReadRows(ctx, &btpb.ReadRowsRequest{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := stream.Recv(); err != nil {
				t.Fatal(err)
			}
		}
		leave()
		if err := ch.Close(); err != nil {
			t.Fatal(err)
		}
		if n := running.Load(); n != 0 {
			t.Fatalf("%d handlers run after Close", n)
		}
	}
}

// endless sends rows until its client has left.
type endless struct {
	btpb.UnimplementedBigtableServer
}

func (endless) ReadRows(_ *btpb.ReadRowsRequest, s btpb.Bigtable_ReadRowsServer) error {
	for {
		if err := s.Send(&btpb.ReadRowsResponse{}); err != nil {
			return err
		}
	}
}
