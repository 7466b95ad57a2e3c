package emu

import (
	"context"
	"slices"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tabletop-emu/tabletop/emu/internal/backup"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/schema"
	"github.com/tabletop-emu/tabletop/engine"
)

// RestoreTable makes a table of a backup: with its families, value types,
// granularity, splits, row key schema and cells, and without rules of garbage
// collection, which would take old cells away at once, and other settings.
func (s tableAdminService) RestoreTable(ctx context.Context, req *btapb.RestoreTableRequest) (*longrunningpb.Operation, error) {
	parent := req.GetParent()
	if err := parseInstance("parent", parent); err != nil {
		return nil, err
	}
	if err := s.checkID("table_id", "a table id", req.GetTableId()); err != nil {
		return nil, err
	}
	name, began := instancePrefix(parent)+req.GetTableId(), timestamppb.New(s.now())
	var b *btapb.Backup
	check := func(r catalogReader) error {
		if err := checkInstance(r, parent); err != nil {
			return err
		}
		stored, err := s.findBackup(r, "backup", req.GetBackup())
		if err != nil {
			return err
		}
		if b = backup.At(stored, s.now()); b.GetState() != btapb.Backup_READY {
			return refusal.Precondition("Backup %s is not ready.", b.GetName())
		}
		return s.checkTableCount(r, parent)
	}
	if err := s.change(ctx, func(tx *engine.CatalogTx) error { return check(tx) }); err != nil {
		return nil, err
	}
	var op *longrunningpb.Operation
	err := s.db.Backups().Restore(ctx, req.GetBackup(), name, func(tx *engine.CatalogTx) error {
		if err := check(tx); err != nil {
			return err
		}
		t, err := tx.UpdateTable(name, func(t *engine.Table) error {
			for i := range t.Families {
				t.Families[i].GC = engine.GCRule{}
			}
			settings := &btapb.Table{RowKeySchema: schema.SettingsOf(t).GetRowKeySchema(), RestoreInfo: &btapb.RestoreInfo{
				SourceType: btapb.RestoreSourceType_BACKUP, SourceInfo: &btapb.RestoreInfo_BackupInfo{BackupInfo: backup.InfoOf(b)},
			}}
			var err error
			t.Meta, err = schema.EncodeSettings(settings)
			return err
		})
		if err != nil {
			return err
		}
		// What an earlier table of the name had was kept for UndeleteTable.
		if err := removeAll(tx, name); err != nil {
			return err
		}
		done := backup.Progress(began, timestamppb.New(s.now()))
		metadata := &btapb.RestoreTableMetadata{
			Name: name, SourceType: btapb.RestoreSourceType_BACKUP, Progress: done,
			SourceInfo: &btapb.RestoreTableMetadata_BackupInfo{BackupInfo: backup.InfoOf(b)},
		}
		optimizes, err := optimizes(tx, parent, b)
		if err != nil {
			return err
		}
		if optimizes {
			o, err := finish(tx, parent, &btapb.OptimizeRestoredTableMetadata{Name: name, Progress: done}, &emptypb.Empty{})
			if err != nil {
				return err
			}
			metadata.OptimizeTableOperationName = o.GetName()
		}
		op, err = finish(tx, parent, metadata, schema.ToTable(t, btapb.Table_SCHEMA_VIEW, nil))
		return err
	})
	if err != nil {
		return nil, refusal.Of(err)
	}
	return op, nil
}

// optimizes tells whether a table that is restored from b is optimized afterwards:
// from a standard backup, where it lies on SSDs.
func optimizes(r catalogReader, instance string, b *btapb.Backup) (bool, error) {
	clusters, err := clustersOf(r, instance)
	onSSD := func(c *btapb.Cluster) bool { return c.GetDefaultStorageType() == btapb.StorageType_SSD }
	return b.GetBackupType() == btapb.Backup_STANDARD && slices.ContainsFunc(clusters, onSSD), err
}
