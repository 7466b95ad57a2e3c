package store

import (
	"errors"
	"flag"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/test/memory"
	"github.com/tabletop-emu/tabletop/internal/test/peer"
)

var remoteBigtable = flag.String("facade.bigtable", "",
	"HOST:PORT of a Bigtable without TLS that the tests use instead of one in this process; it should collect no garbage by itself")

// testBigtable returns an empty Bigtable for one test, with the clock now: in this process,
// or its own instance at -facade.bigtable, with that server's clock. Tests that need that
// clock, or garbage collection at a certain time, open one in this process themselves.
func testBigtable(tb testing.TB, now *clock.Clock) grpc.ClientConnInterface {
	tb.Helper()
	if *remoteBigtable != "" {
		return dialRemote(tb)
	}
	db, err := engine.Open(engine.Options{Now: now.Now})
	if err != nil {
		tb.Fatal(err)
	}
	srv, err := emu.New(emu.Options{DB: db, Clock: now, CloneInProcess: true})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := errors.Join(srv.Close(), db.Close()); err != nil {
			tb.Error(err)
		}
	})
	return srv.Conn()
}

func dialRemote(tb testing.TB) *peer.Conn {
	tb.Helper()
	conn, err := grpc.NewClient("passthrough:///"+*remoteBigtable, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(256<<20), grpc.MaxCallSendMsgSize(256<<20)))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := conn.Close(); err != nil {
			tb.Error(err)
		}
	})
	return peer.Apart(conn)
}

func TestMain(m *testing.M) {
	memory.CollectSeldom()
	goleak.VerifyTestMain(m)
}

// testTime is the start time of every test.
var testTime = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
