package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// notesHeading begins the text below the tables: the output of make distance, and notes by
// people. A new report keeps it.
const notesHeading = "\n## Round trips\n"

// notesOf returns the notes of a report, or "" if it has no notes.
func notesOf(file string) (string, error) {
	text, err := os.ReadFile(filepath.Clean(file))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if at := strings.Index(string(text), notesHeading); at >= 0 {
		return string(text[at:]), err
	}
	return "", err
}

// report returns the text of the report, and the number of targets that were missed or whose workload
// failed. A missing measurement has a row too, and does not count.
func report(rs *results, b *bench) (text string, missed int) {
	var w strings.Builder
	fmt.Fprintf(&w, "# Performance\n\n")
	fmt.Fprintf(&w, "Measured on %s/%s: %d × %s, %s. Server and client have a core each: %t.\n",
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), cmp.Or(processor(), "cores"), runtime.Version(), b.pinned)
	fmt.Fprintf(&w, "Medians of %s repetitions, in which each server worked in turn; %d rows of 1 KB, growth over tables of %s rows; %d items, exports of %s items.\n\n",
		rs.repetitions(), b.rows, b.growth, b.items, b.migration)
	took := time.Duration(0)
	for _, r := range rs.commands {
		fmt.Fprintf(&w, "    %s # %s\n", r.Note, cmp.Or(r.Date, "undated"))
		took += time.Duration(r.Seconds * float64(time.Second))
	}
	fmt.Fprintf(&w, "\nIt took %s. Workloads have the names of the load harness, and cN for N concurrent calls; changes/… is the cost of recorded changes and statements, go/… the project's own benchmarks, migrate/… `tabletop migrate verify`.\n", took.Round(time.Second))
	fmt.Fprintf(&w, "Times are in microseconds, memory is in MB, rates are per second.\n\n")
	fmt.Fprintf(&w, "The floor is the time of the same calls on a server of the harness that answers at once and stores nothing, with its ratio to the peer. \"Ours again\" is the ratio of a second copy of our program in the same run: a difference between the two is noise.\n")

	measured, bounded := 0, 0
	var group []reportRow
	targets := b.targets()
	for i, t := range targets {
		row := t.judge(rs)
		group = append(group, row)
		if i+1 == len(targets) || targets[i+1].group != t.group {
			writeGroup(&w, t.group, group)
			group = nil
		}
		switch row.verdict {
		case notMeasured, becameSlower, becameFaster: // the last two have no target
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

// writeGroup writes the table of a group. Floors and ratios of a copy have a column if there are any.
func writeGroup(w io.Writer, name string, rows []reportRow) {
	head := reportRow{what: "what", ours: "ours", peer: "compared with", ratio: "ratio", again: "ours again", target: "target", floor: "floor"}
	floors := slices.ContainsFunc(rows, func(r reportRow) bool { return r.floor != "" })
	copies := slices.ContainsFunc(rows, func(r reportRow) bool { return r.again != "" })
	_, _ = fmt.Fprintf(w, "\n## %s\n\n", name)
	for i, r := range append([]reportRow{head}, rows...) {
		cells := []string{r.what, r.ours, r.peer, r.ratio, r.target, string(r.verdict)}
		if copies {
			cells = slices.Insert(cells, 4, r.again)
		}
		if floors {
			cells = slices.Insert(cells, 3, r.floor)
		}
		_, _ = fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
		if i == 0 {
			_, _ = fmt.Fprintf(w, "|%s\n", strings.Repeat("---|", len(cells)))
		}
	}
}

// verdict is the last column of a row.
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
	what, ours, peer, floor, ratio, again, target string
	verdict                                       verdict
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
		if least, ok := rs.median(point{null, t.ours.workload}, t.metric.value); ok && okTheirs && t.metric.name == p50.name {
			row.floor = fmt.Sprintf("%s (%s)", figure(least, true), figure(least/theirs, true))
		}
		if again, ok := rs.median(point{oursAgain, t.ours.workload}, t.metric.value); ok && okTheirs && t.metric.name == serverCPU.name {
			row.again = figure(again/theirs, true)
		}
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

// processor returns the name of the machine's processor, "" if it is unknown.
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

// figure returns a number with at least three significant digits, or a dash if ok is false.
func figure(v float64, ok bool) string {
	if !ok {
		return "–"
	}
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}
