package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// report writes the table of targets, and counts those that do not hold, for
// which failing is enough. What was not measured has a row too, and does not
// count.
func report(rs *results, b *bench) (text string, missed int) {
	var w strings.Builder
	fmt.Fprintf(&w, "# Performance\n\n")
	fmt.Fprintf(&w, "Measured on %s on %s/%s: %d × %s, %s. Server and client have a core each: %t.\n",
		b.began.UTC().Format("2006-01-02"), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), cmp.Or(processor(), "cores"), runtime.Version(), b.pinned)
	fmt.Fprintf(&w, "Medians of %d repetitions (%d of what fills tables of %s rows or migrates), in which each server worked in turn; %d rows of 1 KB, %d items, exports of %s items.\n\n",
		b.reps, min(b.reps, growthReps), b.growth, b.rows, b.items, b.migration)
	fmt.Fprintf(&w, "    go run ./internal/benchcompare %s\n\n", strings.Join(b.args, " "))
	fmt.Fprintf(&w, "It took %s. Names of workloads are the load harness's; go/… are the project's own benchmarks, migrate/… is `tabletop migrate verify`.\n",
		time.Since(b.began).Round(time.Second)) //nolint:forbidigo // likewise
	fmt.Fprintf(&w, "Times are in microseconds, memory in MB, rates in a second.\n")

	group, measured, bounded := "", 0, 0
	for _, t := range b.targets() {
		if t.group != group {
			group = t.group
			fmt.Fprintf(&w, "\n## %s\n\n| what | ours | compared with | ratio | target | |\n|---|---|---|---|---|---|\n", group)
		}
		row := t.judge(rs)
		fmt.Fprintf(&w, "| %s |\n", strings.Join(row.cells(), " | "))
		switch row.verdict {
		case notMeasured:
		case noTarget:
			continue
		case holds:
			measured++
		case misses, fails:
			measured++
			missed++
		}
		bounded++
	}
	fmt.Fprintf(&w, "\n%d of %d targets hold, %d were measured.\n", measured-missed, bounded, measured)
	return w.String(), missed
}

// verdict is the last word of a row.
type verdict string

const (
	holds       verdict = "holds"
	misses      verdict = "**missed**"
	fails       verdict = "**failed**"
	notMeasured verdict = "not measured"
	noTarget    verdict = ""
)

// reportRow is a row of the report.
type reportRow struct {
	what, ours, peer, ratio, target string
	verdict                         verdict
}

func (r reportRow) cells() []string {
	return []string{r.what, r.ours, r.peer, r.ratio, r.target, string(r.verdict)}
}

func (t target) judge(rs *results) reportRow {
	mine, okMine := rs.median(t.ours, t.metric.value)
	theirs, okTheirs := rs.median(t.peer, t.metric.value)
	row := reportRow{what: t.ours.workload + ", " + t.metric.name, ours: figure(mine, okMine)}
	if t.ours.server != ours {
		row.what = t.ours.workload + " " + t.ours.server + ", " + t.metric.name
	}
	if t.limit != 0 {
		row.target = fmt.Sprintf("≤ %.3g", t.limit)
		if t.atLeast {
			row.target = fmt.Sprintf("≥ %.3g", t.limit)
		}
	}
	ratio := mine
	if t.peer != (point{}) {
		with := t.peer.server
		if t.peer.server == ours {
			with = t.peer.workload
		}
		row.peer = with + " " + figure(theirs, okTheirs)
		okMine = okMine && okTheirs && theirs != 0
		ratio = mine / theirs
	}
	switch {
	case rs.failure(t.ours) != "":
		row.verdict, row.ours = fails, rs.failure(t.ours)
		return row
	case !okMine:
		row.verdict = notMeasured
		return row
	case t.limit == 0:
		row.verdict = noTarget
	case ratio > t.limit != t.atLeast:
		row.verdict = misses
	default:
		row.verdict = holds
	}
	if t.peer != (point{}) {
		row.ratio = figure(ratio, true)
	}
	return row
}

// processor is the name of the machine's processor, "" if it does not say.
func processor() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range bytes.Lines(info) {
		if name, value, ok := strings.Cut(string(line), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// figure is a number with three digits.
func figure(v float64, ok bool) string {
	if !ok {
		return "–"
	}
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}
