package lens

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// KeyAttr is a key attribute: its name and its type, S, N or B.
type KeyAttr struct {
	Name string    `yaml:"name,required,filled" expect:"an attribute name"`
	Type attr.Type `yaml:"type,required"`
}

// KeySchema is the primary key of a table or the key of an index. Range.Name is "" without a
// sort key.
type KeySchema struct {
	Hash  KeyAttr `yaml:"hash,required"`
	Range KeyAttr `yaml:"range"`
}

// Attrs returns the key attributes, one or two, the partition key's first.
func (k KeySchema) Attrs() []KeyAttr {
	if k.Range.Name == "" {
		return []KeyAttr{k.Hash}
	}
	return []KeyAttr{k.Hash, k.Range}
}

// IsKey reports whether name is a key attribute.
func (k KeySchema) IsKey(name string) bool {
	return name == k.Hash.Name || name == k.Range.Name && name != ""
}

// KeyOf returns the key attributes that an item has.
func (k KeySchema) KeyOf(item attr.Item) attr.Item {
	key := make(attr.Item, 2)
	for _, a := range k.Attrs() {
		if v, ok := item[a.Name]; ok {
			key[a.Name] = v
		}
	}
	return key
}

// AppendKey appends the key attributes of an item, injectively.
func (k KeySchema) AppendKey(dst []byte, item attr.Item) []byte {
	for _, a := range k.Attrs() {
		v := item[a.Name]
		dst = append(dst, byte(v.Type))
		dst = binary.AppendUvarint(dst, uint64(len(v.Str)))
		dst = append(dst, v.Str...)
	}
	return dst
}

// ItemID identifies an item of a table.
type ItemID [16]byte

// ID returns the id of the item that has these key attributes.
func (k KeySchema) ID(item attr.Item) ItemID {
	h := sha256.Sum256(k.AppendKey(nil, item))
	return ItemID(h[:16])
}

// Fits reports whether the key attributes of an item are within the limits of DynamoDB.
func (k KeySchema) Fits(item attr.Item) bool {
	return item[k.Hash.Name].Size() <= MaxHashBytes && (k.Range.Name == "" || item[k.Range.Name].Size() <= MaxSortBytes)
}

// Check returns an error if an item of a table lacks valid key attributes.
func (k KeySchema) Check(table string, key attr.Item) *Error {
	for _, a := range k.Attrs() {
		v := key[a.Name]
		what := ""
		switch {
		case v.IsAbsent():
			what = "the key attribute is missing"
		case v.Type != a.Type:
			what = "the key attribute has type " + v.Type.String()
		case v.Str == "":
			what = "the key attribute is empty"
		default:
			continue
		}
		return &Error{Code: CodeKey, Table: table, Attribute: a.Name, What: what, Expected: "type " + a.Type.String()}
	}
	return nil
}
