package lint

import (
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

const (
	longPackage     = module + "/internal/test/long"
	longList        = "internal/test/long/tests.tsv"
	propertyPackage = module + "/internal/test/property"
)

// TestLongTier compares the tests that ask for the long tier with the list of them. It
// requires the question in the test itself, where a reader and the list find it.
func TestLongTier(t *testing.T) {
	t.Parallel()
	listed := map[string]bool{} // "folder TestName" to whether a test was found
	header, rows, _ := strings.Cut(readRepoFile(t, longList), "\n")
	if want := "package\ttest\twhy it is long\twhat stays in the quick tier"; header != want {
		t.Errorf("%s begins with %q, want %q", longList, header, want)
	}
	var keys []string
	for row := range strings.Lines(rows) {
		cells := strings.Split(strings.TrimSuffix(row, "\n"), "\t")
		if len(cells) != 4 || slices.Contains(cells, "") {
			t.Errorf("%s: %q has to have four cells with text, separated by tabs", longList, row)
			continue
		}
		key := cells[0] + " " + cells[1]
		listed[key], keys = false, append(keys, key)
	}
	if !slices.IsSorted(keys) || len(slices.Compact(keys)) != len(listed) {
		t.Errorf("%s is not sorted by package and test, or lists a test twice", longList)
	}
	for _, f := range goFiles(t) {
		if path.Dir(f.path) == path.Dir(longList) || within(f.path, "internal/test/property") {
			continue
		}
		for _, d := range f.tree.Decls {
			if slices.Contains(f.imports, "testing") && names(d, "testing", "Short") != "" {
				t.Errorf("%s: testing.Short is not used: call %s.Enabled", f.path, longPackage)
			}
			asks := slices.Contains(f.imports, longPackage) && names(d, "long", "Test", "Enabled") != "" ||
				slices.Contains(f.imports, propertyPackage) && names(d, "property", "First") != ""
			if !asks {
				continue
			}
			name := declared(d)
			if !f.test || !strings.HasPrefix(name, "Test") {
				t.Errorf("%s: %s asks for the long tier; a test function has to do so itself", f.path, name)
				continue
			}
			key := path.Dir(f.path) + " " + name
			if _, ok := listed[key]; !ok {
				t.Errorf("%s does not list %s", longList, key)
			}
			listed[key] = true
		}
	}
	for key, found := range listed {
		if !found {
			t.Errorf("%s lists %s, which is not a test that asks for the long tier", longList, key)
		}
	}
}

// realTime lists the functions of test files that may read or await the real time, by file and
// name, with the reason. All others need a bubble of testing/synctest: durations depend on the
// load of the machine.
var realTime = map[string]string{
	"cmd/tabletop/access_test.go TestServe_Endpoints":                        "signs requests to a server in another process, which has the real time",
	"cmd/tabletop/main_test.go TestServe_TTL":                                "writes items that expire for a server in another process, which has the real time",
	"conformance/change_stream_bench_test.go BenchmarkChangeStream":          "measures",
	"conformance/live/figures_test.go measure":                               "reports the CPU and the lag of a run, and asserts nothing about them",
	"conformance/live/figures_test.go report":                                "reports the CPU and the lag of a run, and asserts nothing about them",
	"conformance/live/catchup_test.go TestCatchUp":                           "reports how long changes took, and asserts nothing about it",
	"conformance/live/follow_test.go paced":                                  "keeps the rate that a flag gives",
	"conformance/live/follower_test.go owner":                                "reads the lease of a follower in another process, which has the real time",
	"conformance/live/generator_test.go send":                                "ends calls whose server was killed",
	"conformance/live/history_test.go end":                                   "notes when a write was acknowledged, to compare it with the watermark of a process that has the real time",
	"conformance/live/judge_test.go watch":                                   "looks at regular intervals, and asserts nothing about them",
	"conformance/live/judge_test.go look":                                    "reports the lag",
	"conformance/live/relay_test.go carry":                                   "delays a connection",
	"conformance/live/relay_test.go wait":                                    "delays a connection",
	"conformance/live/stage_test.go limited":                                 "ends calls whose server was killed",
	"conformance/terraform_bigtable_test.go tomorrow":                        "gives a backup an end, on a server that has the real time",
	"conformance/console/console_test.go browser":                            "names the wait that lasts until the end of the time for all tests",
	"conformance/live/stage_test.go pause":                                   "waits between two looks at another process",
	"conformance/live/verify_test.go TestVerify":                             "reports how long verifications took, and asserts nothing about it",
	"conformance/live/verify_test.go applied":                                "waits until a process with the real time has applied a write",
	"conformance/live/verify_test.go damage":                                 "gives cells a time after those of servers that have the real time",
	"conformance/live/verify_test.go equal":                                  "relates the writes of an item to the time of a verification, with the time of the full size",
	"emu/view_bench_test.go BenchmarkViewFill":                               "measures",
	"engine/bench_test.go BenchmarkGC":                                       "measures",
	"internal/btclient/fake_test.go RecvMsg":                                 "runs in the bubble of its caller",
	"conformance/soak/bigtable_test.go call":                                 "reports how long calls take and asserts nothing about it",
	"conformance/soak/dynamodb_test.go call":                                 "reports how long calls take and asserts nothing about it",
	"conformance/soak/rounds_test.go TestRounds":                             "reports how long rounds take and asserts nothing about it",
	"conformance/soak/soak_test.go TestSoak":                                 "works for the time that a flag gives",
	"conformance/soak/soak_test.go paced":                                    "keeps the rate that a flag gives",
	"conformance/soak/soak_test.go settle":                                   "looks again until the heap has settled, however long that takes",
	"conformance/soak/soak_test.go report":                                   "reports how long the run took",
	"internal/btclient/throttle_test.go take":                                "takes virtual time, but for a test that counts allocations",
	"testkit/stream_test.go options":                                         "waits in a bubble, but for a test that waits for nothing",
	"migrate/internal/follow/follow_test.go start":                           "gives a migration the clock of its servers, which have the real time",
	"migrate/internal/follow/follow_test.go pauseFor":                        "lets other goroutines run, for a short time, and asserts nothing about it",
	"migrate/internal/follow/verify_live_speed_test.go TestVerifyLive_Speed": "measures, and asserts nothing about it",
	"migrate/internal/follow/verify_live_speed_test.go rest":                 "keeps the rate of a follower that is measured",
	"testkit/btkit/example_faults_test.go ExampleEnv_Latency":                "shows a latency beyond the deadline of a call, and awaits neither",
}

// clockNames are the functions by which Go code reads or awaits the real time.
var clockNames = map[string][]string{
	"time":    {"Sleep", "Now", "Since", "Until", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},
	"context": {"WithTimeout", "WithTimeoutCause", "WithDeadline", "WithDeadlineCause"},
}

// TestRealTime checks that tests do not depend on the load of the machine.
func TestRealTime(t *testing.T) {
	t.Parallel()
	unused := map[string]bool{}
	for key := range realTime {
		unused[key] = true
	}
	for _, f := range goFiles(t) {
		if !f.test {
			continue
		}
		bubbles := inBubbles(f.tree)
		within := called(f.tree, bubbles)
		tests := map[string]bool{} // without a bubble
		for _, d := range f.tree.Decls {
			if name := declared(d); isTest(name) && !bubbles[name] {
				tests[name] = true
			}
		}
		outside := called(f.tree, tests)
		for _, d := range f.tree.Decls {
			if name := declared(d); bubbles[name] || within[name] && !outside[name] {
				continue
			}
			for of, clocks := range clockNames {
				if !slices.Contains(f.imports, of) {
					continue
				}
				used := names(d, of, clocks...)
				if used == "" {
					continue
				}
				key := f.path + " " + declared(d)
				delete(unused, key)
				if realTime[key] == "" {
					t.Errorf("%s: %s calls %s outside a bubble of testing/synctest", f.path, declared(d), used)
				}
			}
		}
	}
	for key := range unused {
		t.Errorf("realTime lists %s, which does not use the real time", key)
	}
}

// inBubbles returns the functions of a file that call synctest.Test, directly or through
// others of the file.
func inBubbles(tree *ast.File) map[string]bool {
	in := map[string]bool{}
	for _, d := range tree.Decls {
		if names(d, "synctest", "Test") != "" {
			in[declared(d)] = true
		}
	}
	for before := 0; before < len(in); {
		before = len(in)
		for _, d := range tree.Decls {
			ast.Inspect(d, func(n ast.Node) bool {
				if x, ok := n.(*ast.Ident); ok && in[x.Name] {
					in[declared(d)] = true
				}
				return !in[declared(d)]
			})
		}
	}
	return in
}

// called returns the given functions of a file and what they call: the functions that they
// mention, and the methods of the types, directly or through others of the file.
func called(tree *ast.File, from map[string]bool) map[string]bool {
	all, mentioned := maps.Clone(from), map[string]bool{}
	for before := -1; before < len(mentioned); {
		before = len(mentioned)
		for _, d := range tree.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			reached := mentioned[f.Name.Name]
			if f.Recv != nil { // calls through interfaces name no type
				reached = mentioned[receiver(f)]
			}
			if !reached && !all[f.Name.Name] {
				continue
			}
			all[f.Name.Name] = true
			ast.Inspect(d, func(n ast.Node) bool {
				if x, ok := n.(*ast.Ident); ok {
					mentioned[x.Name] = true
				}
				return true
			})
		}
	}
	return all
}

// receiver returns the name of the type of a method, or "".
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	of := f.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if x, ok := of.(*ast.Ident); ok {
		return x.Name
	}
	return ""
}

// isTest reports whether the go command runs a function of this name.
func isTest(name string) bool {
	return strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Benchmark") || strings.HasPrefix(name, "Fuzz")
}

// names returns the first of the names of a package that a declaration mentions, with the
// package before it, or "".
func names(d ast.Decl, of string, wanted ...string) (found string) {
	ast.Inspect(d, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && found == "" {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == of && slices.Contains(wanted, s.Sel.Name) {
				found = of + "." + s.Sel.Name
			}
		}
		return found == ""
	})
	return found
}

// declared returns the name of a function, or the first name of another declaration.
func declared(d ast.Decl) string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		return d.Name.Name
	case *ast.GenDecl:
		for _, s := range d.Specs {
			if v, ok := s.(*ast.ValueSpec); ok {
				return v.Names[0].Name
			}
		}
	}
	return ""
}
