package migrationstate_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/tabletop-emu/tabletop/facade/attr"
	ms "github.com/tabletop-emu/tabletop/internal/layout/migrationstate"
)

var at = time.Date(2026, 11, 28, 12, 0, 0, 123456789, time.UTC)

// The rows of a table begin with its name and a separator, which no name has: one table's rows
// are never those of another, and each kind has a prefix of its own.
func TestRows(t *testing.T) {
	t.Parallel()
	id := attr.ItemID{0xf1, 2}
	for _, c := range []struct {
		row, prefix []byte
		want        string
	}{
		{ms.StateRow("t"), ms.TablePrefix("t"), "t#state"},
		{ms.CheckpointRow("t", "stream"), ms.CheckpointRow("t", ""), "t#c#stream"},
		{ms.LetterRow("t", id), ms.LetterPrefix("t"), "t#d#f1020000000000000000000000000000"},
		{ms.DirtyRow("t", 7, id), ms.DirtyPrefix("t", 7), "t#k#0000000000000007#f#f1020000000000000000000000000000"},
		{ms.DirtyRow("t", 7, id), ms.DirtyPrefix("t", 7, 15), "t#k#0000000000000007#f#f1020000000000000000000000000000"},
		{ms.SplitRow("t", 12), ms.SplitPrefix("t"), "t#v#12"},
		{ms.HistoryRow("t", time.UnixMicro(1)), ms.HistoryPrefix("t"), fmt.Sprintf("t#h#%d", int64(math.MaxInt64-1))},
	} {
		if string(c.row) != c.want || !bytes.HasPrefix(c.row, c.prefix) || !bytes.HasPrefix(c.row, ms.TablePrefix("t")) {
			t.Errorf("row %q with prefix %q, want %q", c.row, c.prefix, c.want)
		}
		if table, ok := ms.TableOf(c.row); ok != (c.want == "t#state") || ok && table != "t" {
			t.Errorf("the table of row %q is %q, %t", c.row, table, ok)
		}
	}
	if a, b := ms.HistoryRow("t", at), ms.HistoryRow("t", at.Add(time.Microsecond)); bytes.Compare(a, b) <= 0 {
		t.Errorf("the later row %q is not before %q", b, a)
	}
	if a, b := ms.DirtyRow("t", 9, id), ms.DirtyRow("t", 10, id); bytes.Compare(a, b) >= 0 {
		t.Errorf("generation 10 is at %q, before %q", b, a)
	}
	for _, f := range ms.Families() {
		if f.GC.Versions != 1 || f.GC.MaxAge != 0 {
			t.Errorf("family %s has the rule %v", f.Name, f.GC)
		}
	}
}

// Values come back as they were written. A later format is refused, not misread, and members
// of a later version in the same format are ignored.
func TestValues(t *testing.T) {
	t.Parallel()
	const raw = `{"PK":{"S":"<a> &"}}`
	roundTrip(t, ms.State{
		Phase: ms.Following, By: "ana@host 17", At: at, Epoch: 3, Owner: "host 17", Lease: at, Stream: "arn", TableID: "id", Mapping: "hash", ExportTime: at, Dirty: 2,
		Proof: ms.Proof{At: at, Dirty: true, Compared: 3, Different: 1, Unsettled: 2},
	})
	roundTrip(t, ms.State{})
	roundTrip(t, ms.Checkpoint{
		Stream: "arn", TableID: "id", From: at, Watermark: at, Epoch: 1, Mapping: "hash", Version: "v", At: at,
		Shards: []ms.Shard{{ID: "s", Parent: "p", Sequence: strings.Repeat("9", 40), Before: "7", Epoch: 1, Done: true, Watermark: at}}, Progress: ms.Progress{Started: at, Rate: 1.5, Lags: ms.Lags{From: at, Millis: []int64{-1, 7}}},
		Flags: "--apply guarded", SourceFlags: "--dynamodb-endpoint http://127.0.0.1:8000",
	})
	roundTrip(t, ms.Checkpoint{
		Source: "kinesis", Epoch: 256, Since: at, Reached: at, Window: &ms.Window{Export: "e", From: at, To: at, Applied: 7},
		Files: &ms.Files{Begun: true, Late: 2, Folded: ms.Folded{Through: "a", Files: 1, Bytes: 9}, Open: []ms.File{{Name: "b", Offset: 1, Line: 2, Applied: 3}}},
	})
	roundTrip(t, ms.Letter{Key: raw, Code: "E-DOMAIN", Reason: "r", Mapping: "m.yaml:3", Position: []byte{0, 1}, Record: raw, At: at})
	roundTrip(t, ms.Dirty{Key: raw, At: at})
	roundTrip(t, ms.Split{Cuts: map[string][][]byte{"t": {{0xff}, []byte("b")}}, At: at})
	roundTrip(t, ms.Event{From: ms.Loaded, To: ms.CatchingUp, Epoch: 1, By: "ana", At: at})
	if cell, err := ms.Encode(ms.Checkpoint{From: at.AddDate(9000, 0, 0)}); err == nil {
		t.Errorf("a time that JSON cannot hold is written as %s", cell)
	}
	for cell, want := range map[string]string{
		`{"format":2,"value":{"phase":["new"]}}`: `row "t#state" of _migration_state has format 2, and this version reads format 1: use the version that wrote it`,
		`{"value":{"phase":"LOADED"}}`:           "has format 0",
		`{"format":1,"value":{"phase":7}}`:       `row "t#state" of _migration_state cannot be read: `,
		`{"format":1`:                            `row "t#state" of _migration_state cannot be read: `,
		``:                                       `row "t#state" of _migration_state cannot be read: `,
	} {
		if s, err := ms.Decode[ms.State](ms.StateRow("t"), []byte(cell)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is read as %+v, error %v, want %s", cell, s, err, want)
		}
	}
	if s, err := ms.Decode[ms.State](nil, []byte(`{"format":1,"value":{"phase":"LOADED","later":{"x":1}},"more":2}`)); err != nil || s.Phase != ms.Loaded {
		t.Errorf("a value with further members is %+v, error %v", s, err)
	}
}

func roundTrip[V ms.Value](t *testing.T, v V) {
	t.Helper()
	cell, err := ms.Encode(v)
	if err != nil {
		t.Error(err)
	}
	got, err := ms.Decode[V](nil, cell)
	if err != nil {
		t.Error(err)
	}
	if diff := gocmp.Diff(v, got); diff != "" {
		t.Errorf("%T (-written +read):\n%s", v, diff)
	}
}

// Each phase is reached from some phases only; the error names the phase, the operator and the
// time, and the phases that it needs.
func TestState_To(t *testing.T) {
	t.Parallel()
	phases := []ms.Phase{"", ms.Loaded, ms.CatchingUp, ms.Following, ms.Drained, ms.Ended}
	var allowed []string
	for _, from := range phases {
		for _, to := range phases {
			s := ms.State{Phase: from, By: "ana@host", At: at, Epoch: 4, Owner: "host 17", Lease: at}
			got, event, err := s.To("t", to, "bob@host", at.Add(time.Hour))
			switch {
			case from == to:
				if err != nil || event != nil || got != s {
					t.Errorf("%s again: %+v, event %+v, error %v", to, got, event, err)
				}
			case err != nil:
				var phase *ms.PhaseError
				if !errors.As(err, &phase) || got != s || event != nil {
					t.Errorf("%s to %s: %+v, event %+v, error %v", from, to, got, event, err)
				}
			default:
				allowed = append(allowed, string(from)+" "+string(to))
				want := ms.State{Phase: to, By: "bob@host", At: at.Add(time.Hour), Epoch: 4}
				if to.Followed() {
					want.Owner, want.Lease = s.Owner, s.Lease
				}
				if got != want || *event != (ms.Event{From: from, To: to, Epoch: 4, By: want.By, At: want.At}) {
					t.Errorf("%s to %s: %+v, event %+v", from, to, got, event)
				}
			}
		}
	}
	want := []string{
		" LOADED", " CATCHING_UP", "LOADED CATCHING_UP", "LOADED ENDED", "CATCHING_UP FOLLOWING", "CATCHING_UP ENDED", "FOLLOWING CATCHING_UP",
		"FOLLOWING DRAINED", "FOLLOWING ENDED", "DRAINED CATCHING_UP", "DRAINED FOLLOWING", "DRAINED ENDED", "ENDED LOADED", "ENDED CATCHING_UP",
	}
	if !slices.Equal(allowed, want) {
		t.Errorf("allowed are %q, want %q", allowed, want)
	}
	for _, p := range phases {
		if got := p.Followed(); got != (p == ms.CatchingUp || p == ms.Following || p == ms.Drained) {
			t.Errorf("phase %q is followed: %t", p, got)
		}
	}
	s := ms.State{Phase: ms.Drained, By: "ana@host 17", At: at}
	_, _, err := s.To("t", ms.Loaded, "bob", at)
	const text = "Bigtable table t: phase DRAINED since 2026-11-28T12:00:00Z, set by ana@host 17: cannot become LOADED; expected no migration or ENDED"
	if err == nil || err.Error() != text {
		t.Errorf("the error is %v, want %s", err, text)
	}
	if err := s.Need("t", "verify", ms.Following); err == nil || !strings.HasSuffix(err.Error(), "set by ana@host 17: cannot verify; expected FOLLOWING") {
		t.Errorf("the error is %v", err)
	}
	if err := s.Need("t", "verify", ms.Following, ms.Drained); err != nil {
		t.Error(err)
	}
	if err := (ms.State{}).Need("t", "verify", ms.Following); err == nil || !strings.Contains(err.Error(), "t: no migration: cannot") {
		t.Errorf("the error is %v", err)
	}
}

// A lease excludes other owners until one of them has seen it unchanged for its duration, whatever the
// clocks of both are; its owner can renew and release it.
func TestState_Lease(t *testing.T) {
	t.Parallel()
	for _, skew := range []time.Duration{0, time.Hour, -time.Hour} {
		s, err := ms.State{Phase: ms.Following}.Leased("t", "one", at, nil)
		if err != nil || s.Owner != "one" || s.Term != 1 || !s.Lease.Equal(at.Add(ms.LeaseTime)) {
			t.Fatalf("state %+v, error %v", s, err)
		}
		now, seen := at.Add(skew), &ms.Sighting{}
		refused := func(when string) {
			t.Helper()
			var held *ms.HeldError
			if _, err := s.Leased("t", "two", now, seen); !errors.As(err, &held) || held.Owner != "one" || !strings.Contains(err.Error(), "one follows its source, and renews its lease: end that process first") {
				t.Errorf("%s, by a clock %v ahead: the error is %v", when, skew, err)
			}
		}
		refused("at first")
		now = now.Add(ms.LeaseTime - 1)
		refused("before its end")
		if s, err = s.Leased("t", "one", at.Add(10*time.Second), nil); err != nil || s.Term != 1 || !s.Lease.Equal(at.Add(10*time.Second+ms.LeaseTime)) {
			t.Errorf("renewed: %+v, error %v", s, err)
		}
		if held, renewed := seen.See(s, now); !held || !renewed {
			t.Errorf("the renewed lease is held: %t, renewed: %t", held, renewed)
		}
		now = now.Add(ms.LeaseTime - 1)
		refused("after it was renewed")
		if held, renewed := seen.See(s, now); !held || renewed {
			t.Errorf("the same lease is held: %t, renewed: %t", held, renewed)
		}
		now = now.Add(1)
		if got, err := s.Leased("t", "two", now, seen); err != nil || got.Owner != "two" || got.Term != 2 || !got.Lease.Equal(now.Add(ms.LeaseTime)) {
			t.Errorf("after its end: %+v, error %v", got, err)
		}
		if got := s.Released("two"); got != s {
			t.Errorf("released by another: %+v", got)
		}
		if got, err := s.Released("one").Leased("t", "two", at, &ms.Sighting{}); err != nil || got.Owner != "two" || got.Term != 2 {
			t.Errorf("after the release: %+v, error %v", got, err)
		}
	}
	s := ms.State{}
	if got, err := s.NextEpoch("t"); err != nil || got.Epoch != 1 {
		t.Errorf("the next epoch: %+v, error %v", got, err)
	}
	if _, err := (ms.State{Epoch: math.MaxUint16}).NextEpoch("t"); err == nil {
		t.Error("the epoch returns to 0")
	}
}

// Lags are the greatest of each step, in an hour. Time without a lag is unknown, and a lag never changes
// those that were returned before.
func TestLags(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	var l ms.Lags
	add := func(after, lag time.Duration) { l = l.With(begin.Add(after), lag) }
	want := func(from time.Duration, millis ...int64) {
		t.Helper()
		if diff := gocmp.Diff(ms.Lags{From: begin.Add(from), Millis: millis}, l); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	add(3*time.Second, time.Second)
	was := l
	add(9*time.Second, 2*time.Second)
	add(9999*time.Millisecond, time.Millisecond)
	want(0, 2000)
	if was.Millis[0] != 1000 {
		t.Errorf("the former lags are %v", was)
	}
	add(10*time.Second, -1)
	want(0, 2000, -1)
	add(45*time.Second, 5*time.Millisecond)
	want(0, 2000, -1, -1, -1, 5)
	add(30*time.Second, 7*time.Millisecond) // the clock was set back
	want(0, 2000, -1, -1, 7, 5)
	for i := range 400 {
		add(time.Duration(i)*ms.LagStep, 9*time.Millisecond)
	}
	if !l.From.Equal(begin.Add(40*ms.LagStep)) || len(l.Millis) != 360 || slices.Min(l.Millis) != 9 {
		t.Errorf("after more than an hour: from %s, %d lags", l.From, len(l.Millis))
	}
	add(-time.Hour, time.Millisecond)
	want(-time.Hour, 1)
	add(1000*time.Hour, time.Millisecond)
	want(1000*time.Hour, 1)
}

// The lag of a first run is unknown until its watermark leaves the place where it begins to read.
func TestCheckpoint_Lag(t *testing.T) {
	t.Parallel()
	from, since, now := at.Add(-time.Hour), at.Add(-55*time.Minute), at
	for _, c := range []struct {
		watermark time.Time
		rule      string
		want      time.Duration
	}{
		{time.Time{}, "header", -1},
		{from, "", -1},
		{from, "header", -1}, // an answer has arrived, and is not applied yet
		{from.Add(time.Second), "", -1},
		{from.Add(time.Second), "header", time.Hour - time.Second},
		{since, "", 55 * time.Minute}, // a later run
		{now.Add(time.Second), "header", 0},
	} {
		p := ms.Checkpoint{From: from, Since: since, Progress: ms.Progress{Rule: c.rule, SourceNow: now}}
		if got := p.Lag(c.watermark); got != c.want {
			t.Errorf("watermark %s, rule %q: the lag is %s, want %s", c.watermark, c.rule, got, c.want)
		}
	}
}
