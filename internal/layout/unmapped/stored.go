package unmapped

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/tabletop-emu/tabletop/cells"
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// Stored is an item that decodes attributes from its row on demand.
type Stored struct {
	l       *Layout
	row     cells.Row
	hash    string
	sortKey string
}

// Stored returns the item of a row, or nil.
func (l *Layout) Stored(row cells.Row) *Stored {
	if !slices.ContainsFunc(row.Cells, func(c cells.Cell) bool { return c.Family == lens.FamilyItem }) {
		return nil
	}
	hash, sortKey, ok := l.parseRow(row.Key)
	if !ok {
		return nil
	}
	return &Stored{l: l, row: row, hash: hash.Str, sortKey: sortKey.Str}
}

// Get returns an attribute of the table's key, or an absent value for other names.
func (s *Stored) Get(name string) attr.Value {
	switch key := &s.l.key; name {
	case key.Hash.Name:
		return attr.Value{Type: key.Hash.Type, Str: s.hash}
	case key.Range.Name:
		return attr.Value{Type: key.Range.Type, Str: s.sortKey}
	}
	return attr.Value{}
}

// Item returns all attributes. Errors are *maperr.Error: E-CORRUPT.
func (s *Stored) Item() (attr.Item, error) { return s.l.item(s.row) }

// AppendJSON appends the item like attr.AppendItemJSON, and returns its sizes. Attributes are
// sorted by name, with the key attributes between those of the cells.
func (s *Stored) AppendJSON(dst []byte) (json []byte, sizes attr.Sizes, err error) {
	w := attr.ItemWriter{JSON: dst}
	keys := s.l.keyNames
	var last []byte
	for i := range s.row.Cells {
		c := &s.row.Cells[i]
		if c.Family != lens.FamilyItem || !s.l.isAttribute(s.row.Cells, i) {
			continue
		}
		if bytes.Compare(c.Qualifier, last) <= 0 {
			return s.appendDecoded(dst) // a whole item, or cells outside the layout
		}
		last = c.Qualifier
		for len(keys) > 0 && keys[0] < string(last) {
			w.Add(keys[0], s.Get(keys[0]))
			keys = keys[1:]
		}
		if err := appendCell(&w, c); err != nil {
			return dst, attr.Sizes{}, &maperr.Error{Code: maperr.CodeCorrupt, Table: s.l.table, Row: s.row.Key, Attribute: string(c.Qualifier), What: err.Error()}
		}
	}
	for _, name := range keys {
		w.Add(name, s.Get(name))
	}
	w.End()
	return w.JSON, w.Sizes, nil
}

func (s *Stored) appendDecoded(dst []byte) (json []byte, sizes attr.Sizes, err error) {
	item, err := s.Item()
	if err != nil {
		return dst, attr.Sizes{}, err
	}
	return attr.AppendItemJSON(dst, item), item.Sizes(), nil
}

// appendCell adds the attribute of a cell as codec.ParseTagged decodes it.
func appendCell(w *attr.ItemWriter, c *cells.Cell) error {
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
