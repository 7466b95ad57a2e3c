package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/internal/test/race"
)

// fillAndDelete creates a table with rows of size bytes in total, all in files, and deletes
// it.
func fillAndDelete(t *testing.T, d *DB, name string, size int) {
	t.Helper()
	update := func(fn func(*CatalogTx) error) {
		t.Helper()
		if err := d.UpdateCatalog(t.Context(), fn); err != nil {
			t.Fatal(err)
		}
	}
	update(func(tx *CatalogTx) error {
		_, err := tx.CreateTable(Table{Name: name, Families: []Family{{Name: "f"}}})
		return err
	})
	value := make([]byte, 64<<10)
	random := rand.NewChaCha8([32]byte{1})
	for done := 0; done < size; done += len(value) {
		_, _ = random.Read(value)
		err := d.Mutate(t.Context(), name, fmt.Appendf(nil, "r%09d", done), []Mutation{{Kind: SetCell, Family: "f", Timestamp: 1000, Value: value}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if size > 0 {
		if err := d.pebble.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	update(func(tx *CatalogTx) error { return tx.SoftDeleteTable(name) })
}

// deletedNames returns the names of the tables that can be undeleted.
func deletedNames(d *DB) string {
	names := []string{}
	for _, x := range d.DeletedTables("") {
		names = append(names, x.Table.Name)
	}
	return fmt.Sprint(names)
}

// The memory of deleted tables is bounded: the earliest deleted ones are removed permanently.
func TestMemory_DeletedTablesAreBounded(t *testing.T) {
	race.OneAfterTheOther(t)
	t.Parallel()
	c := clock.NewFrozen(time.Unix(1_700_000_000, 0))
	const unit = 256 << 10
	type deletion struct {
		options Options
		units   []int
		want    string
	}
	deletions := []deletion{
		{Options{KeepDeletedBytes: 5 * unit}, []int{2, 2, 2, 2}, "[t2 t3]"},
		{Options{KeepDeletedBytes: 5 * unit}, []int{2, 6, 2}, "[t2]"},
		{Options{KeepDeletedBytes: 5 * unit}, []int{2, 2, 6}, "[]"},
		{Options{KeepDeletedBytes: 5 * unit, Dir: "disk"}, []int{2, 2, 2, 2}, "[t2 t3]"},
		{Options{KeepDeletedBytes: -1}, []int{2, 2, 2, 2}, "[t0 t1 t2 t3]"},
		{Options{Dir: "disk"}, []int{2, 2}, "[t0 t1]"},
	}
	if got := (&Options{}).keepDeleted().bytes; got != 128<<20 {
		t.Errorf("the default bound is %d bytes, want 128 MiB", got)
	}
	if long.Enabled() {
		deletions = append(deletions, deletion{Options{}, []int{160, 160, 160, 160}, "[t1 t2 t3]"})
	}
	for _, tc := range deletions {
		tc.options.Now, tc.options.MemTableBytes, tc.options.NoSync = c.Now, unit, true
		if tc.options.Dir != "" {
			tc.options.Dir = t.TempDir()
		}
		d := openTest(t, tc.options)
		for i, n := range tc.units {
			fillAndDelete(t, d, fmt.Sprintf("t%d", i), n*unit)
		}
		if got := deletedNames(d); got != tc.want {
			t.Errorf("%+v, tables of %v times 256 KiB: %s can be undeleted, want %s", tc.options, tc.units, got, tc.want)
		}
		err := d.UpdateCatalog(t.Context(), func(tx *CatalogTx) error {
			_, err := tx.UndeleteTable("t0")
			return err
		})
		if gone := errors.Is(err, ErrTableNotFound); gone != (tc.want[1] != 't' || tc.want[2] != '0') {
			t.Errorf("undelete t0: %v", err)
		}
	}

	// At most a hundred small tables are kept in memory, or the configured number, whatever
	// their size.
	const deleted = keepDeletedTables + 20
	for _, tc := range []struct {
		options Options
		want    int
	}{
		{Options{}, keepDeletedTables},
		{Options{KeepDeletedBytes: -1}, keepDeletedTables},
		{Options{KeepDeletedTables: 7}, 7},
		{Options{KeepDeletedTables: -1}, deleted},
		{Options{Dir: t.TempDir()}, deleted},
		{Options{Dir: t.TempDir(), KeepDeletedTables: 7}, 7},
	} {
		tc.options.Now, tc.options.NoSync = c.Now, true
		d := openTest(t, tc.options)
		for i := range deleted {
			fillAndDelete(t, d, fmt.Sprintf("t%03d", i), 0)
		}
		got := d.DeletedTables("")
		if len(got) != tc.want || got[len(got)-1].Table.Name != fmt.Sprintf("t%03d", deleted-1) {
			t.Errorf("%+v: %d tables can be undeleted, want %d", tc.options, len(got), tc.want)
		}
	}
}

// The memory of deleted tables is freed: the files of a store in memory do not grow with their
// number. A file that also holds other data is kept whole.
func TestMemoryComesBack(t *testing.T) {
	race.OneAfterTheOther(t)
	t.Parallel()
	const bound, table, rounds = 2 << 20, 1 << 20, 40
	d := openTest(t, Options{KeepDeletedBytes: bound, MemTableBytes: 512 << 10})
	for i := range rounds {
		fillAndDelete(t, d, fmt.Sprintf("t%d", i), table)
	}
	d.waitForMemory()
	got := d.mem.Held()
	t.Logf("%.1f MiB are held", float64(got)/(1<<20))
	if got > 5*bound {
		t.Errorf("%d bytes are held after %d tables of %d", got, rounds, table)
	}
}

// A table of few large rows is in files that no compaction touches. Their memory is freed too,
// except for a file that also holds other data.
func TestMemoryOfLargeRows(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(context.Context, *DB) error{
		"delete table": func(ctx context.Context, d *DB) error {
			return d.UpdateCatalog(ctx, func(tx *CatalogTx) error { return tx.SoftDeleteTable("t") })
		},
		"drop rows": func(ctx context.Context, d *DB) error { return d.DropRows(ctx, "t", Span{}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testMemoryOfLargeRows(t, remove)
		})
	}
}

func testMemoryOfLargeRows(t *testing.T, remove func(context.Context, *DB) error) {
	t.Helper()
	d := openTest(t, Options{KeepDeletedBytes: 1 << 20})
	createTest(t, d, "f")
	for _, row := range []string{"a", "b", "c"} {
		err := d.Mutate(t.Context(), "t", []byte(row), []Mutation{{Kind: SetCell, Family: "f", Timestamp: 1000, Value: make([]byte, 16<<20)}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := d.pebble.Flush(); err != nil {
		t.Fatal(err)
	}
	was := d.mem.Held()
	if err := remove(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	d.waitForMemory()
	if is := d.mem.Held(); was < 48<<20 || is > 24<<20 {
		t.Errorf("%d bytes were held of 48 MiB, %d are after they were deleted", was, is)
	}
}

// waitForMemory waits until the files exclude deleted data, compactions have ended, and empty
// files are removed.
func (d *DB) waitForMemory() {
	d.background.Wait()
	for d.pebble.Metrics().Compact.NumInProgress > 0 { // a running compaction of Pebble retains its input
		runtime.Gosched()
	}
	d.pebble.TestOnlyWaitForCleaning()
}

// The expiry of a deleted table is known in advance, even without a collector; afterwards its
// cells are removed.
func TestPurgeExpired(t *testing.T) {
	t.Parallel()
	c := clock.NewFrozen(epoch)
	d := openTest(t, Options{Now: c.Now})
	purge := func() {
		t.Helper()
		if err := d.UpdateCatalog(t.Context(), (*CatalogTx).PurgeExpired); err != nil {
			t.Fatal(err)
		}
	}
	if at, ok := d.NextPurge(); ok {
		t.Errorf("nothing was deleted, and %v is when it goes", at)
	}
	fillAndDelete(t, d, "t", 1000)
	c.Advance(time.Hour)
	fillAndDelete(t, d, "u", 1000)
	for _, left := range []int{2, 1, 0} {
		purge()
		if at, ok := d.NextPurge(); ok != (left > 0) || ok && !at.Equal(epoch.Add(keepDeleted+time.Duration(2-left)*time.Hour)) {
			t.Errorf("with %d tables: %v, %v", left, at, ok)
		} else if ok {
			c.AdvanceTo(at)
		}
		if n := len(cellsUnder(t, d)); n != left {
			t.Errorf("there are cells of %d tables, want %d", n, left)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, ok := d.NextPurge(); ok {
		t.Error("a closed store has something to purge")
	}
}
