package tablespec

import (
	"maps"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/expr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
)

// CheckUpdate rejects an update that changes the key or has paths into keys. It also
// rejects an update that sets a key attribute of an index to a wrong type, if that is
// known without the item.
func CheckUpdate(t *tabledef.Table, update *expr.Update) error {
	if update == nil {
		return nil
	}
	for _, a := range t.Key.Attrs() {
		if slices.ContainsFunc(update.Paths(), func(p expr.Path) bool { return p.Attribute() == a.Name }) {
			return awserr.Validation(awserr.MsgUpdateKey, a.Name)
		}
	}
	for _, ix := range t.Indexes {
		for _, a := range ix.Key.Attributes() {
			if given, ok := update.TypeOf(a.Name); ok && given != a.Type {
				return awserr.Validation(awserr.MsgIndexKeyType, a.Name, a.Type, given, namedIndex(t, a.Name))
			}
		}
	}
	return CheckPathsOutsideKeys(t, slices.Concat(update.Paths(), update.ReadPaths()))
}

// ApplyUpdate returns the item after the update. It starts from the stored item or, if
// that does not exist, from an item with only the key. An update that only removes
// attributes does not create an item, but an update without clauses does.
//
// An invalid path is also an error if the item does not exist. One recording of the
// service shows a different result for REMOVE; DynamoDB Local behaves as ApplyUpdate
// does.
func ApplyUpdate(t *tabledef.Table, key attr.Item, update *expr.Update, old attr.Item) (attr.Item, error) {
	updated := old
	if old == nil {
		updated = key
	}
	if update == nil {
		updated = maps.Clone(updated)
	} else {
		var err error
		if updated, err = update.Apply(updated); err != nil {
			return nil, err
		}
		if old == nil && len(updated) == len(key) {
			return nil, nil
		}
	}
	for _, ix := range t.Indexes {
		for _, a := range ix.Key.Attributes() {
			if value, ok := updated[a.Name]; ok && value.Type != a.Type && !attr.Equal(old[a.Name], value) {
				return nil, awserr.Validation(awserr.MsgUpdateIndexKeyType) // the value comes from the item
			}
		}
	}
	if err := checkIndexKeys(t, old, updated, true); err != nil {
		return nil, err
	}
	if err := checkVectorAttributes(t, old, updated, true); err != nil {
		return nil, err
	}
	if updated.Size() > MaxItemBytes {
		return nil, awserr.Validation(awserr.MsgUpdatedItemTooLarge)
	}
	return updated, nil
}

// ReturnedAttributes returns the attributes that a response includes for a mode of
// ReturnValues, or nil if it includes none.
func ReturnedAttributes(mode *string, update *expr.Update, old, updated attr.Item) attr.Item {
	if mode == nil {
		return nil
	}
	switch {
	case *mode == "ALL_OLD":
		return old
	case *mode == "ALL_NEW":
		return updated
	case update == nil:
		return nil
	case *mode == "UPDATED_OLD":
		return expr.ProjectionOf(update.Paths()...).Apply(old)
	case *mode == "UPDATED_NEW":
		return expr.ProjectionOf(update.Paths()...).Apply(updated)
	default:
		return nil
	}
}
