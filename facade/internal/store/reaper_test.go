package store

import (
	"slices"
	"testing"
	"time"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

// expiring returns an item whose attribute until has the given value, unless that is absent.
func expiring(id string, until attr.Value) attr.Item {
	item := account(id, 1)
	if !until.IsAbsent() {
		item["until"] = until
	}
	return item
}

// setTTL makes the items of a table expire by an attribute, and waits until their due times are
// filled. The attribute "" removes the time to live.
func setTTL(tb testing.TB, s *Store, table, attribute string) {
	tb.Helper()
	if _, err := s.UpdateTable(tb.Context(), table, func(d *tabledef.Table) error {
		d.TTLAttribute = attribute
		return nil
	}); err != nil {
		tb.Fatal(err)
	}
	<-s.FillDueTimes(table)
}

// Items expire at their due times, even if they were written before the table had a time to live.
// All other items stay.
func TestReapExpired(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	at := func(d time.Duration) attr.Value { return attr.Int(begin.Add(d).Unix()) }
	for name, start := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			now := clock.NewFrozen(begin)
			o := testOptions(start(t))
			o.Now = now.Now
			s := openStore(t, o)
			def := newTable(t, s, indexedTable("sessions"))
			items := map[string]attr.Item{}
			add := func(id string, until attr.Value) {
				t.Helper()
				items[id] = expiring(id, until)
				if err := put(ctx, s, def, items[id]); err != nil {
					t.Fatal(err)
				}
			}
			reap := func(want ...string) {
				t.Helper()
				n, err := s.Tidy(ctx)
				if err != nil || n != len(want) {
					t.Errorf("reaped %d items, %v; want %v", n, err, want)
				}
				for _, id := range want {
					delete(items, id)
				}
				m := model{}
				for _, item := range items {
					m[keyText(keyAttrs(def, item))] = item
				}
				got, err := collect(s.Scan(ctx, def, nil, 0, 1, nil))
				if err != nil || len(got) != len(m) {
					t.Errorf("left are %v, %v; want %d items", texts(got), err, len(m))
				}
				if err := checkIndexes(ctx, s, def, m); err != nil {
					t.Error(err)
				}
			}
			add("before, due", at(time.Hour))
			add("before, none", attr.Value{})
			add("before, text", attr.String("1"))
			setTTL(t, s, def.Name, "until")
			add("due", at(time.Hour))
			add("due later", at(2*time.Hour))
			add("fraction", attr.Value{Type: attr.N, Str: at(time.Hour).Str + ".5"})
			add("negative", attr.Int(-5))
			add("milliseconds", attr.Int(begin.UnixMilli()))
			add("five years ago", at(-maxOverdue-time.Second))
			add("nearly five years ago", at(-maxOverdue+2*time.Hour))
			add("put off", at(time.Hour))
			add("put off", at(3*time.Hour))
			reap("nearly five years ago")
			now.Advance(time.Hour - time.Second)
			reap()
			now.Advance(time.Second)
			reap("before, due", "due")
			now.Advance(time.Hour)
			reap("fraction", "due later")

			// A transaction postpones the expiry of one item, and makes another one due earlier.
			off := expiring("put off", at(9*time.Hour))
			early := expiring("early", at(time.Hour))
			if ok, _, err := s.Transact(ctx, RequestToken{}, []*Change{
				replaceBy(def, keyAttrs(def, off), off), replaceBy(def, keyAttrs(def, early), early),
			}); !ok || err != nil {
				t.Fatal(ok, err)
			}
			items["put off"], items["early"] = off, early
			now.Advance(time.Hour)
			reap("early")

			// An outdated due time deletes nothing.
			c, err := s.lookup(ctx, def.Name)
			if err != nil {
				t.Fatal(err)
			}
			stale := expiring("put off", at(0))
			placed, ok, err := c.layout.due.place(stale, s.nowMicros())
			if err != nil || !ok {
				t.Fatal(ok, err)
			}
			if _, err := s.putEntry(ctx, indexPut{index: c.layout.due, row: placed.Row, cells: placed.Cells, over: anyEntry}, s.nowMicros()); err != nil {
				t.Fatal(err)
			}
			reap()

			due := c.def.TTLTable
			setTTL(t, s, def.Name, "")
			if _, err := collectRows(t, s, due); err == nil {
				t.Errorf("the table %s of due times is still there", due)
			}
			now.Advance(24 * time.Hour)
			reap()
			setTTL(t, s, def.Name, "until")
			reap("put off")
			if _, err := s.DeleteTable(ctx, def.Name); err != nil {
				t.Fatal(err)
			}
			if n, err := s.Tidy(ctx); n != 0 || err != nil {
				t.Errorf("reaped %d items of no table, %v", n, err)
			}
		})
	}
}

// NextDue stops at each time at which Tidy has work, and nowhere else.
func TestNextDue(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	at := func(d time.Duration) attr.Value { return attr.Int(begin.Add(d).Unix()) }
	for name, start := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			now := clock.NewFrozen(begin)
			o := testOptions(start(t))
			o.Now, o.StatusDelays.Delete, o.StatusDelays.TimeToLive = now.Now, 90*time.Minute, time.Minute
			s := openStore(t, o)
			def := newTable(t, s, indexedTable("sessions"))
			for id, until := range map[string]attr.Value{
				"none": {}, "text": attr.String("1"), "milliseconds": attr.Int(begin.UnixMilli()), "negative": attr.Int(-5),
				"overdue": at(-time.Hour), "an hour": at(time.Hour), "also": at(time.Hour), "two": at(2 * time.Hour),
				"fraction": {Type: attr.N, Str: at(time.Hour).Str + ".5"}, "tiny": {Type: attr.N, Str: at(time.Hour).Str + ".0000000000000001"},
			} {
				if err := put(ctx, s, def, expiring(id, until)); err != nil {
					t.Fatal(err)
				}
			}
			setTTL(t, s, def.Name, "until")
			if _, err := s.UpdateTable(ctx, def.Name, func(d *tabledef.Table) error {
				d.TTLChanged = begin
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			gone := newTable(t, s, indexedTable("gone"))
			if _, err := s.DeleteTable(ctx, gone.Name); err != nil {
				t.Fatal(err)
			}
			type stop struct {
				after   time.Duration
				deleted int
			}
			var stops []stop
			end := begin.Add(24 * time.Hour)
			for len(stops) < 10 {
				next, ok, err := s.NextDue(ctx, now.Now(), end)
				if err != nil {
					t.Fatal(err)
				}
				if !ok {
					break
				}
				now.AdvanceTo(next)
				n, err := s.Tidy(ctx)
				if err != nil {
					t.Fatal(err)
				}
				stops = append(stops, stop{next.Sub(begin), n})
			}
			want := []stop{{time.Minute, 1}, {time.Hour, 2}, {time.Hour + time.Second, 2}, {90 * time.Minute, 0}, {2 * time.Hour, 1}}
			if !slices.Equal(stops, want) {
				t.Errorf("stopped at %v, want %v", stops, want)
			}
		})
	}
}

// collectRows reads all rows of a Bigtable table.
func collectRows(tb testing.TB, s *Store, table string) (rows []layout.Row, err error) {
	tb.Helper()
	for row, err := range s.bt.Read(tb.Context(), btclient.Read{Table: table, Spans: []layout.Span{{}}}) {
		if err != nil {
			return rows, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// A start resumes the filling of due times.
func TestReapExpired_Restart(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := testOptions(backends["emu"](t))
	s := openStore(t, o)
	def := newTable(t, s, indexedTable("sessions"))
	if err := put(ctx, s, def, expiring("a", attr.Int(o.Now().Unix()))); err != nil {
		t.Fatal(err)
	}
	if _, err := s.UpdateTable(ctx, def.Name, func(d *tabledef.Table) error {
		d.TTLAttribute = "until"
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, o)
	s.Wait()
	if n, err := s.reapExpired(ctx); n != 1 || err != nil {
		t.Errorf("reaped %d items, %v", n, err)
	}
	if got, err := s.Table(ctx, def.Name); err != nil || got.TTLFilling {
		t.Errorf("definition %+v, %v", got, err)
	}
}
