package settled

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/migrate/report"
)

// change is a write of the source's one item; the target has the result of a prefix of them.
type change struct {
	value   int
	at      int64 // time of the source
	removal bool  // its index entries are deleted before the item is written
	lost    bool  // the target takes its position, but not its value
	noEntry bool  // the target never writes its index entry
}

// world is a source and a target with an index, one item each. Between any two reads time passes, and
// the follower makes steps.
type world struct {
	t       *rapid.T
	clock   int64
	changes []change // of the source
	applied int      // complete changes of the target
	step    int      // of the next change: 1 entries are removed, 2 the item is written

	value, position, index int // of the target
	writesLeft             int

	// Mutants of the rule's surroundings.
	awaitNothing, stalePosition, oldReads bool

	seenIndex int
	seen      map[*suspect]int
	results   []string
}

// pass lets time pass.
func (w *world) pass() {
	for range rapid.IntRange(0, 4).Draw(w.t, "steps") {
		w.clock++
		if w.writesLeft > 0 && rapid.Bool().Draw(w.t, "write") {
			w.writesLeft--
			w.changes = append(w.changes, change{value: rapid.IntRange(0, 2).Draw(w.t, "value"), at: w.clock, removal: rapid.Bool().Draw(w.t, "removal")})
			continue
		}
		w.follow()
	}
}

// follow makes a step of the follower.
func (w *world) follow() {
	if w.applied == len(w.changes) {
		return
	}
	c := w.changes[w.applied]
	switch {
	case w.step == 0 && c.removal && w.index != c.value:
		w.index, w.step = -1, 1
	case w.step <= 1:
		w.position, w.step = w.applied+1, 2
		if !c.lost {
			w.value = c.value
		}
	default:
		if !c.noEntry {
			w.index = c.value
		}
		w.applied, w.step = w.applied+1, 0
	}
}

// current returns the value of the source.
func (w *world) current() int {
	if len(w.changes) == 0 {
		return 0
	}
	return w.changes[len(w.changes)-1].value
}

func (w *world) target(_ context.Context, some []*suspect) error {
	w.pass()
	for _, x := range some {
		x.position = []byte(fmt.Sprint(w.position))
		w.seen[x] = w.value
	}
	return nil
}

func (w *world) positions(_ context.Context, some []*suspect) error {
	w.pass()
	for _, x := range some {
		if !w.stalePosition {
			x.position = []byte(fmt.Sprint(w.position))
		}
	}
	return nil
}

func (w *world) source(context.Context, []*suspect) (time.Time, error) {
	w.pass()
	w.seenIndex = w.current()
	if w.oldReads && len(w.changes) > 1 {
		w.seenIndex = w.changes[len(w.changes)-2].value
	}
	return time.Unix(w.clock, 0), nil
}

func (w *world) judge(_ context.Context, some []*suspect) error {
	source := w.seenIndex
	w.pass()
	for _, x := range some {
		x.found, x.stale = nil, false
		switch stored := w.seen[x]; {
		case stored != source:
			x.found = []report.Failure{{Kind: report.ValueDiffers}}
		case w.index != stored:
			x.found, x.stale = []report.Failure{{Kind: report.IndexStale}}, true
		}
	}
	return nil
}

func (w *world) await(_ context.Context, t time.Time) error {
	if w.awaitNothing {
		return nil
	}
	for w.applied < len(w.changes) && w.changes[w.applied].at <= t.Unix() {
		w.follow()
	}
	w.pass()
	return nil
}

func (w *world) equal(*suspect)     { w.results = append(w.results, "equal") }
func (w *world) unsettled(*suspect) { w.results = append(w.results, "unsettled") }
func (w *world) differs(x *suspect) { w.results = append(w.results, string(x.found[0].Kind)) }

func newWorld(t *rapid.T) *world {
	return &world{t: t, seen: map[*suspect]int{}, writesLeft: rapid.IntRange(0, 12).Draw(t, "writes")}
}

func (w *world) run() string {
	if err := settle(context.Background(), w, []*suspect{{}}, 5); err != nil {
		w.t.Fatal(err)
	}
	if len(w.results) != 1 {
		w.t.Fatalf("the item has the results %v", w.results)
	}
	return w.results[0]
}

// A right follower never causes a difference, whatever its lag and the order of its writes.
func TestSettle_NoFalseAlarm(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		if got := newWorld(t).run(); got != "equal" && got != "unsettled" {
			t.Fatalf("a right follower: %s", got)
		}
	})
}

// A fault of the last change of an item that rests is reported.
func TestSettle_NoFalsePeace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.writesLeft = 0
		w.value, w.index = 0, 0
		kind := report.ValueDiffers
		last := change{value: 1, lost: true}
		if rapid.Bool().Draw(t, "index") {
			kind, last = report.IndexStale, change{value: 1, noEntry: true}
		}
		w.changes = []change{last}
		if got := w.run(); got != string(kind) {
			t.Fatalf("%s, want %s", got, kind)
		}
	})
}

// Each part of the rule is needed: without it there are false alarms.
func TestSettle_Needs(t *testing.T) {
	t.Parallel()
	for name, mutate := range map[string]func(*world){
		"the second position": func(w *world) { w.stalePosition = true },
		"the wait":            func(w *world) { w.awaitNothing = true },
		"consistent reads":    func(w *world) { w.oldReads = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var results []string
			for seed := range 500 {
				rapid.Custom(func(t *rapid.T) string {
					w := newWorld(t)
					mutate(w)
					return w.run()
				}).Filter(func(got string) bool { results = append(results, got); return true }).Example(seed)
			}
			if !slices.Contains(results, string(report.ValueDiffers)) {
				t.Error("without it nothing is wrong")
			}
		})
	}
}

// script is a world in which each call does what the test says.
type script struct {
	world
	values, sources, positionsAt, staleAt []int
	awaited                               int
}

func next(of *[]int) int {
	v := (*of)[0]
	if len(*of) > 1 {
		*of = (*of)[1:]
	}
	return v
}

func (s *script) target(_ context.Context, some []*suspect) error {
	some[0].position = []byte(fmt.Sprint(next(&s.positionsAt)))
	s.seen[some[0]] = next(&s.values)
	return nil
}

func (s *script) positions(_ context.Context, some []*suspect) error {
	some[0].position = []byte(fmt.Sprint(next(&s.positionsAt)))
	return nil
}

func (s *script) source(context.Context, []*suspect) (time.Time, error) {
	s.seenIndex = next(&s.sources)
	return time.Unix(1, 0), nil
}

func (s *script) judge(_ context.Context, some []*suspect) error {
	some[0].found = nil
	if s.seen[some[0]] != s.seenIndex {
		some[0].found = []report.Failure{{Kind: report.ValueDiffers}}
		return nil
	}
	if some[0].stale = len(s.staleAt) > 0 && next(&s.staleAt) == 1; some[0].stale {
		some[0].found = []report.Failure{{Kind: report.IndexStale}}
	}
	return nil
}

func (s *script) await(context.Context, time.Time) error { s.awaited++; return nil }

// An item that changes and changes back between the reads costs a round, and no lie.
func TestSettle_ChangedBack(t *testing.T) {
	t.Parallel()
	for _, of := range []struct {
		name                       string
		values, sources, positions []int
		stale                      []int
		want                       string
		awaited                    int
	}{
		{"and back", []int{1, 1}, []int{2, 1}, []int{1, 3, 3}, nil, "equal", 1},
		{"to a difference", []int{1, 1}, []int{2, 2}, []int{1, 3, 3, 3}, nil, "ValueDiffers", 2},
		{"each time", []int{1}, []int{2}, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, nil, "unsettled", 5},
		{"an entry that is written late", []int{1}, []int{1}, []int{1}, []int{1, 0}, "equal", 1},
		{"an entry that a later change deleted first", []int{1}, []int{1}, []int{1, 1, 1, 2}, []int{1, 1, 0}, "equal", 2},
		{"a missing entry", []int{1}, []int{1}, []int{1}, []int{1}, "IndexStale", 2},
	} {
		t.Run(of.name, func(t *testing.T) {
			t.Parallel()
			s := &script{world: world{seen: map[*suspect]int{}}, values: of.values, sources: of.sources, positionsAt: of.positions, staleAt: of.stale}
			if err := settle(t.Context(), s, []*suspect{{}}, 5); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(s.results, []string{of.want}) || s.awaited != of.awaited {
				t.Errorf("%v after %d waits, want %s after %d", s.results, s.awaited, of.want, of.awaited)
			}
		})
	}
}
