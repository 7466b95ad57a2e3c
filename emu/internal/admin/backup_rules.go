package admin

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tabletop-emu/tabletop/emu/internal/listfilter"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
)

// The bounds of times. Sources: the comments of
// google/bigtable/admin/v2/{table,bigtable_table_admin}.proto.
const (
	minAge       = 6 * time.Hour // Backup.expire_time, from start_time
	maxAge       = 90 * 24 * time.Hour
	maxAgePlus   = 365 * 24 * time.Hour // for the edition ENTERPRISE_PLUS
	maxCopyAge   = 30 * 24 * time.Hour  // CopyBackupRequest.expire_time
	minCopiedAge = 24 * time.Hour       // minimum remaining life of a backup that is copied
	minHot       = 24 * time.Hour       // Backup.hot_to_standard_time, from start_time

	snapshotLife    = 24 * time.Hour // SnapshotTableRequest.ttl, by default
	maxSnapshotLife = 7 * 24 * time.Hour

	// grace is the tolerance for the duration of a request: clients compute
	// minimum times from a moment before the call.
	grace = time.Minute
	// sizeDelay is the time from the end of a backup until its size is known.
	sizeDelay = time.Minute
)

// backupGoneAt returns a function that returns when one of all backups expires:
// at its expire_time, or at the end of a copy of it that is still running then.
func backupGoneAt(all []*btapb.Backup) func(*btapb.Backup) time.Time {
	copied := map[string]time.Time{} // when the last copy of a backup is done
	for _, c := range all {
		if from, end := c.GetSourceBackup(), c.GetEndTime().AsTime(); from != "" && end.After(copied[from]) {
			copied[from] = end
		}
	}
	return func(b *btapb.Backup) time.Time {
		at := b.GetExpireTime().AsTime()
		if end := copied[b.GetName()]; end.After(at) { // no other backup can have had its name during the copy
			return end
		}
		return at
	}
}

// BackupAt returns the state of a stored backup at a given time.
func BackupAt(stored *btapb.Backup, now time.Time) *btapb.Backup {
	b := proto.CloneOf(stored)
	b.State = btapb.Backup_READY
	if end := b.GetEndTime().AsTime(); now.Before(end.Add(sizeDelay)) {
		b.SizeBytes = 0
		if now.Before(end) {
			// Without an end_time, the Go client cannot list the backup.
			b.State, b.EndTime = btapb.Backup_CREATING, b.GetStartTime()
		}
	}
	if t := b.GetHotToStandardTime(); t != nil && !now.Before(t.AsTime()) {
		b.BackupType, b.HotToStandardTime = btapb.Backup_STANDARD, nil
	}
	return b
}

// checkBackupExpiry checks the expire_time of a backup: it must be at least six hours, and at
// most the duration most, after the start of the backup. The minimum is reduced by grace.
func checkBackupExpiry(b *btapb.Backup, most time.Duration) error {
	t := b.GetExpireTime()
	if t == nil || !t.IsValid() {
		return errors.New("must be a time")
	}
	from := b.GetStartTime().AsTime()
	if age := t.AsTime().Sub(from); age < minAge-grace || age > most {
		return fmt.Errorf("%v is %v after %v; expected from %v to %v", t.AsTime().Format(time.RFC3339Nano), age, from.UTC().Format(time.RFC3339Nano), minAge, most)
	}
	return nil
}

// maxBackupAge returns the maximum life of a backup in an instance.
func maxBackupAge(in *btapb.Instance) time.Duration {
	if in.GetEdition() == btapb.Instance_ENTERPRISE_PLUS {
		return maxAgePlus
	}
	return maxAge
}

// settleBackupType checks the type of a new backup in cluster c, and fills in
// the default.
func settleBackupType(b *btapb.Backup, c *btapb.Cluster) error {
	switch b.GetBackupType() {
	case btapb.Backup_BACKUP_TYPE_UNSPECIFIED:
		b.BackupType = btapb.Backup_STANDARD
	case btapb.Backup_STANDARD:
	case btapb.Backup_HOT:
		if c.GetDefaultStorageType() != btapb.StorageType_SSD {
			return fmt.Errorf("a hot backup needs a cluster with SSD storage; %s has HDD storage", c.GetName())
		}
	default:
		return fmt.Errorf("%d is not a known backup type", b.GetBackupType())
	}
	return nil
}

// checkHotTime checks the hot_to_standard_time of a backup, if it has one.
func checkHotTime(b *btapb.Backup) error {
	const field = "backup.hot_to_standard_time"
	t := b.GetHotToStandardTime()
	switch {
	case t == nil:
	case b.GetBackupType() != btapb.Backup_HOT:
		return refusal.Invalid(field, "applies only to hot backups")
	case !t.IsValid() || t.AsTime().Sub(b.GetStartTime().AsTime()) < minHot-grace:
		return refusal.Invalid(field, "%v is less than %v after the start of the backup", t.AsTime().Format(time.RFC3339Nano), minHot)
	}
	return nil
}

// micros truncates a time to whole microseconds.
func micros(t *timestamppb.Timestamp) *timestamppb.Timestamp {
	if t == nil {
		return nil
	}
	return &timestamppb.Timestamp{Seconds: t.GetSeconds(), Nanos: t.GetNanos() / 1000 * 1000}
}

// backupInfoOf returns the summary of a backup for other messages.
func backupInfoOf(b *btapb.Backup) *btapb.BackupInfo {
	return &btapb.BackupInfo{
		Backup: b.GetName(), StartTime: b.GetStartTime(), EndTime: b.GetEndTime(),
		SourceTable: b.GetSourceTable(), SourceBackup: b.GetSourceBackup(),
	}
}

// doneProgress returns the progress of a completed operation.
func doneProgress(from, to *timestamppb.Timestamp) *btapb.OperationProgress {
	return &btapb.OperationProgress{ProgressPercent: 100, StartTime: from, EndTime: to}
}

// listFields are the fields that ListBackups filters and orders by.
var listFields = listfilter.Fields{
	"name": listfilter.Text, "source_table": listfilter.Text, "state": listfilter.Text, "size_bytes": listfilter.Number,
	"expire_time": listfilter.Time, "start_time": listfilter.Time, "end_time": listfilter.Time,
}

// fieldOf returns the accessor of a backup's fields for filters and orders.
func fieldOf(b *btapb.Backup) func(string) listfilter.Value {
	return func(field string) listfilter.Value {
		switch field {
		case "name":
			return listfilter.Value{Text: b.GetName()}
		case "source_table":
			return listfilter.Value{Text: b.GetSourceTable()}
		case "state":
			return listfilter.Value{Text: b.GetState().String()}
		case "size_bytes":
			return listfilter.Value{Number: b.GetSizeBytes()}
		case "expire_time":
			return listfilter.Value{Time: b.GetExpireTime().AsTime()}
		case "start_time":
			return listfilter.Value{Time: b.GetStartTime().AsTime()}
		}
		return listfilter.Value{Time: b.GetEndTime().AsTime()}
	}
}

// listTokenSum is the length of the request's checksum at the start of a token.
const listTokenSum = 8

// listBackups answers ListBackups from the current backups of the parent. It
// returns those that match the filter, in the order of the request or else the
// newest first, in pages of at most maxPage. A token is valid only for its
// parent, filter and order. It holds the last backup of the page before, so
// that new and deleted backups do not shift the others. field is the field of
// the request that err concerns.
func listBackups(all []*btapb.Backup, req *btapb.ListBackupsRequest, maxPage int) (resp *btapb.ListBackupsResponse, field string, err error) {
	filter, err := listfilter.Parse(req.GetFilter(), listFields)
	if err != nil {
		return nil, "filter", err
	}
	order, err := listfilter.ParseOrder(req.GetOrderBy(), listFields)
	if err != nil {
		return nil, "order_by", err
	}
	compare := func(a, b *btapb.Backup) int {
		if order == nil {
			return cmp.Or(b.GetStartTime().AsTime().Compare(a.GetStartTime().AsTime()), cmp.Compare(a.GetName(), b.GetName()))
		}
		return cmp.Or(order.Compare(fieldOf(a), fieldOf(b)), cmp.Compare(a.GetName(), b.GetName()))
	}
	sum := sha256.Sum256([]byte(req.GetParent() + "\x00" + req.GetFilter() + "\x00" + req.GetOrderBy()))
	var last *btapb.Backup
	if token := req.GetPageToken(); token != "" {
		raw, err := base64.RawURLEncoding.DecodeString(token)
		last = &btapb.Backup{}
		if err != nil || len(raw) < listTokenSum || string(raw[:listTokenSum]) != string(sum[:listTokenSum]) || proto.Unmarshal(raw[listTokenSum:], last) != nil {
			return nil, "page_token", fmt.Errorf("%q is not a page token for this parent, filter and order", token)
		}
	}
	resp = &btapb.ListBackupsResponse{}
	for _, b := range all {
		if filter.Match(fieldOf(b)) && (last == nil || compare(b, last) > 0) {
			resp.Backups = append(resp.Backups, b)
		}
	}
	slices.SortFunc(resp.GetBackups(), compare)
	size := int(req.GetPageSize())
	if size <= 0 || size > maxPage {
		size = maxPage
	}
	if len(resp.GetBackups()) > size {
		resp.Backups = resp.GetBackups()[:size]
		raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(resp.GetBackups()[size-1])
		if err != nil {
			return nil, "", err
		}
		resp.NextPageToken = base64.RawURLEncoding.EncodeToString(append(sum[:listTokenSum:listTokenSum], raw...))
	}
	return resp, "", nil
}
