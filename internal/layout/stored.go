package layout

import "github.com/tabletop-emu/tabletop/facade/attr"

// Stored is an item that was read, which decodes attributes on demand. It is immutable and shares
// the memory of its row. Errors are *maperr.Error: E-CORRUPT.
type Stored interface {
	// Get returns a key attribute of the table, or of the index from which the item was read.
	Get(name string) attr.Value
	// Item returns all attributes.
	Item() (attr.Item, error)
	// AppendJSON appends the item like attr.AppendItemJSON, and returns its sizes as attr.Item
	// defines them.
	AppendJSON(dst []byte) (json []byte, sizes attr.Sizes, err error)
}

// Decoded is a Stored whose attributes are already decoded.
type Decoded attr.Item

// Get implements Stored.
func (d Decoded) Get(name string) attr.Value { return d[name] }

// Item implements Stored.
func (d Decoded) Item() (attr.Item, error) { return attr.Item(d), nil }

// AppendJSON implements Stored.
func (d Decoded) AppendJSON(dst []byte) (json []byte, sizes attr.Sizes, err error) {
	return attr.AppendItemJSON(dst, attr.Item(d)), attr.Item(d).Sizes(), nil
}

// AppendStored appends the items that Items would return. If a row has only one item, its
// attributes are decoded on demand.
func (m *Mapping) AppendStored(dst []Stored, row Row) ([]Stored, error) {
	if l, ok := m.layout.(defaultLayout); ok {
		if s := l.Stored(row); s != nil {
			dst = append(dst, s)
		}
		return dst, nil
	}
	items, err := m.layout.items(row)
	for _, item := range items {
		dst = append(dst, Decoded(item))
	}
	return dst, err
}
