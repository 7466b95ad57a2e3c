package backups

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/jobs"
	"github.com/tabletop-emu/tabletop/facade/internal/request"
	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/facade/internal/store/history"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/tablespec"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

// Overrides replaces settings of the source in a restored table.
type Overrides struct {
	BillingModeOverride           *string
	GlobalSecondaryIndexOverride  []tablespec.GlobalSecondaryIndex
	LocalSecondaryIndexOverride   []tablespec.LocalSecondaryIndex
	OnDemandThroughputOverride    *tabledef.OnDemandThroughput
	ProvisionedThroughputOverride *tablespec.ProvisionedThroughput
	SSESpecificationOverride      *tablespec.SSESpecification
	VectorIndexOverride           []tablespec.VectorIndex
}

// FromBackupInput is the request of RestoreTableFromBackup.
type FromBackupInput struct {
	TargetTableName *string
	BackupArn       *string
	Overrides
}

// ToTimeInput is the request of RestoreTableToPointInTime.
type ToTimeInput struct {
	SourceTableArn          *string
	SourceTableName         *string
	TargetTableName         *string
	UseLatestRestorableTime *wire.Flag
	RestoreDateTime         *float64
	Overrides
}

// restore is the request of a restore's job.
type restore struct {
	Target string          `json:"target"`
	Backup string          `json:"backup,omitempty"` // id; "": from a table
	Source json.RawMessage `json:"source"`           // definition of the table
	Rows   string          `json:"rows,omitempty"`   // table with the items of the backup
	Before uint64          `json:"before,omitempty"` // sequence number
	// UpToNow includes all changes acknowledged before the restore begins.
	UpToNow bool `json:"upToNow,omitempty"`
	// Table is the definition of the target, until it is created.
	Table json.RawMessage `json:"table,omitempty"`
}

// constraints checks the overrides against the model.
func (s *Service) constraints(o *Overrides) {
	v := &s.V
	v.Enum("BillingModeOverride", o.BillingModeOverride, tablespec.BillingProvisioned, tablespec.BillingOnDemand)
	for i, ix := range o.GlobalSecondaryIndexOverride {
		path := fmt.Sprintf("GlobalSecondaryIndexOverride.%d.member", i+1)
		s.indexConstraints(path, ix.IndexName, ix.KeySchema, ix.Projection)
		s.units(path+".ProvisionedThroughput", ix.ProvisionedThroughput)
	}
	for i, ix := range o.LocalSecondaryIndexOverride {
		s.indexConstraints(fmt.Sprintf("LocalSecondaryIndexOverride.%d.member", i+1), ix.IndexName, ix.KeySchema, ix.Projection)
	}
	s.units("ProvisionedThroughputOverride", o.ProvisionedThroughputOverride)
	o.SSESpecificationOverride.Constraints(v, "SSESpecificationOverride")
	s.vectorConstraints(o)
}

func (s *Service) indexConstraints(path string, name *string, schema []tablespec.KeySchemaElement, p *tablespec.Projection) {
	v := &s.V
	v.Required(path+".IndexName", name != nil)
	if name != nil {
		v.Name(path+".IndexName", *name)
	}
	v.Required(path+".KeySchema", schema != nil)
	for i, e := range schema {
		at := fmt.Sprintf("%s.KeySchema.%d.member.", path, i+1)
		v.Required(at+"AttributeName", e.AttributeName != nil)
		v.Required(at+"KeyType", e.KeyType != nil)
		v.Enum(at+"KeyType", e.KeyType, "HASH", "RANGE")
	}
	v.Required(path+".Projection", p != nil)
	if p != nil {
		v.Enum(path+".Projection.ProjectionType", p.ProjectionType, tabledef.ProjectAll, tabledef.ProjectInclude, tabledef.ProjectKeysOnly)
	}
}

func (s *Service) units(path string, given *tablespec.ProvisionedThroughput) {
	if given == nil {
		return
	}
	s.V.Required(path+".WriteCapacityUnits", given.WriteCapacityUnits != nil)
	atLeast64(&s.V, path+".WriteCapacityUnits", given.WriteCapacityUnits, 1)
	s.V.Required(path+".ReadCapacityUnits", given.ReadCapacityUnits != nil)
	atLeast64(&s.V, path+".ReadCapacityUnits", given.ReadCapacityUnits, 1)
}

// FromBackup restores a table from a backup.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_RestoreTableFromBackup.html
func (s *Service) FromBackup(ctx context.Context, in *FromBackupInput) (*tabledef.Table, error) {
	s.target(in.TargetTableName)
	s.V.Required("BackupArn", in.BackupArn != nil)
	s.V.Length("BackupArn", in.BackupArn, 0, maxARNChars)
	s.constraints(&in.Overrides)
	if err := s.V.Constrained(); err != nil {
		return nil, err
	}
	b, err := s.backup(ctx, *in.BackupArn)
	if err != nil {
		return nil, err
	}
	if s.status(&b) == statusCreating {
		return nil, awserr.New(awserr.CodeBackupInUse, awserr.MsgBackupCreating, *in.BackupArn)
	}
	t, err := s.restored(*in.TargetTableName, b.def, &in.Overrides)
	if err != nil {
		return nil, err
	}
	t.Restore = &tabledef.Restore{BackupARN: *in.BackupArn, TableARN: s.tableARN(b.def.Name), Time: b.Created}
	r := restore{Target: t.Name, Backup: b.ID, Source: b.Table, Rows: b.rows(s.Store)}
	return s.begin(ctx, t, r, nil)
}

// ToTime creates a table with the contents that another table had at a given time.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_RestoreTableToPointInTime.html
func (s *Service) ToTime(ctx context.Context, in *ToTimeInput) (*tabledef.Table, error) {
	s.target(in.TargetTableName)
	source := in.SourceTableName
	if source != nil {
		s.V.Name("SourceTableName", *source)
	}
	s.V.Length("SourceTableArn", in.SourceTableArn, 1, request.MaxTableARNChars)
	s.constraints(&in.Overrides)
	if err := s.V.Constrained(); err != nil {
		return nil, err
	}
	switch newest := in.UseLatestRestorableTime.IsTrue(); {
	case newest && in.RestoreDateTime != nil:
		return nil, awserr.Validation(awserr.MsgRestoreTimesBoth)
	case !newest && in.RestoreDateTime == nil:
		return nil, awserr.Validation(awserr.MsgRestoreTimesNone)
	case source != nil && in.SourceTableArn != nil:
		return nil, awserr.Validation(awserr.MsgRestoreSourceBoth)
	case source == nil && in.SourceTableArn == nil:
		return nil, awserr.Validation(awserr.MsgParameterRequired, "TableName")
	case source == nil:
		name, err := s.sourceOf(*in.SourceTableArn)
		if err != nil {
			return nil, err
		}
		source = &name
	}
	src, err := s.table(ctx, *source)
	if err != nil {
		return nil, err
	}
	r := src.Recovery
	if !r.On() {
		return nil, awserr.New(awserr.CodePointInTimeRecoveryUnavailable, awserr.MsgNoRecovery, src.Name)
	}
	now := s.Now()
	at := latest(r, now)
	if in.RestoreDateTime != nil {
		at = time.UnixMilli(millis(*in.RestoreDateTime))
		if earliest := r.Earliest(now); at.Before(earliest.Truncate(time.Millisecond)) || at.After(now) {
			return nil, awserr.New(awserr.CodeInvalidRestoreTime, awserr.MsgRestoreTime, isoTime(at), isoTime(earliest), isoTime(latest(r, now)))
		}
	}
	t, err := s.restored(*in.TargetTableName, src, &in.Overrides)
	if err != nil {
		return nil, err
	}
	t.Restore = &tabledef.Restore{TableARN: s.tableARN(src.Name), Time: at}
	return s.begin(ctx, t, restore{Target: t.Name, Before: history.Before(at)}, src)
}

// sourceOf returns the table name in the ARN of a source, which must be in this account and
// region.
func (s *Service) sourceOf(arn string) (string, error) {
	of, ok := request.ParseARN(arn)
	switch {
	case !ok, of.Rest != "", !request.IsTableName(of.Table):
		return "", awserr.Validation(awserr.MsgRestoreSourceARN)
	case of.Account != s.Account:
		return "", awserr.Validation(awserr.MsgOtherAccount)
	case of.Region != s.Region:
		return "", awserr.New(awserr.CodeTableNotFound, awserr.MsgNamedTableNotFound, arn)
	}
	return of.Table, nil
}

func isoTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func (s *Service) target(name *string) {
	s.V.Required("TargetTableName", name != nil)
	if name != nil {
		s.V.Name("TargetTableName", *name)
	}
}

// running holds the restores in progress.
type running struct {
	n  int
	of map[string]string // target by id of the backup
}

func (s *Service) restores(ctx context.Context) (r running, err error) {
	r.of = map[string]string{}
	targets := map[string]bool{}
	for j, err := range s.Store.Jobs.All(ctx, KindRestore, "") {
		if err != nil {
			return r, err
		}
		var of restore
		if err := json.Unmarshal(j.Request, &of); err != nil {
			return r, fmt.Errorf("restore %s: %w", j.ID, err)
		}
		if j.State == jobs.Failed || targets[of.Target] {
			continue
		}
		if j.State == jobs.Done { // its table may stay CREATING for longer
			t, err := s.Store.TableNow(ctx, of.Target)
			if err != nil && !errors.Is(err, store.ErrTableNotFound) {
				return r, err
			}
			if err != nil || !t.Restoring() || of.Backup != "" && resourceOf(t.Restore.BackupARN) != resourceOf(s.backupARN(of.Backup)) {
				continue
			}
		}
		targets[of.Target] = true
		if of.Backup != "" {
			r.of[of.Backup] = of.Target
		}
	}
	r.n = len(targets)
	return r, nil
}

// resourceOf returns the part of an ARN after region and account, which are irrelevant here.
func resourceOf(arn string) string { return arn[strings.LastIndexByte(arn, ':')+1:] }

// begin creates the table, without items, and the job that restores them from src or, if src is
// nil, from a backup.
func (s *Service) begin(ctx context.Context, t *tabledef.Table, r restore, src *tabledef.Table) (*tabledef.Table, error) {
	switch there, err := s.Store.TableNow(ctx, t.Name); {
	case err == nil && there.Restoring():
		from := there.Restore.BackupARN
		if from == "" {
			from = there.Restore.TableARN
		}
		return nil, awserr.New(awserr.CodeTableInUse, awserr.MsgRestoreTargetRestoring, t.Name, from)
	case err == nil:
		return nil, awserr.New(awserr.CodeTableAlreadyExists, awserr.MsgTableExists, t.Name)
	case !errors.Is(err, store.ErrTableNotFound):
		return nil, err
	}
	others, err := s.restores(ctx)
	if err != nil {
		return nil, err
	}
	if r.Backup != "" && others.of[r.Backup] != "" {
		return nil, awserr.New(awserr.CodeBackupInUse, awserr.MsgRestoreElsewhere, t.Restore.BackupARN)
	}
	if others.n >= maxRestores {
		return nil, awserr.New(awserr.CodeLimitExceeded, awserr.MsgTooManyRestores, maxRestores)
	}
	id := newID(s.Now(), "-"+hex.EncodeToString(s.Random(4)), t.Name)
	t.Restore.Job = id
	t.Transition = tabledef.TransitionAfter(s.Now(), tabledef.StatusCreating, s.Delays.Create)
	if src != nil {
		r.UpToNow = !t.Restore.Time.Before(s.Now().Truncate(time.Millisecond))
		if r.Source, err = tabledef.Encode(src); err != nil {
			return nil, err
		}
	}
	if r.Table, err = tabledef.Encode(t); err != nil {
		return nil, err
	}
	request, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	var created *tabledef.Table
	prepare := func(ctx context.Context) (json.RawMessage, error) {
		if created, err = (worker{s.Store}).begin(ctx, id, &r); err != nil {
			return nil, err
		}
		return json.Marshal(r)
	}
	_, err = s.Store.Jobs.Create(ctx, jobs.Spec{Kind: KindRestore, ID: id, Request: request, Prepare: prepare})
	switch {
	case errors.Is(err, store.ErrTableExists):
		return nil, awserr.New(awserr.CodeTableAlreadyExists, awserr.MsgTableExists, t.Name)
	case err != nil && src != nil:
		return nil, s.tableError(err, src.Name)
	case err != nil:
		return nil, err
	}
	return created, nil
}

// restored returns the definition of a restored table: the key, the indexes, billing and
// encryption of its source, unless overridden.
func (s *Service) restored(name string, src *tabledef.Table, o *Overrides) (*tabledef.Table, error) {
	src, err := src.Clone()
	if err != nil {
		return nil, err
	}
	t := &tabledef.Table{
		Name: name, Key: src.Key, Attributes: src.Attributes, Indexes: src.Indexes, BillingMode: src.BillingMode,
		Throughput: tabledef.Throughput{OnDemand: src.Throughput.OnDemand}, Extra: map[string]string{},
	}
	t.ReadUnits, t.WriteUnits = src.ReadUnits, src.WriteUnits
	if given := src.Extra[tablespec.ExtraSSE]; given != "" {
		t.Extra[tablespec.ExtraSSE] = given
	}
	if err := o.SSESpecificationOverride.Set(t); err != nil {
		return nil, err
	}
	if err := o.billing(t); err != nil {
		return nil, err
	}
	if err := o.indexes(t, src.BillingMode == tablespec.BillingOnDemand); err != nil {
		return nil, err
	}
	if err := o.vectors(t, src); err != nil {
		return nil, err
	}
	for i := range t.Indexes {
		ix := &t.Indexes[i]
		kept := tabledef.Index{Name: ix.Name, Global: ix.Global, Key: ix.Key, Projection: ix.Projection, NonKey: ix.NonKey}
		kept.Throughput.OnDemand = ix.Throughput.OnDemand
		if kept.ReadUnits, kept.WriteUnits = ix.ReadUnits, ix.WriteUnits; t.BillingMode == tablespec.BillingOnDemand {
			kept.ReadUnits, kept.WriteUnits = 0, 0
		}
		*ix = kept
	}
	used := tablespec.UsedKeys(t)
	t.Attributes = slices.DeleteFunc(slices.Clone(t.Attributes), func(a attr.KeyAttr) bool { return !slices.Contains(used, a.Name) })
	return t, nil
}

// billing checks and applies the overrides of billing.
func (o *Overrides) billing(t *tabledef.Table) error {
	mode, units, bounds := "", o.ProvisionedThroughputOverride, o.OnDemandThroughputOverride
	if o.BillingModeOverride != nil {
		mode = *o.BillingModeOverride
	}
	onDemand := t.BillingMode == tablespec.BillingOnDemand
	switch {
	case mode == "" && units != nil && onDemand:
		return awserr.Validation(awserr.MsgRestoreUnitsUnlessMode)
	case mode == tablespec.BillingProvisioned && units == nil:
		return awserr.Validation(awserr.MsgRestoreUnitsNeeded)
	case mode == tablespec.BillingOnDemand && units != nil:
		return awserr.Validation(awserr.MsgRestoreUnitsOnDemand)
	case bounds != nil && mode != tablespec.BillingOnDemand:
		return awserr.Validation(awserr.MsgRestoreBoundsUnlessMode)
	case bounds != nil && !inRange(bounds):
		return awserr.Validation(awserr.MsgRestoreBoundsRange)
	}
	if mode != "" {
		t.BillingMode = mode
	}
	if units != nil {
		t.ReadUnits, t.WriteUnits = *units.ReadCapacityUnits, *units.WriteCapacityUnits
	}
	if t.BillingMode == tablespec.BillingOnDemand {
		t.ReadUnits, t.WriteUnits = 0, 0
	} else {
		t.Throughput.OnDemand = nil
	}
	if bounds != nil {
		return tablespec.SetThroughput(&t.Throughput, tabledef.Throughput{OnDemand: bounds}, tablespec.Target{Billing: t.BillingMode, Changed: true})
	}
	return nil
}

func inRange(o *tabledef.OnDemandThroughput) bool {
	if o.MaxReadRequestUnits == nil && o.MaxWriteRequestUnits == nil {
		return false
	}
	ok := func(n *int64) bool { return n == nil || *n == tablespec.NoUnitsBound || *n >= 1 }
	return ok(o.MaxReadRequestUnits) && ok(o.MaxWriteRequestUnits)
}

// indexes applies the overrides of indexes: each element must equal an index of the source,
// except for its name; the other indexes are dropped. Global indexes that become provisioned
// need an override with their name.
func (o *Overrides) indexes(t *tabledef.Table, wasOnDemand bool) error {
	provisioned := t.BillingMode != tablespec.BillingOnDemand
	becomeProvisioned := wasOnDemand && provisioned
	var kept []tabledef.Index
	for _, global := range []bool{false, true} {
		var wanted []tablespec.GlobalSecondaryIndex
		all := o.GlobalSecondaryIndexOverride == nil
		if wanted = o.GlobalSecondaryIndexOverride; !global {
			all, wanted = o.LocalSecondaryIndexOverride == nil, nil
			for _, ix := range o.LocalSecondaryIndexOverride {
				wanted = append(wanted, tablespec.GlobalSecondaryIndex{IndexName: ix.IndexName, KeySchema: ix.KeySchema, Projection: ix.Projection})
			}
		}
		if all {
			for _, ix := range t.Indexes {
				if ix.Global != global {
					continue
				}
				if global && becomeProvisioned {
					return awserr.Validation(awserr.MsgRestoreIndexUnitsNeeded, ix.Name)
				}
				kept = append(kept, ix)
			}
			continue
		}
		for _, w := range wanted {
			i := slices.IndexFunc(t.Indexes, func(ix tabledef.Index) bool {
				return ix.Global == global && matches(&ix, &w) && (!global || !becomeProvisioned || ix.Name == *w.IndexName)
			})
			if i < 0 {
				return awserr.Validation(awserr.MsgRestoreIndexUnknown, *w.IndexName)
			}
			if slices.ContainsFunc(kept, func(ix tabledef.Index) bool { return ix.Name == *w.IndexName }) {
				return awserr.Validation(awserr.MsgDuplicateIndex, *w.IndexName)
			}
			ix := t.Indexes[i]
			ix.Name = *w.IndexName
			switch p := w.ProvisionedThroughput; {
			case p == nil && global && provisioned:
				return awserr.Validation(awserr.MsgRestoreIndexUnitsMissing, ix.Name)
			case p != nil && o.BillingModeOverride != nil && *o.BillingModeOverride == tablespec.BillingOnDemand:
				return awserr.Validation(awserr.MsgRestoreIndexUnitsOnDemand, ix.Name)
			case p != nil:
				ix.ReadUnits, ix.WriteUnits = *p.ReadCapacityUnits, *p.WriteCapacityUnits
			}
			if err := tablespec.SetThroughput(&ix.Throughput, tabledef.Throughput{OnDemand: w.OnDemandThroughput}, tablespec.Target{Index: ix.Name, Billing: t.BillingMode, Changed: true}); err != nil {
				return err
			}
			kept = append(kept, ix)
		}
	}
	t.Indexes = kept
	return nil
}

// matches reports whether a requested index equals an existing one, except for its name.
func matches(ix *tabledef.Index, w *tablespec.GlobalSecondaryIndex) bool {
	projection := ""
	if w.Projection.ProjectionType != nil {
		projection = *w.Projection.ProjectionType
	}
	given, had := slices.Sorted(slices.Values(w.Projection.NonKeyAttributes)), slices.Sorted(slices.Values(ix.NonKey))
	return projection == ix.Projection && slices.Equal(given, had) && reflect.DeepEqual(texts(w.KeySchema), texts(tablespec.KeySchemaElements(ix.Key)))
}

func texts(schema []tablespec.KeySchemaElement) (all []string) {
	for _, e := range schema {
		all = append(all, e.Kind()+" "+e.Name())
	}
	return all
}
