package backups

import (
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/tablespec"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

// Details describes a backup, but not its source table.
type Details struct {
	BackupArn              string
	BackupCreationDateTime wire.EpochSeconds
	BackupExpiryDateTime   wire.EpochSeconds `json:",omitzero"`
	BackupName             string
	BackupSizeBytes        int64
	BackupStatus           string
	BackupType             string
}

// Description describes a backup.
type Description struct {
	BackupDetails             Details
	SourceTableDetails        sourceTable
	SourceTableFeatureDetails features
}

// Summary is an element in the list of backups.
type Summary struct {
	Details
	TableArn  string
	TableID   string `json:"TableId"`
	TableName string
}

type units struct{ ReadCapacityUnits, WriteCapacityUnits int64 }

// sourceTable describes the table at the time of the backup.
type sourceTable struct {
	BillingMode           string
	ItemCount             int64
	KeySchema             []tablespec.KeySchemaElement
	OnDemandThroughput    *tabledef.OnDemandThroughput `json:",omitzero"`
	ProvisionedThroughput units
	TableArn              string
	TableCreationDateTime wire.EpochSeconds
	TableID               string `json:"TableId"`
	TableName             string
	TableSizeBytes        int64
}

// features describe the enabled features of the table.
type features struct {
	GlobalSecondaryIndexes []index                       `json:",omitzero"`
	LocalSecondaryIndexes  []index                       `json:",omitzero"`
	SSEDescription         *tablespec.SSEDescription     `json:",omitzero"`
	StreamDescription      *stream                       `json:",omitzero"`
	TimeToLiveDescription  *timeToLive                   `json:",omitzero"`
	VectorIndexes          []tablespec.VectorDescription `json:",omitzero"`
}

type index struct {
	IndexName             string
	KeySchema             []tablespec.KeySchemaElement
	Projection            tablespec.Projection
	OnDemandThroughput    *tabledef.OnDemandThroughput `json:",omitzero"`
	ProvisionedThroughput *units                       `json:",omitzero"`
}

type stream struct {
	StreamEnabled  bool
	StreamViewType string
}

type timeToLive struct{ AttributeName, TimeToLiveStatus string }

// RestoreSummary describes the source of a restored table.
type RestoreSummary struct {
	RestoreDateTime   wire.EpochSeconds
	RestoreInProgress bool
	SourceBackupArn   string `json:",omitzero"`
	SourceTableArn    string
}

// RestoreOf returns the restore summary of a table, or nil if the table was not restored.
func RestoreOf(t *tabledef.Table) *RestoreSummary {
	r := t.Restore
	if r == nil {
		return nil
	}
	return &RestoreSummary{wire.EpochSeconds(r.Time.UnixMilli()), t.Restoring(), r.BackupARN, r.TableARN}
}

func (s *Service) details(b *backup, arn string) Details {
	return Details{
		BackupArn: arn, BackupCreationDateTime: wire.EpochSeconds(b.Created.UnixMilli()), BackupExpiryDateTime: b.expires(),
		BackupName: b.Name, BackupSizeBytes: b.Bytes, BackupStatus: s.status(b), BackupType: b.Type,
	}
}

func (s *Service) summary(b *backup) Summary {
	return Summary{Details: s.details(b, s.backupARN(b.ID)), TableArn: s.tableARN(b.def.Name), TableID: b.def.ID, TableName: b.def.Name}
}

func (s *Service) describe(b *backup, arn string) Description {
	t := b.def
	d := Description{BackupDetails: s.details(b, arn), SourceTableDetails: sourceTable{
		BillingMode: t.BillingMode, ItemCount: b.Items, KeySchema: tablespec.KeySchemaElements(tabledef.IndexKeyOf(t.Key)),
		OnDemandThroughput: t.Throughput.OnDemand, ProvisionedThroughput: units{t.ReadUnits, t.WriteUnits}, TableArn: s.tableARN(t.Name),
		TableCreationDateTime: wire.EpochSeconds(t.Created.UnixMilli()), TableID: t.ID, TableName: t.Name, TableSizeBytes: b.Bytes,
	}}
	if d.SourceTableDetails.BillingMode == "" {
		d.SourceTableDetails.BillingMode = tablespec.BillingProvisioned
	}
	if b.Type == typeSystem {
		return d
	}
	f := &d.SourceTableFeatureDetails
	for i := range t.Indexes {
		ix := &t.Indexes[i]
		described := index{IndexName: ix.Name, KeySchema: tablespec.KeySchemaElements(ix.Key), Projection: tablespec.Projection{ProjectionType: &ix.Projection, NonKeyAttributes: ix.NonKey}}
		if !ix.Global {
			f.LocalSecondaryIndexes = append(f.LocalSecondaryIndexes, described)
			continue
		}
		described.ProvisionedThroughput, described.OnDemandThroughput = &units{ix.ReadUnits, ix.WriteUnits}, ix.Throughput.OnDemand
		f.GlobalSecondaryIndexes = append(f.GlobalSecondaryIndexes, described)
	}
	for _, ix := range t.LiveVectors() {
		f.VectorIndexes = append(f.VectorIndexes, tablespec.DescribeVector(&ix))
	}
	if t.StreamEnabled {
		f.StreamDescription = &stream{true, t.StreamView}
	}
	if t.TTLAttribute != "" {
		f.TimeToLiveDescription = &timeToLive{t.TTLAttribute, "ENABLED"}
	}
	f.SSEDescription = tablespec.DescribeSSE(t, b.Created, s.Region, s.Account)
	return d
}
