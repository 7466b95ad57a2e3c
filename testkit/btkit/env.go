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
// passed to Start, or panic after its end.
type Env struct {
	Clusters

	server *server.Server
}

// Project returns the id of the project that contains the environment's instance.
func (e *Env) Project() string { return e.server.Lab().Options().Project }

// Instance returns the id of the environment's instance, which the clients use.
func (e *Env) Instance() string { return e.server.Lab().Options().Instance }

// Bigtable returns a data client that is closed at the end of the test tb. All clients share the
// connection of [Env.Conn]. After a client is closed, its new calls fail; its running calls and
// other clients continue.
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

// BigtableAdmin returns a table admin client that is closed at the end of the test tb, as by
// [Env.Bigtable].
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

// BigtableInstanceAdmin returns an instance admin client, for logical and materialized views, that is closed at
// the end of the test tb, as by [Env.Bigtable].
func (e *Env) BigtableInstanceAdmin(tb testing.TB) *bigtable.InstanceAdminClient {
	tb.Helper()
	client, err := bigtable.NewInstanceAdminClient(tb.Context(), e.Project(), option.WithGRPCConn(e.server.ClientConn(tb)))
	if err != nil {
		tb.Fatalf("testkit: Bigtable instance admin client: %v", err)
	}
	tb.Cleanup(func() { _ = client.Close() })
	return client
}

// Conn returns an in-process gRPC connection to the server that accepts messages up to 256 MiB. All
// clients of the environment share it, and it closes with the environment. Callers must not close
// it. Official clients close the connection that they are given, so use [Env.Bigtable],
// [Env.BigtableAdmin] and [Env.BigtableInstanceAdmin] for them.
func (e *Env) Conn() *grpc.ClientConn {
	e.server.TB().Helper()
	conn, err := e.server.Connect()
	if err != nil {
		e.server.TB().Fatalf("testkit: %v", err)
	}
	return conn
}

// Addr returns the loopback address of the Bigtable server as host:port, for clients that dial
// BIGTABLE_EMULATOR_HOST. The first call opens the port.
func (e *Env) Addr() string {
	e.server.TB().Helper()
	return e.server.Addr()
}

// Now returns the current time on the environment's clock.
func (e *Env) Now() time.Time { return e.server.Lab().Clock().Now() }

// Advance moves the environment's time forward by d and returns the new time. It runs scheduled
// work in order, each item at its due time: the work of Bigtable's resources, garbage collection if
// the environment was started with GCBackground, and the deletion of expired DynamoDB items with
// package testkit. It merges consecutive garbage collections that have no other work between them.
func (e *Env) Advance(d time.Duration) time.Time {
	e.server.TB().Helper()
	now, err := e.server.Lab().Advance(d)
	if err != nil {
		e.server.TB().Fatalf("testkit: %v", err)
	}
	return now
}

// RunGC applies the garbage-collection rules of all families once, at the environment's current
// time, and returns the number of deleted cells.
func (e *Env) RunGC() (cellsDeleted int64) {
	e.server.TB().Helper()
	cellsDeleted, err := e.server.Lab().RunGC(e.server.Context())
	e.server.Must("RunGC", err)
	return cellsDeleted
}
