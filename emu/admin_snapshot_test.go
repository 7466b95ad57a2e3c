package emu

import (
	"context"
	"fmt"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tabletop-emu/tabletop/emu/internal/resname"
)

func (e *env) snapshotTable(ctx context.Context, cluster, id string, ttl *durationpb.Duration) error {
	_, err := e.admin.SnapshotTable(ctx, &btapb.SnapshotTableRequest{Name: testTable, Cluster: cluster, SnapshotId: id, Ttl: ttl, Description: "d"})
	return err
}

func TestSnapshots(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	e.modifyFamilies("t", updateFamily("f", &btapb.ColumnFamily{GcRule: maxVersions(3)}))
	e.mustMutate("r", set("f", "q", 1000, "v"))
	want := e.rowsOf("t")
	name := testCluster + "/snapshots/s"
	for _, ttl := range []time.Duration{-1, 0, 8 * 24 * time.Hour} {
		wantCode(t, e.snapshotTable(e.ctx(), testCluster, "s", durationpb.New(ttl)), codes.InvalidArgument)
	}
	wantCode(t, e.snapshotTable(e.ctx(), testCluster, ".s", nil), codes.InvalidArgument)
	wantCode(t, e.snapshotTable(e.ctx(), "projects/p/instances/j/clusters/c", "s", nil), codes.InvalidArgument)
	if err := e.snapshotTable(e.ctx(), testCluster, "s", nil); err != nil {
		t.Fatal(err)
	}
	wantCode(t, e.snapshotTable(e.ctx(), testCluster, "s", nil), codes.AlreadyExists)
	e.mustMutate("r", set("f", "q", 1000, "later"))
	get := func() (*btapb.Snapshot, error) {
		return e.admin.GetSnapshot(e.ctx(), &btapb.GetSnapshotRequest{Name: name})
	}
	x, err := get()
	if err != nil || x.GetSourceTable().GetName() != testTable || x.GetDataSizeBytes() == 0 || x.GetState() != btapb.Snapshot_READY ||
		x.GetDeleteTime().AsTime().Sub(x.GetCreateTime().AsTime()) != 24*time.Hour {
		t.Errorf("%v, %v", x, err)
	}
	list := func(parent string) int {
		resp, err := e.admin.ListSnapshots(e.ctx(), &btapb.ListSnapshotsRequest{Parent: parent, PageSize: -1})
		if err != nil {
			t.Error(err)
		}
		return len(resp.GetSnapshots())
	}
	if n, m := list(testCluster), list(testInstance+"/clusters/-"); n != 1 || m != 1 {
		t.Errorf("%d and %d snapshots, want 1", n, m)
	}
	e.wantBackups(&btapb.ListBackupsRequest{Parent: testInstance + "/clusters/-"}) // it is not a backup
	from := func(parent, id string) error {
		_, err := e.admin.CreateTableFromSnapshot(e.ctx(), &btapb.CreateTableFromSnapshotRequest{Parent: parent, TableId: id, SourceSnapshot: name})
		return err
	}
	wantCode(t, from("projects/p/instances/j", "t2"), codes.InvalidArgument)
	wantCode(t, from(testInstance, "t"), codes.AlreadyExists)
	if err := from(testInstance, "t2"); err != nil {
		t.Fatal(err)
	}
	if got := e.rowsOf("t2"); got != want {
		t.Errorf("the table has\n%swant\n%s", got, want)
	}
	got, err := e.admin.GetTable(e.ctx(), &btapb.GetTableRequest{Name: testInstance + "/tables/t2"})
	if err != nil || got.GetColumnFamilies()["f"].GetGcRule().GetMaxNumVersions() != 3 || got.GetRestoreInfo() != nil {
		t.Errorf("%v, %v", got, err)
	}
	e.clock.Advance(24 * time.Hour)
	_, err = get()
	wantCode(t, err, codes.NotFound)
	wantCode(t, from(testInstance, "t3"), codes.NotFound)
	if n := list(testCluster); n != 0 {
		t.Errorf("%d snapshots that have ended", n)
	}
	if err := e.snapshotTable(e.ctx(), testCluster, "s", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := e.instances().DeleteInstance(e.ctx(), &btapb.DeleteInstanceRequest{Name: testInstance}); err != nil {
		t.Fatal(err)
	}
	if n := len(e.db.Backups().List("")); n != 0 {
		t.Errorf("%d snapshots outlive their instance", n)
	}
}

// raceSnapshots is like raceBackups, with snapshots.
func (e *env) raceSnapshots(ctx context.Context, i int) error {
	parent := testInstance + "/clusters/c1"
	name, id := parent+"/snapshots/s", fmt.Sprint("snapshot", i)
	create := e.snapshotTable(ctx, parent, "s", nil)
	_, get := e.admin.GetSnapshot(ctx, &btapb.GetSnapshotRequest{Name: name})
	_, list := e.admin.ListSnapshots(ctx, &btapb.ListSnapshotsRequest{Parent: parent})
	_, from := e.admin.CreateTableFromSnapshot(ctx, &btapb.CreateTableFromSnapshotRequest{Parent: testInstance, TableId: id, SourceSnapshot: name})
	_, drop := e.admin.DeleteTable(ctx, &btapb.DeleteTableRequest{Name: resname.TablesOf(testInstance) + id})
	_, deleted := e.admin.DeleteSnapshot(ctx, &btapb.DeleteSnapshotRequest{Name: name})
	for _, err := range []error{create, get, list, from, drop, deleted} {
		if c := status.Code(err); c != codes.NotFound && c != codes.AlreadyExists && err != nil {
			return err
		}
	}
	return nil
}
