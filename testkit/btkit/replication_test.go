package btkit_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/internal/test/faketb"
	"github.com/tabletop-emu/tabletop/testkit/btkit"
)

// replicated returns an environment with the clusters c and c2, a table, and app profiles: one
// with each cluster's name, and any.
func replicated(t *testing.T, opts ...btkit.Option) *btkit.Env {
	t.Helper()
	env := btkit.Start(t, append(opts, btkit.WithFrozenClock(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)))...)
	admin := btapb.NewBigtableInstanceAdminClient(env.Conn())
	_, err := admin.CreateCluster(t.Context(), &btapb.CreateClusterRequest{
		Parent: instanceOf(env), ClusterId: "c2", Cluster: &btapb.Cluster{Location: "projects/" + env.Project() + "/locations/us-east1-b", ServeNodes: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	single := func(id string) *btapb.AppProfile {
		return &btapb.AppProfile{RoutingPolicy: &btapb.AppProfile_SingleClusterRouting_{SingleClusterRouting: &btapb.AppProfile_SingleClusterRouting{ClusterId: id}}}
	}
	for id, p := range map[string]*btapb.AppProfile{
		"c": single("c"), "c2": single("c2"),
		"any": {RoutingPolicy: &btapb.AppProfile_MultiClusterRoutingUseAny_{MultiClusterRoutingUseAny: &btapb.AppProfile_MultiClusterRoutingUseAny{}}},
	} {
		if _, err := admin.CreateAppProfile(t.Context(), &btapb.CreateAppProfileRequest{Parent: instanceOf(env), AppProfileId: id, AppProfile: p}); err != nil {
			t.Fatal(err)
		}
	}
	createTable(t, env, "t", 1, "f")
	return env
}

func instanceOf(env *btkit.Env) string {
	return "projects/" + env.Project() + "/instances/" + env.Instance()
}

// ping calls through a profile, and returns the cluster that answered.
func ping(t *testing.T, env *btkit.Env, profile string) (cluster string, code codes.Code) {
	t.Helper()
	var header metadata.MD
	_, err := btpb.NewBigtableClient(env.Conn()).PingAndWarm(t.Context(), &btpb.PingAndWarmRequest{Name: instanceOf(env), AppProfileId: profile}, grpc.Header(&header))
	return strings.Join(header.Get("x-goog-ext-425905942-bin"), ""), status.Code(err)
}

func TestReplication_Tokens(t *testing.T) {
	t.Parallel()
	env := replicated(t)
	admin := btapb.NewBigtableTableAdminClient(env.Conn())
	table := instanceOf(env) + "/tables/t"
	write := func() (token string) {
		set(t, env, "t", "r", "f", "q", []byte("v"))
		resp, err := admin.GenerateConsistencyToken(t.Context(), &btapb.GenerateConsistencyTokenRequest{Name: table})
		if err != nil {
			t.Fatal(err)
		}
		return resp.GetConsistencyToken()
	}
	check := func(token string, boost, want bool) {
		t.Helper()
		req := &btapb.CheckConsistencyRequest{Name: table, ConsistencyToken: token}
		if boost {
			req.Mode = &btapb.CheckConsistencyRequest_DataBoostReadLocalWrites{}
		}
		if resp, err := admin.CheckConsistency(t.Context(), req); err != nil || resp.GetConsistent() != want {
			t.Errorf("consistent: %v, %v, want %v", resp.GetConsistent(), err, want)
		}
	}
	env.ReplicationLag(time.Minute)
	token := write()
	check(token, false, false)
	env.Advance(time.Minute)
	check(token, false, true)

	env.ReplicationLagBetween("c", "c2", time.Hour)
	token = write()
	env.Advance(time.Minute)
	check(token, false, false)
	env.ReplicateAll()
	check(token, false, true)

	env.ReplicationLag(0)
	env.PauseReplication("c", "c2")
	token = write()
	env.Advance(time.Hour)
	check(token, false, false)
	env.ResumeReplication("c", "c2")
	check(token, false, true)

	env.DataBoostLag(time.Minute)
	token = write()
	check(token, true, false)
	env.Advance(time.Minute)
	check(token, true, true)
}

// TestReplication_Failures: clusters fail until they recover, or the environment is reset; a
// restore does not change them.
func TestReplication_Failures(t *testing.T) {
	t.Parallel()
	env := replicated(t)
	base := env.Snapshot()
	check := func(want codes.Code) {
		t.Helper()
		if _, got := ping(t, env, "c2"); got != want {
			t.Errorf("c2 answers %v, want %v", got, want)
		}
	}
	check(codes.OK)
	env.FailCluster("c2")
	check(codes.Unavailable)
	env.Restore(base)
	check(codes.Unavailable)
	env.RecoverCluster("c2")
	check(codes.OK)
	env.FailCluster("c2")
	env.Reset()
	env.Restore(base)
	check(codes.OK)
}

// TestReplication_UnknownCluster: invalid cluster names fail the test, with the name.
func TestReplication_UnknownCluster(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(env *btkit.Env){
		"FailCluster":           func(env *btkit.Env) { env.FailCluster("z") },
		"RecoverCluster":        func(env *btkit.Env) { env.RecoverCluster("z") },
		"PauseReplication":      func(env *btkit.Env) { env.PauseReplication("c", "z") },
		"ResumeReplication":     func(env *btkit.Env) { env.ResumeReplication("z", "c2") },
		"ReplicationLagBetween": func(env *btkit.Env) { env.ReplicationLagBetween("c", "z", time.Second) },
		"ReplicationLag":        func(env *btkit.Env) { env.ReplicationLag(-1) },
		"DataBoostLag":          func(env *btkit.Env) { env.DataBoostLag(-1) },
	} {
		message := faketb.Failure(t, func(tb testing.TB) {
			tb.Helper()
			call(btkit.Start(tb))
		})
		want := `no cluster "z"; it has c`
		if strings.HasSuffix(name, "Lag") {
			want = "-1ns is not between 0 and 168h0m0s"
		}
		if !strings.HasPrefix(message, "testkit: "+name+": ") || !strings.Contains(message, want) {
			t.Errorf("%s: %q", name, message)
		}
	}
}

// TestWithRandomRouting: profiles to any cluster draw one, by the seed.
func TestWithRandomRouting(t *testing.T) {
	t.Parallel()
	draws := func(seed uint64) (all []string) {
		env := replicated(t, btkit.WithRandomRouting(), btkit.WithSeed(seed))
		for range 20 {
			cluster, _ := ping(t, env, "any")
			all = append(all, cluster)
		}
		return all
	}
	one, again, other := draws(1), draws(1), draws(2)
	if strings.Join(one, "") != strings.Join(again, "") || strings.Join(one, "") == strings.Join(other, "") {
		t.Errorf("drawn: %q, %q, %q", one, again, other)
	}
}

// A reader through a profile to any cluster does not always see writes through the same
// profile, as in production; it does after they have arrived.
func TestReplication_Reads(t *testing.T) {
	t.Parallel()
	env := replicated(t, btkit.WithRandomRouting())
	env.ReplicationLag(time.Minute)
	data := btpb.NewBigtableClient(env.Conn())
	table := instanceOf(env) + "/tables/t"
	found := func() (n int) {
		t.Helper()
		for range 40 {
			stream, err := data.ReadRows(t.Context(), &btpb.ReadRowsRequest{TableName: table, AppProfileId: "any"})
			if err != nil {
				t.Fatal(err)
			}
			switch resp, err := stream.Recv(); {
			case err == nil && len(resp.GetChunks()) > 0:
				n++
				_, _ = stream.Recv() // the end
			case !errors.Is(err, io.EOF):
				t.Fatal(err)
			}
		}
		return n
	}
	_, err := data.MutateRow(t.Context(), &btpb.MutateRowRequest{
		TableName: table, AppProfileId: "any", RowKey: []byte("r"), Mutations: []*btpb.Mutation{{
			Mutation: &btpb.Mutation_SetCell_{SetCell: &btpb.Mutation_SetCell{FamilyName: "f", TimestampMicros: 1000, Value: []byte("v")}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := found(); n == 0 || n == 40 {
		t.Errorf("%d of 40 reads find data of one of two clusters", n)
	}
	env.Advance(time.Minute)
	if n := found(); n != 40 {
		t.Errorf("%d of 40 reads find the arrived data", n)
	}
}
