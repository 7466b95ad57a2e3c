package control_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/tabletop-emu/tabletop/control/lab"
	"github.com/tabletop-emu/tabletop/internal/clock"
)

// TestLabReset_Fill: the first reset fills the lab, and later ones restore the result, unless the
// store was opened again since.
func TestLabReset_Fill(t *testing.T) {
	t.Parallel()
	l := lab.New(lab.Options{Clock: clock.NewFrozen(time.Unix(1_700_000_000, 0)), Logger: slog.New(slog.DiscardHandler), Project: "p", Instance: "i"})
	if err := l.Open(); err != nil {
		t.Fatal(err)
	}
	fills := 0
	l.FillAfterReset(func(context.Context) error { fills++; return nil })
	for i, want := range []int{1, 1, 2, 2} {
		if i == 2 {
			if err := l.CloseStore(nil); err != nil {
				t.Fatal(err)
			}
			if err := l.Open(); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Reset(t.Context()); err != nil || fills != want {
			t.Errorf("reset %d: %v, %d fills, want %d", i+1, err, fills, want)
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
