package replica

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/emu/internal/changes"
	"github.com/tabletop-emu/tabletop/engine"
)

// journaled returns a world with a store. Its table t is recorded for change
// streams and replication.
func journaled(t rapid.TB) (*world, *engine.DB) {
	t.Helper()
	w := &world{now: 1_700_000_000_000_000, stored: clustersNamed(modelClusters...)}
	db, err := engine.Open(engine.Options{Now: w.time})
	if err != nil {
		t.Fatal(err)
	}
	w.db = db
	err = db.UpdateCatalog(context.Background(), func(tx *engine.CatalogTx) error {
		_, err := tx.CreateTable(engine.Table{Name: "t", Families: []engine.Family{{Name: "f"}}, Journal: engine.Journal{
			engine.JournalStream: {Keep: 24 * time.Hour}, engine.JournalReplication: {Keep: 24 * time.Hour},
		}})
		return err
	})
	if err == nil {
		w.c, err = NewControl(Options{
			Now: w.time, Last: db.JournalLast,
			Clusters: w.clusters,
			Keep:     func(string, time.Duration) error { return nil },
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return w, db
}

// write writes to a row, as a cluster.
func write(t rapid.TB, db *engine.DB, origin, row string) (number uint64, micros int64) {
	t.Helper()
	err := db.Mutate(engine.WithOrigin(context.Background(), origin), "t", []byte(row), []engine.Mutation{{Kind: engine.SetCell, Family: "f", Timestamp: 1000}})
	if err != nil {
		t.Fatal(err)
	}
	return db.JournalLast()
}

// consumer reads a cluster's change stream with tokens.
type consumer struct {
	cluster  string
	reader   *Reader
	token    changes.Token
	seen     map[uint64]bool
	last     map[string]uint64 // by origin
	low, due int64
}

func (c *consumer) close() {
	if c.reader != nil {
		c.reader.Close()
		c.reader = nil
	}
}

// read reads all visible records.
func (c *consumer) read(t *rapid.T, w *world, db *engine.DB) error {
	var err error
	if c.reader == nil {
		c.reader, err = NewReader(ReaderOptions{
			DB: db, Table: "t", Journal: engine.JournalOptions{Reason: engine.JournalStream, After: c.token.Position.Number},
			At: At{Control: w.c, Instance: "i", Cluster: c.cluster},
		})
		if err != nil {
			return err
		}
	}
	for c.reader.Next() {
		r := c.reader.Record()
		position := &c.token.Position
		wanted := position.Wants(r.Row, r.Origin, r.Number)
		position.Advance(c.reader.Position().Number)
		position.AdvanceOf(c.token.Partition, r.Origin, r.Number)
		if !wanted {
			continue
		}
		if c.seen[r.Number] || r.Number < c.last[r.Origin] {
			t.Fatalf("%s: record %d of %s after %d of it; seen: %v", c.cluster, r.Number, r.Origin, c.last[r.Origin], c.seen[r.Number])
		}
		if r.Micros < c.low {
			t.Fatalf("%s: record %d was committed at %d, and none to come before %d", c.cluster, r.Number, r.Micros, c.low)
		}
		c.seen[r.Number], c.last[r.Origin] = true, r.Number
		c.low = max(c.low, c.reader.Position().Micros)
	}
	if c.reader.Err() != nil {
		return c.reader.Err()
	}
	c.token.Position.Advance(c.reader.Position().Number)
	c.low = max(c.low, c.reader.Position().Micros)
	c.due = 0
	if at, ok := c.reader.Due(); ok {
		if c.due = at.UnixMicro(); c.due <= w.now {
			t.Fatalf("%s: there was nothing at %d, and there is more at %d", c.cluster, w.now, c.due)
		}
	}
	return nil
}

// TestReader: each cluster reads exactly the records that the model delivers to
// it, once, in the order of each origin. This holds through any tokens and
// restarts of readers. Consistency tokens agree with it.
func TestReader(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, db := journaled(t)
		defer func() {
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}()
		m := newModel(w)
		var consumers []*consumer
		for _, id := range append(slices.Clone(modelClusters), modelJoins) {
			c := &consumer{cluster: id, seen: map[uint64]bool{}, last: map[string]uint64{}, token: changes.Token{Partition: changes.Split(nil)[0]}}
			defer c.close()
			consumers = append(consumers, c)
		}
		var tokens []Token
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			m.step(t, func(origin string) (uint64, int64) {
				return write(t, db, origin, rapid.SampledFrom([]string{"r", "s"}).Draw(t, "row"))
			})
			if m.overtaken {
				return
			}
			for _, c := range consumers[:len(m.serving)] {
				switch rapid.IntRange(0, 5).Draw(t, c.cluster+" reads") {
				case 0: // later
					continue
				case 1: // from its token
					c.close()
					var err error
					if c.token, err = changes.Decode(c.token.Encode()); err != nil {
						t.Fatal(err)
					}
				}
				err := c.read(t, w, db)
				if m.failed[c.cluster] {
					if c.close(); err == nil {
						t.Fatalf("%s has failed, and is read", c.cluster)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range m.records {
					if c.seen[r.number] == r.pending(c.cluster) {
						t.Fatalf("%s has seen record %d of %s: %v", c.cluster, r.number, r.origin, c.seen[r.number])
					}
				}
			}
			_, last := db.JournalLast()
			tokens = append(tokens, NewToken(1, last, w.time()))
			for _, token := range tokens {
				got, err := w.c.View("i").Consistent(db, "t", w.stored, token.Micros, w.time())
				if want := m.consistent(token.Micros); err != nil || got != want {
					t.Fatalf("a token of %d is consistent: %v, %v, want %v", token.Micros, got, err, want)
				}
			}
		}
	})
}

// Records are read in the order in which they become visible, even long
// afterwards.
func TestReader_Order(t *testing.T) {
	t.Parallel()
	w, db := journaled(t)
	t.Cleanup(func() { _ = db.Close() })
	in := w.c.Instance("i")
	if err := errors.Join(in.Lag(3*time.Second), in.LagBetween("c", "b", time.Second)); err != nil {
		t.Fatal(err)
	}
	for i, origin := range []string{"a", "b", "", "c", "a", "b", "c"} {
		if i == 5 {
			if err := in.Pause("a", "b"); err != nil { // from 10 s to 14 s
				t.Fatal(err)
			}
		}
		write(t, db, origin, "r")
		w.advance(2 * time.Second.Microseconds())
	}
	if err := in.Resume("a", "b"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r, err := NewReader(ReaderOptions{DB: db, Table: "t", Journal: engine.JournalOptions{Reason: engine.JournalStream}, At: At{Control: w.c, Instance: "i", Cluster: "b"}})
		if err != nil {
			t.Fatal(err)
		}
		var got string
		for r.Next() {
			got += fmt.Sprintf("%s%d ", r.Record().Origin, (r.Record().Micros-1_700_000_000_000_000)/1e6)
		}
		// a of 0 s arrives at 3 s, c of 6 s at 7 s, c of 12 s at 13 s, and a of 8 s at 14 s.
		if want := "b2 a0 4 c6 b10 c12 a8 "; r.Err() != nil || got != want {
			t.Errorf("got %s, %v; want %s", got, r.Err(), want)
		}
		r.Close()
		w.advance(time.Hour.Microseconds())
	}
}

// A reader of a store without the table returns an error, and holds no
// resources.
func TestReader_Errors(t *testing.T) {
	t.Parallel()
	w, db := journaled(t)
	t.Cleanup(func() { _ = db.Close() })
	at := At{Control: w.c, Instance: "i", Cluster: "a"}
	if _, err := NewReader(ReaderOptions{DB: db, Table: "none", At: at}); !errors.Is(err, engine.ErrTableNotFound) {
		t.Errorf("got %v", err)
	}
	if err := w.c.Instance("i").Pause("a", "b"); err != nil {
		t.Fatal(err)
	}
	ok, err := w.c.View("i").Consistent(db, "none", clustersNamed("a", "b"), w.now, w.time())
	if ok || !errors.Is(err, engine.ErrTableNotFound) {
		t.Errorf("got %v, %v", ok, err)
	}
	creating := clustersNamed("a", "b")
	creating[1].At = w.time().Add(time.Second)
	if ok, err := (*View)(nil).Consistent(db, "t", creating, w.now, w.time()); ok || err != nil {
		t.Errorf("a cluster that is being created sees all: %v, %v", ok, err)
	}
}
