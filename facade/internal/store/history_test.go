package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/store/history"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/internal/test/peer"
)

// recoverable turns on point-in-time recovery of a table.
func recoverable(t *testing.T, s *Store, name string) *tabledef.Table {
	t.Helper()
	def, err := s.ChangeLog(t.Context(), name, func(d *tabledef.Table) error {
		d.Recovery = &tabledef.Recovery{Since: s.o.Now(), Days: tabledef.MaxRecoveryDays}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return def
}

// past is a past state of a table in the model: values by key.
type past map[string]string

func (p past) clone() past {
	q := past{}
	for k, v := range p {
		q[k] = v
	}
	return q
}

// itemsAt reads the state of a table before a sequence number.
func itemsAt(t *testing.T, r *history.Reader, def *tabledef.Table, before uint64) past {
	t.Helper()
	got := past{}
	for i, err := range r.Items(t.Context(), def, r.NewScratch(), before) {
		if err != nil {
			t.Fatal(err)
		}
		item, err := i.Attributes()
		if err != nil {
			t.Fatal(err)
		}
		if text := string(attr.AppendItemJSON(nil, item)); text != string(i.JSON) || item.Size() != i.Size {
			t.Fatalf("the item %s is given as %s, of %d bytes", text, i.JSON, i.Size)
		}
		if _, ok := got[item["p"].Str]; ok {
			t.Fatalf("item %s comes twice", item["p"].Str)
		}
		got[item["p"].Str] = item["v"].Str
	}
	return got
}

// write puts or deletes a random item, one of keys items, in the table and in the model.
func (p past) write(t *testing.T, s *Store, def *tabledef.Table, rnd *rand.Rand, keys int) {
	t.Helper()
	key, value := fmt.Sprint(rnd.IntN(keys)), fmt.Sprint(rnd.IntN(1000))
	var err error
	if rnd.IntN(3) == 0 {
		delete(p, key)
		err = remove(t.Context(), s, def, attr.Item{"p": attr.String(key)})
	} else {
		p[key] = value
		err = put(t.Context(), s, def, attr.Item{"p": attr.String(key), "v": attr.String(value)})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// After 200 random writes over a minute, the state of the table at each second is known, although
// its shards split, and a stream began and ended.
func TestHistory_EachSecond(t *testing.T) {
	t.Parallel()
	now := clock.NewFrozen(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	o := testOptions(peer.Bigtable(t, now))
	o.Now, o.Shards = now.Now, tabledef.Shards{Rotation: 10 * time.Second, Slots: []int{1, 2, 4}}
	s := openStore(t, o)
	newTable(t, s, tabledef.Table{Name: "tab", Key: testSchemas["S"]})
	rnd := rand.New(rand.NewPCG(1, 2))
	model := past{}
	def, err := s.Table(t.Context(), "tab")
	if err != nil {
		t.Fatal(err)
	}
	for range 20 { // writes from before the log
		model.write(t, s, def, rnd, 30)
	}
	def = recoverable(t, s, "tab")
	seconds := []past{model.clone()}
	times := []time.Time{now.Now()}
	begin := now.Now()
	for i := range 200 {
		switch i {
		case 60, 120:
			if def, err = s.UpdateTable(t.Context(), "tab", func(d *tabledef.Table) error {
				d.StreamEnabled, d.StreamView = i == 60, "KEYS_ONLY"
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		next := begin.Add(time.Duration(i+1) * 60 * time.Second / 200).Truncate(time.Millisecond)
		for second := times[len(times)-1].Add(time.Second); !second.After(next); second = second.Add(time.Second) {
			seconds, times = append(seconds, model.clone()), append(times, second)
		}
		now.AdvanceTo(next)
		model.write(t, s, def, rnd, 30)
		if last := len(times) - 1; times[last].Equal(next) { // writes at that time count
			seconds[last] = model.clone()
		}
	}
	if len(seconds) != 61 {
		t.Fatalf("%d seconds", len(seconds))
	}
	for i, want := range seconds {
		if d := gocmp.Diff(want, itemsAt(t, s.History, def, history.Before(times[i]))); d != "" {
			t.Errorf("%v (-want +got):\n%s", times[i], d)
		}
	}
	names, err := s.BigtableTables(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(names) != 3 { // the catalog, the table, its log
		t.Errorf("tables %v are left", names)
	}
}

// Writes while a past state is read do not change the result, whether they happen before an item
// is read, after that, or after its batch.
func TestHistory_WhileItIsWritten(t *testing.T) {
	t.Parallel()
	seeds := uint64(15)
	if long.Enabled() {
		seeds = 40
	}
	for seed := range seeds {
		now := clock.NewFrozen(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
		o := testOptions(peer.Bigtable(t, now))
		o.Now, o.Shards = now.Now, tabledef.Shards{Slots: []int{3}}
		s := openStore(t, o)
		newTable(t, s, tabledef.Table{Name: "tab", Key: testSchemas["S"]})
		def := recoverable(t, s, "tab")
		rnd := rand.New(rand.NewPCG(seed, 1))
		model := past{}
		for range 60 {
			model.write(t, s, def, rnd, 40)
		}
		before, err := s.History.Now(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := model.clone()
		for range rnd.IntN(20) {
			model.write(t, s, def, rnd, 40)
		}
		ho := s.historyOptions()
		ho.BatchItems = 1 + rnd.IntN(7)
		scan := ho.Scan
		ho.Scan = func(ctx context.Context, t2 *tabledef.Table) iter.Seq2[layout.Stored, error] {
			return func(yield func(layout.Stored, error) bool) {
				for item, err := range scan(ctx, t2) {
					if rnd.IntN(2) == 0 {
						model.write(t, s, def, rnd, 40)
					}
					if !yield(item, err) {
						return
					}
					if rnd.IntN(2) == 0 {
						model.write(t, s, def, rnd, 40)
					}
				}
			}
		}
		if d := gocmp.Diff(want, itemsAt(t, history.New(ho), def, before)); d != "" {
			t.Fatalf("seed %d (-want +got):\n%s", seed, d)
		}
	}
}

// Reader.Changes returns the states of a changed item at both times.
func TestHistory_Changes(t *testing.T) {
	t.Parallel()
	now := clock.NewFrozen(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	o := testOptions(peer.Bigtable(t, now))
	o.Now, o.Shards = now.Now, tabledef.Shards{Rotation: time.Second, Slots: []int{1, 3}}
	s := openStore(t, o)
	newTable(t, s, tabledef.Table{Name: "tab", Key: testSchemas["S"]})
	def := recoverable(t, s, "tab")
	rnd := rand.New(rand.NewPCG(1, 2))
	model := past{}
	var ends []uint64
	var at []past
	for range 10 {
		for range 20 {
			now.Advance(100 * time.Millisecond)
			model.write(t, s, def, rnd, 30)
		}
		end, err := s.History.Now(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ends, at = append(ends, end), append(at, model.clone())
	}
	ho := s.historyOptions()
	ho.BatchItems = 7
	replayed := past{}
	from := uint64(0)
	for i, end := range ends {
		r := history.New(ho)
		for c, err := range r.Changes(t.Context(), def, r.NewScratch(), from, end) {
			if err != nil {
				t.Fatal(err)
			}
			key := c.Key["p"].Str
			if old, ok := replayed[key]; (c.Old.JSON != nil) != ok || ok && !strings.Contains(string(c.Old.JSON), `"`+old+`"`) {
				t.Errorf("item %s was %s, the change says %s", key, old, c.Old.JSON)
			}
			if delete(replayed, key); c.New.JSON != nil {
				replayed[key] = at[i][key]
				if !strings.Contains(string(c.New.JSON), `"`+at[i][key]+`"`) {
					t.Errorf("item %s is %s, the change says %s", key, at[i][key], c.New.JSON)
				}
			}
			if c.At.Sequence < from || c.At.Sequence >= end {
				t.Errorf("a change at %v is between %d and %d", c.At, from, end)
			}
		}
		if d := gocmp.Diff(at[i], replayed); d != "" {
			t.Fatalf("after %d (-want +got):\n%s", i, d)
		}
		from = end
	}
}

// A read of a past state waits until the records of pending writes are in the log.
func TestHistory_WaitsForWritesUnderWay(t *testing.T) {
	t.Parallel()
	s := openStore(t, testOptions(peer.Bigtable(t, clock.New())))
	newTable(t, s, tabledef.Table{Name: "tab", Key: testSchemas["S"]})
	def := recoverable(t, s, "tab")
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan int)
	go func() { // writes 1, 2, 3, … to ten items, in turn
		n := 0
		for ; ctx.Err() == nil; n++ {
			if err := put(t.Context(), s, def, attr.Item{"p": attr.String(fmt.Sprint(n % 10)), "v": attr.String(fmt.Sprint(n))}); err != nil {
				t.Error(err)
			}
		}
		done <- n
	}()
	for range 50 {
		before, err := s.History.Now(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := itemsAt(t, s.History, def, before)
		last := -1
		for _, v := range got {
			var n int
			_, _ = fmt.Sscan(v, &n)
			last = max(last, n)
		}
		for n := max(0, last-9); n <= last; n++ { // nothing is missing, and nothing is newer
			if got[fmt.Sprint(n%10)] != fmt.Sprint(n) {
				t.Fatalf("with %d there is %v", last, got)
			}
		}
	}
	stop()
	<-done
}

func TestHistory_NeedsALog(t *testing.T) {
	t.Parallel()
	s := openStore(t, testOptions(peer.Bigtable(t, clock.New())))
	def := newTable(t, s, tabledef.Table{Name: "tab", Key: testSchemas["S"], StreamEnabled: true, StreamView: "KEYS_ONLY"})
	for _, err := range s.History.Items(t.Context(), def, s.History.NewScratch(), 1) {
		if !errors.Is(err, history.ErrNoLog) {
			t.Errorf("without both images: %v", err)
		}
	}
	for _, err := range s.History.Records(t.Context(), def, 0, 1) {
		if !errors.Is(err, history.ErrNoLog) {
			t.Errorf("without both images: %v", err)
		}
	}
}
