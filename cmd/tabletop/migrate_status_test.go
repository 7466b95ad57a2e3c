package main

import (
	"strings"
	"testing"
	"time"

	"github.com/tabletop-emu/tabletop/migrate"
)

// Each condition of --wait holds, or says what it found.
func TestConditions(t *testing.T) {
	t.Parallel()
	s := migrate.FollowStatus{Table: "t", Phase: "FOLLOWING", Running: "ana", Lag: 2 * time.Second, LetterCount: 3, Dirty: 7, Proof: &migrate.LiveProof{Valid: true}}
	unverified, stopped, unknown, many := s, s, s, s
	unverified.Proof, stopped.Running, unknown.Lag, many.MoreDirty = &migrate.LiveProof{}, "", -1, true
	for _, c := range []struct {
		wait string
		of   migrate.FollowStatus
		want string // "": it holds
	}{
		{"phase=FOLLOWING", s, ""},
		{"phase=ENDED", s, "phase=ENDED does not hold for table t: the phase is FOLLOWING"},
		{"lag=2s", s, ""},
		{"lag<=2s", s, ""},
		{"lag<2s", s, "the lag is 2s"},
		{"lag < 2001ms", s, ""},
		{"lag=1999ms", s, "the lag is 2s"},
		{"lag<1h", stopped, "no process follows the table"},
		{"lag<1h", unknown, "the lag is unknown"},
		{"letters=3", s, ""},
		{"dead=3", s, ""},
		{"letters<3", s, "3 dead letters"},
		{"letters<=3", s, ""},
		{"letters=4", s, "3 dead letters"},
		{"dirty<=7", s, ""},
		{"dirty<7", s, "7 keys changed since"},
		{"dirty<100", many, "more than 7 keys changed since"},
		{"dirty=7", unverified, "no verification found it equal (migrate verify --live --consistent)"},
		{"phase=FOLLOWING,lag<3s,dead=0", s, "dead=0 does not hold for table t: 3 dead letters"},
	} {
		conditions, err := parseConditions(c.wait)
		if err != nil {
			t.Fatal(err)
		}
		got := (&statusCommand{conditions: conditions}).open([]migrate.FollowStatus{c.of})
		if !strings.HasSuffix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("--wait %s: %q, want %q", c.wait, got, c.want)
		}
	}
	wanted := &statusCommand{Tables: []string{"t", "u"}}
	if got := wanted.open([]migrate.FollowStatus{s, {Table: "v"}}); got != "table u has no migration" {
		t.Errorf("a table without a migration: %q", got)
	}
	if got := wanted.open(nil); got != "no table has a migration" {
		t.Errorf("without tables: %q", got)
	}
}

// The status says when a table was verified, and what has changed since.
func TestStatus_Text(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		proof *migrate.LiveProof
		want  string
	}{
		{nil, "  verified never\n"},
		{&migrate.LiveProof{At: at, Compared: 20, Differences: 1, Unsettled: 2}, "  verified keys at 2026-11-28T12:00:00Z: 20 compared, 1 difference, 2 unsettled\n"},
		{&migrate.LiveProof{At: at, Dirty: true, Compared: 20, Valid: true}, "  verified changed keys at 2026-11-28T12:00:00Z: 20 compared, 0 differences, 0 unsettled; more than 9 keys changed since\n"},
	} {
		var out strings.Builder
		(&statusCommand{}).table(&out, migrate.FollowStatus{Table: "t", Proof: c.proof, Dirty: 9, MoreDirty: true})
		if !strings.Contains(out.String(), c.want) {
			t.Errorf("the text lacks %q:\n%s", c.want, out.String())
		}
	}
}

func TestShellWord(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{"127.0.0.1:8087": "127.0.0.1:8087", "a b": "'a b'", "it's": `'it'\''s'`, "": "''", "$x": "'$x'"} {
		if got := shellWord(word); got != want {
			t.Errorf("%q becomes %s, want %s", word, got, want)
		}
	}
}
