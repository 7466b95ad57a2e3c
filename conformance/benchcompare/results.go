package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// result is one measured workload: a line of the harness, or a Go benchmark
// in the same form.
type result struct {
	Run      int     `json:"run"`
	Target   string  `json:"target"`
	Workload string  `json:"workload"`
	Ops      int     `json:"ops"`
	Units    int64   `json:"units"`
	Seconds  float64 `json:"seconds"`
	OpsPerS  float64 `json:"ops_s"`
	UnitsPS  float64 `json:"units_s"`
	P50us    float64 `json:"p50_us"`
	P99us    float64 `json:"p99_us"`
	MaxUs    float64 `json:"max_us"`
	FirstUs  float64 `json:"first_us"`
	RSSMB    float64 `json:"rss_mb"`
	ServerUs float64 `json:"server_cpu_us"`
	Errors   int     `json:"errors"`
	Note     string  `json:"note"`
	Date     string  `json:"date,omitempty"` // of a command: the day of its end
}

// results has the repetitions of each workload on each server, and the commands that measured
// them, in Note, with their Seconds and Date.
type results struct {
	runs     map[point][]result
	commands []result
}

// thisProgram is the Target of results that are commands.
const thisProgram = "benchcompare"

// point is a workload on a server.
type point struct{ server, workload string }

func readResults(file string) (*results, error) {
	src, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	rs := &results{runs: map[point][]result{}}
	lines := bufio.NewScanner(bytes.NewReader(src))
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		var r result
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
		if r.Target == thisProgram {
			rs.commands = append(rs.commands, r)
			continue
		}
		p := point{r.Target, r.Workload}
		rs.runs[p] = append(rs.runs[p], r)
	}
	return rs, lines.Err()
}

// repetitions returns how often points were measured: the fewest and the most.
func (rs *results) repetitions() string {
	least, most := 0, 0
	for _, runs := range rs.runs {
		if least == 0 || len(runs) < least {
			least = len(runs)
		}
		most = max(most, len(runs))
	}
	if least == most {
		return strconv.Itoa(most)
	}
	return fmt.Sprintf("%d to %d", least, most)
}

// failure returns the error of the first failed repetition of a point, "" without a failure.
func (rs *results) failure(p point) string {
	for _, r := range rs.runs[p] {
		if r.Errors > 0 {
			return cmp.Or(r.Note, "failed")
		}
	}
	return ""
}

// median returns the median of a metric over the successful repetitions of a point, and
// whether there are any.
func (rs *results) median(p point, metric func(result) float64) (float64, bool) {
	var values []float64
	for _, r := range rs.runs[p] {
		if r.Errors == 0 {
			values = append(values, metric(r))
		}
	}
	if len(values) == 0 {
		return 0, false
	}
	return middle(values), true
}

// middle returns the median of at least one value.
func middle(values []float64) float64 {
	slices.Sort(values)
	at := len(values) / 2
	if len(values)%2 == 1 {
		return values[at]
	}
	return (values[at-1] + values[at]) / 2
}

// goBenchmarks runs the project's own benchmarks of cases that the harness lacks. Each is a
// pair of sub-benchmarks, ours and its counterpart, run in turn in one process.
func (b *bench) goBenchmarks(ctx context.Context, _ string, rep int) error {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^BenchmarkCompare", "-benchtime", "1s",
		"./engine", "./emu", "./testkit", "./facade", "./control")
	cmd.Dir = repository
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return appendResults(b.raw, parseGoBenchmarks(string(out), rep))
}

// appendResults adds results to a file in the harness's form, one JSON line
// each.
func appendResults(file string, rs []result) error {
	f, err := os.OpenFile(filepath.Clean(file), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	lines := json.NewEncoder(f)
	for _, r := range rs {
		err = errors.Join(err, lines.Encode(r))
	}
	return errors.Join(err, f.Close())
}

// today returns the current date in UTC, which dates a measurement.
func today() string {
	return time.Now().UTC().Format(time.DateOnly) //nolint:forbidigo // what is measured is dated
}

// stopwatch starts a measurement, and returns a function for the time since.
func stopwatch() func() time.Duration {
	began := time.Now()                                      //nolint:forbidigo // what is measured is the time of day
	return func() time.Duration { return time.Since(began) } //nolint:forbidigo // likewise
}

// goBenchmarkLine is BenchmarkCompareRowRead/engine-2  1000  2000 ns/op  1500 cpu-ns/op.
var goBenchmarkLine = regexp.MustCompile(`(?m)^BenchmarkCompare([^/\s]+)/([^\s]+?)(?:-\d+)?\s+(\d+)\s+([0-9.]+) ns/op(?:\s+([0-9.]+) cpu-ns/op)?`)

// parseGoBenchmarks converts the output of `go test -bench` to results: the workload is the
// benchmark's name, the server the sub-benchmark's.
func parseGoBenchmarks(text string, rep int) []result {
	var out []result
	for _, m := range goBenchmarkLine.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(m[3])
		ns, _ := strconv.ParseFloat(m[4], 64)
		cpu, _ := strconv.ParseFloat(m[5], 64) // only some report it
		out = append(out, result{Run: rep, Target: m[2], Workload: "go/" + m[1], Ops: n, P50us: ns / 1e3, ServerUs: cpu / 1e3})
	}
	return out
}
