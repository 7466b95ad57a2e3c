package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/store/marks"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/test/intercept"
	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/internal/test/peer"
	"github.com/tabletop-emu/tabletop/internal/test/property"
)

// indexedTable returns a table with a global index of each projection, a local index, and
// global indexes with several key attributes.
func indexedTable(name string) tabledef.Table {
	key := func(hash ...attr.KeyAttr) tabledef.IndexKey { return tabledef.IndexKey{Hash: hash} }
	sorted := func(hash attr.KeyAttr, sort ...attr.KeyAttr) tabledef.IndexKey {
		return tabledef.IndexKey{Hash: []attr.KeyAttr{hash}, Range: sort}
	}
	return tabledef.Table{Name: name, Key: testSchemas["SN"], Indexes: []tabledef.Index{
		{Name: "all", Global: true, Key: sorted(stringKey("g"), numberKey("h")), Projection: tabledef.ProjectAll},
		{Name: "keys", Global: true, Key: key(stringKey("g")), Projection: tabledef.ProjectKeysOnly},
		{Name: "some", Global: true, Key: sorted(numberKey("h"), stringKey("g")), Projection: tabledef.ProjectInclude, NonKey: []string{"v"}},
		{Name: "local", Key: sorted(stringKey("p"), stringKey("g")), Projection: tabledef.ProjectAll},
		{Name: "pair", Global: true, Key: key(stringKey("g"), numberKey("h")), Projection: tabledef.ProjectKeysOnly},
		{Name: "sorted", Global: true, Key: sorted(stringKey("p"), stringKey("g"), numberKey("h")), Projection: tabledef.ProjectInclude, NonKey: []string{"v"}},
	}}
}

func genIndexedItem(t *rapid.T, key attr.Item) attr.Item {
	item := maps.Clone(key)
	if rapid.IntRange(0, 4).Draw(t, "g?") > 0 {
		item["g"] = attr.String(rapid.SampledFrom([]string{"x", "y", "y\x00", "zz"}).Draw(t, "g"))
	}
	if rapid.IntRange(0, 4).Draw(t, "h?") > 0 {
		item["h"] = attr.Int(int64(rapid.IntRange(-2, 2).Draw(t, "h")))
	}
	if rapid.Bool().Draw(t, "v?") {
		item["v"] = genValue.Draw(t, "v")
	}
	if rapid.Bool().Draw(t, "w?") {
		item["w"] = genValue.Draw(t, "w")
	}
	return item
}

// projected returns the expected entry of an item in an index, or nil if it has no entry.
func projected(t *tabledef.Table, ix tabledef.Index, item attr.Item) attr.Item {
	names := []string{t.Key.Hash.Name, t.Key.Range.Name}
	for _, k := range ix.Key.Attributes() {
		if item[k.Name].Type != k.Type {
			return nil
		}
		names = append(names, k.Name)
	}
	if ix.Projection == tabledef.ProjectAll {
		return item
	}
	out := attr.Item{}
	for _, name := range append(names, ix.NonKey...) {
		if v, ok := item[name]; ok {
			out[name] = v
		}
	}
	return out
}

// partitionOf returns the condition that selects the partition of an item.
func partitionOf(key tabledef.IndexKey, item attr.Item) attr.KeyRange {
	cond := attr.KeyRange{Hash: item[key.Hash[0].Name]}
	for _, a := range key.Hash[1:] {
		cond.MoreHash = append(cond.MoreHash, item[a.Name])
	}
	return cond
}

// bySortKey orders items of one partition of an index.
func bySortKey(key tabledef.IndexKey) func(a, b attr.Item) int {
	return func(a, b attr.Item) int {
		for _, k := range key.Range {
			if c := compareAttr(layout.Decoded(a), layout.Decoded(b), k.Name); c != 0 {
				return c
			}
		}
		return 0
	}
}

// checkIndexes compares the entries of every index of t with the items of the model.
func checkIndexes(ctx context.Context, s *Store, t *tabledef.Table, m model) error {
	for i := range t.Indexes {
		ix := &t.Indexes[i]
		want := model{}
		partitions := map[string]attr.KeyRange{}
		for _, item := range m {
			if p := projected(t, *ix, item); p != nil {
				want[keyText(keyAttrs(t, item))] = p
				cond := partitionOf(ix.Key, p)
				partitions[fmt.Sprint(cond.Hashes())] = cond
			}
		}
		all := func(attr.Item) bool { return true }
		got := model{}
		for item, err := range decode(s.Scan(ctx, t, ix, 0, 1, nil)) {
			if err != nil {
				return err
			}
			if got[keyText(keyAttrs(t, item))] != nil {
				return fmt.Errorf("index %s: two entries of %v", ix.Name, item)
			}
			got[keyText(keyAttrs(t, item))] = item
		}
		if d := diffItems(want.sorted(t.Key, all), got.sorted(t.Key, all)); d != "" {
			return fmt.Errorf("index %s (-want +got):\n%s", ix.Name, d)
		}
		for hash, cond := range partitions {
			part, err := pages(2, func(after attr.Item) iter.Seq2[layout.Stored, error] {
				return s.Query(ctx, t, ix, cond, true, after)
			})
			if err != nil {
				return err
			}
			n := len(want.sorted(t.Key, func(item attr.Item) bool { return ix.Key.Matches(cond, layout.Decoded(item)) }))
			ordered := slices.IsSortedFunc(part, bySortKey(ix.Key))
			if len(part) != n || !ordered {
				return fmt.Errorf("index %s, partition %v: %v, want %d items in order", ix.Name, hash, texts(part), n)
			}
			back, err := collect(s.Query(ctx, t, ix, cond, false, nil))
			slices.Reverse(back)
			if d := diffItems(part, back); d != "" || err != nil {
				return fmt.Errorf("index %s, partition %v, backward: %w\n%s", ix.Name, hash, err, d)
			}
		}
	}
	return nil
}

// After any writes the indexes match the items.
func TestStore_Indexes(t *testing.T) {
	t.Parallel()
	for name, start := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := start(t)
			s := openStore(t, testOptions(conn))
			n := 0
			rapid.Check(t, property.First(12, func(r *rapid.T) {
				n++
				def := newTable(t, s, indexedTable("indexed"+strconv.Itoa(n)))
				keys := rapid.SliceOfN(genKey(def.Key), 1, 3).Draw(r, "keys")
				m := model{}
				for range rapid.IntRange(1, 6).Draw(r, "steps") {
					key := rapid.SampledFrom(keys).Draw(r, "key")
					if rapid.IntRange(0, 3).Draw(r, "op") == 0 {
						delete(m, keyText(key))
						if err := remove(t.Context(), s, def, key); err != nil {
							r.Fatal(err)
						}
					} else {
						item := genIndexedItem(r, key)
						m[keyText(key)] = item
						if err := put(t.Context(), s, def, item); err != nil {
							r.Fatal(err)
						}
					}
					if rapid.IntRange(0, 3).Draw(r, "check") == 0 {
						if err := checkIndexes(t.Context(), s, def, m); err != nil {
							r.Fatal(err)
						}
					}
				}
				if err := checkIndexes(t.Context(), s, def, m); err != nil {
					r.Fatal(err)
				}
				for _, key := range keys {
					if err := remove(t.Context(), s, def, key); err != nil {
						r.Fatal(err)
					}
				}
				if rows := dump(t, s, def.BigtableTable); len(rows) > 0 {
					r.Fatalf("rows are left behind: %v", rows)
				}
				if _, err := s.DeleteTable(t.Context(), def.Name); err != nil {
					r.Fatal(err)
				}
			}))
		})
	}
}

// Concurrent writers of one item through two stores leave the indexes correct.
func TestStore_IndexRaces(t *testing.T) {
	t.Parallel()
	for name, start := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := start(t)
			a := openStore(t, testOptions(conn))
			def := newTable(t, a, indexedTable("raced"))
			b := openStore(t, testOptions(conn))
			keys := []attr.Item{
				{"p": attr.String("one"), "s": attr.Int(1)},
				{"p": attr.String("one"), "s": attr.Int(2)},
			}
			var wg sync.WaitGroup
			for i := range 8 {
				s, rng := a, rand.New(rand.NewPCG(1, uint64(i)))
				if i%2 == 1 {
					s = b
				}
				wg.Go(func() {
					for range 15 {
						item := maps.Clone(keys[rng.IntN(len(keys))])
						var err error
						if rng.IntN(4) == 0 {
							err = remove(t.Context(), s, def, item)
						} else {
							item["g"] = attr.String(strconv.Itoa(rng.IntN(3)))
							item["h"] = attr.Int(int64(rng.IntN(3)))
							err = put(t.Context(), s, def, item)
						}
						if err != nil && !errors.Is(err, ErrContended) {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			m := model{}
			for item, err := range decode(a.Scan(t.Context(), def, nil, 0, 1, nil)) {
				if err != nil {
					t.Fatal(err)
				}
				m[keyText(keyAttrs(def, item))] = item
			}
			if err := checkIndexes(t.Context(), a, def, m); err != nil {
				t.Error(err)
			}
		})
	}
}

// failIndexWrites fails the writes of index rows after the first n.
func failIndexWrites(n int) intercept.Func {
	return func(_ context.Context, req any) error {
		r, ok := req.(*btpb.CheckAndMutateRowRequest)
		if !ok || !strings.Contains(r.GetTableName(), reservedPrefix+"i.") {
			return nil
		}
		if n--; n < 0 {
			return status.Error(codes.Unavailable, "refused by the test")
		}
		return nil
	}
}

// If a process ends, or fails, between a write and its index entries, the entries are written by
// the next process, by a later write or transaction, or by the next read of the index.
func TestStore_Recovery(t *testing.T) {
	t.Parallel()
	all := long.Enabled()
	finish := map[string]func(t *testing.T, o Options, s *Store, def *tabledef.Table, key attr.Item) *Store{
		"restart": func(t *testing.T, o Options, _ *Store, _ *tabledef.Table, _ attr.Item) *Store {
			t.Helper()
			return openStore(t, o)
		},
		"read": func(_ *testing.T, _ Options, s *Store, _ *tabledef.Table, _ attr.Item) *Store { return s },
		"write": func(t *testing.T, o Options, s *Store, def *tabledef.Table, key attr.Item) *Store {
			t.Helper()
			// A write without a change, through another store.
			_, _, err := openStore(t, o).WriteItem(t.Context(), def, key, func(old attr.Item) (attr.Item, error) { return old, nil }, Hint{})
			if err != nil {
				t.Error(err)
			}
			return s
		},
		"check": func(t *testing.T, o Options, _ *Store, def *tabledef.Table, key attr.Item) *Store {
			t.Helper()
			// A transaction of another store that holds the item and changes nothing.
			other := openStore(t, o)
			check := &Change{Table: def, Key: key, Check: true, Fn: func(old attr.Item) (attr.Item, error) { return old, nil }}
			if ok, _, err := other.Transact(t.Context(), RequestToken{}, []*Change{check}); !ok || err != nil {
				t.Error(ok, check.Err, err)
			}
			return other
		},
		"transaction": func(t *testing.T, o Options, s *Store, def *tabledef.Table, key attr.Item) *Store {
			t.Helper()
			same := &Change{Table: def, Key: key, Fn: func(old attr.Item) (attr.Item, error) { return old, nil }}
			if ok, _, err := s.Transact(t.Context(), RequestToken{}, []*Change{same}); !ok || err != nil {
				t.Error(ok, same.Err, err)
			}
			return s
		},
	}
	key := attr.Item{"p": attr.String("one"), "s": attr.Int(1)}
	item := attr.Item{"p": key["p"], "s": key["s"], "g": attr.String("x"), "h": attr.Int(1)}
	moved := attr.Item{"p": key["p"], "s": key["s"], "g": attr.String("y"), "h": attr.Int(1)}
	changed := maps.Clone(item)
	changed["v"] = attr.Int(7)
	writes := []struct {
		name          string
		before, after attr.Item
		entries       int // of the write
	}{
		{"moves", item, moved, 6},
		{"changes", item, changed, 4},
		{"comes", nil, item, 6},
	}
	for name, start := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := start(t)
			once := name == "bttest" && !all // over a network
			for name, next := range finish {
				for _, w := range writes {
					for reached := range w.entries {
						if once && reached != w.entries/2 {
							continue
						}
						t.Run(fmt.Sprintf("%s/%s/%d", name, w.name, reached), func(t *testing.T) {
							t.Parallel()
							c := intercept.New(conn, nil)
							o := testOptions(c)
							o.Instance = fmt.Sprintf("%s-%s-%d", name, w.name, reached)
							s := openStore(t, o)
							def := newTable(t, s, indexedTable("crash"))
							if w.before != nil {
								if err := put(t.Context(), s, def, w.before); err != nil {
									t.Fatal(err)
								}
							}
							c.Before(failIndexWrites(reached))
							if err := put(t.Context(), s, def, w.after); err == nil {
								t.Fatal("the write reached its indexes")
							}
							c.Before(nil)
							s = next(t, o, s, def, key)
							if err := checkIndexes(t.Context(), s, def, model{keyText(key): w.after}); err != nil {
								t.Error(err)
							}
							if err := remove(t.Context(), s, def, key); err != nil {
								t.Fatal(err)
							}
							if rows := dump(t, s, def.BigtableTable); len(rows) > 0 {
								t.Errorf("rows are left behind: %v", rows)
							}
						})
					}
				}
			}
		})
	}
}

// Garbage collection removes what a deleted item leaves in an index.
func TestStore_Tombstones(t *testing.T) {
	t.Parallel()
	c := clock.NewFrozen(time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC))
	srv := peer.Start(t, engine.Options{Now: c.Now}, emu.Options{})
	o := testOptions(srv.Conn())
	o.Now = c.Now
	s := openStore(t, o)
	def := newTable(t, s, indexedTable("tombs"))
	item := attr.Item{"p": attr.String("one"), "s": attr.Int(1), "g": attr.String("x"), "h": attr.Int(1)}
	if err := put(t.Context(), s, def, item); err != nil {
		t.Fatal(err)
	}
	if err := remove(t.Context(), s, def, keyAttrs(def, item)); err != nil {
		t.Fatal(err)
	}
	for _, ix := range def.Indexes {
		if rows := dump(t, s, ix.BigtableTable); len(rows) != 1 {
			t.Errorf("index %s: %v, want one tombstone", ix.Name, rows)
		}
	}
	c.Advance(tombstoneAge + time.Second)
	if _, err := srv.RunGC(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, ix := range def.Indexes {
		if rows := dump(t, s, ix.BigtableTable); len(rows) > 0 {
			t.Errorf("index %s: %v", ix.Name, rows)
		}
	}
}

// A new item replaces the entries that an item with the same key has left in the indexes,
// whichever client removed that item.
func TestStore_EntriesLeft(t *testing.T) {
	t.Parallel()
	for name, start := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openStore(t, testOptions(start(t)))
			def := newTable(t, s, indexedTable("left"))
			item := attr.Item{"p": attr.String("one"), "s": attr.Int(1), "g": attr.String("x"), "h": attr.Int(1)}
			key := keyAttrs(def, item)
			p, err := s.catalog.tables[def.Name].layout.slot(key)
			if err != nil {
				t.Fatal(err)
			}
			natively := func() error {
				return s.bt.MutateRow(t.Context(), def.BigtableTable, p.row, []*btpb.Mutation{btclient.DeleteRow()})
			}
			facade := func() error { return remove(t.Context(), s, def, key) }
			for i, leave := range []func() error{natively, facade, natively, natively, facade} {
				now := maps.Clone(item)
				now["v"] = attr.Int(int64(i))
				if err := put(t.Context(), s, def, now); err != nil {
					t.Fatal(err)
				}
				if err := checkIndexes(t.Context(), s, def, model{keyText(key): now}); err != nil {
					t.Fatalf("%d: %v", i, err)
				}
				if err := leave(); err != nil {
					t.Fatal(err)
				}
			}
			if err := checkIndexes(t.Context(), s, def, model{}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A stalled process that applies an old write late changes nothing.
func TestStore_StaleDrain(t *testing.T) {
	t.Parallel()
	for name, start := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := start(t)
			s := openStore(t, testOptions(conn))
			def := newTable(t, s, indexedTable("stale"))
			l := s.catalog.tables[def.Name].layout
			key := attr.Item{"p": attr.String("one"), "s": attr.Int(1)}
			first := attr.Item{"p": key["p"], "s": key["s"], "g": attr.String("x"), "h": attr.Int(1)}
			if err := put(t.Context(), s, def, first); err != nil {
				t.Fatal(err)
			}
			p, err := l.slot(key)
			if err != nil {
				t.Fatal(err)
			}
			st, err := s.readState(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			st.outbox = &layout.Cell{Timestamp: st.order(), Value: indexChange{}.outbox(l, key)}
			second := attr.Item{"p": key["p"], "s": key["s"], "g": attr.String("y"), "h": attr.Int(2)}
			for _, now := range []attr.Item{second, nil} {
				m := model{}
				if now == nil {
					err = remove(t.Context(), s, def, key)
				} else {
					m[keyText(key)] = now
					err = put(t.Context(), s, def, now)
				}
				if err != nil {
					t.Fatal(err)
				}
				if err := s.drain(t.Context(), st); err != nil {
					t.Fatal(err)
				}
				if err := checkIndexes(t.Context(), s, def, m); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// With a lag, the indexes match the items once the lag has passed, regardless of writes and reads
// meanwhile. They also match after the next start.
func TestStore_IndexLag(t *testing.T) {
	t.Parallel()
	for name, start := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := clock.NewFrozen(testTime)
			o := testOptions(start(t))
			o.Now, o.IndexLag = now.Now, time.Minute
			s := openStore(t, o)
			n := 0
			rapid.Check(t, property.First(12, func(r *rapid.T) {
				n++
				ctx := t.Context()
				def := newTable(t, s, indexedTable("lagging"+strconv.Itoa(n)))
				keys := rapid.SliceOfN(genKey(def.Key), 1, 4).Draw(r, "keys")
				m := model{}
				for range rapid.IntRange(1, 8).Draw(r, "writes") {
					key := rapid.SampledFrom(keys).Draw(r, "key")
					var err error
					if rapid.IntRange(0, 3).Draw(r, "delete") == 0 {
						delete(m, keyText(key))
						err = remove(ctx, s, def, key)
					} else {
						item := genIndexedItem(r, key)
						m[keyText(key)] = item
						err = put(ctx, s, def, item)
					}
					if err != nil {
						r.Fatal(err)
					}
					now.Advance(time.Duration(rapid.IntRange(0, 40).Draw(r, "seconds")) * time.Second)
					ix := rapid.IntRange(0, len(def.Indexes)-1).Draw(r, "index")
					if _, err := collect(s.Scan(ctx, def, &def.Indexes[ix], 0, 1, nil)); err != nil {
						r.Fatal(err)
					}
				}
				next := s
				if rapid.IntRange(0, 9).Draw(r, "restart") == 0 {
					next = openStore(t, o)
				} else {
					now.Advance(2 * time.Minute)
				}
				if err := checkIndexes(ctx, next, def, m); err != nil {
					r.Fatal(err)
				}
			}))
		})
	}
}

// A write is in an index as soon as it is as old as the lag.
func TestStore_IndexLagEnds(t *testing.T) {
	t.Parallel()
	now := clock.NewFrozen(testTime)
	o := testOptions(backends["emu"](t))
	o.Now, o.IndexLag = now.Now, time.Minute
	s := openStore(t, o)
	def := newTable(t, s, indexedTable("lagging"))
	item := attr.Item{"p": attr.String("p"), "s": attr.Int(1), "g": attr.String("g"), "h": attr.Int(2)}
	if err := put(t.Context(), s, def, item); err != nil {
		t.Fatal(err)
	}
	now.Advance(time.Minute - time.Microsecond)
	for want := range 2 {
		items, err := collect(s.Scan(t.Context(), def, def.Index("all"), 0, 1, nil))
		if err != nil || len(items) != want {
			t.Errorf("%v after the write the index holds %v, error %v, want %d items", now.Now().Sub(testTime), texts(items), err, want)
		}
		now.Advance(time.Microsecond)
	}
}

// If too many rows lag, the index entries of the next write are not postponed.
func TestStore_IndexLagBounded(t *testing.T) {
	t.Parallel()
	o := testOptions(backends["emu"](t))
	o.Now, o.IndexLag = clock.NewFrozen(testTime).Now, time.Minute
	s := openStore(t, o)
	def := newTable(t, s, indexedTable("bounded"))
	lagging := make([][]byte, marks.MaxLagging)
	for i := range lagging {
		lagging[i] = fmt.Append(nil, i)
	}
	others, err := s.marks.MarkRows(t.Context(), "another", lagging)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range others {
		s.marks.Unmark(m, false, nil)
	}
	item := attr.Item{"p": attr.String("p"), "s": attr.Int(1), "g": attr.String("g"), "h": attr.Int(2)}
	if err := put(t.Context(), s, def, item); err != nil {
		t.Fatal(err)
	}
	items, err := collect(s.Scan(t.Context(), def, def.Index("all"), 0, 1, nil))
	if err != nil || len(items) != 1 {
		t.Errorf("the index holds %v, %v, want the item", texts(items), err)
	}
	if err := s.marks.Forget(t.Context(), "another"); err != nil {
		t.Fatal(err)
	}

	// The pending work of a deleted table is forgotten with it.
	item["s"] = attr.Int(2)
	err = put(t.Context(), s, def, item)
	if _, _, dirty := s.marks.Counts(); err != nil || dirty != 1 {
		t.Errorf("%d rows lag, %v, want 1", dirty, err)
	}
	_, err = s.DeleteTable(t.Context(), def.Name)
	if all, _, dirty := s.marks.Counts(); err != nil || dirty != 0 || all != 0 {
		t.Errorf("after the deletion %d rows lag, %d are marked, %v", dirty, all, err)
	}
	for _, row := range dump(t, s, s.o.Catalog) {
		if strings.HasPrefix(row, `"`+pendingRowPrefix) {
			t.Errorf("the catalog has %s", row)
		}
	}
}

// If one process deletes an item and another recreates it with the same order, the item keeps
// its entries, even if the deletion is applied to the indexes a second time: two processes
// may settle one transaction.
func TestStore_MadeAgainAtTheSameOrder(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := testOptions(backends["emu"](t))
	a := openStore(t, o)
	def := newTable(t, a, indexedTable("again"))
	b := openStore(t, o)
	item := account("a", 1)
	key := keyAttrs(def, item)
	if err := errors.Join(put(ctx, a, def, item), put(ctx, b, def, account("a", 2)), put(ctx, b, def, item)); err != nil {
		t.Fatal(err)
	}
	c, err := a.current(ctx, def)
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.layout.slot(key)
	if err != nil {
		t.Fatal(err)
	}
	before, err := a.readState(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	deleted := before.order() + microsPerMilli
	if err := errors.Join(remove(ctx, a, def, key), put(ctx, b, def, item)); err != nil {
		t.Fatal(err)
	}
	change, err := c.layout.indexChange(item, nil, before.order(), deleted, false)
	if err != nil || len(change.stale) == 0 {
		t.Fatalf("the delete leaves %d rows, %v", len(change.stale), err)
	}
	if _, err := a.outbox.enter(ctx, c.layout, deleted, change); err != nil {
		t.Fatal(err)
	}
	if err := checkIndexes(ctx, a, def, model{keyText(key): item}); err != nil {
		t.Error(err)
	}
}
