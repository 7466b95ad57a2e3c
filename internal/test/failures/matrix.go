package failures

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/test/peer"
	"github.com/tabletop-emu/tabletop/internal/test/race"
)

var (
	rewrite = flag.Bool("failures.rewrite", false, "rewrite the table in docs/reliability.md")
	all     = flag.Bool("failures.all", false, "let each call fail once, and do not look at the table")
)

// longest is the time limit of every request, load or verification, and of each command of
// those in parts: three calls without an answer until their deadline, and waits.
const longest = 3*callTimeout + 5*time.Second

// cell is the result of failing calls of one RPC in one way, under one caller. It is empty
// without such calls.
type cell struct {
	once, lasting outcomes
}

func (c *cell) empty() bool { return c == nil || len(c.lasting.texts) == 0 }

// outcomes are the results of all runs.
type outcomes struct {
	texts map[string]bool
	after time.Duration // the longest
}

func (o *outcomes) add(t *testing.T, what string, seen outcome) {
	t.Helper()
	if seen.after > longest {
		t.Errorf("%s: ends after %v", what, seen.after)
	}
	if o.texts == nil {
		o.texts = map[string]bool{}
	}
	o.texts[seen.text] = true
	o.after = max(o.after, seen.after)
}

// String returns the outcomes with the time, in seconds or tens of seconds.
func (o outcomes) String() string {
	if len(o.texts) == 0 {
		return "–"
	}
	text := strings.Join(slices.Sorted(maps.Keys(o.texts)), ", ")
	switch s := o.after.Seconds(); {
	case s == 0:
		return text
	case s <= 1:
		return text + "; 1 s"
	default:
		return text + fmt.Sprintf("; %.0f s", 10*float64(int((s+9.999)/10)))
	}
}

// callers are the sources of calls, in the order of the table's columns.
var callers = []struct {
	name string
	meet func(t *testing.T, conn grpc.ClientConnInterface, how failure) map[string]*cell
}{
	{"endpoint", meetRequests},
	{"load", meetLoads},
	{"verify", meetVerifications},
	{"load in parts", meetPartLoads},
	{"verify in parts", meetPartVerifications},
}

// Matrix makes calls to Bigtable fail in every way: under each caller the first of an RPC,
// the two after it, and the last; with -failures.all each; and all of them. If whole is not set,
// each failure affects only some RPCs, and not the two calls after the first.
func Matrix(t *testing.T, whole bool) {
	t.Helper()
	whole = whole || *rewrite || *all
	var mu sync.Mutex
	seen := map[string]map[string]map[string]*cell{} // by RPC, failure and caller
	t.Run("runs", func(t *testing.T) {
		for _, how := range failures {
			if race.Enabled && !how.raced {
				continue // without the race detector, all are tested
			}
			if whole {
				how.quick = nil
			}
			for _, by := range callers {
				t.Run(strings.Trim(how.name, "`")+"/"+by.name, func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						cells := by.meet(t, peer.Start(t, engine.Options{}, emu.Options{}).Conn(), how)
						mu.Lock()
						defer mu.Unlock()
						for rpc, c := range cells {
							if seen[rpc] == nil {
								seen[rpc] = map[string]map[string]*cell{}
							}
							if seen[rpc][how.name] == nil {
								seen[rpc][how.name] = map[string]*cell{}
							}
							seen[rpc][how.name][by.name] = c
						}
					})
				})
			}
		}
	})
	if race.Enabled {
		return
	}
	for _, rpc := range clientRPCs(t) {
		if (seen[rpc] != nil) == (elsewhere[rpc] != "") {
			t.Errorf("%s of package btclient was called: %t; excluded: %q", rpc, seen[rpc] != nil, elsewhere[rpc])
		}
	}
	if t.Failed() || *all {
		return
	}
	var b strings.Builder
	b.WriteString("| call | what happens |")
	for _, by := range callers {
		fmt.Fprintf(&b, " %s, once | %s, always |", by.name, by.name)
	}
	b.WriteString("\n|" + strings.Repeat("---|", 2+2*len(callers)) + "\n")
	unmet := map[string]bool{}
	for _, how := range failures {
		unmet[how.name] = true
	}
	for _, rpc := range slices.Sorted(maps.Keys(seen)) {
		unmet[rpc] = true
		for _, how := range failures {
			cells := seen[rpc][how.name]
			if !slices.ContainsFunc(slices.Collect(maps.Values(cells)), func(c *cell) bool { return !c.empty() }) {
				continue
			}
			delete(unmet, rpc)
			delete(unmet, how.name)
			fmt.Fprintf(&b, "| `%s` | %s |", rpc, how.name)
			for _, by := range callers {
				c := cells[by.name]
				if c == nil {
					c = &cell{}
				}
				fmt.Fprintf(&b, " %s | %s |", c.once, c.lasting)
			}
			b.WriteByte('\n')
		}
	}
	for _, what := range slices.Sorted(maps.Keys(unmet)) {
		t.Errorf("no failure of %s is in the table", what)
	}
	compareDocs(t, b.String(), whole)
}

// elsewhere has the RPCs without calls from the endpoint, a load or a verification, and their
// callers.
var elsewhere = map[string]string{
	"DropRowRange": "trials of fixtures, of the tables that they made themselves",
}

// called matches the client code that names an RPC.
var called = regexp.MustCompile(`\b(?:Bigtable(?:TableAdmin)?Client|c\.data)\.([A-Z]\w+)`)

// clientRPCs returns all RPCs that the Bigtable client can call. It reads them from testkit, which
// runs the tests.
func clientRPCs(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../internal/btclient/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("the files of package btclient: %v, %v", files, err)
	}
	rpcs := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range called.FindAllSubmatch(src, -1) {
			rpcs[string(match[1])] = true
		}
	}
	return slices.Sorted(maps.Keys(rpcs))
}

// The table is between these lines of the page, whose path is that from testkit.
const (
	page  = "../docs/reliability.md"
	begin = "<!-- written by go generate ./internal/test/failures -->\n"
	end   = "<!-- end -->\n"
)

// compareDocs compares the table with that of the page, or writes it there. A table that is
// not whole has some of the page's rows.
func compareDocs(t *testing.T, table string, whole bool) {
	t.Helper()
	src, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(src), begin)
	have, after, ended := strings.Cut(rest, end)
	switch {
	case !found || !ended:
		t.Fatalf("%s has no lines %q and %q", page, begin, end)
	case have == table:
	case *rewrite:
		if err := os.WriteFile(page, []byte(before+begin+table+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	case !whole:
		of := strings.SplitAfter(have, "\n")
		for line := range strings.Lines(table) {
			if !slices.Contains(of, line) {
				t.Errorf("%s lacks a row that is seen; go generate ./internal/test/failures writes the table:\n%s", page, line)
			}
		}
	default:
		t.Errorf("%s differs from the results; go generate ./internal/test/failures writes it (-docs +seen):\n%s", page, cmp.Diff(strings.Split(have, "\n"), strings.Split(table, "\n")))
	}
}

// meetEach makes the calls of a complete run fail one after the other: run gets the failing
// call.
func meetEach(t *testing.T, cells map[string]*cell, what string, whole *failingConn, how failure, run func(what, rpc string, from, most int) outcome) {
	t.Helper()
	counts, streams := whole.counted()
	for rpc, calls := range counts {
		c := cells[rpc]
		if c == nil {
			c = &cell{}
			cells[rpc] = c
		}
		if how.begun && !streams[rpc] || how.only != "" && how.only != rpc || how.quick != nil && !slices.Contains(how.quick, rpc) {
			continue
		}
		first := 3
		if how.quick != nil {
			first = 1
		}
		for n := range calls {
			if n < first || n == calls-1 || *all {
				what := fmt.Sprintf("%s, call %d of %s: %s", what, n, rpc, how.name)
				c.once.add(t, what, run(what, rpc, n, 1))
			}
		}
		what := fmt.Sprintf("%s, all calls of %s: %s", what, rpc, how.name)
		c.lasting.add(t, what, run(what, rpc, 0, always))
	}
}

// wholeRuns are the runs of requests without a failure. They do not depend on the failure, so
// each is made once.
type wholeRuns struct {
	mu      sync.Mutex
	conns   map[string]*failingConn // by the name of the request, with its counters
	answers map[string]string
}

var endpointRuns = wholeRuns{conns: map[string]*failingConn{}, answers: map[string]string{}}

// of returns the counters and the answer of a request's run, and makes the run if necessary.
func (w *wholeRuns) of(name string, run func() (*failingConn, string)) (*failingConn, string) {
	w.mu.Lock()
	conn, answer := w.conns[name], w.answers[name]
	w.mu.Unlock()
	if conn == nil {
		conn, answer = run() // others may run it concurrently
		w.mu.Lock()
		w.conns[name], w.answers[name] = conn, answer
		w.mu.Unlock()
	}
	return conn, answer
}

// meetRequests makes each request meet a failure at its calls.
func meetRequests(t *testing.T, conn grpc.ClientConnInterface, how failure) map[string]*cell {
	t.Helper()
	cells, runs := map[string]*cell{}, 0
	begin := func(what string) *endpointRun {
		runs++
		return &endpointRun{t: t, what: what, name: fmt.Sprint("instance-", runs), conn: newFailingConn(conn)}
	}
	for _, q := range requests {
		counts, want := endpointRuns.of(q.name, func() (*failingConn, string) {
			whole := begin(q.name)
			_, answer := whole.meet(q, "", "", failure{}, 0, 0)
			return whole.conn, answer
		})
		meetEach(t, cells, q.name, counts, how, func(what, rpc string, from, most int) outcome {
			o, _ := begin(what).meet(q, want, rpc, how, from, most)
			return o
		})
	}
	return cells
}
