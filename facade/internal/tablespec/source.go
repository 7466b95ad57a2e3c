package tablespec

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/expr"
	"github.com/tabletop-emu/tabletop/facade/internal/capacity"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

// Source is the table or index that a Query or Scan reads.
type Source struct {
	Table *tabledef.Table
	Index *tabledef.Index // nil means the table itself
}

// Key returns the key schema of the table or index.
func (s Source) Key() tabledef.IndexKey {
	if s.Index != nil {
		return s.Index.Key
	}
	return tabledef.IndexKeyOf(s.Table.Key)
}

// Unprojected returns those attributes in paths that the index does not project.
func (s Source) Unprojected(paths []expr.Path) []string {
	var missing []string
	for _, path := range paths {
		if !capacity.Projects(s.Table, s.Index, path.Attribute()) && !slices.Contains(missing, path.Attribute()) {
			missing = append(missing, path.Attribute())
		}
	}
	return missing
}

// CheckStartKey checks the shape of an ExclusiveStartKey: it must have the key of the
// table and, for an index, the index's key attributes. It checks the types of these
// attributes, except in the older layer for a scan of the table itself (scans). onlyHash
// skips the sort key, for a request whose condition on the partition key is wrong, since
// that error comes first. The error is a ValidationException.
func (s Source) CheckStartKey(given attr.Item, scans, onlyHash bool) error {
	names := map[string]bool{}
	for _, a := range s.Table.Key.Attrs() {
		names[a.Name] = true
	}
	for _, a := range s.Key().Attributes() {
		names[a.Name] = true
	}
	scansTable := s.Index == nil && scans
	shape := awserr.MsgStartKeyShape
	if scansTable {
		shape = fmt.Sprintf(awserr.MsgStartKeyInvalid, awserr.MsgKeyMismatch)
	}
	if len(given) != len(names) {
		return awserr.Validation("%s", shape)
	}
	if scansTable {
		return nil
	}
	attributes := s.Key().Attributes()
	if onlyHash {
		attributes = s.Key().Hash
	}
	for _, a := range attributes {
		switch value, ok := given[a.Name]; {
		case !ok:
			return awserr.Validation("%s", shape)
		case value.Type != a.Type:
			return awserr.Validation(awserr.MsgKeyMismatch)
		}
	}
	return nil
}

// CheckStartKeyOfTable checks the table's key in an ExclusiveStartKey. The error is a
// ValidationException.
func (s Source) CheckStartKeyOfTable(given attr.Item) error {
	err := CheckKey(s.Table.Key, s.Table.Key.KeyOf(given))
	if refused, ok := awserr.As(err); ok {
		return awserr.Validation(awserr.MsgStartKeyInvalid, refused.Message)
	}
	return err
}

// LastKey returns the LastEvaluatedKey for a page that ends with an item.
func (s Source) LastKey(item layout.Stored) attr.Item {
	key := tabledef.IndexKeyOf(s.Table.Key).Of(item)
	if s.Index != nil {
		maps.Copy(key, s.Index.Key.Of(item))
	}
	return key
}

// BytesOnPage returns the number of bytes that an entry of the given sizes adds to a
// page. For an index, it uses the sort key of the index instead of that of the table,
// which is an assumption.
func (s Source) BytesOnPage(entry layout.Stored, sizes attr.Sizes) int {
	if s.Index == nil {
		return sizes.OnPage(entry.Get(s.Table.Key.Range.Name))
	}
	sortKey := make([]attr.Value, 0, MaxKeyAttributesOfKind)
	for _, a := range s.Index.Key.Range {
		sortKey = append(sortKey, entry.Get(a.Name))
	}
	return sizes.OnPage(sortKey...)
}
