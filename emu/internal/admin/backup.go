package admin

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tabletop-emu/tabletop/emu/internal/instancedef"
	"github.com/tabletop-emu/tabletop/emu/internal/limits"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/engine"
)

// A backup consists of a resource, the message of the API, and of an
// engine.Backup of the same name with the table's data. Both are created and
// deleted in one change. Its completion, its expiry and its conversion to a
// standard backup are computed from stored times on each read. The space of
// expired backups is freed when they expire, see expiries, and before another
// backup is made.

const backupShape = "projects/PROJECT/instances/INSTANCE/clusters/CLUSTER/backups/BACKUP"

// findBackup returns the stored backup with the given name if it has not expired; see
// backupGoneAt. Errors name the request field.
func (s *Control) findBackup(r Catalog, field, name string) (*btapb.Backup, error) {
	if !resname.HasShape(name, "projects", "instances", "clusters", "backups") {
		return nil, refusal.BadName(field, name, backupShape)
	}
	b, err := find[btapb.Backup](r, KindBackup, "Backup", name)
	if err != nil || b.GetExpireTime().AsTime().After(s.now()) {
		return b, err
	}
	if goneAt, _, err := backups(r); err != nil || !goneAt(b).After(s.now()) {
		return nil, cmp.Or(refusal.Of(err), refusal.NotFound("Backup", name))
	}
	return b, nil
}

// backups returns all stored backups, sorted by name, and a function that
// returns when each expires.
func backups(r Catalog) (goneAt func(*btapb.Backup) time.Time, all []*btapb.Backup, err error) {
	all, err = loadAll[btapb.Backup](r, KindBackup, "")
	return backupGoneAt(all), all, err
}

// backupsUnder returns the unexpired stored backups whose names begin with prefix, sorted by
// name.
func (s *Control) backupsUnder(r Catalog, prefix string) ([]*btapb.Backup, error) {
	goneAt, all, err := backups(r)
	now := s.now()
	return slices.DeleteFunc(all, func(b *btapb.Backup) bool {
		return !strings.HasPrefix(b.GetName(), prefix) || !goneAt(b).After(now)
	}), refusal.Of(err)
}

// CreateBackup backs up a table in its state at some moment during the call.
func (s tableAdminService) CreateBackup(ctx context.Context, req *btapb.CreateBackupRequest) (*longrunningpb.Operation, error) {
	given := req.GetBackup()
	if given == nil {
		return nil, refusal.Invalid("backup", "must be set")
	}
	table := given.GetSourceTable()
	if err := resname.CheckTable("backup.source_table", table); err != nil {
		return nil, err
	}
	b := &btapb.Backup{
		Name: req.GetParent() + "/backups/" + req.GetBackupId(), SourceTable: table, StartTime: micros(timestamppb.New(s.now())),
		ExpireTime: micros(given.GetExpireTime()), BackupType: given.GetBackupType(), HotToStandardTime: micros(given.GetHotToStandardTime()),
	}
	check := func(r Catalog, c *btapb.Cluster, in *btapb.Instance) error {
		if resname.First(table, 4) != in.GetName() {
			return refusal.Invalid("backup.source_table", "%s is not a table of instance %s, where the backup would be stored", table, in.GetName())
		}
		t, err := FindTable(r, "backup.source_table", table)
		if err != nil {
			return err
		}
		if readyAt(t).After(s.now()) {
			return refusal.Precondition("Table %s is not ready.", table)
		}
		if err := checkBackupExpiry(b, maxBackupAge(in)); err != nil {
			return refusal.Invalid("backup.expire_time", "%v", err)
		}
		if err := settleBackupType(b, c); err != nil {
			return refusal.Invalid("backup.backup_type", "%v", err)
		}
		return checkHotTime(b)
	}
	make := func(fn func(*engine.CatalogTx, *engine.Backup) error) error {
		return s.DB.Backups().Create(ctx, table, b.GetName(), fn)
	}
	return s.makeBackup(ctx, req.GetParent(), req.GetBackupId(), b, check, make, func() proto.Message {
		return &btapb.CreateBackupMetadata{Name: b.GetName(), SourceTable: table, StartTime: b.GetStartTime(), EndTime: b.GetEndTime()}
	})
}

// CopyBackup copies a backup within a cluster or to another cluster, instance or project. The copy
// is independent of its source, and cannot be copied again.
func (s tableAdminService) CopyBackup(ctx context.Context, req *btapb.CopyBackupRequest) (*longrunningpb.Operation, error) {
	b := &btapb.Backup{
		Name: req.GetParent() + "/backups/" + req.GetBackupId(), SourceBackup: req.GetSourceBackup(), StartTime: micros(timestamppb.New(s.now())),
		ExpireTime: micros(req.GetExpireTime()), BackupType: btapb.Backup_STANDARD,
	}
	var info *btapb.BackupInfo
	check := func(r Catalog, _ *btapb.Cluster, _ *btapb.Instance) error {
		stored, err := s.findBackup(r, "source_backup", req.GetSourceBackup())
		if err != nil {
			return err
		}
		from := BackupAt(stored, s.now())
		b.SourceTable, info = from.GetSourceTable(), backupInfoOf(from)
		switch {
		case from.GetState() != btapb.Backup_READY:
			return refusal.Precondition("Backup %s is not ready.", from.GetName())
		case from.GetSourceBackup() != "":
			return refusal.Precondition("Backup %s is a copy of %s and cannot be copied.", from.GetName(), from.GetSourceBackup())
		case from.GetExpireTime().AsTime().Sub(s.now()) < minCopiedAge:
			return refusal.Precondition("Backup %s expires within %v and cannot be copied.", from.GetName(), minCopiedAge)
		}
		if err := checkBackupExpiry(b, maxCopyAge); err != nil {
			return refusal.Invalid("expire_time", "%v", err)
		}
		return nil
	}
	make := func(fn func(*engine.CatalogTx, *engine.Backup) error) error {
		return s.DB.Backups().Copy(ctx, req.GetSourceBackup(), b.GetName(), fn)
	}
	return s.makeBackup(ctx, req.GetParent(), req.GetBackupId(), b, check, make, func() proto.Message {
		return &btapb.CopyBackupMetadata{Name: b.GetName(), SourceBackupInfo: info, Progress: doneProgress(b.GetStartTime(), b.GetEndTime())}
	})
}

type (
	checkBackup func(Catalog, *btapb.Cluster, *btapb.Instance) error
	copyBackup  func(func(*engine.CatalogTx, *engine.Backup) error) error
)

// makeBackup makes backup b with the given id in the cluster parent, and starts its operation;
// see keepBackup. It calls metadata once b is complete.
func (s *Control) makeBackup(
	ctx context.Context, parent, id string, b *btapb.Backup, check checkBackup, make copyBackup, metadata func() proto.Message,
) (op *longrunningpb.Operation, err error) {
	if err := resname.CheckCluster("parent", parent); err != nil {
		return nil, err
	}
	if err := s.Limits.CheckID("backup_id", "a backup id", id); err != nil {
		return nil, err
	}
	err = s.keepBackup(ctx, b, check, make, func(tx *engine.CatalogTx) (err error) {
		doneAt := b.GetEndTime().AsTime()
		op, err = s.start(tx, resname.First(parent, 4), metadata(), BackupAt(b, doneAt), doneAt)
		return err
	})
	return op, err
}

// keepBackup calls make, which saves the rows of backup b, and stores b in the same change of the
// catalog. b is CREATING for Control.Delay. check runs before that change and in it; done runs at
// its end, when b has its size and end time.
func (s *Control) keepBackup(ctx context.Context, b *btapb.Backup, check checkBackup, make copyBackup, done func(*engine.CatalogTx) error) error {
	parent := resname.First(b.GetName(), 6)
	checked := func(r Catalog) error {
		stored, err := cluster(r, parent)
		if err != nil {
			return err
		}
		c := stored.Message
		if instancedef.Creating(stored, s.now()) {
			return refusal.Precondition("Cluster %s is not ready.", parent)
		}
		in, _, err := instance(r, resname.First(parent, 4))
		if err != nil {
			return err
		}
		if err := check(r, c, in); err != nil {
			return err
		}
		b.EncryptionInfo = backupEncryption(c)
		return s.checkBackupCount(r, parent, b)
	}
	if err := s.change(ctx, func(tx *engine.CatalogTx) error {
		if err := s.sweepBackups(tx); err != nil {
			return err
		}
		if err := checked(tx); err != nil {
			return err
		}
		if _, err := tx.Resource(KindBackup + b.GetName()); err == nil {
			return refusal.Exists("Backup", b.GetName())
		} else if !errors.Is(err, engine.ErrResourceNotFound) {
			return err
		}
		return nil
	}); err != nil {
		return err
	}
	return refusal.Of(make(func(tx *engine.CatalogTx, kept *engine.Backup) error {
		if err := checked(tx); err != nil {
			return err
		}
		b.SizeBytes, b.EndTime = kept.Bytes, micros(timestamppb.New(s.now().Add(s.Delay)))
		return errors.Join(done(tx), remove(tx, KindPolicy+b.GetName()), store(tx, KindBackup+b.GetName(), b))
	}))
}

// checkBackupCount returns an error if the source table of b has the maximum number of backups of
// b's type in a cluster.
func (s *Control) checkBackupCount(r Catalog, cluster string, b *btapb.Backup) error {
	if s.Limits == limits.Off {
		return nil
	}
	all, err := s.backupsUnder(r, cluster+"/backups/")
	n, most := 0, limits.MaxStandardBackups
	for _, x := range all {
		if x.GetSourceTable() == b.GetSourceTable() && BackupAt(x, s.now()).GetBackupType() == b.GetBackupType() {
			n++
		}
	}
	if b.GetBackupType() == btapb.Backup_HOT {
		most = limits.MaxHotBackups
	}
	if err == nil && n >= most {
		return refusal.TooManyBackups(b.GetSourceTable(), cluster, n)
	}
	return err
}

// backupEncryption returns the encryption that a backup in a cluster would
// have: by the version of the customer's key that is in use at its creation.
func backupEncryption(c *btapb.Cluster) *btapb.EncryptionInfo {
	info := encryptionOf(c)
	if info.GetEncryptionStatus() != nil {
		info.EncryptionStatus = refusal.UntrackedKey()
	}
	return info
}

// GetBackup returns a backup.
func (s tableAdminService) GetBackup(_ context.Context, req *btapb.GetBackupRequest) (*btapb.Backup, error) {
	b, err := s.findBackup(s.DB, "name", req.GetName())
	if err != nil {
		return nil, err
	}
	return BackupAt(b, s.now()), nil
}

// UpdateBackup replaces expire_time and hot_to_standard_time of a backup, if
// the mask names them.
func (s tableAdminService) UpdateBackup(ctx context.Context, req *btapb.UpdateBackupRequest) (*btapb.Backup, error) {
	paths, err := maskPaths(req.GetUpdateMask(), "expire_time", "hot_to_standard_time")
	if err != nil {
		return nil, err
	}
	var out *btapb.Backup
	err = s.change(ctx, func(tx *engine.CatalogTx) error {
		b, err := s.findBackup(tx, "backup.name", req.GetBackup().GetName())
		if err != nil {
			return err
		}
		in, _, err := instance(tx, resname.First(b.GetName(), 4))
		if err != nil {
			return err
		}
		for _, path := range paths {
			switch path {
			case "expire_time":
				most := maxBackupAge(in)
				if b.GetSourceBackup() != "" {
					most = maxCopyAge
				}
				b.ExpireTime = micros(req.GetBackup().GetExpireTime())
				if err := checkBackupExpiry(b, most); err != nil {
					return refusal.Invalid("backup.expire_time", "%v", err)
				}
				if !b.GetExpireTime().AsTime().After(s.now()) {
					return refusal.Invalid("backup.expire_time", "%v is in the past", b.GetExpireTime().AsTime().Format(time.RFC3339Nano))
				}
			case "hot_to_standard_time":
				if BackupAt(b, s.now()).GetBackupType() != btapb.Backup_HOT {
					return refusal.Invalid("backup.hot_to_standard_time", "applies only to hot backups")
				}
				b.HotToStandardTime = micros(req.GetBackup().GetHotToStandardTime())
				if err := checkHotTime(b); err != nil {
					return err
				}
			default:
				return refusal.Invalid("update_mask", "%q cannot be updated; expected expire_time or hot_to_standard_time", path)
			}
		}
		out = BackupAt(b, s.now())
		return store(tx, KindBackup+b.GetName(), b)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// DeleteBackup deletes a backup. It keeps copies of the backup, and tables restored from it. It
// fails while the backup is being copied.
func (s tableAdminService) DeleteBackup(ctx context.Context, req *btapb.DeleteBackupRequest) (*emptypb.Empty, error) {
	return empty(s.change(ctx, func(tx *engine.CatalogTx) error {
		b, err := s.findBackup(tx, "name", req.GetName())
		if err != nil {
			return err
		}
		all, err := s.backupsUnder(tx, "")
		for _, c := range all {
			if c.GetSourceBackup() == b.GetName() && c.GetEndTime().AsTime().After(s.now()) {
				return refusal.Precondition("Backup %s is being copied to %s and cannot be deleted.", b.GetName(), c.GetName())
			}
		}
		return errors.Join(err, dropBackup(tx, b.GetName()))
	}))
}

// dropBackup removes a backup with its rows and policy.
func dropBackup(tx *engine.CatalogTx, name string) error {
	return errors.Join(tx.DeleteBackup(name), remove(tx, KindBackup+name), remove(tx, KindPolicy+name))
}

// SweepBackups removes expired backups and snapshots.
func (s *Control) SweepBackups(ctx context.Context) error { return s.change(ctx, s.sweepBackups) }

// sweepBackups removes expired backups and snapshots.
func (s *Control) sweepBackups(tx *engine.CatalogTx) error {
	goneAt, all, err := backups(tx)
	for _, b := range all {
		if err == nil && !goneAt(b).After(s.now()) {
			err = dropBackup(tx, b.GetName())
		}
	}
	if err != nil {
		return err
	}
	return dropSnapshots(tx, "", s.snapshotEnded)
}

// checkNoBackups returns an error if a cluster or an instance, whose backups' names begin with
// prefix, has an unexpired backup. Otherwise it removes all expired backups, and the snapshots
// whose names begin with prefix. The error calls the resource by what and name.
func (s *Control) checkNoBackups(tx *engine.CatalogTx, what, name, prefix string) error {
	held, err := s.backupsUnder(tx, prefix)
	if err != nil {
		return err
	}
	if len(held) > 0 {
		return refusal.Precondition("%s %s cannot be deleted: it holds %d backups, including %s.", what, name, len(held), held[0].GetName())
	}
	return errors.Join(s.sweepBackups(tx), dropSnapshots(tx, prefix, func(*storedSnapshot) bool { return true }))
}
