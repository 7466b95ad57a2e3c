package engine

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/tabletop-emu/tabletop/engine/internal/guardfs"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/test/faultdisk"
)

// TestRunGC_Disk observes the collector at every sync: no row is locked then. After RunGC its
// deletes are on disk.
func TestRunGC_Disk(t *testing.T) {
	t.Parallel()
	mem := vfs.NewCrashableMem()
	var d *DB
	var collecting atomic.Bool
	var syncs atomic.Int64
	fs := faultdisk.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		sync := op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo
		if !sync || !guardfs.IsLog(op.Path) || !collecting.Load() {
			return nil
		}
		syncs.Add(1)
		for i := range d.latches {
			if !d.latches[i].mu.TryLock() {
				t.Errorf("the collector waits for the disk and holds latch %d", i)
				return nil
			}
			d.latches[i].mu.Unlock()
		}
		return nil
	}))
	o := Options{Dir: "data", FS: fs}
	d = openTest(t, o)
	def := Table{Name: "t", Families: []Family{{Name: "f", GC: GCRule{Kind: MaxVersions, Versions: 1}}, {Name: "g"}}}
	if _, err := createTable(t.Context(), d, def); err != nil {
		t.Fatal(err)
	}
	for r := range 2 * gcBatchCells {
		mustMutate(t, d, fmt.Sprint("r", r), set("f", "q", 0, "old"), set("f", "q", 1000, "new"), set("g", "q", 0, "dropped"))
	}
	if _, err := modifyFamilies(t.Context(), d, "t", []FamilyChange{{Drop: "g"}}); err != nil {
		t.Fatal(err)
	}
	collecting.Store(true)
	stats, err := d.RunGC(t.Context())
	collecting.Store(false)
	if want := int64(4 * gcBatchCells); err != nil || stats.CellsDeleted != want || syncs.Load() == 0 {
		t.Errorf("%d cells deleted, error %v, %d syncs; want %d cells", stats.CellsDeleted, err, syncs.Load(), want)
	}
	o.FS = mem.CrashClone(vfs.CrashCloneCfg{})
	crashed := openTest(t, o)
	if stats, err := crashed.RunGC(t.Context()); err != nil || stats.CellsDeleted != 0 {
		t.Errorf("after a crash %d cells are garbage again, error %v", stats.CellsDeleted, err)
	}
	if got, want := mustDump(t, crashed), mustDump(t, d); got != want {
		t.Errorf("after a crash %.200s, want %.200s", got, want)
	}
}

// TestRunGC_Pauses stops the collector between any two of its batches, in virtual time, and
// writes to every row of the table that it sweeps, to another table, and to the catalog. None
// of these may wait for it: the bubble's time stands still until all are done.
func TestRunGC_Pauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		d, err := Open(Options{Now: clock.NewFrozen(epoch).Now})
		if err != nil {
			t.Fatal(err)
		}
		one := GCRule{Kind: MaxVersions, Versions: 1}
		for _, def := range []Table{
			{Name: "t", Families: []Family{{Name: "f", GC: one}, {Name: "g"}}},
			{Name: "u", Families: []Family{{Name: "f"}}},
		} {
			if _, err := createTable(ctx, d, def); err != nil {
				t.Fatal(err)
			}
		}
		// More rows than latches, so that every latch has a row.
		const rows, versions = 4 * halfLatches, 5
		for r := range rows {
			var muts []Mutation
			for v := range versions {
				muts = append(muts, set("f", "q", int64(v)*1000, "old"))
			}
			mustMutate(t, d, fmt.Sprint("r", r), muts...)
		}
		before := len(d.Tables(""))
		done := make(chan GCStats)
		go func() {
			stats, err := d.RunGC(ctx)
			if err != nil {
				t.Error(err)
			}
			done <- stats
		}()
		pauses := 0
		var stats GCStats
		for running := true; running; {
			synctest.Wait() // the collector pauses, or is done
			select {
			case stats = <-done:
				running = false
				continue
			default:
			}
			pauses++
			began := time.Now()
			for i := range d.latches {
				if !d.latches[i].mu.TryLock() {
					t.Fatalf("pause %d: the collector holds latch %d", pauses, i)
				}
				d.latches[i].mu.Unlock()
			}
			if !d.catalogMu.TryLock() {
				t.Fatalf("pause %d: the collector holds the catalog", pauses)
			}
			d.catalogMu.Unlock()
			value := fmt.Sprint("new", pauses)
			for r := range rows {
				mustMutate(t, d, fmt.Sprint("r", r), set("g", "q", 1000, value))
			}
			if err := d.Mutate(ctx, "u", []byte("r"), []Mutation{set("f", "q", int64(pauses), value)}); err != nil {
				t.Error(err)
			}
			if _, err := createTable(ctx, d, Table{Name: value}); err != nil {
				t.Error(err)
			}
			if passed := time.Since(began); passed != 0 {
				t.Errorf("pause %d: writers waited %v", pauses, passed)
			}
			time.Sleep(gcPause) // virtual time: the next batch
		}
		if want := int64(rows * (versions - 1)); stats.CellsDeleted != want {
			t.Errorf("%d cells deleted, want %d", stats.CellsDeleted, want)
		}
		if least := rows*(versions-1)/gcBatchCells - 1; pauses < least {
			t.Errorf("%d pauses for %d cells, want at least %d", pauses, rows*(versions-1), least)
		}
		if made := len(d.Tables("")) - before; made != pauses {
			t.Errorf("%d tables made in %d pauses", made, pauses)
		}
		got := mustDump(t, d)
		last := fmt.Sprintf("g:\"q\" @1000 %q\n", fmt.Sprint("new", pauses))
		if n := strings.Count(got, last); n != rows {
			t.Errorf("the last write is in %d rows of %d", n, rows)
		}
		if n := strings.Count(got, "\"old\""); n != rows {
			t.Errorf("%d old cells are left, want %d", n, rows)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
}
