package facade

import (
	"time"

	"github.com/tabletop-emu/tabletop/facade/internal/changelog"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// RecordOf returns the sequence number of the stream record of the write that sets a cell of an item's row:
// the record is in that cell until it is in the log. ok is false for a cell of anything else.
func RecordOf(family string, qualifier []byte) (sequence string, ok bool) {
	at, ok := changelog.CellPosition(qualifier, nil)
	return at.String(), ok && family == lens.FamilyState
}

// SequenceAt returns a sequence number that no record from a time on is below.
func SequenceAt(t time.Time) string {
	return changelog.Position{Sequence: changelog.SequenceAt(t)}.String()
}
