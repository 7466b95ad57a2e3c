package table

import (
	"fmt"

	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/rowtext"
	"github.com/tabletop-emu/tabletop/internal/phrase"
)

// CellText returns the part of a cell's canonical text after its column.
func CellText(c layout.Cell) string { return VersionText(c, rowtext.ValueText(c.Value)) }

// VersionText is CellText with another text for the value.
func VersionText(c layout.Cell, value string) string {
	return phrase.Clip(fmt.Sprintf("@%d = %s", c.Timestamp, value))
}
