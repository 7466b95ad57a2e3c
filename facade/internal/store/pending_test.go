package store

import (
	"testing"

	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/test/peer"
)

// TestStore_SettleForgotten: if a table is deleted while one of its rows is being settled, the row
// is subtracted from the counts of marks only once.
func TestStore_SettleForgotten(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := openStore(t, testOptions(peer.Bigtable(t, clock.New())))
	m, err := s.marks.Mark(ctx, "Gone", []byte("row"))
	if err != nil {
		t.Fatal(err)
	}
	s.marks.Unmark(m, false, nil)
	if err := s.marks.Forget(ctx, "Gone"); err != nil {
		t.Fatal(err)
	}
	if err := s.settleRow(ctx, m, everything); err != nil {
		t.Fatal(err)
	}
	if all, idle, dirty := s.marks.Counts(); dirty != 0 || idle != 0 || all != 0 {
		t.Errorf("%d dirty and %d idle of %d marks, want none", dirty, idle, all)
	}
}
