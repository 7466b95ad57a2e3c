package emu

import (
	"strings"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/genproto/googleapis/cloud/location"
	"google.golang.org/grpc/codes"

	"github.com/tabletop-emu/tabletop/emu/internal/instancedef"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/engine"
)

func (e *env) cluster(name string) *btapb.Cluster {
	e.t.Helper()
	c, err := e.instances().GetCluster(e.ctx(), &btapb.GetClusterRequest{Name: name})
	if err != nil {
		e.t.Fatal(err)
	}
	return c
}

func TestCreateCluster(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := newEnvWith(t, Options{}, engine.Options{Dir: dir})
	e.mustCreateInstance("i", nodes("z1", 1))
	e.createTable("t", "f")
	create := func(id string, c *btapb.Cluster) (*btapb.Cluster, error) {
		op, err := e.instances().CreateCluster(e.ctx(), &btapb.CreateClusterRequest{Parent: testInstance, ClusterId: id, Cluster: c})
		if err != nil {
			return nil, err
		}
		meta, err := op.GetMetadata().UnmarshalNew()
		if m, ok := meta.(*btapb.CreateClusterMetadata); err != nil || !ok || m.GetTables()[testTable].GetState() != btapb.CreateClusterMetadata_TableProgress_COMPLETED {
			t.Errorf("metadata: %v, %v", meta, err)
		}
		return response[*btapb.Cluster](e, op, nil), nil
	}
	got, err := create("c2", scaled("z2", 2, 5, 60, 0))
	if err != nil {
		t.Fatal(err)
	}
	want := scaled("z2", 2, 5, 60, 2560)
	want.Name, want.State, want.DefaultStorageType = testInstance+"/clusters/c2", btapb.Cluster_READY, btapb.StorageType_SSD
	wantProto(t, got, want)
	want.ServeNodes = 2
	wantProto(t, e.cluster(want.GetName()), want)
	_, err = create("c2", nodes("z3", 1))
	wantCode(t, err, codes.AlreadyExists)

	hdd := func(c *btapb.Cluster) *btapb.Cluster { c.DefaultStorageType = btapb.StorageType_HDD; return c }
	twice := func(c *btapb.Cluster) *btapb.Cluster {
		c.NodeScalingFactor = btapb.Cluster_NODE_SCALING_FACTOR_2X
		return c
	}
	both := scaled("z", 1, 2, 50, 0)
	both.ServeNodes = 1
	noTargets := scaled("z", 1, 2, 50, 0)
	noTargets.GetClusterConfig().GetClusterAutoscalingConfig().AutoscalingTargets = nil
	for name, c := range map[string]*btapb.Cluster{
		"nil":                     nil,
		"both":                    both,
		"negative nodes":          nodes("z", -1),
		"odd 2X":                  twice(nodes("z", 3)),
		"odd 2X minimum":          twice(scaled("z", 1, 4, 50, 0)),
		"odd 2X maximum":          twice(scaled("z", 2, 5, 50, 0)),
		"no minimum":              scaled("z", 0, 5, 50, 0),
		"max below min":           scaled("z", 3, 2, 50, 0),
		"max above ten times min": scaled("z", 1, 11, 50, 0),
		"cpu 9":                   scaled("z", 1, 2, 9, 0),
		"cpu 81":                  scaled("z", 1, 2, 81, 0),
		"ssd 2559":                scaled("z", 1, 2, 50, 2559),
		"ssd 5121":                scaled("z", 1, 2, 50, 5121),
		"hdd 8191":                hdd(scaled("z", 1, 2, 50, 8191)),
		"hdd 16385":               hdd(scaled("z", 1, 2, 50, 16385)),
		"no targets":              noTargets,
		"zone taken":              nodes("z2", 1),
		"location":                {Location: "z", ServeNodes: 1},
		"storage type":            {Location: "projects/p/locations/z", ServeNodes: 1, DefaultStorageType: 9},
		"scaling factor":          {Location: "projects/p/locations/z", ServeNodes: 1, NodeScalingFactor: 9},
	} {
		if _, err := create("bad", c); err == nil {
			t.Errorf("%s was accepted", name)
		} else {
			wantCode(t, err, codes.InvalidArgument)
		}
	}
	for name, c := range map[string]*btapb.Cluster{
		"c3": hdd(scaled("z3", 1, 10, 80, 16384)), "c4": hdd(scaled("z4", 1, 1, 10, 8192)), "c5": twice(nodes("z5", 4)), "c6": scaled("z6", 1, 2, 50, 5120),
	} {
		if _, err := create(name, c); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}

	// Every cluster has the table, and all survive a restart.
	e = e.restart(dir)
	list, err := e.instances().ListClusters(e.ctx(), &btapb.ListClustersRequest{Parent: testInstance})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, c := range list.GetClusters() {
		ids = append(ids, resname.Last(c.GetName()))
	}
	if got := strings.Join(ids, " "); got != "c1 c2 c3 c4 c5 c6" {
		t.Errorf("clusters: %s", got)
	}
	table, err := e.admin.GetTable(e.ctx(), &btapb.GetTableRequest{Name: testTable, View: btapb.Table_REPLICATION_VIEW})
	if err != nil || len(table.GetClusterStates()) != 6 || table.GetClusterStates()["c4"].GetReplicationState() != btapb.Table_ClusterState_READY {
		t.Errorf("got %v, %v", table, err)
	}
	all, err := e.instances().ListClusters(e.ctx(), &btapb.ListClustersRequest{Parent: "projects/p/instances/-"})
	if err != nil || len(all.GetClusters()) != 6 {
		t.Errorf("got %v, %v", all, err)
	}
	zones, err := e.locations().ListLocations(e.ctx(), &location.ListLocationsRequest{Name: "projects/p"})
	if err != nil || len(zones.GetLocations()) != 7 || zones.GetLocations()[1].GetLocationId() != "z1" {
		t.Errorf("got %v, %v", zones, err)
	}
}

func TestUpdateCluster(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.mustCreateInstance("i", nodes("z1", 1))
	const name = testInstance + "/clusters/c1"
	partial := func(c *btapb.Cluster, paths ...string) (*btapb.Cluster, error) {
		c.Name = name
		op, err := e.instances().PartialUpdateCluster(e.ctx(), &btapb.PartialUpdateClusterRequest{Cluster: c, UpdateMask: mask(paths...)})
		if err != nil {
			return nil, err
		}
		return response[*btapb.Cluster](e, op, nil), nil
	}
	full := func(c *btapb.Cluster) (*btapb.Cluster, error) {
		c.Name = name
		op, err := e.instances().UpdateCluster(e.ctx(), c)
		if err != nil {
			return nil, err
		}
		return response[*btapb.Cluster](e, op, nil), nil
	}
	const scaling = "cluster_config.cluster_autoscaling_config"
	check := func(c *btapb.Cluster, err error, nodes int32, scaled bool) {
		t.Helper()
		if err != nil || c.GetServeNodes() != nodes || (c.GetClusterConfig() != nil) != scaled {
			t.Errorf("got %v, %v; want %d nodes, scaled %v", c, err, nodes, scaled)
		}
		wantProto(t, e.cluster(name), c)
	}
	c, err := full(nodes("other", 7))
	check(c, err, 7, false)
	if c.GetLocation() != "projects/p/locations/z1" {
		t.Errorf("got %v", c)
	}
	_, err = full(scaled("", 1, 2, 50, 0))
	wantCode(t, err, codes.InvalidArgument)

	// Autoscaling continues and keeps its number of nodes.
	c, err = partial(scaled("", 2, 4, 50, 0), scaling)
	check(c, err, 7, true)
	c, err = partial(nodes("", 9), "serve_nodes")
	check(c, err, 7, true)
	c, err = full(nodes("", 9))
	check(c, err, 7, true)
	c, err = partial(scaled("", 2, 4, 70, 0), scaling+".autoscaling_targets.cpu_utilization_percent")
	check(c, err, 7, true)
	if got := c.GetClusterConfig().GetClusterAutoscalingConfig().GetAutoscalingTargets(); got.GetCpuUtilizationPercent() != 70 || got.GetStorageUtilizationGibPerNode() != 2560 {
		t.Errorf("targets: %v", got)
	}
	// A number of nodes disables autoscaling.
	_, err = partial(nodes("", 3), scaling)
	wantCode(t, err, codes.InvalidArgument)
	both := scaled("", 2, 4, 50, 0)
	both.ServeNodes = 2
	_, err = partial(both, "serve_nodes", scaling)
	wantCode(t, err, codes.InvalidArgument)
	c, err = partial(nodes("", 3), "serve_nodes", scaling)
	check(c, err, 3, false)

	for _, paths := range [][]string{nil, {"*"}, {"location"}, {"default_storage_type"}, {"node_scaling_factor"}, {"cluster_config.nope"}} {
		_, err := partial(nodes("y", 2), paths...)
		wantCode(t, err, codes.InvalidArgument)
	}
	_, err = e.instances().UpdateCluster(e.ctx(), &btapb.Cluster{Name: testInstance + "/clusters/nope", ServeNodes: 1})
	wantCode(t, err, codes.NotFound)
	_, err = e.instances().UpdateCluster(e.ctx(), &btapb.Cluster{})
	wantCode(t, err, codes.InvalidArgument)
}

// TestUpdateCluster_Implicit stores implicit resources when they change.
func TestUpdateCluster_Implicit(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	name := testInstance + "/clusters/any"
	if c := e.cluster(name); c.GetServeNodes() != 1 || c.GetState() != btapb.Cluster_READY {
		t.Errorf("got %v", c)
	}
	op, err := e.instances().UpdateCluster(e.ctx(), &btapb.Cluster{Name: name, ServeNodes: 4})
	if c := response[*btapb.Cluster](e, op, err); c.GetServeNodes() != 4 {
		t.Errorf("got %v", c)
	}
	if c := e.cluster(name); c.GetServeNodes() != 4 {
		t.Errorf("got %v", c)
	}
	if got := e.listInstances("projects/p"); got != "i" {
		t.Errorf("instances: %s", got)
	}
	// Other clusters still exist implicitly.
	e.cluster("projects/p/instances/other/clusters/c")
}

func TestDeleteCluster(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.mustCreateInstance("i", nodes("z1", 1), nodes("z2", 1))
	del := func(id string) error {
		_, err := e.instances().DeleteCluster(e.ctx(), &btapb.DeleteClusterRequest{Name: testInstance + "/clusters/" + id})
		return err
	}
	wantCode(t, e.createAppProfile(testInstance, "one", singleCluster("c1", false)), codes.OK)
	wantCode(t, del("c1"), codes.FailedPrecondition) // the profile
	wantCode(t, del("nope"), codes.NotFound)
	wantCode(t, del("c2"), codes.OK)
	wantCode(t, del("c2"), codes.NotFound)
	wantCode(t, del("c1"), codes.FailedPrecondition) // the last
	_, err := e.instances().DeleteCluster(e.ctx(), &btapb.DeleteClusterRequest{})
	wantCode(t, err, codes.InvalidArgument)
}

func TestLocations(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	got, err := e.locations().GetLocation(e.ctx(), &location.GetLocationRequest{Name: "projects/p/locations/us-central1-b"})
	if err != nil || got.GetLocationId() != "us-central1-b" {
		t.Errorf("got %v, %v", got, err)
	}
	_, err = e.locations().GetLocation(e.ctx(), &location.GetLocationRequest{Name: "us-central1-b"})
	wantCode(t, err, codes.InvalidArgument)
	list, err := e.locations().ListLocations(e.ctx(), &location.ListLocationsRequest{Name: "projects/p"})
	if err != nil || len(list.GetLocations()) != 1 || list.GetLocations()[0].GetName() != "projects/p/locations/"+instancedef.ImplicitZone {
		t.Errorf("got %v, %v", list, err)
	}
	_, err = e.locations().ListLocations(e.ctx(), &location.ListLocationsRequest{Name: "projects/p", Filter: "x"})
	wantCode(t, err, codes.InvalidArgument)
}
