package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
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
	"google.golang.org/grpc/credentials/insecure"
	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/test/peer"
	"github.com/tabletop-emu/tabletop/internal/test/property"
	"github.com/tabletop-emu/tabletop/internal/test/race"
)

// backends holds functions that start the Bigtables under the store: that of peer.Bigtable, and
// Google's test server over a network.
var backends = map[string]func(testing.TB) grpc.ClientConnInterface{
	"emu": func(tb testing.TB) grpc.ClientConnInterface {
		tb.Helper()
		return peer.Bigtable(tb, clock.New())
	},
	"bttest": func(tb testing.TB) grpc.ClientConnInterface {
		tb.Helper()
		if race.Enabled {
			tb.Skip("bttest has data races of its own, which would fail our test")
		}
		srv, err := bttest.NewServer("localhost:0", peer.ServerOptions()...)
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

// A read returns the state of a row at one moment. The store relies on that.
func TestBackends_WholeRows(t *testing.T) {
	t.Parallel()
	for name, start := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			s := openStore(t, testOptions(start(t)))
			row, first, last := []byte("row"), []byte("a"), []byte("b")
			set := []*btpb.Mutation{btclient.SetCell(catalogFamily, first, 0, first), btclient.SetCell(catalogFamily, last, 0, last)}
			unset := []*btpb.Mutation{btclient.DeleteColumn(catalogFamily, first, 0, 0), btclient.DeleteColumn(catalogFamily, last, 0, 0)}
			var others []*btpb.Mutation
			for i := range 64 {
				others = append(others, btclient.SetCell(catalogFamily, fmt.Appendf(nil, "other %02d", i), 0, first))
			}
			if err := s.bt.MutateRow(ctx, s.o.Catalog, row, others); err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					for range 25 {
						if _, err := s.bt.CheckAndMutate(ctx, s.o.Catalog, row, btclient.OfColumn(catalogFamily, first), unset, set); err != nil {
							t.Error(err)
							return
						}
						r, err := s.bt.ReadRow(ctx, s.o.Catalog, row, btclient.OfFamily(catalogFamily))
						if n := len(r.Cells); err != nil || n != len(others) && n != len(others)+len(set) {
							t.Errorf("the row is read with %d cells, %v; want %d or %d", n, err, len(others), len(others)+len(set))
							return
						}
						for i := range r.Cells[1:] {
							if bytes.Compare(r.Cells[i].Qualifier, r.Cells[i+1].Qualifier) >= 0 {
								t.Errorf("the row is read with the columns %q, %q", r.Cells[i].Qualifier, r.Cells[i+1].Qualifier)
								return
							}
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

// testOptions returns the options of a store over conn with a fixed seed and a frozen clock.
func testOptions(conn grpc.ClientConnInterface, mappings ...*layout.Mapping) Options {
	return Options{
		Conn: conn, Project: "tabletop", Instance: "tabletop", Catalog: CatalogTable, Mappings: mappings,
		Now:    clock.NewFrozen(time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)).Now,
		Wall:   clock.New(),
		Rand:   rand.NewChaCha8([32]byte{1}),
		Logger: slog.New(slog.DiscardHandler), MaxTables: 2500,
	}
}

// openStore opens a store, and closes it at the end of the test.
func openStore(tb testing.TB, o Options) *Store {
	tb.Helper()
	s, err := Open(tb.Context(), o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

func stringKey(name string) attr.KeyAttr { return attr.KeyAttr{Name: name, Type: attr.S} }
func numberKey(name string) attr.KeyAttr { return attr.KeyAttr{Name: name, Type: attr.N} }
func binaryKey(name string) attr.KeyAttr { return attr.KeyAttr{Name: name, Type: attr.B} }

// newTable creates a table. If it cannot, it fails the test.
func newTable(tb testing.TB, s *Store, def tabledef.Table) *tabledef.Table {
	tb.Helper()
	created, err := s.CreateTable(tb.Context(), &def)
	if err != nil {
		tb.Fatal(err)
	}
	return created
}

// put stores an item, regardless of the old one.
func put(ctx context.Context, s *Store, t *tabledef.Table, item attr.Item) error {
	_, _, err := s.WriteItem(ctx, t, keyAttrs(t, item), func(attr.Item) (attr.Item, error) { return item, nil },
		Hint{Blind: true, Replacement: item})
	return err
}

// remove deletes an item, if it exists.
func remove(ctx context.Context, s *Store, t *tabledef.Table, key attr.Item) error {
	_, _, err := s.WriteItem(ctx, t, key, func(attr.Item) (attr.Item, error) { return nil, nil }, Hint{Blind: true})
	return err
}

func keyAttrs(t *tabledef.Table, item attr.Item) attr.Item {
	key := attr.Item{t.Key.Hash.Name: item[t.Key.Hash.Name]}
	if t.Key.Range.Name != "" {
		key[t.Key.Range.Name] = item[t.Key.Range.Name]
	}
	return key
}

// collect returns the items of a sequence, up to the first error.
func collect(seq iter.Seq2[layout.Stored, error]) ([]attr.Item, error) {
	var items []attr.Item
	for item, err := range decode(seq) {
		if err != nil {
			return items, err
		}
		items = append(items, item)
	}
	return items, nil
}

// decode yields the items of a sequence, and checks their JSON.
func decode(seq iter.Seq2[layout.Stored, error]) iter.Seq2[attr.Item, error] {
	return func(yield func(attr.Item, error) bool) {
		for stored, err := range seq {
			var item attr.Item
			if err == nil {
				item, err = stored.Item()
			}
			if err == nil {
				err = checkJSONOf(stored, item)
			}
			if !yield(item, err) {
				return
			}
		}
	}
}

func checkJSONOf(stored layout.Stored, item attr.Item) error {
	json, sizes, err := stored.AppendJSON([]byte("before"))
	if want := "before" + item.String(); err != nil || string(json) != want || sizes != item.Sizes() {
		return fmt.Errorf("JSON %s of the sizes %v, %w, want %s of %v", json, sizes, err, want, item.Sizes())
	}
	return nil
}

// dump returns the rows of a Bigtable table as text.
func dump(tb testing.TB, s *Store, table string) []string {
	tb.Helper()
	var rows []string
	for row, err := range s.bt.Read(tb.Context(), btclient.Read{Table: table, Spans: []layout.Span{{}}}) {
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

// diffItems returns the differences of two lists of items, or "".
func diffItems(want, got []attr.Item) string { return gocmp.Diff(texts(want), texts(got)) }

// These are generators of values. The alphabets are small, and have difficult characters:
// delimiters, zero bytes, and bytes above ASCII.
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
		rapid.Map(rapid.SliceOfNDistinct(rapid.StringN(0, 3, -1), 1, 3, rapid.ID[string]), func(members []string) attr.Value {
			return attr.SetOf(attr.SS, members...)
		}),
	)
)

func genKeyValue(k attr.KeyAttr) *rapid.Generator[attr.Value] {
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

var testSchemas = map[string]attr.KeySchema{
	"S":  {Hash: stringKey("p")},
	"SS": {Hash: stringKey("p"), Range: stringKey("s")},
	"NN": {Hash: numberKey("p"), Range: numberKey("s")},
	"BB": {Hash: binaryKey("p"), Range: binaryKey("s")},
	"SN": {Hash: stringKey("p"), Range: numberKey("s")},
}

func genKey(schema attr.KeySchema) *rapid.Generator[attr.Item] {
	return rapid.Custom(func(t *rapid.T) attr.Item {
		key := attr.Item{schema.Hash.Name: genKeyValue(schema.Hash).Draw(t, "hash")}
		if schema.Range.Name != "" {
			key[schema.Range.Name] = genKeyValue(schema.Range).Draw(t, "range")
		}
		return key
	})
}

// model is the reference for a table: items by the canonical text of their keys.
type model map[string]attr.Item

func keyText(key attr.Item) string { return string(attr.AppendItemJSON(nil, key)) }

// sorted returns the items that keep accepts, ordered by partition and sort key.
func (m model) sorted(schema attr.KeySchema, keep func(attr.Item) bool) []attr.Item {
	var items []attr.Item
	for _, item := range m {
		if keep(item) {
			items = append(items, item)
		}
	}
	slices.SortFunc(items, byKey(schema))
	return items
}

// byKey orders items by partition and sort key.
func byKey(schema attr.KeySchema) func(a, b attr.Item) int {
	return func(a, b attr.Item) int {
		x, y := layout.Decoded(a), layout.Decoded(b)
		return cmp.Or(compareAttr(x, y, schema.Hash.Name), compareAttr(x, y, schema.Range.Name))
	}
}

// empty removes the items of a table, which an interrupted check may leave.
func empty(ctx context.Context, s *Store, t *tabledef.Table) error {
	for item, err := range decode(s.Scan(ctx, t, nil, 0, 1, nil)) {
		if err == nil {
			err = remove(ctx, s, t, keyAttrs(t, item))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Items are read as they were put, after any sequence of writes, and a deleted item leaves nothing
// in the Bigtable.
func TestStore_Items(t *testing.T) {
	t.Parallel()
	for name, start := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := start(t)
			s := openStore(t, testOptions(conn))
			tables := map[string]*tabledef.Table{}
			for name, schema := range testSchemas {
				tables[name] = newTable(t, s, tabledef.Table{Name: name, Key: schema})
			}
			names := slices.Sorted(maps.Keys(tables))
			rapid.Check(t, property.First(25, func(r *rapid.T) {
				def := tables[rapid.SampledFrom(names).Draw(r, "table")]
				if err := empty(t.Context(), s, def); err != nil {
					r.Fatal(err)
				}
				keys := rapid.SliceOfN(genKey(def.Key), 1, 5).Draw(r, "keys")
				m := model{}
				for range rapid.IntRange(1, 12).Draw(r, "steps") {
					key := rapid.SampledFrom(keys).Draw(r, "key")
					blind := rapid.Bool().Draw(r, "blind")
					require := rapid.SampledFrom([]Presence{AnyPresence, MustExist, MustNotExist}).Draw(r, "require")
					var item attr.Item
					if rapid.IntRange(0, 3).Draw(r, "op") > 0 {
						item = genItem(r, key)
					}
					errRequire := errors.New("required")
					was := m[keyText(key)]
					write := func(old attr.Item) (attr.Item, error) {
						if require == MustExist && old == nil || require == MustNotExist && old != nil {
							return nil, errRequire
						}
						return item, nil
					}
					_, wantErr := write(was)
					hint := Hint{}
					if blind {
						hint = Hint{Blind: true, Replacement: item, Require: require}
					}
					old, updated, err := s.WriteItem(t.Context(), def, key, write, hint)
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
						got, err := s.GetItem(t.Context(), def, key)
						if err != nil || !attr.EqualItems(got, m[keyText(key)]) {
							r.Fatalf("item %v, %v; want %v", got, err, m[keyText(key)])
						}
					}
				}
				got, err := getItems(t.Context(), s, def, keys)
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
			}))
		})
	}
}

// Concurrent increments of an item are all counted.
func TestStore_Increments(t *testing.T) {
	t.Parallel()
	for name, start := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := start(t)
			// There are two stores, since the latch would suffice within one.
			a := openStore(t, testOptions(conn))
			def := newTable(t, a, tabledef.Table{Name: "counters", Key: testSchemas["S"]})
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
						err := ErrContended
						for errors.Is(err, ErrContended) {
							_, _, err = s.WriteItem(t.Context(), def, key, increment, Hint{})
						}
						if err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			got, err := a.GetItem(t.Context(), def, key)
			if err != nil || got["n"].Str != "320" {
				t.Errorf("counter is %v, %v; want 320", got, err)
			}
		})
	}
}

// genCondition draws a condition on the sort key of a partition.
func genCondition(t *rapid.T, schema attr.KeySchema, hash attr.Value) attr.KeyRange {
	c := attr.KeyRange{Hash: hash}
	if schema.Range.Name == "" {
		return c
	}
	c.Op = attr.RangeOp(rapid.IntRange(int(attr.NoRange), int(attr.RangeBeginsWith)).Draw(t, "op"))
	if c.Op == attr.RangeBeginsWith && schema.Range.Type == attr.N {
		c.Op = attr.NoRange
	}
	if c.Op != attr.NoRange {
		c.A = genKeyValue(schema.Range).Draw(t, "a")
	}
	if c.Op == attr.RangeBetween {
		c.B = genKeyValue(schema.Range).Draw(t, "b")
		if order, _ := attr.Compare(c.A, c.B); order > 0 {
			c.A, c.B = c.B, c.A
		}
	}
	return c
}

// pages reads a sequence in pages of n items, each after the last item of the page before.
func pages(n int, page func(after attr.Item) iter.Seq2[layout.Stored, error]) ([]attr.Item, error) {
	var all []attr.Item
	var after attr.Item
	for {
		got := 0
		for item, err := range decode(page(after)) {
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

// A query returns the items of the sorted model, in either direction and in pages of any size.
// Scans return all items once, with any number of segments.
func TestStore_Query(t *testing.T) {
	t.Parallel()
	for name, start := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := start(t)
			s := openStore(t, testOptions(conn))
			n := 0
			rapid.Check(t, property.First(25, func(r *rapid.T) {
				schema := testSchemas[rapid.SampledFrom(slices.Sorted(maps.Keys(testSchemas))).Draw(r, "schema")]
				n++
				def := newTable(t, s, tabledef.Table{Name: "query" + strconv.Itoa(n), Key: schema})
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
				want := m.sorted(schema, func(item attr.Item) bool { return matchesKey(cond, schema, layout.Decoded(item)) })
				forward := rapid.Bool().Draw(r, "forward")
				if !forward {
					slices.Reverse(want)
				}
				size := rapid.IntRange(1, 8).Draw(r, "page")
				got, err := pages(size, func(after attr.Item) iter.Seq2[layout.Stored, error] {
					return s.Query(t.Context(), def, nil, cond, forward, after)
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
					part, err := pages(size, func(after attr.Item) iter.Seq2[layout.Stored, error] {
						return s.Scan(t.Context(), def, nil, segment, total, after)
					})
					if err != nil {
						r.Fatal(err)
					}
					scanned = append(scanned, part...)
				}
				slices.SortFunc(scanned, byKey(schema))
				if d := diffItems(m.sorted(schema, func(attr.Item) bool { return true }), scanned); d != "" {
					r.Fatalf("scan (-want +got):\n%s", d)
				}
				if _, err := s.DeleteTable(t.Context(), def.Name); err != nil {
					r.Fatal(err)
				}
			}))
		})
	}
}

// getItems collects the results of GetItems, in the order of keys.
func getItems(ctx context.Context, s *Store, def *tabledef.Table, keys []attr.Item) ([]attr.Item, error) {
	items := make([]attr.Item, len(keys))
	err := s.GetItems(ctx, def, keys, func(i int, item attr.Item) bool {
		items[i] = item
		return true
	})
	return items, err
}
