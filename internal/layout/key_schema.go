package layout

import "github.com/tabletop-emu/tabletop/facade/attr"

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
