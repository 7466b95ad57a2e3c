package btkit

import (
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/api/option"
	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/testkit/internal/server"
)

// Env is a private Bigtable server. Its methods may be called from several goroutines.
// Methods that take a testing.TB fail that test; the other methods fail the test that was
// passed to Start.
type Env struct {
	Clusters

	server *server.Server
}

// Project returns the project of the environment's instance.
func (e *Env) Project() string { return e.server.Lab().Options().Project }

// Instance returns the instance of the clients.
func (e *Env) Instance() string { return e.server.Lab().Options().Instance }

// Bigtable returns a data client for the test tb, which closes it. All clients use the
// connection of [Env.Conn]: closing a client affects its next call, not running ones or other
// clients.
func (e *Env) Bigtable(tb testing.TB) *bigtable.Client {
	tb.Helper()
	return e.client(tb, e.server.ClientConn(tb))
}

func (e *Env) client(tb testing.TB, conn *grpc.ClientConn) *bigtable.Client {
	tb.Helper()
	client, err := bigtable.NewClientWithConfig(tb.Context(), e.Project(), e.Instance(),
		bigtable.ClientConfig{MetricsProvider: bigtable.NoopMetricsProvider{}}, option.WithGRPCConn(conn))
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
	return e.adminClient(tb, e.server.ClientConn(tb))
}

func (e *Env) adminClient(tb testing.TB, conn *grpc.ClientConn) *bigtable.AdminClient {
	tb.Helper()
	client, err := bigtable.NewAdminClient(tb.Context(), e.Project(), e.Instance(), option.WithGRPCConn(conn))
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
	e.server.TB().Helper()
	conn, err := e.server.Connect()
	if err != nil {
		e.server.TB().Fatalf("testkit: %v", err)
	}
	return conn
}

// Addr returns the loopback address, host:port, of the Bigtable server, for clients that dial
// BIGTABLE_EMULATOR_HOST. The first call opens the port.
func (e *Env) Addr() string {
	e.server.TB().Helper()
	return e.server.Addr()
}

// Now returns the environment's time.
func (e *Env) Now() time.Time { return e.server.Lab().Clock().Now() }

// Advance moves the environment's time forward by d and returns the new time. On the way it
// stops whenever work is due, in order, and runs it as of that time: the work of Bigtable's
// resources, the collection of garbage if the environment was started with GCBackground and,
// with package testkit, the deletion of expired DynamoDB items. Consecutive collections, one a
// minute with no other work between them, run as one.
func (e *Env) Advance(d time.Duration) time.Time {
	e.server.TB().Helper()
	now, err := e.server.Lab().Advance(d)
	if err != nil {
		e.server.TB().Fatalf("testkit: %v", err)
	}
	return now
}

// RunGC applies the garbage-collection rules of all families once, at the environment's time,
// and returns the number of deleted cells.
func (e *Env) RunGC() (cellsDeleted int64) {
	e.server.TB().Helper()
	cellsDeleted, err := e.server.Lab().RunGC(e.server.Context())
	e.server.Must("RunGC", err)
	return cellsDeleted
}
