package admin

import (
	"context"
	"errors"
	"slices"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tabletop-emu/tabletop/emu/internal/pending"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/engine"
)

// Snapshots are the predecessors of backups in the API. Like a backup, a
// snapshot is a resource and an engine.Backup of its name. It expires at its
// delete_time.

// findSnapshot returns the unexpired snapshot with the given name; errors name the request field.
func (s *Control) findSnapshot(r Catalog, field, name string) (*btapb.Snapshot, error) {
	if !resname.HasShape(name, "projects", "instances", "clusters", "snapshots") {
		return nil, refusal.BadName(field, name, "projects/PROJECT/instances/INSTANCE/clusters/CLUSTER/snapshots/SNAPSHOT")
	}
	x, err := findRecord[btapb.Snapshot](r, KindSnapshot, "Snapshot", name)
	switch {
	case err != nil:
		return nil, err
	case s.snapshotEnded(x):
		return nil, refusal.NotFound("Snapshot", name)
	}
	return shownSnapshot(x, s.now()), nil
}

// storedSnapshot is a stored snapshot, which is CREATING until its time.
type storedSnapshot = pending.Record[*btapb.Snapshot]

// shownSnapshot changes a stored snapshot to its state at a time, and returns
// its message.
func shownSnapshot(x *storedSnapshot, now time.Time) *btapb.Snapshot {
	if x.Before(now) {
		x.Message.State = btapb.Snapshot_CREATING
	}
	return x.Message
}

func (s *Control) snapshotEnded(x *storedSnapshot) bool {
	return !x.Message.GetDeleteTime().AsTime().After(s.now())
}

// SnapshotTable makes a snapshot of a table in a cluster of its instance.
func (s tableAdminService) SnapshotTable(ctx context.Context, req *btapb.SnapshotTableRequest) (*longrunningpb.Operation, error) {
	parent := req.GetCluster()
	if err := s.Limits.CheckID("snapshot_id", "a snapshot id", req.GetSnapshotId()); err != nil {
		return nil, err
	}
	life := snapshotLife
	if ttl := req.GetTtl(); ttl != nil {
		if life = ttl.AsDuration(); !ttl.IsValid() || life <= 0 || life > maxSnapshotLife {
			return nil, refusal.Invalid("ttl", "%v is out of range; must be greater than 0 and at most %v", life, maxSnapshotLife)
		}
	}
	now := s.now()
	x := &btapb.Snapshot{
		Name: parent + "/snapshots/" + req.GetSnapshotId(), State: btapb.Snapshot_READY, Description: req.GetDescription(),
		CreateTime: timestamppb.New(now), DeleteTime: timestamppb.New(now.Add(life)),
	}
	check := func(r Catalog) error {
		if _, err := cluster(r, parent); err != nil {
			return err
		}
		if resname.First(req.GetName(), 4) != resname.First(parent, 4) {
			return refusal.Invalid("cluster", "cluster %s is not in the instance of table %s", parent, req.GetName())
		}
		_, err := FindTable(r, "name", req.GetName())
		return err
	}
	if err := s.change(ctx, func(tx *engine.CatalogTx) error {
		if err := s.sweepBackups(tx); err != nil {
			return err
		}
		if err := check(tx); err != nil {
			return err
		}
		if _, err := tx.Backup(x.GetName()); err == nil {
			return refusal.Exists("Snapshot", x.GetName())
		}
		return nil
	}); err != nil {
		return nil, err
	}
	var op *longrunningpb.Operation
	err := s.DB.Backups().Create(ctx, req.GetName(), x.GetName(), func(tx *engine.CatalogTx, kept *engine.Backup) error {
		if err := check(tx); err != nil {
			return err
		}
		x.DataSizeBytes, x.SourceTable = kept.Bytes, shownTable(kept.Table)
		doneAt := s.now().Add(s.Delay)
		metadata := &btapb.SnapshotTableMetadata{OriginalRequest: req, RequestTime: x.GetCreateTime(), FinishTime: timestamppb.New(doneAt)}
		var err error
		if op, err = s.start(tx, resname.First(parent, 4), metadata, x, doneAt); err != nil {
			return err
		}
		return storeRecord(tx, KindSnapshot+x.GetName(), x, s.until(doneAt))
	})
	if err != nil {
		return nil, refusal.Of(err)
	}
	return op, nil
}

// GetSnapshot returns a snapshot.
func (s tableAdminService) GetSnapshot(_ context.Context, req *btapb.GetSnapshotRequest) (*btapb.Snapshot, error) {
	return s.findSnapshot(s.DB, "name", req.GetName())
}

// ListSnapshots returns the snapshots of a cluster or, with the cluster "-", of all
// clusters of an instance, sorted by name, in one page.
func (s tableAdminService) ListSnapshots(_ context.Context, req *btapb.ListSnapshotsRequest) (*btapb.ListSnapshotsResponse, error) {
	prefix, err := listPrefix(s.DB, req.GetParent(), "snapshots")
	if err != nil {
		return nil, err
	}
	found, err := loadRecords[btapb.Snapshot](s.DB, KindSnapshot, prefix)
	if err != nil {
		return nil, refusal.Of(err)
	}
	found = slices.DeleteFunc(found, s.snapshotEnded)
	resp := &btapb.ListSnapshotsResponse{}
	for _, x := range found {
		resp.Snapshots = append(resp.Snapshots, shownSnapshot(x, s.now()))
	}
	return resp, nil
}

// DeleteSnapshot deletes a snapshot. It keeps tables that were made from the snapshot.
func (s tableAdminService) DeleteSnapshot(ctx context.Context, req *btapb.DeleteSnapshotRequest) (*emptypb.Empty, error) {
	return empty(s.change(ctx, func(tx *engine.CatalogTx) error {
		x, err := s.findSnapshot(tx, "name", req.GetName())
		if err != nil {
			return err
		}
		return dropSnapshot(tx, x.GetName())
	}))
}

func dropSnapshot(tx *engine.CatalogTx, name string) error {
	return errors.Join(tx.DeleteBackup(name), remove(tx, KindSnapshot+name))
}

// dropSnapshots removes the snapshots whose names begin with prefix and for
// which drop returns true.
func dropSnapshots(tx *engine.CatalogTx, prefix string, drop func(*storedSnapshot) bool) error {
	found, err := loadRecords[btapb.Snapshot](tx, KindSnapshot, prefix)
	for _, x := range found {
		if err == nil && drop(x) {
			err = dropSnapshot(tx, x.Message.GetName())
		}
	}
	return err
}

// CreateTableFromSnapshot makes a table from a snapshot in the same instance, with the schema,
// garbage-collection rules and cells of the snapshot.
func (s tableAdminService) CreateTableFromSnapshot(ctx context.Context, req *btapb.CreateTableFromSnapshotRequest) (*longrunningpb.Operation, error) {
	n := tableCopy{parent: req.GetParent(), id: req.GetTableId(), from: req.GetSourceSnapshot()}
	n.check = func(r Catalog) error {
		x, err := s.findSnapshot(r, "source_snapshot", req.GetSourceSnapshot())
		switch {
		case err != nil:
			return err
		case resname.First(x.GetName(), 4) != n.parent:
			return refusal.Invalid("source_snapshot", "%s is not a snapshot of instance %s", x.GetName(), n.parent)
		case x.GetState() != btapb.Snapshot_READY:
			return refusal.Precondition("Snapshot %s is not ready.", x.GetName())
		}
		return nil
	}
	n.settle = func(*engine.Table, time.Time) *settings { return &settings{Table: &btapb.Table{}} }
	n.record = func(tx *engine.CatalogTx, t *btapb.Table, began, doneAt *timestamppb.Timestamp) (*longrunningpb.Operation, error) {
		return s.start(tx, n.parent, &btapb.CreateTableFromSnapshotMetadata{OriginalRequest: req, RequestTime: began, FinishTime: doneAt}, t, doneAt.AsTime())
	}
	return s.makeCopy(ctx, n)
}
