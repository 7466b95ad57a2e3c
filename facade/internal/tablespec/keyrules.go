package tablespec

import (
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/expr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
)

// MaxItemBytes is the maximum size of an item, which is the sum of the names and values
// of its attributes. Source: quotas page of the developer guide.
const MaxItemBytes = 400 << 10

// CheckKey checks the member Key. It must have exactly the key attributes, with their
// types, and their values must not be empty or too large.
func CheckKey(key attr.KeySchema, given attr.Item) error {
	attrs := key.Attrs()
	if len(given) != len(attrs) {
		return awserr.Validation(awserr.MsgKeyMismatch)
	}
	for _, a := range attrs {
		if given[a.Name].Type != a.Type {
			return awserr.Validation(awserr.MsgKeyMismatch)
		}
	}
	return CheckKeySizes(key, given)
}

// CheckKeySizes checks the sizes of the key attributes of an item whose types were
// already checked.
func CheckKeySizes(key attr.KeySchema, item attr.Item) error {
	for _, a := range key.Attrs() {
		if value := item[a.Name]; IsEmpty(value) {
			return awserr.Validation(awserr.MsgKeyEmpty, KindName(value.Type), a.Name)
		}
	}
	if item[key.Hash.Name].Size() > attr.MaxHashBytes {
		return awserr.Validation(awserr.MsgHashTooLarge)
	}
	if key.Range.Name != "" && item[key.Range.Name].Size() > attr.MaxSortBytes {
		return awserr.Validation(awserr.MsgRangeTooLarge)
	}
	return nil
}

// IsEmpty reports whether a value is empty, and thus invalid as a key attribute.
func IsEmpty(value attr.Value) bool {
	return (value.Type == attr.S || value.Type == attr.B) && value.Str == ""
}

// KindName returns the word for a type in the error texts for empty keys.
func KindName(t attr.Type) string {
	if t == attr.B {
		return "binary"
	}
	return "string"
}

// CheckItem checks the key, the index keys and the vector attributes of an item against its table.
func CheckItem(t *tabledef.Table, item attr.Item) error {
	for _, a := range t.Key.Attrs() {
		value, ok := item[a.Name]
		if !ok {
			return awserr.Validation(awserr.MsgKeyMissing, a.Name)
		}
		if value.Type != a.Type {
			return awserr.Validation(awserr.MsgKeyType, a.Name, a.Type, value.Type)
		}
	}
	if err := CheckKeySizes(t.Key, item); err != nil {
		return err
	}
	if err := checkIndexKeys(t, nil, item, false); err != nil {
		return err
	}
	return checkVectorAttributes(t, nil, item, false)
}

// CheckGivenIndexKeys rejects an empty value for a key attribute of an index. The value
// is in an item or an update, one of which is nil.
func CheckGivenIndexKeys(t *tabledef.Table, item attr.Item, update *expr.Update) error {
	for i := range t.Indexes {
		for _, a := range t.Indexes[i].Key.Attributes() {
			value := item[a.Name]
			if update != nil {
				value = update.Given(a.Name)
			}
			if value.Type == a.Type && IsEmpty(value) && !t.Key.IsKey(a.Name) {
				return emptyIndexKey(t, a, update != nil)
			}
		}
	}
	return checkGivenSearchHashes(t, item, update)
}

func emptyIndexKey(t *tabledef.Table, a attr.KeyAttr, updated bool) error {
	if updated {
		return awserr.Validation(awserr.MsgUpdateIndexKeyEmpty, KindName(a.Type))
	}
	return awserr.Validation(awserr.MsgIndexKeyEmpty, KindName(a.Type), namedIndex(t, a.Name), a.Name)
}

// namedIndex returns the index that an error names if the attribute is a key of several
// indexes: the first global one by name or, if all are local, the first local one.
func namedIndex(t *tabledef.Table, attribute string) string {
	var named *tabledef.Index
	for i := range t.Indexes {
		ix := &t.Indexes[i]
		switch {
		case !slices.ContainsFunc(ix.Key.Attributes(), func(a attr.KeyAttr) bool { return a.Name == attribute }):
		case named == nil, ix.Global && !named.Global, ix.Global == named.Global && ix.Name < named.Name:
			named = ix
		}
	}
	return named.Name
}

// checkIndexKeys checks the index key attributes of a put or updated item that differ from old.
// It accepts an invalid value that a native write stored until the value changes.
func checkIndexKeys(t *tabledef.Table, old, item attr.Item, updated bool) error {
	for i := range t.Indexes {
		ix := &t.Indexes[i]
		for _, a := range ix.Key.Attributes() {
			value, ok := item[a.Name]
			if !ok || t.Key.IsKey(a.Name) {
				continue
			}
			if before, had := old[a.Name]; had && attr.Equal(before, value) {
				continue
			}
			if value.Type != a.Type {
				return awserr.Validation(awserr.MsgIndexKeyType, a.Name, a.Type, value.Type, namedIndex(t, a.Name))
			}
			if IsEmpty(value) {
				return emptyIndexKey(t, a, updated)
			}
		}
		if err := checkIndexKeySizes(ix, old, item); err != nil {
			return err
		}
	}
	return nil
}

// checkIndexKeySizes checks the size of each part of an index's key that differs from old;
// the attributes of a part count together.
func checkIndexKeySizes(ix *tabledef.Index, old, item attr.Item) error {
	for _, part := range []struct {
		attributes []attr.KeyAttr
		maxBytes   int
	}{{ix.Key.Hash, attr.MaxHashBytes}, {ix.Key.Range, attr.MaxSortBytes}} {
		size, changed := 0, false
		names := make([]string, len(part.attributes))
		for i, a := range part.attributes {
			names[i] = a.Name
			size += item[a.Name].Size()
			changed = changed || !attr.Equal(old[a.Name], item[a.Name])
		}
		if changed && size > part.maxBytes {
			return awserr.Validation(awserr.MsgIndexKeyTooLarge, strings.Join(names, ", "), part.maxBytes, ix.Name)
		}
	}
	return nil
}

// CheckPathsOutsideKeys rejects paths that lead into a key attribute of a table or its
// indexes, because keys are scalars.
func CheckPathsOutsideKeys(t *tabledef.Table, paths []expr.Path) error {
	nested := map[string]bool{}
	for _, p := range paths {
		if len(p) > 1 {
			nested[p.Attribute()] = true
		}
	}
	if len(nested) == 0 {
		return nil
	}
	for _, a := range t.Key.Attrs() {
		if nested[a.Name] {
			return awserr.Validation(awserr.MsgPathIntoKey, a.Name)
		}
	}
	for i := range t.Indexes {
		for _, a := range t.Indexes[i].Key.Attributes() {
			if nested[a.Name] {
				return awserr.Validation(awserr.MsgPathIntoIndexKey, a.Name)
			}
		}
	}
	return nil
}
