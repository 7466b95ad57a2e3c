package layout

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/rowkey"
)

// FormatRow appends the canonical text of a row, as goldens and dumps have it:
//
//	key [hex]
//	  family:qualifier @micros = value
//
// Families come by name, FamilyTypes last and FamilyState left out;
// qualifiers ascending, newest first. A value that is one line of JSON (an
// object or array) stands as it is, other printable text is quoted, the rest
// is hex.
func FormatRow(dst []byte, row Row) []byte {
	return FormatRowFunc(dst, row, func(c Cell) string { return ValueText(c.Value) })
}

// CellText returns how reports show the values of the row's cells: by ValueText,
// but of a protobuf the name of its message and its fields as JSON. The row may be
// a part of one.
func (m *Mapping) CellText(row Row) func(c Cell) string {
	text := func(c Cell) string { return ValueText(c.Value) }
	l, ok := m.layout.(*rules)
	if !ok {
		return text
	}
	type message struct {
		*put
		schema codec.Schema
		slots  int
	}
	var messages []message
	for _, r := range l.rules {
		if _, ok := l.parseRow(r, row); !ok {
			continue
		}
		for _, p := range r.puts {
			if p.codec.Message == nil {
				continue
			}
			schema := r.schema[p.attr]
			if p.shape() == shapeItem {
				schema = r.itemSchema()
			}
			messages = append(messages, message{p, schema, rowkey.FirstCapture + len(r.captures)})
		}
	}
	if len(messages) == 0 {
		return text
	}
	return func(c Cell) string {
		for _, p := range messages {
			if p.family != c.Family || !p.qual.Match(c.Qualifier, make([]attr.Value, p.slots), nil) {
				continue
			}
			if v, err := p.codec.Decode(c.Value, p.schema); err == nil {
				return string(p.codec.Message.FullName()) + " " + string(codec.AppendPlainJSON(nil, v))
			}
		}
		return text(c)
	}
}

// FormatRowFunc is FormatRow with the values written by text, on one line each.
func FormatRowFunc(dst []byte, row Row, text func(c Cell) string) []byte {
	dst = append(dst, plainText(row.Key)...)
	dst = fmt.Appendf(dst, " [%x]\n", row.Key)
	cells := slices.DeleteFunc(slices.Clone(row.Cells), func(c Cell) bool { return c.Family == lens.FamilyState })
	slices.SortStableFunc(cells, func(a, b Cell) int {
		rank := func(c Cell) int {
			if c.Family == lens.FamilyTypes {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Family, b.Family), bytes.Compare(a.Qualifier, b.Qualifier), cmp.Compare(b.Timestamp, a.Timestamp))
	})
	for _, c := range cells {
		dst = fmt.Appendf(dst, "  %s:%s @%d = %s\n", c.Family, plainText(c.Qualifier), c.Timestamp, text(c))
	}
	return dst
}

// plainText shows bytes unquoted, unprintable ones escaped as in Go.
func plainText(b []byte) string {
	quoted := strconv.Quote(string(b))
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// ValueText is the canonical text of a value, as FormatRow has it.
func ValueText(b []byte) string {
	printable := utf8.Valid(b)
	for _, r := range string(b) {
		printable = printable && (unicode.IsPrint(r) || r == '\n' || r == '\t' || r == '\r')
	}
	switch {
	case printable && len(b) > 0 && (b[0] == '{' || b[0] == '[') && !bytes.ContainsAny(b, "\n\r\t") && jsontext.Value(b).IsValid():
		return string(b)
	case printable:
		return strconv.Quote(string(b))
	}
	return fmt.Sprintf("%x", b)
}
