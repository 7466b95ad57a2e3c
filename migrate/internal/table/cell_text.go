package table

import (
	"fmt"

	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/rowtext"
	"github.com/tabletop-emu/tabletop/internal/phrase"
)

// CellText returns the canonical text of a cell without its column.
func CellText(c layout.Cell) string { return VersionText(c, rowtext.ValueText(c.Value)) }

// VersionText is like CellText, but formats the value as the given text.
func VersionText(c layout.Cell, value string) string {
	return phrase.Clip(fmt.Sprintf("@%d = %s", c.Timestamp, value))
}
