package facade

import (
	"time"

	"github.com/tabletop-emu/tabletop/facade/internal/changelog"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// RecordOf returns the sequence number of the stream record that a cell of an item's row
// holds. If the table has a log, each write adds such a cell, which holds the record until
// the record is in the log. ok is false for every other cell.
func RecordOf(family string, qualifier []byte) (sequence string, ok bool) {
	at, ok := changelog.CellPosition(qualifier, nil)
	return at.String(), ok && family == lens.FamilyState
}

// SequenceAt returns a lower bound for the sequence numbers of records written at time t
// or later.
func SequenceAt(t time.Time) string {
	return changelog.Position{Sequence: changelog.SequenceAt(t)}.String()
}
