// Command benchcompare compares Tabletop with today's emulators, and reports which of the
// project's targets hold. `make bench-compare` runs it; docs/performance.md has its last
// figures.
//
// Our program and a peer do the same seeded work in turn, repetition after repetition, so that
// the machine's drift affects both; every figure is a ratio of medians of one run. The load
// harness is a folder next to the project (-harness). Peers are built from their packages:
// cbtemulator by go install, Dynoxide by cargo.
//
// With -before PROGRAM, a build of this program from before a change, there are no peers: the
// parts points and dynamodb run that program and ours, and the report shows for each row
// whether it became slower by more than the noise. The noise is that of PROGRAM against itself
// in the same run.
//
// With the argument distance it measures the DynamoDB endpoint, the loader and the verifier
// over links of various lengths to a Bigtable; `make distance` does.
//
// It exits 0 when every measured target holds, or no row became slower; 1 otherwise; 2 for a
// bad flag; 3 when the measurement failed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// The exit codes.
const (
	exitHold        = 0
	exitMissed      = 1
	exitBadFlag     = 2
	exitEnvironment = 3
)

// repository is the folder of the project, relative to conformance, in which the program runs.
const repository = ".."

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && clients[args[0]] != nil {
		return runClient(ctx, args[0], args[1:], stderr)
	}
	if len(args) > 0 && args[0] == distanceCommand {
		return runDistance(ctx, args[1:], stdout, stderr)
	}
	b := &bench{stderr: stderr}
	flags := flag.NewFlagSet("benchcompare", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&b.harness, "harness", "../../shared/bench", "the folder, `DIR`, of the load harness")
	flags.StringVar(&b.cache, "cache", filepath.Join(os.TempDir(), "tabletop-bench"), "the folder, `DIR`, of built peers")
	flags.IntVar(&b.reps, "reps", 5, fmt.Sprintf("repetitions for each median; with -before at least %d, and by default %d", leastPairs, beforeReps))
	flags.IntVar(&b.rows, "rows", 100_000, "rows of the base table")
	flags.IntVar(&b.items, "items", 5_000, "items of the DynamoDB table")
	flags.StringVar(&b.growth, "growth", "10000,100000,1000000", "table sizes of the growth and memory rows; the last is swept")
	flags.StringVar(&b.migration, "migration", "10000,1000000", "items of the exports that are loaded and verified")
	wanted := flags.String("parts", strings.Join(partNames(), ","), "the measured parts")
	raw := flags.String("raw", "", "keep the raw results in this `FILE`, or add to the results in it")
	flags.StringVar(&b.before, "before", "", beforeUsage)
	profile := flags.String("profile", "", "compare nothing: write a CPU profile of our server under -parts to this file")
	out := flags.String("out", "", "write the report, as Markdown, to this `FILE` too; its notes are kept")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return exitHold
	} else if err != nil {
		return exitBadFlag
	}
	if b.before != "" {
		given := map[string]bool{}
		flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
		if !given["parts"] {
			*wanted = strings.Join(beforeParts, ",")
		}
		if !given["reps"] {
			b.reps = beforeReps
		}
		if err := b.checkBefore(strings.Split(*wanted, ","), *profile, *raw); err != nil {
			_, _ = fmt.Fprintf(stderr, "benchcompare: %v\n", err)
			return exitBadFlag
		}
	}
	names := strings.Split(*wanted, ",")
	for _, name := range names {
		if name != "" && !slices.Contains(partNames(), name) {
			_, _ = fmt.Fprintf(stderr, "benchcompare: -parts: unknown part %q: want one of %s\n", name, strings.Join(partNames(), ", "))
			return exitBadFlag
		}
	}
	if *out != "" && *raw == "" && b.before == "" && slices.ContainsFunc(partNames(), func(part string) bool { return !slices.Contains(names, part) }) {
		_, _ = fmt.Fprintf(stderr, "benchcompare: -out %s would list all but -parts %s as not measured: give -raw FILE too, which keeps the results of several runs\n", *out, *wanted)
		return exitBadFlag
	}
	fail := func(err error) int {
		_, _ = fmt.Fprintf(stderr, "benchcompare: %v\n", err)
		return exitEnvironment
	}
	if *profile != "" {
		if err := b.profile(ctx, names, *profile); err != nil {
			return fail(err)
		}
		return exitHold
	}
	b.line = commandLine(flags)
	results, measureErr := b.measure(ctx, names, *raw)
	if results == nil {
		return fail(measureErr)
	}
	text, missed := "", 0
	if b.before != "" {
		text, missed = beforeReport(results, b)
	} else {
		text, missed = report(results, b)
	}
	if *out != "" && b.before == "" {
		notes, err := notesOf(*out)
		if err != nil {
			return fail(err)
		}
		text += notes
	}
	if _, err := io.WriteString(stdout, text); err != nil {
		return fail(err)
	}
	if *out != "" {
		if err := os.WriteFile(*out, []byte(text), 0o666); err != nil {
			return fail(err)
		}
	}
	if measureErr != nil {
		return fail(measureErr)
	}
	if missed > 0 {
		return exitMissed
	}
	return exitHold
}

// commandLine returns the command with these flags; placeholders replace places on this
// machine.
func commandLine(flags *flag.FlagSet) string {
	words := []string{"go run -C conformance ./benchcompare"}
	flags.Visit(func(f *flag.Flag) {
		value := f.Value.String()
		if filepath.IsAbs(value) {
			value, _ = flag.UnquoteUsage(f)
		}
		words = append(words, "-"+f.Name, value)
	})
	return strings.Join(words, " ")
}
