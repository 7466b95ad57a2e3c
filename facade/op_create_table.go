package facade

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/policy"
	"github.com/tabletop-emu/tabletop/facade/internal/request"
	"github.com/tabletop-emu/tabletop/facade/internal/sizes"
	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/tablespec"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

type createTableInput struct {
	TableName                 *string
	AttributeDefinitions      []tablespec.AttributeDefinition
	KeySchema                 []tablespec.KeySchemaElement
	LocalSecondaryIndexes     []tablespec.LocalSecondaryIndex
	GlobalSecondaryIndexes    []tablespec.GlobalSecondaryIndex
	BillingMode               *string
	ProvisionedThroughput     *tablespec.ProvisionedThroughput
	StreamSpecification       *streamSpecification
	SSESpecification          *tablespec.SSESpecification
	Tags                      []request.Tag
	TableClass                *string
	DeletionProtectionEnabled *wire.Flag
	WarmThroughput            *tabledef.WarmThroughput
	OnDemandThroughput        *tabledef.OnDemandThroughput
	ResourcePolicy            *string
	VectorIndexes             []tablespec.VectorIndex

	GlobalTableSourceArn               jsontext.Value
	GlobalTableSettingsReplicationMode jsontext.Value
}

type streamSpecification struct {
	StreamEnabled  *wire.Flag
	StreamViewType *string `json:",omitzero"`
}

// tableOutput is the response of CreateTable, DeleteTable, UpdateTable and restores.
type tableOutput struct {
	TableDescription *tableDescription
}

// createTable creates a table with its indexes. The table is ACTIVE at once, unless
// StatusDelays.Create is set.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_CreateTable.html
func (s *Server) createTable(ctx context.Context, in *createTableInput) (*tableOutput, error) {
	v := s.validator("CreateTable")
	if err := in.unsupported("CreateTable"); err != nil {
		return nil, err
	}
	name, err := v.ChangedTableName(in.TableName)
	if err != nil {
		return nil, err
	}
	in.constraints(v, "")
	if err := v.Constrained(); err != nil {
		return nil, err
	}
	t, err := s.tableOf(ctx, name, in)
	if err != nil {
		return nil, err
	}
	t.Transition = tabledef.TransitionAfter(s.opts.Now(), tabledef.StatusCreating, s.opts.StatusDelays.Create)
	created, err := s.store.CreateTable(ctx, t)
	switch {
	case errors.Is(err, store.ErrTableExists):
		if there, err := s.store.Table(ctx, name); err == nil && there.Restoring() {
			return nil, awserr.New(awserr.CodeResourceInUse, awserr.MsgTableInUse, "used", name)
		}
		return nil, awserr.New(awserr.CodeResourceInUse, awserr.MsgTableExists, name)
	case errors.Is(err, store.ErrTooManyTables):
		return nil, awserr.New(awserr.CodeLimitExceeded, awserr.MsgTooManyTables, s.opts.maxTables)
	case err != nil:
		return nil, err
	}
	return &tableOutput{s.describeAs(created, sizes.Counts{}, true)}, nil
}

// unsupported rejects members that must not be ignored.
func (in *createTableInput) unsupported(operation string) error {
	return refuseMembers(operation, map[string]jsontext.Value{
		"GlobalTableSourceArn":               in.GlobalTableSourceArn,
		"GlobalTableSettingsReplicationMode": in.GlobalTableSettingsReplicationMode,
	})
}

// constraints checks the members against the service's API model. path is the prefix of their
// paths in errors.
func (in *createTableInput) constraints(v *validator, path string) {
	v.Required(path+"AttributeDefinitions", in.AttributeDefinitions != nil)
	v.tables().Definitions(path, in.AttributeDefinitions)
	v.tables().KeySchema(path+"KeySchema", in.KeySchema, maxKeySchemaElements)
	v.Enum(path+"BillingMode", in.BillingMode, tablespec.BillingProvisioned, tablespec.BillingOnDemand)
	v.tables().Throughput(path+"ProvisionedThroughput", in.ProvisionedThroughput)
	v.Enum(path+"TableClass", in.TableClass, tableClasses...)
	in.StreamSpecification.constraints(v)
	in.SSESpecification.Constraints(&v.Validator, path+"SSESpecification")
	for i, ix := range in.LocalSecondaryIndexes {
		v.index(fmt.Sprintf("%sLocalSecondaryIndexes.%d.member", path, i+1), ix.IndexName, ix.KeySchema, maxKeySchemaElements, ix.Projection)
	}
	for i, ix := range in.GlobalSecondaryIndexes {
		path := fmt.Sprintf("%sGlobalSecondaryIndexes.%d.member", path, i+1)
		v.index(path, ix.IndexName, ix.KeySchema, 0, ix.Projection)
		v.tables().Throughput(path+".ProvisionedThroughput", ix.ProvisionedThroughput)
	}
	for i, ix := range in.VectorIndexes {
		v.tables().VectorIndex(fmt.Sprintf("%sVectorIndexes.%d.member", path, i+1), ix)
	}
}

// tableOf checks a request beyond the model, including the quotas of the account, and
// returns the table definition that it describes.
func (s *Server) tableOf(ctx context.Context, name string, in *createTableInput) (*tabledef.Table, error) {
	t := &tabledef.Table{Name: name, DeletionProtection: in.DeletionProtectionEnabled.IsTrue(), Extra: map[string]string{}}
	if err := in.billing(t); err != nil {
		return nil, err
	}
	if err := tablespec.SetThroughput(&t.Throughput, tabledef.Throughput{OnDemand: in.OnDemandThroughput, Warm: in.WarmThroughput},
		tablespec.Target{Billing: t.BillingMode, Provisioned: t.Provisioned}); err != nil {
		return nil, err
	}
	if err := in.schema().Resolve(t); err != nil {
		return nil, err
	}
	if err := in.StreamSpecification.check(awserr.MsgStreamViewWithoutStream, awserr.MsgStreamWithoutView); err != nil {
		return nil, err
	}
	setStream(t, in.StreamSpecification)
	if in.TableClass != nil {
		t.Class = *in.TableClass
	}
	var err error
	if t.Tags, err = request.MergeTags(nil, in.Tags); err != nil {
		return nil, err
	}
	if err := in.SSESpecification.Set(t); err != nil {
		return nil, err
	}
	if in.ResourcePolicy != nil {
		p, err := policy.Put(tabledef.Policy{}, policy.Resource{ARN: s.tableARN(name), Table: name}, *in.ResourcePolicy, nil, s.opts.Now())
		if err != nil {
			return nil, err
		}
		t.Policies = map[string]tabledef.Policy{"": p}
	}
	q, err := s.quotas(ctx, name)
	if err == nil {
		err = q.Check(&tabledef.Table{}, t)
	}
	return t, err
}

// tableClasses are the values of TableClass, in the order of the model.
var tableClasses = []string{"STANDARD", "STANDARD_INFREQUENT_ACCESS"}

// streamViews are the values of StreamViewType, in the order of the service's texts.
var streamViews = []string{"OLD_IMAGE", "KEYS_ONLY", "NEW_AND_OLD_IMAGES", "NEW_IMAGE"}

// constraints checks the members against the service's API model.
func (given *streamSpecification) constraints(v *validator) {
	if given == nil {
		return
	}
	v.Required("StreamSpecification.StreamEnabled", given.StreamEnabled != nil)
	v.Enum("StreamSpecification.StreamViewType", given.StreamViewType, streamViews...)
}

func (v *validator) index(member string, name *string, schema []tablespec.KeySchemaElement, mostKeys int, p *tablespec.Projection) {
	v.indexName(member+".IndexName", name)
	v.tables().KeySchema(member+".KeySchema", schema, mostKeys)
	v.tables().Projection(member+".Projection", p)
}

func (v *validator) indexName(member string, name *string) {
	if name == nil {
		v.Required(member, false)
		return
	}
	v.Name(member, *name)
}

// refuseMembers rejects the first member, by name, that the request gives. Operations call it
// before all other checks, so that these members are not silently ignored.
func refuseMembers(operation string, members map[string]jsontext.Value) error {
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if isGiven(members[name]) {
			return awserr.Validation(awserr.MsgParameterUnsupported, name, operation)
		}
	}
	return nil
}

// billing checks the billing mode and the provisioned throughput, and sets them in t.
func (in *createTableInput) billing(t *tabledef.Table) error {
	t.BillingMode = tablespec.BillingProvisioned
	if in.BillingMode != nil {
		t.BillingMode = *in.BillingMode
	}
	given := in.ProvisionedThroughput
	switch {
	case t.BillingMode == tablespec.BillingOnDemand && given != nil:
		return awserr.Validation(awserr.MsgThroughputOnDemand)
	case t.BillingMode == tablespec.BillingProvisioned && given == nil:
		return awserr.Validation(awserr.MsgThroughputMissing)
	case given != nil:
		t.ReadUnits, t.WriteUnits = *given.ReadCapacityUnits, *given.WriteCapacityUnits
		return tablespec.CheckUnits(given)
	}
	return nil
}

// schema returns the keys and indexes of the request.
func (in *createTableInput) schema() tablespec.Schema {
	return tablespec.Schema{
		AttributeDefinitions: in.AttributeDefinitions, KeySchema: in.KeySchema,
		LocalSecondaryIndexes: in.LocalSecondaryIndexes, GlobalSecondaryIndexes: in.GlobalSecondaryIndexes,
		VectorIndexes: in.VectorIndexes,
	}
}

// check rejects a view without a stream with the text withoutStream, and a stream without a
// view with the text withoutView.
func (given *streamSpecification) check(withoutStream, withoutView string) error {
	switch {
	case given == nil:
	case !given.StreamEnabled.IsTrue() && given.StreamViewType != nil:
		return awserr.Validation("%s", withoutStream)
	case given.StreamEnabled.IsTrue() && given.StreamViewType == nil:
		return awserr.Validation("%s", withoutView)
	}
	return nil
}

// setStream records a checked stream setting; the store starts and ends the stream.
func setStream(t *tabledef.Table, in *streamSpecification) {
	if in == nil {
		return
	}
	if !in.StreamEnabled.IsTrue() {
		t.StreamEnabled, t.StreamView = false, ""
		return
	}
	t.StreamEnabled, t.StreamView = true, *in.StreamViewType
}

// isGiven reports whether a member, in JSON, is present and not null.
func isGiven(raw jsontext.Value) bool { return len(raw) > 0 && raw.Kind() != 'n' }
