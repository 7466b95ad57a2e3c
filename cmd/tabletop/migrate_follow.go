package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/kong"

	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/stream"
)

// liveTargetFlags name the Bigtable of a migration from a live table.
type liveTargetFlags struct {
	Target string `help:"The Bigtable with the loaded tables. Default: $$BIGTABLE_EMULATOR_HOST." placeholder:"HOST:PORT|projects/P/instances/I" group:"Bigtable:"`
	connectFlags
}

// checkLiveTarget uses the target of the environment, and rejects an invalid one.
func (f *liveTargetFlags) checkLiveTarget() error {
	if f.Target == "" {
		if f.Target = environmentTarget(); f.Target == "" {
			return errors.New("name the Bigtable: --target HOST:PORT, or BIGTABLE_EMULATOR_HOST in the environment")
		}
	}
	return checkTarget("--target", f.Target)
}

// common returns the options of calls to the target.
func (f *liveTargetFlags) common(p *program, t *target) migrate.Common {
	o := p.common(nil)
	o.Project, o.Instance, o.Deadline, o.AppProfile = t.project, t.instance, f.deadline(f.Target), f.AppProfile
	return o
}

type followCommand struct {
	Tables     []string       `arg:"" optional:"" help:"The DynamoDB tables to follow. Default: all loaded tables whose migration has not ended." placeholder:"TABLE"`
	Until      string         `default:"never" help:"When to end: at a time, never, or at the tip, which is when all writes before the start are applied. Default: ${default}." placeholder:"tip|TIME|never" group:"Follow:"`
	Since      string         `help:"A time before the loaded items were read. Required if the loaded source records no time; rejected otherwise." placeholder:"RFC3339" group:"Follow:"`
	Apply      string         `enum:"auto,guarded,ordered" default:"auto" help:"How to write changes: guarded checks and writes one row in each request; ordered writes many rows in each request, and allows no other writer; auto is ordered while more than a minute behind, else guarded. Default: ${default}." placeholder:"auto|guarded|ordered" group:"Follow:" rare:""`
	Increments string         `help:"Apply the incremental exports that arrive in this folder, in the order of their times. Default: follow the streams of the tables." placeholder:"DIR" group:"Follow:"`
	KinesisDir string         `name:"kinesis-dir" help:"Apply the records of a Kinesis data stream, which another program appends to files of JSON lines in this folder. Default: follow the streams of the tables." placeholder:"DIR" group:"Follow:"`
	AcceptTies bool           `help:"With --kinesis-dir, also accept times in whole milliseconds. If the order of two changes is unknown, the item is read from the source that --dynamodb-endpoint or --region names." group:"Follow:" rare:""`
	Allowance  *time.Duration `help:"With --kinesis-dir, how long after a newer record an older one may arrive. Default: 10s." placeholder:"DURATION" group:"Follow:" rare:""`
	DeadLetter string         `help:"If changes cannot be applied, append them to this file (key, reason, item), and apply the rest. Default: the first such change ends the command." placeholder:"FILE" group:"Follow:"`

	MaxRowsPerSecond int    `help:"Write at most this many rows per second. Default: no limit." placeholder:"N" group:"Follow:"`
	ThrottleFile     string `help:"While this file exists, apply no changes; if it has a number N above 0, write at most N rows per second. It is read once a second." placeholder:"FILE" group:"Follow:" rare:""`
	liveSourceFlags
	liveTargetFlags

	untilTime, sinceTime time.Time
}

// The values of --until beside a time.
const (
	untilTip   = "tip"
	untilNever = "never"
)

// validate checks the flags.
func (c *followCommand) validate(*kong.Context) error {
	var wrong []error
	for _, f := range []struct {
		flag, text string
		into       *time.Time
	}{{"--until", c.Until, &c.untilTime}, {"--since", c.Since, &c.sinceTime}} {
		if f.text == "" || f.flag == "--until" && (f.text == untilTip || f.text == untilNever) {
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, f.text)
		if *f.into = at; err != nil {
			also := ""
			if f.flag == "--until" {
				also = "tip, never or "
			}
			wrong = append(wrong, fmt.Errorf("%s: %q must be %sa time such as 2024-05-14T11:14:20Z", f.flag, f.text, also))
		}
	}
	if c.MaxRowsPerSecond < 0 {
		wrong = append(wrong, fmt.Errorf("--max-rows-per-second: %d must not be negative", c.MaxRowsPerSecond))
	}
	return errors.Join(append(append(wrong, c.checkSource()...), c.checkDynamoDB(), c.checkLiveTarget())...)
}

// checkSource rejects flags that do not fit the source.
func (c *followCommand) checkSource() (wrong []error) {
	named := c.DynamoDBEndpoint != "" || c.Region != ""
	for _, x := range []struct {
		bad  bool
		text string
	}{
		{c.Increments != "" && c.KinesisDir != "", "--increments and --kinesis-dir cannot be combined"},
		{c.Increments != "" && named, "--increments needs no DynamoDB: leave out --dynamodb-endpoint and --region"},
		{c.KinesisDir == "" && c.AcceptTies, "--accept-ties needs --kinesis-dir"},
		{c.KinesisDir == "" && c.Allowance != nil, "--allowance needs --kinesis-dir"},
		{c.Allowance != nil && *c.Allowance <= 0, "--allowance must be a positive duration such as 10s"},
		{c.KinesisDir != "" && c.Apply == "ordered", "--apply ordered needs changes in their order, and the records of a Kinesis data stream have none: leave it out"},
	} {
		if x.bad {
			wrong = append(wrong, errors.New(x.text))
		}
	}
	return wrong
}

// Help is the long help of the command.
func (*followCommand) Help() string {
	return `Reads the changes of live DynamoDB tables from their streams, and applies them to the Bigtable tables into which an export was loaded. The streams must have been enabled a minute before the export, with the view NEW_AND_OLD_IMAGES. Credentials are those of the AWS configuration.

With --increments or --kinesis-dir the changes come from files instead, and AWS is not called. Another run may use another source, if that has all changes since the watermark (migrate status --json).

The progress is in the table _migration_state of the target, so the command continues from there when it is started again. One process at a time follows a table; after a crash the next one waits 15 seconds for the end of its lease. Meanwhile DynamoDB endpoints refuse writes to the Bigtable tables; migrate finish ends that. migrate status shows the lag.

Exits 0 if it reaches the end that --until names, or is interrupted; 1 if a change cannot be applied, except with --dead-letter; 2 if a table cannot be followed: it was not loaded, its stream lacks records, or another process follows it; 3 if a server or this machine fails.`
}

func (*followCommand) examples() []example {
	return []example{
		{"Follow all loaded tables of AWS", "tabletop migrate follow --target projects/P/instances/I"},
		{"Two servers on this machine, until all writes so far are applied", "tabletop migrate follow Orders --dynamodb-endpoint http://127.0.0.1:8000 --target 127.0.0.1:8087 --until tip"},
		{"Incremental exports, as they are copied into a folder", "tabletop migrate follow Orders --increments exports --target projects/P/instances/I"},
		{"Records of a Kinesis data stream", "tabletop migrate follow Orders --kinesis-dir records --target projects/P/instances/I"},
	}
}

// Run follows the tables.
func (c *followCommand) Run(ctx context.Context, k *kong.Context, p *program) error {
	relaxGC(followGoal)
	var clients stream.Clients
	var items stream.ItemClient
	if files := c.Increments != "" || c.KinesisDir != ""; !files || c.DynamoDBEndpoint != "" || c.Region != "" {
		tables, live, err := c.connectDynamoDB(ctx)
		if err != nil {
			return err
		}
		clients, items = live, tables
	}
	return c.withTarget(ctx, "--target", c.Target, func(t *target) (err error) {
		if err := c.look(ctx, c.Target, t, false); err != nil {
			return err
		}
		progress := &followLog{p: p, last: map[string]migrate.FollowStatus{}}
		o := migrate.FollowOptions{
			Common: c.common(p, t), Tables: c.Tables, Source: clients, Items: items, Owner: owner(), Version: version(), Mode: c.Apply,
			Flags: shellFlags(k, []string{"Follow:"}, "until"), SourceFlags: shellFlags(k, []string{"Live table:"}),
			Since: c.sinceTime, UntilTip: c.Until == untilTip, Until: c.untilTime, Report: progress.report,
			Warn:       progress.say,
			Increments: c.Increments, KinesisDir: c.KinesisDir, AcceptTies: c.AcceptTies,
		}
		if c.Allowance != nil {
			o.Allowance = *c.Allowance
		}
		o.MaxRowsPerSecond = c.MaxRowsPerSecond
		if c.ThrottleFile != "" {
			o.Throttle = (&throttleFile{name: c.ThrottleFile, say: o.Warn}).read
		}
		var refused *counted
		if c.DeadLetter != "" {
			file, openErr := os.OpenFile(c.DeadLetter, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			if openErr != nil {
				return badInput("--dead-letter: %w", openErr)
			}
			defer func() { err = errors.Join(err, file.Close()) }()
			refused = &counted{w: file}
			o.DeadLetter = refused
		}
		began := time.Now()
		err = migrate.Follow(ctx, t.conn, o)
		if err == nil {
			progress.end(time.Since(began))
		}
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			err = nil
			_, _ = fmt.Fprintln(p.stderr, "tabletop: interrupted; the same command continues")
		}
		if refused != nil && refused.n > 0 {
			_, _ = fmt.Fprintf(p.stderr, "tabletop: %s could not be applied: see %s\n", phrase.Counted(int64(refused.n), "change"), c.DeadLetter)
		}
		return followError(err)
	})
}

// throttleFile is the file of --throttle-file, for several tables.
type throttleFile struct {
	name string
	say  func(text string)

	mu   sync.Mutex
	said string // the last message
}

// read returns the rows per second in the file: 0, even for a file without a valid number, is a pause.
// ok is false without a file. It calls say if the result differs from the last one.
func (f *throttleFile) read() (rowsPerSecond int, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	text, err := os.ReadFile(f.name)
	rate := strings.TrimSpace(string(text))
	message := ""
	switch n, wrong := strconv.Atoi(rate); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		message, ok = fmt.Sprintf("no changes are applied: %v", err), true
	case rate == "" || n == 0 && wrong == nil:
		message, ok = "no changes are applied while the file exists", true
	case wrong != nil || n < 0:
		message, ok = fmt.Sprintf("no changes are applied: %.20q is not a number of rows per second", rate), true
	default:
		message, ok, rowsPerSecond = fmt.Sprintf("at most %s per second", phrase.Counted(int64(n), "row")), true, n
	}
	if message != f.said {
		f.said = message
		f.say(fmt.Sprintf("--throttle-file %s: %s", f.name, cmp.Or(message, "gone, changes are applied again")))
	}
	return rowsPerSecond, ok
}

// counted counts the writes to w, each of one line.
type counted struct {
	w io.Writer
	n int
}

func (c *counted) Write(text []byte) (int, error) {
	c.n++
	return c.w.Write(text)
}

// followError adds the exit code to an error of Follow or VerifyLive.
func followError(err error) error {
	if refused, ok := errors.AsType[*migrate.RefusedChange](err); ok {
		return &exitError{exitDifferences, refused}
	}
	if of, ok := errors.AsType[*stream.Error](err); ok {
		if of.Kind == stream.Unanswered || of.Kind == stream.Refused || of.Kind == stream.BadRecord {
			return &exitError{exitEnvironment, of}
		}
		return &exitError{exitBadInput, of}
	}
	return asInputError(err)
}

// owner names this process in a lease.
func owner() string {
	name, host := "unknown", "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	// Containers may have equal names and numbers.
	return fmt.Sprintf("%s@%s %d %s", name, host, os.Getpid(), strings.ToLower(rand.Text()[:6]))
}

// followLog shows the progress: on a terminal in one line, else in a line every progressEvery.
type followLog struct {
	p *program

	mu    sync.Mutex
	last  map[string]migrate.FollowStatus
	lines map[string]time.Time // when a line of the table was written
}

// end prints the result of each table.
func (l *followLog) end(spent time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.p.progress {
		_, _ = fmt.Fprint(l.p.stderr, clearLine)
	}
	for _, table := range slices.Sorted(maps.Keys(l.last)) {
		s := l.last[table]
		_, _ = fmt.Fprintf(l.p.stdout, "%s: %s applied, %s, all writes before %s, in %v\n", table, phrase.Counted(s.Changes-s.Refused, "change"),
			phrase.Counted(s.Refused, "dead letter"), s.Watermark.UTC().Format(time.RFC3339), spent.Round(100*time.Millisecond))
	}
}

func (l *followLog) report(s migrate.FollowStatus) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last[s.Table] = s
	text := fmt.Sprintf("following %s: %s, %.0f a second", s.Table, phrase.Counted(s.Changes, "change"), s.Rate)
	if s.Lag >= 0 { // else the source has not answered yet
		text += ", lag " + lagText(s.Lag)
	}
	if l.p.progress {
		_, _ = fmt.Fprint(l.p.stderr, inPlace(text))
		return
	}
	if l.lines == nil {
		l.lines = map[string]time.Time{}
	}
	if now := time.Now(); now.Sub(l.lines[s.Table]) >= progressEvery {
		l.lines[s.Table] = now
		_, _ = fmt.Fprintf(l.p.stderr, "tabletop: %s\n", text)
	}
}

// say writes a line of its own.
func (l *followLog) say(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.p.progress {
		_, _ = fmt.Fprint(l.p.stderr, clearLine)
	}
	_, _ = fmt.Fprintf(l.p.stderr, "tabletop: %s\n", text)
}

// lagText writes a lag; unknown if it is negative.
func lagText(lag time.Duration) string {
	if lag < 0 {
		return "unknown"
	}
	return lag.Round(100 * time.Millisecond).String()
}

type finishCommand struct {
	Table   string `arg:"" help:"The DynamoDB table." placeholder:"TABLE"`
	Abandon bool   `help:"End the migration even if changes of the source are not applied." group:"Bigtable:"`
	liveTargetFlags
}

// validate checks the flags.
func (c *finishCommand) validate(*kong.Context) error { return c.checkLiveTarget() }

// Help is the long help of the command.
func (*finishCommand) Help() string {
	return `Ends the migration of a live table: from then on DynamoDB endpoints accept writes to the Bigtable table. Deletes the positions of changes (family _m) and the checkpoints; the history of the migration stays. Refused while a process follows the table; after a crash of that process, waits 15 seconds for the end of its lease. Without --abandon, also refused in the phase CATCHING_UP and while dead letters remain. Loads into the table stay refused. Freeze the source and apply its last changes first: migrate follow TABLE --until tip.

Exits 0 if the migration has ended, 2 if it is refused or the table was never followed, 3 if a server fails.`
}

func (*finishCommand) examples() []example {
	return []example{{"After the last changes are applied", "tabletop migrate finish Orders --target 127.0.0.1:8087"}}
}

// Run ends the migration.
func (c *finishCommand) Run(ctx context.Context, p *program) error {
	return c.withTarget(ctx, "--target", c.Target, func(t *target) error {
		if err := migrate.EndFollow(ctx, t.conn, c.Table, owner(), c.Abandon, c.common(p, t)); err != nil {
			return asInputError(err)
		}
		_, _ = fmt.Fprintf(p.stdout, "the migration of table %s has ended: its Bigtable table accepts writes\n", c.Table)
		return nil
	})
}
