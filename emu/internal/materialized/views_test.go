package materialized

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/clock"
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
