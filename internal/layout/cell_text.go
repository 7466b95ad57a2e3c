package layout

import (
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/rowkey"
	"github.com/tabletop-emu/tabletop/internal/layout/rowtext"
)

// CellText returns a function that formats the values of the row's cells for reports, like
// rowtext.ValueText. It formats a protobuf as the name of its message and its fields in JSON. The
// row may be incomplete.
func (m *Mapping) CellText(row Row) func(c Cell) string {
	text := func(c Cell) string { return rowtext.ValueText(c.Value) }
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
