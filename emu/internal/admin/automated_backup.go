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

// This file plans the backups that the policy of a table asks for: when
// the next ones are due, in which clusters they are made, and what each is.
//
// The plan is one time, stored beside the policy: from when it counts, which is when
// the policy came into force, and then when backups were due last. The next are due
// one frequency later.

// AutomatedPolicy is the automated backup policy of a table.
type AutomatedPolicy = btapb.Table_AutomatedBackupPolicy

// AutomatedPlan is a policy and its plan.
type AutomatedPlan struct {
	Policy *AutomatedPolicy // nil if the table has none
	From   time.Time        // zero: it is due at once, as a policy from before there were plans
}

// inForce reports whether the policy requires backups.
func (p AutomatedPlan) inForce() bool { return p.Policy != nil && !p.Policy.GetDisabled() }

// settle gives a policy that has been checked its plan: that of the policy before
// it, if one was in force, else one that begins now.
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

// next returns when backups are due next. Without a plan it is the zero time; see done.
func (p AutomatedPlan) next() time.Time {
	if p.From.IsZero() {
		return p.From
	}
	return p.From.Add(p.Policy.GetFrequency().AsDuration())
}

// done records that the backups that were due at a time were made or, without a plan, that
// the plan begins now.
func (p *AutomatedPlan) done(at, now time.Time) {
	if at.IsZero() {
		at = now
	}
	p.From = at
}

// skip leaves out the backups that were due by now: those of a table that was
// deleted are not made when it comes back.
func (p *AutomatedPlan) skip(now time.Time) {
	for p.inForce() && !p.next().IsZero() && !p.next().After(now) {
		p.done(p.next(), now)
	}
}

// automatedPlaces returns the clusters in which a policy asks for backups at a time: those
// in its locations, if it names any, that are made by then.
func automatedPlaces(p *AutomatedPolicy, clusters []*instancedef.StoredCluster, at time.Time) []*btapb.Cluster {
	var in []*btapb.Cluster
	for _, c := range clusters {
		if places(p, c.Message) && !c.Before(at) {
			in = append(in, c.Message)
		}
	}
	return in
}

// checkAutomatedPlaces checks what a policy asks of its instance and clusters: locations are
// for the edition ENTERPRISE_PLUS, hot backups for clusters with SSD storage.
func checkAutomatedPlaces(p *AutomatedPolicy, in *btapb.Instance, clusters []*btapb.Cluster) error {
	const field = "table.automated_backup_policy"
	if len(p.GetLocations()) > 0 && in.GetEdition() != btapb.Instance_ENTERPRISE_PLUS {
		return refusal.Invalid(field+".locations", "can only be set in an instance of the edition ENTERPRISE_PLUS")
	}
	for _, c := range clusters {
		if p.GetKeepHotDuration() != nil && places(p, c) && !onSSD(c) {
			return refusal.Invalid(field+".keep_hot_duration", "hot backups need SSD storage; cluster %s has none", c.GetName())
		}
	}
	return nil
}

// places tells whether a policy asks for backups in a cluster.
func places(p *AutomatedPolicy, c *btapb.Cluster) bool {
	return len(p.GetLocations()) == 0 || slices.Contains(p.GetLocations(), c.GetLocation())
}

func onSSD(c *btapb.Cluster) bool { return c.GetDefaultStorageType() == btapb.StorageType_SSD }

// AutomatedBackup returns the backup of a table that is due in a cluster at a time. It is
// hot only on SSD storage, also if the policy asks for more: a cluster may have
// been added since.
func AutomatedBackup(p *AutomatedPolicy, table string, c *btapb.Cluster, at time.Time) *btapb.Backup {
	b := &btapb.Backup{
		Name: c.GetName() + "/backups/" + automatedID(resname.Last(table), at), SourceTable: table, BackupType: btapb.Backup_STANDARD,
		StartTime: timestamppb.New(at), ExpireTime: timestamppb.New(at.Add(p.GetRetentionPeriod().AsDuration())),
	}
	if hot := p.GetKeepHotDuration(); hot != nil && onSSD(c) {
		b.BackupType, b.HotToStandardTime = btapb.Backup_HOT, timestamppb.New(at.Add(hot.AsDuration()))
	}
	return b
}

// maxTableBytes is how much of a table's id is in the id of a backup, which may
// have 50 bytes; of a longer one a part is its hash, for two may begin alike.
const (
	maxTableBytes = 28
	hashBytes     = 4
)

// automatedID returns the id of the backup of a table, given by its id, that is due at a
// time. It is the same whenever it is asked for.
func automatedID(table string, at time.Time) string {
	if len(table) > maxTableBytes {
		sum := sha256.Sum256([]byte(table))
		table = table[:maxTableBytes-1-2*hashBytes] + "-" + hex.EncodeToString(sum[:hashBytes])
	}
	return table + "-auto-" + at.UTC().Format("20060102T150405Z")
}
