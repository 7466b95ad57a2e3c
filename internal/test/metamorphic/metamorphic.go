package metamorphic

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/test/model"
)

// keepDeleted is short, so that deleted tables sometimes expire.
const keepDeleted = 2 * time.Hour

// Run runs n random operations on the model and on an engine with the options, and stops at the
// first difference.
func Run(t *testing.T, seed uint64, n int, options engine.Options) {
	t.Helper()
	start := time.UnixMicro(1_700_000_000_123_456)
	modelClock, engineClock := clock.NewFrozen(start), clock.NewFrozen(start)
	options.KeepDeleted = keepDeleted
	reference := &modelStore{
		db:    model.New(model.Options{Now: modelClock.Now, EagerGC: options.EagerGC, KeepDeleted: keepDeleted}),
		clock: modelClock, positions: map[place]uint64{},
	}
	subject, err := newEngineStore(options, engineClock)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := subject.close(); err != nil {
			t.Error(err)
		}
	}()
	stores := []store{reference, subject}

	g := &generator{rng: rand.New(rand.NewPCG(seed, 1))}
	ops := []op{g.create(tables[0]), g.create(tables[1])}
	ops[0].def.Journal[engine.JournalStream].Keep = 1000 * time.Hour
	for len(ops) < n {
		ops = append(ops, g.op())
		if len(ops)%50 == 0 {
			for _, table := range tables {
				ops = append(ops, op{kind: scan, table: table})
			}
		}
	}
	for i, o := range ops {
		var answers []string
		for _, s := range stores {
			answers = append(answers, s.run(t.Context(), o))
		}
		if answers[0] != answers[1] {
			t.Fatalf("-meta.seed=%d, operation %d of:\n%s\nthe answers of the model (-) and of the engine (+):\n%s",
				seed, i, history(ops[:i+1]), cmp.Diff(strings.SplitAfter(answers[0], "\n"), strings.SplitAfter(answers[1], "\n")))
		}
	}
	if subject.folded == 0 && n >= 2000 {
		t.Error("no journal was folded")
	}
}

// history returns the operations that could have caused the last answer: the changes of its
// table and of time.
func history(ops []op) string {
	last := ops[len(ops)-1]
	var lines []string
	for i := len(ops) - 1; i >= 0 && len(lines) < 200; i-- {
		o := ops[i]
		everywhere := o.table == "" || o.kind == runGC || o.kind == advance || o.kind == reopen ||
			o.kind == takeSnapshot || o.kind == restoreSnapshot || o.kind == crash || o.kind == foldJournal || o.kind == compact || o.kind == updateCatalog ||
			last.kind == readCatalog && o.kind != scan
		if i == len(ops)-1 || everywhere || o.table == last.table && o.kind != scan || o.kind == restoreBackup {
			lines = append(lines, fmt.Sprintf("%d: %s", i, o))
		}
	}
	slices.Reverse(lines)
	return strings.Join(lines, "\n")
}

// Covers checks that a run covers its operations: a generator whose
// operations all fail would compare errors with errors.
func Covers(t *testing.T) {
	t.Helper()
	c := clock.NewFrozen(time.UnixMicro(1_700_000_000_123_456))
	s := &modelStore{db: model.New(model.Options{Now: c.Now, KeepDeleted: keepDeleted}), clock: c, positions: map[place]uint64{}}
	g := &generator{rng: rand.New(rand.NewPCG(1, 1))}
	s.run(t.Context(), g.create(tables[0]))
	s.run(t.Context(), g.create(tables[1]))
	succeeded := map[kind]int{}
	cells := 0
	for range 8000 {
		o := g.op()
		answer := s.run(t.Context(), o)
		if strings.HasSuffix(answer, "ok\n") {
			succeeded[o.kind]++
		}
		if o.kind == scan {
			cells += strings.Count(answer, "@")
		}
	}
	for k := createTable; k < kindsEnd; k++ {
		if succeeded[k] < 2 {
			t.Errorf("operations of kind %d succeeded %d times", k, succeeded[k])
		}
	}
	if cells < 4000 {
		t.Errorf("scans visited %d cells", cells)
	}
}
