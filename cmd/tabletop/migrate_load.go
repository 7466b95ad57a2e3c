package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/preflight"
	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

type loadCommand struct {
	sourceFlags
	lintFlags
	Target string `help:"Bigtable to write to: an emulator (plain gRPC, or TLS with --ca), Cloud Bigtable, or embedded (in memory, discarded at the end). Default: $$BIGTABLE_EMULATOR_HOST." placeholder:"HOST:PORT|projects/P/instances/I|embedded" group:"Bigtable:"`
	Data   string `help:"Write to the data folder of a server that is not running." placeholder:"DIR" group:"Bigtable:"`
	Check  bool   `help:"Check that the target can be used (instance, app profile, permissions, clock, families of the tables of --mapping and of their indexes, queries of their views), print the result, and load nothing. Exits 0 if it can be used, 3 if not." group:"Bigtable:"`
	connectFlags
	DeadLetter string `help:"If items cannot be loaded, write them here (position in the source, reason, contents) and load the rest. Default: the first such item fails the whole load." placeholder:"FILE" group:"Load:"`
	Checkpoint string `help:"File that records the progress of the load. A load that finds it resumes from there; a complete load removes it. With --part and --finish, the folder that all parts share." placeholder:"FILE" group:"Load:"`
	Tablets    *int   `help:"Split new tables into N tablets at row keys of the data, so that several servers share the load from the start. Default: 1." placeholder:"N" group:"Load:" rare:""`
	Remap      bool   `help:"Load into a table that has cells of the same items from another mapping, and keep those cells; reads may find both. Default: this is an error." group:"Load:" rare:""`
	Mix        bool   `help:"Load into a table that another source was loaded into (a later full export, or a source without a time). Items keep the attributes of both sources. Default: this is an error." group:"Load:" rare:""`
	KeepWrites bool   `help:"Load into a table to which a DynamoDB endpoint has written since the last load. The items that it wrote stay unchanged; the items that it deleted come back. Default: this is an error." group:"Load:" rare:""`
	partFlags
}

// validate takes a missing target from the environment, and checks combinations of flags.
func (c *loadCommand) validate(args *kong.Context) error {
	if c.Target != "" && c.Data != "" {
		return errors.New("--target and --data cannot be combined")
	}
	if c.Target == "" && c.Data == "" {
		if c.Target = environmentTarget(); c.Target == "" {
			return errors.New("name the Bigtable to write to: --target HOST:PORT, --data DIR, or BIGTABLE_EMULATOR_HOST in the environment")
		}
	}
	var wrong error
	if c.Target != "" && c.Target != targetEmbedded {
		wrong = checkTarget("--target", c.Target)
	}
	if c.Check && (c.Data != "" || c.Target == targetEmbedded) {
		wrong = errors.Join(wrong, errors.New("--check needs a --target that is not embedded"))
	}
	if c.Tablets != nil && (*c.Tablets < 1 || *c.Tablets > maxTablets) {
		wrong = errors.Join(wrong, fmt.Errorf("--tablets is %d, want 1 to %d", *c.Tablets, maxTablets))
	}
	if err := errors.Join(wrong, c.sourceFlags.validate(args), c.validateFailOn(), c.validateParts(c.Checkpoint, c.FailOn != "" || c.Rules != "")); err != nil {
		return err
	}
	outputs := append(reportOutputs(c.Report), namedFile{flag: "--dead-letter", name: c.DeadLetter, whole: true})
	if !c.partly() {
		outputs = append(outputs, namedFile{flag: "--checkpoint", name: c.Checkpoint, whole: true})
	}
	return checkOutputs(outputs, slices.Concat(c.sourceFlags.inputs(), c.lintFlags.inputs(), c.connectFlags.inputs()))
}

// maxTablets bounds the tablets of a new table.
const maxTablets = 1000

// Help returns the long help of the command.
func (*loadCommand) Help() string {
	return `Creates the tables and writes the rows that the mapping describes. It checks the whole input first: if the input is damaged, it creates nothing, not even a folder. A repeated load writes nothing, and reports the number of existing cells. Incremental exports next to the full one update a loaded table: items that they delete are removed, with their index entries. Load rejects a table to which a DynamoDB endpoint has written since, or into which later exports were loaded. It also rejects a table whose cells are newer than those of the source, since reads would not return the loaded cells: for example, a source without a time over an export. It compares nothing: verify --against does that.

Exits 0 if everything is loaded, 1 if there are dead letters, 2 if the input or the mapping is wrong, 3 if a server or this machine fails.`
}

func (*loadCommand) examples() []example {
	return []example{
		{"Load into a local server", "tabletop migrate load export --mapping orders.yaml --target 127.0.0.1:8086"},
		{"Check Cloud Bigtable before the load", "tabletop migrate load export --mapping orders.yaml --target projects/shop/instances/main --check"},
		{"Load so that an interrupted load can resume", "tabletop migrate load export --mapping orders.yaml --target projects/shop/instances/main --checkpoint load.progress"},
	}
}

// place identifies the target Bigtable, for the checkpoint.
func (c *loadCommand) place() string {
	if c.Data != "" {
		return "data " + absolute(c.Data)
	}
	return strings.TrimSpace("target " + c.Target + " " + c.Endpoint)
}

// interrupted adds advice on how to continue to the error of an interrupted load.
func (c *loadCommand) interrupted(err error) error {
	if exitCode(err) == exitBadInput || c.Target == targetEmbedded {
		return err
	}
	if c.partly() {
		return &unfinished{err, "the folder " + c.Checkpoint + " is kept: run the same command to continue from there"}
	}
	advice := "the checkpoint " + c.Checkpoint + " is kept: run the same command to continue from there"
	if c.Checkpoint == "" {
		advice = "run the same command again to write the missing rows (with --checkpoint FILE, a load resumes where it stopped)"
	} else if _, statErr := os.Stat(c.Checkpoint); statErr != nil { // not reached
		advice = "the load had not reached its first checkpoint: run the same command to start again"
	}
	return &unfinished{err, advice}
}

// patience is the time before an unanswered call is reported.
const patience = 2 * time.Second

// reportWaits sets the callback *into. It prints a message when a call to place has to wait, after
// done has ended the display of progress. work names the command in the message.
func (p *program) reportWaits(into *func(migrate.Wait), place, work string, done func()) {
	*into = func(w migrate.Wait) {
		if text := waiting(place, work, w, time.Now()); text != "" {
			done()
			_, _ = fmt.Fprintf(p.stderr, "tabletop: %s\n", text)
		}
	}
}

// waiting returns the message for the wait w: for each deadline that passed, and otherwise once per
// request, when its waits add up to patience. It returns "" for other waits.
func waiting(place, work string, w migrate.Wait, now time.Time) string {
	if _, late := errors.AsType[*btclient.DeadlineError](w.Err); late { // its deadline was a wait already
		return fmt.Sprintf("%s does not respond (%v): retrying; Ctrl-C stops the %s", place, w.Err, work)
	}
	if w.Spent >= patience || w.Spent+w.Next < patience {
		return ""
	}
	return fmt.Sprintf("%s fails (%v): retrying for %v more, until %s; Ctrl-C stops the %s",
		place, w.Err, w.Left.Round(time.Second), now.Add(w.Left).Format(time.TimeOnly), work)
}

// Run loads the source.
func (c *loadCommand) Run(ctx context.Context, p *program) (err error) {
	relaxGC(memoryGoal)
	src, mappings, err := c.open(c.mappingFlags)
	if err != nil {
		return err
	}
	if c.Part.Of > 0 && !c.Check {
		release, lockErr := lockPart(c.Checkpoint, "load", c.Part.Part)
		if lockErr != nil {
			return lockErr
		}
		defer release()
	}
	if c.Check {
		return c.withTarget(ctx, "--target", c.Target, func(t *target) error {
			return p.check(ctx, preflight.Options{
				Conn: t.conn, Project: t.project, Instance: t.instance, AppProfile: c.AppProfile,
				Tables: tablesOf(mappings), Views: viewsOf(mappings), Now: time.Now, Deadline: c.deadline(c.Target),
			}, "a load")
		})
	}
	o := migrate.LoadOptions{Common: p.common(mappings)}
	o.Project, o.Instance, o.Checkpoint, o.Target, o.Remap, o.Mix = c.Project, c.Instance, c.Checkpoint, c.place(), c.Remap, c.Mix
	o.KeepWrites = c.KeepWrites
	o.Deadline, o.AppProfile = c.deadline(c.Target), c.AppProfile
	if m := cloudInstance.FindStringSubmatch(c.Target); m != nil {
		o.Project, o.Instance = m[1], m[2]
	}
	o.Part, o.Tablets, o.MaxRowsPerSecond = c.Part.Part, given(c.Tablets), given(c.MaxRowsPerSecond)
	if o.Lint, err = c.lint(); err != nil {
		return err
	}
	if c.DeadLetter != "" {
		letters, createErr := createWhole(c.DeadLetter)
		if createErr != nil {
			return fmt.Errorf("--dead-letter: %w", createErr)
		}
		defer func() {
			if code := exitCode(err); code != exitEqual && code != exitDifferences { // the load was interrupted
				letters.drop()
			} else if keepErr := letters.keep(); keepErr != nil {
				err = fmt.Errorf("--dead-letter: %w", keepErr)
			}
		}()
		o.DeadLetter = letters
	}
	done := p.showProgress(&o.Progress)
	p.reportWaits(&o.Waiting, c.place(), "load", done)
	write := func(conn grpc.ClientConnInterface) (*report.Report, error) {
		return migrate.FinishLoad(ctx, conn, src, o)
	}
	if !c.Finish {
		prepared, err := migrate.Prepare(ctx, src, o) // before a store is opened: a rejected load creates none
		done()
		if err != nil {
			return asInputError(err)
		}
		write = func(conn grpc.ClientConnInterface) (*report.Report, error) { return prepared.Load(ctx, conn) }
	}
	load := func(conn grpc.ClientConnInterface) error {
		r, err := write(conn)
		done()
		if err != nil {
			return c.interrupted(asInputError(err))
		}
		return c.finishPart(p, r, "load", c.partFlags)
	}
	if c.Data != "" {
		return withStore(c.Data, func(s *store) error { return load(s.conn()) })
	}
	return c.withTarget(ctx, "--target", c.Target, func(t *target) error {
		if err := c.look(ctx, c.Target, t, false); err != nil {
			return err
		}
		return load(t.conn)
	})
}
