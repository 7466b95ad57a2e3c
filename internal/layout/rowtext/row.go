package rowtext

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

	"github.com/tabletop-emu/tabletop/cells"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// FormatRow appends the canonical text of a row, as in golden files and dumps:
//
//	key [hex]
//	  family:qualifier @micros = value
//
// Families are sorted by name, with FamilyTypes last and without those of HiddenFamily; qualifiers
// ascend, and newer cells come first. A value that is one line of JSON (an object or array) is
// written unchanged, other printable text is quoted, and the rest is hex.
func FormatRow(dst []byte, row cells.Row) []byte {
	return FormatRowFunc(dst, row, func(c cells.Cell) string { return ValueText(c.Value) })
}

// HiddenFamily reports whether texts of rows leave out a family: bookkeeping, except for the
// mark of a deleted index entry, which takes the entry's place.
func HiddenFamily(name string) bool {
	return name != lens.FamilyTombstone && lens.Bookkeeping(name)
}

// Hidden reports whether texts of rows leave out a cell.
func Hidden(c cells.Cell) bool { return HiddenFamily(c.Family) }

// FormatRowFunc is like FormatRow, but calls text to format each value on one line.
func FormatRowFunc(dst []byte, row cells.Row, text func(c cells.Cell) string) []byte {
	dst = append(dst, plainText(row.Key)...)
	dst = fmt.Appendf(dst, " [%x]\n", row.Key)
	shown := slices.DeleteFunc(slices.Clone(row.Cells), Hidden)
	slices.SortStableFunc(shown, func(a, b cells.Cell) int {
		rank := func(c cells.Cell) int {
			if c.Family == lens.FamilyTypes {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Family, b.Family), bytes.Compare(a.Qualifier, b.Qualifier), cmp.Compare(b.Timestamp, a.Timestamp))
	})
	for _, c := range shown {
		dst = append(appendCell(append(dst, "  "...), c, text(c)), '\n')
	}
	return dst
}

func appendCell(dst []byte, c cells.Cell, value string) []byte {
	return fmt.Appendf(dst, "%s:%s @%d = %s", c.Family, plainText(c.Qualifier), c.Timestamp, value)
}

// CellText returns the line that FormatRow writes for a cell, without the indentation.
func CellText(c cells.Cell) string { return string(appendCell(nil, c, ValueText(c.Value))) }

// ColumnText returns the name of a column as FormatRow writes it: family:qualifier.
func ColumnText(family string, qualifier []byte) string { return family + ":" + plainText(qualifier) }

// plainText returns bytes unquoted, with unprintable ones escaped as in Go.
func plainText(b []byte) string {
	quoted := strconv.Quote(string(b))
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// ValueText returns the canonical text of a value, as in FormatRow.
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
