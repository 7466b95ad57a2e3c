package admin

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tabletop-emu/tabletop/emu/internal/instancedef"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
)

// This file plans the backups that the policy of a table requires: their times,
// clusters and definitions.
//
// The plan is a single time, stored beside the policy: the time at which the
// policy came into force, and later the time of the last backups. The next
// backups are due one frequency after it.

// automatedPolicy is the automated backup policy of a table.
type automatedPolicy = btapb.Table_AutomatedBackupPolicy

// AutomatedPlan is an automated backup policy, and the time from which its next backups are
// scheduled.
type AutomatedPlan struct {
	Policy *automatedPolicy // nil if the table has none
	From   time.Time        // zero if due at once, as for policies that were stored without a plan
}

// inForce reports whether the policy requires backups.
func (p AutomatedPlan) inForce() bool { return p.Policy != nil && !p.Policy.GetDisabled() }

// settle sets p.From after p.Policy was checked: to was.From if the previous plan was in force,
// else to now. A policy that is not in force has a zero From.
func (p *AutomatedPlan) settle(was AutomatedPlan, now time.Time) {
	switch {
	case !p.inForce():
		p.From = time.Time{}
	case was.inForce():
		p.From = was.From
	default:
		p.From = now
	}
}

// next returns the time at which the next backups are due, or the zero time if From is zero: the
// backups are then due at once.
func (p AutomatedPlan) next() time.Time {
	if p.From.IsZero() {
		return p.From
	}
	return p.From.Add(p.Policy.GetFrequency().AsDuration())
}

// done records that the backups that were due at a time were made. If at is zero, the plan begins
// now.
func (p *AutomatedPlan) done(at, now time.Time) {
	if at.IsZero() {
		at = now
	}
	p.From = at
}

// skip omits the backups that were due by now: a deleted table does not get
// them when it is undeleted.
func (p *AutomatedPlan) skip(now time.Time) {
	for p.inForce() && !p.next().IsZero() && !p.next().After(now) {
		p.done(p.next(), now)
	}
}

// automatedPlaces returns the clusters in which a policy requires backups at a time: those in its
// locations, or all if it names none. It omits clusters that are CREATING at that time.
func automatedPlaces(p *automatedPolicy, clusters []*instancedef.StoredCluster, at time.Time) []*btapb.Cluster {
	var in []*btapb.Cluster
	for _, c := range clusters {
		if places(p, c.Message) && !instancedef.Creating(c, at) {
			in = append(in, c.Message)
		}
	}
	return in
}

// checkAutomatedPlaces checks a policy against its instance and clusters:
// locations require the edition ENTERPRISE_PLUS, hot backups SSD storage.
func checkAutomatedPlaces(p *automatedPolicy, in *btapb.Instance, clusters []*btapb.Cluster) error {
	const field = "table.automated_backup_policy"
	if len(p.GetLocations()) > 0 && in.GetEdition() != btapb.Instance_ENTERPRISE_PLUS {
		return refusal.Invalid(field+".locations", "can only be set in an instance of edition ENTERPRISE_PLUS")
	}
	for _, c := range clusters {
		if p.GetKeepHotDuration() != nil && places(p, c) && !onSSD(c) {
			return refusal.Invalid(field+".keep_hot_duration", "hot backups need SSD storage; cluster %s has HDD storage", c.GetName())
		}
	}
	return nil
}

// places reports whether a policy requires backups in a cluster.
func places(p *automatedPolicy, c *btapb.Cluster) bool {
	return len(p.GetLocations()) == 0 || slices.Contains(p.GetLocations(), c.GetLocation())
}

func onSSD(c *btapb.Cluster) bool { return c.GetDefaultStorageType() == btapb.StorageType_SSD }

// AutomatedBackup returns the definition of the backup of a table that is due in a cluster at a
// given time. Even if the policy asks for hot backups, the backup is hot only if the cluster has
// SSD storage, because the cluster may be newer than the policy.
func AutomatedBackup(p *automatedPolicy, table string, c *btapb.Cluster, at time.Time) *btapb.Backup {
	b := &btapb.Backup{
		Name: c.GetName() + "/backups/" + automatedID(resname.Last(table), at), SourceTable: table, BackupType: btapb.Backup_STANDARD,
		StartTime: timestamppb.New(at), ExpireTime: timestamppb.New(at.Add(p.GetRetentionPeriod().AsDuration())),
	}
	if hot := p.GetKeepHotDuration(); hot != nil && onSSD(c) {
		b.BackupType, b.HotToStandardTime = btapb.Backup_HOT, timestamppb.New(at.Add(hot.AsDuration()))
	}
	return b
}

// A backup id has at most 50 bytes. It contains at most maxTableBytes of the table's id: a longer
// id is cut and ends in a hash, since two ids may share a prefix.
const (
	maxTableBytes = 28
	hashBytes     = 4
)

// automatedID returns the id of the automated backup that is due at a time; table is the id of
// its table. Equal arguments give equal ids.
func automatedID(table string, at time.Time) string {
	if len(table) > maxTableBytes {
		sum := sha256.Sum256([]byte(table))
		table = table[:maxTableBytes-1-2*hashBytes] + "-" + hex.EncodeToString(sum[:hashBytes])
	}
	return table + "-auto-" + at.UTC().Format("20060102T150405Z")
}
