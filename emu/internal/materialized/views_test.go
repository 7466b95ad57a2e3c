package materialized

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/test/faultdisk"
	"github.com/tabletop-emu/tabletop/internal/test/long"
)

// mortal is a context that ends when its error was asked for a number of times.
type mortal struct {
	context.Context
	left atomic.Int64
}

func (c *mortal) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

const (
	testInstance = "projects/p/instances/i"
	testView     = testInstance + "/materializedViews/v"
)

// newViews returns a view of a table with n rows.
func newViews(t *testing.T, n int, query string) (*Views, *engine.DB) {
	t.Helper()
	db, err := engine.Open(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	v := New(Options{DB: db, Now: clock.New().Now})
	err = db.UpdateCatalog(t.Context(), func(tx *engine.CatalogTx) error {
		_, err := tx.CreateTable(engine.Table{Name: testInstance + "/tables/t", Families: []engine.Family{{Name: "f"}}})
		if err != nil {
			return err
		}
		return v.Create(tx, testView, query)
	})
	for i := 0; err == nil && i < n; i++ {
		err = db.Mutate(t.Context(), testInstance+"/tables/t", fmt.Appendf(nil, "r%05d", i), []engine.Mutation{{Kind: engine.SetCell, Family: "f", Qualifier: []byte("q"), Value: fmt.Append(nil, i%7)}})
	}
	if err != nil {
		t.Fatal(err)
	}
	return v, db
}

// count returns the number of rows of a table.
func count(t *testing.T, db *engine.DB, table string) int {
	t.Helper()
	scan, err := db.Scan(t.Context(), table, engine.ScanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for scan.NextRow() {
		n++
	}
	if err := scan.Close(); err != nil {
		t.Fatal(err)
	}
	return n
}

// A fill whose callers have little time continues where the last one ended.
func TestFill_Continues(t *testing.T) {
	t.Parallel()
	const rows = 4000
	for query, want := range map[string]int{
		"SELECT f['q'] AS q, _key AS k FROM t ORDER BY q, k":  rows,
		"SELECT f['q'] AS q, COUNT(*) AS n FROM t GROUP BY q": 7,
	} {
		v, db := newViews(t, rows, query)
		attempts := 0
		for {
			ctx := &mortal{Context: context.Background()}
			ctx.left.Store(1500)
			err := v.CatchUp(ctx, testView)
			if attempts++; err == nil {
				break
			}
			if status.Code(err) != codes.Canceled || attempts > 50 {
				t.Fatalf("%s: %v after %d attempts", query, err, attempts)
			}
		}
		if got := count(t, db, rowsOf(testView)); got != want || attempts < 2 {
			t.Errorf("%s: %d rows after %d attempts, want %d", query, got, attempts, want)
		}
	}
}

// watched is a context that calls a function whenever its error is asked for.
type watched struct {
	context.Context
	asked func()
}

func (c watched) Err() error {
	c.asked()
	return nil
}

// While a new view is populated, it can be read only as incomplete.
func TestPopulate(t *testing.T) {
	t.Parallel()
	const rows = 1000
	v, db := newViews(t, rows, "SELECT f['q'] AS q, _key AS k FROM t ORDER BY q, k")
	least, most, other := rows, 0, 0
	err := v.Populate(watched{t.Context(), func() {
		if _, err := v.Rows(t.Context(), testView, false); status.Code(err) != codes.FailedPrecondition {
			other++
		}
		if _, err := v.Rows(t.Context(), testView, true); err != nil {
			t.Error(err)
		}
		n := count(t, db, rowsOf(testView))
		least, most = min(least, n), max(most, n)
	}}, testView)
	if err != nil || least != 0 || most != rows || other > 0 {
		t.Errorf("%v; a read sees %d to %d rows, and %d are not rejected", err, least, most, other)
	}
	if _, err := v.Rows(t.Context(), testView, false); err != nil {
		t.Error(err)
	}
}

// TestCatchUp_Writers: catching up ends beside a writer that is as fast.
func TestCatchUp_Writers(t *testing.T) {
	t.Parallel()
	const rows, most = 2 * batchRows, 20_000
	v, db := newViews(t, 3, "SELECT f['q'] AS q, _key AS k FROM t ORDER BY q, k")
	written := 0
	write := func() {
		if written < most {
			written++
			if err := db.Mutate(context.Background(), testInstance+"/tables/t", fmt.Appendf(nil, "w%d", written%rows), []engine.Mutation{{Kind: engine.SetCell, Family: "f", Qualifier: []byte("q")}}); err != nil {
				t.Error(err)
			}
		}
	}
	for _, what := range []string{"a fill", "a change"} {
		for range rows {
			write()
		}
		if err := v.CatchUp(watched{t.Context(), write}, testView); err != nil || written == most {
			t.Fatalf("%s ends after %d writes, %v", what, written, err)
		}
	}
	if err := v.CatchUp(t.Context(), testView); err != nil || count(t, db, rowsOf(testView)) != 3+rows {
		t.Errorf("the view has %d rows, want %d, %v", count(t, db, rowsOf(testView)), 3+rows, err)
	}
}

// dump returns all cells of a table.
func dump(t *testing.T, db *engine.DB, table string) string {
	t.Helper()
	scan, err := db.Scan(t.Context(), table, engine.ScanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for scan.NextRow() {
		for scan.NextCell() {
			c := scan.Cell()
			fmt.Fprintf(&b, "%q %s:%q @%d = %q\n", scan.Row(), c.Family, c.Qualifier, c.Timestamp, c.Value)
		}
	}
	if err := scan.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// After a crash at any moment, a view has the rows that it would have if it were filled again.
func TestCatchUp_Crashes(t *testing.T) {
	t.Parallel()
	every := 3
	if long.Enabled() {
		every = 1
	}
	for _, query := range []string{
		"SELECT f['q'] AS q, _key AS k FROM t WHERE f['q'] != 'x' ORDER BY q, k",
		"SELECT f['q'] AS q, COUNT(*) AS n, MAX(f['p']) AS p FROM t GROUP BY q",
		"SELECT f['q'] AS q, COUNT(*) AS n, SUM(LENGTH(f['p'])) AS p FROM t GROUP BY q",
	} {
		disk := faultdisk.NewCrashing(1)
		open := func(fs vfs.FS) (*Views, *engine.DB) {
			db, err := engine.Open(engine.Options{FS: fs, Dir: "store", MemTableBytes: faultdisk.MemTableBytes})
			if err != nil {
				t.Fatal(err)
			}
			return New(Options{DB: db, Now: clock.New().Now}), db
		}
		v, db := open(disk.FS())
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		table := testInstance + "/tables/t"
		must(db.UpdateCatalog(t.Context(), func(tx *engine.CatalogTx) error {
			if _, err := tx.CreateTable(engine.Table{Name: table, Families: []engine.Family{{Name: "f"}}}); err != nil {
				return err
			}
			return v.Create(tx, testView, query)
		}))
		must(v.CatchUp(t.Context(), testView))
		disk.Take()
		random := rand.New(rand.NewPCG(1, 2))
		for range 12 {
			for range 3 {
				m := engine.Mutation{Kind: engine.DeleteFromRow}
				if random.IntN(4) > 0 {
					m = engine.Mutation{Kind: engine.SetCell, Family: "f", Qualifier: []byte([]string{"p", "q"}[random.IntN(2)]), Value: []byte([]string{"x", "y", "z"}[random.IntN(3)])}
				}
				must(db.Mutate(t.Context(), table, fmt.Appendf(nil, "r%d", random.IntN(4)), []engine.Mutation{m}))
			}
			must(v.CatchUp(t.Context(), testView))
		}
		must(db.Close())
		crashes := disk.Take()
		if len(crashes) < 50 {
			t.Fatalf("only %d crashes", len(crashes))
		}
		for n, crash := range crashes {
			if n%every != 0 {
				continue
			}
			v, db := open(crash.FS)
			must(v.CatchUp(t.Context(), testView))
			got := dump(t, db, rowsOf(testView))
			must(v.Reset(t.Context(), testInstance))
			must(v.CatchUp(t.Context(), testView))
			if want := dump(t, db, rowsOf(testView)); got != want {
				t.Errorf("%s: after crash %d the view has\n%swant\n%s", query, n, got, want)
			}
			must(db.Close())
		}
	}
}

// A fill pauses at the end of a slice, but only if a recorded table was written recently.
func TestPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, db := newViews(t, 3, "SELECT _key, f['q'] AS q FROM t ORDER BY _key")
		p := newPace(db)
		for i, c := range []struct {
			written     bool
			work, pause time.Duration
		}{
			{false, slice, 0},
			{true, slice / 2, 0},
			{false, slice / 2, (share - 1) * slice},
			{false, slice, (share - 1) * slice},
			{false, 2 * slice, 2 * (share - 1) * slice},
			{true, time.Second, maxPause},
			{false, quiet, 0},
			{false, slice, 0},
			{true, slice, (share - 1) * slice},
		} {
			if c.written {
				if err := db.Mutate(t.Context(), testInstance+"/tables/t", []byte("r"), []engine.Mutation{{Kind: engine.DeleteFromRow}}); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(c.work)
			began := time.Now()
			if err := p.step(t.Context()); err != nil || time.Since(began) != c.pause {
				t.Errorf("step %d: pauses for %v, want %v, error %v", i, time.Since(began), c.pause, err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		time.Sleep(slice)
		if err := p.step(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("a pause returns %v after its context ended", err)
		}
	})
}
