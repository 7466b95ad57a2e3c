// Command tabletop runs a Bigtable and a DynamoDB over the same rows on this machine, and
// moves DynamoDB data to Bigtable and verifies it.
//
//	tabletop serve            both endpoints, for any language
//	tabletop dynamodb-local   the DynamoDB endpoint with the flags of DynamoDB Local
//	tabletop ctl              control such a server: snapshots, clock, faults
//	tabletop healthcheck      check whether such a server answers
//	tabletop sql              query tables and views, or open a prompt
//	tabletop demo             the shipped fixtures, end to end
//	tabletop migrate infer    find a mapping for an export
//	tabletop migrate plan     show what a load would create, and what survives
//	tabletop migrate load     write an export to a Bigtable
//	tabletop migrate verify   compare an export with its rows in Bigtable
//	tabletop migrate lint     check a mapping and its data against the design guides
//	tabletop migrate diff     compare two exports or tables
//	tabletop migrate reverse  write rows as an export
//	tabletop migrate follow   apply the changes of live tables
//	tabletop migrate status   show the migrations from live tables
//	tabletop migrate finish   end the migration of a live table
//	tabletop help             describe a command and its flags, or print a document
//	tabletop version          print the version
//	tabletop completion       print a script that completes command lines
//
// It exits 0 on success and if the compared data is equal, 1 if there are
// differences or only a part of the work could be done, 2 for a bad input,
// mapping or flag, and 3 for a fault of the environment: a port in use, a full
// disk, a server that does not answer.
//
// Flags can also be set in the environment (TABLETOP_PROJECT for --project)
// and in a JSON or YAML file (--config). A flag takes precedence over the
// environment, and the environment over the file.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"runtime"
	"runtime/debug"
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
	exitDifferences = 1 // also: only a part of the work could be done
	exitBadInput    = 2 // input, mapping or flags
	exitEnvironment = 3
	exitSignaled    = 128 // plus the signal's number, as in a shell
)

// exitError is an error with its exit code.
type exitError struct {
	code int
	err  error // nil: already reported
}

// Error returns the text of the wrapped error.
func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

// Unwrap returns the wrapped error.
func (e *exitError) Unwrap() error { return e.err }

// unfinished is the error of interrupted work, with advice on how to continue.
type unfinished struct {
	err    error
	advice string
}

// Error returns the text of the wrapped error, and the advice.
func (u *unfinished) Error() string { return u.err.Error() + "; " + u.advice }

// Unwrap returns the wrapped error.
func (u *unfinished) Unwrap() error { return u.err }

func badInput(format string, args ...any) error {
	return &exitError{exitBadInput, fmt.Errorf(format, args...)}
}

// program is the environment of a command.
type program struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	// progress and color report whether stderr and stdout are terminals.
	progress, color bool
	// terminal reports whether stdin and stdout are both terminals.
	terminal  bool
	configDir string // of the user; "" if it is unset
	helpWidth int    // in columns; 0 is the width of a file
	// alone means that the process runs only this program, which may change settings of the
	// process.
	alone bool
	// sleep makes the waits of migrations: those before a retry, between two polls, and for other
	// processes to notice a change. It ends early with the error of ctx. nil waits by the clock.
	sleep func(ctx context.Context, d time.Duration) error
}

func main() {
	configDir, _ := os.UserConfigDir() // an error returns ""
	p := &program{
		configDir: configDir,

		stdin:    os.Stdin,
		stdout:   os.Stdout,
		stderr:   os.Stderr,
		progress: isatty.IsTerminal(os.Stderr.Fd()),
		color:    isatty.IsTerminal(os.Stdout.Fd()) && os.Getenv("NO_COLOR") == "",
		terminal: isatty.IsTerminal(os.Stdin.Fd()) && isatty.IsTerminal(os.Stdout.Fd()),
		alone:    true,

		helpWidth: helpWidth(int(os.Stdout.Fd())),
	}
	deaf := signal.Ignored(os.Interrupt) // as for a background command of a script
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() {
		stop()    // a second signal ends the process at once
		if deaf { // ignoring it again would not end it
			again := make(chan os.Signal, 1)
			signal.Notify(again, os.Interrupt)
			<-again
			os.Exit(exitSignaled + int(syscall.SIGINT))
		}
	})
	code := p.runAs(ctx, os.Args)
	stop()
	os.Exit(code)
}

// output is a writer that keeps its first error, so that callers need not check.
type output struct {
	io.Writer
	err error
}

// Write writes, unless an earlier write failed.
func (o *output) Write(text []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.Writer.Write(text)
	o.err = err
	return n, err
}

// run runs a command line and returns the exit code. Output that could not be written is a
// fault of the environment.
func (p *program) run(ctx context.Context, args []string) int {
	out := &output{Writer: p.stdout}
	p.stdout = out
	code := p.command(ctx, args)
	if out.err != nil {
		return p.fail(fmt.Errorf("standard output: %w", out.err))
	}
	return code
}

// newParser returns a parser for a command, or with "" for all commands.
func newParser(name string) (*kong.Kong, error) {
	return kong.New(grammar(name),
		kong.Name("tabletop"),
		kong.Description("Cloud Bigtable on your desk, with a DynamoDB endpoint."),
		kong.NoDefaultHelp(),
		kong.DefaultEnvars(environmentPrefix),
		kong.Configuration(loadConfig),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(decodeDuration)),
		kong.TypeMapper(reflect.TypeFor[listenAddress](), kong.MapperFunc(decodeListenAddress)),
	)
}

// command runs a command line, and returns the exit code, provided that its output can be
// printed.
func (p *program) command(ctx context.Context, args []string) int {
	if len(args) > 0 && args[0] == completeArgument {
		if err := p.complete(args[1:]); err != nil {
			return p.fail(err)
		}
		return exitEqual
	}
	if file := os.Getenv(configVariable); file != "" {
		args = append([]string{"--config", file}, args...) // a later --config wins
	}
	parser, err := newParser(commandOf(args))
	if err != nil {
		return p.fail(err)
	}
	if err := p.warnOfEnvironment(parser); err != nil {
		return p.fail(err)
	}
	parsed, err := p.parse(parser, arranged(args))
	if err != nil {
		if _, known := errors.AsType[*exitError](err); !known {
			err = &exitError{exitBadInput, err}
		}
		return p.fail(err)
	}
	if err := p.runParsed(ctx, parsed); err != nil {
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

// exitCode returns the exit code for err.
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
	if parse, ok := errors.AsType[*parseError](err); ok {
		u := usageOf(parse)
		if text = u.String(); u.noCommand() {
			p.printHelp(p.stderr, u.node, false)
			_, _ = fmt.Fprintln(p.stderr)
		}
	}
	_, _ = fmt.Fprintf(p.stderr, "tabletop: %s\n", text)
	return code
}

// version returns the version, the commit unless the version has it, the Go release and the
// platform.
func version() string {
	v := "(unknown)"
	if info, ok := debug.ReadBuildInfo(); ok {
		v = cmp.Or(info.Main.Version, v)
		for _, s := range info.Settings {
			if commit := s.Value[:min(len(s.Value), 12)]; s.Key == "vcs.revision" && !strings.Contains(v, commit) {
				v += " " + commit
			}
		}
	}
	return fmt.Sprintf("tabletop %s %s %s/%s", v, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
