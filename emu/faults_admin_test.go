package emu

import (
	"slices"
	"strings"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/iam/apiv1/iampb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
)

// An update of a family without a mask, or with an empty one, changes only the gc_rule: comment
// of ModifyColumnFamiliesRequest.Modification.update_mask.
func TestClusters_UpdateWithoutMask(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	sum := aggregateOf("sum", int64Type())
	if _, err := e.admin.CreateTable(e.ctx(), &btapb.CreateTableRequest{Parent: testInstance, TableId: "t", Table: &btapb.Table{
		ColumnFamilies: map[string]*btapb.ColumnFamily{"f": {}, "sum": sum},
	}}); err != nil {
		t.Fatal(err)
	}
	text := stringType()
	versions := int32(0)
	for _, mask := range []*fieldmaskpb.FieldMask{nil, {}} {
		for family, to := range map[string]*btapb.Type{"f": sum.GetValueType(), "sum": text} {
			versions++
			e.modifyFamilies("t", &btapb.ModifyColumnFamiliesRequest_Modification{
				Id: family, UpdateMask: mask,
				Mod: &btapb.ModifyColumnFamiliesRequest_Modification_Update{Update: &btapb.ColumnFamily{GcRule: maxVersions(versions), ValueType: to}},
			})
			got, err := e.admin.GetTable(e.ctx(), &btapb.GetTableRequest{Name: testTable})
			if err != nil {
				t.Fatal(err)
			}
			is := got.GetColumnFamilies()[family]
			if !proto.Equal(is.GetGcRule(), maxVersions(versions)) {
				t.Errorf("%s, mask %v: the rule is %v, want %d versions", family, mask, is.GetGcRule(), versions)
			}
			if (is.GetValueType().GetAggregateType() != nil) != (family == "sum") || is.GetValueType().GetStringType() != nil {
				t.Errorf("%s, mask %v: the type is %v", family, mask, is.GetValueType())
			}
		}
	}
	// If the mask names it, it is rejected as before.
	_, err := e.admin.ModifyColumnFamilies(e.ctx(), &btapb.ModifyColumnFamiliesRequest{Name: testTable, Modifications: []*btapb.ModifyColumnFamiliesRequest_Modification{
		updateFamily("sum", &btapb.ColumnFamily{ValueType: text}, "value_type"),
	}})
	wantCode(t, err, codes.InvalidArgument)
}

// The server chooses the nodes of a cluster without serve_nodes and autoscaling: comment of
// Cluster.serve_nodes, and the admin tests of the Python client, which create such instances.
func TestClusters_NodesAllocated(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	twice := nodes("z2", 0)
	twice.NodeScalingFactor = btapb.Cluster_NODE_SCALING_FACTOR_2X
	noScaling := nodes("z3", 0)
	noScaling.Config = &btapb.Cluster_ClusterConfig_{ClusterConfig: &btapb.Cluster_ClusterConfig{}}
	if err := e.createInstance("i", nodes("z1", 0), twice, noScaling); err != nil {
		t.Fatal(err)
	}
	op, err := e.instances().CreateCluster(e.ctx(), &btapb.CreateClusterRequest{Parent: testInstance, ClusterId: "c4", Cluster: nodes("z4", 0)})
	if c := response[*btapb.Cluster](e, op, err); c.GetServeNodes() != 1 {
		t.Errorf("got %v", c)
	}
	for id, want := range map[string]int32{"c1": 1, "c2": 2, "c3": 1, "c4": 1} {
		if c := e.cluster(testInstance + "/clusters/" + id); c.GetServeNodes() != want || c.GetClusterConfig() != nil {
			t.Errorf("got %v, want %d nodes", c, want)
		}
	}
	// It does so for an update without a value too.
	name := testInstance + "/clusters/c1"
	op, err = e.instances().UpdateCluster(e.ctx(), &btapb.Cluster{Name: name, ServeNodes: 5})
	response[*btapb.Cluster](e, op, err)
	op, err = e.instances().UpdateCluster(e.ctx(), &btapb.Cluster{Name: name})
	if c := response[*btapb.Cluster](e, op, err); c.GetServeNodes() != 1 {
		t.Errorf("got %v", c)
	}
	// Disabling autoscaling requires an explicit number: comment of PartialUpdateCluster.
	op, err = e.instances().PartialUpdateCluster(e.ctx(), &btapb.PartialUpdateClusterRequest{
		Cluster: func() *btapb.Cluster { c := scaled("", 2, 4, 50, 0); c.Name = name; return c }(), UpdateMask: mask("cluster_config"),
	})
	response[*btapb.Cluster](e, op, err)
	_, err = e.instances().PartialUpdateCluster(e.ctx(), &btapb.PartialUpdateClusterRequest{Cluster: &btapb.Cluster{Name: name}, UpdateMask: mask("cluster_config", "serve_nodes")})
	wantCode(t, err, codes.InvalidArgument)
}

// The etag and version of an unset policy: the tests of the Python client against the service.
func TestTrap164_EmptyPolicy(t *testing.T) {
	t.Parallel()
	e := newTable(t)
	for resource, service := range map[string]policies{testTable: e.admin, testInstance: e.instances()} {
		p, err := service.GetIamPolicy(e.ctx(), &iampb.GetIamPolicyRequest{Resource: resource})
		if err != nil {
			t.Fatal(err)
		}
		wantProto(t, p, &iampb.Policy{Etag: []byte{0, 0x20, 1}})
		// Get, change, set.
		p.Bindings = []*iampb.Binding{{Role: "roles/bigtable.user", Members: []string{"allUsers"}}}
		set, err := service.SetIamPolicy(e.ctx(), &iampb.SetIamPolicyRequest{Resource: resource, Policy: p})
		if err != nil || slices.Equal(set.GetEtag(), p.GetEtag()) {
			t.Fatalf("%v, %v", set, err)
		}
		_, err = service.SetIamPolicy(e.ctx(), &iampb.SetIamPolicyRequest{Resource: resource, Policy: p})
		wantCode(t, err, codes.Aborted)
		p.Etag = set.GetEtag()
		if _, err = service.SetIamPolicy(e.ctx(), &iampb.SetIamPolicyRequest{Resource: resource, Policy: p}); err != nil {
			t.Error(err)
		}
		// Without an etag, the policy is overwritten.
		p.Etag = nil
		if _, err = service.SetIamPolicy(e.ctx(), &iampb.SetIamPolicyRequest{Resource: resource, Policy: p}); err != nil {
			t.Error(err)
		}
	}
}

// The nodes of a cluster with autoscaling in the tests of the Node and Java clients: 0 in the
// creating operation, the minimum in the cluster, and the previous number when autoscaling is
// enabled.
func TestClusters_NodesUnderAutoscaling(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.mustCreateInstance("i", nodes("z1", 1), scaled("z2", 3, 4, 50, 0))
	op, err := e.instances().CreateCluster(e.ctx(), &btapb.CreateClusterRequest{Parent: testInstance, ClusterId: "c3", Cluster: scaled("z3", 2, 5, 60, 0)})
	created := response[*btapb.Cluster](e, op, err)
	if created.GetServeNodes() != 0 || created.GetClusterConfig() == nil {
		t.Errorf("created: %v", created)
	}
	check := func(id string, want int32) {
		t.Helper()
		if got := e.cluster(testInstance + "/clusters/" + id).GetServeNodes(); got != want {
			t.Errorf("%s has %d nodes, want %d", id, got, want)
		}
	}
	check("c2", 3)
	check("c3", 2)
	for _, limits := range [][2]int32{{2, 4}, {5, 6}} {
		to := scaled("", limits[0], limits[1], 50, 0)
		to.Name = testInstance + "/clusters/c1"
		op, err = e.instances().PartialUpdateCluster(e.ctx(), &btapb.PartialUpdateClusterRequest{Cluster: to, UpdateMask: mask("cluster_config.cluster_autoscaling_config")})
		if got := response[*btapb.Cluster](e, op, err); got.GetServeNodes() != 1 || got.GetClusterConfig() == nil {
			t.Errorf("updated: %v", got)
		}
		check("c1", 1)
	}
}

// A key outside the cluster's region is rejected: BigtableCmekIT of the Java client has the
// text.
func TestAppProfiles_KeyOfAnotherRegion(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	keyed := func(zone, key string) *btapb.Cluster {
		c := nodes(zone, 1)
		c.EncryptionConfig = &btapb.Cluster_EncryptionConfig{KmsKeyName: key}
		return c
	}
	key := func(location string) string {
		return "projects/q/locations/" + location + "/keyRings/r/cryptoKeys/k"
	}
	e.mustCreateInstance("i", keyed("europe-west1-b", key("europe-west1")))
	create := func(c *btapb.Cluster) error {
		_, err := e.instances().CreateCluster(e.ctx(), &btapb.CreateClusterRequest{Parent: testInstance, ClusterId: "c2", Cluster: c})
		return err
	}
	for _, k := range []string{
		key("us-east1"), key("us"), key("global"), key("us-central1-b"), "k", "projects/q/locations/us-central1",
		"projects/q/locations//keyRings/r/cryptoKeys/k", key("us-central1") + "/cryptoKeyVersions/1",
	} {
		wantStatus(t, create(keyed("us-central1-b", k)), codes.FailedPrecondition,
			"Error in field 'cluster' : Error in field 'encryption_config.kms_key_name' : CMEK key "+k+" cannot be used to protect a cluster in zone projects/p/locations/us-central1-b")
	}
	if err := create(keyed("us-central1-b", key("us-central1"))); err != nil {
		t.Error(err)
	}
	err := e.createInstance("in", keyed("us-central1-b", key("us-east1")))
	wantCode(t, err, codes.FailedPrecondition)
	if want := "CMEK key " + key("us-east1") + " cannot be used to protect a cluster in zone projects/p/locations/us-central1-b"; !strings.HasSuffix(status.Convert(err).Message(), want) {
		t.Errorf("%v", err)
	}
}
