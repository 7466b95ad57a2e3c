// Command tabletop runs a Bigtable and a DynamoDB over the same rows on this machine, and
// moves DynamoDB data to Bigtable and verifies it.
//
//	tabletop serve            both endpoints, for any language
//	tabletop ctl              control such a server: snapshots, clock, faults
//	tabletop demo             the shipped fixtures, end to end
//	tabletop migrate infer    find a mapping for an export
//	tabletop migrate plan     show what a load would create, and what survives
//	tabletop migrate load     write an export to a Bigtable
//	tabletop migrate verify   compare an export with its rows in Bigtable
//	tabletop migrate lint     judge a mapping and its data by the design guides
//	tabletop migrate diff     compare two exports or tables
//	tabletop migrate reverse  write rows as an export
//
// It exits 0 when all is well and what was compared is equal, 1 when there are
// differences, 2 for a bad input, mapping or flag, and 3 when the environment
// is at fault: a port in use, a disk, a server that does not answer.
//
// Flags can also be set in the environment (TABLETOP_PROJECT for --project)
// and in a JSON or YAML file (--config). A flag takes precedence over the
// environment, and the environment over the file.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/mattn/go-isatty"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The exit codes.
const (
	exitEqual       = 0
	exitDifferences = 1
	exitBadInput    = 2 // input, mapping or flags
	exitEnvironment = 3
	exitSignaled    = 128 // and the signal's number, as a shell says it
)

// exitError is an error that knows its exit code.
type exitError struct {
	code int
	err  error // nil: everything was said already
}

// Error returns the text of the error inside.
func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

// Unwrap returns the error inside.
func (e *exitError) Unwrap() error { return e.err }

// unfinished is an error that left something half done, and how to go on.
type unfinished struct {
	err    error
	advice string
}

// Error returns the text of the error inside, and the advice.
func (u *unfinished) Error() string { return u.err.Error() + "; " + u.advice }

// Unwrap returns the error inside.
func (u *unfinished) Unwrap() error { return u.err }

func badInput(format string, args ...any) error {
	return &exitError{exitBadInput, fmt.Errorf(format, args...)}
}

// commonFlags are those of every command.
type commonFlags struct {
	Config  kong.ConfigFlag  `help:"Read flags from a JSON or YAML file ($$TABLETOP_CONFIG)." placeholder:"FILE" env:"-"`
	Version kong.VersionFlag `help:"Print the version and exit." env:"-"`
}

// command is the command line.
type command struct {
	commonFlags

	Serve   serveCommand `cmd:"" help:"Serve a Bigtable and a DynamoDB over the same rows."`
	Ctl     ctlCommand   `cmd:"" help:"Control a server that runs with --console: snapshots, clock, faults, requests."`
	Demo    demoCommand  `cmd:"" help:"Run the shipped fixtures end to end and show the results."`
	Migrate struct {
		Infer   inferCommand   `cmd:"" help:"Find a lossless mapping for a DynamoDB export."`
		Plan    planCommand    `cmd:"" help:"Show what a load would create, and where each attribute goes."`
		Load    loadCommand    `cmd:"" help:"Write a DynamoDB export as Bigtable rows."`
		Verify  verifyCommand  `cmd:"" help:"Compare a DynamoDB export with its Bigtable rows, in a private store or as another loader wrote them."`
		Lint    lintCommand    `cmd:"" help:"Check a mapping, its data and access patterns against the design guides."`
		Diff    diffCommand    `cmd:"" help:"Compare two inputs, two tables, or an input with a table."`
		Reverse reverseCommand `cmd:"" help:"Write Bigtable rows as a DynamoDB export, ready for import."`
	} `cmd:"" help:"Move DynamoDB data to Bigtable and verify the result."`
}

// serveAlone is the command line of which serve is all that matters: reading
// the flags of all commands costs more than opening a store.
type serveAlone struct {
	commonFlags

	Serve serveCommand `cmd:"" help:"Serve a Bigtable and a DynamoDB over the same rows."`
}

// grammar returns what args are to be parsed by. A configuration file may name
// the flags of any command, and is checked against all.
func grammar(args []string) any {
	isConfig := func(arg string) bool { return strings.HasPrefix(arg, "--config") }
	if len(args) > 0 && args[0] == "serve" && !slices.ContainsFunc(args, isConfig) {
		return &serveAlone{}
	}
	return &command{}
}

// program is what a command has of the world around it.
type program struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	// progress and color say whether a person watches stderr and stdout.
	progress, color bool
	// alone says that the process is there for this program, which may set up
	// what belongs to the process.
	alone bool
}

func main() {
	p := &program{
		stdin:    os.Stdin,
		stdout:   os.Stdout,
		stderr:   os.Stderr,
		progress: isatty.IsTerminal(os.Stderr.Fd()),
		color:    isatty.IsTerminal(os.Stdout.Fd()) && os.Getenv("NO_COLOR") == "",
		alone:    true,
	}
	deaf := signal.Ignored(os.Interrupt) // as of a command in the background of a script
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() {
		stop()    // a second signal ends the process at once
		if deaf { // to ignore it again is not to end
			again := make(chan os.Signal, 1)
			signal.Notify(again, os.Interrupt)
			<-again
			os.Exit(exitSignaled + int(syscall.SIGINT))
		}
	})
	code := p.run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// output is a writer that keeps its first error, so that what prints need not look.
type output struct {
	io.Writer
	err error
}

// Write writes, unless a write before it failed.
func (o *output) Write(text []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.Writer.Write(text)
	o.err = err
	return n, err
}

// run runs a command line and returns the exit code. What was to be printed and
// could not be is a fault of the environment: nobody has read it.
func (p *program) run(ctx context.Context, args []string) int {
	out := &output{Writer: p.stdout}
	p.stdout = out
	code := p.command(ctx, args)
	if out.err != nil {
		return p.fail(fmt.Errorf("standard output: %w", out.err))
	}
	return code
}

// exited is the exit code with which kong ends --help and --version.
type exited int

// parser returns what parses a command line by a grammar.
func (p *program) parser(ctx context.Context, grammar any) (*kong.Kong, error) {
	return kong.New(grammar,
		kong.Name("tabletop"),
		kong.Description("Cloud Bigtable on a desk, with a DynamoDB endpoint."),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.DefaultEnvars(environmentPrefix),
		kong.Configuration(loadConfig),
		kong.Vars{"version": version()},
		kong.Writers(p.stdout, p.stderr),
		kong.Exit(func(code int) { panic(exited(code)) }),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(p),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(decodeDuration)),
		kong.TypeMapper(reflect.TypeFor[listenAddress](), kong.MapperFunc(decodeListenAddress)),
	)
}

// command runs a command line, and returns the exit code if all can be printed.
func (p *program) command(ctx context.Context, args []string) (code int) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(exited)
			if !ok {
				panic(r)
			}
			code = int(e)
		}
	}()
	if file := os.Getenv(configVariable); file != "" {
		args = append([]string{"--config", file}, args...) // a later --config wins
	}
	parser, err := p.parser(ctx, grammar(args))
	if err != nil {
		return p.fail(err)
	}
	if err := p.warnOfEnvironment(ctx, parser); err != nil {
		return p.fail(err)
	}
	parsed, err := parser.Parse(arranged(args))
	if err != nil {
		code := exitBadInput
		if known, ok := errors.AsType[*exitError](err); ok {
			code = known.code
		}
		return p.fail(&exitError{code, err})
	}
	if err := parsed.Run(); err != nil {
		if ctx.Err() != nil && (errors.Is(err, context.Canceled) || status.Code(err) == codes.Canceled) {
			text := "interrupted"
			if u, ok := errors.AsType[*unfinished](err); ok {
				text += "; " + u.advice
			}
			err = errors.New(text)
		}
		return p.fail(err)
	}
	return exitEqual
}

// exitCode is the exit code of a command that ends with err.
func exitCode(err error) int {
	if err == nil {
		return exitEqual
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	return exitEnvironment
}

// fail reports err on stderr and returns its exit code.
func (p *program) fail(err error) int {
	code := exitCode(err)
	if e, ok := errors.AsType[*exitError](err); ok && e.err == nil {
		return code
	}
	text := err.Error()
	if parse, ok := errors.AsType[*kong.ParseError](err); ok && parse.Context != nil {
		text = usageOf(parse)
	}
	_, _ = fmt.Fprintf(p.stderr, "tabletop: %s\n", text)
	return code
}

func version() string {
	v := "(unknown)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		v = info.Main.Version
	}
	return fmt.Sprintf("tabletop %s %s %s/%s", v, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
