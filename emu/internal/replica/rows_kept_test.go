package replica

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/emu/internal/instancedef"
	"github.com/tabletop-emu/tabletop/engine"
)

// lagged returns a world whose clusters have a lag of a second.
func lagged(t *testing.T, maxBytes int64) *rowsWorld {
	t.Helper()
	w := newRowsWorld(t, maxBytes)
	t.Cleanup(func() { _ = w.db.Close() })
	if err := w.c.Instance("i").Lag(time.Second); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *rowsWorld) set(t *testing.T, cluster, row, value string) error {
	t.Helper()
	return w.db.Mutate(w.taken(t, cluster), "t", []byte(row), []engine.Mutation{{
		Kind: engine.SetCell, Family: "f", Qualifier: []byte("q"), Timestamp: 1000, Value: []byte(value),
	}})
}

func (w *rowsWorld) mustSet(t *testing.T, cluster, row, value string) {
	t.Helper()
	if err := w.set(t, cluster, row, value); err != nil {
		t.Fatal(err)
	}
}

func (w *rowsWorld) want(t *testing.T, cluster, want string) {
	t.Helper()
	if got := w.read(t, cluster, engine.ScanOptions{}); got != want {
		t.Errorf("%s sees %s, want %s", cluster, got, want)
	}
}

// The memory of pending records is bounded. Writes above the bound fail with
// advice, until records have arrived.
func TestRows_MaxBytes(t *testing.T) {
	t.Parallel()
	w := lagged(t, 100_000)
	large := strings.Repeat("v", 30_000)
	var err error
	n := 0
	for ; err == nil; n++ {
		err = w.set(t, "a", fmt.Sprintf("r%d", n), large)
	}
	if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "advance the clock") || n != 4 {
		t.Fatalf("write %d: %v", n, err)
	}
	if err := w.set(t, "a", "r0", large); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a row that is on its way: %v", err)
	}
	if got := w.read(t, "a", engine.ScanOptions{}); strings.Count(got, "=") != 3 {
		t.Errorf("there are %d rows", strings.Count(got, "="))
	}
	w.advance(time.Second.Microseconds())
	w.mustSet(t, "a", "r3", large)
	// The image of the row counts too.
	w.mustSet(t, "b", "r0", "small")
	if w.rows.bytes < 60_000 || w.rows.bytes > 70_000 {
		t.Errorf("%d bytes are on their way", w.rows.bytes)
	}
}

// A row that is written all the time keeps only the records within the lag,
// also across restarts and when the journal is trimmed.
func TestRows_HotRow(t *testing.T) {
	t.Parallel()
	w := lagged(t, 0)
	if err := w.db.UpdateCatalog(t.Context(), func(tx *engine.CatalogTx) error {
		_, err := tx.UpdateTable("t", func(t *engine.Table) error {
			t.Journal = engine.Journal{}
			t.Journal[engine.JournalReplication].Keep = time.Hour
			return nil
		})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	most := 0
	for i := range 3000 {
		w.advance((10 * time.Millisecond).Microseconds())
		w.mustSet(t, "a", "hot", fmt.Sprint(i))
		for _, x := range w.rows.known() {
			if r, ok := x.rows.Get(&row{key: []byte("hot")}); ok {
				most = max(most, len(r.records))
			}
		}
	}
	if most > 250 {
		t.Errorf("%d records are kept of a row with 100 within the lag", most)
	}
	text := func(i int) string { return cellText("hot", "f", "q", 1000, []byte(fmt.Sprint(i))) }
	for range 2 {
		w.want(t, "a", text(2999))
		w.want(t, "b", text(2899))
		w.rows = NewRows(RowsOptions{DB: w.db, Control: w.c})
	}

	// Rare enough for records to grow old, frequent enough for one to be
	// pending.
	if err := w.c.Instance("i").Lag(40 * time.Minute); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		w.advance((30 * time.Minute).Microseconds())
		w.mustSet(t, "a", "hot", fmt.Sprint(i))
		if _, err := w.db.RunGC(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		w.want(t, "a", text(19))
		w.want(t, "b", text(17))
		w.rows = NewRows(RowsOptions{DB: w.db, Control: w.c})
	}
}

// Pending records are loaded again if the clusters could not be read at first.
func TestRows_LoadedAgain(t *testing.T) {
	t.Parallel()
	w := lagged(t, 0)
	w.mustSet(t, "a", "r", "old")
	w.advance(time.Second.Microseconds())
	w.mustSet(t, "a", "r", "new")
	w.rows = NewRows(RowsOptions{DB: w.db, Control: w.c})
	clusters, unreadable := w.c.o.Clusters, errors.New("unreadable")
	w.c.o.Clusters = func(string) ([]*instancedef.StoredCluster, error) { return nil, unreadable }
	if _, err := w.rows.Scan(t.Context(), w.table(t), w.at("b"), engine.ScanOptions{}); !errors.Is(err, unreadable) {
		t.Errorf("a read without clusters: %v", err)
	}
	w.c.o.Clusters = clusters
	w.want(t, "a", cellText("r", "f", "q", 1000, []byte("new")))
	w.want(t, "b", cellText("r", "f", "q", 1000, []byte("old")))
}

// A change whose transaction is undone after recording is never visible.
func TestRows_Undone(t *testing.T) {
	t.Parallel()
	w := lagged(t, 0)
	w.mustSet(t, "a", "r", "1")
	given := errors.New("given up")
	for _, row := range []string{"r", "s"} {
		err := w.db.Update(w.taken(t, "a"), "t", []byte(row), func(tx *engine.RowTx) error {
			return errors.Join(tx.Mutate([]engine.Mutation{{Kind: engine.DeleteFromRow}}), given)
		})
		if !errors.Is(err, given) {
			t.Fatal(err)
		}
	}
	one := cellText("r", "f", "q", 1000, []byte("1"))
	w.want(t, "a", one)
	w.want(t, "b", "")
	w.advance(time.Second.Microseconds())
	w.want(t, "b", one)
	w.settled(t)
}

// A snapshot contains the records that were pending when it was taken.
func TestRows_Restore(t *testing.T) {
	t.Parallel()
	w := lagged(t, 0)
	w.mustSet(t, "a", "r", "1")
	s, err := w.db.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.mustSet(t, "a", "r", "2")
	w.mustSet(t, "b", "s", "2")
	if err := w.db.Restore(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	one := cellText("r", "f", "q", 1000, []byte("1"))
	w.want(t, "a", one)
	w.want(t, "b", "")
	w.advance(time.Second.Microseconds())
	w.want(t, "b", one)
	w.settled(t)
}

// Records of a deleted cluster that no other cluster has seen are lost. Rows,
// sums and readers of the journal are as if they had never been written.
func TestRows_Leaving(t *testing.T) {
	t.Parallel()
	w := lagged(t, 0)
	add := func(cluster string) {
		t.Helper()
		if err := w.db.Mutate(w.taken(t, cluster), "t", []byte("r"), []engine.Mutation{{Kind: engine.AddToCell, Family: "s", Input: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	add("a")
	add("c")
	w.advance(time.Second.Microseconds())
	add("c")
	add("a")
	w.mustSet(t, "c", "lost", "v")
	sum := func(n byte) string { return cellText("r", "s", "", 0, append(make([]byte, 7), n)) }
	w.want(t, "a", sum(3))
	x, err := w.rows.table(w.table(t), "i")
	if err != nil {
		t.Fatal(err)
	}
	x.leaving = "c"
	x.mu.Unlock()
	if err := x.lose(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	w.want(t, "a", sum(3))
	w.want(t, "b", sum(2))
	w.advance(time.Second.Microseconds())
	w.want(t, "a", sum(3))
	w.want(t, "b", sum(3))
	in, err := w.db.ReadJournal("t", engine.JournalOptions{Reason: engine.JournalStream})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var origins string
	for in.Next() {
		origins += in.Record().Origin
	}
	if origins != "aca" || in.Err() != nil {
		t.Errorf("the journal has records of %s, %v", origins, in.Err())
	}
	w.settled(t)
}

// TestRows_Concurrent: writers in three clusters read their own writes, beside
// scans, drops, collections and an advancing clock. In the end, all clusters
// see the same.
func TestRows_Concurrent(t *testing.T) {
	t.Parallel()
	w := lagged(t, 0)
	table := w.table(t)
	var group sync.WaitGroup
	for _, cluster := range modelClusters {
		group.Go(func() {
			for i := range 200 {
				own := fmt.Sprintf("own-%s-%d", cluster, i%7)
				value := fmt.Sprint(i)
				for _, row := range []string{own, fmt.Sprintf("all-%d", i%5)} {
					ctx, err := w.rows.Taken(context.Background(), table, w.at(cluster))
					if err == nil {
						err = w.db.Mutate(ctx, "t", []byte(row), []engine.Mutation{
							{Kind: engine.DeleteFromFamily, Family: "f"},
							{Kind: engine.SetCell, Family: "f", Qualifier: []byte("q"), Timestamp: 1000, Value: []byte(value)},
						})
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
				got := w.read(t, cluster, engine.ScanOptions{Spans: []engine.Span{{Start: []byte(own), End: []byte(own + "\x00")}}})
				if got != cellText(own, "f", "q", 1000, []byte(value)) {
					t.Errorf("%s wrote %s to %s and reads %s", cluster, value, own, got)
					return
				}
			}
		})
	}
	group.Go(func() {
		for i := range 60 {
			w.advance((100 * time.Millisecond).Microseconds())
			var err error
			if i%10 == 0 {
				var ctx context.Context
				if ctx, err = w.rows.Dropping(context.Background(), table, "i"); err == nil {
					err = w.db.DropRows(ctx, "t", engine.Span{Start: []byte("all-3"), End: []byte("all-4")})
				}
			}
			items, dueErr := w.rows.Due()
			err = errors.Join(err, dueErr)
			for _, item := range items {
				err = errors.Join(err, w.rows.Run(context.Background(), item))
			}
			if _, gcErr := w.db.RunGC(context.Background()); err != nil || gcErr != nil || w.rows.Collected(w.time()) != nil {
				t.Error(err, gcErr)
				return
			}
			w.read(t, "b", engine.ScanOptions{Reverse: true})
		}
	})
	group.Wait()
	w.advance(2 * time.Second.Microseconds()) // commit times are ahead of the clock
	all := w.read(t, "a", engine.ScanOptions{})
	w.want(t, "b", all)
	w.want(t, "c", all)
	w.settled(t)
	w.want(t, "a", all) // all rows as stored
}

func FuzzImage(f *testing.F) {
	f.Add(encodeImage(7, cells{
		{Ordinal: 1, Qualifier: []byte("q"), Timestamp: 2000, Value: []byte("v")}, {Ordinal: 1, Qualifier: []byte("q"), Timestamp: -1, Value: []byte{}},
	}))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		since, cs, err := decodeImage(b)
		if err != nil {
			return
		}
		again, same, err := decodeImage(encodeImage(since, cs))
		if err != nil || again != since || len(same) != len(cs) {
			t.Fatalf("%x is read as %d, %v, and that as %d, %v, %v", b, since, cs, again, same, err)
		}
		for i := range cs {
			if compareCells(cs[i], same[i]) != 0 || !bytes.Equal(cs[i].Value, same[i].Value) {
				t.Fatalf("cell %d of %x: %v, %v", i, b, cs[i], same[i])
			}
		}
	})
}
