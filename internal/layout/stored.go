package layout

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// Stored is an item that was read, of which no more is decoded than is asked for.
// It is immutable, and shares the memory of its row. Errors are *Error: E-CORRUPT.
type Stored interface {
	// Get returns an attribute of the table's key, or of the index's that it was
	// read from.
	Get(name string) attr.Value
	// Item returns all attributes.
	Item() (attr.Item, error)
	// AppendJSON appends the item as attr.AppendItemJSON does, and returns its size
	// as attr.Item has it.
	AppendJSON(dst []byte) (json []byte, sizeBytes int, err error)
}

// Decoded is an item of which all is decoded.
type Decoded attr.Item

// Get implements Stored.
func (d Decoded) Get(name string) attr.Value { return d[name] }

// Item implements Stored.
func (d Decoded) Item() (attr.Item, error) { return attr.Item(d), nil }

// AppendJSON implements Stored.
func (d Decoded) AppendJSON(dst []byte) (json []byte, sizeBytes int, err error) {
	return attr.AppendItemJSON(dst, attr.Item(d)), attr.Item(d).Size(), nil
}

// AppendStored appends what Items returns. Where a row is one item, what its
// attributes hold is looked at when the item is asked for them.
func (m *Mapping) AppendStored(dst []Stored, row Row) ([]Stored, error) {
	if l, ok := m.layout.(*defaultLayout); ok {
		if s := l.stored(row); s != nil {
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

// defaultRowItem is an item as a row of the default layout has it.
type defaultRowItem struct {
	l       *defaultLayout
	row     Row
	hash    string
	sortKey string
}

// stored returns the item of a row, or nil.
func (l *defaultLayout) stored(row Row) *defaultRowItem {
	if !slices.ContainsFunc(row.Cells, func(c Cell) bool { return c.Family == lens.FamilyItem }) {
		return nil
	}
	hash, sortKey, ok := l.parseRow(row.Key)
	if !ok {
		return nil
	}
	return &defaultRowItem{l: l, row: row, hash: hash.Str, sortKey: sortKey.Str}
}

// Get implements Stored.
func (s *defaultRowItem) Get(name string) attr.Value {
	switch key := &s.l.key; name {
	case key.Hash.Name:
		return attr.Value{Type: key.Hash.Type, Str: s.hash}
	case key.Range.Name:
		return attr.Value{Type: key.Range.Type, Str: s.sortKey}
	}
	return attr.Value{}
}

// Item implements Stored.
func (s *defaultRowItem) Item() (attr.Item, error) { return s.l.item(s.row) }

// AppendJSON implements Stored. Cells come in the order of their names: the key
// attributes have their places between them.
func (s *defaultRowItem) AppendJSON(dst []byte) (json []byte, sizeBytes int, err error) {
	w := attr.ItemWriter{JSON: dst}
	keys := s.l.keyNames
	var last []byte
	for i := range s.row.Cells {
		c := &s.row.Cells[i]
		if c.Family != lens.FamilyItem || !s.l.isAttribute(s.row.Cells, i) {
			continue
		}
		if bytes.Compare(c.Qualifier, last) <= 0 {
			return s.appendDecoded(dst) // an item as a whole, or no row of a Bigtable
		}
		last = c.Qualifier
		for len(keys) > 0 && keys[0] < string(last) {
			w.Add(keys[0], s.Get(keys[0]))
			keys = keys[1:]
		}
		if err := appendCell(&w, c); err != nil {
			return dst, 0, &lens.Error{Code: lens.CodeCorrupt, Table: s.l.table, Row: s.row.Key, Attribute: string(c.Qualifier), What: err.Error()}
		}
	}
	for _, name := range keys {
		w.Add(name, s.Get(name))
	}
	w.End()
	return w.JSON, w.SizeBytes, nil
}

func (s *defaultRowItem) appendDecoded(dst []byte) (json []byte, sizeBytes int, err error) {
	item, err := s.Item()
	if err != nil {
		return dst, 0, err
	}
	return Decoded(item).AppendJSON(dst)
}

// appendCell adds the attribute of a cell as parseTagged decodes it.
func appendCell(w *attr.ItemWriter, c *Cell) error {
	if len(c.Value) > 0 {
		switch t, content := c.Value[0], c.Value[1:]; {
		case t == codec.TagOf(attr.S) && utf8.Valid(content):
			w.AddCell(c.Qualifier, attr.S, content)
			return nil
		case t == codec.TagOf(attr.B):
			w.AddCell(c.Qualifier, attr.B, content)
			return nil
		}
	}
	v, err := codec.ParseTagged(c.Value)
	if err != nil {
		return err
	}
	w.Add(string(c.Qualifier), v)
	return nil
}
