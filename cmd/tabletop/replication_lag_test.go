package main

import (
	"errors"
	"io"
	"syscall"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
)

// TestServe_ReplicationLag: a write of a cluster is pending in the other one, for reads and
// consistency tokens, even after a restart. Without the flag it arrives at once.
func TestServe_ReplicationLag(t *testing.T) {
	t.Parallel()
	const instance = "projects/p/instances/replicated"
	dir := t.TempDir()
	start := func(lag ...string) *killed {
		s := serve(t, append([]string{"--bigtable", "127.0.0.1:0", "--dynamodb", "off", "--data", dir}, lag...)...)
		conn := s.dial(t)
		return &killed{
			t: t, server: s, data: btpb.NewBigtableClient(conn),
			tables: btapb.NewBigtableTableAdminClient(conn), instances: btapb.NewBigtableInstanceAdminClient(conn),
		}
	}
	k := start("--replication-lag", "168h")
	cluster := func(zone string) *btapb.Cluster {
		return &btapb.Cluster{Location: "projects/p/locations/" + zone, ServeNodes: 1}
	}
	ask(k, k.instances.CreateInstance, &btapb.CreateInstanceRequest{
		Parent: "projects/p", InstanceId: "replicated", Instance: &btapb.Instance{DisplayName: "replicated"},
		Clusters: map[string]*btapb.Cluster{"east": cluster("us-east1-b"), "west": cluster("us-west1-a")},
	})
	for _, id := range []string{"east", "west"} {
		ask(k, k.instances.CreateAppProfile, &btapb.CreateAppProfileRequest{Parent: instance, AppProfileId: id, AppProfile: &btapb.AppProfile{
			RoutingPolicy: &btapb.AppProfile_SingleClusterRouting_{SingleClusterRouting: &btapb.AppProfile_SingleClusterRouting{ClusterId: id}},
		}})
	}
	table := ask(k, k.tables.CreateTable, &btapb.CreateTableRequest{Parent: instance, TableId: "t", Table: &btapb.Table{
		ColumnFamilies: map[string]*btapb.ColumnFamily{"f": {}, "g": {}},
	}}).GetName()
	ask(k, k.data.MutateRow, &btpb.MutateRowRequest{TableName: table, AppProfileId: "east", RowKey: []byte("r"), Mutations: cells("v")})
	token := ask(k, k.tables.GenerateConsistencyToken, &btapb.GenerateConsistencyTokenRequest{Name: table}).GetConsistencyToken()

	sees := func(cluster string) bool {
		t.Helper()
		stream, err := k.data.ReadRows(t.Context(), &btpb.ReadRowsRequest{TableName: table, AppProfileId: cluster})
		if err != nil {
			t.Fatal(err)
		}
		chunks := 0
		for {
			resp, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return chunks > 0
			}
			if err != nil {
				t.Fatal(err)
			}
			chunks += len(resp.GetChunks())
		}
	}
	check := func(when string, arrived bool) {
		t.Helper()
		resp := ask(k, k.tables.CheckConsistency, &btapb.CheckConsistencyRequest{Name: table, ConsistencyToken: token})
		if east, west := sees("east"), sees("west"); !east || west != arrived || resp.GetConsistent() != arrived {
			t.Errorf("%s: east sees it: %v, west: %v, consistent: %v; want true, %v, %v", when, east, west, resp.GetConsistent(), arrived, arrived)
		}
	}
	check("at once", false)
	k.server.end(t, syscall.SIGKILL)
	k = start("--replication-lag", "168h")
	check("after the server was killed", false)
	k.server.end(t, syscall.SIGTERM)
	k = start()
	check("without the flag", true)
}
