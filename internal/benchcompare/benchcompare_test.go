package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReport: medians over repetitions, verdicts in both directions, and rows
// of what was not measured or failed.
func TestReport(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "raw.jsonl")
	lines := []string{
		`{"target":"ours","workload":"read/c1","p50_us":50}`,
		`{"target":"ours","workload":"read/c1","p50_us":90}`,
		`{"target":"ours","workload":"read/c1","p50_us":70}`,
		`{"target":"cbtemulator","workload":"read/c1","p50_us":100}`,
		`{"target":"cbtemulator","workload":"read/c1","p50_us":140}`,
		`{"target":"ours","workload":"load/100000","ops_s":10,"units_s":1100}`,
		`{"target":"cbtemulator","workload":"load/100000","ops_s":20,"units_s":1000}`,
		`{"target":"ours","workload":"checkandmutate","p50_us":1,"errors":1,"note":"refused"}`,
		`{"target":"cbtemulator","workload":"checkandmutate","p50_us":100}`,
		`{"target":"ours","workload":"startup","p50_us":9}`,
		`{"target":"dynoxide","workload":"startup","p50_us":3}`,
		`{"target":"ours","workload":"migrate/100","rss_mb":300}`,
	}
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	rs, err := readResults(file)
	if err != nil {
		t.Fatal(err)
	}
	text, missed := report(rs, &bench{reps: 3, rows: 100_000, growth: "10,1000", migration: "10,100"})
	if missed != 2 {
		t.Errorf("%d targets missed, want the load's and what failed", missed)
	}
	for _, want := range []string{
		"| read/c1, p50 | 70 | cbtemulator 120 | 0.583 | ≤ 1 | holds |",
		"| load/100000, rate | 1100 | cbtemulator 1000 | 1.1 | ≥ 1.2 | **missed** |",
		"| checkandmutate, p50 | refused | cbtemulator 100 |  | ≤ 1 | **failed** |",
		"| gc/1000/on, worst | – | cbtemulator – |  | ≤ 0.1 | not measured |",
		"| startup, p50 | 9 | dynoxide 3 | 3 |  |  |",
		"| migrate/100, resident memory | 300 |  |  | ≤ 512 | holds |",
		"2 of ", "4 were measured",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
}

func TestParseGoBenchmarks(t *testing.T) {
	t.Parallel()
	got := parseGoBenchmarks(strings.Join([]string{
		"goos: linux",
		"BenchmarkCompareRowRead/engine-2         \t  100000\t      2500 ns/op\t     1500 cpu-ns/op\t     400 B/op",
		"BenchmarkCompareRowRead/pebble-2         \t  200000\t      2000.5 ns/op",
		"BenchmarkOther/engine-2         \t  200000\t      2000 ns/op",
		"PASS",
	}, "\n"), 2)
	want := []result{
		{Run: 2, Target: "engine", Workload: "go/RowRead", Ops: 100000, P50us: 2.5, ServerUs: 1.5},
		{Run: 2, Target: "pebble", Workload: "go/RowRead", Ops: 200000, P50us: 2.0005},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
