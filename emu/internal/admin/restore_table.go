package admin

import (
	"context"
	"slices"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/engine"
)

// tableCopy describes a new table from a backup or a snapshot. The table
// becomes ready after Control.Delay, at a time in its settings.
type tableCopy struct {
	parent, id, from string
	check            func(Catalog) error // runs before the change that adds the table, and in it
	// settle adapts the new table, which has the saved schema, and returns its settings. The time
	// is that at which the table becomes ready. settle may run more than once.
	settle func(*engine.Table, time.Time) *settings
	// record records the operation, done at doneAt.
	record func(tx *engine.CatalogTx, t *btapb.Table, began, doneAt *timestamppb.Timestamp) (*longrunningpb.Operation, error)
}

// makeCopy creates the table that n describes.
func (s *Control) makeCopy(ctx context.Context, n tableCopy) (op *longrunningpb.Operation, err error) {
	if err := resname.CheckInstance("parent", n.parent); err != nil {
		return nil, err
	}
	if err := s.Limits.CheckID("table_id", "a table id", n.id); err != nil {
		return nil, err
	}
	name, began := resname.TablesOf(n.parent)+n.id, s.now()
	check := func(r Catalog) error {
		if err := CheckInstance(r, n.parent); err != nil {
			return err
		}
		if err := n.check(r); err != nil {
			return err
		}
		return s.checkTableCount(r, n.parent)
	}
	if err := s.change(ctx, func(tx *engine.CatalogTx) error { return check(tx) }); err != nil {
		return nil, err
	}
	err = s.DB.Backups().Restore(ctx, n.from, name, func(tx *engine.CatalogTx) error {
		if err := check(tx); err != nil {
			return err
		}
		doneAt := s.now().Add(s.Delay)
		t, err := tx.UpdateTable(name, func(t *engine.Table) (err error) {
			settings := n.settle(t, doneAt)
			settings.RowKeySchema = settingsOf(t).GetRowKeySchema()
			if s.Delay > 0 {
				settings.readyAt = doneAt
			}
			t.Meta, err = settings.encode()
			return err
		})
		if err != nil {
			return err
		}
		// Drop the resources that UndeleteTable would restore with an earlier
		// table.
		if err := removeAll(tx, name); err != nil {
			return err
		}
		op, err = n.record(tx, shownTable(t), timestamppb.New(began), timestamppb.New(doneAt))
		return err
	})
	return op, refusal.Of(err)
}

// RestoreTable makes a table from a backup. It restores families, value types, granularity, splits,
// row key schema and cells, but no other settings. It omits garbage-collection rules, because they
// would remove old cells at once.
func (s tableAdminService) RestoreTable(ctx context.Context, req *btapb.RestoreTableRequest) (*longrunningpb.Operation, error) {
	n := tableCopy{parent: req.GetParent(), id: req.GetTableId(), from: req.GetBackup()}
	var b *btapb.Backup
	optimized := false
	n.check = func(r Catalog) error {
		stored, err := s.findBackup(r, "backup", req.GetBackup())
		if err != nil {
			return err
		}
		if b = BackupAt(stored, s.now()); b.GetState() != btapb.Backup_READY {
			return refusal.Precondition("Backup %s is not ready.", b.GetName())
		}
		optimized, err = optimizes(r, n.parent, b)
		return err
	}
	n.settle = func(t *engine.Table, doneAt time.Time) *settings {
		for i := range t.Families {
			t.Families[i].GC = engine.GCRule{}
		}
		out := &settings{Table: &btapb.Table{RestoreInfo: &btapb.RestoreInfo{
			SourceType: btapb.RestoreSourceType_BACKUP, SourceInfo: &btapb.RestoreInfo_BackupInfo{BackupInfo: backupInfoOf(b)},
		}}}
		if optimized && s.Delay > 0 {
			out.optimizedAt = doneAt.Add(s.Delay)
		}
		return out
	}
	n.record = func(tx *engine.CatalogTx, t *btapb.Table, began, doneAt *timestamppb.Timestamp) (*longrunningpb.Operation, error) {
		metadata := &btapb.RestoreTableMetadata{
			Name: t.GetName(), SourceType: btapb.RestoreSourceType_BACKUP, Progress: doneProgress(began, doneAt),
			SourceInfo: &btapb.RestoreTableMetadata_BackupInfo{BackupInfo: backupInfoOf(b)},
		}
		if optimized { // optimization takes the delay once more
			end := doneAt.AsTime().Add(s.Delay)
			o, err := s.start(tx, n.parent, &btapb.OptimizeRestoredTableMetadata{
				Name: t.GetName(), Progress: doneProgress(doneAt, timestamppb.New(end)),
			}, &emptypb.Empty{}, end)
			if err != nil {
				return nil, err
			}
			metadata.OptimizeTableOperationName = o.GetName()
		}
		return s.start(tx, n.parent, metadata, t, doneAt.AsTime())
	}
	return s.makeCopy(ctx, n)
}

// optimizes reports whether a table restored from b into an instance is optimized afterwards: if
// b is a standard backup, and a cluster of the instance has SSD storage.
func optimizes(r Catalog, instance string, b *btapb.Backup) (bool, error) {
	clusters, err := ClustersOf(r, instance)
	onSSD := func(c *btapb.Cluster) bool { return c.GetDefaultStorageType() == btapb.StorageType_SSD }
	return b.GetBackupType() == btapb.Backup_STANDARD && slices.ContainsFunc(clusters, onSSD), err
}
