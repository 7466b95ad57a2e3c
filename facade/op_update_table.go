package facade

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/sizes"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/tablespec"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

type updateTableInput struct {
	TableName                   *string
	AttributeDefinitions        []tablespec.AttributeDefinition
	BillingMode                 *string
	ProvisionedThroughput       *tablespec.ProvisionedThroughput
	GlobalSecondaryIndexUpdates []globalSecondaryIndexUpdate
	StreamSpecification         *streamSpecification
	SSESpecification            *tablespec.SSESpecification
	TableClass                  *string
	DeletionProtectionEnabled   *wire.Flag
	OnDemandThroughput          *tabledef.OnDemandThroughput
	WarmThroughput              *tabledef.WarmThroughput
	VectorIndexUpdates          []vectorIndexUpdate

	ReplicaUpdates                     jsontext.Value
	MultiRegionConsistency             jsontext.Value
	GlobalTableWitnessUpdates          jsontext.Value
	GlobalTableSettingsReplicationMode jsontext.Value
	DisassociationProtectionEnabled    jsontext.Value
}

// globalSecondaryIndexUpdate is one element of GlobalSecondaryIndexUpdates. Exactly one
// of its members is set.
type globalSecondaryIndexUpdate struct {
	Create *tablespec.GlobalSecondaryIndex
	Update *struct {
		IndexName             *string
		ProvisionedThroughput *tablespec.ProvisionedThroughput
		OnDemandThroughput    *tabledef.OnDemandThroughput
		WarmThroughput        *tabledef.WarmThroughput
	}
	Delete *struct{ IndexName *string }
}

// indexName returns the name of the element's index, or nil.
func (u globalSecondaryIndexUpdate) indexName() *string {
	switch {
	case u.Create != nil:
		return u.Create.IndexName
	case u.Update != nil:
		return u.Update.IndexName
	case u.Delete != nil:
		return u.Delete.IndexName
	default:
		return nil
	}
}

// updateTable changes settings and indexes of a table. Settings take effect at once, even while
// the table appears as UPDATING. A new index is filled in the background.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateTable.html
func (s *Server) updateTable(ctx context.Context, in *updateTableInput) (*tableOutput, error) {
	if err := refuseMembers("UpdateTable", map[string]jsontext.Value{
		"ReplicaUpdates": in.ReplicaUpdates, "MultiRegionConsistency": in.MultiRegionConsistency,
		"GlobalTableWitnessUpdates":          in.GlobalTableWitnessUpdates,
		"GlobalTableSettingsReplicationMode": in.GlobalTableSettingsReplicationMode,
		"DisassociationProtectionEnabled":    in.DisassociationProtectionEnabled,
	}); err != nil {
		return nil, err
	}
	v := s.validator("UpdateTable")
	name, err := v.ChangedTableName(in.TableName)
	if err != nil {
		return nil, err
	}
	v.tables().Definitions("", in.AttributeDefinitions)
	v.Enum("BillingMode", in.BillingMode, tablespec.BillingProvisioned, tablespec.BillingOnDemand)
	v.tables().Throughput("ProvisionedThroughput", in.ProvisionedThroughput)
	v.Enum("TableClass", in.TableClass, tableClasses...)
	in.StreamSpecification.constraints(v)
	in.SSESpecification.Constraints(&v.Validator, "SSESpecification")
	for i, u := range in.GlobalSecondaryIndexUpdates {
		v.indexUpdate(fmt.Sprintf("GlobalSecondaryIndexUpdates.%d.member", i+1), u)
	}
	for i, u := range in.VectorIndexUpdates {
		u.constraints(v, fmt.Sprintf("VectorIndexUpdates.%d.member", i+1))
	}
	if err := v.Constrained(); err != nil {
		return nil, err
	}
	if err := in.check(v); err != nil {
		return nil, err
	}
	if err := s.checkAllocation(ctx, name, in.VectorIndexUpdates); err != nil {
		return nil, err
	}
	quotas, err := s.quotas(ctx, name)
	if err != nil {
		return nil, err
	}
	switched := false // the billing mode changed
	updated, err := s.store.UpdateTable(ctx, name, func(t *tabledef.Table) error {
		if in.beyondEncryption() {
			t.Transition = tabledef.TransitionAfter(s.opts.Now(), tabledef.StatusUpdating, s.opts.StatusDelays.Update)
		}
		tablespec.KeepWarm(t, s.opts.Now())
		before := *t
		before.Indexes = slices.Clone(t.Indexes)
		t.Vectors = t.ShownVectors(s.opts.Now())
		t.Extra = maps.Clone(t.Extra)
		if err := in.SSESpecification.Change(t, s.opts.Now(), s.opts.StatusDelays.Update, s.opts.Region, s.opts.AccountID); err != nil {
			return err
		}
		err := in.apply(t, s.opts.Now())
		if err == nil {
			err = s.applyVectors(t, in)
		}
		switched = t.BillingMode != before.BillingMode
		if err != nil || s.throttle == nil {
			return err
		}
		if err := quotas.Check(&before, t); err != nil {
			return err
		}
		if in.TableClass != nil {
			if err := tablespec.CheckClass(&before, s.opts.Now()); err != nil {
				return err
			}
		}
		return tablespec.CheckDecreases(&before, t, s.opts.Now())
	})
	if err != nil {
		return nil, controlError(err, name)
	}
	counts, err := s.store.Counts(ctx, updated)
	if err != nil { // the change has taken effect, so the request must not fail
		counts = sizes.Counts{}
	}
	d := s.describe(updated, counts)
	in.echo(d, updated, switched)
	return &tableOutput{d}, nil
}

// echo changes the description d in the response to the form that the service shows only in the
// response to a change. switched means that the billing mode changed. Source: recordings of the
// service.
func (in *updateTableInput) echo(d *tableDescription, t *tabledef.Table, switched bool) {
	if in.SSESpecification != nil {
		d.SSEDescription = tablespec.DescribeSSEChange(t)
	}
	if switched {
		d.BillingModeSummary = describeBilling(t, true)
	}
	d.OnDemandThroughput = tablespec.EchoBounds(d.OnDemandThroughput, in.OnDemandThroughput)
	for _, u := range in.GlobalSecondaryIndexUpdates {
		for i := range d.GlobalSecondaryIndexes {
			if ix := &d.GlobalSecondaryIndexes[i]; u.Update != nil && ix.IndexName == *u.Update.IndexName {
				ix.OnDemandThroughput = tablespec.EchoBounds(ix.OnDemandThroughput, u.Update.OnDemandThroughput)
			}
		}
	}
}

// beyondEncryption reports whether the request changes a setting other than the encryption. A
// change of the encryption alone leaves the table ACTIVE.
func (in *updateTableInput) beyondEncryption() bool {
	return in.BillingMode != nil || in.ProvisionedThroughput != nil || len(in.GlobalSecondaryIndexUpdates) > 0 || len(in.VectorIndexUpdates) > 0 ||
		in.StreamSpecification != nil || in.TableClass != nil || in.DeletionProtectionEnabled != nil || in.OnDemandThroughput != nil || in.WarmThroughput != nil
}

func (v *validator) indexUpdate(member string, u globalSecondaryIndexUpdate) {
	switch {
	case u.Create != nil:
		v.index(member+".Create", u.Create.IndexName, u.Create.KeySchema, 0, u.Create.Projection)
		v.tables().Throughput(member+".Create.ProvisionedThroughput", u.Create.ProvisionedThroughput)
	case u.Update != nil:
		v.indexName(member+".Update.IndexName", u.Update.IndexName)
		v.tables().Throughput(member+".Update.ProvisionedThroughput", u.Update.ProvisionedThroughput)
	case u.Delete != nil:
		v.indexName(member+".Delete.IndexName", u.Delete.IndexName)
	}
}

// check makes the checks of the request beyond the model that need no table.
func (in *updateTableInput) check(v *validator) error {
	if err := tablespec.CheckDefinedOnce(in.AttributeDefinitions); err != nil {
		return err
	}
	if err := in.StreamSpecification.check(awserr.MsgStreamViewNotDisabled, awserr.MsgStreamViewNotEnabled); err != nil {
		return err
	}
	if in.SSESpecification == nil && !in.beyondEncryption() {
		if v.Current {
			return awserr.Validation(awserr.MsgUpdateTableNothing)
		}
		return awserr.Validation(awserr.MsgUpdateTableNothingOld)
	}
	if in.GlobalSecondaryIndexUpdates != nil && len(in.GlobalSecondaryIndexUpdates) == 0 {
		return awserr.Validation(awserr.MsgIndexListEmpty, "GlobalSecondaryIndexUpdates")
	}
	if err := in.checkCombination(); err != nil {
		return err
	}
	if is(in.BillingMode, tablespec.BillingProvisioned) && in.ProvisionedThroughput == nil {
		return awserr.Validation(awserr.MsgUpdateThroughputMissing)
	}
	if in.ProvisionedThroughput != nil {
		if is(in.BillingMode, tablespec.BillingOnDemand) {
			return awserr.Validation(awserr.MsgThroughputOnDemand)
		}
		if err := tablespec.CheckUnits(in.ProvisionedThroughput); err != nil {
			return err
		}
	}
	seen := map[string]bool{}
	builds := 0
	for _, u := range in.GlobalSecondaryIndexUpdates {
		given := 0
		for _, member := range []bool{u.Create != nil, u.Update != nil, u.Delete != nil} {
			if member {
				given++
			}
		}
		switch given {
		case 0:
			return awserr.Validation(awserr.MsgGSIUpdateEmpty)
		case 1:
		default:
			return awserr.Validation(awserr.MsgGSIUpdateSeveral)
		}
		name := *u.indexName()
		if seen[name] {
			return awserr.Validation(awserr.MsgGSIUpdateTwice, name)
		}
		seen[name] = true
		if u.Update == nil {
			builds++
		}
	}
	for _, u := range in.VectorIndexUpdates {
		if err := u.check(); err != nil {
			return err
		}
		builds++
	}
	if builds > 1 {
		return awserr.New(awserr.CodeLimitExceeded, awserr.MsgOneIndexAtATime)
	}
	return nil
}

// checkCombination rejects combinations of changes that the service does not make in one
// request.
func (in *updateTableInput) checkCombination() error {
	changes := 0
	for _, given := range []bool{
		in.BillingMode != nil || in.ProvisionedThroughput != nil, in.OnDemandThroughput != nil, in.WarmThroughput != nil, in.StreamSpecification != nil,
		in.SSESpecification != nil, in.TableClass != nil, in.DeletionProtectionEnabled != nil, len(in.GlobalSecondaryIndexUpdates) > 0, len(in.VectorIndexUpdates) > 0,
	} {
		if given {
			changes++
		}
	}
	if changes < 2 {
		return nil
	}
	units := in.ProvisionedThroughput != nil || is(in.BillingMode, tablespec.BillingProvisioned)
	var added, built bool
	for _, u := range in.GlobalSecondaryIndexUpdates {
		added = added || u.Create != nil
		built = built || u.Create != nil || u.Delete != nil
	}
	switch {
	case in.SSESpecification != nil:
		return awserr.Validation(awserr.MsgUpdateAlone, "Server-Side Encryption modification")
	case in.DeletionProtectionEnabled != nil:
		return awserr.Validation(awserr.MsgUpdateAlone, "DeletionProtection modification")
	case in.TableClass != nil:
		return awserr.Validation(awserr.MsgUpdateAlone, "TableClass modification")
	case in.OnDemandThroughput != nil && (in.WarmThroughput != nil || in.StreamSpecification != nil):
		return awserr.Validation(awserr.MsgBoundsBesideOthers)
	case in.WarmThroughput != nil && added:
		return awserr.Validation(awserr.MsgWarmWithIndex)
	case in.WarmThroughput != nil && (in.BillingMode != nil || units || in.StreamSpecification != nil):
		return awserr.Validation(awserr.MsgUpdateAlone, "WarmThroughput")
	case in.StreamSpecification != nil && units:
		return awserr.Validation(awserr.MsgStreamWithThroughput)
	case built && units:
		return awserr.Validation(awserr.MsgIndexWithThroughput)
	case built && in.StreamSpecification != nil:
		return awserr.Validation(awserr.MsgIndexWithStream)
	}
	return nil
}

// apply makes the changes of the request, except those of vector indexes and encryption, in t, a
// copy of the table's definition.
func (in *updateTableInput) apply(t *tabledef.Table, now time.Time) error {
	wasProvisioned := t.BillingMode != tablespec.BillingOnDemand
	if is(in.BillingMode, tablespec.BillingProvisioned) && len(t.LiveVectors()) > 0 {
		return awserr.Validation(awserr.MsgVectorsHoldBilling)
	}
	if in.BillingMode != nil {
		tablespec.SetBilling(t, *in.BillingMode, now)
	}
	given := in.ProvisionedThroughput
	switch {
	case given != nil && t.BillingMode == tablespec.BillingOnDemand:
		return awserr.Validation(awserr.MsgThroughputOnDemand)
	case given != nil:
		if wasProvisioned && in.GlobalSecondaryIndexUpdates == nil && t.ReadUnits == *given.ReadCapacityUnits && t.WriteUnits == *given.WriteCapacityUnits {
			return awserr.Validation(awserr.MsgThroughputUnchanged, t.ReadUnits, *given.ReadCapacityUnits, t.WriteUnits, *given.WriteCapacityUnits)
		}
		t.Change(*given.ReadCapacityUnits, *given.WriteCapacityUnits, now, t.Transition)
	}
	if err := tablespec.SetThroughput(&t.Throughput, tabledef.Throughput{OnDemand: in.OnDemandThroughput, Warm: in.WarmThroughput},
		tablespec.Target{Billing: t.BillingMode, Provisioned: t.Provisioned, Changed: true}); err != nil {
		return err
	}
	if in.TableClass != nil {
		t.Class, t.ClassChangedBefore, t.ClassChanged = *in.TableClass, t.ClassChanged, now
	}
	if in.DeletionProtectionEnabled != nil {
		t.DeletionProtection = in.DeletionProtectionEnabled.IsTrue()
	}
	if in.StreamSpecification != nil && in.StreamSpecification.StreamEnabled.IsTrue() == t.StreamEnabled {
		if t.StreamEnabled {
			return awserr.Validation(awserr.MsgStreamEnabled, t.Name)
		}
		return awserr.Validation(awserr.MsgStreamDisabled, t.Name)
	}
	if in.StreamSpecification != nil && t.Transition.Until.After(now) {
		t.Transition.Stream = tabledef.StreamDisable
		if in.StreamSpecification.StreamEnabled.IsTrue() {
			t.Transition.Stream = tabledef.StreamEnable
		}
	}
	setStream(t, in.StreamSpecification)
	for _, u := range in.GlobalSecondaryIndexUpdates {
		if err := in.applyIndex(t, u, wasProvisioned, now); err != nil {
			return err
		}
	}
	if t.BillingMode != tablespec.BillingOnDemand {
		var without []string
		for i := range t.Indexes {
			if ix := &t.Indexes[i]; ix.Global && ix.ReadUnits == 0 {
				without = append(without, ix.Name)
			}
		}
		if len(without) > 0 {
			return awserr.Validation(awserr.MsgIndexThroughputMissing, strings.Join(without, ","))
		}
	}
	return nil
}

// applyIndex adds, changes or removes one global index in t. wasProvisioned reports whether the
// table had provisioned throughput before the request.
func (in *updateTableInput) applyIndex(t *tabledef.Table, u globalSecondaryIndexUpdate, wasProvisioned bool, now time.Time) error {
	if u.Create == nil {
		name := *u.indexName()
		i := slices.IndexFunc(t.Indexes, func(ix tabledef.Index) bool { return ix.Global && ix.Name == name })
		if i < 0 && t.Index(name) != nil {
			change := "delete"
			if u.Update != nil {
				change = "update"
			}
			return awserr.Validation(awserr.MsgNotGlobalIndex, change, name)
		}
		if i < 0 && u.Update != nil {
			return awserr.Validation(awserr.MsgIndexUpdateBlocked)
		}
		if i < 0 {
			return awserr.ResourceNotFound(awserr.MsgIndexNotFound, name, t.Name)
		}
		if u.Delete != nil {
			t.Indexes = slices.Delete(slices.Clone(t.Indexes), i, i+1)
			delete(t.Insights, name)
			return nil
		}
		if units := u.Update.ProvisionedThroughput; units != nil {
			switch {
			case in.BillingMode != nil && t.BillingMode == tablespec.BillingOnDemand:
				return awserr.Validation(awserr.MsgIndexUnitsOnDemand, name)
			case t.BillingMode == tablespec.BillingOnDemand:
				return awserr.Validation(awserr.MsgIndexOnlyOnDemand, name)
			}
			if err := tablespec.CheckUnits(units); err != nil {
				return err
			}
			ix := &t.Indexes[i]
			reads, writes := *units.ReadCapacityUnits, *units.WriteCapacityUnits
			if wasProvisioned && in.ProvisionedThroughput == nil && ix.ReadUnits == reads && ix.WriteUnits == writes {
				return awserr.Validation(awserr.MsgIndexUnitsUnchanged, name, name, reads, reads, name, writes, writes)
			}
			ix.Transition = t.Transition
			ix.Change(reads, writes, now, t.Transition)
		}
		return tablespec.SetThroughput(&t.Indexes[i].Throughput, tabledef.Throughput{OnDemand: u.Update.OnDemandThroughput, Warm: u.Update.WarmThroughput},
			tablespec.Target{Index: name, Billing: t.BillingMode, Provisioned: t.Indexes[i].Provisioned, Changed: true})
	}
	if t.Index(*u.Create.IndexName) != nil || t.VectorIndex(*u.Create.IndexName) != nil {
		return awserr.Validation(awserr.MsgIndexExists)
	}
	if err := checkBesideVectors(t, u.Create.KeySchema, in.AttributeDefinitions); err != nil {
		return err
	}
	// The request has to define all key attributes of the index. Attributes that the table
	// defines keep their types.
	if len(in.AttributeDefinitions) == 0 {
		return awserr.Validation(awserr.MsgIndexWithoutDefinitions, *u.Create.IndexName)
	}
	given := tablespec.DefinedTypes(in.AttributeDefinitions)
	if err := tablespec.CheckDefined(u.Create.KeySchema, in.AttributeDefinitions, given); err != nil {
		return err
	}
	if err := checkSameTypes(t, u.Create.KeySchema, given); err != nil {
		return err
	}
	defs := make([]tablespec.AttributeDefinition, 0, len(t.Attributes)+len(in.AttributeDefinitions))
	for _, a := range t.Attributes {
		defs = append(defs, tablespec.DefinitionOf(a))
	}
	known := tablespec.DefinedTypes(defs)
	for _, d := range in.AttributeDefinitions {
		if known[d.Name()] == attr.Absent {
			defs = append(defs, d)
		}
	}
	ix, err := tablespec.ResolveGlobal(*u.Create, t.BillingMode, awserr.MsgIndexThroughputMissing, tablespec.DefinedTypes(defs))
	if err != nil {
		return err
	}
	t.Indexes = append(slices.Clone(t.Indexes), ix)
	if tablespec.TooManyGlobal(t) {
		return awserr.New(awserr.CodeLimitExceeded, awserr.MsgTooManyGlobalAdded)
	}
	t.Attributes = tablespec.DefinitionsOf(defs)
	return nil
}

// checkSameTypes rejects the key of a new index if one of its attributes has a different type
// in the key of the table or of another index, or in a search schema. types are the types that
// the request defines.
func checkSameTypes(t *tabledef.Table, schema []tablespec.KeySchemaElement, types map[string]attr.Type) error {
	added := tabledef.IndexKey{}
	for _, e := range schema {
		a := attr.KeyAttr{Name: e.Name(), Type: types[e.Name()]}
		if e.Kind() == "HASH" {
			added.Hash = append(added.Hash, a)
		} else {
			added.Range = append(added.Range, a)
		}
	}
	keys := []tabledef.IndexKey{tabledef.IndexKeyOf(t.Key)}
	for i := range t.Indexes {
		keys = append(keys, t.Indexes[i].Key)
	}
	for _, key := range keys {
		for _, a := range key.Attributes() {
			if now := types[a.Name]; added.Has(a.Name) && now != a.Type {
				return awserr.Validation(awserr.MsgDefinedOtherwise, schemaText(key), schemaText(added))
			}
		}
	}
	for _, ix := range t.LiveVectors() {
		for _, name := range ix.Schema {
			if known := t.AttributeType(name); added.Has(name) && types[name] != known {
				return awserr.Validation(awserr.MsgDefinedOtherwise, searchSchemaText(name, known), schemaText(added))
			}
		}
	}
	return nil
}

// schemaText formats a key as AWS does in errors.
func schemaText(key tabledef.IndexKey) string {
	var elements []string
	for _, a := range key.Hash {
		elements = append(elements, fmt.Sprintf("SchemaElement: key{%s:%s:HASH}", a.Name, a.Type))
	}
	for _, a := range key.Range {
		elements = append(elements, fmt.Sprintf("SchemaElement: key{%s:%s:RANGE}", a.Name, a.Type))
	}
	return "Schema:[" + strings.Join(elements, ", ") + "]"
}

// pruneDefinitions drops the attribute definitions that no key uses any more, without an error,
// as DynamoDB does.
func pruneDefinitions(t *tabledef.Table) {
	used := tablespec.UsedKeys(t)
	kept := make([]attr.KeyAttr, 0, len(used))
	for _, a := range t.Attributes {
		if slices.Contains(used, a.Name) {
			kept = append(kept, a)
		}
	}
	t.Attributes = kept
}
