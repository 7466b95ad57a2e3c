package attr

import (
	"crypto/sha256"
	"encoding/binary"
)

// Limits of the keys of tables and indexes, in bytes of Value.Size. They apply to all
// attributes of the partition key together, and to all attributes of the sort key
// together. Source: developer guide, "Service, account, and table quotas".
const (
	MaxHashBytes = 2048
	MaxSortBytes = 1024
)

// KeyAttr is the name and type (S, N or B) of a key attribute. The tags are the names of
// the fields in mapping files.
type KeyAttr struct {
	Name string `yaml:"name,required,filled" expect:"an attribute name"`
	Type Type   `yaml:"type,required"`
}

// KeySchema is the primary key of a table or the key of an index. Hash is the partition
// key. Range is the sort key, or has the name "" without one.
type KeySchema struct {
	Hash  KeyAttr `yaml:"hash,required"`
	Range KeyAttr `yaml:"range"`
}

// Attrs returns the one or two key attributes, with the partition key first.
func (k KeySchema) Attrs() []KeyAttr {
	if k.Range.Name == "" {
		return []KeyAttr{k.Hash}
	}
	return []KeyAttr{k.Hash, k.Range}
}

// IsKey reports whether name is the name of a key attribute.
func (k KeySchema) IsKey(name string) bool {
	return name == k.Hash.Name || name == k.Range.Name && name != ""
}

// KeyOf returns an item that has only the key attributes of the given item. It omits
// missing ones.
func (k KeySchema) KeyOf(item Item) Item {
	key := make(Item, 2)
	for _, a := range k.Attrs() {
		if v, ok := item[a.Name]; ok {
			key[a.Name] = v
		}
	}
	return key
}

// AppendKey appends an encoding of the item's key attributes. Different keys have
// different encodings.
func (k KeySchema) AppendKey(dst []byte, item Item) []byte {
	for _, a := range k.Attrs() {
		v := item[a.Name]
		dst = append(dst, byte(v.Type))
		dst = binary.AppendUvarint(dst, uint64(len(v.Str)))
		dst = append(dst, v.Str...)
	}
	return dst
}

// ItemID identifies an item within its table.
type ItemID [16]byte

// ID returns the ItemID of an item, which depends only on its key attributes.
func (k KeySchema) ID(item Item) ItemID {
	h := sha256.Sum256(k.AppendKey(nil, item))
	return ItemID(h[:16])
}

// Fits reports whether the key attributes of an item are within DynamoDB's size limits.
func (k KeySchema) Fits(item Item) bool {
	return item[k.Hash.Name].Size() <= MaxHashBytes && (k.Range.Name == "" || item[k.Range.Name].Size() <= MaxSortBytes)
}
