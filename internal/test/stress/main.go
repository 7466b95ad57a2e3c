// Stress runs the quick tier again and again beside busy loops, and lists the tests that
// failed, each with its number of failures and the output of the first one.
//
//	go run ./internal/test/stress [-runs 20] [-loops 2] [-cpu 1,2] [package ...]
//
// Each run has a seed of its own for the order of tests. It exits with 1 when a test failed
// and with 3 when go test could not run.
package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
)

func main() {
	runs := flag.Int("runs", 20, "how many times the tests run")
	loops := flag.Int("loops", 2, "how many busy loops run beside them")
	cpu := flag.String("cpu", "1,2", "values of GOMAXPROCS; each run has all tests once for each")
	flag.Parse()
	packages := flag.Args()
	if len(packages) == 0 {
		packages = []string{"./..."}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := stress(ctx, *runs, *loops, *cpu, packages)
	stop()
	os.Exit(code)
}

// failure is what is known of a test that failed.
type failure struct {
	times  int
	output string // of the first time
}

func stress(ctx context.Context, runs, loops int, cpu string, packages []string) int {
	for range loops {
		go func() {
			for n := 0; ctx.Err() == nil; n++ {
			}
		}()
	}
	failures := map[string]*failure{}
	for run := range runs {
		args := append([]string{"test", "-json", "-count=1", "-cpu=" + cpu, fmt.Sprintf("-shuffle=%d", run+1)}, packages...)
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			fmt.Fprintln(os.Stderr, "stress:", err)
			return 3
		}
		if err := cmd.Start(); err != nil {
			fmt.Fprintln(os.Stderr, "stress:", err)
			return 3
		}
		failed, tests, err := read(out, failures)
		if err != nil {
			fmt.Fprintln(os.Stderr, "stress: reading the output of go test:", err)
			return 3
		}
		err = cmd.Wait()
		if ctx.Err() != nil {
			_, _ = fmt.Fprintln(os.Stdout, "interrupted")
			break
		}
		if err != nil && failed == 0 {
			fmt.Fprintln(os.Stderr, "stress: go test:", err)
			return 3
		}
		_, _ = fmt.Fprintf(os.Stdout, "run %d of %d: %d tests passed, %d failed\n", run+1, runs, tests, failed)
	}
	for _, name := range slices.Sorted(maps.Keys(failures)) {
		f := failures[name]
		_, _ = fmt.Fprintf(os.Stdout, "\n%s failed %d times, first with:\n%s", name, f.times, f.output)
	}
	if len(failures) > 0 {
		return 1
	}
	return 0
}

// event is a line of go test -json.
type event struct{ Action, Package, Test, Output, ImportPath string }

// read adds the failures of a run, and counts its failures and the tests that passed.
func read(out io.Reader, failures map[string]*failure) (failed, passed int, err error) {
	output := map[string]*strings.Builder{}
	within := map[string]bool{} // packages with a test that failed
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return failed, passed, nil
		}
		if err != nil {
			return failed, passed, err
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return failed, passed, fmt.Errorf("%w: %s", err, line)
		}
		of := cmp.Or(e.Package, e.ImportPath)
		name := strings.TrimSpace(of + " " + e.Test)
		switch e.Action {
		case "output", "build-output":
			if output[name] == nil {
				output[name] = &strings.Builder{}
			}
			output[name].WriteString(e.Output)
		case "pass":
			if e.Test != "" {
				passed++
			}
			delete(output, name)
		case "fail", "build-fail":
			if e.Test == "" && within[of] {
				continue // its tests are listed
			}
			within[of] = true
			failed++
			if failures[name] == nil {
				failures[name] = &failure{}
				if output[name] != nil {
					failures[name].output = output[name].String()
				}
			}
			failures[name].times++
		}
	}
}
