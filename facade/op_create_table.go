package facade

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/facade/internal/policy"
	"github.com/tabletop-emu/tabletop/facade/internal/sizes"
	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/tableschema"
	"github.com/tabletop-emu/tabletop/facade/internal/tags"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

// createTableInput is the request of CreateTable.
type createTableInput struct {
	TableName                 *string
	AttributeDefinitions      []tableschema.AttributeDefinition
	KeySchema                 []tableschema.KeySchemaElement
	LocalSecondaryIndexes     []tableschema.LocalSecondaryIndex
	GlobalSecondaryIndexes    []tableschema.GlobalSecondaryIndex
	BillingMode               *string
	ProvisionedThroughput     *tableschema.ProvisionedThroughput
	StreamSpecification       *streamSpecification
	SSESpecification          *sseSpecification
	Tags                      []tags.Tag
	TableClass                *string
	DeletionProtectionEnabled *wire.Flag
	WarmThroughput            *tabledef.WarmThroughput
	OnDemandThroughput        *tabledef.OnDemandThroughput
	ResourcePolicy            *string

	GlobalTableSourceArn               jsontext.Value
	GlobalTableSettingsReplicationMode jsontext.Value
	VectorIndexes                      jsontext.Value
}

type streamSpecification struct {
	StreamEnabled  *wire.Flag
	StreamViewType *string `json:",omitzero"`
}

// sseSpecification is how a table is to be encrypted.
type sseSpecification struct {
	Enabled        *wire.Flag `json:",omitzero"`
	SSEType        *string    `json:",omitzero"`
	KMSMasterKeyID *string    `json:"KMSMasterKeyId,omitzero"`
}

// tableOutput is the answer of CreateTable, DeleteTable and UpdateTable.
type tableOutput struct {
	TableDescription *tableDescription
}

// extraSSE is the name of a member that the catalog keeps as JSON text.
const extraSSE = "SSESpecification"

// createTable creates a table with its indexes, ready for use.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_CreateTable.html
func (s *Server) createTable(ctx context.Context, in *createTableInput) (*tableOutput, error) {
	v := s.validator("CreateTable")
	name, err := v.changedTableName(in.TableName)
	if err != nil {
		return nil, err
	}
	v.required("AttributeDefinitions", in.AttributeDefinitions != nil)
	v.attributeDefinitions(in.AttributeDefinitions)
	v.keySchema("KeySchema", in.KeySchema, maxKeySchemaElements)
	v.enum("BillingMode", in.BillingMode, tableschema.BillingProvisioned, tableschema.BillingOnDemand)
	v.throughput("ProvisionedThroughput", in.ProvisionedThroughput)
	throughput := tabledef.Throughput{OnDemand: in.OnDemandThroughput, Warm: in.WarmThroughput}
	v.throughputSettings("", throughput)
	v.enum("TableClass", in.TableClass, tableClasses...)
	in.StreamSpecification.constraints(v)
	in.SSESpecification.constraints(v)
	for i, ix := range in.LocalSecondaryIndexes {
		v.index(fmt.Sprintf("LocalSecondaryIndexes.%d.member", i+1), ix.IndexName, ix.KeySchema, maxKeySchemaElements, ix.Projection)
	}
	for i, ix := range in.GlobalSecondaryIndexes {
		path := fmt.Sprintf("GlobalSecondaryIndexes.%d.member", i+1)
		v.index(path, ix.IndexName, ix.KeySchema, 0, ix.Projection)
		v.throughput(path+".ProvisionedThroughput", ix.ProvisionedThroughput)
		v.throughputSettings(path+".", tabledef.Throughput{OnDemand: ix.OnDemandThroughput, Warm: ix.WarmThroughput})
	}
	if err := v.constrained(); err != nil {
		return nil, err
	}
	if err := refuseMembers("CreateTable", map[string]jsontext.Value{
		"GlobalTableSourceArn":               in.GlobalTableSourceArn,
		"GlobalTableSettingsReplicationMode": in.GlobalTableSettingsReplicationMode, "VectorIndexes": in.VectorIndexes,
	}); err != nil {
		return nil, err
	}
	t := &tabledef.Table{Name: name, DeletionProtection: in.DeletionProtectionEnabled.IsTrue(), Extra: map[string]string{}}
	if err := in.billing(t); err != nil {
		return nil, err
	}
	if err := tableschema.SetThroughput(&t.Throughput, throughput, t.BillingMode); err != nil {
		return nil, err
	}
	if err := in.schema().Resolve(t); err != nil {
		return nil, err
	}
	if err := in.StreamSpecification.check(msgStreamViewWithoutStream, msgStreamWithoutView); err != nil {
		return nil, err
	}
	setStream(t, in.StreamSpecification)
	if in.TableClass != nil {
		t.Class = *in.TableClass
	}
	if t.Tags, err = tags.Merge(nil, in.Tags); err != nil {
		return nil, err
	}
	if err := setSSE(t, in.SSESpecification); err != nil {
		return nil, err
	}
	if in.ResourcePolicy != nil {
		p, err := policy.Put(tabledef.Policy{}, policy.Resource{ARN: s.tableARN(name), Table: name}, *in.ResourcePolicy, nil, s.opts.Now())
		if err != nil {
			return nil, err
		}
		t.Policies = map[string]tabledef.Policy{"": p}
	}
	t.Transition = tabledef.TransitionAfter(s.opts.Now(), tabledef.StatusCreating, s.opts.StatusDelays.Create)
	created, err := s.store.CreateTable(ctx, t)
	switch {
	case errors.Is(err, store.ErrTableExists):
		return nil, resourceInUseError(fmt.Sprintf(msgTableExists, name))
	case errors.Is(err, store.ErrTooManyTables):
		return nil, limitExceededError(fmt.Sprintf(msgTooManyTables, s.opts.maxTables))
	case err != nil:
		return nil, err
	}
	return &tableOutput{s.describe(created, sizes.Counts{})}, nil
}

// tableClasses in the order of the model.
var tableClasses = []string{"STANDARD", "STANDARD_INFREQUENT_ACCESS"}

// streamViews in the order of the model.
var streamViews = []string{"NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES", "KEYS_ONLY"}

// constraints checks the members against the model.
func (given *streamSpecification) constraints(v *validator) {
	if given == nil {
		return
	}
	v.required("StreamSpecification.StreamEnabled", given.StreamEnabled != nil)
	v.enum("StreamSpecification.StreamViewType", given.StreamViewType, streamViews...)
}

// constraints checks the members against the model.
func (given *sseSpecification) constraints(v *validator) {
	if given != nil {
		v.enum("SSESpecification.SSEType", given.SSEType, "AES256", "KMS")
	}
}

func (v *validator) index(member string, name *string, schema []tableschema.KeySchemaElement, mostKeys int, p *tableschema.Projection) {
	v.indexName(member+".IndexName", name)
	v.keySchema(member+".KeySchema", schema, mostKeys)
	v.indexProjection(member+".Projection", p)
}

func (v *validator) indexName(member string, name *string) {
	if name == nil {
		v.required(member, false)
		return
	}
	v.name(member, *name)
}

// refuseMembers refuses members that would be wrong to overlook.
func refuseMembers(operation string, members map[string]jsontext.Value) error {
	for _, name := range sortedKeys(members) {
		if isGiven(members[name]) {
			return validationError(fmt.Sprintf(msgParameterUnsupported, name, operation))
		}
	}
	return nil
}

// billing checks and sets billing mode and throughput.
func (in *createTableInput) billing(t *tabledef.Table) error {
	t.BillingMode = tableschema.BillingProvisioned
	if in.BillingMode != nil {
		t.BillingMode = *in.BillingMode
	}
	given := in.ProvisionedThroughput
	switch {
	case t.BillingMode == tableschema.BillingOnDemand && given != nil:
		return validationError(msgThroughputOnDemand)
	case t.BillingMode == tableschema.BillingProvisioned && given == nil:
		return validationError(msgThroughputMissing)
	case given != nil:
		t.ReadUnits, t.WriteUnits = *given.ReadCapacityUnits, *given.WriteCapacityUnits
		return tableschema.CheckUnits(given)
	}
	return nil
}

// schema is what the request says of keys and indexes.
func (in *createTableInput) schema() tableschema.Schema {
	return tableschema.Schema{
		AttributeDefinitions: in.AttributeDefinitions, KeySchema: in.KeySchema,
		LocalSecondaryIndexes: in.LocalSecondaryIndexes, GlobalSecondaryIndexes: in.GlobalSecondaryIndexes,
	}
}

// check refuses a view without a stream, and a stream without a view, with the
// texts of an operation for each.
func (given *streamSpecification) check(withoutStream, withoutView string) error {
	switch {
	case given == nil:
	case !given.StreamEnabled.IsTrue() && given.StreamViewType != nil:
		return validationError(withoutStream)
	case given.StreamEnabled.IsTrue() && given.StreamViewType == nil:
		return validationError(withoutView)
	}
	return nil
}

// setStream records a stream setting that was checked: the store begins and ends the
// stream.
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

// setSSE records encryption settings, which are kept and described.
func setSSE(t *tabledef.Table, in *sseSpecification) error {
	if in == nil {
		return nil
	}
	text, err := wire.Encode(in)
	if err != nil {
		return err
	}
	if t.Extra == nil {
		t.Extra = map[string]string{}
	}
	t.Extra[extraSSE] = string(text)
	return nil
}

// isGiven reports whether a member that is kept as JSON is there.
func isGiven(raw jsontext.Value) bool { return len(raw) > 0 && raw.Kind() != 'n' }
