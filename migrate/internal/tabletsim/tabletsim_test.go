package tabletsim

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tabletop-emu/tabletop/internal/race"
)

var fullScale = flag.Bool("tabletsim.full", false, "have TestRun_Scale run its plan at full size too, which takes minutes")

// billion is the plan of docs/scale.md.
var billion = Plan{
	Rows: 1_000_000_000, RowBytes: 1000, Parts: 16, Check: 14 * time.Microsecond, LayOut: 14 * time.Microsecond, Wire: 2 * time.Millisecond,
	Tablets: 64, Nodes: 30, Lost: 1000, Scale: 400,
}

// outcome runs a plan in a bubble.
func outcome(t *testing.T, p Plan) (out Outcome, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		out, err = Run(t.Context(), p, func() time.Duration { return time.Since(begin) }, func(ctx context.Context, d time.Duration) error {
			timer := time.NewTimer(d)
			defer timer.Stop()
			select {
			case <-timer.C:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	})
	return out, err
}

// TestRun_Table runs the plans of docs/scale.md, which has the table.
func TestRun_Table(t *testing.T) {
	race.OneAfterTheOther(t)
	t.Parallel()
	const room = 250 * time.Millisecond
	var text strings.Builder
	text.WriteString("| plan | hours | million writes | refused | asked for less | parts waited | nodes busy | tablets at the end |\n|---|---|---|---|---|---|---|---|\n")
	for _, c := range []struct {
		name   string
		change func(*Plan)
	}{
		{"16 parts, 30 nodes, 64 tablets", func(*Plan) {}},
		{"the same, but nothing is read first", func(p *Plan) { p.New = true }},
		{"the same, from one tablet", func(p *Plan) { p.Tablets = 1 }},
		{"the same, files in the order of rows", func(p *Plan) { p.Sorted = true }},
		{"the same, in that order and from one tablet", func(p *Plan) { p.Sorted, p.Tablets = true, 1 }},
		{"1 part", func(p *Plan) { p.Parts = 1 }},
		{"64 parts", func(p *Plan) { p.Parts = 64 }},
		{"16 parts over 20 ms", func(p *Plan) { p.Wire = 20 * time.Millisecond }},
		{"16 parts, each write in 20 lost", func(p *Plan) { p.Lost = 20 }},
		{"16 parts, 5,000 rows a second each", func(p *Plan) { p.Pace = 5000 }},
		{"16 parts, 3 nodes", func(p *Plan) { p.Nodes = 3 }},
		{"the same, refused beyond 0.25 s of work", func(p *Plan) { p.Nodes, p.Room = 3, room }},
		{"the same, and told when to come again", func(p *Plan) { p.Nodes, p.Room, p.Tells = 3, room, true }},
		{"64 parts, 3 nodes, refused and told", func(p *Plan) { p.Parts, p.Nodes, p.Room, p.Tells = 64, 3, room, true }},
		{"16 parts, 3 nodes, asked for less beyond 0.125 s", func(p *Plan) { p.Nodes, p.Asks = 3, room/2 }},
	} {
		p := billion
		c.change(&p)
		r, err := outcome(t, p)
		if err != nil || r.Written != p.Rows/p.Scale {
			t.Errorf("%s: %v, %d rows", c.name, err, r.Written)
		}
		of := func(n int64) float64 { return 100 * float64(n) / float64(r.Calls) }
		fmt.Fprintf(&text, "| %s | %.1f | %.2f | %.0f %% | %.0f %% | %.0f %% | %.0f %% | %d |\n",
			c.name, r.Took.Hours(), float64(r.Calls*p.Scale)/1e6, of(r.Refused), of(r.Asked), 100*r.Waited, 100*r.Busy, r.Tablets)
	}
	doc, err := os.ReadFile("../../../docs/scale.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(doc), text.String()) {
		t.Errorf("docs/scale.md has not the table of the plans, want:\n%s", text.String())
	}
}

// TestRun_Scale: a plan takes as long at one scale as at another, about, where it is
// throttled, too.
func TestRun_Scale(t *testing.T) {
	race.OneAfterTheOther(t)
	t.Parallel()
	scales := []int64{400, 100}
	if *fullScale {
		scales = append(scales, 1)
	}
	for _, c := range []struct {
		name   string
		change func(*Plan)
	}{
		{"30 nodes", func(*Plan) {}},
		{"3 nodes", func(p *Plan) { p.Nodes, p.Room, p.Tells = 3, 250*time.Millisecond, true }},
	} {
		var first time.Duration
		for _, scale := range scales {
			p := billion
			p.Scale, p.New = scale, true
			c.change(&p)
			r, err := outcome(t, p)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s at 1/%d: %.2f h, %+v", c.name, scale, r.Took.Hours(), r)
			if first == 0 {
				first = r.Took
			}
			if off := r.Took.Hours()/first.Hours() - 1; off < -0.05 || off > 0.05 {
				t.Errorf("%s: %v at 1/%d, %v at 1/%d", c.name, r.Took, scale, first, scales[0])
			}
		}
	}
}
