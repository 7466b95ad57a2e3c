package replica

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/engine"
)

// rowsWorld is a world with a store and its Rows. Its table has the families f,
// which keeps two versions, and s of sums.
type rowsWorld struct {
	*world
	db   *engine.DB
	rows *Rows
}

func newRowsWorld(t rapid.TB, maxBytes int64) *rowsWorld {
	t.Helper()
	w, db := journaled(t)
	rw := &rowsWorld{world: w, db: db, rows: NewRows(RowsOptions{DB: db, Control: w.c, MaxBytes: maxBytes})}
	rw.families(t, engine.FamilyChange{Update: &engine.Family{Name: "f", GC: twoVersions}},
		engine.FamilyChange{Create: &engine.Family{Name: "s", Aggregate: engine.AggregateSum}})
	return rw
}

var twoVersions = engine.GCRule{Kind: engine.MaxVersions, Versions: 2}

func (w *rowsWorld) families(t rapid.TB, changes ...engine.FamilyChange) {
	t.Helper()
	err := w.db.UpdateCatalog(context.Background(), func(tx *engine.CatalogTx) error {
		_, err := tx.ModifyFamilies("t", changes)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (w *rowsWorld) at(cluster string) At { return At{Control: w.c, Instance: "i", Cluster: cluster} }

func (w *rowsWorld) table(t rapid.TB) *engine.Table {
	t.Helper()
	table, err := w.db.Table("t")
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// taken returns the context for writes in a cluster.
func (w *rowsWorld) taken(t rapid.TB, cluster string) context.Context {
	t.Helper()
	ctx, err := w.rows.Taken(context.Background(), w.table(t), w.at(cluster))
	if err != nil {
		t.Fatal(err)
	}
	return ctx
}

// read returns the rows that a cluster sees, as text.
func (w *rowsWorld) read(t rapid.TB, cluster string, o engine.ScanOptions) string {
	t.Helper()
	s, err := w.rows.Scan(context.Background(), w.table(t), w.at(cluster), o)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for s.NextRow() {
		for s.NextCell() {
			c := s.Cell()
			out = append(out, cellText(string(s.Row()), c.Family, string(c.Qualifier), c.TimestampMicros, c.Value))
		}
	}
	if err := errors.Join(s.Err(), s.Close()); err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, " ")
}

func cellText(row, family, qualifier string, micros int64, value []byte) string {
	return fmt.Sprintf("%s/%s:%s@%d=%x", row, family, qualifier, micros, value)
}

// event is an event of a naive model: a record, or a change that is visible
// everywhere at once.
type event struct {
	record  *modelRecord // nil: visible everywhere at once
	row     string
	muts    []engine.Mutation
	drops   string // prefix of the rows to drop
	collect bool
	family  string // the family to drop
}

// column and version name a cell of the model.
type column struct{ row, family, qualifier string }

// modelRows holds the cells of the model: values by column and timestamp.
type modelRows map[column]map[int64][]byte

// fold computes naively the rows that a cluster sees.
func fold(events []event, cluster string) modelRows {
	rows := modelRows{}
	for _, e := range events {
		switch {
		case e.record != nil && e.record.pending(cluster):
		case e.drops != "":
			maps.DeleteFunc(rows, func(c column, _ map[int64][]byte) bool { return strings.HasPrefix(c.row, e.drops) })
		case e.family != "":
			maps.DeleteFunc(rows, func(c column, _ map[int64][]byte) bool { return c.family == e.family })
		case e.collect:
			for c, versions := range rows {
				if c.family == "f" {
					for _, old := range slices.Sorted(maps.Keys(versions))[:max(0, len(versions)-2)] {
						delete(versions, old)
					}
				}
			}
		default:
			for _, m := range e.muts {
				rows.apply(e.row, m)
			}
		}
	}
	return rows
}

func (rows modelRows) apply(row string, m engine.Mutation) {
	c := column{row, m.Family, string(m.Qualifier)}
	switch m.Kind {
	case engine.SetCell, engine.AddToCell:
		if rows[c] == nil {
			rows[c] = map[int64][]byte{}
		}
		value := m.Value
		if m.Kind == engine.AddToCell {
			sum := m.Input
			if was := rows[c][m.Timestamp]; was != nil {
				sum += int64(binary.BigEndian.Uint64(was))
			}
			value = binary.BigEndian.AppendUint64(nil, uint64(sum))
		}
		rows[c][m.Timestamp] = value
	case engine.DeleteFromColumn:
		maps.DeleteFunc(rows[c], func(at int64, _ []byte) bool { return at >= m.Start && (m.End == 0 || at < m.End) })
	case engine.DeleteFromFamily, engine.DeleteFromRow:
		maps.DeleteFunc(rows, func(c column, _ map[int64][]byte) bool {
			return c.row == row && (m.Kind == engine.DeleteFromRow || c.family == m.Family)
		})
	case engine.MergeToCell:
	}
}

// text formats the rows as read does, with families in the table's order.
func (rows modelRows) text(families []engine.Family) string {
	var out []string
	columns := slices.SortedFunc(maps.Keys(rows), func(a, b column) int {
		place := func(c column) int {
			return slices.IndexFunc(families, func(f engine.Family) bool { return f.Name == c.family })
		}
		if a.row != b.row {
			return strings.Compare(a.row, b.row)
		}
		if place(a) != place(b) {
			return place(a) - place(b)
		}
		return strings.Compare(a.qualifier, b.qualifier)
	})
	for _, c := range columns {
		versions := slices.Sorted(maps.Keys(rows[c]))
		slices.Reverse(versions)
		for _, at := range versions {
			out = append(out, cellText(c.row, c.family, c.qualifier, at, rows[c][at]))
		}
	}
	return strings.Join(out, " ")
}

// TestTrap163_Convergence: property (d) of replication. Through any writes,
// delays, pauses, failures, deliveries, drops, collections and restarts, each
// cluster reads the fold of its visible records. In the end, all clusters read
// the same.
func TestTrap163_Convergence(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newRowsWorld(t, 0)
		defer func() {
			if err := w.db.Close(); err != nil {
				t.Fatal(err)
			}
		}()
		m := newModel(w.world)
		restarts := rapid.Bool().Draw(t, "restarts")
		var events []event
		check := func() {
			families := w.table(t).Families
			for _, id := range m.serving {
				if got, want := w.read(t, id, engine.ScanOptions{}), fold(events, id).text(families); got != want {
					t.Fatalf("%s sees\n%s, want\n%s", id, got, want)
				}
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch what := rapid.IntRange(0, 19).Draw(t, "what is done"); {
			case what == 0 && restarts:
				w.rows = NewRows(RowsOptions{DB: w.db, Control: w.c})
				if w.c.View("i") == nil {
					if err := w.rows.Clear(context.Background()); err != nil {
						t.Fatal(err)
					}
				}
			case what == 0:
				if _, err := w.db.RunGC(context.Background()); err != nil {
					t.Fatal(err)
				}
				if err := w.rows.Collected(w.time()); err != nil {
					t.Fatal(err)
				}
				events = append(events, event{collect: true})
			case what == 1 && !restarts: // drops delay nothing after a restart
				ctx, err := w.rows.Dropping(context.Background(), w.table(t), "i")
				prefix := rapid.SampledFrom([]string{"r", "r1", "s"}).Draw(t, "dropped")
				if err == nil {
					err = w.db.DropRows(ctx, "t", engine.Span{Start: []byte(prefix), End: []byte(prefix + "~")})
				}
				if err != nil {
					t.Fatal(err)
				}
				events = append(events, event{drops: prefix})
			case what == 2:
				w.families(t, engine.FamilyChange{Drop: "f"}, engine.FamilyChange{Create: &engine.Family{Name: "f", GC: twoVersions}})
				events = append(events, event{family: "f"})
			case what == 3:
				for _, x := range w.rows.known() {
					if err := x.sweep(context.Background()); err != nil {
						t.Fatal(err)
					}
				}
			default:
				before := len(m.records)
				e := event{}
				m.step(t, func(origin string) (uint64, int64) {
					e.row, e.muts = w.change(t, origin, fold(events, origin))
					return w.db.JournalLast()
				})
				if len(m.records) > before {
					e.record = m.records[before]
					events = append(events, e)
				}
				if m.overtaken {
					return
				}
			}
			check()
		}
		for p := range m.failed {
			if m.failed[p] {
				m.failed[p] = false
				if err := w.c.Instance("i").Recover(p); err != nil {
					t.Fatal(err)
				}
			}
		}
		for p := range m.paused {
			if m.paused[p] {
				m.paused[p] = false
				if err := w.c.Instance("i").Resume(p.from, p.to); err != nil {
					t.Fatal(err)
				}
			}
		}
		w.advance(time.Second.Microseconds())
		m.deliver()
		check()
		w.settled(t)
	})
}

// settled checks that no state remains for rows that are visible everywhere.
func (w *rowsWorld) settled(t rapid.TB) {
	t.Helper()
	w.taken(t, "a")
	items, err := w.rows.Due()
	for _, i := range items {
		err = errors.Join(err, w.rows.Run(context.Background(), i))
	}
	if err != nil {
		t.Fatal(err)
	}
	if items, err := w.rows.Due(); err != nil || len(items) > 0 {
		t.Fatalf("there is work again: %v, %v", items, err)
	}
	for _, x := range w.rows.known() {
		if x.rows.Len() > 0 || len(x.queues) > 0 {
			t.Fatalf("%d rows are kept, and the records of %d clusters", x.rows.Len(), len(x.queues))
		}
	}
	if w.rows.bytes != 0 {
		t.Fatalf("%d bytes are kept", w.rows.bytes)
	}
	if images, err := w.db.Resources(imagePrefix); err != nil || len(images) > 0 {
		t.Fatalf("%d images are stored, %v", len(images), err)
	}
}

// change changes a row at random, as a cluster with the visible rows sees, and
// returns the recorded mutations.
func (w *rowsWorld) change(t *rapid.T, cluster string, sees modelRows) (row string, muts []engine.Mutation) {
	row = rapid.SampledFrom([]string{"r1", "r2", "s"}).Draw(t, "row")
	ctx := w.taken(t, cluster)
	qualifier := []byte(rapid.SampledFrom([]string{"", "q"}).Draw(t, "qualifier"))
	micros := rapid.Int64Range(1, 4).Draw(t, "timestamp") * 1000
	if rapid.IntRange(0, 4).Draw(t, "increments") == 0 {
		qualifier = []byte("n")
		got, err := w.db.ReadModifyWrite(ctx, "t", []byte(row), []engine.RuleReadModifyWrite{{Family: "f", Qualifier: qualifier, Increment: 1}})
		if err != nil {
			t.Fatal(err)
		}
		versions := sees[column{row, "f", "n"}]
		want := uint64(1)
		if times := slices.Sorted(maps.Keys(versions)); len(times) > 0 {
			want += binary.BigEndian.Uint64(versions[times[len(times)-1]])
		}
		if n := binary.BigEndian.Uint64(got[0].Value); n != want {
			t.Fatalf("%s counts to %d, want %d", cluster, n, want)
		}
		return row, []engine.Mutation{{Kind: engine.SetCell, Family: "f", Qualifier: qualifier, Timestamp: got[0].Timestamp, Value: got[0].Value}}
	}
	for range rapid.IntRange(1, 3).Draw(t, "mutations") {
		m := engine.Mutation{Family: "f", Qualifier: qualifier}
		switch rapid.IntRange(0, 6).Draw(t, "kind") {
		case 0, 1, 2:
			m.Kind, m.Timestamp, m.Value = engine.SetCell, micros, rapid.SliceOfN(rapid.Byte(), 0, 2).Draw(t, "value")
		case 3:
			m.Kind, m.Family, m.Timestamp, m.Input = engine.AddToCell, "s", micros, rapid.Int64Range(-2, 2).Draw(t, "input")
		case 4:
			m.Kind, m.Start, m.End = engine.DeleteFromColumn, micros, micros+rapid.Int64Range(0, 2).Draw(t, "length")*1000
			if m.End == m.Start {
				m.End = 0
			}
		case 5:
			m.Kind, m.Qualifier = engine.DeleteFromFamily, nil
		case 6:
			m.Kind, m.Family, m.Qualifier = engine.DeleteFromRow, "", nil
		}
		muts = append(muts, m)
	}
	if err := w.db.Mutate(ctx, "t", []byte(row), muts); err != nil {
		t.Fatal(err)
	}
	return row, muts
}
