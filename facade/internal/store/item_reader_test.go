package store

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/test/intercept"
	"github.com/tabletop-emu/tabletop/internal/test/peer"
	"github.com/tabletop-emu/tabletop/internal/test/property"
)

// wideTable is a mapping that stores many items of a partition in one row.
type wideTable struct {
	rules string
	// item returns the i-th item by sort key.
	item func(i int) attr.Item
	// pieces means that the row can be read in pieces.
	pieces bool
}

const wideHead = `
apiVersion: migration/v1
source:
  table: Wide
  key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}
  schema: {A: S, B: S, C: S}
target:
  table: wide
  families: {f: {}, g: {}, v: {gc: {versions: 100000}}%s}
timestamps: {default: "2024-05-14T11:14:20.608Z"}
rules:
`

const (
	typedFamily = ", _t: {gc: {versions: 1}}"
	wideInfo    = `
- name: info
  when: {SK: "Info"}
  row: ["{PK:s}"]
  put: [{attr: A, cell: "g:a"}, {attr: B, cell: "g:b"}]
`
)

func wideItem(sk string, i int) attr.Item {
	return attr.Item{"PK": attr.String("p"), "SK": attr.String(sk), "A": attr.String(fmt.Sprintf("a%04d", i))}
}

var wideTables = map[string]wideTable{
	"a column each": {
		rules: fmt.Sprintf(wideHead, "") + `
- name: friend
  when: {SK: "Friend#{f:s}"}
  row: ["{PK:s}"]
  put: [{attr: A, cell: "f:{f:s}", codec: s}]
` + wideInfo,
		item:   func(i int) attr.Item { return wideItem(fmt.Sprintf("Friend#%06d", i), i) },
		pieces: true,
	},
	"a column each, and exceptions": {
		rules: fmt.Sprintf(wideHead, typedFamily) + `
- name: all
  when: {}
  row: ["{PK:s}"]
  put: [{attr: A, cell: "f:{SK:s}"}, {attr: B, cell: "g:x{SK:s}"}]
`,
		item: func(i int) attr.Item {
			item := wideItem(fmt.Sprintf("%06d", i), i)
			switch i % 7 {
			case 0:
				item["A"] = attr.Int(int64(i))
			case 1:
				item["B"] = attr.String("b")
			case 2:
				delete(item, "A") // only its key
			}
			return item
		},
		pieces: true,
	},
	"several columns each": {
		rules: fmt.Sprintf(wideHead, typedFamily) + `
- name: part
  when: {SK: "Part#{n:pad(6)}"}
  row: ["{PK:s}"]
  put: [{attr: A, cell: "f:{n:pad(6)}.a"}, {attr: "*", cell: "g:p{n:pad(6)}.{attr}"}]
`,
		item: func(i int) attr.Item {
			item := wideItem(fmt.Sprintf("Part#%06d", i), i)
			if i%2 == 0 {
				item["B"] = attr.String("b")
			}
			if i%5 == 0 {
				item["C"] = attr.Int(int64(i))
			}
			return item
		},
		pieces: true,
	},
	"a column of two parts each": {
		rules: fmt.Sprintf(wideHead, "") + `
- name: message
  when: {SK: "Message#{day:s}#{id:s}"}
  row: ["{PK:s}"]
  put: [{attr: A, cell: "f:{day:s}#{id:s}", codec: s}]
` + wideInfo,
		item:   func(i int) attr.Item { return wideItem(fmt.Sprintf("Message#d%03d#%03d", i/100, i%100), i) },
		pieces: true,
	},
	"versions of a column, newest first": {
		rules: fmt.Sprintf(wideHead, typedFamily) + `
- name: comment
  when: {SK: "Comment#{t:revms(13)}"}
  row: ["{PK:s}"]
  put: [{attr: A, cell: "v:comments", codec: s, ts: "{t}"}]
` + wideInfo,
		item:   func(i int) attr.Item { return wideItem(fmt.Sprintf("Comment#%013d", 8305627524990+i), i) },
		pieces: true,
	},
	"versions of columns, oldest first": {
		rules: fmt.Sprintf(wideHead, "") + `
- name: comment
  when: {SK: "Comment#{t:iso(ms)}"}
  row: ["{PK:s}"]
  put: [{attr: A, cell: "v:a", codec: s, ts: "{t}"}, {attr: B, cell: "v:b", codec: s, ts: "{t}"}]
`,
		item: func(i int) attr.Item {
			item := wideItem("Comment#"+testTime.Add(time.Duration(i)*time.Second).Format("2006-01-02T15:04:05.000"), i)
			if i%2 == 0 {
				item["B"] = attr.String("b")
			}
			return item
		},
		pieces: true,
	},
	"columns that do not sort as the keys": {
		rules: fmt.Sprintf(wideHead, "") + `
- name: friend
  when: {SK: "Friend#{f:s}"}
  row: ["{PK:s}"]
  put: [{attr: A, cell: "f:{f:s}#a", codec: s}]
`,
		item: func(i int) attr.Item { return wideItem(fmt.Sprintf("Friend#%06d", i), i) },
	},
}

// loadWide opens a store on a table whose only row has n items, and returns the items in the
// order of their sort keys. change may change the options, for example the connection.
func loadWide(tb testing.TB, w wideTable, n int, change ...func(*Options)) (*Store, *tabledef.Table, []attr.Item) {
	tb.Helper()
	m := loadMapping(tb, w.rules)
	o := testOptions(peer.Bigtable(tb, clock.New()), m)
	for _, c := range change {
		c(&o)
	}
	s := openStore(tb, o)
	def, err := s.Table(tb.Context(), "Wide")
	if err != nil {
		tb.Fatal(err)
	}
	var items []attr.Item
	for i := range n {
		items = append(items, w.item(i))
	}
	if strings.Contains(w.rules, wideInfo) {
		items = append(items, attr.Item{"PK": attr.String("p"), "SK": attr.String("Info"), "A": attr.String("a"), "B": attr.String("b")})
	}
	slices.SortFunc(items, func(a, b attr.Item) int { return strings.Compare(a["SK"].Str, b["SK"].Str) })
	var muts []*btpb.Mutation
	for i, item := range items {
		placed, err := m.Place(item, 1715685260608000)
		if err != nil {
			tb.Fatal(err)
		}
		for _, c := range placed.Cells {
			muts = append(muts, btclient.SetCell(c.Family, c.Qualifier, c.Timestamp, c.Value))
		}
		if len(muts) < 1000 && i < len(items)-1 {
			continue
		}
		if err := s.bt.MutateRow(tb.Context(), m.TargetTable(), placed.Row, muts); err != nil {
			tb.Fatal(err)
		}
		muts = nil
	}
	return s, def, items
}

// firstOf collects at most n items.
func firstOf(items iter.Seq2[layout.Stored, error], n int) (got []attr.Item, err error) {
	for item, err := range decode(items) {
		if err != nil {
			return got, err
		}
		if got = append(got, item); len(got) == n {
			break
		}
	}
	return got, nil
}

// TestStore_WideRow: queries and scans of a row with many items return the right items, in either
// direction and page by page.
func TestStore_WideRow(t *testing.T) {
	t.Parallel()
	for name, w := range wideTables {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			s, def, items := loadWide(t, w, 1100)
			// The store writes two items, and deletes one of them.
			for _, i := range []int{3, 700} {
				if err := put(ctx, s, def, items[i]); err != nil {
					t.Fatal(err)
				}
			}
			if err := remove(ctx, s, def, keyAttrs(def, items[700])); err != nil {
				t.Fatal(err)
			}
			items = slices.Delete(items, 700, 701)
			if _, row, err := s.wideRow(ctx, def); err != nil {
				t.Fatal(err)
			} else if got := len(s.mappings["Wide"].Slices(row)) > 0; got != w.pieces {
				t.Fatalf("read in pieces: %t, want %t", got, w.pieces)
			}
			if got, err := collect(s.Scan(ctx, def, nil, 0, 1, nil)); err != nil {
				t.Fatal(err)
			} else if d := diffItems(items, got); d != "" {
				t.Fatalf("scan (-want +got):\n%s", d)
			}
			rapid.Check(t, property.First(6, func(rt *rapid.T) {
				any := func(label string) attr.Item { return items[rapid.IntRange(0, len(items)-1).Draw(rt, label)] }
				limit := rapid.IntRange(1, 300).Draw(rt, "limit")
				after := any("after")
				if rapid.Bool().Draw(rt, "scan") {
					got, err := firstOf(s.Scan(ctx, def, nil, 0, 1, keyAttrs(def, after)), limit)
					if err != nil {
						rt.Fatal(err)
					}
					want := items[1+slices.IndexFunc(items, func(i attr.Item) bool { return i["SK"].Str == after["SK"].Str }):]
					if d := diffItems(want[:min(limit, len(want))], got); d != "" {
						rt.Fatalf("scan (-want +got):\n%s", d)
					}
					return
				}
				cond := attr.KeyRange{Hash: attr.String("p")}
				cond.Op = rapid.SampledFrom([]attr.RangeOp{
					attr.NoRange, attr.RangeLess, attr.RangeLessEqual, attr.RangeGreater, attr.RangeGreaterEqual, attr.RangeBetween, attr.RangeBeginsWith,
				}).Draw(rt, "op")
				if cond.Op != attr.NoRange {
					cond.A, cond.B = any("a")["SK"], any("b")["SK"]
				}
				if cond.Op == attr.RangeBeginsWith {
					cond.A.Str = cond.A.Str[:rapid.IntRange(1, len(cond.A.Str)).Draw(rt, "prefix")]
				}
				forward := rapid.Bool().Draw(rt, "forward")
				if rapid.Bool().Draw(rt, "from the start") {
					after = nil
				}
				var want []attr.Item
				for _, item := range items {
					if cond.Matches(item["SK"]) && (after == nil || forward == (item["SK"].Str > after["SK"].Str) && item["SK"].Str != after["SK"].Str) {
						want = append(want, item)
					}
				}
				if !forward {
					slices.Reverse(want)
				}
				if after != nil {
					after = keyAttrs(def, after)
				}
				got, err := firstOf(s.Query(ctx, def, nil, cond, forward, after), limit)
				if err != nil {
					rt.Fatal(err)
				}
				if d := diffItems(want[:min(limit, len(want))], got); d != "" {
					rt.Fatalf("query %v (-want +got):\n%s", cond, d)
				}
			}))
		})
	}
}

// wideRow returns the number of cells and the key of the table's only row.
func (s *Store) wideRow(ctx context.Context, def *tabledef.Table) (cells int, key []byte, err error) {
	for row, err := range s.bt.Read(ctx, btclient.Read{Table: def.BigtableTable, Spans: []layout.Span{{}}}) {
		return len(row.Cells), row.Key, err
	}
	return 0, nil, nil
}

// cellCountConn counts the cells read from the Bigtable, and their bytes.
type cellCountConn struct {
	intercept.Conn
	cells, bytes atomic.Int64
}

func (c *cellCountConn) count(_ context.Context, m any) error {
	if resp, ok := m.(*btpb.ReadRowsResponse); ok {
		c.cells.Add(int64(len(resp.GetChunks())))
		for _, chunk := range resp.GetChunks() {
			c.bytes.Add(int64(len(chunk.GetValue()) + len(chunk.GetQualifier().GetValue())))
		}
	}
	return nil
}

// TestStore_WideRowCost: the number of cells that are read for a page does not depend on the
// number of items in the row. A backward read reads some more cells, which bound the pieces: a
// few for each firstPieceCells items.
func TestStore_WideRowCost(t *testing.T) {
	t.Parallel()
	for name, w := range wideTables {
		if !w.pieces {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const few, many = 2000, 4000
			type page struct {
				name  string
				items func(s *Store, def *tabledef.Table, after attr.Item) iter.Seq2[layout.Stored, error]
			}
			all := attr.KeyRange{Hash: attr.String("p")}
			pages := []page{
				{"query", func(s *Store, def *tabledef.Table, after attr.Item) iter.Seq2[layout.Stored, error] {
					return s.Query(t.Context(), def, nil, all, true, after)
				}},
				{"query backward", func(s *Store, def *tabledef.Table, after attr.Item) iter.Seq2[layout.Stored, error] {
					return s.Query(t.Context(), def, nil, all, false, after)
				}},
				{"scan", func(s *Store, def *tabledef.Table, after attr.Item) iter.Seq2[layout.Stored, error] {
					return s.Scan(t.Context(), def, nil, 0, 1, after)
				}},
			}
			var cells, bytes [2][]int64
			for i, n := range []int{few, many} {
				conn := &cellCountConn{}
				conn.After(conn.count)
				s, def, items := loadWide(t, w, n, func(o *Options) { conn.ClientConnInterface, o.Conn = o.Conn, conn })
				for _, p := range pages {
					for _, after := range []attr.Item{nil, keyAttrs(def, items[n/2])} {
						conn.cells.Store(0)
						conn.bytes.Store(0)
						if got, err := firstOf(p.items(s, def, after), 100); len(got) != 100 || err != nil {
							t.Fatalf("%s: %d items, %v", p.name, len(got), err)
						}
						cells[i] = append(cells[i], conn.cells.Load())
						bytes[i] = append(bytes[i], conn.bytes.Load())
					}
				}
			}
			for i := range cells[0] {
				p := pages[i/2]
				t.Logf("%s: %d cells and %d bytes of %d items, %d and %d of %d", p.name, cells[0][i], bytes[0][i], few, cells[1][i], bytes[1][i], many)
				// Either direction of a query can be opposite to the order of the cells.
				if most := cells[0][i] + cells[0][i]/4 + 4*(many-few)/firstPieceCells; cells[1][i] > most {
					t.Errorf("%s: %d cells are read of a row of %d items, %d of one of %d", p.name, cells[1][i], many, cells[0][i], few)
				}
			}
		})
	}
}

// BenchmarkStore_WideRow scans rows of many items, 1,000 items per page.
func BenchmarkStore_WideRow(b *testing.B) {
	for _, n := range []int{10_000, 40_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, def, _ := loadWide(b, wideTables["a column each"], n)
			b.ReportAllocs()
			for b.Loop() {
				var after attr.Item
				for {
					page, err := firstOf(s.Scan(b.Context(), def, nil, 0, 1, after), 1000)
					if err != nil {
						b.Fatal(err)
					}
					if len(page) < 1000 {
						break
					}
					after = keyAttrs(def, page[len(page)-1])
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/item")
		})
	}
}
