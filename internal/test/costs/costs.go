// Package costs compares the measured costs of calls with a committed baseline: their allocations,
// which are most of the cost of a call, and their calls to another server.
//
// A baseline is a table of tab-separated values with the minor version of Go that it holds for. Its
// last column has the reason for the last growth of a cost. `make costs REASON='…'` measures all of them again.
package costs

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var reason = flag.String("costs", "", "rewrite the baselines of costs; the value says why some grew")

// Unmeasured stands for a cost that depends on more than the call.
const Unmeasured = -1

// Cost is the cost of one call.
type Cost struct {
	Name        string
	Allocations float64
	Calls       int64
}

// row is a line of a baseline.
type row struct {
	allocations, calls int64 // or Unmeasured
	reason             string
}

const head = "call\tallocations\tcalls\treason"

// Check fails the test if a cost grew: allocations by more than a tenth and by more than three, or calls at all. It also
// fails if the names or numbers of calls differ from the baseline in another way. With the flag
// -costs, it rewrites the baseline. Another version of Go than the baseline's allocates
// differently, so that Check skips the test; but the gate fails then.
func Check(t *testing.T, path string, measured []Cost) {
	t.Helper()
	version, rows, err := read(path)
	if err != nil && *reason == "" {
		t.Fatal(err)
	}
	if *reason != "" {
		if err := write(path, rows, measured); err != nil {
			t.Fatal(err)
		}
		return
	}
	if running := minor(runtime.Version()); version != running {
		text := fmt.Sprintf("%s holds for %s, and this is %s: run make costs", path, version, running)
		if os.Getenv("CI_STEPS") != "" { // set by .ci/run
			t.Fatal(text)
		}
		t.Skip(text)
	}
	for _, c := range measured {
		t.Logf("%s: %.1f allocations, %d calls", c.Name, c.Allocations, c.Calls)
	}
	for _, complaint := range compare(rows, measured) {
		t.Errorf("%s: %s. If that has a reason: make costs REASON='…'", path, complaint)
	}
}

// compare returns how costs differ from a baseline.
func compare(rows map[string]row, measured []Cost) (complaints []string) {
	seen := map[string]bool{}
	for _, c := range measured {
		was, ok := rows[c.Name]
		seen[c.Name] = true
		switch {
		case !ok:
			complaints = append(complaints, fmt.Sprintf("%s has no row", c.Name))
		case c.Allocations > most(was.allocations):
			complaints = append(complaints, fmt.Sprintf("%s takes %.1f allocations, want at most %.0f", c.Name, c.Allocations, most(was.allocations)))
		case c.Calls != was.calls:
			complaints = append(complaints, fmt.Sprintf("%s makes %d calls, want %d", c.Name, c.Calls, was.calls))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		if !seen[name] {
			complaints = append(complaints, name+" was not measured")
		}
	}
	return complaints
}

// most returns the largest number of allocations that a baseline allows. Three more are noise of
// the background, or of a build without C.
func most(allocations int64) float64 { return float64(allocations + max(allocations/10, 3)) }

// minor returns a version of Go without its last number.
func minor(version string) string {
	if parts := strings.SplitN(version, ".", 3); len(parts) > 1 {
		return parts[0] + "." + parts[1]
	}
	return version
}

// read returns the rows of a baseline by name, and its version of Go.
func read(path string) (version string, rows map[string]row, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", nil, err
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) < 2 || lines[1] != head {
		return "", nil, fmt.Errorf("%s: expected the version of Go, and then the line %q", path, head)
	}
	rows = map[string]row{}
	for i, line := range lines[2:] {
		fields := strings.Split(line, "\t")
		if len(fields) != 4 {
			return "", nil, fmt.Errorf("%s:%d: expected four columns: %q", path, i+3, line)
		}
		allocations, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			return "", nil, fmt.Errorf("%s:%d: allocations: %w", path, i+3, err)
		}
		calls, err := strconv.ParseInt(fields[2], 10, 64)
		if err != nil {
			return "", nil, fmt.Errorf("%s:%d: calls: %w", path, i+3, err)
		}
		rows[fields[0]] = row{allocations, calls, fields[3]}
	}
	return lines[0], rows, nil
}

// write writes a baseline. A cost that did not grow keeps its reason.
func write(path string, rows map[string]row, measured []Cost) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n", minor(runtime.Version()), head)
	for _, c := range measured {
		now := row{int64(math.Ceil(c.Allocations)), c.Calls, *reason}
		if was, ok := rows[c.Name]; ok && c.Allocations <= most(was.allocations) && c.Calls <= was.calls {
			now.reason = was.reason
		}
		fmt.Fprintf(&b, "%s\t%d\t%d\t%s\n", c.Name, now.allocations, now.calls, now.reason)
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}
