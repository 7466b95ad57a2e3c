package emu

import (
	"context"
	"errors"
	"slices"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tabletop-emu/tabletop/emu/internal/backup"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/emu/internal/schema"
	"github.com/tabletop-emu/tabletop/engine"
)

// Snapshots are what the API had before backups. One is a resource and an
// engine.Backup of its name, like a backup, and gone at its delete_time.

// findSnapshot returns the snapshot that a field names.
func (s *Server) findSnapshot(r catalogReader, field, name string) (*btapb.Snapshot, error) {
	if !resname.HasShape(name, "projects", "instances", "clusters", "snapshots") {
		return nil, refusal.BadName(field, name, "projects/PROJECT/instances/INSTANCE/clusters/CLUSTER/snapshots/SNAPSHOT")
	}
	x, err := find[btapb.Snapshot](r, kindSnapshot, "Snapshot", name)
	if err == nil && s.snapshotEnded(x) {
		return nil, refusal.NotFound("Snapshot", name)
	}
	return x, err
}

func (s *Server) snapshotEnded(x *btapb.Snapshot) bool {
	return !x.GetDeleteTime().AsTime().After(s.now())
}

// SnapshotTable makes a snapshot of a table in a cluster of its instance.
func (s tableAdminService) SnapshotTable(ctx context.Context, req *btapb.SnapshotTableRequest) (*longrunningpb.Operation, error) {
	parent := req.GetCluster()
	if err := s.checkID("snapshot_id", "a snapshot id", req.GetSnapshotId()); err != nil {
		return nil, err
	}
	life := backup.SnapshotLife
	if ttl := req.GetTtl(); ttl != nil {
		if life = ttl.AsDuration(); !ttl.IsValid() || life <= 0 || life > backup.MaxSnapshotLife {
			return nil, refusal.Invalid("ttl", "%v is not above 0 and at most %v", life, backup.MaxSnapshotLife)
		}
	}
	now := s.now()
	x := &btapb.Snapshot{
		Name: parent + "/snapshots/" + req.GetSnapshotId(), State: btapb.Snapshot_READY, Description: req.GetDescription(),
		CreateTime: timestamppb.New(now), DeleteTime: timestamppb.New(now.Add(life)),
	}
	check := func(r catalogReader) error {
		if _, err := cluster(r, parent); err != nil {
			return err
		}
		if segments(req.GetName(), 4) != segments(parent, 4) {
			return refusal.Invalid("cluster", "%s is not a cluster of the instance of %s", parent, req.GetName())
		}
		_, err := findTable(r, "name", req.GetName())
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
	err := s.db.Backups().Create(ctx, req.GetName(), x.GetName(), func(tx *engine.CatalogTx, kept *engine.Backup) error {
		if err := check(tx); err != nil {
			return err
		}
		x.DataSizeBytes, x.SourceTable = kept.Bytes, schema.ToTable(kept.Table, btapb.Table_SCHEMA_VIEW, nil)
		metadata := &btapb.SnapshotTableMetadata{OriginalRequest: req, RequestTime: x.GetCreateTime(), FinishTime: timestamppb.New(s.now())}
		var err error
		if op, err = finish(tx, segments(parent, 4), metadata, x); err != nil {
			return err
		}
		return store(tx, kindSnapshot+x.GetName(), x)
	})
	if err != nil {
		return nil, refusal.Of(err)
	}
	return op, nil
}

// GetSnapshot returns a snapshot.
func (s tableAdminService) GetSnapshot(_ context.Context, req *btapb.GetSnapshotRequest) (*btapb.Snapshot, error) {
	return s.findSnapshot(s.db, "name", req.GetName())
}

// ListSnapshots returns the snapshots of a cluster, or with the cluster "-" of all
// of an instance, sorted by name, in one page.
func (s tableAdminService) ListSnapshots(_ context.Context, req *btapb.ListSnapshotsRequest) (*btapb.ListSnapshotsResponse, error) {
	prefix, err := listPrefix(s.db, req.GetParent(), "snapshots")
	if err != nil {
		return nil, err
	}
	found, err := loadAll[btapb.Snapshot](s.db, kindSnapshot, prefix)
	if err != nil {
		return nil, refusal.Of(err)
	}
	return &btapb.ListSnapshotsResponse{Snapshots: slices.DeleteFunc(found, s.snapshotEnded)}, nil
}

// DeleteSnapshot deletes a snapshot. Tables that were made of it stay.
func (s tableAdminService) DeleteSnapshot(ctx context.Context, req *btapb.DeleteSnapshotRequest) (*emptypb.Empty, error) {
	err := s.change(ctx, func(tx *engine.CatalogTx) error {
		x, err := s.findSnapshot(tx, "name", req.GetName())
		if err != nil {
			return err
		}
		return dropSnapshot(tx, x.GetName())
	})
	if err != nil {
		return nil, err
	}
	return &emptypb.Empty{}, nil
}

func dropSnapshot(tx *engine.CatalogTx, name string) error {
	return errors.Join(tx.DeleteBackup(name), remove(tx, kindSnapshot+name))
}

// dropSnapshots removes the snapshots whose names begin with prefix and that drop
// tells to.
func dropSnapshots(tx *engine.CatalogTx, prefix string, drop func(*btapb.Snapshot) bool) error {
	found, err := loadAll[btapb.Snapshot](tx, kindSnapshot, prefix)
	for _, x := range found {
		if err == nil && drop(x) {
			err = dropSnapshot(tx, x.GetName())
		}
	}
	return err
}

// CreateTableFromSnapshot makes a table of a snapshot of its instance, with its
// schema, rules of garbage collection and cells.
func (s tableAdminService) CreateTableFromSnapshot(ctx context.Context, req *btapb.CreateTableFromSnapshotRequest) (*longrunningpb.Operation, error) {
	parent := req.GetParent()
	if err := parseInstance("parent", parent); err != nil {
		return nil, err
	}
	if err := s.checkID("table_id", "a table id", req.GetTableId()); err != nil {
		return nil, err
	}
	name, began := instancePrefix(parent)+req.GetTableId(), timestamppb.New(s.now())
	check := func(r catalogReader) error {
		if err := checkInstance(r, parent); err != nil {
			return err
		}
		x, err := s.findSnapshot(r, "source_snapshot", req.GetSourceSnapshot())
		if err != nil {
			return err
		}
		if segments(x.GetName(), 4) != parent {
			return refusal.Invalid("source_snapshot", "%s is not a snapshot of instance %s", x.GetName(), parent)
		}
		return s.checkTableCount(r, parent)
	}
	if err := s.change(ctx, func(tx *engine.CatalogTx) error { return check(tx) }); err != nil {
		return nil, err
	}
	var op *longrunningpb.Operation
	err := s.db.Backups().Restore(ctx, req.GetSourceSnapshot(), name, func(tx *engine.CatalogTx) error {
		if err := check(tx); err != nil {
			return err
		}
		t, err := tx.UpdateTable(name, func(t *engine.Table) (err error) {
			t.Meta, err = schema.EncodeSettings(&btapb.Table{RowKeySchema: schema.SettingsOf(t).GetRowKeySchema()})
			return err
		})
		if err != nil {
			return err
		}
		// What an earlier table of the name had was kept for UndeleteTable.
		if err := removeAll(tx, name); err != nil {
			return err
		}
		metadata := &btapb.CreateTableFromSnapshotMetadata{OriginalRequest: req, RequestTime: began, FinishTime: timestamppb.New(s.now())}
		op, err = finish(tx, parent, metadata, schema.ToTable(t, btapb.Table_SCHEMA_VIEW, nil))
		return err
	})
	if err != nil {
		return nil, refusal.Of(err)
	}
	return op, nil
}
