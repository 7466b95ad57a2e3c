package store

import (
	"testing"

	"github.com/tabletop-emu/tabletop/internal/clock"
)

// TestStore_SettleForgotten: a row that is being settled while its table goes is
// counted once.
func TestStore_SettleForgotten(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := openStore(t, testOptions(testBigtable(t, clock.New())))
	m, err := s.mark(ctx, "Gone", []byte("row"))
	if err != nil {
		t.Fatal(err)
	}
	s.unmark(m, false, nil)
	if err := s.forgetMarks(ctx, "Gone"); err != nil {
		t.Fatal(err)
	}
	if err := s.settleRow(ctx, m, everything); err != nil {
		t.Fatal(err)
	}
	if w := s.marks; w.dirty != 0 || w.idle != 0 || len(w.byRow) != 0 {
		t.Errorf("%d dirty and %d idle of %d marks, want none", w.dirty, w.idle, len(w.byRow))
	}
}
