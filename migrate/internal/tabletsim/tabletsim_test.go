package tabletsim

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tabletop-emu/tabletop/internal/race"
)

// billion is the plan of docs/scale.md.
var billion = Plan{
	Rows: 1_000_000_000, RowBytes: 1000, Parts: 16, Batch: 2000, Prepare: 28 * time.Microsecond, Wire: 2 * time.Millisecond,
	Tablets: 64, Nodes: 30, Lost: 1000,
}

// TestRun_Table replays the plans of docs/scale.md, which has the table.
func TestRun_Table(t *testing.T) {
	race.OneAfterTheOther(t)
	t.Parallel()
	var text strings.Builder
	text.WriteString("| plan | hours | calls | sent again | nodes busy | tablets at the end |\n|---|---|---|---|---|---|\n")
	for _, c := range []struct {
		name   string
		change func(*Plan)
	}{
		{"16 parts, 30 nodes, 64 tablets", func(*Plan) {}},
		{"the same, from one tablet", func(p *Plan) { p.Tablets = 1 }},
		{"the same, files in the order of rows", func(p *Plan) { p.Sorted = true }},
		{"the same, in that order and from one tablet", func(p *Plan) { p.Sorted, p.Tablets = true, 1 }},
		{"1 part", func(p *Plan) { p.Parts = 1 }},
		{"64 parts", func(p *Plan) { p.Parts = 64 }},
		{"16 parts over 20 ms", func(p *Plan) { p.Wire = 20 * time.Millisecond }},
		{"16 parts, each call in 20 lost", func(p *Plan) { p.Lost = 20 }},
		{"16 parts, 5,000 rows a second each", func(p *Plan) { p.Pace = 5000 }},
		{"16 parts, 3 nodes", func(p *Plan) { p.Nodes = 3 }},
	} {
		p := billion
		c.change(&p)
		r := Run(p)
		fmt.Fprintf(&text, "| %s | %.1f | %d | %d | %.0f %% | %d |\n", c.name, r.Took.Hours(), r.Calls, r.Again, 100*r.Busy, r.Tablets)
	}
	doc, err := os.ReadFile("../../../docs/scale.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(doc), text.String()) {
		t.Errorf("docs/scale.md has not the table of the plans, want:\n%s", text.String())
	}
}

// TestRun_Bounds: no plan is faster than its parts, its pace or its nodes.
func TestRun_Bounds(t *testing.T) {
	t.Parallel()
	small := Plan{Rows: 1_000_000, RowBytes: 1000, Parts: 4, Batch: 1000, Nodes: 3, Tablets: 6}
	for _, c := range []struct {
		name   string
		change func(*Plan)
		least  time.Duration
	}{
		{"nodes", func(*Plan) {}, 33 * time.Second},
		{"one tablet", func(p *Plan) { p.Tablets, p.RowBytes = 1, 1 }, 100 * time.Second},
		{"pace", func(p *Plan) { p.Pace = 1000 }, 250 * time.Second},
		{"parts", func(p *Plan) { p.Prepare = time.Millisecond }, 250 * time.Second},
		{"wire", func(p *Plan) { p.Wire = time.Second }, 250 * time.Second},
	} {
		p := small
		c.change(&p)
		r := Run(p)
		if r.Took < c.least || r.Took > 2*c.least || r.Busy > 1 || r.Calls != 1000 {
			t.Errorf("%s: %v, %d calls, %.2f busy; want %v to twice that, 1000 calls, at most 1", c.name, r.Took, r.Calls, r.Busy, c.least)
		}
	}
}
