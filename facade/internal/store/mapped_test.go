package store

import (
	"context"
	_ "embed" // of the mappings
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/test/property"
)

// catalogMapping has one row per item, with terms from the design guides.
//
//go:embed testdata/catalog.yaml
var catalogMapping string

// videoMapping has several items per row, in separate columns or as versions of one column.
//
//go:embed testdata/video.yaml
var videoMapping string

func loadMapping(tb testing.TB, text string) *layout.Mapping {
	tb.Helper()
	m, err := layout.Load("mapping.yaml", []byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// loadNatively writes an item as a loader does: cells without bookkeeping.
func loadNatively(ctx context.Context, s *Store, m *layout.Mapping, item attr.Item) error {
	placed, err := m.Place(item, 1715685260608000)
	if err != nil {
		return err
	}
	var muts []*btpb.Mutation
	for _, c := range placed.Cells {
		muts = append(muts, btclient.SetCell(c.Family, c.Qualifier, c.Timestamp, c.Value))
	}
	return s.bt.MutateRow(ctx, m.TargetTable(), placed.Row, muts)
}

// reindex writes the index entries of rows that a loader wrote.
func reindex(ctx context.Context, s *Store, t *tabledef.Table) error {
	c, err := s.current(ctx, t)
	if err != nil {
		return err
	}
	for _, x := range c.layout.indexes {
		if err := s.backfill(ctx, c.layout, x); err != nil {
			return err
		}
	}
	return nil
}

func sku(pk, sk, price string) attr.Item {
	return attr.Item{
		"PK": attr.String(pk), "SK": attr.String(sk),
		"Price": {Type: attr.N, Str: price}, "Description": attr.String("hat"),
	}
}

// visible returns a table's rows without the facade's bookkeeping.
func visible(tb testing.TB, s *Store, table string) []string {
	tb.Helper()
	var rows []string
	for row, err := range s.bt.Read(tb.Context(), btclient.Read{Table: table, Spans: []layout.Span{{}}}) {
		if err != nil {
			tb.Fatal(err)
		}
		row.Cells = slices.DeleteFunc(row.Cells, func(c layout.Cell) bool { return c.Family == lens.FamilyState })
		var text strings.Builder
		fmt.Fprintf(&text, "%q", row.Key)
		for _, c := range row.Cells {
			fmt.Fprintf(&text, " %s:%s=%q", c.Family, c.Qualifier, c.Value)
		}
		rows = append(rows, text.String())
	}
	return rows
}

// Items of a mapped table have the layout of the mapping, and rows that a loader wrote are
// ordinary items.
func TestStore_MappedRows(t *testing.T) {
	t.Parallel()
	for name, start := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := start(t)
			ctx := t.Context()
			m := loadMapping(t, catalogMapping)
			s := openStore(t, testOptions(conn, m))
			def, err := s.Table(ctx, "Products")
			if err != nil {
				t.Fatal(err)
			}
			loaded := []attr.Item{sku("hats", "fedoras#brandA", "30"), sku("hats", "newsboy#brandB", "20"), sku("shoes", "sneakers#brandA", "40")}
			for _, item := range loaded {
				if err := loadNatively(ctx, s, m, item); err != nil {
					t.Fatal(err)
				}
			}
			hats := attr.KeyRange{Hash: attr.String("hats")}
			got, err := collect(s.Query(ctx, def, nil, hats, true, nil))
			if d := diffItems(loaded[:2], got); d != "" || err != nil {
				t.Errorf("query of loaded rows: %v (-want +got):\n%s", err, d)
			}

			// A failed condition leaves a loaded row unchanged.
			before := dump(t, s, "products")
			failed := errors.New("condition failed")
			_, _, err = s.WriteItem(ctx, def, keyAttrs(def, loaded[0]), func(old attr.Item) (attr.Item, error) {
				if !attr.EqualItems(old, loaded[0]) {
					t.Errorf("old item %v", old)
				}
				return nil, failed
			}, Hint{Blind: true, Replacement: loaded[1], Require: MustNotExist})
			if !errors.Is(err, failed) {
				t.Errorf("write: %v", err)
			}
			if d := gocmp.Diff(before, dump(t, s, "products")); d != "" {
				t.Errorf("rows after a failed condition (-before +after):\n%s", d)
			}

			// An update of one loaded row, a blind put over another.
			dearer := sku("hats", "fedoras#brandA", "31")
			_, _, err = s.WriteItem(ctx, def, keyAttrs(def, dearer), func(old attr.Item) (attr.Item, error) {
				item := maps.Clone(old)
				item["Price"] = attr.Int(31)
				return item, nil
			}, Hint{})
			if err != nil {
				t.Fatal(err)
			}
			bare := attr.Item{"PK": attr.String("hats"), "SK": attr.String("newsboy#brandB"), "Price": attr.Int(5)}
			if err := put(ctx, s, def, bare); err != nil {
				t.Fatal(err)
			}
			want := []string{
				`"hats#fedoras#brandA" SKU:Description="hat" SKU:Price="31"`,
				`"hats#newsboy#brandB" SKU:Price="5"`,
				`"shoes#sneakers#brandA" SKU:Description="hat" SKU:Price="40"`,
			}
			if d := gocmp.Diff(want, visible(t, s, "products")); d != "" {
				t.Errorf("rows (-want +got):\n%s", d)
			}

			// Outside the layout: a '#' in the partition key.
			outside := sku("a#b", "c", "1")
			if err := put(ctx, s, def, outside); !errors.Is(err, ErrOutsideMapping) {
				t.Errorf("put outside the layout: %v", err)
			}
			if got, err := s.GetItem(ctx, def, keyAttrs(def, outside)); got != nil || err != nil {
				t.Errorf("get outside the layout: %v, %v", got, err)
			}
			if got, err := getItems(ctx, s, def, []attr.Item{keyAttrs(def, outside), keyAttrs(def, bare)}); err != nil || got[0] != nil || !attr.EqualItems(got[1], bare) {
				t.Errorf("get in and outside the layout: %v, %v", got, err)
			}
			if err := remove(ctx, s, def, keyAttrs(def, outside)); err != nil {
				t.Errorf("delete outside the layout: %v", err)
			}

			if err := reindex(ctx, s, def); err != nil {
				t.Fatal(err)
			}
			ix := def.Index("ByPrice")
			cond := attr.KeyRange{Hash: attr.String("hat"), Op: attr.RangeGreater, A: attr.Int(30)}
			got, err = collect(s.Query(ctx, def, ix, cond, true, nil))
			if d := diffItems([]attr.Item{dearer, loaded[2]}, got); d != "" || err != nil {
				t.Errorf("index query: %v (-want +got):\n%s", err, d)
			}

			for _, item := range loaded {
				if err := remove(ctx, s, def, keyAttrs(def, item)); err != nil {
					t.Fatal(err)
				}
			}
			if rows := dump(t, s, "products"); len(rows) > 0 {
				t.Errorf("rows are left behind: %v", rows)
			}
			got, err = collect(s.Scan(ctx, def, ix, 0, 1, nil))
			if len(got) > 0 || err != nil {
				t.Errorf("entries are left in the index: %v, %v", texts(got), err)
			}

			// Loaded again after a deletion here.
			if err := loadNatively(ctx, s, m, loaded[0]); err != nil {
				t.Fatal(err)
			}
			if err := reindex(ctx, s, def); err != nil {
				t.Fatal(err)
			}
			if err := checkIndexes(ctx, s, def, model{keyText(keyAttrs(def, loaded[0])): loaded[0]}); err != nil {
				t.Error(err)
			}
		})
	}
}

// If the Bigtable table of a mapping already exists, its rows become items of the DynamoDB table,
// and are in its indexes.
func TestStore_AdoptTable(t *testing.T) {
	t.Parallel()
	for name, start := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := start(t)
			ctx := t.Context()
			m := loadMapping(t, catalogMapping)
			loader := openStore(t, testOptions(conn))
			if _, err := loader.bt.EnsureTable(ctx, "products", m.Families(), nil); err != nil {
				t.Fatal(err)
			}
			item := sku("hats", "fedoras#brandA", "30")
			if err := loadNatively(ctx, loader, m, item); err != nil {
				t.Fatal(err)
			}
			s := openStore(t, testOptions(conn, m))
			def, err := s.Table(ctx, "Products")
			if err != nil {
				t.Fatal(err)
			}
			if got, err := s.GetItem(ctx, def, keyAttrs(def, item)); err != nil || !attr.EqualItems(got, item) {
				t.Errorf("loaded item: %v, %v", got, err)
			}
			if err := checkIndexes(ctx, s, def, model{keyText(keyAttrs(def, item)): item}); err != nil {
				t.Error(err)
			}
			// The cells of the entry have the time of the import, as if a loader had written them.
			entries := 0
			for row, err := range s.bt.Read(ctx, btclient.Read{Table: def.Indexes[0].BigtableTable, Spans: []layout.Span{{}}}) {
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range row.Cells {
					if c.Family == lens.FamilyItem {
						entries++
						if c.Timestamp != 1715685260608000 {
							t.Errorf("cell %s:%s of the entry is of %d", c.Family, c.Qualifier, c.Timestamp)
						}
					}
				}
			}
			if entries == 0 {
				t.Error("no entry in the index")
			}
		})
	}
}

// genVideoItem draws an item of the video table, with few keys, so that items share rows.
func genVideoItem(t *rapid.T) attr.Item {
	item := attr.Item{"PK": attr.String(rapid.SampledFrom([]string{"0123", "0124"}).Draw(t, "PK"))}
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		item["SK"] = attr.String("Video")
		item["UploadDate"] = attr.String("2023-09-10T15:21:48")
		item["Formats"] = attr.MapOf(map[string]attr.Value{"480": attr.String(rapid.StringN(0, 4, -1).Draw(t, "url"))})
	case 1:
		item["SK"] = attr.String("VideoStatsLikes")
		item["Count"] = attr.Int(rapid.Int64Range(-3, 3).Draw(t, "likes"))
	case 2:
		item["SK"] = attr.String("VideoStatsViews")
		item["Count"] = attr.Int(rapid.Int64Range(-3, 3).Draw(t, "views"))
	default:
		item["SK"] = attr.String(fmt.Sprintf("VideoComment#%013d", 8305627524990+rapid.IntRange(0, 5).Draw(t, "time")))
		item["Content"] = attr.String(rapid.StringN(0, 4, -1).Draw(t, "content"))
	}
	return item
}

// Items that share a row do not affect each other, and a row is removed with its last item.
func TestStore_SharedRows(t *testing.T) {
	t.Parallel()
	for name, start := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := start(t)
			ctx := t.Context()
			videos := loadMapping(t, videoMapping)
			s := openStore(t, testOptions(conn, videos))
			def, err := s.Table(ctx, "Videos")
			if err != nil {
				t.Fatal(err)
			}
			rapid.Check(t, property.First(25, func(r *rapid.T) {
				if err := empty(ctx, s, def); err != nil {
					r.Fatal(err)
				}
				m := model{}
				for range rapid.IntRange(1, 12).Draw(r, "steps") {
					item := genVideoItem(r)
					key := keyAttrs(def, item)
					var err error
					switch rapid.IntRange(0, 4).Draw(r, "op") {
					case 0:
						delete(m, keyText(key))
						err = remove(ctx, s, def, key)
					case 1:
						m[keyText(key)] = item
						// A loader's write over an item replaces its cells.
						if err = remove(ctx, s, def, key); err == nil {
							err = loadNatively(ctx, s, videos, item)
						}
					default:
						m[keyText(key)] = item
						err = put(ctx, s, def, item)
					}
					if err != nil {
						r.Fatal(err)
					}
				}
				all := func(attr.Item) bool { return true }
				size := rapid.IntRange(1, 5).Draw(r, "page")
				got, err := pages(size, func(after attr.Item) iter.Seq2[layout.Stored, error] {
					return s.Scan(ctx, def, nil, 0, 1, after)
				})
				if err != nil {
					r.Fatal(err)
				}
				if d := diffItems(m.sorted(def.Key, all), got); d != "" {
					r.Fatalf("scan (-want +got):\n%s", d)
				}
				cond := attr.KeyRange{Hash: attr.String("0123")}
				if rapid.Bool().Draw(r, "comments") {
					cond.Op, cond.A = attr.RangeBeginsWith, attr.String("VideoComment#")
				}
				want := m.sorted(def.Key, func(item attr.Item) bool { return matchesKey(cond, def.Key, layout.Decoded(item)) })
				forward := rapid.Bool().Draw(r, "forward")
				if !forward {
					slices.Reverse(want)
				}
				got, err = pages(size, func(after attr.Item) iter.Seq2[layout.Stored, error] {
					return s.Query(ctx, def, nil, cond, forward, after)
				})
				if err != nil {
					r.Fatal(err)
				}
				if d := diffItems(want, got); d != "" {
					r.Fatalf("query (-want +got):\n%s", d)
				}
				for _, item := range m {
					if err := remove(ctx, s, def, keyAttrs(def, item)); err != nil {
						r.Fatal(err)
					}
				}
				if rows := dump(t, s, "videos"); len(rows) > 0 {
					r.Fatalf("rows are left behind: %v", rows)
				}
			}))
		})
	}
}

// If two rules share a column, the second item is rejected and does not overwrite the first,
// whichever rule comes first and through whichever store.
func TestStore_SharedColumn(t *testing.T) {
	t.Parallel()
	views := attr.Item{"PK": attr.String("0123"), "SK": attr.String("VideoStatsViews"), "Count": attr.Int(156)}
	stats := attr.Item{"PK": attr.String("0123"), "SK": attr.String("VideoStats"), "ViewCount": attr.Int(45)}
	comment := attr.Item{"PK": attr.String("0123"), "SK": attr.String("VideoComment#8305627524990"), "Content": attr.String("good")}
	for name, start := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := start(t)
			ctx := t.Context()
			for _, pair := range [][2]attr.Item{{views, stats}, {stats, views}} {
				first, second := pair[0], pair[1]
				o := testOptions(conn, loadMapping(t, videoMapping))
				o.Instance = strings.ToLower(first["SK"].Str)
				s := openStore(t, o)
				def, err := s.Table(ctx, "Videos")
				if err != nil {
					t.Fatal(err)
				}
				for _, item := range []attr.Item{comment, first} {
					if err := put(ctx, s, def, item); err != nil {
						t.Fatal(err)
					}
				}
				err = put(ctx, s, def, second)
				if !errors.Is(err, ErrOutsideMapping) || !strings.Contains(err.Error(), first["SK"].Str) {
					t.Errorf("put over another item: %v", err)
				}
				changes := []*Change{replaceBy(def, keyAttrs(def, second), second)}
				if ok, _, err := s.Transact(ctx, RequestToken{}, changes); ok || err != nil || !errors.Is(changes[0].Err, ErrOutsideMapping) {
					t.Errorf("transaction over another item: %v, %v, %v", ok, err, changes[0].Err)
				}
				got, err := collect(s.Scan(ctx, def, nil, 0, 1, nil))
				if d := diffItems([]attr.Item{comment, first}, got); d != "" || err != nil {
					t.Errorf("items: %v (-want +got):\n%s", err, d)
				}
			}
		})
	}
}

// A transaction that puts an item into a shared column owns the column from its first intent
// until it ends, even if other writers come meanwhile or its process ends.
func TestStore_SharedColumnReserved(t *testing.T) {
	t.Parallel()
	views := attr.Item{"PK": attr.String("0123"), "SK": attr.String("VideoStatsViews"), "Count": attr.Int(156)}
	stats := attr.Item{"PK": attr.String("0123"), "SK": attr.String("VideoStats"), "ViewCount": attr.Int(45)}
	likes := attr.Item{"PK": attr.String("0123"), "SK": attr.String("VideoStatsLikes"), "Count": attr.Int(3)}
	without := func(item attr.Item) attr.Item { return attr.Item{"PK": item["PK"], "SK": item["SK"]} }
	for name, start := range backends {
		for _, pair := range [][2]attr.Item{{views, stats}, {stats, views}} {
			t.Run(name+"/"+pair[0]["SK"].Str, func(t *testing.T) {
				t.Parallel()
				ctx := t.Context()
				first, second := pair[0], pair[1]
				c := &hookConn{ClientConnInterface: start(t)}
				now := clock.NewFrozen(time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC))
				o := testOptions(c, loadMapping(t, videoMapping))
				o.Now = now.Now
				s, other := openStore(t, o), openStore(t, o)
				def, err := s.Table(ctx, "Videos")
				if err != nil {
					t.Fatal(err)
				}
				transact := func(s *Store, items ...attr.Item) (bool, error) {
					t.Helper()
					var changes []*Change
					for _, item := range items {
						changes = append(changes, replaceBy(def, keyAttrs(def, item), item))
					}
					ok, _, err := s.Transact(ctx, RequestToken{}, changes)
					if err != nil {
						t.Error(err)
					}
					for _, ch := range changes {
						if ch.Err != nil {
							return ok, ch.Err
						}
					}
					return ok, nil
				}
				holds := func(want ...attr.Item) {
					t.Helper()
					checkNoIntents(t, s, def.BigtableTable)
					for _, s := range []*Store{s, other} {
						got, err := collect(s.Scan(ctx, def, nil, 0, 1, nil))
						slices.SortFunc(got, byKey(def.Key))
						slices.SortFunc(want, byKey(def.Key))
						if d := diffItems(want, got); d != "" || err != nil {
							t.Errorf("items: %v (-want +got):\n%s", err, d)
						}
					}
				}
				meanwhile := func() {
					for _, s := range []*Store{s, other} {
						if err := put(ctx, s, def, second); !errors.Is(err, ErrIntent) {
							t.Errorf("put into a column that a transaction has: %v", err)
						}
						if ok, err := transact(s, second); ok || !errors.Is(err, ErrIntent) {
							t.Errorf("transaction on a column that another has: %v, %v", ok, err)
						}
						if err := put(ctx, s, def, likes); err != nil {
							t.Errorf("put into another column of the row: %v", err)
						}
					}
				}

				c.hook = meanwhile
				if ok, err := transact(s, first); !ok || err != nil {
					t.Errorf("transaction: %v, %v", ok, err)
				}
				if err := put(ctx, other, def, second); !errors.Is(err, ErrOutsideMapping) {
					t.Errorf("put over another item: %v", err)
				}
				holds(likes, first)
				for _, item := range []attr.Item{first, likes} {
					if err := remove(ctx, s, def, keyAttrs(def, item)); err != nil {
						t.Fatal(err)
					}
				}

				// It times out before its commit.
				c.hook = func() {
					meanwhile()
					now.Advance(transactionTimeout)
					if err := put(ctx, other, def, second); err != nil {
						t.Errorf("put after the time-out: %v", err)
					}
				}
				if ok, err := transact(s, first); ok || !errors.Is(err, ErrIntent) {
					t.Errorf("transaction after its time: %v, %v", ok, err)
				}
				holds(likes, second)
				if err := remove(ctx, s, def, keyAttrs(def, likes)); err != nil {
					t.Fatal(err)
				}
				if err := remove(ctx, s, def, keyAttrs(def, second)); err != nil {
					t.Fatal(err)
				}

				// Items of one row; one of them has no cell in the column.
				if ok, err := transact(s, without(second), first); !ok || err != nil {
					t.Errorf("transaction on two items: %v, %v", ok, err)
				}
				holds(without(second), first)
				if ok, err := transact(s, without(first), likes); !ok || err != nil {
					t.Errorf("transaction on two items: %v, %v", ok, err)
				}
				holds(without(second), likes, without(first))

				// Both exist, and enter the column at the same time.
				once := false
				_, _, err = s.WriteItem(ctx, def, keyAttrs(def, first), func(attr.Item) (attr.Item, error) {
					if !once {
						once = true
						if err := put(ctx, other, def, second); err != nil {
							t.Error(err)
						}
					}
					return first, nil
				}, Hint{})
				if !errors.Is(err, ErrOutsideMapping) {
					t.Errorf("put over an item that came meanwhile: %v", err)
				}
				holds(second, likes, without(first))
				if rows := dump(t, s, s.o.Catalog); slices.ContainsFunc(rows, func(r string) bool { return strings.Contains(r, transactionRowPrefix) }) {
					t.Errorf("the catalog has %v", rows)
				}
			})
		}
	}
}

func TestStore_MappingConflicts(t *testing.T) {
	t.Parallel()
	conn := backends["emu"](t)
	m := loadMapping(t, catalogMapping)
	for name, mappings := range map[string][]*layout.Mapping{
		"two mappings for table Products": {m, m},
		"have the same target table":      {m, loadMapping(t, strings.Replace(catalogMapping, "table: Products", "table: Other", 1))},
		"cannot be served": {loadMapping(t, `
apiVersion: migration/v1
compat: google-utility
source: {table: T, key: {hash: {name: id, type: S}}}
target: {table: t, families: {cf1: {}}}
`)},
		"names no source table": {loadMapping(t, strings.Replace(catalogMapping, "  table: Products\n", "", 1))},
	} {
		if _, err := Open(t.Context(), testOptions(conn, mappings...)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := openStore(t, testOptions(conn, m))
	if _, err := s.DeleteTable(t.Context(), "Products"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateTable(t.Context(), &tabledef.Table{Name: "Products", Key: testSchemas["S"]}); !errors.Is(err, ErrSchemaConflict) {
		t.Errorf("another key schema: %v", err)
	}
	created := newTable(t, s, tabledef.Table{Name: "Products", Key: m.Key()})
	if created.BigtableTable != "products" {
		t.Errorf("created %+v", created)
	}
}

// A table remembers that it was created with a mapping, and accepts an extended one.
func TestStore_MappingChanges(t *testing.T) {
	t.Parallel()
	conn := backends["emu"](t)
	ctx := t.Context()
	lines := strings.SplitAfter(catalogMapping, "\n")
	without := strings.Join(slices.DeleteFunc(lines, func(l string) bool {
		return strings.Contains(l, "gsis:") || strings.Contains(l, "ByPrice")
	}), "")
	s := openStore(t, testOptions(conn, loadMapping(t, without)))
	def, err := s.Table(ctx, "Products")
	if err != nil {
		t.Fatal(err)
	}
	item := sku("hats", "fedoras#brandA", "30")
	if err := put(ctx, s, def, item); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = openStore(t, testOptions(conn))
	if _, err := s.Table(ctx, "Products"); !errors.Is(err, ErrOutsideMapping) {
		t.Errorf("table without its mapping: %v", err)
	}

	s = openStore(t, testOptions(conn, loadMapping(t, catalogMapping)))
	s.Wait()
	if def, err = s.Table(ctx, "Products"); err != nil {
		t.Fatal(err)
	}
	if err := checkIndexes(ctx, s, def, model{keyText(keyAttrs(def, item)): item}); err != nil || len(def.Indexes) != 1 {
		t.Errorf("indexes %v: %v", def.Indexes, err)
	}

	const advice = ": restore that in the mapping, or first delete the table with the mapping that created it"
	for old, change := range map[string]struct{ to, want string }{
		"table: products":             {"table: wares", "opening the catalog: table Products was created in Bigtable table products, but its mapping says wares" + advice},
		"range: {name: SK, type: S}}": {"range: {name: S2, type: S}}", "opening the catalog: table Products was created with the key PK (S), SK (S), but its mapping says PK (S), S2 (S)" + advice},
	} {
		text := strings.Replace(catalogMapping, old, change.to, 1)
		if old != "table: products" {
			text = strings.Replace(text, "{SK:s}", "{S2:s}", 1)
		}
		if _, err := Open(ctx, testOptions(conn, loadMapping(t, text))); err == nil || err.Error() != change.want {
			t.Errorf("%s: %v", change.to, err)
		}
	}
}

// saltedMapping spreads a partition over three shards. ORDER is the encoder of the sort key.
const saltedMapping = `
apiVersion: migration/v1
source: {table: Events, key: {hash: {name: PK, type: S}, range: {name: SK, type: N}}, schema: {v: S}}
target: {table: events, joiner: oc, families: {e: {gc: {versions: 1}}, _t: {gc: {versions: 1}}}}
rules: [{name: event, row: ["{SK:salt(fnv1a32,3,1)}", "{PK}", "{SK:ORDER}"], put: [{attr: "*", cell: "e:{attr}"}]}]
`

// A salted partition is read as one, in order, in either direction and page by page.
func TestStore_Salted(t *testing.T) {
	t.Parallel()
	for name, start := range backends {
		for _, order := range []string{"nord", "revms(13)", "n"} {
			t.Run(name+" "+order, func(t *testing.T) {
				t.Parallel()
				ctx := t.Context()
				s := openStore(t, testOptions(start(t), loadMapping(t, strings.Replace(saltedMapping, "ORDER", order, 1))))
				def, err := s.Table(ctx, "Events")
				if err != nil {
					t.Fatal(err)
				}
				m := model{}
				for i := range 12 {
					item := attr.Item{"PK": attr.String([]string{"hot", "cold"}[i%4/3]), "SK": attr.Int(int64(i * 7)), "v": attr.String("x")}
					m[keyText(keyAttrs(def, item))] = item
					if err := put(ctx, s, def, item); err != nil {
						t.Fatal(err)
					}
				}
				if rows := dump(t, s, "events"); !strings.HasPrefix(rows[0], `"0`) || !strings.HasPrefix(rows[len(rows)-1], `"2`) {
					t.Errorf("rows are not spread: %v", rows)
				}
				for _, cond := range []attr.KeyRange{
					{Hash: attr.String("hot")},
					{Hash: attr.String("hot"), Op: attr.RangeBetween, A: attr.Int(7), B: attr.Int(63)},
					{Hash: attr.String("cold"), Op: attr.RangeGreater, A: attr.Int(21)},
					{Hash: attr.String("cold"), Op: attr.RangeEqual, A: attr.Int(21)},
				} {
					for _, forward := range []bool{true, false} {
						want := m.sorted(def.Key, func(item attr.Item) bool { return matchesKey(cond, def.Key, layout.Decoded(item)) })
						if !forward {
							slices.Reverse(want)
						}
						for _, size := range []int{1, 2, 100} {
							got, err := pages(size, func(after attr.Item) iter.Seq2[layout.Stored, error] {
								return s.Query(ctx, def, nil, cond, forward, after)
							})
							if d := diffItems(want, got); d != "" || err != nil || len(want) == 0 {
								t.Errorf("%+v, forward %v, pages of %d: %v (-want +got):\n%s", cond, forward, size, err, d)
							}
						}
					}
				}
			})
		}
	}
}

const documentMapping = `
apiVersion: migration/v1
source: {table: Equipment, key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}, schema: {State: S}}
target: {table: equipment, families: {v: {gc: {versions: 10}}}}
accept_loss: [{what: absent, why: "nobody reads the columns alone"}]
rules: [{name: doc, when: {SK: "v{n:ver}_{rest:s}"}, row: ["{PK:s}", "{rest}"], put: [{attr: "*", cell: "v:{attr}", ts: "{n}"}], latest: v0}]
`

// The copy of the highest version follows the versions. It can be read like an item, but not
// written.
func TestStore_Versions(t *testing.T) {
	t.Parallel()
	version := func(n int, state string) attr.Item {
		return attr.Item{"PK": attr.String("Equipment"), "SK": attr.String(fmt.Sprintf("v%d_1", n)), "State": attr.String(state)}
	}
	for name, start := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			s := openStore(t, testOptions(start(t), loadMapping(t, documentMapping)))
			def, err := s.Table(ctx, "Equipment")
			if err != nil {
				t.Fatal(err)
			}
			holds := func(want ...attr.Item) {
				t.Helper()
				got, err := collect(s.Query(ctx, def, nil, attr.KeyRange{Hash: attr.String("Equipment")}, true, nil))
				if d := diffItems(want, got); d != "" || err != nil {
					t.Errorf("query: %v (-want +got):\n%s", err, d)
				}
				if got, err = collect(s.Scan(ctx, def, nil, 0, 1, nil)); err != nil || diffItems(want, got) != "" {
					t.Errorf("scan: %v, %v", texts(got), err)
				}
				for _, item := range want {
					if got, err := s.GetItem(ctx, def, keyAttrs(def, item)); err != nil || !attr.EqualItems(got, item) {
						t.Errorf("item %v, %v; want %v", got, err, item)
					}
				}
			}
			for _, item := range []attr.Item{version(1, "OK"), version(2, "WARNING1"), version(11, "OK")} {
				if err := put(ctx, s, def, item); err != nil {
					t.Fatal(err)
				}
			}
			all := []attr.Item{version(0, "OK"), version(11, "OK"), version(1, "OK"), version(2, "WARNING1")}
			holds(all...)
			before := dump(t, s, "equipment")
			if err := put(ctx, s, def, version(0, "BROKEN")); !errors.Is(err, ErrOutsideMapping) {
				t.Errorf("put of a copy: %v", err)
			}
			if err := remove(ctx, s, def, keyAttrs(def, all[0])); !errors.Is(err, ErrOutsideMapping) {
				t.Errorf("delete of a copy: %v", err)
			}
			changes := []*Change{replaceBy(def, keyAttrs(def, all[0]), version(0, "BROKEN"))}
			if ok, _, err := s.Transact(ctx, RequestToken{}, changes); ok || err != nil || !errors.Is(changes[0].Err, ErrOutsideMapping) {
				t.Errorf("transaction on a copy: %v, %v, %v", ok, err, changes[0].Err)
			}
			if d := gocmp.Diff(before, dump(t, s, "equipment")); d != "" {
				t.Errorf("rows after refused writes (-before +after):\n%s", d)
			}
			if err := put(ctx, s, def, version(0, "OK")); err != nil {
				t.Errorf("put of the copy as it is: %v", err)
			}
			transact := func(want error, changes ...*Change) {
				t.Helper()
				ok, _, err := s.Transact(ctx, RequestToken{}, changes)
				var refused error
				for _, ch := range changes {
					refused = errors.Join(refused, ch.Err)
				}
				if err != nil || ok != (want == nil) || !errors.Is(refused, want) {
					t.Errorf("transaction: %v, %v, %v; want %v", ok, err, refused, want)
				}
			}
			replace := func(item attr.Item) *Change { return replaceBy(def, keyAttrs(def, item), item) }
			check := func(item attr.Item) *Change {
				return &Change{Table: def, Key: keyAttrs(def, item), Check: true, Fn: func(old attr.Item) (attr.Item, error) {
					if !attr.EqualItems(old, item) {
						return nil, errors.New("another item")
					}
					return old, nil
				}}
			}
			transact(nil, check(all[0]))
			if d := gocmp.Diff(before, dump(t, s, "equipment")); d != "" {
				t.Errorf("rows after writes of the copy as it is (-before +after):\n%s", d)
			}
			transact(ErrOutsideMapping, replace(version(12, "NEW")), replace(version(0, "OLD")))
			transact(ErrOutsideMapping, replace(version(3, "LOW")), replace(version(0, "LOW"))) // 11 is the highest
			holds(all...)
			transact(nil, replace(version(12, "NEW")), replace(version(0, "NEW")))
			transact(nil, replace(version(0, "OK")), replaceBy(def, keyAttrs(def, version(12, "")), nil)) // 11 is the highest again
			transact(nil, replace(version(3, "LOW")), replace(version(0, "OK")))
			holds(all[0], all[1], all[2], all[3], version(3, "LOW"))
			batch := func(items ...attr.Item) error {
				var writes []Replacement
				for _, item := range items {
					writes = append(writes, Replacement{Key: keyAttrs(def, item), Item: item, Blind: true})
				}
				err := s.WriteItems(ctx, def, writes)
				for _, w := range writes {
					err = errors.Join(err, w.Err)
				}
				return err
			}
			if err := batch(version(0, "TOP"), version(13, "TOP")); err != nil {
				t.Errorf("batch of the copy and its version: %v", err)
			}
			if err := batch(version(0, "OTHER")); !errors.Is(err, ErrOutsideMapping) {
				t.Errorf("batch of another copy: %v", err)
			}
			if err := batch(version(0, "OTHER"), version(3, "LOWER")); !errors.Is(err, ErrOutsideMapping) {
				t.Errorf("batch of another copy and a low version: %v", err)
			}
			holds(version(0, "TOP"), all[1], version(13, "TOP"), all[2], all[3], version(3, "LOWER"))
			for _, item := range []attr.Item{version(3, "LOW"), version(13, "TOP")} {
				if err := remove(ctx, s, def, keyAttrs(def, item)); err != nil {
					t.Fatal(err)
				}
			}
			if err := remove(ctx, s, def, keyAttrs(def, all[1])); err != nil {
				t.Fatal(err)
			}
			holds(version(0, "WARNING1"), all[2], all[3])
			for _, item := range []attr.Item{all[2], all[3]} {
				if err := remove(ctx, s, def, keyAttrs(def, item)); err != nil {
					t.Fatal(err)
				}
			}
			holds()
			if rows := dump(t, s, "equipment"); len(rows) > 0 {
				t.Errorf("rows are left behind: %v", rows)
			}
			if err := remove(ctx, s, def, keyAttrs(def, all[0])); err != nil {
				t.Errorf("delete of a copy that is not there: %v", err)
			}
		})
	}
}

const shardedMapping = `
apiVersion: migration/v1
source:
  table: Orders
  key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}
  schema: {Open: S, At: S, Note: S}
  gsis:
  - {name: Plain, hash: Open, range: At, shard: {n: 5, by: fnv1a32(PK)}, row: [At, PK]}
  - {name: Code, hash: Open, range: At, projection: KEYS_ONLY, shard: {n: 5, by: md5(PK)}, joiner: oc}
  - {name: Own, hash: Open, shard: {n: 3, by: Open}}
target: {table: orders, families: {a: {gc: {versions: 1}}, _t: {gc: {versions: 1}}}}
rules: [{name: order, row: ["{PK:s}", "{SK:s}"], put: [{attr: "*", cell: "a:{attr}"}]}]
`

// A sharded index is read as one, in order, in either direction and page by page; its entries
// follow the items.
func TestStore_ShardedIndexes(t *testing.T) {
	t.Parallel()
	for name, start := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			s := openStore(t, testOptions(start(t), loadMapping(t, shardedMapping)))
			def, err := s.Table(ctx, "Orders")
			if err != nil {
				t.Fatal(err)
			}
			m := model{}
			write := func(i int, at string) {
				item := attr.Item{
					"PK": attr.String(fmt.Sprintf("order%d", i)), "SK": attr.String("c"), "Note": attr.String(at),
					"Open": attr.String(fmt.Sprint(i % 2)), "At": attr.String(at),
				}
				if at == "" { // shipped: no longer in an index
					delete(item, "At")
					delete(item, "Open")
				}
				m[keyText(keyAttrs(def, item))] = item
				if err := put(ctx, s, def, item); err != nil {
					t.Fatal(err)
				}
			}
			for i := range 14 {
				write(i, []string{"OPEN#2", "OPEN", "OPEN 1", "OPEN#10", "SENT"}[i%5])
			}
			write(3, "")
			write(4, "SENT#1")
			if err := checkIndexes(ctx, s, def, m); err != nil {
				t.Error(err)
			}
			for i := range def.Indexes {
				ix := &def.Indexes[i]
				conds := []attr.KeyRange{{Hash: attr.String("0")}, {Hash: attr.String("1")}}
				if len(ix.Key.Range) > 0 {
					conds = append(conds,
						attr.KeyRange{Hash: attr.String("0"), Op: attr.RangeBetween, A: attr.String("OPEN"), B: attr.String("OPEN#10")},
						attr.KeyRange{Hash: attr.String("1"), Op: attr.RangeBeginsWith, A: attr.String("OPEN#")},
						attr.KeyRange{Hash: attr.String("0"), Op: attr.RangeLessEqual, A: attr.String("OPEN#2")},
						attr.KeyRange{Hash: attr.String("1"), Op: attr.RangeEqual, A: attr.String("OPEN#2")})
				}
				for _, cond := range conds {
					query := func(forward bool, after attr.Item) iter.Seq2[layout.Stored, error] {
						return s.Query(ctx, def, ix, cond, forward, after)
					}
					wanted := map[string]bool{}
					for id, item := range m {
						if ix.Key.Matches(cond, layout.Decoded(item)) {
							wanted[id] = true
						}
					}
					all, err := collect(query(true, nil))
					if err != nil || len(all) != len(wanted) || len(all) == 0 {
						t.Fatalf("%s, %+v: %v, %v; want %v", ix.Name, cond, texts(all), err, wanted)
					}
					for i, item := range all {
						if !wanted[keyText(keyAttrs(def, item))] || i > 0 && len(ix.Key.Range) > 0 && compareAttr(layout.Decoded(all[i-1]), layout.Decoded(item), "At") > 0 {
							t.Errorf("%s, %+v: %v", ix.Name, cond, texts(all))
						}
					}
					for _, forward := range []bool{true, false} {
						want := slices.Clone(all)
						if !forward {
							slices.Reverse(want)
						}
						for _, size := range []int{1, 3} {
							got, err := pages(size, func(after attr.Item) iter.Seq2[layout.Stored, error] { return query(forward, after) })
							if d := diffItems(want, got); d != "" || err != nil {
								t.Errorf("%s, %+v, forward %v, pages of %d: %v (-want +got):\n%s", ix.Name, cond, forward, size, err, d)
							}
						}
					}
				}
			}
		})
	}
}

const expiringMapping = `
apiVersion: migration/v1
source: {table: Sessions, key: {hash: {name: id, type: S}}, schema: {expires: N, v: S}, ttl: {attribute: expires, mode: MODE}}
target: {table: sessions, families: {a: {gc: {maxAge: AGE}}, _t: {gc: {maxAge: AGE}}}}
rules: [{name: session, row: ["{id}"], put: [{attr: "*", cell: "a:{attr}"}]}]
`

// If garbage collection deletes expired items, an expired item is invisible even before that, and
// can be written again.
func TestStore_ExpiresByGC(t *testing.T) {
	t.Parallel()
	for mode, age := range map[string]string{"one-second": "1s", "shift(48h)": "48h"} {
		for name, start := range backends {
			t.Run(name+" "+mode, func(t *testing.T) {
				t.Parallel()
				ctx := t.Context()
				o := testOptions(start(t), loadMapping(t, strings.NewReplacer("MODE", mode, "AGE", age).Replace(expiringMapping)))
				now := time.Date(2024, 5, 14, 11, 14, 20, 0, time.UTC)
				o.Now = func() time.Time { return now }
				s := openStore(t, o)
				def, err := s.Table(ctx, "Sessions")
				if err != nil {
					t.Fatal(err)
				}
				session := func(id string, expires time.Time, v string) attr.Item {
					item := attr.Item{"id": attr.String(id), "v": attr.String(v)}
					if !expires.IsZero() {
						item["expires"] = attr.Int(expires.Unix())
					}
					return item
				}
				soon, later, always := session("soon", now.Add(time.Minute), "a"), session("later", now.Add(time.Hour), "b"), session("always", time.Time{}, "c")
				holds := func(want ...attr.Item) {
					t.Helper()
					got, err := collect(s.Scan(ctx, def, nil, 0, 1, nil))
					if d := diffItems(want, got); d != "" || err != nil {
						t.Errorf("scan: %v (-want +got):\n%s", err, d)
					}
					for _, item := range []attr.Item{soon, later, always} {
						wanted := slices.ContainsFunc(want, func(o attr.Item) bool { return attr.EqualItems(keyAttrs(def, o), keyAttrs(def, item)) })
						if got, err := s.GetItem(ctx, def, keyAttrs(def, item)); err != nil || (got != nil) != wanted {
							t.Errorf("item %v, %v", got, err)
						}
					}
				}
				for _, item := range []attr.Item{soon, later, always} {
					if err := put(ctx, s, def, item); err != nil {
						t.Fatal(err)
					}
				}
				holds(always, later, soon)
				now = now.Add(time.Minute + 2*time.Second)
				holds(always, later)
				_, _, err = s.WriteItem(ctx, def, keyAttrs(def, soon), func(old attr.Item) (attr.Item, error) {
					if old != nil {
						t.Errorf("an expired item is %v", old)
					}
					return session("soon", now.Add(2*time.Hour), "again"), nil
				}, Hint{})
				if err != nil {
					t.Fatal(err)
				}
				again := session("soon", now.Add(2*time.Hour), "again")
				holds(always, later, again)
				// An earlier expiry is not delayed by the older cells.
				sooner := session("later", now.Add(time.Second), "b")
				if err := put(ctx, s, def, sooner); err != nil {
					t.Fatal(err)
				}
				holds(always, sooner, again)
				now = now.Add(2 * time.Second)
				holds(always, again)
			})
		}
	}
}

// If a mapping stores the attribute of its time to live, the table expires items by that
// attribute, even items that were loaded.
func TestReapExpired_Mapped(t *testing.T) {
	t.Parallel()
	conn := backends["emu"](t)
	ctx := t.Context()
	m := loadMapping(t, strings.NewReplacer("MODE", "attribute", "maxAge: AGE", "versions: 1").Replace(expiringMapping))
	o := testOptions(conn, m)
	now := time.Date(2024, 5, 14, 11, 14, 20, 0, time.UTC)
	o.Now = func() time.Time { return now }
	loader := openStore(t, testOptions(conn))
	if _, err := loader.bt.EnsureTable(ctx, m.TargetTable(), m.Families(), nil); err != nil {
		t.Fatal(err)
	}
	loaded := attr.Item{"id": attr.String("loaded"), "expires": attr.Int(now.Add(-time.Minute).Unix())}
	if err := loadNatively(ctx, loader, m, loaded); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, o)
	s.Wait()
	def, err := s.Table(ctx, "Sessions")
	if err != nil || def.TTLAttribute != "expires" || def.TTLFilling {
		t.Fatalf("%+v, %v", def, err)
	}
	if got, err := s.GetItem(ctx, def, keyAttrs(def, loaded)); err != nil || !attr.EqualItems(got, loaded) {
		t.Errorf("an expired item is %v, %v, before it is deleted", got, err)
	}
	if n, err := s.reapExpired(ctx); n != 1 || err != nil {
		t.Errorf("%d items deleted, %v", n, err)
	}
	if rows := dump(t, s, m.TargetTable()); len(rows) > 0 {
		t.Errorf("rows are left behind: %v", rows)
	}
}
