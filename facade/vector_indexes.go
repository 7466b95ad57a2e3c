package facade

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/sizes"
	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/tablespec"
)

// vectorIndexUpdate is one element of VectorIndexUpdates. Exactly one of its members is
// set.
type vectorIndexUpdate struct {
	Create *tablespec.VectorIndex
	Delete *struct{ IndexName *string }
}

// constraints checks the members against the model; path is the path of the update.
func (u vectorIndexUpdate) constraints(v *validator, path string) {
	if u.Create != nil {
		v.tables().VectorIndex(path+".Create", *u.Create)
	}
	if u.Delete != nil {
		v.indexName(path+".Delete.IndexName", u.Delete.IndexName)
	}
}

func (u vectorIndexUpdate) check() error {
	switch {
	case u.Create != nil && u.Delete != nil:
		return awserr.Validation(awserr.MsgVectorUpdateSeveral)
	case u.Create == nil && u.Delete == nil:
		return awserr.Validation(awserr.MsgVectorUpdateEmpty)
	}
	return nil
}

// checkAllocation rejects the deletion of a vector index that is being allocated. The table is
// UPDATING meanwhile, which the store would reject with another text.
func (s *Server) checkAllocation(ctx context.Context, name string, updates []vectorIndexUpdate) error {
	if len(updates) == 0 || updates[0].Delete == nil {
		return nil
	}
	t, err := s.store.TableNow(ctx, name)
	if errors.Is(err, store.ErrTableNotFound) {
		return nil // the update reports it
	}
	if err != nil {
		return err
	}
	now := s.opts.Now()
	ix := t.VectorIndex(*updates[0].Delete.IndexName)
	if ix != nil && ix.StatusAt(now) == tabledef.StatusCreating && !ix.IsFillingAt(now) {
		return awserr.New(awserr.CodeResourceInUse, awserr.MsgVectorIndexAllocated)
	}
	return nil
}

// applyVectors makes the changes of vector indexes in t, a copy of the table's definition. It
// must be the last step of an update, since it also drops unused attribute definitions and
// checks the limits of all indexes.
func (s *Server) applyVectors(t *tabledef.Table, in *updateTableInput) error {
	now := s.opts.Now()
	for _, u := range in.GlobalSecondaryIndexUpdates {
		if u.Update == nil && slices.ContainsFunc(t.Vectors, func(ix tabledef.VectorIndex) bool { return ix.Transition.Lasts(now) }) {
			return awserr.New(awserr.CodeLimitExceeded, awserr.MsgOneIndexAtATime)
		}
	}
	for _, u := range in.VectorIndexUpdates {
		var err error
		if u.Create != nil {
			err = s.createVectorIndex(t, *u.Create, in.AttributeDefinitions, now)
		} else {
			err = s.deleteVectorIndex(t, *u.Delete.IndexName, now)
		}
		if err != nil {
			return err
		}
	}
	pruneDefinitions(t)
	return tablespec.CheckIndexLimits(t)
}

// createVectorIndex adds a vector index to a definition. The table is UPDATING while the index
// is allocated, and ACTIVE while it is filled.
func (s *Server) createVectorIndex(t *tabledef.Table, given tablespec.VectorIndex, defs []tablespec.AttributeDefinition, now time.Time) error {
	if t.Index(*given.IndexName) != nil || t.VectorIndex(*given.IndexName) != nil {
		return awserr.Validation(awserr.MsgIndexExists)
	}
	if slices.ContainsFunc(t.Vectors, func(ix tabledef.VectorIndex) bool { return ix.Transition.Lasts(now) }) {
		return awserr.New(awserr.CodeLimitExceeded, awserr.MsgOneIndexAtATime)
	}
	ix, err := tablespec.ResolveVector(given, t.BillingMode, defs)
	if err != nil {
		return err
	}
	if err := checkVectorAttribute(t, &ix); err != nil {
		return err
	}
	if err := defineSearchSchema(t, &ix, defs); err != nil {
		return err
	}
	delays := s.opts.StatusDelays
	if ix.Transition = tabledef.TransitionAfter(now, tabledef.StatusCreating, delays.IndexCreate+delays.IndexFill); ix.Transition.Lasts(now) {
		ix.FillFrom = now.Add(delays.IndexCreate)
		t.Transition = tabledef.UpdatingUntil(t.Transition, ix.FillFrom)
	}
	t.Vectors = append(t.Vectors, ix)
	return tablespec.CheckVectors(t)
}

// checkVectorAttribute rejects a vector attribute that is also a key attribute of the table or
// an index. It also rejects an attribute that has the vectors of one index and is in the search
// schema of another, with the text for both in one request (assumption).
func checkVectorAttribute(t *tabledef.Table, ix *tabledef.VectorIndex) error {
	keys := []tabledef.IndexKey{tabledef.IndexKeyOf(t.Key)}
	for i := range t.Indexes {
		keys = append(keys, t.Indexes[i].Key)
	}
	for _, key := range keys {
		if key.Has(ix.Attribute) {
			return awserr.Validation(awserr.MsgDefinedOtherwise, schemaText(key), vectorSchemaText(ix))
		}
	}
	for _, other := range t.LiveVectors() {
		switch {
		case slices.Contains(ix.Schema, other.Attribute):
			return awserr.Validation(awserr.MsgVectorDefined, other.Attribute)
		case slices.Contains(other.Schema, ix.Attribute):
			return awserr.Validation(awserr.MsgVectorDefined, ix.Attribute)
		}
	}
	return nil
}

// vectorSchemaText formats the vector attribute of an index as AWS does in errors.
func vectorSchemaText(ix *tabledef.VectorIndex) string {
	return fmt.Sprintf("VectorIndexSchema:[VectorAttribute: key{%s:L:%d}]", ix.Attribute, ix.Dimensions)
}

// checkBesideVectors rejects the key of a new global index if it contains the vector attribute
// of a vector index.
func checkBesideVectors(t *tabledef.Table, schema []tablespec.KeySchemaElement, defs []tablespec.AttributeDefinition) error {
	types := tablespec.DefinedTypes(defs)
	for _, ix := range t.LiveVectors() {
		for _, e := range schema {
			if e.Name() == ix.Attribute {
				return awserr.Validation(awserr.MsgDefinedOtherwise, vectorSchemaText(&ix),
					fmt.Sprintf("Schema:[SchemaElement: key{%s:%s:%s}]", e.Name(), types[e.Name()], e.Kind()))
			}
		}
	}
	return nil
}

// defineSearchSchema adds the attributes in the search schema of ix to the attribute definitions
// of t. It rejects an attribute that t defines with another type.
func defineSearchSchema(t *tabledef.Table, ix *tabledef.VectorIndex, defs []tablespec.AttributeDefinition) error {
	types := tablespec.DefinedTypes(defs)
	for _, a := range tablespec.DefinitionsOf(defs) {
		if !slices.Contains(ix.Schema, a.Name) {
			continue
		}
		known := t.AttributeType(a.Name)
		if known == attr.Absent {
			t.Attributes = append(slices.Clone(t.Attributes), a)
		} else if known != types[a.Name] {
			return awserr.Validation(awserr.MsgDefinedOtherwise, searchSchemaText(a.Name, known), searchSchemaText(a.Name, a.Type))
		}
	}
	return nil
}

// searchSchemaText formats an attribute of a search schema as AWS formats a key in errors
// (assumption).
func searchSchemaText(name string, of attr.Type) string {
	return fmt.Sprintf("Schema:[SchemaElement: key{%s:%s:HASH}]", name, of)
}

// deleteVectorIndex removes a vector index from a definition, even while it is being filled. If
// StatusDelays.IndexDelete is set, the index stays as DELETING for that time.
func (s *Server) deleteVectorIndex(t *tabledef.Table, name string, now time.Time) error {
	ix := t.VectorIndex(name)
	if ix == nil {
		return awserr.ResourceNotFound(awserr.MsgVectorIndexNotFound, name, t.Name)
	}
	if ix.Transition = tabledef.TransitionAfter(now, tabledef.StatusDeleting, s.opts.StatusDelays.IndexDelete); ix.Transition.Lasts(now) {
		t.Transition = tabledef.UpdatingUntil(t.Transition, ix.Transition.Until)
		return nil
	}
	t.Vectors = slices.DeleteFunc(t.Vectors, func(ix tabledef.VectorIndex) bool { return ix.Name == name && !ix.Transition.Lasts(now) })
	return nil
}

// checkIndexesAtRest rejects the deletion of a table while its vector indexes change.
func (s *Server) checkIndexesAtRest(t *tabledef.Table) error {
	if slices.ContainsFunc(t.Vectors, func(ix tabledef.VectorIndex) bool { return ix.Transition.Lasts(s.opts.Now()) }) {
		return awserr.New(awserr.CodeResourceInUse, awserr.MsgIndexesHoldTable)
	}
	return nil
}

// describeVectors describes the vector indexes of a table with the given ARN. While the table
// is being created, its indexes are CREATING too.
func describeVectors(t *tabledef.Table, arn string, counts sizes.Counts, now time.Time) (all []tablespec.VectorDescription) {
	for _, ix := range t.ShownVectors(now) {
		d := tablespec.DescribeVector(&ix)
		count := counts.Indexes[ix.Name]
		d.IndexArn, d.IndexSizeBytes, d.ItemCount = arn+"/index/"+ix.Name, &count.Bytes, &count.Items
		d.IndexStatus = ix.StatusAt(now)
		switch {
		case t.Status == tabledef.StatusCreating:
			d.IndexStatus = tabledef.StatusCreating
		case d.IndexStatus == tabledef.StatusCreating:
			d.Backfilling = new(ix.IsFillingAt(now))
		}
		all = append(all, d)
	}
	return all
}

// checkNoVectors returns the error of a Query or Scan of an index that is unknown, or is a
// vector index.
func (p *readPlan) checkNoVectors(name string) error {
	switch ix := p.Table.VectorIndex(name); {
	case ix == nil:
		return awserr.Validation(awserr.MsgIndexUnknown, name)
	case p.v.Operation == "Scan":
		return awserr.Validation(awserr.MsgScanOfVectorIndex)
	case p.in.ConsistentRead.IsTrue():
		return awserr.Validation(awserr.MsgConsistentOnGlobal)
	default:
		return awserr.Validation(awserr.MsgQueryOfVectorIndex)
	}
}
