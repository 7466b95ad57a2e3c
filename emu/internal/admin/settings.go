package admin

import (
	"encoding/binary"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tabletop-emu/tabletop/emu/internal/pending"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/engine"
)

// These ranges of settings apply even if limits are off, because values outside them are
// meaningless.
const (
	// MinChangeStreamRetention is the minimum retention of a change stream.
	MinChangeStreamRetention = 24 * time.Hour // ChangeStreamConfig
	maxChangeStreamRetention = 7 * 24 * time.Hour

	minAutomatedBackupRetention = 3 * 24 * time.Hour // Table.AutomatedBackupPolicy
	maxAutomatedBackupRetention = 90 * 24 * time.Hour
	automatedBackupFrequency    = 24 * time.Hour
	minAutomatedBackupHot       = 24 * time.Hour
	maxAutomatedBackupHot       = 10 * 24 * time.Hour

	minInfrequentAccessAge  = 30 * 24 * time.Hour // TieredStorageRule
	maxStructDelimiterBytes = 50                  // Type.Struct.Encoding.DelimitedBytes
)

// settings holds the settings of a table that the engine does not know, such as
// its change stream's. They are stored in the table's Meta. The engine keeps a
// journal for a change stream; automated_backup.go implements the policy of
// automated backups.
type settings struct {
	*btapb.Table           // only these settings
	readyAt      time.Time // when a new table becomes ready; zero: at once
	optimizedAt  time.Time // when a restored table is optimized; zero: never
	planFrom     time.Time // start of the plan of automated backups
}

// settingsOf returns the settings of a table. The caller may change them.
func settingsOf(t *engine.Table) *settings {
	s := &settings{Table: &btapb.Table{}}
	state, err := pending.Decode(t.Meta, s.Table)
	if err != nil {
		// Only this package writes Meta. The table stays usable if Meta is
		// corrupt.
		return &settings{Table: &btapb.Table{}}
	}
	s.readyAt = state.At
	if pending.IsRecord(t.Meta) {
		s.optimizedAt, s.planFrom = decodeTimes(state.Note)
		return s
	}
	// Earlier versions stored each time in its own message.
	if info := s.GetRestoreInfo(); info != nil {
		s.optimizedAt = pending.Earlier(info).At
	}
	if p := s.GetAutomatedBackupPolicy(); p != nil {
		s.planFrom = pending.Earlier(p).At
	}
	return s
}

// encode returns the settings for the table's Meta, empty without settings.
func (s *settings) encode() ([]byte, error) {
	m := &btapb.Table{
		DeletionProtection:    s.GetDeletionProtection(),
		ChangeStreamConfig:    s.GetChangeStreamConfig(),
		AutomatedBackupConfig: s.GetAutomatedBackupConfig(),
		TieredStorageConfig:   s.GetTieredStorageConfig(),
		RowKeySchema:          s.GetRowKeySchema(),
		RestoreInfo:           s.GetRestoreInfo(),
	}
	state := pending.State{At: s.readyAt, Note: encodeTimes(s.optimizedAt, s.planFrom)}
	if proto.Size(m) == 0 && state.At.IsZero() && state.Note == nil {
		return nil, nil
	}
	return pending.Encode(m, state)
}

// encodeTimes returns the note of settings: each time as 1 and its
// microseconds, or as 0 for the zero time. The note of zero times is nil.
func encodeTimes(times ...time.Time) (note []byte) {
	set := false
	for _, t := range times {
		if t.IsZero() {
			note = append(note, 0)
			continue
		}
		note, set = binary.AppendVarint(append(note, 1), t.UnixMicro()), true
	}
	if !set {
		return nil
	}
	return note
}

// decodeTimes is the inverse of encodeTimes, for two times.
func decodeTimes(note []byte) (first, second time.Time) {
	for _, t := range []*time.Time{&first, &second} {
		if len(note) == 0 {
			break
		}
		set := note[0] == 1
		if note = note[1:]; set {
			micros, n := binary.Varint(note)
			*t, note = time.UnixMicro(micros), note[max(n, 0):]
		}
	}
	return first, second
}

// plan returns the policy of automated backups with its plan.
func (s *settings) plan() AutomatedPlan {
	return AutomatedPlan{Policy: s.GetAutomatedBackupPolicy(), From: s.planFrom}
}

// readyAt returns the time, possibly past, at which a new table becomes ready.
func readyAt(t *engine.Table) time.Time { return settingsOf(t).readyAt }

// protected reports whether t has deletion_protection.
func protected(t *engine.Table) bool { return settingsOf(t).GetDeletionProtection() }

// settleTable checks the new settings of t, and fills in defaults. hasFamily
// reports whether the table, or the request that creates it, has a family. was
// is the previous plan of automated backups.
func settleTable(t *settings, hasFamily func(string) bool, was AutomatedPlan, now time.Time) error {
	if c := t.GetChangeStreamConfig(); c != nil {
		age := c.GetRetentionPeriod()
		if err := checkPeriod("table.change_stream_config.retention_period", age, MinChangeStreamRetention, maxChangeStreamRetention); err != nil {
			return err
		}
		c.RetentionPeriod = durationpb.New(age.AsDuration().Truncate(time.Microsecond))
	}
	if p := t.GetAutomatedBackupPolicy(); p != nil {
		if err := settleBackupPolicy(p); err != nil {
			return err
		}
		p.ProtoReflect().SetUnknown(nil)
	}
	plan := t.plan()
	plan.settle(was, now)
	t.planFrom = plan.From
	if c := t.GetTieredStorageConfig(); c != nil {
		rule, ok := c.GetInfrequentAccess().GetRule().(*btapb.TieredStorageRule_IncludeIfOlderThan)
		if !ok {
			return refusal.Invalid("table.tiered_storage_config.infrequent_access", "a rule must be set")
		}
		if age := rule.IncludeIfOlderThan; !age.IsValid() || age.AsDuration() < minInfrequentAccessAge {
			return refusal.Invalid("table.tiered_storage_config.infrequent_access.include_if_older_than", "%v is less than %v", age.AsDuration(), minInfrequentAccessAge)
		}
	}
	if schema := t.GetRowKeySchema(); schema != nil {
		return checkRowKeySchema(schema, hasFamily)
	}
	return nil
}

// checkTierStorage rejects a tiered storage configuration, unless it is nil, if a cluster has HDD
// storage. The status code is an assumption.
func checkTierStorage(c *btapb.TieredStorageConfig, clusters []*btapb.Cluster) error {
	for _, in := range clusters {
		if c != nil && in.GetDefaultStorageType() == btapb.StorageType_HDD {
			return refusal.Precondition("tiered_storage_config needs clusters with SSD storage; %s has HDD storage.", in.GetName())
		}
	}
	return nil
}

// settleBackupPolicy checks Table.automated_backup_policy, and sets the default frequency.
func settleBackupPolicy(p *btapb.Table_AutomatedBackupPolicy) error {
	const field = "table.automated_backup_policy"
	if p.GetDisabled() {
		if p.GetRetentionPeriod() != nil || p.GetFrequency() != nil || p.GetKeepHotDuration() != nil || len(p.GetLocations()) > 0 {
			return refusal.Invalid(field+".disabled", "no other field can be set together with disabled")
		}
		return nil
	}
	if err := checkPeriod(field+".retention_period", p.GetRetentionPeriod(), minAutomatedBackupRetention, maxAutomatedBackupRetention); err != nil {
		return err
	}
	if p.GetFrequency() == nil {
		p.Frequency = durationpb.New(automatedBackupFrequency)
	} else if err := checkPeriod(field+".frequency", p.GetFrequency(), automatedBackupFrequency, automatedBackupFrequency); err != nil {
		return err
	}
	for i, l := range p.GetLocations() {
		if !resname.HasShape(l, "projects", "locations") {
			return refusal.BadName(refusal.Element(field+".locations", i), l, "projects/PROJECT/locations/ZONE")
		}
	}
	if p.GetKeepHotDuration() == nil {
		return nil
	}
	most := min(maxAutomatedBackupHot, p.GetRetentionPeriod().AsDuration())
	return checkPeriod(field+".keep_hot_duration", p.GetKeepHotDuration(), minAutomatedBackupHot, most)
}

// checkPeriod rejects a missing duration and one outside [least, most].
func checkPeriod(field string, d *durationpb.Duration, least, most time.Duration) error {
	if !d.IsValid() {
		return refusal.Invalid(field, "must be a duration from %v to %v", least, most)
	}
	if got := d.AsDuration(); got < least || got > most {
		return refusal.Invalid(field, "%v is not from %v to %v", got, least, most)
	}
	return nil
}

// checkRowKeySchema checks Table.row_key_schema: named fields of scalar types
// with encodings, whose names are neither families nor reserved.
func checkRowKeySchema(schema *btapb.Type_Struct, hasFamily func(string) bool) error {
	const field = "table.row_key_schema"
	switch enc := schema.GetEncoding().GetEncoding().(type) {
	case *btapb.Type_Struct_Encoding_Singleton_:
		if len(schema.GetFields()) != 1 {
			return refusal.Invalid(field+".encoding.singleton", "needs exactly one field, but %d are set", len(schema.GetFields()))
		}
	case *btapb.Type_Struct_Encoding_DelimitedBytes_:
		if n := len(enc.DelimitedBytes.GetDelimiter()); n < 1 || n > maxStructDelimiterBytes {
			return refusal.Invalid(field+".encoding.delimited_bytes.delimiter", "%d bytes; expected 1 to %d", n, maxStructDelimiterBytes)
		}
	case *btapb.Type_Struct_Encoding_OrderedCodeBytes_:
	default:
		return refusal.Invalid(field+".encoding", "must be set")
	}
	if len(schema.GetFields()) == 0 {
		return refusal.Invalid(field+".fields", "must specify at least one field")
	}
	seen := map[string]bool{"_key": true, "_timestamp": true}
	for i, f := range schema.GetFields() {
		at, name := refusal.Element(field+".fields", i), f.GetFieldName()
		switch {
		case name == "":
			return refusal.Invalid(at+".field_name", "must be set")
		case seen[name]:
			return refusal.Invalid(at+".field_name", "%q is reserved, or is already the name of a field", name)
		case hasFamily(name):
			return refusal.Invalid(at+".field_name", "%q is the name of a column family", name)
		case !scalarWithEncoding(f.GetType()):
			return refusal.Invalid(at+".type", "expected a bytes, string, int64 or timestamp type with an encoding")
		}
		seen[name] = true
	}
	return nil
}

// RowKeySchema returns the row key schema of a table, or nil.
func RowKeySchema(t *engine.Table) *btapb.Type_Struct { return settingsOf(t).GetRowKeySchema() }

// shownTable converts a definition to its SCHEMA_VIEW.
func shownTable(t *engine.Table) *btapb.Table {
	return toTable(t, btapb.Table_SCHEMA_VIEW, nil, time.Time{})
}

// toTable converts a definition to a view of it at a given time. clusters are the
// clusters of its instance.
func toTable(t *engine.Table, view btapb.Table_View, clusters []*btapb.Cluster, now time.Time) *btapb.Table {
	out, stored := &btapb.Table{Name: t.Name}, settingsOf(t)
	if view == btapb.Table_SCHEMA_VIEW || view == btapb.Table_FULL {
		out = stored.Table
		out.Name = t.Name
		out.Granularity = btapb.Table_MILLIS
		if t.Granularity == engine.Micros {
			out.Granularity = btapb.Table_MICROS
		}
		out.ColumnFamilies = make(map[string]*btapb.ColumnFamily, len(t.Families))
		for i := range t.Families {
			f := &t.Families[i]
			out.ColumnFamilies[f.Name] = &btapb.ColumnFamily{GcRule: toGCRule(f.GC), ValueType: ValueType(f)}
		}
		if p := stored.plan(); p.inForce() {
			out.EffectiveAutomatedBackupPolicy = proto.CloneOf(p.Policy)
		}
	}
	if view != btapb.Table_REPLICATION_VIEW && view != btapb.Table_ENCRYPTION_VIEW && view != btapb.Table_FULL {
		return out
	}
	out.ClusterStates = make(map[string]*btapb.Table_ClusterState, len(clusters))
	for _, c := range clusters {
		state := &btapb.Table_ClusterState{}
		if view != btapb.Table_ENCRYPTION_VIEW {
			state.ReplicationState = btapb.Table_ClusterState_READY
			switch {
			case c.GetState() == btapb.Cluster_STATE_NOT_KNOWN:
				state.ReplicationState = btapb.Table_ClusterState_STATE_NOT_KNOWN
			case c.GetState() == btapb.Cluster_CREATING || stored.readyAt.After(now):
				state.ReplicationState = btapb.Table_ClusterState_INITIALIZING
			case stored.optimizedAt.After(now) && c.GetDefaultStorageType() == btapb.StorageType_SSD:
				state.ReplicationState = btapb.Table_ClusterState_READY_OPTIMIZING
			}
		}
		if view != btapb.Table_REPLICATION_VIEW {
			state.EncryptionInfo = []*btapb.EncryptionInfo{encryptionOf(c)}
		}
		out.ClusterStates[resname.Last(c.GetName())] = state
	}
	return out
}

// encryptionOf returns the encryption that a cluster's data would have. It reports the
// first version of a customer's key as the version in use.
func encryptionOf(c *btapb.Cluster) *btapb.EncryptionInfo {
	key := c.GetEncryptionConfig().GetKmsKeyName()
	if key == "" {
		return &btapb.EncryptionInfo{EncryptionType: btapb.EncryptionInfo_GOOGLE_DEFAULT_ENCRYPTION}
	}
	return &btapb.EncryptionInfo{
		EncryptionType:   btapb.EncryptionInfo_CUSTOMER_MANAGED_ENCRYPTION,
		EncryptionStatus: &status.Status{},
		KmsKeyVersion:    key + "/cryptoKeyVersions/1",
	}
}

// LookUpFamily returns the family of t with the given name, or nil if it does not exist.
func LookUpFamily(t *engine.Table, name string) *engine.Family {
	for i := range t.Families {
		if t.Families[i].Name == name {
			return &t.Families[i]
		}
	}
	return nil
}

// FindFamily is like LookUpFamily, but returns an error status if the family does not exist.
func FindFamily(t *engine.Table, name string) (*engine.Family, error) {
	f := LookUpFamily(t, name)
	if f == nil {
		return nil, refusal.NoFamily(t.Name, name)
	}
	return f, nil
}
