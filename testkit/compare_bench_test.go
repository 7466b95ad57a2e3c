package testkit

import (
	"slices"
	"testing"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/bttest"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// scope is a test inside another: its cleanups run at its end.
type scope struct {
	testing.TB
	cleanups []func()
}

func (s *scope) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }

func (s *scope) end() {
	for _, f := range slices.Backward(s.cleanups) {
		f()
	}
}

// BenchmarkCompareStart measures the time to the first acknowledged write through the official client,
// in this process.
func BenchmarkCompareStart(b *testing.B) {
	write := func(b *testing.B, admin *bigtable.AdminClient, c *bigtable.Client) {
		b.Helper()
		if err := admin.CreateTableFromConf(b.Context(), &bigtable.TableConf{TableID: "t", Families: map[string]bigtable.GCPolicy{"f": bigtable.NoGcPolicy()}}); err != nil {
			b.Fatal(err)
		}
		m := bigtable.NewMutation()
		m.Set("f", "q", 1000, []byte("v"))
		if err := c.Open("t").Apply(b.Context(), "r", m); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("testkit", func(b *testing.B) {
		for b.Loop() {
			s := &scope{TB: b}
			env := Start(s)
			write(b, env.BigtableAdmin(s), env.Bigtable(s))
			s.end()
		}
	})
	b.Run("bttest", func(b *testing.B) {
		for b.Loop() {
			srv, err := bttest.NewServer("127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			conn, err := grpc.NewClient(srv.Addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				b.Fatal(err)
			}
			admin, err := bigtable.NewAdminClient(b.Context(), "p", "i", option.WithGRPCConn(conn))
			if err != nil {
				b.Fatal(err)
			}
			c, err := bigtable.NewClientWithConfig(b.Context(), "p", "i", bigtable.ClientConfig{MetricsProvider: bigtable.NoopMetricsProvider{}}, option.WithGRPCConn(conn))
			if err != nil {
				b.Fatal(err)
			}
			write(b, admin, c)
			_ = c.Close()
			_ = conn.Close()
			srv.Close()
		}
	})
}
