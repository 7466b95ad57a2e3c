package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tabletop-emu/tabletop/internal/clock"
)

// TestStartGC runs the collector by manual ticks: the clock decides what is garbage.
func TestStartGC(t *testing.T) {
	t.Parallel()
	c := clock.NewFrozen(epoch)
	d := openTest(t, Options{Now: c.Now})
	def := Table{Name: "t", Families: []Family{{Name: "f", GC: GCRule{Kind: MaxAge, Age: time.Hour}}}}
	if _, err := createTable(t.Context(), d, def); err != nil {
		t.Fatal(err)
	}
	mustMutate(t, d, "r", set("f", "q", ServerTimestamp, "v"))
	ticks, done := make(chan time.Time), make(chan GCStats)
	stop, err := d.StartGC(GCSchedule{Ticks: ticks, Done: func(s GCStats, err error) {
		if err != nil {
			t.Errorf("gc: %v", err)
		}
		done <- s
	}})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []GCStats{{CellsScanned: 1}, {CellsScanned: 1, CellsDeleted: 1}, {}} {
		if i == 1 {
			c.Advance(2 * time.Hour)
		}
		ticks <- time.Time{}
		if got := <-done; got != want {
			t.Errorf("run %d: %+v, want %+v", i, got, want)
		}
	}
	stop()
	stop()
	select {
	case ticks <- time.Time{}:
		t.Error("a tick was taken after stop")
	default:
	}
}

// TestStartGC_Timer checks the timer, the default interval, and that Close ends a run that was
// not stopped.
func TestStartGC_Timer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, err := Open(Options{Now: clock.NewFrozen(epoch).Now})
		if err != nil {
			t.Fatal(err)
		}
		runs, fast := 0, 0
		if _, err := d.StartGC(GCSchedule{Done: func(GCStats, error) { runs++ }}); err != nil {
			t.Fatal(err)
		}
		stop, err := d.StartGC(GCSchedule{Interval: time.Second, Done: func(GCStats, error) { fast++ }})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10*time.Minute + time.Millisecond) // virtual time
		synctest.Wait()
		stop()
		time.Sleep(time.Minute)
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if runs != 11 || fast != 600 {
			t.Errorf("%d and %d runs, want 11 and 600", runs, fast)
		}
	})
}

func TestStartGC_Errors(t *testing.T) {
	t.Parallel()
	d := openTest(t, Options{})
	if _, err := d.StartGC(GCSchedule{Interval: -1}); !errors.Is(err, ErrInvalid) {
		t.Errorf("error %v, want %v", err, ErrInvalid)
	}
	ticks := make(chan time.Time)
	close(ticks)
	stop, err := d.StartGC(GCSchedule{Ticks: ticks, Done: func(GCStats, error) { t.Error("a run without a tick") }})
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if _, err := d.StartGC(GCSchedule{}); !errors.Is(err, ErrClosed) {
		t.Errorf("error %v, want %v", err, ErrClosed)
	}
}

// TestClose_StopsGC closes the store in the middle of a run, which ends early.
func TestClose_StopsGC(t *testing.T) {
	t.Parallel()
	d := openTest(t, Options{})
	def := Table{Name: "t", Families: []Family{{Name: "f", GC: GCRule{Kind: MaxVersions, Versions: 1}}}}
	if _, err := createTable(t.Context(), d, def); err != nil {
		t.Fatal(err)
	}
	var muts []Mutation
	for i := range int64(3 * gcBatchCells) {
		muts = append(muts, set("f", "q", i*1000, "v"))
	}
	mustMutate(t, d, "r", muts...)
	// The run waits for the row's latch, which is held until Close has begun.
	ticks := make(chan time.Time)
	if _, err := d.StartGC(GCSchedule{Ticks: ticks, Done: func(GCStats, error) { t.Error("the run was not cut short") }}); err != nil {
		t.Fatal(err)
	}
	closed := make(chan error)
	err := d.Update(context.Background(), "t", []byte("r"), func(*RowTx) error {
		ticks <- time.Time{}
		go func() { closed <- d.Close() }()
		<-d.life.Done()
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}
