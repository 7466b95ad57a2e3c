package main

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The servers, by their name in the results.
const (
	ours        = "ours"
	oursAgain   = "ours-again" // a second copy of ours
	oursOnDisk  = "ours-disk"
	cbtemulator = "cbtemulator"
	dynoxide    = "dynoxide"
	// null is the harness's server in the client's process. It answers at once and stores
	// nothing: the floor of a protocol's cost.
	null = "null"
)

// ourProgram is the file of our server.
const ourProgram = "tabletop"

// needHarness reports whether some of the parts need the load harness; the others use programs
// of this module.
func needHarness(parts []string) bool {
	return slices.ContainsFunc(parts, func(name string) bool {
		return slices.Contains([]string{"bigtable", "long", "growth", "dynamodb", "startup"}, name)
	})
}

// A part is a set of workloads that run on servers of their own.
type part struct {
	name    string
	servers []string
	// reps limits the repetitions of workloads that take minutes; 0 means no limit.
	reps int
	run  func(b *bench, ctx context.Context, server string, rep int) error
}

// growthReps is the limit for the parts that fill tables of a million rows.
const growthReps = 2

// stopTimeout is the time limit for the end of a server.
const stopTimeout = 10 * time.Second

// partTimeout ends a part on a server that hangs.
const partTimeout = 10 * time.Minute

// parts returns all parts, in the order in which they run.
func parts() []part {
	bigtable := []string{ours, cbtemulator}
	return []part{
		{"bigtable", []string{ours, cbtemulator, oursAgain, null}, 0, func(b *bench, ctx context.Context, server string, rep int) error {
			if server == null {
				return b.bigtable(ctx, server, rep, "pointwrite,pointread,rmw,cam,admin", "2s")
			}
			return b.bigtable(ctx, server, rep, "pointwrite,load,pointread,scan,rmw,cam,filter,admin,wide,versions", "2s")
		}},
		{"points", bigtable, 0, (*bench).points},
		{"long", []string{ours}, 0, func(b *bench, ctx context.Context, server string, rep int) error {
			return b.bigtable(ctx, server, rep, "hotrow", "2s")
		}},
		{"growth", bigtable, growthReps, func(b *bench, ctx context.Context, server string, rep int) error {
			return b.bigtable(ctx, server, rep, "growth,gc", "5s", "-growth", b.growth)
		}},
		{"dynamodb", []string{ours, oursOnDisk, dynoxide, oursAgain, null}, 0, (*bench).dynamoDB},
		{"changes", []string{ours}, 0, (*bench).changes},
		{"startup", []string{ours, cbtemulator, dynoxide}, 0, (*bench).startup},
		{"migrate", []string{ours}, growthReps, (*bench).migrate},
		{"go", []string{ours}, 0, (*bench).goBenchmarks},
	}
}

func partNames() []string {
	var names []string
	for _, p := range parts() {
		names = append(names, p.name)
	}
	return names
}

// bench is one run of the comparison.
type bench struct {
	harness, cache, growth, migration string
	reps, rows, items                 int
	stderr                            io.Writer

	before string // the program to compare with, instead of the peers; see before.go
	line   string // the command line, for the report

	binaries string // folder of the built programs
	profiles string // folder for CPU profiles of our server, without peers; "" for none
	profiled int    // number of profiles begun: each has a file of its own
	raw      string // file of the harness's results, one JSON line each
	pinned   bool   // server and client have a core each, if there is a taskset
}

// measure builds the programs, runs the named parts and returns the results: all those in the
// file raw, if it is named. After an error of a part it returns the results of the others.
func (b *bench) measure(ctx context.Context, names []string, raw string) (*results, error) {
	scratch, err := b.profiles, error(nil) // the program is needed until its profiles are merged
	if scratch == "" {
		if scratch, err = os.MkdirTemp("", "benchcompare"); err != nil {
			return nil, err
		}
		defer func() { _ = os.RemoveAll(scratch) }()
	}
	b.binaries = filepath.Join(scratch, "bin")
	if needHarness(names) {
		if _, err := os.Stat(filepath.Join(b.harness, "go.mod")); err != nil {
			return nil, fmt.Errorf("no load harness in %s, which is a separate module: name its folder with -harness DIR (make bench-compare HARNESS=DIR), or measure only the parts that need none (-parts points,changes,migrate,go): %w", b.harness, err)
		}
	}
	if b.raw = raw; raw == "" {
		b.raw = filepath.Join(scratch, "results.jsonl")
	} else if b.raw, err = filepath.Abs(raw); err != nil {
		return nil, err
	}
	_, noTaskset := exec.LookPath("taskset")
	b.pinned = noTaskset == nil
	if err := b.build(ctx, names); err != nil {
		return nil, err
	}
	elapsed := stopwatch()
	ran := false
	var failed []error // earlier results of a part stay
	for _, p := range parts() {
		if !slices.Contains(names, p.name) {
			continue
		}
		ran = true
		reps := b.reps
		if p.reps > 0 {
			reps = min(reps, p.reps)
		}
		for rep := 1; rep <= reps; rep++ {
			for _, server := range b.servers(p, rep) {
				if b.profiles != "" && server != ours {
					continue
				}
				_, _ = fmt.Fprintf(b.stderr, "%s, repetition %d of %d: %s\n", p.name, rep, reps, server)
				partCtx, cancel := context.WithTimeout(ctx, partTimeout)
				err := p.run(b, partCtx, server, rep)
				cancel()
				if ctx.Err() != nil && err != nil {
					return nil, err
				}
				if err != nil {
					failed = append(failed, fmt.Errorf("%s, %s: %w", p.name, server, err))
				}
			}
		}
	}
	if took := elapsed(); ran {
		failed = append(failed, appendResults(b.raw, []result{{Target: thisProgram, Note: b.line, Seconds: took.Seconds(), Date: today()}}))
	}
	rs, err := readResults(b.raw)
	return rs, errors.Join(append(failed, err)...)
}

// servers returns the servers of a part, in their order of work in a repetition.
func (b *bench) servers(p part, rep int) []string {
	if b.before != "" {
		return beforeOrder(rep)
	}
	return p.servers
}

// build builds our program, the harness if a part needs it, and the peers. With -before it copies that
// program twice instead of building peers.
func (b *bench) build(ctx context.Context, names []string) error {
	if b.before != "" {
		if _, err := buildinfo.ReadFile(b.before); err != nil {
			return fmt.Errorf("-before: %w", err)
		}
	}
	linked := filepath.Join(b.binaries, "linked")
	how := []string{"make", "--no-print-directory", "build", "PROGRAM=" + linked} // as shipped
	if b.profiles != "" {
		// A profile is independent of earlier ones, and names no folder of this machine.
		how = []string{"go", "build", "-pgo=off", "-trimpath", "-o", linked, "./cmd/tabletop"}
	}
	if err := b.command(ctx, repository, []string{"CGO_ENABLED=0"}, how[0], how[1:]...); err != nil {
		return err
	}
	if b.before != "" {
		if err := builtAlike(b.before, linked); err != nil {
			return fmt.Errorf("-before: %w", err)
		}
	}
	// The output of a linker is loaded in smaller pieces than a copy of it, and takes a tenth
	// more CPU for a while. The peers' programs are copies, as is a downloaded program.
	copies := map[string]string{ourProgram: linked}
	if b.before != "" {
		copies[before], copies[beforeAgain] = b.before, b.before
	} else {
		copies[oursAgain] = linked
	}
	for name, original := range copies {
		program, err := os.ReadFile(filepath.Clean(original))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(b.binaries, name), program, 0o755); err != nil {
			return err
		}
	}
	if needHarness(names) {
		if err := b.command(ctx, b.harness, nil, "go", "build", "-o", b.harnessProgram(), "."); err != nil {
			return fmt.Errorf("building the harness (-harness): %w", err)
		}
	}
	if b.before != "" {
		return nil // without peers
	}
	kept := filepath.Join(b.cache, "bin")
	if err := os.MkdirAll(kept, 0o777); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(kept, "emulator")); err != nil {
		if err := b.command(ctx, ".", []string{"GOBIN=" + kept}, "go", "install", "cloud.google.com/go/bigtable/cmd/emulator@v1.58.0"); err != nil {
			return err
		}
	}
	if !slices.Contains(names, "dynamodb") && !slices.Contains(names, "startup") {
		return nil
	}
	if _, err := os.Stat(filepath.Join(kept, "dynoxide")); err != nil {
		return b.command(ctx, ".", nil, "cargo", "install", "-q", "dynoxide-rs@3.2.0", "--root", b.cache)
	}
	return nil
}

func (b *bench) command(ctx context.Context, dir string, env []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}

// bigtable runs workloads of the Bigtable API on a fresh server.
func (b *bench) bigtable(ctx context.Context, server string, rep int, workloads, maxTime string, more ...string) error {
	args := append([]string{
		"bt", "-target", server, "-run", strconv.Itoa(rep), "-rows", strconv.Itoa(b.rows), "-maxtime", maxTime,
		"-scans", "5", "-ops", "10000", "-workloads", workloads, "-out", b.raw,
	}, more...)
	if server == null {
		return b.together(ctx, append(args, "-kind", "null")...)
	}
	return b.serve(ctx, server, false, func(addr string, pid int) error {
		return b.client(ctx, b.harnessProgram(), append(args, "-addr", addr, "-pid", strconv.Itoa(pid))...)
	})
}

// dynamoDB runs the workloads of the DynamoDB API on a fresh server.
func (b *bench) dynamoDB(ctx context.Context, server string, rep int) error {
	args := []string{
		"ddb", "-target", server, "-run", strconv.Itoa(rep), "-items", strconv.Itoa(b.items), "-ops", "1000", "-maxtime", "2s", "-out", b.raw,
	}
	if server == null { // without an endpoint
		return b.together(ctx, args...)
	}
	return b.serve(ctx, server, true, func(addr string, pid int) error {
		return b.client(ctx, b.harnessProgram(), append(args, "-endpoint", "http://"+addr, "-pid", strconv.Itoa(pid))...)
	})
}

// startup measures from the start of the process to the first answer.
func (b *bench) startup(ctx context.Context, server string, rep int) error {
	addr, err := freeAddr()
	if err != nil {
		return err
	}
	kind, argv := "bt", b.argv(server, addr, "", false)
	if server == dynoxide {
		kind, argv = "ddb", b.argv(server, addr, "", true)
	}
	return b.client(ctx, b.harnessProgram(), append([]string{
		"startup", "-kind", kind, "-target", server, "-addr", addr, "-n", "20", "-run", strconv.Itoa(rep), "-out", b.raw, "--",
	}, argv...)...)
}

func (b *bench) harnessProgram() string { return filepath.Join(b.binaries, "bench") }

// client runs a program that measures a server. If b.pinned is set, the program has a core of its own.
func (b *bench) client(ctx context.Context, program string, args ...string) error {
	argv := append([]string{program}, args...)
	if b.pinned {
		argv = append([]string{"taskset", "-c", "0"}, argv...)
	}
	return b.command(ctx, ".", []string{"GOMAXPROCS=1"}, argv[0], argv[1:]...)
}

// together runs the harness with a server in its process. The process gets as many cores as a
// client and a server have together in other measurements.
func (b *bench) together(ctx context.Context, args ...string) error {
	return b.command(ctx, ".", []string{"GOMAXPROCS=2"}, b.harnessProgram(), args...)
}

// argv returns the command line of a server that opens one endpoint at addr.
func (b *bench) argv(server, addr, data string, dynamoDB bool) []string {
	host, port, _ := net.SplitHostPort(addr)
	switch server {
	case cbtemulator:
		return []string{filepath.Join(b.cache, "bin", "emulator"), "-host", host, "-port", port}
	case dynoxide:
		return []string{filepath.Join(b.cache, "bin", "dynoxide"), "serve", "--port", port, "--log", "quiet"}
	}
	program := ourProgram
	if server == before || server == beforeAgain || server == oursAgain {
		program = server
	}
	argv := []string{filepath.Join(b.binaries, program), "serve", "--bigtable", addr, "--dynamodb", "off"}
	if dynamoDB {
		argv = []string{filepath.Join(b.binaries, program), "serve", "--dynamodb", addr, "--bigtable", "off"}
	}
	if server == oursOnDisk {
		argv = append(argv, "--data", data)
	}
	if b.profiles != "" {
		b.profiled++
		argv = append(argv, "--cpu-profile", filepath.Join(b.profiles, strconv.Itoa(b.profiled)+".prof"))
	}
	return argv
}

// serve runs work against a fresh server, and ends it.
func (b *bench) serve(ctx context.Context, server string, dynamoDB bool, work func(addr string, pid int) error) error {
	addr, err := freeAddr()
	if err != nil {
		return err
	}
	data, err := os.MkdirTemp("", "benchcompare-data")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(data) }()
	argv := b.argv(server, addr, filepath.Join(data, "store"), dynamoDB)
	if b.pinned {
		argv = append([]string{"taskset", "-c", "1"}, argv...)
	}
	return serving(ctx, addr, []string{"GOMAXPROCS=1"}, argv, func(pid int) error { return work(addr, pid) })
}

// serving runs a program that serves at an address, with additions to the environment,
// while work runs.
func serving(ctx context.Context, addr string, env, argv []string, work func(pid int) error) error {
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // a profile needs a clean end
	cmd.WaitDelay = stopTimeout
	if err := cmd.Start(); err != nil {
		cancel()
		return err
	}
	defer func() {
		cancel()
		_ = cmd.Wait() // its code is the signal's
	}()
	if err := waitFor(ctx, addr); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(argv, " "), err)
	}
	return work(cmd.Process.Pid)
}

func freeAddr() (string, error) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return lis.Addr().String(), lis.Close()
}

// waitFor dials addr until a server answers.
func waitFor(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no server responds at %s: %w", addr, err)
		case <-tick.C:
		}
	}
}
