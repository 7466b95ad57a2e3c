package heat

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/test/cputime"
	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/internal/test/memory"
	"github.com/tabletop-emu/tabletop/internal/test/race"
)

var (
	start = time.Unix(1_700_000_040, 0) // a whole minute
	place = Place{Cluster: "c", Table: "projects/p/instances/i/tables/t"}
)

func newStore(bytes int) (*Store, *clock.Clock) {
	c := clock.NewFrozen(start)
	return New(Options{Now: c.Now, Bytes: bytes}), c
}

func (s *Store) add(p Place, key string, c Counts) { s.Table(p.Cluster, p.Table).Add([]byte(key), c) }

// sum returns the total of a place's stored counts.
func sum(s *Store, p Place) (total Counts) {
	s.Columns(p, time.Time{}, start.Add(1000*time.Hour), func(c Column) bool {
		for _, b := range c.Buckets {
			total.Add(b.Counts)
		}
		return true
	})
	return total
}

// TestSums: sums equal the added counts under any grouping.
func TestSums(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]func(r *rand.Rand, i int) string{
		"sequential": func(_ *rand.Rand, i int) string { return fmt.Sprintf("row%09d", i) },
		"one row":    func(*rand.Rand, int) string { return "row" },
		"even":       func(r *rand.Rand, _ int) string { return fmt.Sprintf("%02d#%d", r.IntN(100), r.IntN(100_000)) },
		"any bytes": func(r *rand.Rand, _ int) string {
			b := make([]byte, r.IntN(400))
			for i := range b {
				b[i] = byte(r.Uint32())
			}
			return string(b)
		},
	} {
		for _, bytes := range []int{0, liveBytes + 100_000, liveBytes + 2000} {
			t.Run(fmt.Sprint(name, " in ", bytes), func(t *testing.T) {
				t.Parallel()
				s, c := newStore(bytes)
				r := rand.New(rand.NewPCG(1, 2))
				var want Counts
				for i := range 6_000 {
					add := Counts{Bytes: uint64(r.IntN(3000)), Rows: uint64(r.IntN(3)), Reads: uint64(r.IntN(2))}
					add.Writes = 1 - add.Reads
					if r.IntN(10) == 0 {
						add.Errors = 1
					}
					want.Add(add)
					s.add(place, key(r, i), add)
					if r.IntN(10) == 0 {
						c.Advance(time.Duration(r.IntN(2000)) * time.Millisecond)
					}
					if i%1000 == 999 {
						checkBytes(t, s, max(bytes, 0))
					}
				}
				if got := sum(s, place); got != want {
					t.Errorf("got %+v, want %+v", got, want)
				}
				m := s.Map(start.Add(-time.Hour), c.Now().Add(time.Hour), time.Minute, 100, place)
				var keys, cells Counts
				for _, k := range m.Keys {
					keys.Add(k.Counts)
				}
				for _, column := range m.Columns {
					for _, c := range column.Cells {
						cells.Add(c)
					}
				}
				if keys != want || cells != want || len(m.Keys) > 100 {
					t.Errorf("the map has %+v and %+v in %d buckets, want %+v in at most 100", keys, cells, len(m.Keys), want)
				}
			})
		}
	}
}

// checkBytes checks that a store stays within its bound, and reports its actual size.
func checkBytes(t *testing.T, s *Store, bound int) {
	t.Helper()
	if bound == 0 {
		bound = defaultBytes
	}
	if got := s.Bytes(); got > bound {
		t.Fatalf("the store takes %d bytes, want at most %d", got, bound)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	held := 0
	for _, t := range s.tables {
		held += 256 + len(t.place.Cluster) + len(t.place.Table)
		for i := range t.columns {
			held += t.columns[i].size()
		}
	}
	if held != s.bytes {
		t.Fatalf("the store reports %d bytes of columns, they take %d", s.bytes, held)
	}
}

// TestMap: the axis shows the load: ascending writes are a diagonal, a hot row has a bucket of
// its own, and even load is even.
func TestMap(t *testing.T) {
	race.OneAfterTheOther(t)
	t.Parallel()
	s, c := newStore(0)
	r := rand.New(rand.NewPCG(1, 2))
	sequential, hot, even := place, place, place
	sequential.Table, hot.Table, even.Table = "sequential", "hot", "even"
	n := 0
	for range 600 { // seconds
		for i := range 100 {
			s.add(sequential, fmt.Sprintf("row%09d", n), Counts{Writes: 1})
			key := fmt.Sprintf("k%05d", r.IntN(100_000))
			s.add(even, key, Counts{Writes: 1})
			if i < 30 {
				key = "k5"
			}
			s.add(hot, key, Counts{Reads: 1})
			n++
		}
		c.Advance(time.Second)
	}
	end := c.Now()

	m := s.Map(start, end, time.Minute, 50, sequential)
	if len(m.Columns) != 10 {
		t.Fatalf("got %d columns", len(m.Columns))
	}
	for i, column := range m.Columns {
		var inside uint64
		for at, c := range column.Cells {
			// A minute's rows are a tenth of the axis; they share the buckets at its ends.
			if at >= i*len(m.Keys)/10-2 && at <= (i+1)*len(m.Keys)/10+2 {
				inside += c.Writes
			} else if c.Writes > 0 {
				t.Errorf("minute %d has %d writes at %d of %d", i, c.Writes, at, len(m.Keys))
			}
		}
		if inside != 6000 {
			t.Errorf("minute %d has %d writes, want 6000", i, inside)
		}
	}

	m = s.Map(start, end, time.Minute, 50, hot)
	found := false
	for at, k := range m.Keys {
		if string(k.First) == "k5" && string(k.Last) == "k5" {
			found = true
			for _, column := range m.Columns {
				if column.Cells[at].Reads != 1800 {
					t.Errorf("the hot row has %d reads at %v, want 1800", column.Cells[at].Reads, column.Start)
				}
			}
		} else if k.Reads > 60_000/10 {
			t.Errorf("%q to %q has %d of 60,000 reads", k.First, k.Last, k.Reads)
		}
	}
	if !found {
		t.Error("the hot row has no bucket of its own")
	}

	m = s.Map(start, end, time.Minute, 50, even)
	for _, column := range m.Columns {
		for at, c := range column.Cells {
			if c.Writes > 6000/10 {
				t.Errorf("%q has %d of 6,000 writes at %v", m.Keys[at].First, c.Writes, column.Start)
			}
		}
	}
}

// TestColumns: seconds become minutes after a quarter of an hour, and are deleted after a day.
// Columns that begin outside the requested span are not included.
func TestColumns(t *testing.T) {
	t.Parallel()
	s, c := newStore(0)
	columns := func(from, to time.Time) (out []Column) {
		s.Columns(place, from, to, func(c Column) bool { out = append(out, c); return true })
		return out
	}
	for i := range 120 {
		s.add(place, fmt.Sprint(i%7), Counts{Reads: 1})
		c.Advance(time.Second)
	}
	for _, x := range []struct {
		after   time.Duration
		columns int
		width   time.Duration
	}{
		{0, 120, time.Second},
		{14 * time.Minute, 60 + 1, time.Second},
		{time.Minute, 2, time.Minute},
		{24*time.Hour - 16*time.Minute, 1, time.Minute},
		{time.Minute, 0, 0},
	} {
		c.Advance(x.after)
		got := columns(start, start.Add(time.Hour))
		if len(got) != x.columns {
			t.Fatalf("%v after the first: %d columns, want %d", c.Now().Sub(start), len(got), x.columns)
		}
		if n := len(got); n > 0 && got[n-1].Width != x.width {
			t.Errorf("the last column is %v wide, want %v", got[n-1].Width, x.width)
		}
	}
	if got := s.Places(); len(got) != 0 {
		t.Errorf("the store still has %v", got)
	}

	s, c = newStore(0)
	for range 3 {
		s.add(place, "a", Counts{Reads: 1})
		c.Advance(time.Second)
	}
	if got := columns(start.Add(time.Nanosecond), start.Add(2*time.Second)); len(got) != 1 || !got[0].Start.Equal(start.Add(time.Second)) {
		t.Errorf("got %v", got)
	}
	if got := columns(start.Add(2*time.Second), start); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

// TestResolution: a full store keeps the resolution of new data.
func TestResolution(t *testing.T) {
	race.OneAfterTheOther(t)
	t.Parallel()
	const bytes = liveBytes + 200_000
	s, c := newStore(bytes)
	for i := range 1200 {
		for j := range 100 {
			s.add(place, fmt.Sprintf("user%03d#%d", j, i), Counts{Writes: 1})
		}
		c.Advance(time.Second)
		if s.bytes > s.budget {
			t.Fatalf("after %d seconds, columns take %d bytes, want at most %d", i, s.bytes, s.budget)
		}
	}
	checkBytes(t, s, bytes)
	var first, last Column
	s.Columns(place, start, c.Now(), func(c Column) bool {
		if first.Width == 0 {
			first = c
		}
		last = c
		return true
	})
	if len(last.Buckets) != 100 || last.Width != time.Second {
		t.Errorf("the last second has %d buckets in %v, want 100", len(last.Buckets), last.Width)
	}
	if len(first.Buckets) >= 100 {
		t.Errorf("the oldest column has %d buckets still", len(first.Buckets))
	}
	if got := sum(s, place); got.Writes != 120_000 {
		t.Errorf("got %+v", got)
	}
}

// TestManyTables: beyond the limit of places the inactive ones are removed, and come back when
// they are used again.
func TestManyTables(t *testing.T) {
	t.Parallel()
	s, c := newStore(0)
	name := func(i int) Place { return Place{Table: fmt.Sprint("table", i)} }
	quiet := s.Table("", name(0).Table)
	quiet.Add([]byte("k"), Counts{Reads: 1})
	for i := range maxTables + 100 {
		if i%500 == 0 {
			c.Advance(time.Second)
		}
		s.add(name(i+1), "k", Counts{Reads: 1})
	}
	if got := len(s.Places()); got != maxTables {
		t.Errorf("%d places are kept, want %d", got, maxTables)
	}
	if got := sum(s, name(0)); got.Reads != 0 {
		t.Errorf("the quiet one has %+v", got)
	}
	quiet.Add([]byte("k"), Counts{Reads: 1}) // through an earlier reference
	if got := sum(s, name(0)); got.Reads != 1 {
		t.Errorf("the place that came back has %+v", got)
	}
	checkBytes(t, s, 0)
	small, _ := newStore(liveBytes + 1000) // too small even for the names
	for i := range 1000 {
		small.add(name(i), "k", Counts{Reads: 1})
	}
	checkBytes(t, small, liveBytes+1000)
}

// TestConcurrentCounts: no count is lost while seconds end during reads.
func TestConcurrentCounts(t *testing.T) {
	t.Parallel()
	s, c := newStore(0)
	const each = 1000
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range each {
				s.add(place, fmt.Sprint(g, i), Counts{Writes: 1})
				if i%100 == 0 {
					c.Advance(time.Second)
					s.Map(start, c.Now(), time.Minute, 10, place)
				}
			}
		})
	}
	wg.Wait()
	if got := sum(s, place); got.Writes != 4*each {
		t.Errorf("got %+v, want %d writes", got, 4*each)
	}
}

// TestPack: unpacking restores packed data.
func TestPack(t *testing.T) {
	t.Parallel()
	in := []Bucket{
		{First: []byte(""), Last: []byte(""), Counts: Counts{Reads: 1}},
		{First: []byte("a"), Last: []byte("ab\x00"), Counts: Counts{Writes: 1 << 63, Rows: 200, Bytes: 300}},
		{First: []byte("abc"), Last: []byte("abc"), Counts: Counts{Errors: 7}},
		{First: []byte("b"), Last: bytes.Repeat([]byte{0xff}, 256)},
	}
	c := pack(60, 60, in)
	got := c.unpack(nil)
	if len(got) != len(in) {
		t.Fatal(got)
	}
	for i := range in {
		if !bytes.Equal(got[i].First, in[i].First) || !bytes.Equal(got[i].Last, in[i].Last) || got[i].Counts != in[i].Counts {
			t.Errorf("bucket %d: %+v, want %+v", i, got[i], in[i])
		}
	}
}

// TestSqueeze: at most the allowed number of buckets, the same sums, and heavy keys alone.
func TestSqueeze(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		in := make([]Bucket, 1+r.IntN(200))
		var want Counts
		for i := range in {
			key := fmt.Appendf(nil, "%05d", i)
			in[i] = Bucket{First: key, Last: key, Counts: Counts{Reads: uint64(r.IntN(5)), Bytes: uint64(r.IntN(1 << r.IntN(20)))}}
			want.Add(in[i].Counts)
		}
		limit := 1 + r.IntN(60)
		out := squeeze(in, limit)
		var got Counts
		for i, b := range out {
			got.Add(b.Counts)
			if i > 0 && bytes.Compare(out[i-1].Last, b.First) >= 0 {
				t.Fatalf("%q does not come after %q", b.First, out[i-1].Last)
			}
		}
		if len(out) > limit || got != want {
			t.Fatalf("%d buckets of at most %d: %+v, want %+v", len(out), limit, got, want)
		}
	}
}

// TestAllocations: counting allocates nothing in a store that has grown.
func TestAllocations(t *testing.T) { //nolint:paralleltest // it counts allocations
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	s, _ := newStore(0)
	key := []byte("user#0000000000")
	i := 0
	for name, next := range map[string]func(){
		"the same key": func() {},
		"a new key":    func() { i++; number(key, i) },
	} {
		count := func() { next(); s.Table(place.Cluster, place.Table).Add(key, Counts{Writes: 1, Rows: 1, Bytes: 10}) }
		for range 5 * shardCount * liveEntries {
			count()
		}
		if got := testing.AllocsPerRun(2*shardCount*liveEntries, count); got != 0 {
			t.Errorf("%s: a count takes %v allocations", name, got)
		}
	}
}

// BenchmarkAdd measures a count, and separately the overhead of the benchmark and the clock.
func BenchmarkAdd(b *testing.B) {
	for name, key := range map[string]func(i int) int{
		"one row":    func(int) int { return 1 },
		"1000 rows":  func(i int) int { return i * 7919 % 1000 },
		"sequential": func(i int) int { return i },
		"new rows":   func(i int) int { return int(uint32(i) * 2654435761) },
		"no count":   nil,
	} {
		b.Run(name, func(b *testing.B) {
			now := clock.New().Now
			s := New(Options{Now: now})
			buf := []byte("user#0000000000")
			cputime.Loop(b, func(i int) {
				if key == nil {
					number(buf, i)
					now()
					return
				}
				number(buf, key(i))
				s.Table(place.Cluster, place.Table).Add(buf, Counts{Writes: 1, Rows: 1, Bytes: 100})
			})
		})
	}
}

// Ranks sort as by comparison, whichever of their bytes differ.
func TestByRank(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	var scratch []ranked
	for n := range 200 {
		mask := rng.Uint64() & rng.Uint64()
		if n%3 == 0 {
			mask &= 0xffff << (8 * rng.UintN(7))
		}
		list := make([]ranked, rng.IntN(liveEntries+1))
		for i := range list {
			list[i] = ranked{rng.Uint64()&mask | ^mask, uint16(i)}
		}
		want := slices.Clone(list)
		slices.SortStableFunc(want, func(a, b ranked) int { return cmp.Compare(a.rank, b.rank) })
		var got []ranked
		if got, scratch = byRank(list, scratch); !slices.Equal(got, want) {
			t.Fatalf("%d ranks with the bits %x are not sorted", len(list), mask)
		}
	}
}

// number writes a number into the last ten bytes of a key.
func number(key []byte, n int) {
	for i := range 10 {
		key[len(key)-1-i] = byte('0' + n%10)
		n /= 10
	}
}

// TestDay: a day of 1,000 buckets per minute stays within the memory limit of the store.
func TestDay(t *testing.T) { //nolint:paralleltest // Alone makes it parallel
	if race.Enabled {
		t.Skip("the race detector takes memory")
	}
	memory.Alone(t, func(t *testing.T) {
		minutes, bound := dayMinutes, defaultBytes
		if !long.Enabled() {
			minutes, bound = dayMinutes/6, liveBytes+(defaultBytes-liveBytes)/6
		}
		testDay(t, minutes, bound)
	})
}

func testDay(t *testing.T, minutes, bound int) {
	t.Helper()
	before := memory.Live()
	s, c := newStore(bound)
	day(s, c, minutes)
	took := memory.Live() - before
	t.Logf("%d bytes of heap, the store says %d", took, s.Bytes())
	if took > uint64(bound) || s.Bytes() > bound {
		t.Errorf("the store takes %d bytes and says %d, want at most %d", took, s.Bytes(), bound)
	}
	kept := 0
	s.Columns(place, start, c.Now(), func(column Column) bool {
		if column.Width == time.Minute {
			kept++
			if len(column.Buckets) != dayKeys {
				t.Errorf("%v has %d buckets", column.Start, len(column.Buckets))
			}
		}
		return !t.Failed()
	})
	if got := sum(s, place); got.Writes != uint64(minutes)*dayKeys || kept < minutes-fineSeconds/minute {
		t.Errorf("%d minutes have %+v", kept, got)
	}
}

const dayMinutes, dayKeys = 24*60 - 1, minuteBuckets

// day fills a store for the given number of minutes, each with as many keys as a column has
// buckets: some in each of its seconds.
func day(s *Store, c *clock.Clock, minutes int) {
	const seconds = 10
	keys := make([][]byte, dayKeys)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "user#%08d", i)
	}
	for range minutes {
		for second := range seconds {
			table := s.Table(place.Cluster, place.Table)
			for j := range dayKeys / seconds {
				table.Add(keys[j*seconds+second], Counts{Writes: 1, Rows: 1, Bytes: 100})
			}
			c.Advance(minute / seconds * time.Second)
		}
	}
}

// BenchmarkDay returns a map of a day of 1,000 keys per minute.
func BenchmarkDay(b *testing.B) {
	s, c := newStore(0)
	day(s, c, dayMinutes)
	b.ReportMetric(float64(s.Bytes()), "B/store")
	for b.Loop() {
		s.Map(start, c.Now(), time.Minute, 256, place)
	}
}
