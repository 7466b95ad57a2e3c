package main

import (
	"errors"
	"flag"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestReport: medians over repetitions, verdicts in both directions, and rows of missing or
// failed measurements.
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
		`{"target":"null","workload":"checkandmutate","p50_us":40}`,
		`{"target":"null","workload":"load/100000","p50_us":40,"units_s":9}`,
		`{"target":"null","workload":"scan/all","errors":1}`,
		`{"target":"ours","workload":"query100","server_cpu_us":60}`,
		`{"target":"ours-again","workload":"query100","server_cpu_us":63}`,
		`{"target":"dynoxide","workload":"query100","server_cpu_us":100}`,
		`{"target":"ours","workload":"startup","p50_us":9}`,
		`{"target":"dynoxide","workload":"startup","p50_us":3}`,
		`{"target":"ours","workload":"migrate/100","rss_mb":300}`,
		`{"target":"benchcompare","note":"go run this","seconds":61,"date":"2026-11-01"}`,
		`{"target":"benchcompare","note":"go run that","seconds":60}`,
	}
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	rs, err := readResults(file)
	if err != nil {
		t.Fatal(err)
	}
	text, missed := report(rs, &bench{reps: 3, rows: 100_000, growth: "10,1000", migration: "10,100"})
	if missed != 3 {
		t.Errorf("%d targets missed, want the load's and the failed one's, by time and by CPU", missed)
	}
	for _, want := range []string{
		"Medians of 1 to 3 repetitions",
		"\n    go run this # 2026-11-01\n    go run that # undated\n\nIt took 2m1s.",
		"| what | ours | compared with | floor | ratio | target |  |\n|---|---|---|---|---|---|---|\n",
		"| read/c1, p50 | 70 | cbtemulator 120 |  | 0.583 | ≤ 1 | holds |",
		"| load/100000, rate | 1100 | cbtemulator 1000 |  | 1.1 | ≥ 1.2 | **missed** |",
		"| checkandmutate, p50 | refused | cbtemulator 100 | 40 (0.4) |  | ≤ 1 | **failed** |",
		"| gc/1000/on, worst | – | cbtemulator – |  |  | ≤ 0.1 | not measured |",
		"| query100, server CPU | 60 | dynoxide 100 | 0.6 | 0.63 | ≤ 0.75 | holds |",
		"| startup, p50 | 9 | dynoxide 3 | 3 |  |  |",
		"| migrate/100, resident memory | 300 |  |  | ≤ 512 | holds |",
		"3 of ", "6 were measured",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
}

// TestNotes: a new report keeps the notes below the old one.
func TestNotes(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "report.md")
	if got, err := notesOf(file); got != "" || err != nil {
		t.Errorf("no report has the notes %q, %v", got, err)
	}
	want := notesHeading + "\nAs it is.\n\n## More\n"
	for text, want := range map[string]string{"# Performance\n": "", "# Performance\n" + want: want} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := notesOf(file); got != want || err != nil {
			t.Errorf("the notes of %q are %q, %v", text, got, err)
		}
	}
}

// TestCommandLine: the command of a report has the given flags, and no place on the machine.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.String("raw", "", "into this `FILE`")
	flags.String("out", "", "into this `FILE`")
	flags.Int("reps", 3, "")
	flags.Int("rows", 3, "")
	if err := flags.Parse([]string{"-reps", "2", "-raw", t.TempDir(), "-out", "docs/performance.md"}); err != nil {
		t.Fatal(err)
	}
	if got, want := commandLine(flags), "go run -C conformance ./benchcompare -out docs/performance.md -raw FILE -reps 2"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestPoints: the client of the point workloads runs them all; a workload with failed calls
// has the reason instead of a time.
func TestPoints(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "raw.jsonl")
	_, sound := serveBigtable(t, "", nil)
	_, failing := serveBigtable(t, "/google.bigtable.v2.Bigtable/CheckAndMutateRow", status.Error(codes.Unavailable, "injected"))
	for target, addr := range map[string]string{ours: sound, cbtemulator: failing} {
		var stderr strings.Builder
		args := []string{pointsCommand, "-addr", addr, "-target", target, "-pid", strconv.Itoa(os.Getpid()), "-rows", "600", "-ops", "100", "-out", file}
		if code := run(t.Context(), args, io.Discard, &stderr); code != exitHold {
			t.Fatalf("%s: exit code %d: %s", target, code, stderr.String())
		}
	}
	rs, err := readResults(file)
	if err != nil {
		t.Fatal(err)
	}
	cpu := 0.0
	for _, w := range []string{"read/c64", "checkandmutate/c8", "checkandmutate/c64", "rmw/hot/c1", "rmw/hot/c64", "rmw/spread/c1", "rmw/spread/c64"} {
		runs := rs.runs[point{ours, w}]
		if len(runs) != 1 || runs[0].Errors != 0 || runs[0].Ops != 100 || runs[0].P50us <= 0 || runs[0].MaxUs < runs[0].P99us {
			t.Errorf("%s: %+v", w, runs)
		}
		for _, r := range runs {
			cpu += r.ServerUs
		}
		if why, want := rs.failure(point{cbtemulator, w}), strings.HasPrefix(w, "check"); strings.Contains(why, "injected") != want {
			t.Errorf("%s that fails: %q", w, why)
		}
	}
	// The kernel updates the time of a running thread only at times: a short workload can have
	// none.
	if _, err := os.Stat("/proc/self/schedstat"); err == nil && cpu <= 0 {
		t.Error("all workloads together took no CPU time")
	}
}

// TestChanges: the client of the DynamoDB endpoint runs its workloads, in turns of some calls
// each.
func TestChanges(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "raw.jsonl")
	var stderr strings.Builder
	endpoint := strings.TrimPrefix(serveDynamoDB(t), "http://")
	args := []string{changesCommand, "-addr", endpoint, "-target", ours, "-pid", strconv.Itoa(os.Getpid()), "-rows", "20", "-ops", "400", "-out", file}
	if code := run(t.Context(), args, io.Discard, &stderr); code != exitHold {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	rs, err := readResults(file)
	if err != nil {
		t.Fatal(err)
	}
	for w, ops := range map[string]int{
		"getrecords1000": 8, "query1000": 8, "executestatement": 400, "get": 400, "put": 400, "put/off": 400,
		"update": 400, "update/off": 400, "transactwrite10": 40, "transactwrite10/off": 40,
	} {
		runs := rs.runs[point{ours, "changes/" + w}]
		if len(runs) != 1 || runs[0].Errors != 0 || runs[0].Ops != ops || runs[0].P50us <= 0 {
			t.Errorf("%s: %+v", w, runs)
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

// A report of only some parts would show the others as not measured.
func TestRun_PartialReport(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "performance.md")
	var stderr strings.Builder
	if code := run(t.Context(), []string{"-parts", "go", "-out", out}, io.Discard, &stderr); code != exitBadFlag || !strings.Contains(stderr.String(), "give -raw FILE too") {
		t.Errorf("exit code %d, output %q", code, &stderr)
	}
	if _, err := os.Stat(out); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a report was written, error %v", err)
	}
}
