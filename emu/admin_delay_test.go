package emu

import (
	"slices"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/engine"
)

// newDelayed returns a server whose operations take a minute, with a table t with a row.
func newDelayed(t *testing.T, dir string) *env {
	t.Helper()
	e := newEnvWith(t, Options{AdminDelay: time.Minute}, engine.Options{Dir: dir})
	e.createTable("t", "f")
	e.mustMutate("r", set("f", "q", 1000, "v"))
	return e
}

// under checks that an operation is running, and returns its metadata.
func under[M proto.Message](e *env, op *longrunningpb.Operation, err error) M {
	e.t.Helper()
	return metadataOf[M](e, op, err, false)
}

// wantDone checks whether an operation is done, with a response.
func (e *env) wantDone(name string, done bool) *longrunningpb.Operation {
	e.t.Helper()
	op := e.operation(name)
	if op.GetDone() != done || (op.GetResponse() != nil) != done {
		e.t.Errorf("at %v: %v, want one that is done: %t", e.clock.Now(), op, done)
	}
	return op
}

func metadataOf[M proto.Message](e *env, op *longrunningpb.Operation, err error, done bool) M {
	e.t.Helper()
	var m M
	if err != nil {
		e.t.Fatal(err)
	}
	got, err := op.GetMetadata().UnmarshalNew()
	m, ok := got.(M)
	if err != nil || !ok || op.GetDone() != done {
		e.t.Fatalf("%v, %v; want one that is done: %t, of %T", op, err, done, m)
	}
	return m
}

func (e *env) cancel(op string) {
	e.t.Helper()
	if _, err := e.operations().CancelOperation(e.ctx(), &longrunningpb.CancelOperationRequest{Name: op}); err != nil {
		e.t.Fatal(err)
	}
}

func (e *env) createBackup(id string) *longrunningpb.Operation {
	e.t.Helper()
	op, err := e.admin.CreateBackup(e.ctx(), &btapb.CreateBackupRequest{
		Parent: testCluster, BackupId: id, Backup: &btapb.Backup{SourceTable: testTable, ExpireTime: e.in(72 * time.Hour)},
	})
	if err != nil {
		e.t.Fatal(err)
	}
	return op
}

// replication returns the state of table id in the cluster of an implicit instance.
func (e *env) replication(id string) btapb.Table_ClusterState_ReplicationState {
	e.t.Helper()
	t, err := e.admin.GetTable(e.ctx(), &btapb.GetTableRequest{Name: testInstance + "/tables/" + id, View: btapb.Table_REPLICATION_VIEW})
	if err != nil {
		e.t.Fatal(err)
	}
	for _, s := range t.GetClusterStates() {
		return s.GetReplicationState()
	}
	e.t.Fatalf("no cluster has %v", t)
	return 0
}

// A running backup is CREATING, has an end_time and is listed; it cannot be restored or copied.
// The finished backup has the rows from the time of the call, even after a restart.
func TestAdminDelay_CreateBackup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := newDelayed(t, dir)
	want := e.rowsOf("t")
	op := e.createBackup("b")
	const name = testCluster + "/backups/b"
	if m := under[*btapb.CreateBackupMetadata](e, op, nil); m.GetName() != name || m.GetEndTime() != nil || m.GetStartTime() == nil {
		t.Errorf("%v", m)
	}
	e.mustMutate("r", set("f", "q", 1000, "later"))
	e.clock.Advance(time.Minute - time.Microsecond)
	now := e.clock.Now()
	e = e.restart(dir)
	e.clock.AdvanceTo(now)
	e.wantDone(op.GetName(), false)
	if all := e.backups(); len(all) != 1 || all[0].GetState() != btapb.Backup_CREATING || all[0].GetEndTime() == nil || !proto.Equal(all[0], e.getBackup(name)) {
		t.Errorf("%v", all)
	}
	if found, err := e.srv.Resources(); err != nil || !slices.ContainsFunc(found, func(r Resource) bool {
		b, ok := r.Message.(*btapb.Backup)
		return ok && b.GetState() == btapb.Backup_CREATING
	}) {
		t.Errorf("resources: %v, %v", found, err)
	}
	_, err := e.restore(testInstance, name, "t2")
	wantCode(t, err, codes.FailedPrecondition)
	wantCode(t, e.copyBackup(name, testCluster, "copy"), codes.FailedPrecondition)
	e.clock.Advance(time.Microsecond)
	got := response[*btapb.Backup](e, e.wantDone(op.GetName(), true), nil)
	if b := e.getBackup(name); b.GetState() != btapb.Backup_READY || !proto.Equal(b, got) || b.GetEndTime().AsTime().Sub(b.GetStartTime().AsTime()) != time.Minute {
		t.Errorf("%v, the response %v", b, got)
	}
	if m := metadataOf[*btapb.CreateBackupMetadata](e, e.operation(op.GetName()), nil, true); !proto.Equal(m.GetEndTime(), got.GetEndTime()) {
		t.Errorf("%v", m)
	}
	e.mustRestore(name, "t2") // this server has no delay
	if got := e.rowsOf("t2"); got != want {
		t.Errorf("restored\n%swant\n%s", got, want)
	}
}

// CancelOperation deletes a running backup and frees its bytes. It keeps finished backups and
// new backups of the same name. A running backup can be deleted.
func TestAdminDelay_CancelBackup(t *testing.T) {
	t.Parallel()
	e := newDelayed(t, "")
	const name = testCluster + "/backups/b"
	kept := func(n int) {
		t.Helper()
		if got := len(e.db.Backups().List("")); got != n {
			t.Errorf("%d backups are kept, want %d", got, n)
		}
	}
	first := e.createBackup("b")
	e.cancel(first.GetName())
	kept(0)
	if op := e.operation(first.GetName()); !op.GetDone() || op.GetError().GetCode() != int32(codes.Canceled) {
		t.Errorf("%v", op)
	}
	_, err := e.admin.GetBackup(e.ctx(), &btapb.GetBackupRequest{Name: name})
	wantCode(t, err, codes.NotFound)
	second := e.createBackup("b")
	if _, err := e.admin.DeleteBackup(e.ctx(), &btapb.DeleteBackupRequest{Name: name}); err != nil {
		t.Fatal(err)
	}
	kept(0)
	e.clock.Advance(time.Second)
	third := e.createBackup("b")
	e.cancel(second.GetName())
	kept(1)
	e.clock.Advance(time.Minute)
	e.cancel(third.GetName())
	kept(1)
	e.wantDone(third.GetName(), true)
}

// A backup cannot be deleted and does not expire until its copies are done or canceled.
func TestAdminDelay_CopyBackup(t *testing.T) {
	t.Parallel()
	e := newDelayed(t, "")
	e.createBackup("b")
	e.clock.Advance(time.Minute)
	const name, copied = testCluster + "/backups/b", testCluster + "/backups/copy"
	startCopy := func() *longrunningpb.Operation {
		t.Helper()
		op, err := e.admin.CopyBackup(e.ctx(), &btapb.CopyBackupRequest{Parent: testCluster, BackupId: "copy", SourceBackup: name, ExpireTime: e.in(48 * time.Hour)})
		if m := under[*btapb.CopyBackupMetadata](e, op, err); m.GetProgress().GetProgressPercent() != 0 || m.GetProgress().GetEndTime() != nil || m.GetName() != copied {
			t.Errorf("%v", m)
		}
		return op
	}
	remove := func() error {
		_, err := e.admin.DeleteBackup(e.ctx(), &btapb.DeleteBackupRequest{Name: name})
		return err
	}
	op := startCopy()
	wantCode(t, remove(), codes.FailedPrecondition)
	e.cancel(op.GetName())
	if n := len(e.backups()); n != 1 {
		t.Errorf("%d backups after the copy was canceled", n)
	}

	// Its new expire time passes during the copy.
	e.clock.Advance(5*time.Hour + 58*time.Minute) // the least age of a backup is 6 hours, less the grace
	op = startCopy()
	e.clock.Advance(20 * time.Second)
	if _, err := e.updateBackup(&btapb.Backup{Name: name, ExpireTime: e.in(10 * time.Second)}, "expire_time"); err != nil {
		t.Fatal(err)
	}
	e.advance(40*time.Second - time.Microsecond)
	if b := e.getBackup(name); b.GetState() != btapb.Backup_READY || len(e.backups()) != 2 {
		t.Errorf("%v, among %v", b, e.backups())
	}
	if m := metadataOf[*btapb.CopyBackupMetadata](e, e.operation(op.GetName()), nil, false); m.GetProgress().GetProgressPercent() != 99 {
		t.Errorf("%v", m)
	}
	wantCode(t, remove(), codes.FailedPrecondition)
	e.advance(time.Microsecond)
	e.wantDone(op.GetName(), true)
	if all := e.backups(); len(all) != 1 || all[0].GetName() != copied || all[0].GetState() != btapb.Backup_READY || len(e.db.Backups().List("")) != 1 {
		t.Errorf("%v", all)
	}
	wantCode(t, remove(), codes.NotFound)
}

// A restored table is INITIALIZING, then READY_OPTIMIZING during its optimize operation, then
// READY. Its data is readable.
func TestAdminDelay_RestoreTable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := newDelayed(t, dir)
	want := e.rowsOf("t")
	e.createBackup("b")
	e.clock.Advance(time.Minute)
	op, err := e.admin.RestoreTable(e.ctx(), &btapb.RestoreTableRequest{Parent: testInstance, TableId: "t2", Source: &btapb.RestoreTableRequest_Backup{Backup: testCluster + "/backups/b"}})
	m := under[*btapb.RestoreTableMetadata](e, op, err)
	if m.GetOptimizeTableOperationName() == "" || m.GetProgress().GetEndTime() != nil {
		t.Errorf("%v", m)
	}
	check := func(restored, optimized bool, percent int32, state btapb.Table_ClusterState_ReplicationState) {
		t.Helper()
		e.wantDone(op.GetName(), restored)
		o := metadataOf[*btapb.OptimizeRestoredTableMetadata](e, e.wantDone(m.GetOptimizeTableOperationName(), optimized), nil, optimized)
		if o.GetProgress().GetProgressPercent() != percent {
			t.Errorf("%v, want %d%%", o, percent)
		}
		if got := e.replication("t2"); got != state {
			t.Errorf("at %v the table is %v, want %v", e.clock.Now(), got, state)
		}
		if got := e.rowsOf("t2"); got != want {
			t.Errorf("restored\n%swant\n%s", got, want)
		}
		shown, err := e.admin.GetTable(e.ctx(), &btapb.GetTableRequest{Name: testInstance + "/tables/t2", View: btapb.Table_FULL})
		if err != nil || len(shown.ProtoReflect().GetUnknown()) > 0 || len(shown.GetRestoreInfo().ProtoReflect().GetUnknown()) > 0 {
			t.Errorf("%v, %v", shown, err)
		}
	}
	check(false, false, 0, btapb.Table_ClusterState_INITIALIZING)
	wantCode(t, e.tryBackup("of-it", func(req *btapb.CreateBackupRequest) { req.Backup.SourceTable = testInstance + "/tables/t2" }), codes.FailedPrecondition)
	// Its settings can be changed meanwhile.
	update, err := e.admin.UpdateTable(e.ctx(), &btapb.UpdateTableRequest{Table: &btapb.Table{Name: testInstance + "/tables/t2", DeletionProtection: true}, UpdateMask: mask("deletion_protection")})
	if m := under[*btapb.UpdateTableMetadata](e, update, err); m.GetEndTime() != nil {
		t.Errorf("%v", m)
	}
	e.clock.Advance(time.Minute - time.Microsecond)
	check(false, false, 0, btapb.Table_ClusterState_INITIALIZING)
	e.clock.Advance(time.Microsecond)
	now := e.clock.Now()
	e = e.restart(dir)
	e.clock.AdvanceTo(now)
	check(true, false, 0, btapb.Table_ClusterState_READY_OPTIMIZING)
	e.cancel(m.GetOptimizeTableOperationName()) // it cannot be canceled
	e.clock.Advance(30 * time.Second)
	check(true, false, 50, btapb.Table_ClusterState_READY_OPTIMIZING)
	e.clock.Advance(30 * time.Second)
	check(true, true, 100, btapb.Table_ClusterState_READY)
}

// CancelOperation of a restore deletes the table and its optimize operation, unless the table
// is protected or was replaced.
func TestAdminDelay_CancelRestore(t *testing.T) {
	t.Parallel()
	e := newDelayed(t, "")
	e.createBackup("b")
	e.clock.Advance(time.Minute)
	restore := func() (*longrunningpb.Operation, string) {
		t.Helper()
		op, err := e.admin.RestoreTable(e.ctx(), &btapb.RestoreTableRequest{Parent: testInstance, TableId: "t2", Source: &btapb.RestoreTableRequest_Backup{Backup: testCluster + "/backups/b"}})
		return op, under[*btapb.RestoreTableMetadata](e, op, err).GetOptimizeTableOperationName()
	}
	canceled := func(name string) bool {
		return e.operation(name).GetError().GetCode() == int32(codes.Canceled)
	}
	exists := func() bool {
		_, err := e.db.Table(testInstance + "/tables/t2")
		return err == nil
	}
	op, optimize := restore()
	e.cancel(op.GetName())
	if !canceled(op.GetName()) || !canceled(optimize) || exists() {
		t.Errorf("%v, %v, the table is there: %t", e.operation(op.GetName()), e.operation(optimize), exists())
	}
	if len(e.db.DeletedTables("")) != 0 {
		t.Error("what was never there can be undeleted")
	}
	first, _ := restore()
	e.mustDeleteTable("t2")
	e.clock.Advance(time.Second)
	second, _ := restore()
	e.cancel(first.GetName())
	if canceled(first.GetName()) || !exists() {
		t.Error("a table is taken back that another operation has made")
	}
	if _, err := e.admin.UpdateTable(e.ctx(), &btapb.UpdateTableRequest{Table: &btapb.Table{Name: testInstance + "/tables/t2", DeletionProtection: true}, UpdateMask: mask("deletion_protection")}); err != nil {
		t.Fatal(err)
	}
	e.cancel(second.GetName())
	if canceled(second.GetName()) || !exists() {
		t.Error("a protected table is taken back")
	}
}

// Snapshots, and tables created from them, take the delay.
func TestAdminDelay_Snapshots(t *testing.T) {
	t.Parallel()
	e := newDelayed(t, "")
	want := e.rowsOf("t")
	const name = testCluster + "/snapshots/s"
	op, err := e.admin.SnapshotTable(e.ctx(), &btapb.SnapshotTableRequest{Name: testTable, Cluster: testCluster, SnapshotId: "s"})
	if m := under[*btapb.SnapshotTableMetadata](e, op, err); m.GetFinishTime() != nil {
		t.Errorf("%v", m)
	}
	check := func(state btapb.Snapshot_State) {
		t.Helper()
		x, err := e.admin.GetSnapshot(e.ctx(), &btapb.GetSnapshotRequest{Name: name})
		list, listErr := e.admin.ListSnapshots(e.ctx(), &btapb.ListSnapshotsRequest{Parent: testCluster})
		if err != nil || listErr != nil || x.GetState() != state || len(list.GetSnapshots()) != 1 || !proto.Equal(list.GetSnapshots()[0], x) || len(x.ProtoReflect().GetUnknown()) != 0 {
			t.Errorf("%v, %v, %v, %v; want %v", x, err, list, listErr, state)
		}
	}
	make := func() (*longrunningpb.Operation, error) {
		return e.admin.CreateTableFromSnapshot(e.ctx(), &btapb.CreateTableFromSnapshotRequest{Parent: testInstance, TableId: "t2", SourceSnapshot: name})
	}
	check(btapb.Snapshot_CREATING)
	_, err = make()
	wantCode(t, err, codes.FailedPrecondition)
	e.cancel(op.GetName()) // no effect: cancellation is not documented
	e.clock.Advance(time.Minute)
	check(btapb.Snapshot_READY)
	if x := response[*btapb.Snapshot](e, e.wantDone(op.GetName(), true), nil); x.GetState() != btapb.Snapshot_READY {
		t.Errorf("%v", x)
	}
	op, err = make()
	if m := under[*btapb.CreateTableFromSnapshotMetadata](e, op, err); m.GetFinishTime() != nil || e.replication("t2") != btapb.Table_ClusterState_INITIALIZING {
		t.Errorf("%v, %v", m, e.replication("t2"))
	}
	e.cancel(op.GetName())
	e.clock.Advance(time.Minute)
	e.wantDone(op.GetName(), true)
	if got := e.rowsOf("t2"); got != want || e.replication("t2") != btapb.Table_ClusterState_READY {
		t.Errorf("%v with\n%swant\n%s", e.replication("t2"), got, want)
	}
}

// An instance and its clusters are CREATING and unavailable until the operation is done, even
// after a restart. Updates meanwhile do not change that.
func TestAdminDelay_CreateInstance(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := newEnvWith(t, Options{AdminDelay: time.Minute}, engine.Options{Dir: dir})
	op, err := e.instances().CreateInstance(e.ctx(), &btapb.CreateInstanceRequest{
		Parent: "projects/p", InstanceId: "i", Instance: &btapb.Instance{}, Clusters: map[string]*btapb.Cluster{"c1": nodes("z1", 1)},
	})
	if m := under[*btapb.CreateInstanceMetadata](e, op, err); m.GetFinishTime() != nil || m.GetRequestTime() == nil {
		t.Errorf("%v", m)
	}
	e.createTable("t", "f")
	check := func(in btapb.Instance_State, c btapb.Cluster_State, code codes.Code) {
		t.Helper()
		got, err := e.instances().GetInstance(e.ctx(), &btapb.GetInstanceRequest{Name: testInstance})
		list, listErr := e.instances().ListInstances(e.ctx(), &btapb.ListInstancesRequest{Parent: "projects/p"})
		if err != nil || listErr != nil || got.GetState() != in || len(list.GetInstances()) != 1 || !proto.Equal(got, list.GetInstances()[0]) || len(got.ProtoReflect().GetUnknown()) != 0 {
			t.Errorf("%v, %v, listed %v, %v; want %v", got, err, list, listErr, in)
		}
		if got := e.cluster(testInstance + "/clusters/c1"); got.GetState() != c {
			t.Errorf("%v, want %v", got, c)
		}
		wantCode(t, e.mutate("r", set("f", "q", 1000, "v")), code)
		found, err := e.srv.Resources()
		if err != nil || !slices.ContainsFunc(found, func(r Resource) bool { return proto.Equal(r.Message, got) }) {
			t.Errorf("no resource is %v, %v", got, err)
		}
	}
	check(btapb.Instance_CREATING, btapb.Cluster_CREATING, codes.Unavailable)
	renamed, err := e.instances().UpdateInstance(e.ctx(), &btapb.Instance{Name: testInstance, DisplayName: "new", Type: btapb.Instance_PRODUCTION})
	if err != nil || renamed.GetState() != btapb.Instance_CREATING {
		t.Errorf("%v, %v", renamed, err)
	}
	e.cancel(op.GetName()) // no effect: cancellation is not documented
	e.clock.Advance(time.Minute - time.Microsecond)
	now := e.clock.Now()
	e = e.restart(dir)
	e.clock.AdvanceTo(now)
	e.wantDone(op.GetName(), false)
	check(btapb.Instance_CREATING, btapb.Cluster_CREATING, codes.Unavailable)
	e.clock.Advance(time.Microsecond)
	check(btapb.Instance_READY, btapb.Cluster_READY, codes.OK)
	if in := response[*btapb.Instance](e, e.wantDone(op.GetName(), true), nil); in.GetState() != btapb.Instance_READY || in.GetDisplayName() != "i" {
		t.Errorf("%v", in)
	}
}

// A cluster with a new number of nodes is RESIZING until the operation is done. It has the
// nodes at once, and serves. The operation cannot be canceled.
func TestAdminDelay_UpdateCluster(t *testing.T) {
	t.Parallel()
	e := newDelayed(t, "")
	c := e.cluster(testCluster)
	check := func(state btapb.Cluster_State, nodes int32) {
		t.Helper()
		if got := e.cluster(testCluster); got.GetState() != state || got.GetServeNodes() != nodes || len(got.ProtoReflect().GetUnknown()) != 0 {
			t.Errorf("%v, want %v with %d nodes", got, state, nodes)
		}
		e.mustMutate("r", set("f", "q", 1000, "v"))
	}
	c.ServeNodes = 3
	first, err := e.instances().UpdateCluster(e.ctx(), c)
	if m := under[*btapb.UpdateClusterMetadata](e, first, err); m.GetFinishTime() != nil {
		t.Errorf("%v", m)
	}
	check(btapb.Cluster_RESIZING, 3)
	e.createBackup("b")
	e.clock.Advance(30 * time.Second)
	second, err := e.instances().PartialUpdateCluster(e.ctx(), &btapb.PartialUpdateClusterRequest{
		Cluster: &btapb.Cluster{Name: testCluster, ServeNodes: 5}, UpdateMask: mask("serve_nodes"),
	})
	if m := under[*btapb.PartialUpdateClusterMetadata](e, second, err); m.GetFinishTime() != nil {
		t.Errorf("%v", m)
	}
	e.cancel(second.GetName())
	e.clock.Advance(time.Minute - time.Microsecond)
	e.wantDone(first.GetName(), true)
	e.wantDone(second.GetName(), false)
	check(btapb.Cluster_RESIZING, 5)
	// An update with the same number of nodes leaves the cluster READY.
	if _, err := e.instances().UpdateCluster(e.ctx(), e.cluster(testCluster)); err != nil {
		t.Fatal(err)
	}
	e.clock.Advance(time.Microsecond)
	check(btapb.Cluster_READY, 5)
	if got := response[*btapb.Cluster](e, e.wantDone(second.GetName(), true), nil); got.GetState() != btapb.Cluster_READY || got.GetServeNodes() != 5 {
		t.Errorf("%v", got)
	}
}

// Schema bundles, app profiles, tables and instances change at once, while their operations
// take the delay. Views are done at once, as the Go client does not wait.
func TestAdminDelay_OperationsAlone(t *testing.T) {
	t.Parallel()
	e := newDelayed(t, "")
	bundle := &btapb.SchemaBundle{Type: &btapb.SchemaBundle_AvroSchema{AvroSchema: &btapb.AvroSchema{JsonSchemas: []string{`"string"`}}}}
	created, err := e.admin.CreateSchemaBundle(e.ctx(), &btapb.CreateSchemaBundleRequest{Parent: testTable, SchemaBundleId: "s", SchemaBundle: bundle})
	if m := under[*btapb.CreateSchemaBundleMetadata](e, created, err); m.GetEndTime() != nil {
		t.Errorf("%v", m)
	}
	bundle.Name = testTable + "/schemaBundles/s"
	updated, err := e.admin.UpdateSchemaBundle(e.ctx(), &btapb.UpdateSchemaBundleRequest{SchemaBundle: bundle})
	if m := under[*btapb.UpdateSchemaBundleMetadata](e, updated, err); m.GetEndTime() != nil {
		t.Errorf("%v", m)
	}
	view, err := e.admin.CreateAuthorizedView(e.ctx(), &btapb.CreateAuthorizedViewRequest{
		Parent: testTable, AuthorizedViewId: "v", AuthorizedView: viewOf(&btapb.AuthorizedView_SubsetView{}),
	})
	metadataOf[*btapb.CreateAuthorizedViewMetadata](e, view, err, true)
	partial, err := e.instances().PartialUpdateInstance(e.ctx(), &btapb.PartialUpdateInstanceRequest{
		Instance: &btapb.Instance{Name: testInstance, DisplayName: "new"}, UpdateMask: mask("display_name"),
	})
	if m := under[*btapb.UpdateInstanceMetadata](e, partial, err); m.GetFinishTime() != nil {
		t.Errorf("%v", m)
	}
	profile, err := e.instances().UpdateAppProfile(e.ctx(), &btapb.UpdateAppProfileRequest{
		AppProfile: &btapb.AppProfile{Name: testInstance + "/appProfiles/default", Description: "new"}, UpdateMask: mask("description"), IgnoreWarnings: true,
	})
	under[*btapb.UpdateAppProfileMetadata](e, profile, err)
	e.mustDeleteTable("t")
	undeleted, err := e.admin.UndeleteTable(e.ctx(), &btapb.UndeleteTableRequest{Name: testTable})
	if m := under[*btapb.UndeleteTableMetadata](e, undeleted, err); m.GetEndTime() != nil || e.rowsOf("t") == "" {
		t.Errorf("%v", m)
	}
	e.clock.Advance(time.Minute)
	for _, op := range []*longrunningpb.Operation{created, updated, partial, profile, undeleted} {
		e.wantDone(op.GetName(), true)
	}
	if in := response[*btapb.Instance](e, e.operation(partial.GetName()), nil); in.GetDisplayName() != "new" {
		t.Errorf("%v", in)
	}
}

// A new view cannot be read before its operation is done, except by queries that allow it. This is also so after a
// restart.
func TestDelay_MaterializedView(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := newDelayed(t, dir)
	op, err := e.instances().CreateMaterializedView(e.ctx(), &btapb.CreateMaterializedViewRequest{
		Parent: testInstance, MaterializedViewId: "v", MaterializedView: &btapb.MaterializedView{Query: "SELECT f['q'] AS q, _key AS k FROM t ORDER BY q, k"},
	})
	under[*btapb.CreateMaterializedViewMetadata](e, op, err)
	read := func() error {
		_, err := readRows(e.ctx(), e.data, &btpb.ReadRowsRequest{MaterializedViewName: testInstance + "/materializedViews/v"})
		return err
	}
	query := func(hint string) error { return e.sql(hint + "SELECT k FROM v") }
	e = e.restart(dir)
	wantCode(t, read(), codes.FailedPrecondition)
	wantCode(t, query(""), codes.FailedPrecondition)
	wantCode(t, query("@{allow_incomplete_view=false} "), codes.FailedPrecondition)
	wantCode(t, query("@{ALLOW_INCOMPLETE_VIEW=TRUE, other=1} "), codes.OK)
	wantCode(t, query("@{allow_incomplete_view=1} "), codes.InvalidArgument)
	e.clock.Advance(time.Minute)
	wantCode(t, read(), codes.OK)
	wantCode(t, query(""), codes.OK)
}
