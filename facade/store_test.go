package facade

import (
	"bytes"
	"cmp"
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
	"cloud.google.com/go/bigtable/bttest"
	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/clock"
)

// backends are the Bigtables that the store is tested on: ours in process,
// and Google's test server over a wire.
var backends = map[string]func(testing.TB) grpc.ClientConnInterface{
	"emu": func(tb testing.TB) grpc.ClientConnInterface {
		tb.Helper()
		db, err := engine.Open(engine.Options{})
		if err != nil {
			tb.Fatal(err)
		}
		srv, err := emu.New(emu.Options{DB: db, CloneInProcess: true})
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() {
			if err := errors.Join(srv.Close(), db.Close()); err != nil {
				tb.Error(err)
			}
		})
		return srv.Conn()
	},
	"bttest": func(tb testing.TB) grpc.ClientConnInterface {
		tb.Helper()
		srv, err := bttest.NewServer("localhost:0")
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(srv.Close)
		conn, err := grpc.NewClient(srv.Addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() {
			if err := conn.Close(); err != nil {
				tb.Error(err)
			}
		})
		return conn
	},
}

// testOptions are Options over conn with a fixed seed and a frozen clock.
func testOptions(conn grpc.ClientConnInterface, mappings ...*mapping.Mapping) Options {
	return Options{
		Conn: conn, Mappings: mappings,
		Now:  clock.NewFrozen(time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)).Now,
		Rand: rand.NewChaCha8([32]byte{1}),
	}
}

// openStore opens a store that is closed with the test.
func openStore(tb testing.TB, o Options) *store {
	tb.Helper()
	o, err := o.normalized()
	if err != nil {
		tb.Fatal(err)
	}
	s, err := newStore(tb.Context(), o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

func stringKey(name string) mapping.KeyAttr { return mapping.KeyAttr{Name: name, Type: attr.S} }
func numberKey(name string) mapping.KeyAttr { return mapping.KeyAttr{Name: name, Type: attr.N} }
func binaryKey(name string) mapping.KeyAttr { return mapping.KeyAttr{Name: name, Type: attr.B} }

// newTable creates a table and fails the test if that fails.
func newTable(tb testing.TB, s *store, def tableDef) *tableDef {
	tb.Helper()
	created, err := s.createTable(tb.Context(), &def)
	if err != nil {
		tb.Fatal(err)
	}
	return created
}

// put stores an item, whatever was there.
func put(ctx context.Context, s *store, t *tableDef, item attr.Item) error {
	_, _, err := s.writeItem(ctx, t, keyAttrs(t, item), func(attr.Item) (attr.Item, error) { return item, nil },
		writeHint{blind: true, replacement: item})
	return err
}

// remove deletes an item, if there is one.
func remove(ctx context.Context, s *store, t *tableDef, key attr.Item) error {
	_, _, err := s.writeItem(ctx, t, key, func(attr.Item) (attr.Item, error) { return nil, nil }, writeHint{blind: true})
	return err
}

func keyAttrs(t *tableDef, item attr.Item) attr.Item {
	key := attr.Item{t.Key.Hash.Name: item[t.Key.Hash.Name]}
	if t.Key.Range.Name != "" {
		key[t.Key.Range.Name] = item[t.Key.Range.Name]
	}
	return key
}

// collect drains a sequence of items.
func collect(seq iter.Seq2[attr.Item, error]) ([]attr.Item, error) {
	var items []attr.Item
	for item, err := range seq {
		if err != nil {
			return items, err
		}
		items = append(items, item)
	}
	return items, nil
}

// dump returns the rows of a Bigtable table as text.
func dump(tb testing.TB, s *store, table string) []string {
	tb.Helper()
	var rows []string
	for row, err := range s.readRows(tb.Context(), rowRead{table: table, spans: []mapping.Span{{}}}) {
		if err != nil {
			tb.Fatal(err)
		}
		var text strings.Builder
		fmt.Fprintf(&text, "%q", row.Key)
		for _, c := range row.Cells {
			fmt.Fprintf(&text, " %s:%q@%d=%q", c.Family, c.Qualifier, c.Timestamp, c.Value)
		}
		rows = append(rows, text.String())
	}
	return rows
}

func texts(items []attr.Item) []string {
	text := make([]string, len(items))
	for i, item := range items {
		text[i] = string(attr.AppendItemJSON(nil, item))
	}
	return text
}

// diffItems compares items in order.
func diffItems(want, got []attr.Item) string { return gocmp.Diff(texts(want), texts(got)) }

// Generators of values. The alphabets are small and nasty: delimiters, zero
// bytes, bytes above ASCII.
var (
	genText   = rapid.StringOfN(rapid.SampledFrom([]rune{'a', 'b', '#', '$', 0, 1, 'ÿ', '€', '~'}), 1, 6, -1)
	genNumber = rapid.Custom(func(t *rapid.T) attr.Value {
		text := strconv.Itoa(rapid.IntRange(-300, 300).Draw(t, "int"))
		if e := rapid.IntRange(-5, 5).Draw(t, "exp"); text != "0" {
			text += "E" + strconv.Itoa(e)
		}
		v, err := attr.Number(text)
		if err != nil {
			t.Fatal(err)
		}
		return v
	})
	genScalar = rapid.OneOf(
		rapid.Map(rapid.StringOfN(rapid.SampledFrom([]rune{'a', 0, '€'}), 0, 4, -1), attr.String),
		genNumber,
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 4), attr.Binary),
		rapid.Map(rapid.Bool(), attr.Boolean),
		rapid.Just(attr.Null()),
	)
	genValue = rapid.OneOf(genScalar, genScalar,
		rapid.Map(rapid.SliceOfN(genScalar, 0, 3), func(e []attr.Value) attr.Value { return attr.ListOf(e...) }),
		rapid.Map(rapid.MapOfN(rapid.StringN(0, 3, -1), genScalar, 0, 3), attr.MapOf),
		rapid.Custom(func(t *rapid.T) attr.Value {
			v, err := attr.StringSet(rapid.SliceOfNDistinct(rapid.StringN(0, 3, -1), 1, 3, rapid.ID[string]).Draw(t, "set")...)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}),
	)
)

func genKeyValue(k mapping.KeyAttr) *rapid.Generator[attr.Value] {
	switch k.Type { //nolint:exhaustive // a key has one of these
	case attr.N:
		return genNumber
	case attr.B:
		return rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, '#', 0xfe, 0xff}), 1, 4), attr.Binary)
	default:
		return rapid.Map(genText, attr.String)
	}
}

// genItem draws an item with the given key.
func genItem(t *rapid.T, key attr.Item) attr.Item {
	item := maps.Clone(key)
	for name, v := range rapid.MapOfN(rapid.SampledFrom([]string{"v", "w", "long name", "x.y", "é"}), genValue, 0, 3).Draw(t, "attributes") {
		item[name] = v
	}
	return item
}

var testSchemas = map[string]mapping.KeySchema{
	"S":  {Hash: stringKey("p")},
	"SS": {Hash: stringKey("p"), Range: stringKey("s")},
	"NN": {Hash: numberKey("p"), Range: numberKey("s")},
	"BB": {Hash: binaryKey("p"), Range: binaryKey("s")},
	"SN": {Hash: stringKey("p"), Range: numberKey("s")},
}

func genKey(schema mapping.KeySchema) *rapid.Generator[attr.Item] {
	return rapid.Custom(func(t *rapid.T) attr.Item {
		key := attr.Item{schema.Hash.Name: genKeyValue(schema.Hash).Draw(t, "hash")}
		if schema.Range.Name != "" {
			key[schema.Range.Name] = genKeyValue(schema.Range).Draw(t, "range")
		}
		return key
	})
}

// model is the reference: items by canonical text of their key.
type model map[string]attr.Item

func keyText(key attr.Item) string { return string(attr.AppendItemJSON(nil, key)) }

// sorted returns the items of a partition by sort key.
func (m model) sorted(schema mapping.KeySchema, keep func(attr.Item) bool) []attr.Item {
	var items []attr.Item
	for _, item := range m {
		if keep(item) {
			items = append(items, item)
		}
	}
	slices.SortFunc(items, func(a, b attr.Item) int {
		return cmp.Or(compareAttr(a, b, schema.Hash.Name), compareAttr(a, b, schema.Range.Name))
	})
	return items
}

// empty removes the items of a table: a check that was cut short leaves some.
func empty(ctx context.Context, s *store, t *tableDef) error {
	for item, err := range s.scan(ctx, t, nil, 0, 1, nil) {
		if err == nil {
			err = remove(ctx, s, t, keyAttrs(t, item))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Items come back as they were put, whatever order of writes, and a deleted
// item leaves nothing behind.
func TestStore_Items(t *testing.T) {
	t.Parallel()
	for name, start := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := start(t)
			s := openStore(t, testOptions(conn))
			tables := map[string]*tableDef{}
			for name, schema := range testSchemas {
				tables[name] = newTable(t, s, tableDef{Name: name, Key: schema})
			}
			names := slices.Sorted(maps.Keys(tables))
			rapid.Check(t, func(r *rapid.T) {
				def := tables[rapid.SampledFrom(names).Draw(r, "table")]
				if err := empty(t.Context(), s, def); err != nil {
					r.Fatal(err)
				}
				keys := rapid.SliceOfN(genKey(def.Key), 1, 5).Draw(r, "keys")
				m := model{}
				for range rapid.IntRange(1, 12).Draw(r, "steps") {
					key := rapid.SampledFrom(keys).Draw(r, "key")
					blind := rapid.Bool().Draw(r, "blind")
					require := rapid.SampledFrom([]presence{anyPresence, mustExist, mustNotExist}).Draw(r, "require")
					var item attr.Item
					if rapid.IntRange(0, 3).Draw(r, "op") > 0 {
						item = genItem(r, key)
					}
					errRequire := errors.New("required")
					was := m[keyText(key)]
					write := func(old attr.Item) (attr.Item, error) {
						if require == mustExist && old == nil || require == mustNotExist && old != nil {
							return nil, errRequire
						}
						return item, nil
					}
					_, wantErr := write(was)
					hint := writeHint{}
					if blind {
						hint = writeHint{blind: true, replacement: item, require: require}
					}
					old, updated, err := s.writeItem(t.Context(), def, key, write, hint)
					if !errors.Is(err, wantErr) {
						r.Fatalf("write: %v, want %v", err, wantErr)
					}
					if (!blind || err != nil) && !attr.EqualItems(old, was) {
						r.Fatalf("old item %v, want %v", old, was)
					}
					if err != nil {
						continue
					}
					if !attr.EqualItems(updated, item) {
						r.Fatalf("new item %v, want %v", updated, item)
					}
					if m[keyText(key)] = item; item == nil {
						delete(m, keyText(key))
					}
					for _, key := range keys {
						got, err := s.getItem(t.Context(), def, key)
						if err != nil || !attr.EqualItems(got, m[keyText(key)]) {
							r.Fatalf("item %v, %v; want %v", got, err, m[keyText(key)])
						}
					}
				}
				got, err := s.getItems(t.Context(), def, keys)
				if err != nil {
					r.Fatal(err)
				}
				for i, key := range keys {
					if !attr.EqualItems(got[i], m[keyText(key)]) {
						r.Fatalf("item %v, want %v", got[i], m[keyText(key)])
					}
					if err := remove(t.Context(), s, def, key); err != nil {
						r.Fatal(err)
					}
				}
				if rows := dump(t, s, def.BigtableTable); len(rows) > 0 {
					r.Fatalf("rows are left behind: %v", rows)
				}
			})
		})
	}
}

// Concurrent increments lose nothing.
func TestStore_Increments(t *testing.T) {
	t.Parallel()
	for name, start := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := start(t)
			// Two stores: in the second's absence the latch alone would do.
			a := openStore(t, testOptions(conn))
			def := newTable(t, a, tableDef{Name: "counters", Key: testSchemas["S"]})
			b := openStore(t, testOptions(conn))
			key := attr.Item{"p": attr.String("hits")}
			increment := func(old attr.Item) (attr.Item, error) {
				n := attr.Int(1)
				if old != nil {
					sum, err := attr.AddNumbers(old["n"].Str, "1")
					if err != nil {
						return nil, err
					}
					n = attr.Value{Type: attr.N, Str: sum}
				}
				return attr.Item{"p": key["p"], "n": n}, nil
			}
			var wg sync.WaitGroup
			for i := range 64 {
				s := a
				if i%2 == 1 {
					s = b
				}
				wg.Go(func() {
					for range 5 {
						err := errContended
						for errors.Is(err, errContended) {
							_, _, err = s.writeItem(t.Context(), def, key, increment, writeHint{})
						}
						if err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			got, err := a.getItem(t.Context(), def, key)
			if err != nil || got["n"].Str != "320" {
				t.Errorf("counter is %v, %v; want 320", got, err)
			}
		})
	}
}

// genCondition draws a condition on the sort key of a partition.
func genCondition(t *rapid.T, schema mapping.KeySchema, hash attr.Value) mapping.KeyCondition {
	c := mapping.KeyCondition{Hash: hash}
	if schema.Range.Name == "" {
		return c
	}
	c.Op = mapping.RangeOp(rapid.IntRange(int(mapping.NoRange), int(mapping.BeginsWith)).Draw(t, "op"))
	if c.Op == mapping.BeginsWith && schema.Range.Type == attr.N {
		c.Op = mapping.NoRange
	}
	if c.Op != mapping.NoRange {
		c.A = genKeyValue(schema.Range).Draw(t, "a")
	}
	if c.Op == mapping.Between {
		c.B = genKeyValue(schema.Range).Draw(t, "b")
		if order, _ := attr.Compare(c.A, c.B); order > 0 {
			c.A, c.B = c.B, c.A
		}
	}
	return c
}

// pages reads a sequence in pages of n items, each starting after the last
// item of the one before.
func pages(n int, page func(after attr.Item) iter.Seq2[attr.Item, error]) ([]attr.Item, error) {
	var all []attr.Item
	var after attr.Item
	for {
		got := 0
		for item, err := range page(after) {
			if err != nil {
				return all, err
			}
			all = append(all, item)
			if got++; got == n {
				break
			}
		}
		if got < n {
			return all, nil
		}
		after = all[len(all)-1]
	}
}

// A query gives the items of a sorted model, in either direction, in pages of
// any size; scans give all items once, however divided.
func TestStore_Query(t *testing.T) {
	t.Parallel()
	for name, start := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := start(t)
			s := openStore(t, testOptions(conn))
			n := 0
			rapid.Check(t, func(r *rapid.T) {
				schema := testSchemas[rapid.SampledFrom(slices.Sorted(maps.Keys(testSchemas))).Draw(r, "schema")]
				n++
				def := newTable(t, s, tableDef{Name: "query" + strconv.Itoa(n), Key: schema})
				m := model{}
				hashes := rapid.SliceOfN(genKeyValue(schema.Hash), 1, 3).Draw(r, "hashes")
				for _, key := range rapid.SliceOfN(genKey(schema), 0, 20).Draw(r, "keys") {
					key[schema.Hash.Name] = rapid.SampledFrom(hashes).Draw(r, "hash")
					m[keyText(key)] = key
					if err := put(t.Context(), s, def, key); err != nil {
						r.Fatal(err)
					}
				}
				cond := genCondition(r, schema, rapid.SampledFrom(hashes).Draw(r, "hash"))
				want := m.sorted(schema, func(item attr.Item) bool { return matchesKey(cond, schema, item) })
				forward := rapid.Bool().Draw(r, "forward")
				if !forward {
					slices.Reverse(want)
				}
				size := rapid.IntRange(1, 8).Draw(r, "page")
				got, err := pages(size, func(after attr.Item) iter.Seq2[attr.Item, error] {
					return s.query(t.Context(), def, nil, cond, forward, after)
				})
				if err != nil {
					r.Fatal(err)
				}
				if d := diffItems(want, got); d != "" {
					r.Fatalf("query %+v (-want +got):\n%s", cond, d)
				}

				total := rapid.IntRange(1, 4).Draw(r, "segments")
				var scanned []attr.Item
				for segment := range total {
					part, err := pages(size, func(after attr.Item) iter.Seq2[attr.Item, error] {
						return s.scan(t.Context(), def, nil, segment, total, after)
					})
					if err != nil {
						r.Fatal(err)
					}
					scanned = append(scanned, part...)
				}
				byKey := func(a, b attr.Item) int {
					return cmp.Or(compareAttr(a, b, schema.Hash.Name), compareAttr(a, b, schema.Range.Name))
				}
				slices.SortFunc(scanned, byKey)
				if d := diffItems(m.sorted(schema, func(attr.Item) bool { return true }), scanned); d != "" {
					r.Fatalf("scan (-want +got):\n%s", d)
				}
				if _, err := s.deleteTable(t.Context(), def.Name); err != nil {
					r.Fatal(err)
				}
			})
		})
	}
}

// indexedTable is a table with a global index of each projection and a local
// one.
func indexedTable(name string) tableDef {
	return tableDef{Name: name, Key: testSchemas["SN"], Indexes: []indexDef{
		{Name: "all", Global: true, Key: mapping.KeySchema{Hash: stringKey("g"), Range: numberKey("h")}, Projection: projectAll},
		{Name: "keys", Global: true, Key: mapping.KeySchema{Hash: stringKey("g")}, Projection: projectKeysOnly},
		{Name: "some", Global: true, Key: mapping.KeySchema{Hash: numberKey("h"), Range: stringKey("g")}, Projection: projectInclude, NonKey: []string{"v"}},
		{Name: "local", Key: mapping.KeySchema{Hash: stringKey("p"), Range: stringKey("g")}, Projection: projectAll},
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

// projected returns what an index should hold of an item, nil: nothing.
func projected(t *tableDef, ix indexDef, item attr.Item) attr.Item {
	names := []string{t.Key.Hash.Name, t.Key.Range.Name, ix.Key.Hash.Name, ix.Key.Range.Name}
	for _, k := range []mapping.KeyAttr{ix.Key.Hash, ix.Key.Range} {
		if k.Name != "" && item[k.Name].Type != k.Type {
			return nil
		}
	}
	if ix.Projection == projectAll {
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

// checkIndexes compares every index with what the items give.
func checkIndexes(ctx context.Context, s *store, t *tableDef, m model) error {
	for i := range t.Indexes {
		ix := &t.Indexes[i]
		want := model{}
		hashes := map[string]attr.Value{}
		for _, item := range m {
			if p := projected(t, *ix, item); p != nil {
				want[keyText(keyAttrs(t, item))] = p
				hashes[p[ix.Key.Hash.Name].Str] = p[ix.Key.Hash.Name]
			}
		}
		all := func(attr.Item) bool { return true }
		got := model{}
		for item, err := range s.scan(ctx, t, ix, 0, 1, nil) {
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
		for _, hash := range hashes {
			cond := mapping.KeyCondition{Hash: hash}
			part, err := pages(2, func(after attr.Item) iter.Seq2[attr.Item, error] {
				return s.query(ctx, t, ix, cond, true, after)
			})
			if err != nil {
				return err
			}
			n := len(want.sorted(t.Key, func(item attr.Item) bool { return attr.Equal(item[ix.Key.Hash.Name], hash) }))
			ordered := slices.IsSortedFunc(part, func(a, b attr.Item) int { return compareAttr(a, b, ix.Key.Range.Name) })
			if len(part) != n || !ordered {
				return fmt.Errorf("index %s, partition %v: %v, want %d items in order", ix.Name, hash, texts(part), n)
			}
			back, err := collect(s.query(ctx, t, ix, cond, false, nil))
			slices.Reverse(back)
			if d := diffItems(part, back); d != "" || err != nil {
				return fmt.Errorf("index %s, partition %v, backward: %w\n%s", ix.Name, hash, err, d)
			}
		}
	}
	return nil
}

// After any writes the indexes are what the items give.
func TestStore_Indexes(t *testing.T) {
	t.Parallel()
	for name, start := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := start(t)
			s := openStore(t, testOptions(conn))
			n := 0
			rapid.Check(t, func(r *rapid.T) {
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
				if _, err := s.deleteTable(t.Context(), def.Name); err != nil {
					r.Fatal(err)
				}
			})
		})
	}
}

// Writers of one item through two stores leave the indexes right.
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
						if err != nil && !errors.Is(err, errContended) {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			m := model{}
			for item, err := range a.scan(t.Context(), def, nil, 0, 1, nil) {
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

// faultyConn fails calls that refuse accepts.
type faultyConn struct {
	grpc.ClientConnInterface
	mu     sync.Mutex
	refuse func(method string, req any) bool
}

func (c *faultyConn) set(refuse func(method string, req any) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refuse = refuse
}

func (c *faultyConn) Invoke(ctx context.Context, method string, req, resp any, opts ...grpc.CallOption) error {
	c.mu.Lock()
	refuse := c.refuse
	c.mu.Unlock()
	if refuse != nil && refuse(method, req) {
		return status.Error(codes.Unavailable, "refused by the test")
	}
	return c.ClientConnInterface.Invoke(ctx, method, req, resp, opts...)
}

// indexWrites accepts the writes of index rows after the first n.
func indexWrites(n int) func(string, any) bool {
	return func(_ string, req any) bool {
		r, ok := req.(*btpb.CheckAndMutateRowRequest)
		if !ok || !strings.Contains(r.GetTableName(), reservedPrefix+"i.") {
			return false
		}
		n--
		return n < 0
	}
}

// A process that ends between a write and its index entries leaves the rest to
// the next, to a later write, or to its own next read of the index.
func TestStore_Recovery(t *testing.T) {
	t.Parallel()
	finish := map[string]func(t *testing.T, o Options, s *store, def *tableDef, key attr.Item) *store{
		"restart": func(t *testing.T, o Options, _ *store, _ *tableDef, _ attr.Item) *store {
			t.Helper()
			return openStore(t, o)
		},
		"read": func(_ *testing.T, _ Options, s *store, _ *tableDef, _ attr.Item) *store { return s },
		"write": func(t *testing.T, o Options, s *store, def *tableDef, key attr.Item) *store {
			t.Helper()
			// A write that changes nothing, through another store.
			_, _, err := openStore(t, o).writeItem(t.Context(), def, key, func(old attr.Item) (attr.Item, error) { return old, nil }, writeHint{})
			if err != nil {
				t.Error(err)
			}
			return s
		},
	}
	for name, start := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := start(t)
			for name, next := range finish {
				for reached := range 6 {
					t.Run(fmt.Sprintf("%s/%d", name, reached), func(t *testing.T) {
						t.Parallel()
						c := &faultyConn{ClientConnInterface: conn}
						o := testOptions(c)
						o.Instance = fmt.Sprintf("%s-%d", name, reached)
						s := openStore(t, o)
						def := newTable(t, s, indexedTable("crash"))
						key := attr.Item{"p": attr.String("one"), "s": attr.Int(1)}
						item := attr.Item{"p": key["p"], "s": key["s"], "g": attr.String("x"), "h": attr.Int(1)}
						moved := attr.Item{"p": key["p"], "s": key["s"], "g": attr.String("y"), "h": attr.Int(1)}
						if err := put(t.Context(), s, def, item); err != nil {
							t.Fatal(err)
						}
						c.set(indexWrites(reached))
						if err := put(t.Context(), s, def, moved); err == nil {
							t.Fatal("the write reached its indexes")
						}
						c.set(nil)
						s = next(t, o, s, def, key)
						if err := checkIndexes(t.Context(), s, def, model{keyText(key): moved}); err != nil {
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
		})
	}
}

// What a deleted item leaves in an index goes with garbage collection.
func TestStore_Tombstones(t *testing.T) {
	t.Parallel()
	c := clock.NewFrozen(time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC))
	db, err := engine.Open(engine.Options{Now: c.Now})
	if err != nil {
		t.Fatal(err)
	}
	srv, err := emu.New(emu.Options{DB: db})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(srv.Close(), db.Close()); err != nil {
			t.Error(err)
		}
	})
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

// A stalled process that applies an old write late changes nothing.
func TestStore_StaleDrain(t *testing.T) {
	t.Parallel()
	for name, start := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := start(t)
			s := openStore(t, testOptions(conn))
			def := newTable(t, s, indexedTable("stale"))
			l := s.cat.tables[def.Name].layout
			key := attr.Item{"p": attr.String("one"), "s": attr.Int(1)}
			first := attr.Item{"p": key["p"], "s": key["s"], "g": attr.String("x"), "h": attr.Int(1)}
			if err := put(t.Context(), s, def, first); err != nil {
				t.Fatal(err)
			}
			slots, err := l.slots(key)
			if err != nil {
				t.Fatal(err)
			}
			st, err := s.readState(t.Context(), l, slots, key)
			if err != nil {
				t.Fatal(err)
			}
			st.outbox = &mapping.Cell{Timestamp: st.order(), Value: indexChange{}.outbox(l, key)}
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
				if err := s.drain(t.Context(), l, st); err != nil {
					t.Fatal(err)
				}
				if err := checkIndexes(t.Context(), s, def, m); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestStore_Catalog(t *testing.T) {
	t.Parallel()
	for name, start := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := start(t)
			ctx := t.Context()
			s := openStore(t, testOptions(conn))
			long := strings.Repeat("long.name-", 25) + "12345"
			want := tableDef{
				Name: long, Key: testSchemas["SN"], Attributes: []mapping.KeyAttr{stringKey("p"), numberKey("s")},
				BillingMode: "PROVISIONED", ReadUnits: 3, WriteUnits: 4, DeletionProtection: true,
				Tags: map[string]string{"a": "b"}, Indexes: indexedTable("").Indexes,
			}
			def := newTable(t, s, want)
			if def.Status != statusActive || len(def.ID) != 36 || len(def.BigtableTable) > maxBigtableNameChars {
				t.Errorf("created %+v", def)
			}
			if _, err := s.createTable(ctx, &want); !errors.Is(err, errTableExists) {
				t.Errorf("second creation: %v", err)
			}
			for _, name := range []string{"abc", "zzz", "mmm"} {
				newTable(t, s, tableDef{Name: name, Key: testSchemas["S"]})
			}

			s = openStore(t, testOptions(conn))
			again, err := s.table(ctx, long)
			if err != nil {
				t.Fatal(err)
			}
			if d := gocmp.Diff(def, again); d != "" {
				t.Errorf("after a restart (-want +got):\n%s", d)
			}
			names, more, err := s.listTables(ctx, "abc", 2)
			if d := gocmp.Diff([]string{long, "mmm"}, names); d != "" || !more || err != nil {
				t.Errorf("tables %v, %v, %v", names, more, err)
			}
			if _, err := s.table(ctx, "none"); !errors.Is(err, errTableNotFound) {
				t.Errorf("unknown table: %v", err)
			}

			stop := errors.New("stop")
			if _, err := s.updateTable(ctx, long, func(*tableDef) error { return stop }); !errors.Is(err, stop) {
				t.Errorf("update: %v", err)
			}
			updated, err := s.updateTable(ctx, long, func(d *tableDef) error { d.Tags["c"] = "d"; return nil })
			if err != nil || updated.Tags["c"] != "d" || def.Tags["c"] != "" {
				t.Errorf("update: %+v, %v", updated, err)
			}

			deleted, err := s.deleteTable(ctx, long)
			if err != nil || deleted.Status != statusDeleting {
				t.Errorf("delete: %+v, %v", deleted, err)
			}
			if _, err := s.table(ctx, long); !errors.Is(err, errTableNotFound) {
				t.Errorf("deleted table: %v", err)
			}
			if err := put(ctx, s, def, attr.Item{"p": attr.String("x"), "s": attr.Int(1)}); !errors.Is(err, errTableNotFound) {
				t.Errorf("write to a deleted table: %v", err)
			}
			if fresh := newTable(t, s, want); fresh.ID == def.ID || fresh.BigtableTable == def.BigtableTable {
				t.Errorf("a new table has the id of a deleted one: %+v", fresh)
			}
		})
	}
}

// An index added to a table with items is filled while writes go on.
func TestStore_AddIndex(t *testing.T) {
	t.Parallel()
	for name, start := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := start(t)
			ctx := t.Context()
			s := openStore(t, testOptions(conn))
			full := indexedTable("grown")
			def := newTable(t, s, tableDef{Name: full.Name, Key: full.Key})
			m := model{}
			rng := rand.New(rand.NewPCG(1, 2))
			write := func() {
				item := attr.Item{"p": attr.String("p"), "s": attr.Int(int64(rng.IntN(40)))}
				key := maps.Clone(item)
				item["g"], item["h"] = attr.String(strconv.Itoa(rng.IntN(5))), attr.Int(int64(rng.IntN(5)))
				if rng.IntN(4) == 0 {
					delete(m, keyText(key))
					if err := remove(ctx, s, def, key); err != nil {
						t.Error(err)
					}
					return
				}
				m[keyText(key)] = item
				if err := put(ctx, s, def, item); err != nil {
					t.Error(err)
				}
			}
			for range 60 {
				write()
			}
			grown, err := s.updateTable(ctx, def.Name, func(d *tableDef) error { d.Indexes = full.Indexes; return nil })
			if err != nil || grown.Status != statusUpdating || !grown.Indexes[0].Backfilling {
				t.Fatalf("update: %+v, %v", grown, err)
			}
			for range 60 {
				write()
			}
			s.background.Wait()
			if grown, err = s.table(ctx, def.Name); err != nil || grown.Status != statusActive || grown.Indexes[3].Status != statusActive {
				t.Fatalf("after backfill: %+v, %v", grown, err)
			}
			if err := checkIndexes(ctx, s, grown, m); err != nil {
				t.Error(err)
			}
			shrunk, err := s.updateTable(ctx, def.Name, func(d *tableDef) error { d.Indexes = d.Indexes[1:3]; return nil })
			if err != nil || len(shrunk.Indexes) != 2 {
				t.Fatalf("update: %+v, %v", shrunk, err)
			}
			for range 20 {
				write()
			}
			if err := checkIndexes(ctx, s, shrunk, m); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestStore_Spans(t *testing.T) {
	t.Parallel()
	genKeyBytes := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 'a', 0xff}), 0, 3)
	genSpans := rapid.Custom(func(t *rapid.T) []mapping.Span {
		bounds := rapid.SliceOfNDistinct(genKeyBytes, 0, 6, func(b []byte) string { return string(b) }).Draw(t, "bounds")
		slices.SortFunc(bounds, bytes.Compare)
		var spans []mapping.Span
		for len(bounds) >= 2 {
			spans = append(spans, mapping.Span{Start: bounds[0], End: bounds[1]})
			bounds = bounds[2:]
		}
		if len(bounds) == 1 {
			spans = append(spans, mapping.Span{Start: bounds[0]})
		}
		return spans
	})
	holds := func(spans []mapping.Span, key []byte) bool {
		return slices.ContainsFunc(spans, func(s mapping.Span) bool {
			return bytes.Compare(key, s.Start) >= 0 && (len(s.End) == 0 || bytes.Compare(key, s.End) < 0)
		})
	}
	rapid.Check(t, func(r *rapid.T) {
		a, b, key := genSpans.Draw(r, "a"), genSpans.Draw(r, "b"), genKeyBytes.Draw(r, "key")
		if both := intersectSpans(a, b); holds(both, key) != (holds(a, key) && holds(b, key)) {
			r.Fatalf("%q in %q: wrong", key, both)
		}
		if end := prefixEnd(key); len(key) > 0 && end != nil && (bytes.Compare(end, append(slices.Clone(key), 0xff, 0xff)) <= 0 || bytes.HasPrefix(end, key)) {
			r.Fatalf("end of prefix %q is %q", key, end)
		}
	})
}

func TestStore_Extents(t *testing.T) {
	t.Parallel()
	genExtent := rapid.Custom(func(t *rapid.T) mapping.Extent {
		e := mapping.Extent{
			Family:    rapid.SampledFrom([]string{"a", "b"}).Draw(t, "family"),
			Qualifier: []byte(rapid.SampledFrom([]string{"", "x", "xy", "y"}).Draw(t, "qualifier")),
			Prefix:    rapid.Bool().Draw(t, "prefix"),
			MinTime:   int64(rapid.IntRange(0, 2).Draw(t, "min")) * 1000,
		}
		if rapid.Bool().Draw(t, "max?") {
			e.MaxTime = e.MinTime + 1000*int64(rapid.IntRange(1, 2).Draw(t, "max"))
		}
		return e
	})
	genCell := rapid.Custom(func(t *rapid.T) mapping.Cell {
		return mapping.Cell{
			Family:    rapid.SampledFrom([]string{"a", "b"}).Draw(t, "family"),
			Qualifier: []byte(rapid.SampledFrom([]string{"", "x", "xy", "xyz", "y"}).Draw(t, "qualifier")),
			Timestamp: int64(rapid.IntRange(0, 4).Draw(t, "time")) * 1000,
		}
	})
	count := func(extents []mapping.Extent, c mapping.Cell) (n int) {
		for _, e := range extents {
			if inExtent(e, c) {
				n++
			}
		}
		return n
	}
	rapid.Check(t, func(r *rapid.T) {
		a, b := rapid.SliceOfN(genExtent, 0, 4).Draw(r, "a"), rapid.SliceOfN(genExtent, 1, 4).Draw(r, "b")
		c := genCell.Draw(r, "cell")
		if got, want := count(distinctExtents(a), c) > 0, count(a, c) > 0; got != want {
			r.Fatalf("distinct: %v, want %v", got, want)
		}
		if a == nil {
			a = []mapping.Extent{}
		}
		if got, want := count(intersectExtents(a, b), c) > 0, count(a, c) > 0 && count(b, c) > 0; got != want {
			r.Fatalf("intersection: %v, want %v", got, want)
		}
	})
}
