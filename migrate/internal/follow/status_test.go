package follow_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/facade/attr"
	ms "github.com/tabletop-emu/tabletop/internal/layout/migrationstate"
	"github.com/tabletop-emu/tabletop/internal/test/intercept"
	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/internal/statetable"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/testkit/btkit"
)

// The status has the last verification, the keys that changed since, the lags of each ten seconds, and the
// next command with the flags of the last follower.
func TestStatus(t *testing.T) {
	t.Parallel()
	l := startEarly(t, 20)
	sleep, stop := l.follow(t, "one")
	if s := l.status(t); s.Proof != nil || s.Dirty != 0 || s.Next != "freeze the source, stop the follower, then: tabletop migrate follow Things --flag 'a b' --source c --until tip" {
		t.Errorf("before a verification: %+v", s)
	}
	r, _ := l.verifyLive(t, l.liveOptions(sleep))
	if !r.Equal() {
		t.Fatalf("differences:\n%s", r.Text())
	}
	s := l.status(t)
	if p := s.Proof; p == nil || !p.Valid || p.Dirty || p.At.IsZero() || p.Compared != int64(len(l.items(t))) || p.Differences != 0 || p.Unsettled != 0 {
		t.Errorf("the proof is %+v", p)
	}
	l.put(t, "p", "s", 1000, nil)
	for l.status(t).Dirty != 1 {
		if err := sleep(t.Context(), time.Second); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the second one begins after a checkpoint of another step
		if err := sleep(t.Context(), 11*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	s = l.status(t)
	if s.Running != "" || s.Next != "tabletop migrate follow Things --flag 'a b' --source c" {
		t.Errorf("without a follower: %q, next %q", s.Running, s.Next)
	}
	if s.Lags.StepSeconds != 10 || len(s.Lags.Millis) < 2 || s.Lags.Millis[len(s.Lags.Millis)-1] < 0 || s.Lags.From.After(s.Saved) {
		t.Errorf("the lags are %+v", s.Lags)
	}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{`"lagNanoseconds":`, `"lags":{"from":`, `"stepSeconds":10,"milliseconds":[`, `"shards":[{"id":"shardId-`, `"proof":{"at":`} {
		if !strings.Contains(string(text), name) {
			t.Errorf("the JSON lacks %s: %s", name, text)
		}
	}
	// The next run continues the lags.
	before := s.Lags.From
	_, stop = l.follow(t, "two")
	stop()
	if s := l.status(t); !s.Lags.From.Equal(before) {
		t.Errorf("another run has begun the lags at %s, not %s", s.Lags.From, before)
	}
}

// A follower that was killed still has its lease for a while: its last checkpoint ages, and so does the lag. Without a
// follower too, but not after a drain.
func TestStatus_Age(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_800_000_000, 0)
	conn := btkit.Start(t).Conn()
	for _, c := range []struct {
		phase         ms.Phase
		watermark     time.Time
		age, want, of time.Duration // of: the shard's
	}{
		{ms.Following, at.Add(-300 * time.Millisecond), 0, 300 * time.Millisecond, 400 * time.Millisecond},
		{ms.Following, at.Add(-300 * time.Millisecond), time.Second, 300 * time.Millisecond, 400 * time.Millisecond},
		{ms.Following, at.Add(-300 * time.Millisecond), 6 * time.Second, 5300 * time.Millisecond, 5400 * time.Millisecond},
		{ms.CatchingUp, at.Add(-time.Minute), time.Hour, time.Minute + time.Hour - time.Second, time.Hour - 600*time.Millisecond},
		{ms.Drained, at.Add(-300 * time.Millisecond), time.Hour, 300 * time.Millisecond, 400 * time.Millisecond},
		{ms.Following, at, -time.Hour, 0, 400 * time.Millisecond}, // another clock
		{ms.Following, time.Time{}, time.Hour, -1, time.Hour - 600*time.Millisecond},
	} {
		now := at
		store := statetable.Store{B: table.NewBigtable(conn, table.Options{}), Table: "t", Now: func() time.Time { return now }}
		must(t, store.Make(t.Context()))
		_, err := store.Change(t.Context(), func(s ms.State) (ms.State, *ms.Event, error) {
			return ms.State{Phase: c.phase, Owner: "one", Lease: at.Add(ms.LeaseTime), Term: s.Term + 1}, nil, nil
		})
		must(t, err)
		term := uint64(0)
		if s, err := store.State(t.Context()); err == nil {
			term = s.Term
		}
		if _, err := store.ClaimCheckpoint(t.Context(), statetable.StreamSource, term); err != nil {
			t.Fatal(err)
		}
		if done, err := store.SaveCheckpoint(t.Context(), statetable.StreamSource, term, ms.Checkpoint{
			Watermark: c.watermark, At: at, Progress: ms.Progress{SourceNow: at, Rule: "header"}, Shards: []ms.Shard{{ID: "s", Watermark: at.Add(-400 * time.Millisecond)}},
		}); err != nil || !done {
			t.Fatalf("saved: %t, %v", done, err)
		}
		now = at.Add(c.age)
		all, err := migrate.Status(t.Context(), conn, migrate.Common{Now: store.Now})
		if err != nil || len(all) != 1 || all[0].Lag != c.want || all[0].Shards[0].Lag != c.of {
			t.Errorf("%s, %v after the checkpoint: %+v, error %v; want lags %v and %v", c.phase, c.age, all, err, c.want, c.of)
		}
	}
}

// Changed keys are counted without their values, and only up to a limit.
func TestStatus_ManyChangedKeys(t *testing.T) {
	t.Parallel()
	asked := 0
	conn := intercept.New(btkit.Start(t).Conn(), func(_ context.Context, m any) error {
		if r, ok := m.(*btpb.ReadRowsRequest); ok && slices.ContainsFunc(r.GetRows().GetRowRanges(), func(x *btpb.RowRange) bool {
			return strings.HasPrefix(string(x.GetStartKeyClosed()), "t#k#")
		}) {
			if asked++; r.GetRowsLimit() == 0 || !strings.Contains(r.GetFilter().String(), "strip_value") {
				t.Errorf("the read of the keys is %s", r)
			}
		}
		return nil
	})
	now := func() time.Time { return time.Unix(1_800_000_000, 0) }
	store := statetable.Store{B: table.NewBigtable(conn, table.Options{}), Table: "t", Now: now}
	if err := store.Make(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Change(t.Context(), func(ms.State) (ms.State, *ms.Event, error) {
		return ms.State{Phase: ms.Following, Verified: 2, Dirty: 3}, nil, nil
	}); err != nil {
		t.Fatal(err)
	}
	add := func(generation uint64, n int) {
		t.Helper()
		keys := map[attr.ItemID]ms.Dirty{}
		for i := range n {
			var id attr.ItemID
			binary.BigEndian.PutUint32(id[:], uint32(i)<<16)
			keys[id] = ms.Dirty{Key: `{"id":{"S":"k"}}`}
		}
		if err := store.AddDirty(t.Context(), generation, keys); err != nil {
			t.Fatal(err)
		}
	}
	want := func(n int, more bool) {
		t.Helper()
		all, err := migrate.Status(t.Context(), conn, migrate.Common{Now: now})
		if err != nil || len(all) != 1 || all[0].Dirty != n || all[0].MoreDirty != more {
			t.Errorf("the status is %+v, error %v; want %d keys, more: %t", all, err, n, more)
		}
	}
	want(0, false)
	add(1, 7) // before the last verification
	want(0, false)
	add(2, 3)
	add(3, 9_997)
	want(10_000, false)
	add(3, 9_998)
	want(10_000, true)
	if asked == 0 {
		t.Error("nothing has read the keys")
	}
}
