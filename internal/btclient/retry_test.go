package btclient_test

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/internal/btclient"
)

// TestRetry_Unsent: a call that is not idempotent is retried only if it was never sent; reads
// and idempotent calls are also retried after other errors.
func TestRetry_Unsent(t *testing.T) {
	t.Parallel()
	unsent := &btclient.UnsentError{Err: errBroken}
	for _, c := range []struct {
		call string
		may  bool // the call may be sent twice
		do   func(context.Context, *btclient.Client) error
	}{
		{"CheckAndMutateRow", false, func(ctx context.Context, c *btclient.Client) error {
			_, err := c.CheckAndMutate(ctx, "t", []byte("a"), nil, nil, nil)
			return err
		}},
		{"ReadModifyWriteRow", false, func(ctx context.Context, c *btclient.Client) error {
			_, err := c.ReadModifyWrite(ctx, "t", []byte("a"))
			return err
		}},
		{"CreateTable", true, func(ctx context.Context, c *btclient.Client) error {
			_, err := c.EnsureTable(ctx, "t", nil, nil)
			return err
		}},
		{"ModifyColumnFamilies", false, func(ctx context.Context, c *btclient.Client) error {
			return c.SetGC(ctx, "t", btclient.Family{Name: "f"})
		}},
		{"DeleteTable", false, func(ctx context.Context, c *btclient.Client) error { return c.DropTable(ctx, "t") }},
		{"DropRowRange", false, func(ctx context.Context, c *btclient.Client) error { return c.EmptyTable(ctx, "t") }},
		{"MutateRow", true, func(ctx context.Context, c *btclient.Client) error {
			return c.MutateRow(ctx, "t", []byte("a"), nil)
		}},
		{"ListTables", true, func(ctx context.Context, c *btclient.Client) error {
			_, err := c.Tables(ctx)
			return err
		}},
		{"GetTable", true, func(ctx context.Context, c *btclient.Client) error {
			_, err := c.Families(ctx, "t")
			return err
		}},
		{"SampleRowKeys", true, func(ctx context.Context, c *btclient.Client) error {
			_, _, err := c.SampleKeys(ctx, "t")
			return err
		}},
	} {
		for _, answer := range []error{unsent, errBroken} {
			f := &fake{answer: func(int, proto.Message) ([]proto.Message, error) { return nil, answer }}
			err := c.do(t.Context(), f.client(btclient.Options{Retry: btclient.Retry{Reads: 2, Writes: 2}}))
			want := 1
			if c.may || errors.Is(answer, unsent) {
				want = 3
			}
			if f.calls() != want || status.Code(err) != codes.Unavailable {
				t.Errorf("%s after %T: %d calls, want %d; %v", c.call, answer, f.calls(), want, err)
			}
		}
	}
}

// TestRetry_Hopeless: a server that is not a Bigtable, or not trusted, gets no retry, unless
// there was an answer before.
func TestRetry_Hopeless(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"connection error: desc = \"error reading server preface: http2: failed reading the frame payload: http2: frame too large, note that the frame header looked like an HTTP/1.1 header\"",
		"connection error: desc = \"transport: authentication handshake failed: tls: failed to verify certificate: x509: certificate signed by unknown authority\"",
		"connection error: desc = \"transport: authentication handshake failed: tls: first record does not look like a TLS handshake\"",
	} {
		for _, answered := range []bool{false, true} {
			f := &fake{answer: func(call int, _ proto.Message) ([]proto.Message, error) {
				if answered && call == 0 {
					return nil, io.EOF
				}
				return nil, &btclient.UnsentError{Err: status.Error(codes.Unavailable, text)}
			}}
			c := f.client(btclient.Options{Retry: btclient.Retry{Reads: 3, Writes: 3}})
			if answered {
				if _, err := c.ReadRow(t.Context(), "t", []byte("a"), nil); err != nil {
					t.Fatal(err)
				}
			}
			want := 1
			if answered {
				want = 4
			}
			for _, do := range []func() error{
				func() error { _, err := c.ReadRow(t.Context(), "t", []byte("a"), nil); return err },
				func() error { return c.MutateRow(t.Context(), "t", []byte("a"), nil) },
				func() error { _, err := c.CheckAndMutate(t.Context(), "t", []byte("a"), nil, nil, nil); return err },
			} {
				before := len(f.reqs)
				if err := do(); err == nil || len(f.reqs)-before != want {
					t.Errorf("%s: error %v after %d calls, want %d; answered before: %t", text, err, len(f.reqs)-before, want, answered)
				}
			}
		}
	}
}

// TestRetry_Token: errors of the token server do not count as errors of the Bigtable.
func TestRetry_Token(t *testing.T) {
	t.Parallel()
	f := &fake{answer: func(int, proto.Message) ([]proto.Message, error) {
		return nil, &btclient.UnsentError{Err: status.Error(codes.Unavailable, "no access token is available: application default credentials: tls: failed to verify certificate: x509: certificate signed by unknown authority")}
	}}
	err := f.client(btclient.Options{Retry: btclient.Retry{Writes: 3}}).MutateRow(t.Context(), "t", []byte("a"), nil)
	if err == nil || f.calls() != 4 {
		t.Errorf("error %v after %d calls, want 4", err, f.calls())
	}
}

// TestRetry_Jitter: waits double, and each is shortened by up to a half.
func TestRetry_Jitter(t *testing.T) {
	t.Parallel()
	for jitter, want := range map[float64][]time.Duration{0: {100, 200, 400}, 0.5: {75, 150, 300}, 1: {50, 100, 200}} {
		var waits []time.Duration
		f := &fake{answer: func(int, proto.Message) ([]proto.Message, error) { return nil, errBroken }}
		err := f.client(btclient.Options{Retry: btclient.Retry{
			Writes: 3, First: 100, Jitter: func() float64 { return jitter },
			Sleep: func(_ context.Context, d time.Duration) error { waits = append(waits, d); return nil },
		}}).MutateRow(t.Context(), "t", []byte("a"), nil)
		if !slices.Equal(waits, want) || err == nil {
			t.Errorf("jitter %v: waits %v, want %v (%v)", jitter, waits, want, err)
		}
	}
}

// TestReportUnsent: what a connection tells is so. A call for which there is no connection
// is unsent; one that the server took, and whose answer is lost with the connection, is
// not.
func TestReportUnsent(t *testing.T) {
	t.Parallel()
	for _, taken := range []bool{false, true} {
		lis, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		srv := grpc.NewServer()
		begun := make(chan struct{}, 10)
		btpb.RegisterBigtableServer(srv, &cutting{begun: begun})
		served := make(chan struct{})
		if taken {
			go func() {
				defer close(served)
				_ = srv.Serve(lis)
			}()
			go func() {
				<-begun
				srv.Stop()
			}()
		} else {
			close(served)
			if err := lis.Close(); err != nil {
				t.Fatal(err)
			}
		}
		conn, err := grpc.NewClient("passthrough:///"+lis.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()), btclient.ReportUnsent())
		if err != nil {
			t.Fatal(err)
		}
		_, err = btclient.New(conn, "p", "i", btclient.Options{}).CheckAndMutate(t.Context(), "t", []byte("a"), nil, nil, nil)
		unsent := (*btclient.UnsentError)(nil)
		if status.Code(err) != codes.Unavailable || errors.As(err, &unsent) == taken {
			t.Errorf("taken %t: %v, unsent %t", taken, err, unsent != nil)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		srv.Stop()
		<-served
	}
}

// cutting is a Bigtable whose calls end with their connection.
type cutting struct {
	btpb.UnimplementedBigtableServer
	begun chan<- struct{}
}

func (c *cutting) CheckAndMutateRow(ctx context.Context, _ *btpb.CheckAndMutateRowRequest) (*btpb.CheckAndMutateRowResponse, error) {
	c.begun <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestDropRows_Deadline: dropping rows may take an hour, and no longer.
func TestDropRows_Deadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: func(int, proto.Message) ([]proto.Message, error) { return nil, nil }}
		begun := time.Now()
		err := f.client(btclient.Options{Deadline: time.Second}).DropRows(t.Context(), "t", []byte("a"))
		if late := (*btclient.DeadlineError)(nil); !errors.As(err, &late) || time.Since(begun) != time.Hour {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
	})
}

// TestRetry_Cost: without retries and a deadline, as inside a process, a call costs the same
// as its generated stub.
func TestRetry_Cost(t *testing.T) {
	conn := constant{}
	c, stub, ctx := btclient.New(conn, "p", "i", btclient.Options{Retry: btclient.Retry{Reads: 3}}), btpb.NewBigtableClient(conn), t.Context()
	key, path := []byte("a"), c.TablePath("t")
	header := metadata.Pairs("a", "b")
	want := testing.AllocsPerRun(100, func() {
		_, _ = stub.CheckAndMutateRow(metadata.NewOutgoingContext(ctx, header), &btpb.CheckAndMutateRowRequest{TableName: path, RowKey: key})
	})
	got := testing.AllocsPerRun(100, func() { _, _ = c.CheckAndMutate(ctx, "t", key, nil, nil, nil) })
	if got > want {
		t.Errorf("CheckAndMutate allocates %v times, its stub %v", got, want)
	}
}

// constant is a connection with empty answers.
type constant struct{}

func (constant) Invoke(context.Context, string, any, any, ...grpc.CallOption) error { return nil }

func (constant) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, io.EOF
}

// TestAppProfile: calls on rows name the app profile, in the request and its header.
func TestAppProfile(t *testing.T) {
	t.Parallel()
	for call, do := range map[string]func(context.Context, *btclient.Client) error{
		"ReadRows": func(ctx context.Context, c *btclient.Client) error {
			_, err := c.ReadRow(ctx, "t", []byte("a"), nil)
			return err
		},
		"SampleRowKeys": func(ctx context.Context, c *btclient.Client) error {
			_, _, err := c.SampleKeys(ctx, "t")
			return err
		},
		"MutateRow": func(ctx context.Context, c *btclient.Client) error {
			return c.MutateRow(ctx, "t", []byte("a"), nil)
		},
		"MutateRows": func(ctx context.Context, c *btclient.Client) error {
			_, err := c.MutateRows(ctx, "t", entries("a"))
			return err
		},
		"CheckAndMutateRow": func(ctx context.Context, c *btclient.Client) error {
			_, err := c.CheckAndMutate(ctx, "t", []byte("a"), nil, nil, nil)
			return err
		},
		"ReadModifyWriteRow": func(ctx context.Context, c *btclient.Client) error {
			_, err := c.ReadModifyWrite(ctx, "t", []byte("a"))
			return err
		},
	} {
		f := &fake{answer: func(int, proto.Message) ([]proto.Message, error) { return nil, errBroken }}
		if err := do(t.Context(), f.client(btclient.Options{AppProfile: "one cluster"})); err == nil {
			t.Errorf("%s does not fail", call)
		}
		profile := f.reqs[0].(interface{ GetAppProfileId() string }).GetAppProfileId()
		if header := f.headers[0].Get("x-goog-request-params"); profile != "one cluster" || len(header) != 1 || header[0] != "table_name=projects%2Fp%2Finstances%2Fi%2Ftables%2Ft&app_profile_id=one+cluster" {
			t.Errorf("%s goes by %q, header %q", call, profile, header)
		}
	}
}
