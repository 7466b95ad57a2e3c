// Command stress runs the quick tier repeatedly next to busy loops. It lists the tests that failed,
// each with the number of its failures and the output of the first one.
//
//	go run ./internal/test/stress [-runs 20] [-loops 2] [-cpu 1,2] [package ...]
//
// Each run uses a different seed for the order of tests. The exit status is 1 if a test failed, and
// 3 if a test could not be compiled or started.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
)

func main() {
	runs := flag.Int("runs", 20, "number of runs")
	loops := flag.Int("loops", 2, "number of busy loops next to the tests")
	cpu := flag.String("cpu", "1,2", "values of GOMAXPROCS; each run runs all tests once for each value")
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

// failure summarizes the failures of a test.
type failure struct {
	times  int
	output string // of the first time
}

func stress(ctx context.Context, runs, loops int, cpu string, packages []string) int {
	dir, err := os.MkdirTemp("", "stress")
	if err != nil {
		fmt.Fprintln(os.Stderr, "stress:", err)
		return 3
	}
	defer func() { _ = os.RemoveAll(dir) }()
	tests, err := build(ctx, dir, packages)
	if err != nil {
		fmt.Fprintln(os.Stderr, "stress:", err)
		return 3
	}
	for range loops {
		go func() {
			for n := 0; ctx.Err() == nil; n++ {
			}
		}()
	}
	failures := map[string]*failure{}
	for run := range runs {
		failed, passed, err := once(ctx, tests, []string{"-test.v=test2json", "-test.timeout=30m", "-test.cpu=" + cpu, fmt.Sprintf("-test.shuffle=%d", run+1)}, failures)
		if ctx.Err() != nil {
			_, _ = fmt.Fprintln(os.Stdout, "interrupted")
			break
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "stress:", err)
			return 3
		}
		_, _ = fmt.Fprintf(os.Stdout, "run %d of %d: %d tests passed, %d failed\n", run+1, runs, passed, failed)
		if failed > 0 {
			_, _ = fmt.Fprintf(os.Stdout, "failed so far: %s\n", strings.Join(slices.Sorted(maps.Keys(failures)), ", "))
		}
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

// binary is the compiled test of a package.
type binary struct{ pkg, dir, file string }

// build compiles the tests once for all runs.
func build(ctx context.Context, to string, packages []string) ([]binary, error) {
	out, err := command(ctx, append([]string{"list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}\t{{.Dir}}{{end}}"}, packages...)...)
	if err != nil {
		return nil, err
	}
	var tests []binary
	var group errgroup.Group
	group.SetLimit(runtime.NumCPU())
	for line := range strings.Lines(out) {
		pkg, dir, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if !ok {
			continue
		}
		b := binary{pkg, dir, filepath.Join(to, fmt.Sprint(len(tests)))}
		tests = append(tests, b)
		group.Go(func() error {
			_, err := command(ctx, "test", "-c", "-vet=off", "-ldflags=-s -w", "-o", b.file, pkg)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return tests, nil
}

func command(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	return string(out), nil
}

// once runs all tests, one package per core at a time.
func once(ctx context.Context, tests []binary, flags []string, failures map[string]*failure) (failed, passed int, err error) {
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(runtime.NumCPU())
	for _, b := range tests {
		group.Go(func() error {
			cmd := exec.CommandContext(ctx, "go", append([]string{"tool", "test2json", "-t", "-p", b.pkg, b.file}, flags...)...)
			cmd.Dir, cmd.Stderr = b.dir, os.Stderr
			out, err := cmd.Output()
			if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			f, p, readErr := read(bytes.NewReader(out), failures)
			failed, passed = failed+f, passed+p
			if err != nil && f == 0 && readErr == nil {
				return fmt.Errorf("%s: %w", b.pkg, err)
			}
			return readErr
		})
	}
	err = group.Wait()
	return failed, passed, err
}

// event is a line of test2json.
type event struct{ Action, Package, Test, Output string }

// read adds the failures of a package, and counts its failures and the tests that passed.
func read(out io.Reader, failures map[string]*failure) (failed, passed int, err error) {
	output := map[string]*strings.Builder{}
	within := map[string]bool{} // packages with a failed test
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
		name := strings.TrimSpace(e.Package + " " + e.Test)
		switch e.Action {
		case "output":
			if output[name] == nil {
				output[name] = &strings.Builder{}
			}
			output[name].WriteString(e.Output)
		case "pass":
			if e.Test != "" {
				passed++
			}
			delete(output, name)
		case "fail":
			if e.Test == "" && within[e.Package] {
				continue // its tests are listed already
			}
			within[e.Package] = true
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
