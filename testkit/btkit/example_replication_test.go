package btkit_test

import (
	"fmt"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/internal/test/faketb"
	"github.com/tabletop-emu/tabletop/testkit/btkit"
)

// A cluster fails: an app profile that routes only to it fails too, one that routes to any
// cluster uses the other.
func ExampleEnv_FailCluster() {
	t := faketb.New() // in a test: its *testing.T
	defer t.End()
	ctx := t.Context()
	env := btkit.Start(t)

	instance := "projects/" + env.Project() + "/instances/" + env.Instance()
	admin := btapb.NewBigtableInstanceAdminClient(env.Conn())
	_, err := admin.CreateCluster(ctx, &btapb.CreateClusterRequest{
		Parent: instance, ClusterId: "east", Cluster: &btapb.Cluster{Location: "projects/" + env.Project() + "/locations/us-east1-b", ServeNodes: 1},
	})
	must(err)
	for id, p := range map[string]*btapb.AppProfile{
		"only-east": {RoutingPolicy: &btapb.AppProfile_SingleClusterRouting_{SingleClusterRouting: &btapb.AppProfile_SingleClusterRouting{ClusterId: "east"}}},
		"nearest":   {RoutingPolicy: &btapb.AppProfile_MultiClusterRoutingUseAny_{MultiClusterRoutingUseAny: &btapb.AppProfile_MultiClusterRoutingUseAny{}}},
	} {
		_, err := admin.CreateAppProfile(ctx, &btapb.CreateAppProfileRequest{Parent: instance, AppProfileId: id, AppProfile: p})
		must(err)
	}

	env.FailCluster("east")
	data := btpb.NewBigtableClient(env.Conn())
	for _, id := range []string{"only-east", "nearest"} {
		_, err := data.PingAndWarm(ctx, &btpb.PingAndWarmRequest{Name: instance, AppProfileId: id})
		fmt.Println(id, status.Code(err))
	}
	env.RecoverCluster("east")
	_, err = data.PingAndWarm(ctx, &btpb.PingAndWarmRequest{Name: instance, AppProfileId: "only-east"})
	fmt.Println("only-east", status.Code(err))
	// Output:
	// only-east Unavailable
	// nearest OK
	// only-east OK
}
