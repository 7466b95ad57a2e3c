package main

import (
	"cmp"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Names of the servers that -before adds: the program built before a change, and a second copy of
// it. The ratios between these two are noise.
const (
	before      = "before"
	beforeAgain = "before-again"
)

// beforeParts are the parts that -before can run: they start servers of one program.
var beforeParts = []string{"points", "dynamodb"}

// leastPairs is the minimum number of repetitions for meaningful quartiles, and
// beforeReps the default number: each order of three servers once.
const (
	leastPairs = 5
	beforeReps = 6
)

// shortCPU is the smallest meaningful CPU time of a workload: the system's count lags by up to
// a tick of its scheduler.
const shortCPU = 50 * time.Millisecond

const beforeUsage = "compare with this `PROGRAM`, of make build from before a change, instead of the peers. " +
	"Each repetition runs a copy of PROGRAM, ours and a second copy of PROGRAM in turn, in every order. " +
	"The noise of a metric is the distance from 1 of the median ratio of the two copies, without the 5 in 100 rows farthest off. " +
	"A row is slower if the interquartile range of its ratios, one per repetition, is above 1 by more than the noise, " +
	"and by more than its own two copies differ; faster likewise. -out writes the table"

// checkBefore checks the flags of a run with -before.
func (b *bench) checkBefore(parts []string, profile, raw string) error {
	if _, err := os.Stat(b.before); err != nil {
		return fmt.Errorf("-before: %w", err)
	}
	for _, name := range parts {
		if name != "" && !slices.Contains(beforeParts, name) {
			return fmt.Errorf("-before runs the parts %s, not %q", strings.Join(beforeParts, " and "), name)
		}
	}
	if b.reps < leastPairs {
		return fmt.Errorf("-before judges by quartiles: -reps %d is too few, the minimum is %d", b.reps, leastPairs)
	}
	if profile != "" {
		return errors.New("-before compares two programs, -profile runs one: give one of them")
	}
	if _, err := os.Stat(raw); raw != "" && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("-before pairs the repetitions of one run: -raw %s must be a new file", raw)
	}
	return nil
}

// beforeOrder returns the order of the servers in a repetition: each of the six orders in
// turn.
func beforeOrder(rep int) []string {
	const b, o, a = before, ours, beforeAgain
	orders := [][]string{{b, o, a}, {a, o, b}, {o, a, b}, {b, a, o}, {a, b, o}, {o, b, a}}
	return orders[(rep-1)%len(orders)]
}

// builtAlike returns an error unless two programs differ only in their code: the Go version
// and the settings of the builds must be equal, except those for the place and the source.
func builtAlike(program, other string) error {
	var settings [2]map[string]string
	for i, file := range []string{program, other} {
		info, err := buildinfo.ReadFile(file)
		if err != nil {
			return err
		}
		settings[i] = map[string]string{"Go": info.GoVersion}
		for _, s := range info.Settings {
			switch {
			case strings.HasPrefix(s.Key, "vcs"), s.Key == "-ldflags", s.Key == "-gcflags":
			case s.Key == "-pgo":
				settings[i][s.Key] = "a profile"
			default:
				settings[i][s.Key] = s.Value
			}
		}
	}
	for i, mine := range settings {
		for key, value := range mine {
			if theirs := settings[1-i][key]; theirs != value {
				return fmt.Errorf("%s is built with %s %q, %s with %q: build both with make build", []string{program, other}[i], key, value, []string{other, program}[i], theirs)
			}
		}
	}
	return nil
}

// beforeRow is a workload by one metric, with one ratio per repetition.
type beforeRow struct {
	workload    string
	metric      metric
	before, now float64   // medians
	ratios      []float64 // ours to before
	itself      []float64 // before-again to before
	failure     string    // reason why ours failed
	missing     bool      // one of the three has too few repetitions
}

// beforeReport returns the table of all workloads, and the number of those that became slower
// or failed.
func beforeReport(rs *results, b *bench) (text string, slower int) {
	var w strings.Builder
	fmt.Fprintf(&w, "# Before and after\n\n")
	fmt.Fprintf(&w, "Measured on %s/%s: %d × %s, %s. Server and client have a core each: %t.\n\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), cmp.Or(processor(), "cores"), runtime.Version(), b.pinned)
	for _, r := range rs.commands {
		fmt.Fprintf(&w, "    %s # %s, %s\n", r.Note, cmp.Or(r.Date, "undated"), time.Duration(r.Seconds*float64(time.Second)).Round(time.Second))
	}
	fmt.Fprintf(&w, "\nA ratio compares ours with the program from before in one of %d repetitions; their median and quartiles are shown. Below 1, ours is faster. Beside them is the median ratio of two copies of the program from before.\n", b.reps)
	rows := beforeRows(rs)
	for _, m := range []metric{p50, serverCPU} {
		var of []beforeRow
		for _, r := range rows {
			if r.metric.name == m.name {
				of = append(of, r)
			}
		}
		if len(of) == 0 {
			continue
		}
		noise := noiseOf(of)
		fmt.Fprintf(&w, "\n## %s, in microseconds\n\n", m.name)
		fmt.Fprintf(&w, "The noise is %.1f %%: the distance from 1 of the program from before against itself in 95 of 100 rows. A row is slower, or faster, if its quartiles are both farther from 1 than that, and than the row's own noise, on the same side; a smaller change is not detected.\n\n", 100*noise)
		fmt.Fprintf(&w, "| what | before | ours | ratio | quartiles | before against itself |  |\n|---|---|---|---|---|---|---|\n")
		for _, r := range of {
			verdict := r.judge(noise)
			if verdict == becameSlower || verdict == fails {
				slower++
			}
			if verdict == fails || verdict == notMeasured {
				fmt.Fprintf(&w, "| %s | %s | %s |  |  |  | %s |\n", r.workload, figure(r.before, r.before > 0), cmp.Or(r.failure, figure(r.now, r.now > 0)), verdict)
				continue
			}
			fmt.Fprintf(&w, "| %s | %s | %s | %.3f | %.3f–%.3f | %.3f | %s |\n", r.workload, figure(r.before, true), figure(r.now, true),
				quantile(r.ratios, 0.5), quantile(r.ratios, 0.25), quantile(r.ratios, 0.75), quantile(r.itself, 0.5), verdict)
		}
	}
	fmt.Fprintf(&w, "\n%d of %d rows are slower or fail.\n", slower, len(rows))
	return w.String(), slower
}

// The verdicts on a row after a change.
const (
	becameSlower verdict = "**slower**"
	becameFaster verdict = "faster"
	alike        verdict = ""
)

// judge compares the change of a row with the noise, and with the row's difference from
// itself.
func (r beforeRow) judge(noise float64) verdict {
	limit := 1 + noise
	if len(r.itself) > 0 {
		limit = max(limit, r.unlike())
	}
	switch {
	case r.failure != "":
		return fails
	case r.missing:
		return notMeasured
	case quantile(r.ratios, 0.25) > limit:
		return becameSlower
	case quantile(r.ratios, 0.75) < 1/limit:
		return becameFaster
	}
	return alike
}

// unlike returns the factor by which the program from before differs from itself in a row, 1
// or above.
func (r beforeRow) unlike() float64 {
	return math.Exp(math.Abs(math.Log(quantile(r.itself, 0.5))))
}

// noiseOf returns the distance from 1 of the median ratios of before to itself, without the 5
// in 100 farthest: 0.03 is 1/1.03 to 1.03.
func noiseOf(rows []beforeRow) float64 {
	var off []float64
	for _, r := range rows {
		if r.failure == "" && !r.missing {
			off = append(off, r.unlike())
		}
	}
	if len(off) == 0 {
		return 0
	}
	return quantile(off, 0.95) - 1
}

// beforeRows returns the rows of all workloads, sorted by name: by time, and by the server's
// CPU time if there is enough of it. A failure is only a row by time.
func beforeRows(rs *results) []beforeRow {
	names := map[string]bool{}
	for p := range rs.runs {
		names[p.workload] = true
	}
	var rows []beforeRow
	for _, name := range slices.Sorted(maps.Keys(names)) {
		now, was, again := point{ours, name}, point{before, name}, point{beforeAgain, name}
		for _, m := range []metric{p50, serverCPU} {
			r := beforeRow{workload: name, metric: m, failure: rs.failure(now), ratios: rs.ratios(now, was, m), itself: rs.ratios(again, was, m)}
			r.before, _ = rs.median(was, m.value)
			r.now, _ = rs.median(now, m.value)
			r.missing = len(r.ratios) < leastPairs || len(r.itself) < leastPairs
			if m.name == p50.name || r.failure == "" && !r.missing {
				rows = append(rows, r)
			}
		}
	}
	return rows
}

// ratios returns the ratios of a metric of two points in the repetitions in which both have
// it.
func (rs *results) ratios(of, to point, m metric) []float64 {
	has := func(r result) bool {
		return r.Errors == 0 && m.value(r) > 0 && (m.name != serverCPU.name || m.value(r)*float64(r.Ops) >= float64(shortCPU.Microseconds()))
	}
	var out []float64
	for _, a := range rs.runs[of] {
		for _, b := range rs.runs[to] {
			if a.Run == b.Run && has(a) && has(b) {
				out = append(out, m.value(a)/m.value(b))
			}
		}
	}
	return out
}

// quantile returns a quantile of values, interpolated; NaN without values.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	at := q * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (at-float64(low))*(sorted[high]-sorted[low])
}
