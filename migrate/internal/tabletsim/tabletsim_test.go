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

	"github.com/google/go-cmp/cmp"

	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/internal/test/race"
)

var fullScale = flag.Bool("tabletsim.full", false, "have TestRun_Scale also run its plans at full size, which takes minutes")

// billion is the plan of docs/scale.md.
var billion = Plan{
	Rows: 1_000_000_000, RowBytes: 1000, Parts: 16, Check: 14 * time.Microsecond, LayOut: 14 * time.Microsecond, Wire: 2 * time.Millisecond,
	Tablets: 64, Nodes: 30, Lost: 1000, Scale: 250,
}

// room is the capacity of a node before it refuses work: a quarter of a second.
const room = 250 * time.Millisecond

// few puts a plan on three nodes, where it takes long enough for a smaller scale.
func few(p *Plan) { p.Nodes, p.Scale = 3, 500 }

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

// documented holds the plans of docs/scale.md, in its order.
var documented = []struct {
	name   string
	change func(*Plan)
}{
	{"16 parts, 30 nodes, 64 tablets", func(*Plan) {}},
	{"the same, into an existing table", func(p *Plan) { p.There = true }},
	{"as the first, from one tablet", func(p *Plan) { p.Tablets = 1 }},
	{"as the first, files in the order of rows", func(p *Plan) { p.Sorted = true }},
	{"the same, in that order and from one tablet", func(p *Plan) { p.Sorted, p.Tablets = true, 1 }},
	{onePart, func(p *Plan) { p.Parts = 1 }},
	{"64 parts", func(p *Plan) { p.Parts = 64 }},
	{"16 parts over 20 ms", func(p *Plan) { p.Wire = 20 * time.Millisecond }},
	{"16 parts, each write in 20 lost", func(p *Plan) { p.Lost = 20 }},
	{"16 parts, 5,000 rows a second each", func(p *Plan) { p.Pace = 5000 }},
	{"the same, into an existing table", func(p *Plan) { p.Pace, p.There = 5000, true }},
	{"16 parts, 3 nodes", func(p *Plan) { few(p) }},
	{"the same, into an existing table", func(p *Plan) { few(p); p.There = true }},
	{"16 parts, 3 nodes, refused beyond 0.25 s of work", func(p *Plan) { few(p); p.Room = room }},
	{"the same, with a RetryInfo", func(p *Plan) { few(p); p.Room, p.RetryInfo = room, true }},
	{"64 parts, 3 nodes, refused with a RetryInfo", func(p *Plan) { few(p); p.Parts, p.Room, p.RetryInfo = 64, room, true }},
	{"16 parts, 3 nodes, asked for less beyond 0.125 s", func(p *Plan) { few(p); p.Asks = room / 2 }},
}

// onePart is the fastest plan of docs/scale.md.
const onePart = "1 part"

// tableHead begins the table of docs/scale.md.
const tableHead = "| plan | hours | million writes | refused | asked for less | parts waited | nodes busy | tablets at the end |\n|---|---|---|---|---|---|---|---|\n"

// tableRow runs a plan, and returns its row in docs/scale.md and its outcome.
func tableRow(t *testing.T, name string, p Plan) (row string, r Outcome) {
	t.Helper()
	r, err := outcome(t, p)
	if err != nil || r.Written != p.Rows/p.Scale {
		t.Errorf("%s: %v, %d rows", name, err, r.Written)
	}
	of := func(n int64) float64 { return 100 * float64(n) / float64(r.Calls) }
	return fmt.Sprintf("| %s | %.1f | %.2f | %.0f %% | %.0f %% | %.0f %% | %.0f %% | %d |\n",
		name, r.Took.Hours(), float64(r.Calls*p.Scale)/1e6, of(r.Refused), of(r.Asked), 100*r.Waited, 100*r.Busy, r.Tablets), r
}

// TestRun_Table compares the plans of docs/scale.md with its table: in the quick tier the
// fastest plan, in the long tier all of them.
func TestRun_Table(t *testing.T) {
	race.OneAfterTheOther(t)
	t.Parallel()
	all := long.Enabled()
	var text strings.Builder
	if all {
		text.WriteString(tableHead)
	}
	for _, c := range documented {
		if all || c.name == onePart {
			p := billion
			c.change(&p)
			row, _ := tableRow(t, c.name, p)
			text.WriteString(row)
		}
	}
	doc, err := os.ReadFile("../../../docs/scale.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(doc), text.String()) {
		t.Errorf("docs/scale.md does not have these lines of the table:\n%s", text.String())
	}
}

// TestRun_SmallTable runs the plans of docs/scale.md with very few rows, and compares the
// outcomes with testdata/small.golden.
func TestRun_SmallTable(t *testing.T) {
	race.OneAfterTheOther(t)
	t.Parallel()
	const fewer = 40
	var text strings.Builder
	for _, c := range documented {
		p := billion
		c.change(&p)
		p.Scale *= fewer
		row, r := tableRow(t, c.name, p)
		fmt.Fprintf(&text, "%s  %d reads, %d writes, %d refused, %d asked for less, %d lost\n", row, r.Reads, r.Calls, r.Refused, r.Asked, r.Lost)
	}
	golden, err := os.ReadFile("testdata/small.golden")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(golden), text.String()); diff != "" {
		t.Errorf("outcomes (-testdata/small.golden +got); if a change of the loader is intended, change the file, and the table of docs/scale.md by the long tier:\n%s", diff)
	}
}

// TestRun_Scale: a plan takes about as long at every scale, even if it is throttled. The long
// tier compares finer scales.
func TestRun_Scale(t *testing.T) {
	race.OneAfterTheOther(t)
	t.Parallel()
	scales := []int64{2500, 1250}
	if long.Enabled() {
		scales = []int64{250, 125}
	}
	if *fullScale {
		scales = append(scales, 1)
	}
	for _, c := range []struct {
		name   string
		change func(*Plan)
	}{
		{"30 nodes", func(*Plan) {}},
		{"3 nodes", func(p *Plan) { few(p); p.Room, p.RetryInfo = room, true }},
	} {
		var first time.Duration
		for _, scale := range scales {
			p := billion
			c.change(&p)
			p.Scale = scale
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

// small is a plan of a few seconds, in which no tablet splits.
var small = Plan{Rows: 100_000, RowBytes: 1000, Parts: 4, Nodes: 3, Tablets: 6}

// TestRun_Bounds: no plan is faster than its parts, its pace or its nodes, or much slower than
// the slowest of them.
func TestRun_Bounds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		change      func(*Plan)
		least, most float64 // seconds
	}{
		{"nodes", func(*Plan) {}, 3.33, 4},
		{"reads", func(p *Plan) { p.There = true }, 6.66, 8},
		{"one tablet", // plus 60,000 rows of first batches
			func(p *Plan) { p.Tablets, p.RowBytes = 1, 1 }, 16, 16.4},
		{"pace", func(p *Plan) { p.Pace = 1000 }, 24.6, 26.7},
		{"checking", func(p *Plan) { p.Check = time.Millisecond }, 25 + 3.33, 25 + 4},
		{"laying out", func(p *Plan) { p.LayOut = time.Millisecond }, 25, 30},
		{"wire", func(p *Plan) { p.Wire = time.Second }, 23.6, 30},
		{"each write in two lost", func(p *Plan) { p.Lost = 2 }, 6.66, 13.4},
		{"little room", func(p *Plan) { p.Room = 10 * time.Millisecond }, 3.33, 11.7}, // its waits are longer than the queue
		{"little room, with RetryInfo", func(p *Plan) { p.Room, p.RetryInfo = 10*time.Millisecond, true }, 3.33, 6.7},
		{"asked for less", func(p *Plan) { p.Asks = 10 * time.Millisecond }, 3.33, 5},
	} {
		p := small
		c.change(&p)
		r, err := outcome(t, p)
		if took := r.Took.Seconds(); err != nil || took < c.least || took > c.most || r.Busy > 1 || r.Written != p.Rows ||
			(r.Refused > 0) != (p.Room > 0) || (r.Asked > 0) != (p.Asks > 0) || (r.Lost > 0) != (p.Lost > 0) || (r.Reads > 50) != p.There {
			t.Errorf("%s: %v, %+v; want %v to %v s", c.name, err, r, c.least, c.most)
		}
	}
}

// TestRun_Same: the same plan gives the same figures, with all disturbances.
func TestRun_Same(t *testing.T) {
	t.Parallel()
	p := small
	p.Rows, p.RowBytes, p.Tablets, p.There, p.Wire, p.Lost = 50_000, 200_000, 1, true, time.Millisecond, 100
	p.Room, p.RetryInfo, p.Asks, p.Pace = time.Millisecond, true, time.Millisecond/2, 4000
	first, err := outcome(t, p)
	if err != nil || first.Refused == 0 || first.Away == 0 || first.Lost == 0 || first.Asked == 0 || first.Tablets < 3 || first.Written != p.Rows {
		t.Errorf("%v, %+v: not all that can be", err, first)
	}
	if again, err := outcome(t, p); err != nil || again != first {
		t.Errorf("%v, %+v, and at first %+v", err, again, first)
	}
}

// TestRun_HardlyAnyRoom: if most writes of many parts are refused, they continue in smaller
// calls, and none gives up.
func TestRun_HardlyAnyRoom(t *testing.T) {
	t.Parallel()
	p := small
	p.Rows, p.Parts, p.Nodes, p.Tablets, p.Room = 10_000, 64, 1, 1, 1
	if r, err := outcome(t, p); err != nil || r.Written != p.Rows || r.Refused < r.Calls/2 {
		t.Errorf("%v, %+v", err, r)
	}
}
