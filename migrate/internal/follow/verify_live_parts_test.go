package follow_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// liveParts are parts of a verification, each of which is a process of its own in practice.
type liveParts struct {
	l *live
	o migrate.LiveOptions
	n int
}

func (p liveParts) run(t *testing.T, i int) *report.Report {
	t.Helper()
	o := p.o
	o.Part = source.Part{Index: i, Of: p.n}
	r, err := migrate.VerifyLive(t.Context(), p.l.target, o)
	if err != nil {
		t.Errorf("part %d: %v", i, err)
	}
	return r
}

// all runs all parts at the same time.
func (p liveParts) all(t *testing.T) {
	t.Helper()
	var running sync.WaitGroup
	for i := range p.n {
		running.Go(func() { p.run(t, i+1) })
	}
	running.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

func (p liveParts) finish(t *testing.T) *report.Report {
	t.Helper()
	r, err := migrate.FinishVerifyLive(t.Context(), p.l.target, p.o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// inParts returns a verification in n parts, of a target with several tablets.
func (l *live) inParts(t *testing.T, n int, sleep func(context.Context, time.Duration) error) liveParts {
	t.Helper()
	o := l.liveOptions(sleep)
	o.Parts, o.Segments = t.TempDir(), 2
	return liveParts{l, o, n}
}

// shared lets several verifications sleep at once.
func shared(sleep func(context.Context, time.Duration) error) func(context.Context, time.Duration) error {
	return func(ctx context.Context, d time.Duration) error { return sleep(ctx, d) }
}

// failuresOf are the failures of a report without the names of the checks.
func failuresOf(r *report.Report) (all []string) {
	for _, f := range r.Failures {
		f.Check, f.Detail = "", ""
		all = append(all, f.String())
	}
	slices.Sort(all)
	return all
}

// Parts and their end have the result of one run: without and with differences. They are also the
// proof that a comparison of changed keys needs.
func TestVerifyLive_Parts(t *testing.T) {
	t.Parallel()
	l := startEarly(t, 80)
	for i := range len(faults) {
		l.put(t, "p", fmt.Sprint("f", i), i, map[string]string{"G": fmt.Sprint("gf", i), "x": "text"})
	}
	sleep, _ := l.follow(t, "one")
	single := l.liveOptions(sleep)
	p := l.inParts(t, 5, shared(sleep))
	p.all(t)
	r := p.finish(t)
	_, one := l.verifyLive(t, single)
	if got := r.Tables[0].Live; len(r.Failures) > 0 || got.Compared != one.Compared || got.Compared != int64(len(l.items(t))) || !strings.Contains(r.Text(), "keys of 0 of 65536 buckets") {
		t.Fatalf("%d keys, in one run %d:\n%s", got.Compared, one.Compared, r.Text())
	}
	if left, err := os.ReadDir(p.o.Parts); err != nil || len(left) > 0 {
		t.Errorf("the folder has %v, error %v", left, err)
	}
	dirty := single
	dirty.Dirty = true
	if r, live := l.verifyLive(t, dirty); len(r.Failures) > 0 || live.Compared != 0 {
		t.Errorf("changed keys after the parts:\n%s", r.Text())
	}

	// One changed item is found by its bucket; the parts read nothing else again.
	l.mutate(t, "t", "p#f0", btclient.SetCell("a", []byte("x"), 9e15, []byte("other")), btclient.SetCell("_t", []byte("a/x"), 9e15, []byte("S")))
	p.all(t)
	r = p.finish(t)
	if len(r.Failures) != 1 || !strings.Contains(r.Failures[0].ItemKey, `"f0"`) || !strings.Contains(r.Text(), "keys of 1 of 65536 buckets") {
		t.Errorf("one change:\n%s", r.Text())
	}
	if r.Tables[0].Live.Compared != one.Compared {
		t.Errorf("%d keys compared, want %d", r.Tables[0].Live.Compared, one.Compared)
	}

	for i, f := range faults {
		f.plant(t, l, fmt.Sprint("f", i))
	}
	l.mutate(t, "t", "q#nobody", btclient.SetCell("a", []byte("rev"), 1000, []byte("1")))
	p.all(t)
	r = p.finish(t)
	want, _ := l.verifyLive(t, single)
	if got := failuresOf(r); !slices.Equal(got, failuresOf(want)) || r.Differences != want.Differences || len(got) < len(faults)-1 {
		t.Errorf("in parts:\n%s\nin one run:\n%s", r.Text(), want.Text())
	}
}

// Parts beside writes report no difference.
func TestVerifyLive_PartsBesideWrites(t *testing.T) {
	t.Parallel()
	l := startEarly(t, 60)
	sleep, _ := l.follow(t, "one")
	runs, writes := 2, 150
	if long.Enabled() {
		runs, writes = 20, 5000
	}
	var writers sync.WaitGroup
	for i := range 2 {
		writers.Go(func() {
			r := rand.New(rand.NewPCG(5, uint64(i)))
			for range writes {
				l.write(t, r)
			}
		})
	}
	p := l.inParts(t, 3, shared(sleep))
	for range runs {
		p.all(t)
		if r := p.finish(t); len(r.Failures) > 0 || r.Tables[0].Live.Compared == 0 {
			t.Fatalf("differences:\n%s", r.Text())
		}
	}
	writers.Wait()
	p.all(t)
	if r := p.finish(t); len(r.Failures) > 0 || r.Tables[0].Live.Unsettled > 0 {
		t.Errorf("after the writes:\n%s", r.Text())
	}
}

// The end refuses missing, foreign and differently divided parts, with the remedy; a part that is
// complete is not repeated.
func TestVerifyLive_PartsRefused(t *testing.T) {
	t.Parallel()
	l := startEarly(t, 30)
	sleep, _ := l.follow(t, "one")
	p := l.inParts(t, 2, sleep)
	refused := func(when string, want ...string) {
		t.Helper()
		_, err := migrate.FinishVerifyLive(t.Context(), l.target, p.o)
		for _, w := range want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v, want %s", when, err, w)
			}
		}
	}
	refused("without parts", "holds no parts of a verify command")
	p.run(t, 1)
	refused("without part 2", "these are not complete: 2/2", "--part")
	if r := p.run(t, 1); !strings.Contains(strings.Join(r.Warnings, ""), "part 1/2 is already complete") {
		t.Errorf("a part again:\n%s", r.Text())
	}
	three := p
	three.o.Part = source.Part{Index: 3, Of: 3}
	if _, err := migrate.VerifyLive(t.Context(), l.target, three.o); err == nil || !strings.Contains(err.Error(), "2 parts, but this is part 3/3") {
		t.Errorf("a part of another number: %v", err)
	}
	other := p
	other.o.Segments = 3
	other.run(t, 2)
	refused("with other segments", "part 2 divides the table differently from part 1", "--segments")
	done := filepath.Join(p.o.Parts, "verify-2-of-2.done")
	if err := os.Remove(done); err != nil {
		t.Fatal(err)
	}
	p.run(t, 2)
	text, err := os.ReadFile(done)
	if err != nil {
		t.Fatal(err)
	}
	foreign := strings.Replace(string(text), `"identity":"`, `"identity":"0`, 1)
	if err := os.WriteFile(done, []byte(foreign), 0o600); err != nil {
		t.Fatal(err)
	}
	refused("with a foreign part", "part 2/2 belongs to another verify command", "run the part again")
	if err := os.WriteFile(done, text, 0o600); err != nil {
		t.Fatal(err)
	}
	rows := filepath.Join(p.o.Parts, "verify-2-of-2.rows.t")
	hashes, err := os.ReadFile(rows)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(rows, hashes[:len(hashes)-33], 0o600); err != nil {
		t.Fatal(err)
	}
	refused("with a shorter file", "hashes of the parts are incomplete")
	hashes[16] = 9
	if err := os.WriteFile(rows, hashes, 0o600); err != nil {
		t.Fatal(err)
	}
	refused("with another byte", "the hashes of the parts are damaged")
	hashes[16] = 1
	if err := os.Remove(rows); err != nil {
		t.Fatal(err)
	}
	refused("without a file", "the hashes of part 2/2 are missing")
	if err := os.WriteFile(rows, hashes, 0o600); err != nil {
		t.Fatal(err)
	}
	l.verifyLive(t, l.liveOptions(sleep))
	refused("after another verification", "another verification has deleted the keys", "verify them again")
	o := p.o
	o.Part, o.Dirty = source.Part{Index: 1, Of: 2}, true
	if _, err := migrate.VerifyLive(t.Context(), l.target, o); err == nil || !strings.Contains(err.Error(), "compares all keys") {
		t.Errorf("changed keys in a part: %v", err)
	}
}

// The parts of a table with several tablets divide its rows.
func TestVerifyLive_PartsOfTablets(t *testing.T) {
	t.Parallel()
	l := create(t, followedTable)
	l.env.Advance(5 * time.Minute)
	for i := range 40 {
		l.put(t, fmt.Sprintf("%02d", i), "s", i, nil)
	}
	o := migrate.LoadOptions{Common: l.common(), Tablets: 4}
	if _, err := migrate.Load(t.Context(), l.target, l.source(t, l.now().Add(l.loaded)), o); err != nil {
		t.Fatal(err)
	}
	sleep, _ := l.follow(t, "one")
	p := l.inParts(t, 4, sleep)
	rows := int64(0)
	for i := range p.n {
		if i == 2 { // keys that change between the scans are not summed up, but compared
			for k := range 10 {
				l.put(t, fmt.Sprintf("%02d", 4*k), "s", 100+k, nil)
			}
		}
		r := p.run(t, i+1)
		if rows += r.Rows; r.Rows == 0 || r.Rows == 40 {
			t.Errorf("part %d has %d rows of 40", i+1, r.Rows)
		}
	}
	if r := p.finish(t); len(r.Failures) > 0 || r.Rows != 40 || rows != 40 || r.Tables[0].Live.Compared != 40 || !strings.Contains(r.Text(), "keys of 0 of 65536 buckets") {
		t.Errorf("the parts have %d rows:\n%s", rows, r.Text())
	}
}
