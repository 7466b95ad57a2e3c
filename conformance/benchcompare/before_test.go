package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestBeforeReport: the noise is that of the program from before against itself, and a row
// whose quartiles are beyond it has changed.
func TestBeforeReport(t *testing.T) {
	t.Parallel()
	var lines strings.Builder
	add := func(server, workload string, times ...float64) {
		for i, us := range times {
			fmt.Fprintf(&lines, `{"run":%d,"target":%q,"workload":%q,"p50_us":%v,"ops":1000,"server_cpu_us":%v}`+"\n", i+1, server, workload, us, us)
		}
	}
	// The median ratio of most to themselves is 1.04: without the farthest one in twenty, the
	// noise is 4 %.
	for i := range 21 {
		add(before, fmt.Sprintf("quiet%02d", i), 100, 100, 100, 100, 100)
		add(beforeAgain, fmt.Sprintf("quiet%02d", i), 100, 104, 104, 104, 120)
		add(ours, fmt.Sprintf("quiet%02d", i), 100, 103, 103, 103, 103)
	}
	for workload, now := range map[string][]float64{
		"slower":        {104, 106, 110, 107, 130},
		"slower seldom": {100, 100, 110, 120, 130}, // the first quartile is not above
		"slower little": {102, 103, 103, 103, 103}, // within the noise
		"faster":        {80, 90, 90, 91, 200},
		"seldom made":   {100, 100},
	} {
		add(before, workload, 100, 100, 100, 100, 100)
		add(beforeAgain, workload, 100, 100, 100, 100, 100)
		add(ours, workload, now...)
	}
	// Two copies of one program differ as much.
	add(before, "restless", 100, 100, 100, 100, 100)
	add(beforeAgain, "restless", 115, 115, 115, 115, 115)
	add(ours, "restless", 110, 110, 110, 110, 110)
	add(before, "broken", 100, 100, 100, 100, 100)
	lines.WriteString(`{"run":1,"target":"ours","workload":"broken","errors":1,"note":"refused"}` + "\n")
	// A drift of the machine affects both of a pair.
	add(before, "drift", 100, 200, 300, 400, 500)
	add(beforeAgain, "drift", 100, 200, 300, 400, 500)
	add(ours, "drift", 100, 200, 300, 400, 500)
	// Too little CPU time to be counted.
	for _, server := range []string{before, beforeAgain, ours} {
		add(server, "short", 10, 10, 10, 10, 10)
	}

	file := filepath.Join(t.TempDir(), "raw.jsonl")
	if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	rs, err := readResults(file)
	if err != nil {
		t.Fatal(err)
	}
	text, slower := beforeReport(rs, &bench{reps: 5})
	if slower != 3 {
		t.Errorf("%d rows are slower or fail, want the slower one by both metrics and the broken one", slower)
	}
	for _, want := range []string{
		"The noise is 4.0 %",
		"| slower | 100 | 107 | 1.070 | 1.060–1.100 | 1.000 | **slower** |",
		"| slower seldom | 100 | 110 | 1.100 | 1.000–1.200 | 1.000 |  |",
		"| slower little | 100 | 103 | 1.030 | 1.030–1.030 | 1.000 |  |",
		"| faster | 100 | 90 | 0.900 | 0.900–0.910 | 1.000 | faster |",
		"| seldom made | 100 | 100 |  |  |  | not measured |",
		"| broken | 100 | refused |  |  |  | **failed** |",
		"| restless | 100 | 110 | 1.100 | 1.100–1.100 | 1.150 |  |",
		"| drift | 300 | 300 | 1.000 | 1.000–1.000 | 1.000 |  |",
		"## server CPU, in microseconds",
		"3 of ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
	if n := strings.Count(text, "| short |"); n != 1 {
		t.Errorf("a workload of 10 ms of CPU has %d rows, want only the one of its time", n)
	}
}

func TestBeforeOrder(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for rep := 1; rep <= beforeReps; rep++ {
		order := beforeOrder(rep)
		seen[strings.Join(order, " ")] = true
		if slices.Sort(order); !slices.Equal(order, []string{before, beforeAgain, ours}) {
			t.Errorf("repetition %d runs %v", rep, order)
		}
	}
	if len(seen) != beforeReps {
		t.Errorf("%d orders, want each of %d: %v", len(seen), beforeReps, seen)
	}
}

// TestRun_BeforeFlags: flags that -before does not support are rejected before anything runs.
func TestRun_BeforeFlags(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("no program"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		want string
		code int
		args []string
	}{
		{"no such file", exitBadFlag, []string{"-before", program + "s"}},
		{"-before runs the parts points and dynamodb, not \"growth\"", exitBadFlag, []string{"-before", program, "-parts", "points,growth"}},
		{"-reps 4 is too few, the minimum is 5", exitBadFlag, []string{"-before", program, "-reps", "4"}},
		{"-profile runs one", exitBadFlag, []string{"-before", program, "-profile", "x"}},
		{"must be a new file", exitBadFlag, []string{"-before", program, "-raw", program}},
		{"-before: ", exitEnvironment, []string{"-before", program, "-parts", "points"}}, // not a program
		{"no load harness in nowhere", exitEnvironment, []string{"-before", program, "-harness", "nowhere"}},
		{"name its folder with -harness DIR", exitEnvironment, []string{"-harness", "nowhere"}},
	} {
		var stderr strings.Builder
		if code := run(t.Context(), c.args, io.Discard, &stderr); code != c.code || !strings.Contains(stderr.String(), c.want) {
			t.Errorf("%v: exit code %d, want %d and %q: %s", c.args, code, c.code, c.want, &stderr)
		}
	}
}

func TestBuiltAlike(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := builtAlike(self, self); err != nil {
		t.Errorf("a program and itself: %v", err)
	}
}
