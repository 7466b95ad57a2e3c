package emu

import (
	"fmt"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/genproto/googleapis/cloud/location"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/tabletop-emu/tabletop/engine"
)

// Helpers for the tests of instances, clusters, app profiles, policies, operations and
// settings.

func (e *env) instances() btapb.BigtableInstanceAdminClient {
	return btapb.NewBigtableInstanceAdminClient(e.srv.Conn())
}

func (e *env) operations() longrunningpb.OperationsClient {
	return longrunningpb.NewOperationsClient(e.srv.Conn())
}

func (e *env) locations() location.LocationsClient {
	return location.NewLocationsClient(e.srv.Conn())
}

// restart closes a server on disk and returns a new one over the same directory.
func (e *env) restart(dir string) *env {
	e.t.Helper()
	if err := e.srv.Close(); err != nil {
		e.t.Fatal(err)
	}
	if err := e.db.Close(); err != nil {
		e.t.Fatal(err)
	}
	return newEnvWith(e.t, Options{}, engine.Options{Dir: dir})
}

// response returns the response of a finished operation, and checks that the server stores the
// same one.
func response[M proto.Message](e *env, op *longrunningpb.Operation, err error) M {
	e.t.Helper()
	var m M
	if err != nil {
		e.t.Fatal(err)
	}
	kept, err := e.operations().GetOperation(e.ctx(), &longrunningpb.GetOperationRequest{Name: op.GetName()})
	if err != nil || !proto.Equal(kept, op) {
		e.t.Fatalf("the server keeps %v, %v; want %v", kept, err, op)
	}
	if _, err := op.GetMetadata().UnmarshalNew(); !op.GetDone() || err != nil {
		e.t.Fatalf("got %v, %v", op, err)
	}
	got, err := op.GetResponse().UnmarshalNew()
	if err != nil {
		e.t.Fatal(err)
	}
	m, ok := got.(M)
	if !ok {
		e.t.Fatalf("the response is a %T", got)
	}
	return m
}

func mask(paths ...string) *fieldmaskpb.FieldMask { return &fieldmaskpb.FieldMask{Paths: paths} }

func days(n int) *durationpb.Duration { return durationpb.New(time.Duration(n) * 24 * time.Hour) }

func withBackupPolicy(p *btapb.Table_AutomatedBackupPolicy) *btapb.Table {
	return &btapb.Table{AutomatedBackupConfig: &btapb.Table_AutomatedBackupPolicy_{AutomatedBackupPolicy: p}}
}

// nodes returns a cluster with a fixed number of nodes.
func nodes(zone string, n int32) *btapb.Cluster {
	return &btapb.Cluster{Location: "projects/p/locations/" + zone, ServeNodes: n}
}

// scaled returns a cluster that scales from least to most nodes.
func scaled(zone string, least, most, cpu, storage int32) *btapb.Cluster {
	return &btapb.Cluster{Location: "projects/p/locations/" + zone, Config: &btapb.Cluster_ClusterConfig_{ClusterConfig: &btapb.Cluster_ClusterConfig{
		ClusterAutoscalingConfig: &btapb.Cluster_ClusterAutoscalingConfig{
			AutoscalingLimits:  &btapb.AutoscalingLimits{MinServeNodes: least, MaxServeNodes: most},
			AutoscalingTargets: &btapb.AutoscalingTargets{CpuUtilizationPercent: cpu, StorageUtilizationGibPerNode: storage},
		},
	}}}
}

// createInstance creates an instance of project p with clusters c1, c2, ….
func (e *env) createInstance(id string, clusters ...*btapb.Cluster) error {
	req := &btapb.CreateInstanceRequest{Parent: "projects/p", InstanceId: id, Instance: &btapb.Instance{DisplayName: "the " + id}, Clusters: map[string]*btapb.Cluster{}}
	for i, c := range clusters {
		req.Clusters[fmt.Sprintf("c%d", i+1)] = c
	}
	_, err := e.instances().CreateInstance(e.ctx(), req)
	return err
}

func (e *env) mustCreateInstance(id string, clusters ...*btapb.Cluster) {
	e.t.Helper()
	if err := e.createInstance(id, clusters...); err != nil {
		e.t.Fatal(err)
	}
}

func singleCluster(id string, transactions bool) *btapb.AppProfile {
	return &btapb.AppProfile{RoutingPolicy: &btapb.AppProfile_SingleClusterRouting_{SingleClusterRouting: &btapb.AppProfile_SingleClusterRouting{
		ClusterId: id, AllowTransactionalWrites: transactions,
	}}}
}

func anyCluster(ids ...string) *btapb.AppProfile {
	return &btapb.AppProfile{RoutingPolicy: &btapb.AppProfile_MultiClusterRoutingUseAny_{MultiClusterRoutingUseAny: &btapb.AppProfile_MultiClusterRoutingUseAny{
		ClusterIds: ids,
	}}}
}

func (e *env) createAppProfile(instance, id string, p *btapb.AppProfile) error {
	_, err := e.instances().CreateAppProfile(e.ctx(), &btapb.CreateAppProfileRequest{Parent: instance, AppProfileId: id, AppProfile: p})
	return err
}

// wantProto compares two messages.
func wantProto(t *testing.T, got, want proto.Message) {
	t.Helper()
	if !proto.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}
