package streams

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/facade/internal/changelog"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
)

// A reader that goes from parents to children covers the whole time of every partition once,
// and pages have the entries of the whole list, in the order of names.
func TestView_Lineage(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		slots := rapid.SampledFrom([][]int{{1}, {4}, {1, 2, 4}, {2, 2, 6}}).Draw(t, "slots")
		since := uint64(1_000_000) * uint64(time.Second)
		s := &tabledef.Stream{Shards: tabledef.Shards{Since: since, Rotation: time.Second, Slots: slots}}
		lasted := time.Duration(rapid.IntRange(0, 50_000).Draw(t, "ms")) * time.Millisecond
		now := time.Unix(0, int64(since)).Add(lasted)
		v := At(s, uint64(now.UnixNano())+1, now)
		if rapid.Bool().Draw(t, "ended") {
			s.Until = v.Floor
		}
		all, more := v.List("", 1<<20)
		if more || !slices.IsSortedFunc(all, func(a, b Shard) int { return cmpText(v.ID(a), v.ID(b)) }) {
			t.Fatalf("%v, more %v", all, more)
		}
		var paged []Shard
		for after, limit := "", rapid.IntRange(1, 7).Draw(t, "limit"); ; {
			page, more := v.List(after, limit)
			paged = append(paged, page...)
			if !more {
				break
			}
			after = v.ID(page[len(page)-1])
		}
		if !slices.Equal(paged, all) {
			t.Fatalf("pages have %v, want %v", paged, all)
		}
		children := 0
		for _, sh := range all {
			if back, ok := v.Find(v.ID(sh)); !ok || back != sh {
				t.Errorf("%s is found as %v, %v", v.ID(sh), back, ok)
			}
			for _, c := range v.Children(sh) {
				children++
				if p, ok := v.Parent(c); !ok || p != sh || v.Begin(c) != v.End(sh) {
					t.Errorf("%v has the child %v, whose parent is %v", sh, c, p)
				}
			}
			if v.Closed(sh) && s.Until == 0 && len(v.Children(sh)) == 0 {
				t.Errorf("%v is closed and has no children yet", sh)
			}
			if s.Until != 0 && !v.Closed(sh) {
				t.Errorf("%v of a stream that has ended is open", sh)
			}
		}
		if roots := s.Shards.SlotsOf(0); children != len(all)-roots {
			t.Errorf("%d children of %d shards", children, len(all))
		}
	})
}

func cmpText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// Point 13's arithmetic: a rotation of 1 s keeps 24 h times 4 shards, listed by pages without
// reading the earlier ones.
func TestView_ManyShards(t *testing.T) {
	t.Parallel()
	since := uint64(1_000_000) * uint64(time.Second)
	now := time.Unix(0, int64(since)).Add(48 * time.Hour)
	s := &tabledef.Stream{Shards: tabledef.Shards{Since: since, Rotation: time.Second, Slots: []int{4}}}
	v := At(s, uint64(now.UnixNano())+1, now)
	shards, more := v.List("", 400_000)
	if want := 4 * (24*3600 + 1); len(shards) != want || more {
		t.Errorf("%d shards, want %d", len(shards), want)
	}
	if _, ok := v.Find(v.ID(Shard{3, 0})); ok {
		t.Error("a shard of two days ago is found")
	}
}

func TestIterator_RoundTrip(t *testing.T) {
	t.Parallel()
	it := Iterator{"arn:aws:dynamodb:us-east-1:000000000000:table/table/stream/label", "table", "id", "label", Shard{7, 3}, changelog.Position{Sequence: 9, Writer: 2}, true, 1234}
	if back, ok := ParseIterator(it.String()); !ok || back != it {
		t.Errorf("%+v came back as %+v, %v", it, back, ok)
	}
	if text := it.String(); !strings.HasPrefix(text, it.Stream+"|1|") {
		t.Errorf("%s is not of the form of the service", text)
	}
	for _, text := range []string{strings.Replace(it.String(), "label|", "other|", 1), strings.Replace(it.String(), "table/table", "table/other", 1), strings.Replace(it.String(), "|1|", "|2|", 1)} {
		if _, ok := ParseIterator(text); ok {
			t.Errorf("%s is taken for another stream", text)
		}
	}
	if it.Expired(time.UnixMilli(1234).Add(IteratorAge-1)) || !it.Expired(time.UnixMilli(1234).Add(IteratorAge)) {
		t.Error("an iterator does not live for 15 minutes")
	}
}

func FuzzParseIterator(f *testing.F) {
	f.Add(Iterator{Stream: "table/t/stream/", Table: "t"}.String())
	f.Add(fmt.Sprintf("%064d", 0))
	f.Fuzz(func(t *testing.T, text string) {
		if it, ok := ParseIterator(text); ok && it.String() != text && !it.Trims {
			if back, ok := ParseIterator(it.String()); !ok || back != it {
				t.Errorf("%q: %+v", text, it)
			}
		}
	})
}

func FuzzFindShard(f *testing.F) {
	s := &tabledef.Stream{Shards: tabledef.Shards{Since: 1e18, Rotation: time.Hour, Slots: []int{1, 2}}}
	v := At(s, 1e18+1e14, time.Unix(0, 1e18+1e14))
	f.Add(v.ID(Shard{1, 1}))
	f.Fuzz(func(t *testing.T, id string) {
		if sh, ok := v.Find(id); ok && v.ID(sh) != id {
			t.Errorf("%q is found as %v", id, sh)
		}
		v.List(id, 3)
	})
}
