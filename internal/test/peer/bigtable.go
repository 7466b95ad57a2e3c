package peer

import (
	"errors"
	"flag"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/clock"
)

var remote = flag.String("facade.bigtable", "",
	"HOST:PORT of a Bigtable without TLS that the tests use instead of one in this process; it should collect no garbage by itself")

// IsRemote reports whether the tests use the Bigtable at -facade.bigtable.
func IsRemote() bool { return *remote != "" }

// Bigtable returns an empty Bigtable for one test, with the clock now: in this process, or its
// own instance at -facade.bigtable, with that server's clock. Tests that need that clock, or
// garbage collection at a certain time, open one in this process themselves.
func Bigtable(tb testing.TB, now *clock.Clock) grpc.ClientConnInterface {
	tb.Helper()
	if IsRemote() {
		return Dial(tb)
	}
	return Start(tb, engine.Options{Now: now.Now}, emu.Options{Clock: now, CloneInProcess: true}).Conn()
}

// Start starts a Bigtable over a store of its own, in this process. It ends with the test.
func Start(tb testing.TB, store engine.Options, o emu.Options) *emu.Server {
	tb.Helper()
	db, err := engine.Open(store)
	if err != nil {
		tb.Fatal(err)
	}
	o.DB = db
	srv, err := emu.New(o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := errors.Join(srv.Close(), db.Close()); err != nil {
			tb.Error(err)
		}
	})
	return srv
}

// Dial returns a connection to the Bigtable at -facade.bigtable, with instances of its own.
func Dial(tb testing.TB) *Conn {
	tb.Helper()
	conn, err := grpc.NewClient("passthrough:///"+*remote, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxReceiveBytes), grpc.MaxCallSendMsgSize(maxReceiveBytes)))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := conn.Close(); err != nil {
			tb.Error(err)
		}
	})
	return Apart(conn)
}
