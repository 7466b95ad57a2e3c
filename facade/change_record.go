package facade

import (
	"time"

	"github.com/tabletop-emu/tabletop/facade/internal/changelog"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// RecordOf returns the sequence number of the stream record in a cell of an item's row. A
// write sets such a cell, which holds its record until it is in the log. ok is false for
// every other cell.
func RecordOf(family string, qualifier []byte) (sequence string, ok bool) {
	at, ok := changelog.CellPosition(qualifier, nil)
	return at.String(), ok && family == lens.FamilyState
}

// SequenceAt returns a lower bound of the sequence numbers of records from a time on.
func SequenceAt(t time.Time) string {
	return changelog.Position{Sequence: changelog.SequenceAt(t)}.String()
}
