package follow_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// verifyAsOf compares the target with an export.
func (l *live) verifyAsOf(t *testing.T, src *source.Source, sleep func(context.Context, time.Duration) error) (*report.Report, *report.Live) {
	t.Helper()
	o := migrate.VerifyOptions{Common: l.common(), Stored: true, Followed: true}
	o.Sleep = sleep
	r, err := migrate.Verify(t.Context(), l.target, migrate.OfSource(src), o)
	if err != nil {
		t.Fatal(err)
	}
	return r, r.Tables[0].Live
}

// An export is an oracle for a target that changes: items that changed after it are counted, even
// deleted and new ones, and no lag is reported.
func TestVerify_AsOf(t *testing.T) {
	t.Parallel()
	l := startEarly(t, 60)
	sleep, _ := l.follow(t, "one")
	runs, writes := 3, 200
	if long.Enabled() {
		runs, writes = 30, 5000
	}
	r := rand.New(rand.NewPCG(3, 3))
	for range 40 {
		l.write(t, r)
	}
	l.env.Advance(5 * time.Second) // the writes are older than the export, at the precision of records
	src := l.source(t, l.now())
	if r, live := l.verifyAsOf(t, src, sleep); len(r.Failures) > 0 || live.Newer > 0 || live.Compared == 0 {
		t.Fatalf("before later writes:\n%s", r.Text())
	}
	l.env.Advance(5 * time.Second)
	var writers sync.WaitGroup
	for i := range 2 {
		writers.Go(func() {
			r := rand.New(rand.NewPCG(5, uint64(i)))
			for range writes {
				l.write(t, r)
			}
		})
	}
	for range runs {
		if r, _ := l.verifyAsOf(t, src, sleep); len(r.Failures) > 0 {
			t.Fatalf("differences:\n%s", r.Text())
		}
	}
	writers.Wait()
	o := l.liveOptions(sleep) // waits until they are applied
	l.verifyLive(t, o)
	if r, live := l.verifyAsOf(t, src, sleep); len(r.Failures) > 0 || live.Newer == 0 || !strings.Contains(r.Text(), "changed after the export") {
		t.Errorf("after the writes:\n%s", r.Text())
	}
}

// A difference of an item that did not change after the export is reported; one of an item that
// changed is not.
func TestVerify_AsOfDifferences(t *testing.T) {
	t.Parallel()
	l := startEarly(t, 0)
	for i := range 12 {
		l.put(t, "p", fmt.Sprint("s", i), i, map[string]string{"G": fmt.Sprint("g", i), "x": "text"})
	}
	sleep, _ := l.follow(t, "one")
	l.verifyLive(t, l.liveOptions(sleep))
	l.env.Advance(5 * time.Second)
	src := l.source(t, l.now())
	l.env.Advance(5 * time.Second)
	l.put(t, "p", "s8", 99, map[string]string{"G": "other"})
	l.put(t, "p", "new", 99, nil)
	l.remove(t, "p", "s9")
	l.verifyLive(t, l.liveOptions(sleep))
	l.mutate(t, "t", "p#s0", btclient.SetCell("a", []byte("x"), 9e15, []byte("other")))
	l.mutate(t, "t", "p#s1", btclient.DeleteRow())
	l.mutate(t, "t", "p#s8", btclient.SetCell("a", []byte("x"), 9e15, []byte("not seen: the item is newer")), btclient.SetCell("_t", []byte("a/x"), 9e15, []byte("S")))
	l.mutate(t, "t", "q#s2", btclient.SetCell("a", []byte("x"), 1000, []byte("nobody's")), btclient.SetCell("_t", []byte("a/x"), 1000, []byte("S")))
	index := (*layout.Mapping)(l.m).Indexes()[0]
	placed, ok, err := index.Place(attr.Item{"PK": attr.String("p"), "SK": attr.String("s3"), "G": attr.String("g3")}, 0)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	l.mutate(t, index.TargetTable(), string(placed.Row), btclient.DeleteRow())
	r, live := l.verifyAsOf(t, src, sleep)
	for _, want := range []struct{ kind, item string }{{"ValueDiffers", "s0"}, {"MissingRow", "s1"}, {"ExtraRow", "s2"}, {"IndexStale", "s3"}} {
		found := 0
		for _, f := range r.Failures {
			if string(f.Kind) == want.kind && strings.Contains(f.ItemKey, `"`+want.item+`"`) {
				found++
			}
		}
		if found != 1 {
			t.Errorf("%+v is reported %d times", want, found)
		}
	}
	if r.Differences != 4 || live.Newer != 3 || live.Compared != 14 || t.Failed() {
		t.Errorf("%+v\n%s", live, r.Text())
	}
}

// Rows of a loader that writes no positions are compared with a warning; a source without a time is
// refused, and so is a time after its end.
func TestVerify_AsOfTime(t *testing.T) {
	t.Parallel()
	l := startEarly(t, 20)
	r, live := l.verifyAsOf(t, l.source(t, l.now()), pause)
	if len(r.Failures) > 0 || live.Compared == 0 || !strings.Contains(strings.Join(r.Warnings, "\n"), "has no positions of changes") {
		t.Errorf("without positions:\n%s", r.Text())
	}
	l.put(t, "p", "unknown", 1, nil)
	if r, _ := l.verifyAsOf(t, l.source(t, l.now()), pause); r.Differences != 1 || r.Failures[0].Kind != report.MissingRow {
		t.Errorf("with a later item:\n%s", r.Text())
	}
	o := migrate.VerifyOptions{Common: l.common(), Stored: true, Followed: true}
	if _, err := migrate.Verify(t.Context(), l.target, migrate.OfSource(l.source(t, time.Time{})), o); err == nil || !strings.Contains(err.Error(), "--as-of TIME") {
		t.Errorf("without a time: %v", err)
	}
	o.AsOf = l.now().Add(time.Hour)
	if _, err := migrate.Verify(t.Context(), l.target, migrate.OfSource(l.source(t, l.now())), o); err == nil || !strings.Contains(err.Error(), "--as-of export") {
		t.Errorf("after the export: %v", err)
	}
}
