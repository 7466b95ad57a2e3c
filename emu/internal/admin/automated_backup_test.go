package admin

import (
	"regexp"
	"strings"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tabletop-emu/tabletop/emu/internal/instancedef"
	"github.com/tabletop-emu/tabletop/emu/internal/pending"
)

var start = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

func daily() *automatedPolicy {
	return &automatedPolicy{RetentionPeriod: durationpb.New(3 * day), Frequency: durationpb.New(day)}
}

// A plan lives as long as a policy is in force.
func TestSettle(t *testing.T) {
	t.Parallel()
	settled := func(p *automatedPolicy, was AutomatedPlan, now time.Time) AutomatedPlan {
		plan := AutomatedPlan{Policy: p, From: start.Add(-100 * day)} // ignored
		plan.settle(was, now)
		return plan
	}
	planned := settled(daily(), AutomatedPlan{}, start)
	if at := planned.next(); !at.Equal(start.Add(day)) {
		t.Errorf("the first are due at %v", at)
	}
	changed := settled(daily(), planned, start.Add(day/2))
	off := settled(&automatedPolicy{Disabled: true}, changed, start.Add(day/2))
	again := settled(daily(), off, start.Add(day/2))
	removed := settled(nil, planned, start)
	if !changed.next().Equal(start.Add(day)) || !off.From.IsZero() || !again.next().Equal(start.Add(3*day/2)) || !removed.From.IsZero() {
		t.Errorf("due at %v, %v, %v and %v", changed.next(), off.From, again.next(), removed.From)
	}
	if off.inForce() || removed.inForce() || !again.inForce() {
		t.Error("what is in force")
	}
}

func TestDoneAndSkip(t *testing.T) {
	t.Parallel()
	p := AutomatedPlan{Policy: daily()}
	if !p.next().IsZero() {
		t.Errorf("without a plan due at %v", p.next())
	}
	p.skip(start) // no effect without a policy in force
	p.done(p.next(), start)
	if !p.next().Equal(start.Add(day)) {
		t.Errorf("due at %v", p.next())
	}
	p.done(p.next(), start.Add(40*day))
	if !p.next().Equal(start.Add(2 * day)) {
		t.Errorf("due at %v", p.next())
	}
	for now, want := range map[time.Duration]time.Duration{0: 2 * day, 2*day - 1: 2 * day, 2 * day: 3 * day, 5*day + 1: 6 * day} {
		q := AutomatedPlan{Policy: daily(), From: start.Add(day)}
		if q.skip(start.Add(now)); !q.next().Equal(start.Add(want)) {
			t.Errorf("skipped to %v, due at %v", now, q.next())
		}
	}
	(&AutomatedPlan{}).skip(start)
	(&AutomatedPlan{Policy: &automatedPolicy{Disabled: true}}).skip(start)
}

// Ids have at most 50 characters, are valid backup ids, and differ between
// tables with a common prefix.
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
	made := func(zone string, at time.Time) *instancedef.StoredCluster {
		return &instancedef.StoredCluster{Message: &btapb.Cluster{Name: "c-" + zone, Location: zone}, State: pending.State{At: at}}
	}
	resizing := made("d", time.Time{})
	instancedef.Resize(resizing, start, start.Add(time.Second))
	clusters := []*instancedef.StoredCluster{made("a", time.Time{}), made("b", start), made("c", start.Add(time.Second)), resizing}
	names := func(p *automatedPolicy) string {
		var out []string
		for _, c := range automatedPlaces(p, clusters, start) {
			out = append(out, c.GetName())
		}
		return strings.Join(out, " ")
	}
	if got := names(daily()); got != "c-a c-b c-d" {
		t.Errorf("everywhere: %s", got)
	}
	if got := names(&automatedPolicy{Locations: []string{"b", "c", "none"}}); got != "c-b" {
		t.Errorf("somewhere: %s", got)
	}
}
