package emu

import (
	"context"
	"errors"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tabletop-emu/tabletop/engine"
)

// A backup is a resource, the message of the API, and an engine.Backup of the
// same name, which holds the table. Both are made and deleted in one change. What
// follows the clock, that a backup expires or becomes a standard one, follows from
// its times when it is asked for; what has expired is deleted when a backup is
// made and when garbage is collected.

const backupShape = "projects/PROJECT/instances/INSTANCE/clusters/CLUSTER/backups/BACKUP"

// findBackup returns a backup that a field names, as it is stored.
func (s *Server) findBackup(r catalogReader, field, name string) (*btapb.Backup, error) {
	if !hasShape(name, "projects", "instances", "clusters", "backups") {
		return nil, statusBadName(field, name, backupShape)
	}
	b := &btapb.Backup{}
	if found, err := load(r, kindBackup+name, b); err != nil {
		return nil, toStatus(err)
	} else if !found || expired(b, s.now()) {
		return nil, statusNotFound("Backup", name)
	}
	return b, nil
}

// backupsUnder returns the backups whose names begin with prefix, by name and as
// they are stored.
func (s *Server) backupsUnder(r catalogReader, prefix string) ([]*btapb.Backup, error) {
	all, err := loadAll[btapb.Backup](r, kindBackup, prefix)
	now, kept := s.now(), all[:0]
	for _, b := range all {
		if !expired(b, now) {
			kept = append(kept, b)
		}
	}
	return kept, toStatus(err)
}

func expired(b *btapb.Backup, now time.Time) bool { return !b.GetExpireTime().AsTime().After(now) }

// shownBackup is what a stored backup is at a time.
func shownBackup(stored *btapb.Backup, now time.Time) *btapb.Backup {
	b := proto.CloneOf(stored)
	b.State = btapb.Backup_READY
	if end := b.GetEndTime().AsTime(); now.Before(end.Add(backupSizeDelay)) {
		b.SizeBytes = 0
		if now.Before(end) {
			// The Go client cannot list a backup without an end_time.
			b.State, b.EndTime = btapb.Backup_CREATING, b.GetStartTime()
		}
	}
	if t := b.GetHotToStandardTime(); t != nil && !now.Before(t.AsTime()) {
		b.BackupType, b.HotToStandardTime = btapb.Backup_STANDARD, nil
	}
	return b
}

// CreateBackup makes a backup of a table, as it is at a moment of the call.
func (s tableAdminService) CreateBackup(ctx context.Context, req *btapb.CreateBackupRequest) (*longrunningpb.Operation, error) {
	given := req.GetBackup()
	if given == nil {
		return nil, statusInvalid("backup", "must be set")
	}
	table := given.GetSourceTable()
	if err := parseTable("backup.source_table", table); err != nil {
		return nil, err
	}
	b := &btapb.Backup{
		Name: req.GetParent() + "/backups/" + req.GetBackupId(), SourceTable: table, StartTime: timestamppb.New(s.now()),
		ExpireTime: micros(given.GetExpireTime()), BackupType: given.GetBackupType(), HotToStandardTime: micros(given.GetHotToStandardTime()),
	}
	check := func(r catalogReader, c *btapb.Cluster, in *btapb.Instance) error {
		if segments(table, 4) != in.GetName() {
			return statusInvalid("backup.source_table", "%s is not a table of instance %s, in which the backup is to be", table, in.GetName())
		}
		if _, err := findTable(r, "backup.source_table", table); err != nil {
			return err
		}
		if err := checkExpiry("backup.expire_time", b, b.GetStartTime().AsTime(), maxBackupAge(in)); err != nil {
			return err
		}
		return settleBackupType(b, c)
	}
	make := func(fn func(*engine.CatalogTx, *engine.Backup) error) error {
		return s.db.Backups().Create(ctx, table, b.GetName(), fn)
	}
	return s.makeBackup(ctx, req.GetParent(), req.GetBackupId(), b, check, make, func() proto.Message {
		return &btapb.CreateBackupMetadata{Name: b.GetName(), SourceTable: table, StartTime: b.GetStartTime(), EndTime: b.GetEndTime()}
	})
}

// CopyBackup copies a backup, also to another cluster, instance or project. What
// is copied is independent from then on, and cannot be copied again.
func (s tableAdminService) CopyBackup(ctx context.Context, req *btapb.CopyBackupRequest) (*longrunningpb.Operation, error) {
	b := &btapb.Backup{
		Name: req.GetParent() + "/backups/" + req.GetBackupId(), SourceBackup: req.GetSourceBackup(), StartTime: timestamppb.New(s.now()),
		ExpireTime: micros(req.GetExpireTime()), BackupType: btapb.Backup_STANDARD,
	}
	var info *btapb.BackupInfo
	check := func(r catalogReader, _ *btapb.Cluster, _ *btapb.Instance) error {
		stored, err := s.findBackup(r, "source_backup", req.GetSourceBackup())
		if err != nil {
			return err
		}
		from := shownBackup(stored, s.now())
		b.SourceTable, info = from.GetSourceTable(), infoOf(from)
		switch {
		case from.GetState() != btapb.Backup_READY:
			return statusPrecondition("Backup %s is not ready.", from.GetName())
		case from.GetSourceBackup() != "":
			return statusPrecondition("Backup %s is a copy of %s and cannot be copied.", from.GetName(), from.GetSourceBackup())
		case from.GetExpireTime().AsTime().Sub(s.now()) < minCopiedBackupAge:
			return statusPrecondition("Backup %s expires within %v and cannot be copied.", from.GetName(), minCopiedBackupAge)
		}
		return checkExpiry("expire_time", b, b.GetStartTime().AsTime(), maxBackupCopyAge)
	}
	make := func(fn func(*engine.CatalogTx, *engine.Backup) error) error {
		return s.db.Backups().Copy(ctx, req.GetSourceBackup(), b.GetName(), fn)
	}
	return s.makeBackup(ctx, req.GetParent(), req.GetBackupId(), b, check, make, func() proto.Message {
		return &btapb.CopyBackupMetadata{Name: b.GetName(), SourceBackupInfo: info, Progress: progress(b.GetStartTime(), b.GetEndTime())}
	})
}

// makeBackup makes a backup of what make copies. check is asked before and in the
// change that adds the backup.
func (s *Server) makeBackup(
	ctx context.Context, parent, id string, b *btapb.Backup,
	check func(catalogReader, *btapb.Cluster, *btapb.Instance) error,
	make func(func(*engine.CatalogTx, *engine.Backup) error) error, metadata func() proto.Message,
) (*longrunningpb.Operation, error) {
	if !hasShape(parent, "projects", "instances", "clusters") {
		return nil, statusBadName("parent", parent, "projects/PROJECT/instances/INSTANCE/clusters/CLUSTER")
	}
	if !isResourceID(id) {
		return nil, statusInvalid("backup_id", "%q is not a backup id; expected [_a-zA-Z0-9][-_.a-zA-Z0-9]*", id)
	}
	if err := s.limit(len(id), maxBackupIDBytes, "backup_id", "characters"); err != nil {
		return nil, err
	}
	checked := func(r catalogReader) error {
		c, err := cluster(r, parent)
		if err != nil {
			return err
		}
		in, _, err := instance(r, segments(parent, 4))
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
		if _, err := tx.Resource(kindBackup + b.GetName()); err == nil {
			return statusExists("Backup", b.GetName())
		} else if !errors.Is(err, engine.ErrResourceNotFound) {
			return err
		}
		return nil
	}); err != nil {
		return nil, err
	}
	var op *longrunningpb.Operation
	err := make(func(tx *engine.CatalogTx, kept *engine.Backup) error {
		if err := checked(tx); err != nil {
			return err
		}
		b.SizeBytes, b.EndTime = kept.Bytes, timestamppb.New(s.now())
		var err error
		if op, err = finish(tx, segments(parent, 4), metadata(), shownBackup(b, s.now())); err != nil {
			return err
		}
		return errors.Join(remove(tx, kindPolicy+b.GetName()), store(tx, kindBackup+b.GetName(), b))
	})
	if err != nil {
		return nil, toStatus(err)
	}
	return op, nil
}

// checkExpiry checks the expire_time of a backup: at least six hours and at most
// most from a time. It is received later than it was computed.
func checkExpiry(field string, b *btapb.Backup, from time.Time, most time.Duration) error {
	t := b.GetExpireTime()
	if t == nil || !t.IsValid() {
		return statusInvalid(field, "must be a time")
	}
	if age := t.AsTime().Sub(from); age < minBackupAge-backupGrace || age > most {
		return statusInvalid(field, "%v is %v after %v; expected from %v to %v", t.AsTime().Format(time.RFC3339Nano), age, from.UTC().Format(time.RFC3339Nano), minBackupAge, most)
	}
	return nil
}

// maxBackupAge is how long a backup in an instance may be kept.
func maxBackupAge(in *btapb.Instance) time.Duration {
	if in.GetEdition() == btapb.Instance_ENTERPRISE_PLUS {
		return maxBackupAgePlus
	}
	return maxBackupAgeDays
}

// settleBackupType checks the type of a backup that is to be in c.
func settleBackupType(b *btapb.Backup, c *btapb.Cluster) error {
	switch b.GetBackupType() {
	case btapb.Backup_BACKUP_TYPE_UNSPECIFIED:
		b.BackupType = btapb.Backup_STANDARD
	case btapb.Backup_STANDARD:
	case btapb.Backup_HOT:
		if c.GetDefaultStorageType() != btapb.StorageType_SSD {
			return statusInvalid("backup.backup_type", "a hot backup needs a cluster with SSD storage; %s has none", c.GetName())
		}
	default:
		return statusInvalid("backup.backup_type", "%d is not a type", b.GetBackupType())
	}
	return checkHotTime(b)
}

// checkHotTime checks the hot_to_standard_time of a backup, if it has one.
func checkHotTime(b *btapb.Backup) error {
	const field = "backup.hot_to_standard_time"
	t := b.GetHotToStandardTime()
	switch {
	case t == nil:
	case b.GetBackupType() != btapb.Backup_HOT:
		return statusInvalid(field, "is for hot backups alone")
	case !t.IsValid() || t.AsTime().Sub(b.GetStartTime().AsTime()) < minBackupHot-backupGrace:
		return statusInvalid(field, "%v is less than %v after the start of the backup", t.AsTime().Format(time.RFC3339Nano), minBackupHot)
	}
	return nil
}

// checkBackupCount refuses one backup more than a table can have in a cluster.
func (s *Server) checkBackupCount(r catalogReader, cluster string, b *btapb.Backup) error {
	if s.limits != StrictLimits {
		return nil
	}
	all, err := s.backupsUnder(r, cluster+"/backups/")
	n, most := 0, maxStandardBackups
	for _, x := range all {
		if x.GetSourceTable() == b.GetSourceTable() && shownBackup(x, s.now()).GetBackupType() == b.GetBackupType() {
			n++
		}
	}
	if b.GetBackupType() == btapb.Backup_HOT {
		most = maxHotBackups
	}
	if err == nil && n >= most {
		return statusTooManyBackups(b.GetSourceTable(), cluster, n)
	}
	return err
}

// backupEncryption says how a backup in a cluster would be encrypted: with the
// version of a customer's key that is in use when it is made.
func backupEncryption(c *btapb.Cluster) *btapb.EncryptionInfo {
	info := encryptionOf(c)
	if info.GetEncryptionStatus() != nil {
		info.EncryptionStatus = untrackedKey()
	}
	return info
}

// micros is a time in whole microseconds.
func micros(t *timestamppb.Timestamp) *timestamppb.Timestamp {
	if t == nil {
		return nil
	}
	return &timestamppb.Timestamp{Seconds: t.GetSeconds(), Nanos: t.GetNanos() / 1000 * 1000}
}

func infoOf(b *btapb.Backup) *btapb.BackupInfo {
	return &btapb.BackupInfo{
		Backup: b.GetName(), StartTime: b.GetStartTime(), EndTime: b.GetEndTime(),
		SourceTable: b.GetSourceTable(), SourceBackup: b.GetSourceBackup(),
	}
}

func progress(from, to *timestamppb.Timestamp) *btapb.OperationProgress {
	return &btapb.OperationProgress{ProgressPercent: 100, StartTime: from, EndTime: to}
}

// GetBackup returns a backup.
func (s tableAdminService) GetBackup(_ context.Context, req *btapb.GetBackupRequest) (*btapb.Backup, error) {
	b, err := s.findBackup(s.db, "name", req.GetName())
	if err != nil {
		return nil, err
	}
	return shownBackup(b, s.now()), nil
}

// UpdateBackup replaces expire_time and hot_to_standard_time of a backup, as far
// as the mask names them.
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
		in, _, err := instance(tx, segments(b.GetName(), 4))
		if err != nil {
			return err
		}
		for _, path := range paths {
			switch path {
			case "expire_time":
				most := maxBackupAge(in)
				if b.GetSourceBackup() != "" {
					most = maxBackupCopyAge
				}
				b.ExpireTime = micros(req.GetBackup().GetExpireTime())
				if err := checkExpiry("backup.expire_time", b, b.GetStartTime().AsTime(), most); err != nil {
					return err
				}
				if expired(b, s.now()) {
					return statusInvalid("backup.expire_time", "%v has passed", b.GetExpireTime().AsTime().Format(time.RFC3339Nano))
				}
			case "hot_to_standard_time":
				if shownBackup(b, s.now()).GetBackupType() != btapb.Backup_HOT {
					return statusInvalid("backup.hot_to_standard_time", "is for hot backups alone")
				}
				b.HotToStandardTime = micros(req.GetBackup().GetHotToStandardTime())
				if err := checkHotTime(b); err != nil {
					return err
				}
			default:
				return statusInvalid("update_mask", "%q cannot be updated; expected expire_time or hot_to_standard_time", path)
			}
		}
		out = shownBackup(b, s.now())
		return store(tx, kindBackup+b.GetName(), b)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// DeleteBackup deletes a backup. What was restored or copied from it stays.
func (s tableAdminService) DeleteBackup(ctx context.Context, req *btapb.DeleteBackupRequest) (*emptypb.Empty, error) {
	err := s.change(ctx, func(tx *engine.CatalogTx) error {
		b, err := s.findBackup(tx, "name", req.GetName())
		if err != nil {
			return err
		}
		return dropBackup(tx, b.GetName())
	})
	if err != nil {
		return nil, err
	}
	return &emptypb.Empty{}, nil
}

// dropBackup removes a backup with its rows and policy.
func dropBackup(tx *engine.CatalogTx, name string) error {
	return errors.Join(tx.DeleteBackup(name), remove(tx, kindBackup+name), remove(tx, kindPolicy+name))
}

// sweepBackups removes the backups and snapshots that have expired.
func (s *Server) sweepBackups(tx *engine.CatalogTx) error {
	all, err := loadAll[btapb.Backup](tx, kindBackup, "")
	if err != nil {
		return err
	}
	now := s.now()
	for _, b := range all {
		if expired(b, now) {
			if err := dropBackup(tx, b.GetName()); err != nil {
				return err
			}
		}
	}
	return dropSnapshots(tx, "", s.snapshotEnded)
}

// checkNoBackups refuses to delete a cluster or an instance, all of whose backups'
// names begin with prefix, while it holds one, and removes those that have expired and the snapshots.
func (s *Server) checkNoBackups(tx *engine.CatalogTx, what, name, prefix string) error {
	held, err := s.backupsUnder(tx, prefix)
	if err != nil {
		return err
	}
	if len(held) > 0 {
		return statusPrecondition("%s %s holds %d backups, %s among them, and cannot be deleted.", what, name, len(held), held[0].GetName())
	}
	return errors.Join(s.sweepBackups(tx), dropSnapshots(tx, prefix, func(*btapb.Snapshot) bool { return true }))
}
