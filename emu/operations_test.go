package emu

import (
	"context"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tabletop-emu/tabletop/engine"
)

// newCreating returns an environment whose operations take a minute, and the operation that
// creates cluster c2.
func newCreating(t *testing.T, dir string) (*env, *longrunningpb.Operation) {
	t.Helper()
	e := newEnvWith(t, Options{AdminDelay: time.Minute}, engine.Options{Dir: dir})
	e.mustCreateInstance("i", nodes("z1", 1))
	e.clock.Advance(time.Minute)
	e.createTable("t", "f")
	op, err := e.instances().CreateCluster(e.ctx(), &btapb.CreateClusterRequest{Parent: testInstance, ClusterId: "c2", Cluster: nodes("z2", 1)})
	if err != nil {
		t.Fatal(err)
	}
	return e, op
}

func (e *env) operation(name string) *longrunningpb.Operation {
	e.t.Helper()
	op, err := e.operations().GetOperation(e.ctx(), &longrunningpb.GetOperationRequest{Name: name})
	if err != nil {
		e.t.Fatal(err)
	}
	return op
}

// A running operation has neither a response nor an end time, and its cluster is CREATING. All
// are complete when it is due, even after a restart. (Part of trap 160.)
func TestAdminDelay_CreateCluster(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e, op := newCreating(t, dir)
	const name = testInstance + "/clusters/c2"
	check := func(op *longrunningpb.Operation, done bool) {
		t.Helper()
		m := &btapb.CreateClusterMetadata{}
		if err := op.GetMetadata().UnmarshalTo(m); err != nil {
			t.Fatal(err)
		}
		state, cluster, replication := btapb.CreateClusterMetadata_TableProgress_COPYING, btapb.Cluster_CREATING, btapb.Table_ClusterState_INITIALIZING
		if done {
			state, cluster, replication = btapb.CreateClusterMetadata_TableProgress_COMPLETED, btapb.Cluster_READY, btapb.Table_ClusterState_READY
		}
		if op.GetDone() != done || (op.GetResponse() != nil) != done || (m.GetFinishTime() != nil) != done || m.GetTables()[testTable].GetState() != state {
			t.Errorf("got %v, want one that is done: %t", op, done)
		}
		if done && !m.GetFinishTime().AsTime().Equal(m.GetRequestTime().AsTime().Add(time.Minute)) {
			t.Errorf("finished at %v, requested at %v", m.GetFinishTime().AsTime(), m.GetRequestTime().AsTime())
		}
		listed, err := e.instances().ListClusters(e.ctx(), &btapb.ListClustersRequest{Parent: testInstance})
		if err != nil || len(listed.GetClusters()) != 2 || listed.GetClusters()[0].GetState() != btapb.Cluster_READY || listed.GetClusters()[1].GetState() != cluster {
			t.Errorf("listed: %v, %v", listed, err)
		}
		if got := e.cluster(name); got.GetState() != cluster || len(got.ProtoReflect().GetUnknown()) != 0 {
			t.Errorf("cluster: %v", got)
		}
		table, err := e.admin.GetTable(e.ctx(), &btapb.GetTableRequest{Name: testTable, View: btapb.Table_REPLICATION_VIEW})
		if states := table.GetClusterStates(); err != nil || states["c2"].GetReplicationState() != replication || states["c1"].GetReplicationState() != btapb.Table_ClusterState_READY {
			t.Errorf("states: %v, %v", states, err)
		}
		ops, err := e.operations().ListOperations(e.ctx(), &longrunningpb.ListOperationsRequest{Name: "operations"})
		if err != nil || !proto.Equal(ops.GetOperations()[len(ops.GetOperations())-1], op) {
			t.Errorf("listed: %v, %v", ops, err)
		}
		if len(op.ProtoReflect().GetUnknown()) != 0 {
			t.Error("an operation shows what is stored beside it")
		}
	}
	check(op, false)
	e.clock.Advance(time.Minute - time.Microsecond)
	check(e.operation(op.GetName()), false)

	// Updates of the cluster meanwhile do not finish it.
	c := e.cluster(name)
	c.ServeNodes = 3
	updated, err := e.instances().UpdateCluster(e.ctx(), c)
	if m := under[*btapb.UpdateClusterMetadata](e, updated, err); m.GetFinishTime() != nil {
		t.Errorf("updated: %v", m)
	}
	e.cancel(updated.GetName()) // it cannot be canceled
	if got := e.cluster(name); got.GetState() != btapb.Cluster_CREATING {
		t.Errorf("an update made the cluster %v", got)
	}
	found, err := e.srv.Resources()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range found {
		if r.Name == name && r.Message.(*btapb.Cluster).GetState() != btapb.Cluster_CREATING { //nolint:forcetypeassert // the name is a cluster's
			t.Errorf("resource: %v", r)
		}
	}
	now := e.clock.Now()
	e = e.restart(dir)
	e.clock.AdvanceTo(now)
	if got := e.operation(op.GetName()); got.GetDone() {
		t.Errorf("after a restart: %v", got)
	}
	e.clock.Advance(time.Microsecond)
	got := e.operation(op.GetName())
	if m := (&btapb.CreateClusterMetadata{}); !got.GetDone() || got.GetMetadata().UnmarshalTo(m) != nil || m.GetFinishTime() == nil {
		t.Errorf("in the end: %v", got)
	}
	if got := e.cluster(name); got.GetState() != btapb.Cluster_READY || got.GetServeNodes() != 3 {
		t.Errorf("in the end: %v", got)
	}
	e.wantDone(updated.GetName(), false)
	e.clock.Advance(time.Minute)
	if m := response[*btapb.Cluster](e, e.wantDone(updated.GetName(), true), nil); m.GetServeNodes() != 3 || m.GetState() != btapb.Cluster_READY {
		t.Errorf("updated: %v", m)
	}
	wantProto(t, response[*btapb.Cluster](e, got, nil), func() proto.Message {
		c := nodes("z2", 1)
		c.Name, c.State, c.DefaultStorageType = name, btapb.Cluster_READY, btapb.StorageType_SSD
		return c
	}())
}

// askedClock reports each wait.
type askedClock struct {
	Clock
	asked chan<- struct{}
}

func (c askedClock) At(t time.Time) (<-chan struct{}, func()) {
	reached, stop := c.Clock.At(t)
	c.asked <- struct{}{}
	return reached, stop
}

// WaitOperation ends with the operation, its timeout by the server's clock, or its context.
func TestWaitOperation(t *testing.T) {
	t.Parallel()
	e, op := newCreating(t, "")
	asked := make(chan struct{}, 8)
	e.srv.control.Clock = askedClock{e.clock, asked}
	type answer struct {
		op  *longrunningpb.Operation
		err error
	}
	wait := func(ctx context.Context, timeout *durationpb.Duration) <-chan answer {
		out := make(chan answer, 1)
		go func() {
			got, err := e.operations().WaitOperation(ctx, &longrunningpb.WaitOperationRequest{Name: op.GetName(), Timeout: timeout})
			out <- answer{got, err}
		}()
		return out
	}
	if got := <-wait(t.Context(), durationpb.New(0)); got.err != nil || got.op.GetDone() {
		t.Errorf("without time to wait: %v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	gone := wait(ctx, nil)
	<-asked
	cancel()
	if got := <-gone; status.Code(got.err) != codes.Canceled {
		t.Errorf("canceled: %v", got)
	}
	short, long := wait(t.Context(), durationpb.New(20*time.Second)), wait(t.Context(), durationpb.New(time.Hour))
	<-asked
	<-asked
	e.clock.Advance(20 * time.Second)
	if got := <-short; got.err != nil || got.op.GetDone() {
		t.Errorf("after 20 s: %v", got)
	}
	select {
	case got := <-long:
		t.Errorf("ended early: %v", got)
	default:
	}
	e.clock.Advance(40 * time.Second)
	if got := <-long; got.err != nil || !got.op.GetDone() || got.op.GetResponse() == nil {
		t.Errorf("after the minute: %v", got)
	}
	if got := <-wait(t.Context(), nil); got.err != nil || !got.op.GetDone() {
		t.Errorf("when it is done: %v", got)
	}
}

// CancelOperation reverts a running operation and wakes its waiters. It does not change a
// finished one.
func TestCancelOperation(t *testing.T) {
	t.Parallel()
	e, op := newCreating(t, "")
	cancel := func(name string) {
		t.Helper()
		if _, err := e.operations().CancelOperation(e.ctx(), &longrunningpb.CancelOperationRequest{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	asked := make(chan struct{}, 8)
	e.srv.control.Clock = askedClock{e.clock, asked}
	waited := make(chan *longrunningpb.Operation, 1)
	go func() {
		got, err := e.operations().WaitOperation(e.ctx(), &longrunningpb.WaitOperationRequest{Name: op.GetName()})
		if err != nil {
			t.Error(err)
		}
		waited <- got
	}()
	<-asked
	cancel(op.GetName())
	const name = testInstance + "/clusters/c2"
	for _, got := range []*longrunningpb.Operation{<-waited, e.operation(op.GetName())} {
		if !got.GetDone() || got.GetError().GetCode() != int32(codes.Canceled) {
			t.Errorf("canceled: %v", got)
		}
	}
	_, err := e.instances().GetCluster(e.ctx(), &btapb.GetClusterRequest{Name: name})
	wantCode(t, err, codes.NotFound)

	// A new cluster of the same name does not belong to the operation of the deleted one.
	create := func() *longrunningpb.Operation {
		t.Helper()
		op, err := e.instances().CreateCluster(e.ctx(), &btapb.CreateClusterRequest{Parent: testInstance, ClusterId: "c2", Cluster: nodes("z2", 1)})
		if err != nil {
			t.Fatal(err)
		}
		return op
	}
	first := create()
	if _, err := e.instances().DeleteCluster(e.ctx(), &btapb.DeleteClusterRequest{Name: name}); err != nil {
		t.Fatal(err)
	}
	e.clock.Advance(time.Second)
	second := create()
	cancel(first.GetName())
	if got := e.operation(first.GetName()); got.GetDone() {
		t.Errorf("nothing was to be taken back: %v", got)
	}
	e.clock.Advance(time.Minute)
	cancel(second.GetName())
	if got := e.operation(second.GetName()); got.GetResponse() == nil {
		t.Errorf("it was done: %v", got)
	}
	if got := e.cluster(name); got.GetState() != btapb.Cluster_READY {
		t.Errorf("the cluster is %v", got)
	}
}

func TestOptions_AdminDelay(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	if _, err := New(Options{DB: e.db, AdminDelay: -1}); err == nil {
		t.Error("a delay below zero is taken")
	}
}
