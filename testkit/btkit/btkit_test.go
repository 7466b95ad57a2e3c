package btkit_test

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"go.uber.org/goleak"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tabletop-emu/tabletop/testkit/btkit"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// The client's metrics library starts one on import.
		goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}

// createTable creates a table whose families keep max versions.
func createTable(t *testing.T, env *btkit.Env, table string, max int, families ...string) {
	t.Helper()
	admin := env.BigtableAdmin(t)
	if err := admin.CreateTable(t.Context(), table); err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if err := admin.CreateColumnFamilyWithConfig(t.Context(), table, f, bigtable.Family{GCPolicy: bigtable.MaxVersionsGCPolicy(max)}); err != nil {
			t.Fatal(err)
		}
	}
}

func set(t *testing.T, env *btkit.Env, table, row, family, column string, value []byte) {
	t.Helper()
	m := bigtable.NewMutation()
	m.Set(family, column, bigtable.Time(env.Now()), value)
	if err := env.Bigtable(t).Open(table).Apply(t.Context(), row, m); err != nil {
		t.Fatal(err)
	}
}

// TestLight: a test that imports the package compiles no DynamoDB code except the values of
// items, and none of the packages that load and verify data.
func TestLight(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := strings.Fields(string(out))
	if len(deps) < 100 {
		t.Fatalf("%d packages are listed, which cannot be all", len(deps))
	}
	const module = "github.com/tabletop-emu/tabletop/"
	heavy := []string{
		"github.com/aws/", module + "facade", module + "fixtures", module + "migrate", module + "control/lab/dynamodb", module + "cmd/",
	}
	for _, dep := range deps {
		for _, h := range heavy {
			if strings.HasPrefix(dep, h) && dep != module+"facade/attr" && dep != module+"facade/maperr" { // leaves
				t.Errorf("compiled by a test that uses only Bigtable: %s", dep)
			}
		}
	}
}

// TestStart_Alone: concurrent environments share neither rows nor time, and are reached in
// process and through a port of their own.
func TestStart_Alone(t *testing.T) {
	t.Parallel()
	began := time.Unix(1_700_000_000, 0)
	for i := range 8 {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			env := btkit.Start(t, btkit.WithFrozenClock(began))
			createTable(t, env, "t", 1, "f")
			set(t, env, "t", t.Name(), "f", "q", nil)
			conn, err := grpc.NewClient(env.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				t.Fatal(err)
			}
			client, err := bigtable.NewClientWithConfig(t.Context(), env.Project(), env.Instance(),
				bigtable.ClientConfig{MetricsProvider: bigtable.NoopMetricsProvider{}}, option.WithGRPCConn(conn))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = client.Close() })
			var keys []string
			err = client.Open("t").ReadRows(t.Context(), bigtable.InfiniteRange(""), func(r bigtable.Row) bool {
				keys = append(keys, r.Key())
				return true
			})
			if err != nil || len(keys) != 1 || keys[0] != t.Name() {
				t.Errorf("rows %q, %v", keys, err)
			}
			after := time.Duration(i) * time.Hour
			if now := env.Advance(after); !now.Equal(began.Add(after)) {
				t.Errorf("the time is %v", now)
			}
		})
	}
}
