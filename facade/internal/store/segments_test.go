package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/store/segment"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/test/intercept"
	"github.com/tabletop-emu/tabletop/internal/test/long"
)

// segmentItem returns an item for segmentTable, with the table key p, s and the index key g.
func segmentItem(i int) attr.Item {
	return attr.Item{"p": attr.String(fmt.Sprintf("user#%d", i%97)), "s": attr.Int(int64(i)), "g": attr.String(fmt.Sprintf("group#%d", i%31))}
}

func segmentTable(t *testing.T, s *Store) (*tabledef.Table, *tabledef.Index) {
	t.Helper()
	def := newTable(t, s, tabledef.Table{Name: "segments", Key: testSchemas["SN"], Indexes: []tabledef.Index{{
		Name: "by-group", Global: true, Key: tabledef.IndexKey{Hash: []attr.KeyAttr{stringKey("g")}}, Projection: tabledef.ProjectAll,
	}}})
	return def, def.Index("by-group")
}

// For any number of segments, each segment of a parallel scan reads only its share of the table,
// and together they have every item once.
func TestScan_SegmentsReadTheirShare(t *testing.T) {
	t.Parallel()
	for name, start := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var rows atomic.Int64 // that were read
			conn := intercept.New(start(t), nil)
			conn.After(func(_ context.Context, m any) error {
				resp, _ := m.(*btpb.ReadRowsResponse)
				for _, c := range resp.GetChunks() {
					if c.GetCommitRow() {
						rows.Add(1)
					}
				}
				return nil
			})
			s := openStore(t, testOptions(conn))
			def, index := segmentTable(t, s)
			const items = 600 // more than segment.SmallRows
			for i := range items {
				if err := put(t.Context(), s, def, segmentItem(i)); err != nil {
					t.Fatal(err)
				}
			}
			for _, ix := range []*tabledef.Index{nil, index} {
				for _, total := range []int{2, 3, 8, 50, 700} {
					if total > items && (name == "bttest" || ix != nil) && !long.Enabled() {
						continue
					}
					if _, err := collect(s.Scan(t.Context(), def, ix, 0, total, nil)); err != nil { // chooses the cuts
						t.Fatal(err)
					}
					seen := map[string]int{}
					for at := range total {
						before := rows.Load()
						got, err := collect(s.Scan(t.Context(), def, ix, at, total, nil))
						if err != nil {
							t.Fatal(err)
						}
						for _, item := range got {
							seen[item["s"].Str]++
						}
						read, share := rows.Load()-before, int64(items/total)
						if read > share+2 {
							t.Errorf("index %v: segment %d of %d read %d rows, its share is %d", ix != nil, at, total, read, share)
						}
					}
					checkSeenOnce(t, seen, items)
				}
			}
		})
	}
}

func checkSeenOnce(t *testing.T, seen map[string]int, items int) {
	t.Helper()
	if len(seen) != items {
		t.Errorf("the segments hold %d items, want %d", len(seen), items)
	}
	for key, n := range seen {
		if n != 1 {
			t.Errorf("item %s was read %d times", key, n)
		}
	}
}

// A parallel scan through two processes, in pages with pauses, returns every unchanged item once,
// even during other writes.
func TestScan_SegmentsStay(t *testing.T) {
	t.Parallel()
	for _, items := range []int{segment.SmallRows / 2, 2 * segment.SmallRows} {
		t.Run(fmt.Sprint(items), func(t *testing.T) {
			t.Parallel()
			conn := backends["emu"](t)
			c := clock.NewFrozen(time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC))
			options := testOptions(conn)
			options.Now = c.Now
			processes := []*Store{openStore(t, options), openStore(t, options)}
			def, _ := segmentTable(t, processes[0])
			for i := range items {
				if err := put(t.Context(), processes[0], def, segmentItem(i)); err != nil {
					t.Fatal(err)
				}
			}
			const total, page = 5, 20
			random := rand.New(rand.NewPCG(1, 2))
			after := make([]attr.Item, total)
			left := []int{0, 1, 2, 3, 4}
			seen := map[string]int{}
			for n := 0; len(left) > 0; n++ {
				i := random.IntN(len(left))
				at := left[i]
				got := 0
				for item, err := range decode(processes[random.IntN(2)].Scan(t.Context(), def, nil, at, total, after[at])) {
					if err != nil {
						t.Fatal(err)
					}
					if item["g"].Str != "new" {
						seen[item["s"].Str]++
					}
					after[at] = item
					if got++; got == page {
						break
					}
				}
				if got < page {
					left = slices.Delete(left, i, i+1)
				}
				for j := range 10 {
					item := attr.Item{"p": attr.String("aaa"), "s": attr.Int(int64(1000*n + j)), "g": attr.String("new")}
					if err := put(t.Context(), processes[1], def, item); err != nil {
						t.Fatal(err)
					}
				}
				c.Advance(segment.Kept - segment.Touched - time.Second)
			}
			checkSeenOnce(t, seen, items)

			other := (slices.IndexFunc(after, func(item attr.Item) bool { return item != nil }) + 1) % total
			_, err := collect(processes[0].Scan(t.Context(), def, nil, other, total, after[(other+total-1)%total]))
			if !errors.Is(err, ErrOtherSegment) {
				t.Errorf("a start key of another segment: %v", err)
			}

			// Once no scan has used the cuts for segment.Kept, new cuts divide the part that grew.
			c.Advance(segment.Kept)
			sizes := make([]int, total)
			for at := range total {
				got, err := collect(processes[1].Scan(t.Context(), def, nil, at, total, nil))
				if err != nil {
					t.Fatal(err)
				}
				sizes[at] = len(got)
			}
			if least, most := slices.Min(sizes), slices.Max(sizes); items > segment.SmallRows && most > least+5 {
				t.Errorf("segments of %v items", sizes)
			}
		})
	}
}

// Cuts are forgotten with their table.
func TestScan_SegmentsOfATableMadeAgain(t *testing.T) {
	t.Parallel()
	s := openStore(t, testOptions(backends["emu"](t)))
	for range 2 {
		def, _ := segmentTable(t, s)
		for i := range segment.SmallRows {
			if err := put(t.Context(), s, def, segmentItem(i)); err != nil {
				t.Fatal(err)
			}
		}
		seen := map[string]int{}
		for at := range 3 {
			for item, err := range decode(s.Scan(t.Context(), def, nil, at, 3, nil)) {
				if err != nil {
					t.Fatal(err)
				}
				seen[item["s"].Str]++
			}
		}
		checkSeenOnce(t, seen, segment.SmallRows)
		if _, err := s.DeleteTable(t.Context(), def.Name); err != nil {
			t.Fatal(err)
		}
	}
}
