package control_test

import (
	"fmt"
	"testing"
	"time"

	ms "github.com/tabletop-emu/tabletop/internal/layout/migrationstate"
	"github.com/tabletop-emu/tabletop/internal/test/labserver"
	"github.com/tabletop-emu/tabletop/migrate"
)

// The tables into which live ones are followed have their state, lag and dead letters. A server without
// them makes no call.
func TestFollowed(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	type followed struct {
		Project, Instance string
		migrate.FollowStatus
	}
	var got struct{ Tables []followed }
	calls := func() int {
		t.Helper()
		var all struct{ Requests []any }
		e.must("GET", "requests?own=true&limit=1000", "", &all)
		return len(all.Requests)
	}
	before := calls()
	if e.must("GET", "followed", "", &got); got.Tables == nil || len(got.Tables) > 0 || calls() != before {
		t.Errorf("without a migration: %+v, and %d calls", got.Tables, calls()-before)
	}
	now := e.lab.Clock().Now()
	labserver.WriteState(t, e.lab, ms.FamilyState, ms.StateRow("t"), ms.State{
		Phase: ms.Following, By: "ana@host 1", At: now, Owner: "ana@host 1", Lease: now.Add(10 * time.Second), Verified: 1, Dirty: 1,
		Proof: ms.Proof{At: now, Compared: 7, Unsettled: 2},
	})
	labserver.WriteState(t, e.lab, ms.FamilyCheckpoint, ms.CheckpointRow("t", "stream"), ms.Checkpoint{
		Watermark: now.Add(-3 * time.Second), At: now, Flags: "--dynamodb-endpoint http://127.0.0.1:8001",
		Progress: ms.Progress{SourceNow: now, Changes: 5, Lags: ms.Lags{From: now.Add(-time.Minute), Millis: []int64{1, -1, 3000}}},
	})
	labserver.WriteState(t, e.lab, ms.FamilyLetter, ms.LetterRow("t", [16]byte{1}), ms.Letter{Key: `{"id":{"S":"a"}}`, Reason: "why", Mapping: "m.yaml:3"})
	e.must("GET", "followed", "", &got)
	if len(got.Tables) != 1 || calls() == before {
		t.Fatalf("the tables are %+v, after %d calls", got.Tables, calls()-before)
	}
	s := got.Tables[0]
	if s.Project != "p" || s.Instance != "i" || s.Target != "t" || s.Phase != "FOLLOWING" || s.Running != "ana@host 1" || s.Lag != 3*time.Second || s.Changes != 5 ||
		s.LetterCount != 1 || s.Letters[0].Reason != "why" || fmt.Sprint(s.Lags.Millis) != "[1 -1 3000]" || s.Proof == nil || s.Proof.Unsettled != 2 {
		t.Errorf("the table is %+v", s)
	}
	if s.Next != "tabletop migrate status --letters" { // the mapping with the name of the live table is missing
		t.Errorf("the next command is %q", s.Next)
	}
}
