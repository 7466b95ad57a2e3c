package testkit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/tabletop-emu/tabletop/control/lab"
	labdynamodb "github.com/tabletop-emu/tabletop/control/lab/dynamodb"
)

const (
	// target names the server in this process. Nobody looks the name up.
	target = "passthrough:///tabletop"
	// maxMessageBytes is what a connection accepts and sends, as the official
	// clients do against the cloud.
	maxMessageBytes = 256 << 20
	// bufconnBytes is the buffer of the in-process listener.
	// A connection has two, made and cleared at its start; gRPC writes as much
	// at once.
	bufconnBytes = 32 << 10
	// clientReadBytes is what a client reads at once, unless it waits for more.
	clientReadBytes = 4 << 10
	// streamWorkers are as many goroutines as a test has calls at once, more or
	// less: starting those of a server with many clients would take a twentieth of
	// the time from Start to the first answer.
	streamWorkers = 4
	// gcInterval is the time between two collections of GCBackground.
	gcInterval = time.Minute
)

// Env is a private server with a Bigtable and a DynamoDB door. Its methods may
// be called from several goroutines; those that take a testing.TB fail that
// test, the others the one that Start was given.
type Env struct {
	Clusters

	tb     testing.TB
	config config
	ctx    context.Context // ends after the test, for work that outlives a call
	cancel context.CancelFunc
	lab    *lab.Lab
	ddb    *labdynamodb.Endpoint

	mu      sync.Mutex // guards all below: each is started when first asked for
	conn    *grpc.ClientConn
	addr    string
	http    *http.Server
	httpURL string
	serving sync.WaitGroup // of the Serve loops
}

// Project returns the project of the environment's instance.
func (e *Env) Project() string { return e.config.project }

// Instance returns the instance that the clients are connected to.
func (e *Env) Instance() string { return e.config.instance }

// Bigtable returns a data client for the test tb, which closes it. All clients
// talk over the connection of [Env.Conn]: closing a client affects its next call,
// not those under way or other clients.
func (e *Env) Bigtable(tb testing.TB) *bigtable.Client {
	tb.Helper()
	client, err := bigtable.NewClientWithConfig(tb.Context(), e.Project(), e.Instance(),
		bigtable.ClientConfig{MetricsProvider: bigtable.NoopMetricsProvider{}}, option.WithGRPCConn(e.dial(tb)))
	if err != nil {
		tb.Fatalf("testkit: Bigtable client: %v", err)
	}
	tb.Cleanup(func() { _ = client.Close() })
	return client
}

// BigtableAdmin returns a table-admin client for the test tb, which closes it,
// like that of [Env.Bigtable].
func (e *Env) BigtableAdmin(tb testing.TB) *bigtable.AdminClient {
	tb.Helper()
	client, err := bigtable.NewAdminClient(tb.Context(), e.Project(), e.Instance(), option.WithGRPCConn(e.dial(tb)))
	if err != nil {
		tb.Fatalf("testkit: Bigtable admin client: %v", err)
	}
	tb.Cleanup(func() { _ = client.Close() })
	return client
}

// Conn returns a gRPC connection to the server, in this process, that accepts
// messages up to 256 MiB. It is shared by all clients of the environment and ends
// with it. It must not be closed, and official clients close the connection they
// are given: for these, use [Env.Bigtable] and [Env.BigtableAdmin].
func (e *Env) Conn() *grpc.ClientConn {
	e.tb.Helper()
	conn, err := e.connect()
	if err != nil {
		e.tb.Fatalf("testkit: %v", err)
	}
	return conn
}

// Addr returns the loopback address, host:port, of the Bigtable server, for
// clients that dial BIGTABLE_EMULATOR_HOST. The port is opened at the first
// call.
func (e *Env) Addr() string {
	e.tb.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.addr == "" {
		lis := e.listen()
		e.addr = lis.Addr().String()
		e.serveLocked(lis)
	}
	return e.addr
}

// RoundTripper returns the transport of [Env.DynamoDB], for clients that a test
// sets up by itself: it hands requests to any host to the DynamoDB server in
// this process.
func (e *Env) RoundTripper() http.RoundTripper {
	e.tb.Helper()
	if err := e.ddb.Open(); err != nil {
		e.tb.Fatalf("testkit: DynamoDB server: %v", err)
	}
	return e.ddb
}

// DynamoDB returns a client for the test tb. It calls the server in this
// process and opens no port. It retries as often as by default, but without
// delay.
func (e *Env) DynamoDB(tb testing.TB) *dynamodb.Client {
	tb.Helper()
	if err := e.ddb.Open(); err != nil {
		tb.Fatalf("testkit: DynamoDB server: %v", err)
	}
	return dynamodb.NewFromConfig(e.clientConfig())
}

// DynamoDBURL returns the loopback URL of the DynamoDB server, for clients
// that are given AWS_ENDPOINT_URL_DYNAMODB, and AWS_ENDPOINT_URL_DYNAMODB_STREAMS.
// The port is opened at the first call.
func (e *Env) DynamoDBURL() string {
	e.tb.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.http == nil {
		if err := e.ddb.Open(); err != nil {
			e.tb.Fatalf("testkit: DynamoDB server: %v", err)
		}
		lis := e.listen()
		e.httpURL = "http://" + lis.Addr().String()
		e.http = &http.Server{Handler: e.ddb, ReadHeaderTimeout: time.Minute}
		e.serving.Go(func() {
			if err := e.http.Serve(lis); !errors.Is(err, http.ErrServerClosed) {
				e.tb.Errorf("testkit: DynamoDB server: %v", err)
			}
		})
	}
	return e.httpURL
}

// Now returns the environment's time.
func (e *Env) Now() time.Time { return e.config.clock.Now() }

// Advance moves the environment's time forward by d and returns the new time. On
// the way it stops whenever something is due, in order, and does it as at that
// time: it deletes expired DynamoDB items, does what resources of the Bigtable ask
// for, and collects garbage if the environment was started with GCBackground.
// Collections of which each would find what the one before left, a minute after the
// other with nothing else in between, are one.
func (e *Env) Advance(d time.Duration) time.Time {
	e.tb.Helper()
	now, err := e.lab.Advance(d)
	if err != nil {
		e.tb.Fatalf("testkit: %v", err)
	}
	return now
}

// RunGC applies the garbage-collection rules of all families once, at the
// environment's time, and returns how many cells it deleted.
func (e *Env) RunGC() (cellsDeleted int64) {
	e.tb.Helper()
	cellsDeleted, err := e.lab.RunGC(e.ctx)
	e.must("RunGC", err)
	return cellsDeleted
}

// connect returns the connection of Conn.
func (e *Env) connect() (*grpc.ClientConn, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.conn != nil {
		return e.conn, nil
	}
	lis := bufconn.Listen(bufconnBytes)
	conn, err := grpc.NewClient(target,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }),
		// A large buffer spares system calls, of which there are none.
		grpc.WithReadBufferSize(clientReadBytes),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageBytes), grpc.MaxCallSendMsgSize(maxMessageBytes)))
	if err != nil {
		return nil, err
	}
	e.serveLocked(lis)
	e.conn = conn
	return conn, nil
}

// dial returns a connection for one client. The official clients close what they
// are given, which is why they cannot have that of Conn; but its calls go over
// that: a second handshake would cost half as much as opening the store.
//
// Its calls carry the pairs of header.
func (e *Env) dial(tb testing.TB, header ...string) *grpc.ClientConn {
	tb.Helper()
	shared, err := e.connect()
	if err != nil {
		tb.Fatalf("testkit: %v", err)
	}
	conn, err := grpc.NewClient(target,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(over{shared, header}.unary),
		grpc.WithStreamInterceptor(over{shared, header}.stream))
	if err != nil {
		tb.Fatalf("testkit: %v", err)
	}
	return conn
}

// over makes the calls of a connection go over another, as long as it is open. It
// never connects by itself.
type over struct {
	shared *grpc.ClientConn
	header []string
}

// carrying adds the pairs of the header, if there are any.
func (o over) carrying(ctx context.Context) context.Context {
	if len(o.header) == 0 {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, o.header...)
}

func (o over) unary(ctx context.Context, method string, req, resp any, conn *grpc.ClientConn, _ grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if conn.GetState() == connectivity.Shutdown {
		return errClientClosed
	}
	return o.shared.Invoke(o.carrying(ctx), method, req, resp, opts...)
}

func (o over) stream(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, _ grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if conn.GetState() == connectivity.Shutdown {
		return nil, errClientClosed
	}
	return o.shared.NewStream(o.carrying(ctx), desc, method, opts...)
}

// errClientClosed is what gRPC answers to a call over a closed connection.
var errClientClosed = status.Error(codes.Canceled, "grpc: the client connection is closing")

func (e *Env) listen() net.Listener {
	e.tb.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		e.tb.Fatalf("testkit: %v", err)
	}
	return lis
}

func (e *Env) serveLocked(lis net.Listener) {
	e.serving.Go(func() {
		if err := e.lab.Bigtable().Serve(lis); err != nil {
			e.tb.Errorf("testkit: Bigtable server: %v", err)
		}
	})
}

// closeStore closes the store, if it is open, with the connection and the listeners in
// this process. mu is held.
func (e *Env) closeStore() error {
	var err error
	if e.conn != nil {
		if err = e.conn.Close(); err != nil {
			err = fmt.Errorf("closing the connection: %w", err)
		}
		e.conn = nil
	}
	return errors.Join(err, e.lab.CloseStore(e.serving.Wait))
}

// restart closes the store and opens it again. The environment must have been
// started to be restarted, or with a folder: what is only in memory would be gone.
// Its clients and ports have lost their server then, and none of its methods may be
// called meanwhile: it is for environments that nobody else has.
func (e *Env) restart() error {
	return e.ddb.Restart(func() error {
		e.mu.Lock()
		defer e.mu.Unlock()
		if err := e.closeStore(); err != nil {
			return err
		}
		return e.lab.Open()
	})
}

// close ends everything, the doors first, then what is behind them.
func (e *Env) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	report := func(what string, err error) {
		if err != nil {
			e.tb.Errorf("testkit: %s: %v", what, err)
		}
	}
	if e.http != nil {
		report("closing the DynamoDB port", e.http.Close())
	}
	report("closing the DynamoDB server", e.ddb.Close())
	e.cancel()
	e.lab.End()
	report("ending", e.closeStore())
}
