package attr

import (
	"crypto/sha256"
	"encoding/binary"
)

// Limits of DynamoDB's keys, also of the keys of indexes: the attributes of a part count
// together. Source: developer guide, "Service, account, and table quotas".
const (
	MaxHashBytes = 2048
	MaxSortBytes = 1024
)

// KeyAttr is a key attribute: its name and its type, S, N or B. Mapping files declare it under
// the names in the tags.
type KeyAttr struct {
	Name string `yaml:"name,required,filled" expect:"an attribute name"`
	Type Type   `yaml:"type,required"`
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
func (k KeySchema) KeyOf(item Item) Item {
	key := make(Item, 2)
	for _, a := range k.Attrs() {
		if v, ok := item[a.Name]; ok {
			key[a.Name] = v
		}
	}
	return key
}

// AppendKey appends the key attributes of an item, injectively.
func (k KeySchema) AppendKey(dst []byte, item Item) []byte {
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
func (k KeySchema) ID(item Item) ItemID {
	h := sha256.Sum256(k.AppendKey(nil, item))
	return ItemID(h[:16])
}

// Fits reports whether the key attributes of an item are within the limits of DynamoDB.
func (k KeySchema) Fits(item Item) bool {
	return item[k.Hash.Name].Size() <= MaxHashBytes && (k.Range.Name == "" || item[k.Range.Name].Size() <= MaxSortBytes)
}
