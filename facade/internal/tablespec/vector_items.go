package tablespec

import (
	"cmp"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/expr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/vectors"
)

// checkVectorAttributes checks the attributes of vector indexes that differ from those of old:
// a new index leaves out existing items that do not fit, and they stay writable. updated means
// that an update made the item. Of several faults, it reports that of the first index by name
// (assumption).
func checkVectorAttributes(t *tabledef.Table, old, item attr.Item, updated bool) error {
	if len(t.Vectors) == 0 {
		return nil
	}
	changed := func(name string) (attr.Value, bool) {
		value, ok := item[name]
		before, had := old[name]
		return value, ok && (!had || !attr.Equal(before, value))
	}
	indexes := t.LiveVectors()
	slices.SortFunc(indexes, func(a, b tabledef.VectorIndex) int { return cmp.Compare(a.Name, b.Name) })
	for _, ix := range indexes {
		if value, ok := changed(ix.Attribute); ok {
			if _, fault := vectors.Parse(value, ix.Dimensions); fault.Problem != vectors.Fits {
				return vectorError(&ix, value, fault)
			}
		}
		for _, name := range ix.Schema {
			value, ok := changed(name)
			if !ok {
				continue
			}
			if want := t.AttributeType(name); value.Type != want {
				return awserr.Validation(awserr.MsgSearchSchemaType, name, want, value.Type, ix.Name)
			}
			if name == ix.Hash && IsEmpty(value) {
				return emptySearchHash(&ix, value, updated)
			}
		}
	}
	return nil
}

func emptySearchHash(ix *tabledef.VectorIndex, value attr.Value, updated bool) error {
	if updated {
		return awserr.Validation(awserr.MsgUpdateIndexKeyEmpty, KindName(value.Type))
	}
	return awserr.Validation(awserr.MsgIndexKeyEmpty, KindName(value.Type), ix.Name, ix.Hash)
}

// checkGivenSearchHashes rejects an empty value for the partition key of a vector index in an
// item or an update. One of the two is nil.
func checkGivenSearchHashes(t *tabledef.Table, item attr.Item, update *expr.Update) error {
	for _, ix := range t.LiveVectors() {
		value := item[ix.Hash]
		if update != nil && ix.Hash != "" {
			value = update.Given(ix.Hash)
		}
		if value.Type == t.AttributeType(ix.Hash) && IsEmpty(value) && !t.Key.IsKey(ix.Hash) {
			return emptySearchHash(&ix, value, update != nil)
		}
	}
	return nil
}

func vectorError(ix *tabledef.VectorIndex, value attr.Value, fault vectors.Fault) error {
	switch fault.Problem {
	case vectors.NoList:
		return awserr.Validation(awserr.MsgVectorNoList, ix.Attribute, ix.Name)
	case vectors.WrongSize:
		return awserr.Validation(awserr.MsgVectorSize, ix.Attribute, ix.Dimensions, len(value.List), ix.Name)
	case vectors.NoNumber:
		return awserr.Validation(awserr.MsgVectorElement, ix.Attribute, fault.At, fault.Element.Type, ix.Name)
	case vectors.OutOfRange:
		return awserr.Validation(awserr.MsgVectorRange, ix.Attribute, fault.At, vectors.NumberText(fault.Element.Str), ix.Name)
	case vectors.Fits:
	}
	return nil
}
