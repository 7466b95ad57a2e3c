package main

import (
	"fmt"
	"runtime"
	"strings"
	"time"
)

// report writes the table of targets, and counts those that do not hold. What
// was not measured has a row too, and does not count.
func report(rs *results, b *bench) (text string, missed int) {
	var w strings.Builder
	fmt.Fprintf(&w, "# Performance\n\n")
	fmt.Fprintf(&w, "Measured on %s, %s/%s, %d cores, %s. Server and client have a core each: %t.\n",
		time.Now().UTC().Format("2006-01-02"), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), b.pinned) //nolint:forbidigo // the report's date
	fmt.Fprintf(&w, "Medians of %d repetitions, in which each server worked in turn; %d rows of 1 KB, %d items.\n\n", b.reps, b.rows, b.items)
	fmt.Fprintf(&w, "    make bench-compare\n")

	group, measured := "", 0
	for _, t := range targets() {
		if t.group != group {
			group = t.group
			fmt.Fprintf(&w, "\n## %s\n\n| what | ours | compared with | ratio | target | |\n|---|---|---|---|---|---|\n", group)
		}
		bound := fmt.Sprintf("≤ %.3g", t.limit)
		if t.atLeast {
			bound = fmt.Sprintf("≥ %.3g", t.limit)
		}
		mine, okMine := rs.median(t.ours, t.metric.value)
		theirs, okTheirs := rs.median(t.peer, t.metric.value)
		row := func(cells ...string) { fmt.Fprintf(&w, "| %s |\n", strings.Join(cells, " | ")) }
		what := t.ours.workload + ", " + t.metric.name
		with := t.peer.server
		if t.peer.workload != t.ours.workload {
			with = t.peer.workload
		}
		if !okMine || !okTheirs || theirs == 0 {
			row(what, figure(mine, okMine), with+" "+figure(theirs, okTheirs), "", bound, "not measured")
			continue
		}
		measured++
		ratio, verdict := mine/theirs, "holds"
		if ratio > t.limit != t.atLeast {
			verdict = "**missed**"
			missed++
		}
		row(what, figure(mine, true), with+" "+figure(theirs, true), fmt.Sprintf("%.3g", ratio), bound, verdict)
	}
	fmt.Fprintf(&w, "\n%d of %d targets hold, %d were measured. Times are in microseconds, memory in MB, rates in a second.\n",
		measured-missed, len(targets()), measured)
	return w.String(), missed
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
