package emu

import (
	"slices"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/iam"
	"google.golang.org/api/iterator"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tabletop-emu/tabletop/emu/internal/resname"
)

// TestOfficialAdminClients administers instances and tables over TCP with the official Go
// clients, which wait for operations.
func TestOfficialAdminClients(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	ctx := e.ctx()
	conn, err := grpc.NewClient(e.listen(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	instances, err := bigtable.NewInstanceAdminClient(ctx, "p", option.WithGRPCConn(conn))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = instances.Close() })
	admin, err := bigtable.NewAdminClient(ctx, "p", "made", option.WithGRPCConn(conn))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Close() })
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}

	// Instances and clusters.
	check(instances.CreateInstance(ctx, &bigtable.InstanceConf{
		InstanceId: "made", DisplayName: "Made", ClusterId: "c1", Zone: "z1", NumNodes: 3, InstanceType: bigtable.PRODUCTION, Labels: map[string]string{"k": "v"},
	}))
	info, err := instances.InstanceInfo(ctx, "made")
	check(err)
	if info.DisplayName != "Made" || info.InstanceState != bigtable.Ready || info.Labels["k"] != "v" {
		t.Errorf("got %+v", info)
	}
	check(instances.CreateCluster(ctx, &bigtable.ClusterConfig{
		InstanceID: "made", ClusterID: "c2", Zone: "z2", StorageType: bigtable.HDD,
		AutoscalingConfig: &bigtable.AutoscalingConfig{MinNodes: 2, MaxNodes: 4, CPUTargetPercent: 60},
	}))
	result, err := bigtable.UpdateInstanceAndSyncClusters(ctx, instances, &bigtable.InstanceWithClustersConfig{
		InstanceID: "made", DisplayName: "New", Clusters: []bigtable.ClusterConfig{
			{ClusterID: "c1", NumNodes: 5}, {ClusterID: "c3", Zone: "z3", NumNodes: 1},
		},
	})
	check(err)
	if !result.InstanceUpdated || !slices.Equal(result.UpdatedClusters, []string{"c1"}) || !slices.Equal(result.CreatedClusters, []string{"c3"}) || !slices.Equal(result.DeletedClusters, []string{"c2"}) {
		t.Errorf("got %+v", result)
	}
	clusters, err := instances.Clusters(ctx, "made")
	check(err)
	if len(clusters) != 2 || clusters[0].ServeNodes != 5 || clusters[1].Name != "c3" || clusters[1].State != "READY" {
		t.Errorf("got %v", clusters)
	}
	check(instances.SetAutoscaling(ctx, "made", "c3", bigtable.AutoscalingConfig{MinNodes: 2, MaxNodes: 4, CPUTargetPercent: 60}))
	check(instances.UpdateCluster(ctx, "made", "c3", 7))
	cluster, err := instances.GetCluster(ctx, "made", "c3")
	check(err)
	if cluster.ServeNodes != 7 || cluster.AutoscalingConfig != nil {
		t.Errorf("got %+v", cluster)
	}

	// App profiles.
	_, err = instances.CreateAppProfile(ctx, bigtable.ProfileConf{InstanceID: "made", ProfileID: "one", RoutingConfig: &bigtable.SingleClusterRoutingConfig{ClusterID: "c1", AllowTransactionalWrites: true}})
	check(err)
	check(instances.UpdateAppProfile(ctx, "made", "one", bigtable.ProfileAttrsToUpdate{Description: "first"}))
	var profiles []string
	for it := instances.ListAppProfiles(ctx, "made"); ; {
		p, err := it.Next()
		if err == iterator.Done { //nolint:errorlint // as its documentation shows
			break
		}
		check(err)
		profiles = append(profiles, resname.Last(p.GetName())+" "+p.GetDescription())
	}
	if !slices.Equal(profiles, []string{"default ", "one first"}) {
		t.Errorf("profiles: %q", profiles)
	}

	// Tables.
	check(admin.CreateTableFromConf(ctx, &bigtable.TableConf{
		TableID: "t", Families: map[string]bigtable.GCPolicy{"f": bigtable.MaxVersionsPolicy(1)},
		ChangeStreamRetention: 24 * time.Hour, DeletionProtection: bigtable.Protected,
	}))
	check(admin.UpdateTableWithChangeStream(ctx, "t", 48*time.Hour))
	table, err := admin.TableInfo(ctx, "t")
	check(err)
	if table.ChangeStreamRetention != 48*time.Hour || table.DeletionProtection != bigtable.Protected {
		t.Errorf("got %+v", table)
	}
	wantCode(t, admin.DeleteTable(ctx, "t"), codes.FailedPrecondition)
	wantCode(t, instances.DeleteInstance(ctx, "made"), codes.FailedPrecondition)
	check(admin.WaitForReplication(ctx, "t"))
	encryption, err := admin.EncryptionInfo(ctx, "t")
	check(err)
	if len(encryption) != 2 || encryption["c1"][0].Type != bigtable.GoogleDefaultEncryption {
		t.Errorf("got %v", encryption)
	}
	policy, err := admin.TableIAM("t").Policy(ctx)
	check(err)
	policy.Add("allUsers", iam.Viewer)
	check(admin.TableIAM("t").SetPolicy(ctx, policy))
	policy, err = admin.TableIAM("t").Policy(ctx)
	check(err)
	if !policy.HasRole("allUsers", iam.Viewer) {
		t.Errorf("roles: %v", policy.Roles())
	}
	granted, err := instances.InstanceIAM("made").TestPermissions(ctx, []string{"bigtable.instances.get"})
	if err != nil || len(granted) != 1 {
		t.Errorf("got %v, %v", granted, err)
	}

	// Deletions.
	check(admin.UpdateTableWithDeletionProtection(ctx, "t", bigtable.Unprotected))
	wantCode(t, instances.DeleteInstance(ctx, "made"), codes.FailedPrecondition) // of the stream
	check(admin.UpdateTableDisableChangeStream(ctx, "t"))
	check(instances.DeleteAppProfile(ctx, "made", "one"))
	check(instances.DeleteInstance(ctx, "made"))
	_, err = instances.InstanceInfo(ctx, "made")
	wantCode(t, err, codes.NotFound)
}
