package admin

import (
	"regexp"
	"strings"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tabletop-emu/tabletop/emu/internal/pending"
)

var start = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

func daily() *AutomatedPolicy {
	return &AutomatedPolicy{RetentionPeriod: durationpb.New(3 * day), Frequency: durationpb.New(day)}
}

// The plan of a policy lives as long as one is in force.
func TestSettle(t *testing.T) {
	t.Parallel()
	planned := daily()
	settleAutomated(planned, nil, start)
	if at := nextAutomated(planned); !at.Equal(start.Add(day)) {
		t.Errorf("the first are due at %v", at)
	}
	changed, off, again := daily(), &AutomatedPolicy{Disabled: true}, daily()
	pending.Set(changed, start.Add(-100*day)) // what a request can say
	pending.Set(off, start)
	settleAutomated(changed, planned, start.Add(day/2))
	settleAutomated(off, changed, start.Add(day/2))
	settleAutomated(again, off, start.Add(day/2))
	settleAutomated(nil, planned, start)
	if !nextAutomated(changed).Equal(start.Add(day)) || !pending.Of(off).IsZero() || !nextAutomated(again).Equal(start.Add(3*day/2)) {
		t.Errorf("due at %v, %v and %v", nextAutomated(changed), pending.Of(off), nextAutomated(again))
	}
	if automatedInForce(off) || automatedInForce(nil) || !automatedInForce(again) {
		t.Error("what is in force")
	}
}

func TestDoneAndSkip(t *testing.T) {
	t.Parallel()
	p := daily()
	if !nextAutomated(p).IsZero() {
		t.Errorf("without a plan due at %v", nextAutomated(p))
	}
	skipAutomated(p, start) // which is none of its business
	automatedDone(p, nextAutomated(p), start)
	if !nextAutomated(p).Equal(start.Add(day)) {
		t.Errorf("due at %v", nextAutomated(p))
	}
	automatedDone(p, nextAutomated(p), start.Add(40*day))
	if !nextAutomated(p).Equal(start.Add(2 * day)) {
		t.Errorf("due at %v", nextAutomated(p))
	}
	for now, want := range map[time.Duration]time.Duration{0: 2 * day, 2*day - 1: 2 * day, 2 * day: 3 * day, 5*day + 1: 6 * day} {
		q := daily()
		pending.Set(q, start.Add(day))
		if skipAutomated(q, start.Add(now)); !nextAutomated(q).Equal(start.Add(want)) {
			t.Errorf("skipped to %v, due at %v", now, nextAutomated(q))
		}
	}
	skipAutomated(nil, start)
	skipAutomated(&AutomatedPolicy{Disabled: true}, start)
}

// Ids are at most 50 characters, are those of a backup, and those of two tables are
// two, however they begin.
func TestID(t *testing.T) {
	t.Parallel()
	if got, want := automatedID("t", start.In(time.FixedZone("", 3600))), "t-auto-20260501T120000Z"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	long := strings.Repeat("t", 49)
	seen := map[string]string{}
	for _, table := range []string{long + "1", long + "2", long, long[:28], long[:29], "_." + long[:40]} {
		id := automatedID(table, start)
		if other, ok := seen[id]; ok {
			t.Errorf("%s and %s have %s", table, other, id)
		}
		seen[id] = table
		if !regexp.MustCompile(`^[_a-zA-Z0-9][-_.a-zA-Z0-9]{0,49}$`).MatchString(id) || !strings.HasPrefix(id, table[:19]) {
			t.Errorf("%s of %s", id, table)
		}
	}
	if got := automatedID(long[:28], start); got != long[:28]+"-auto-20260501T120000Z" || len(got) != 50 {
		t.Errorf("got %s", got)
	}
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	made := func(zone string, at time.Time) *btapb.Cluster {
		c := &btapb.Cluster{Name: "c-" + zone, Location: zone}
		pending.Set(c, at)
		return c
	}
	clusters := []*btapb.Cluster{made("a", time.Time{}), made("b", start), made("c", start.Add(time.Second))}
	names := func(p *AutomatedPolicy) string {
		var out []string
		for _, c := range automatedPlaces(p, clusters, start) {
			out = append(out, c.GetName())
		}
		return strings.Join(out, " ")
	}
	if got := names(daily()); got != "c-a c-b" {
		t.Errorf("everywhere: %s", got)
	}
	if got := names(&AutomatedPolicy{Locations: []string{"b", "c", "none"}}); got != "c-b" {
		t.Errorf("somewhere: %s", got)
	}
}
