package facade

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/backups"
	"github.com/tabletop-emu/tabletop/facade/internal/request"
	"github.com/tabletop-emu/tabletop/facade/internal/sizes"
	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/tablespec"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

type describeTableOutput struct {
	Table *tableDescription
}

// tableInput is a request whose only member is a table name.
type tableInput struct {
	TableName *string
}

// tableDescription is the description of a table in responses.
type tableDescription struct {
	AttributeDefinitions      []tablespec.AttributeDefinition `json:",omitzero"`
	BillingModeSummary        *billingModeSummary             `json:",omitzero"`
	CreationDateTime          wire.EpochSeconds               `json:",omitzero"`
	DeletionProtectionEnabled bool
	GlobalSecondaryIndexes    []indexDescription `json:",omitzero"`
	ItemCount                 int64
	KeySchema                 []tablespec.KeySchemaElement `json:",omitzero"`
	LatestStreamArn           string                       `json:",omitzero"`
	LatestStreamLabel         string                       `json:",omitzero"`
	LocalSecondaryIndexes     []indexDescription           `json:",omitzero"`
	OnDemandThroughput        *tabledef.OnDemandThroughput `json:",omitzero"`
	ProvisionedThroughput     throughputDescription
	RestoreSummary            *backups.RestoreSummary   `json:",omitzero"`
	SSEDescription            *tablespec.SSEDescription `json:",omitzero"`
	StreamSpecification       *streamSpecification      `json:",omitzero"`
	TableArn                  string
	TableClassSummary         *tableClassSummary `json:",omitzero"`
	TableID                   string             `json:"TableId"`
	TableName                 string
	TableSizeBytes            int64
	TableStatus               string
	VectorIndexes             []tablespec.VectorDescription `json:",omitzero"`
	WarmThroughput            *tablespec.WarmDescription    `json:",omitzero"`
}

type billingModeSummary struct {
	BillingMode                       string
	LastUpdateToPayPerRequestDateTime wire.EpochSeconds `json:",omitzero"`
}

type throughputDescription struct {
	LastDecreaseDateTime   wire.EpochSeconds `json:",omitzero"`
	LastIncreaseDateTime   wire.EpochSeconds `json:",omitzero"`
	NumberOfDecreasesToday int64
	ReadCapacityUnits      int64
	WriteCapacityUnits     int64
}

type tableClassSummary struct {
	LastUpdateDateTime wire.EpochSeconds `json:",omitzero"`
	TableClass         string
}

type indexDescription struct {
	Backfilling           *bool `json:",omitzero"`
	IndexArn              string
	IndexName             string
	IndexSizeBytes        int64
	IndexStatus           string `json:",omitzero"`
	ItemCount             int64
	KeySchema             []tablespec.KeySchemaElement
	Projection            tablespec.Projection
	OnDemandThroughput    *tabledef.OnDemandThroughput `json:",omitzero"`
	ProvisionedThroughput *throughputDescription       `json:",omitzero"`
	WarmThroughput        *tablespec.WarmDescription   `json:",omitzero"`
}

// describeTable describes a table.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_DescribeTable.html
func (s *Server) describeTable(ctx context.Context, in *tableInput) (*describeTableOutput, error) {
	t, err := s.controlTable(ctx, "DescribeTable", in.TableName)
	if err != nil {
		return nil, err
	}
	counts, err := s.store.Counts(ctx, t)
	if err != nil {
		return nil, controlError(err, t.Name)
	}
	return &describeTableOutput{s.describe(t, counts)}, nil
}

// controlTable returns the table that a request of an operation on tables names. given is the
// member TableName.
func (s *Server) controlTable(ctx context.Context, operation string, given *string) (*tabledef.Table, error) {
	name, err := s.validator(operation).ControlTableName(given)
	if err != nil {
		return nil, err
	}
	t, err := s.store.TableNow(ctx, name)
	return t, controlError(err, name)
}

// settledTable acts like controlTable for operations on settings, for which a table that is
// being restored does not exist.
func (s *Server) settledTable(ctx context.Context, operation string, given *string) (*tabledef.Table, error) {
	name, err := s.validator(operation).ControlTableName(given)
	if err != nil {
		return nil, err
	}
	t, err := s.store.Settled(ctx, name)
	return t, controlError(err, name)
}

// controlError converts store.ErrTableNotFound to the error of operations on tables, whose text
// has the table's name. It returns other errors unchanged.
func controlError(err error, name string) error {
	switch {
	case errors.Is(err, store.ErrTableNotFound):
		return awserr.ResourceNotFound(awserr.MsgTableNotFound, name)
	default:
		return err
	}
}

// tableARN returns the Amazon resource name of a table.
func (s *Server) tableARN(name string) string {
	return request.ARN{Region: s.opts.Region, Account: s.opts.AccountID, Table: name}.String()
}

// describe returns the description of a table with the given counts.
func (s *Server) describe(t *tabledef.Table, counts sizes.Counts) *tableDescription {
	return s.describeAs(t, counts, t.Status == tabledef.StatusCreating)
}

// describeAs acts like describe. If creating is set, it describes a table that is being
// created, even if its status is already ACTIVE: it omits the members that the service shows only later.
func (s *Server) describeAs(t *tabledef.Table, counts sizes.Counts, creating bool) *tableDescription {
	now := s.opts.Now()
	arn := s.tableARN(t.Name)
	d := &tableDescription{
		AttributeDefinitions:      []tablespec.AttributeDefinition{},
		CreationDateTime:          wire.EpochSeconds(t.Created.UnixMilli()),
		DeletionProtectionEnabled: t.DeletionProtection,
		ItemCount:                 counts.Items,
		KeySchema:                 tablespec.KeySchemaElements(tabledef.IndexKeyOf(t.Key)),
		OnDemandThroughput:        t.Throughput.OnDemand,
		ProvisionedThroughput:     describeUnits(t.Provisioned, now),
		RestoreSummary:            backups.RestoreOf(t),
		TableArn:                  arn,
		TableID:                   t.ID,
		TableName:                 t.Name,
		TableSizeBytes:            counts.Bytes,
		TableStatus:               t.Status,
		WarmThroughput:            tablespec.DescribeWarm(t.Throughput, t.Provisioned, t.BillingMode, creating),
	}
	for _, a := range t.Attributes {
		d.AttributeDefinitions = append(d.AttributeDefinitions, tablespec.DefinitionOf(a))
	}
	d.BillingModeSummary = describeBilling(t, creating)
	if t.Class != "" {
		d.TableClassSummary = &tableClassSummary{TableClass: t.Class}
		if !t.ClassChanged.IsZero() {
			d.TableClassSummary.LastUpdateDateTime = wire.EpochSeconds(t.ClassChanged.UnixMilli())
		}
	}
	if t.StreamEnabled {
		enabled, view := wire.Flag(true), t.StreamView
		d.StreamSpecification = &streamSpecification{StreamEnabled: &enabled, StreamViewType: &view}
	}
	if d.LatestStreamLabel = t.StreamLabel; t.StreamLabel != "" {
		d.LatestStreamArn = arn + "/stream/" + t.StreamLabel
	}
	d.SSEDescription = tablespec.DescribeSSE(t, now, s.opts.Region, s.opts.AccountID)
	for _, ix := range slices.Concat(t.Indexes, t.Leaving) {
		described := describeIndex(arn, t.BillingMode, &ix, counts.Indexes[ix.Name], now, creating)
		if ix.Global {
			d.GlobalSecondaryIndexes = append(d.GlobalSecondaryIndexes, described)
		} else {
			d.LocalSecondaryIndexes = append(d.LocalSecondaryIndexes, described)
		}
	}
	d.VectorIndexes = describeVectors(t, arn, counts, now)
	return d
}

// describeIndex describes an index of the table with the given ARN and billing mode. creating
// is as in describeAs. The description of a local index has no status and no throughput.
func describeIndex(tableARN, billing string, ix *tabledef.Index, count sizes.Count, now time.Time, creating bool) indexDescription {
	d := indexDescription{
		IndexArn:       tableARN + "/index/" + ix.Name,
		IndexName:      ix.Name,
		IndexSizeBytes: count.Bytes,
		ItemCount:      count.Items,
		KeySchema:      tablespec.KeySchemaElements(ix.Key),
		Projection:     tablespec.Projection{ProjectionType: &ix.Projection, NonKeyAttributes: ix.NonKey},
	}
	if !ix.Global {
		return d
	}
	d.IndexStatus = ix.Status
	units := describeUnits(ix.Provisioned, now)
	d.ProvisionedThroughput = &units
	d.OnDemandThroughput = ix.Throughput.OnDemand
	d.WarmThroughput = tablespec.DescribeWarm(ix.Throughput, ix.Provisioned, billing, creating || ix.Status == tabledef.StatusCreating)
	if ix.Status == tabledef.StatusCreating && (ix.Backfilling || !ix.FillFrom.IsZero()) {
		d.Backfilling = &ix.Backfilling
	}
	return d
}
