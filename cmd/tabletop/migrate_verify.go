package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

type verifyCommand struct {
	sourceFlags
	lintFlags
	maxDiffsFlag
	AllowEmpty   bool   `help:"Accept an empty source. Default: an empty source is an error, because nothing would be verified." group:"Input:" rare:""`
	WriteMapping string `help:"Also write the inferred mapping to a file; {table} in its name becomes the name of each table." placeholder:"FILE" group:"Mapping:"`
	forceFlag
	Against     string         `help:"Check the rows in this Bigtable; only --live writes there. Default: a private store; with --live, $$BIGTABLE_EMULATOR_HOST." placeholder:"HOST:PORT|projects/P/instances/I" group:"Bigtable:"`
	Data        string         `help:"Like --against, for the data folder of a server that is not running." placeholder:"DIR" group:"Bigtable:"`
	Timestamps  string         `help:"How --against and --data compare the timestamps of cells: exact, order-only (for timestamps that the server chose) or ignore. Default: exact." placeholder:"exact|order-only|ignore" group:"Bigtable:" rare:""`
	AsOf        string         `name:"as-of" help:"With --against, if migrate follow has written to the rows: items that changed after this time of the source may differ; the report only counts them. export means the time of the exports." placeholder:"export|TIME" group:"Bigtable:" rare:""`
	LenientSets bool           `name:"lenient-sets" help:"With --against or --data, accept an empty cell as a member of a set; the mapping itself writes one zero byte. Default: a difference." group:"Bigtable:" rare:""`
	ViewWait    *time.Duration `name:"view-wait" help:"With --against or --data, how long to wait for the materialized views of indexes (as: view) to follow their tables. A view that still differs is a difference. Default: 30s." placeholder:"DURATION" group:"Bigtable:" rare:""`
	connectFlags
	Differential int        `help:"Also generate this many items from each mapping, at the edges of its keys and codecs, and run them through the mapping, the DynamoDB endpoint and the loader: each must come back or be rejected. Also send this many requests on such items, and compare the responses with those of a DynamoDB model." placeholder:"N" group:"Generated items:"`
	Seed         uint64     `help:"Random seed for the items and requests of --differential. Default: ${default}." default:"1" placeholder:"S" group:"Generated items:" rare:""`
	Regress      string     `help:"Save the items and requests that --differential fails on, shrunk, as a fixture folder that verify accepts as --source." placeholder:"DIR" group:"Generated items:" rare:""`
	Update       updateMode `help:"Rewrite the golden files of a fixture. Rejected if $$CI is true, except with --update=force." placeholder:"force" group:"Fixture:"`
	verifyLiveFlags
	partFlags
	Checkpoint string `help:"Folder in which --part stores its results for --finish." placeholder:"DIR" group:"Parts of the work:" rare:""`
}

// updateMode is the value of --update.
type updateMode struct{ migrate.UpdateMode }

// IsBool allows the flag without a value.
func (updateMode) IsBool() bool { return true }

// Decode reads --update or --update=force.
func (m *updateMode) Decode(ctx *kong.DecodeContext) error {
	value := "true"
	if ctx.Scan.Peek().Type == kong.FlagValueToken {
		value = fmt.Sprint(ctx.Scan.Pop().Value)
	}
	return m.Set(value)
}

// maxDiffsFlag bounds the differences that a report lists.
type maxDiffsFlag struct {
	MaxDiffs int `name:"max-diffs" help:"List at most this many differences, but at least one of each check and kind; all are counted. Default: ${default}." default:"100" placeholder:"N" group:"Report:"`
}

func (f *maxDiffsFlag) validateMaxDiffs() error {
	if f.MaxDiffs < 1 {
		return fmt.Errorf("--max-diffs is %d, want 1 or more", f.MaxDiffs)
	}
	return nil
}

// validate checks combinations of flags.
func (c *verifyCommand) validate(args *kong.Context) error {
	if c.Live {
		return c.validateLive()
	}
	if err := errors.Join(c.checkAlone(), c.sourceFlags.validate(args)); err != nil {
		return err
	}
	var mine error
	switch {
	case c.Against != "" && c.Data != "":
		mine = errors.New("--against and --data cannot be combined")
	case c.WriteMapping != "" && !c.auto():
		mine = errors.New("--write-mapping needs an inferred mapping, so it cannot be combined with --mapping")
	case c.Timestamps != "" && c.Timestamps != "exact" && c.Timestamps != "order-only" && c.Timestamps != "ignore":
		mine = fmt.Errorf("--timestamps: %q must be exact, order-only or ignore", c.Timestamps)
	case c.Timestamps != "" && !c.stored():
		mine = errors.New("--timestamps needs --against or --data: a private store has exactly the timestamps of the mapping")
	case c.AsOf != "" && c.Against == "":
		mine = errors.New("--as-of needs --against: only a server has rows that changed since the export")
	case c.AsOf != "" && (c.Timestamps != "" || c.LenientSets || c.partly()):
		mine = errors.New("--as-of cannot be combined with --timestamps, --lenient-sets, --part or --finish: it compares the times that items give their cells, and reads all")
	case c.AsOf != "" && isFixture(c.Source):
		mine = fmt.Errorf("--as-of needs an export or a file of items: %s is a fixture", c.Source)
	case c.AsOf != "" && c.AsOf != asOfExport && !isTime(c.AsOf):
		mine = fmt.Errorf("--as-of: %q must be export or a time such as 2024-05-14T11:14:20Z", c.AsOf)
	case c.LenientSets && !c.stored():
		mine = errors.New("--lenient-sets needs --against or --data: a private store has exactly the cells of the mapping")
	case c.ViewWait != nil && !c.stored():
		mine = errors.New("--view-wait needs --against or --data: the views of a private store do not lag")
	case c.ViewWait != nil && *c.ViewWait < 0:
		mine = fmt.Errorf("--view-wait is %v, want 0s or more", *c.ViewWait)
	case c.ViewWait != nil && (c.AsOf != "" || c.partly()):
		mine = errors.New("--view-wait cannot be combined with --as-of, --part or --finish: they do not compare views")
	case c.partly() && !c.stored():
		mine = fmt.Errorf("%s needs --against, --data or --live: a private store belongs to one process", c.flag())
	case c.partly() && isFixture(c.Source):
		mine = fmt.Errorf("%s: the fixture %s cannot be verified in parts", c.flag(), c.Source)
	case c.Checkpoint != "" && !c.partly():
		mine = errors.New("--checkpoint needs --part or --finish")
	case c.Differential < 0:
		mine = fmt.Errorf("--differential is %d, want 1 or more", c.Differential)
	case c.Differential > 0 && c.stored():
		mine = errors.New("--differential cannot be combined with --against or --data: it writes tables, and these write nothing")
	case c.Regress != "" && c.Differential == 0:
		mine = errors.New("--regress needs --differential N")
	case c.Update.UpdateMode != "" && !isFixture(c.Source):
		mine = fmt.Errorf("--update needs a fixture: %s has neither fixture.yaml, mapping.yaml nor a folder source", c.Source)
	case c.Update.UpdateMode != "" && c.stored():
		mine = errors.New("--update cannot be combined with --against or --data: golden files contain the rows of the mapping, not stored ones")
	default:
		mine = c.Update.Check("--update", os.Getenv("CI"))
	}
	if c.Against != "" {
		mine = errors.Join(mine, checkTarget("--against", c.Against))
	}
	if err := errors.Join(mine, c.validateFailOn(), c.validateMaxDiffs(), c.validateParts(c.Checkpoint, c.FailOn != "" || c.Rules != "")); err != nil {
		return err
	}
	outputs := append(reportOutputs(c.Report), namedFile{flag: "--write-mapping", name: c.WriteMapping})
	return checkOutputs(outputs, slices.Concat(c.sourceFlags.inputs(), c.lintFlags.inputs(), c.connectFlags.inputs()))
}

// defaultViewWait is the default of --view-wait. Cloud Bigtable updates a view within seconds.
const defaultViewWait = 30 * time.Second

// asOfExport is the value of --as-of for the time of the export.
const asOfExport = "export"

func isTime(text string) bool {
	_, err := time.Parse(time.RFC3339Nano, text)
	return err == nil
}

// stored reports whether existing rows are checked.
func (c *verifyCommand) stored() bool { return c.Against != "" || c.Data != "" }

// Help returns the long help of the command.
func (*verifyCommand) Help() string {
	return `Loads the source into a private store (in memory, or a temporary folder for a large source), reads every row back, and compares cell by cell and item by item. Finally, it opens the store again, and checks that it holds the same rows. With --against or --data, it compares existing rows with the expected ones instead; with --live, a live DynamoDB table with its Bigtable table. It also checks the golden files and access patterns of a fixture folder. Cells that garbage collection would remove count as differences, unless the mapping's accept_loss names them (what: retention). The report counts sidecar cells by kind: they hold values that the mapping's types cannot express.

Exits 0 if everything is equal, 1 if something differs, 2 if the input or the mapping is wrong, 3 if a server or this machine fails.`
}

func (*verifyCommand) examples() []example {
	return []example{
		{"Check that a mapping loses nothing of an export", "tabletop migrate verify export --mapping orders.yaml"},
		{"Check that a load into Cloud Bigtable is complete", "tabletop migrate verify export --mapping orders.yaml --against projects/shop/instances/main"},
		{"Compare a live table with its Bigtable table while writes continue", "tabletop migrate verify --live --table Orders --against 127.0.0.1:8087"},
		{"Write a report for a browser, and one for a build server", "tabletop migrate verify export --report html=report.html --report junit=report.xml"},
	}
}

// Run verifies the source.
func (c *verifyCommand) Run(ctx context.Context, p *program) error {
	relaxGC(memoryGoal)
	if c.Live {
		return c.runLive(ctx, p)
	}
	in, mappings, tables, err := c.input()
	if err != nil {
		return err
	}
	if tables > 1 && c.WriteMapping != "" && !strings.Contains(c.WriteMapping, tableInName) {
		return badInput("--write-mapping: %s has %d tables: put %s into the name, or select one table with --table", c.Source, tables, tableInName)
	}
	if c.Part.Of > 0 {
		release, err := lockPart(c.Checkpoint, "verify", c.Part.Part)
		if err != nil {
			return err
		}
		defer release()
	}
	o := migrate.VerifyOptions{Common: p.common(mappings), Stored: c.stored(), Timestamps: fixtures.TimestampPolicy(c.Timestamps), LenientSets: c.LenientSets}
	o.Followed = c.AsOf != ""
	o.AsOf, _ = time.Parse(time.RFC3339Nano, c.AsOf) // zero for export
	if c.stored() {
		o.ViewWait = defaultViewWait
	}
	if c.ViewWait != nil {
		o.ViewWait = *c.ViewWait
	}
	o.Deadline, o.AppProfile = c.deadline(c.Against), c.AppProfile
	o.MaxDifferences, o.Differential, o.Seed, o.Regress, o.AllowEmpty = c.MaxDiffs, c.Differential, c.Seed, c.Regress, c.AllowEmpty
	if o.Lint, err = c.lint(); err != nil {
		return err
	}
	o.Part, o.Parts, o.MaxRowsPerSecond = c.Part.Part, c.Checkpoint, given(c.MaxRowsPerSecond)
	if !c.partly() {
		o.Lint = cmp.Or(o.Lint, &migrate.LintRules{})
	}
	done := p.showProgress(&o.Progress)
	p.reportWaits(&o.Waiting, "target "+c.Against, "verification", done)
	verify := func(conn grpc.ClientConnInterface) error {
		r, err := (*report.Report)(nil), error(nil)
		if c.Finish {
			r, err = migrate.FinishVerify(ctx, conn, in, o)
		} else {
			r, err = migrate.Verify(ctx, conn, in, o)
		}
		done()
		err = inFixture(c.Source, err)
		if input, ok := errors.AsType[*source.Error](err); ok && input.Damage == source.SourceEmpty {
			return badInput("%w (--allow-empty accepts it)", err)
		}
		if err != nil {
			return asInputError(err)
		}
		c.compared(r)
		differ := c.finishPart(p, r, "verify", c.partFlags) // the report is useful even if the file fails
		if err := c.writeMappings(r); err != nil {
			if exitCode(differ) > exitDifferences { // writing a report failed too
				err = errors.Join(err, differ)
			}
			return err
		}
		return differ
	}
	if c.stored() {
		return c.withStored(ctx, "--against", c.Against, c.Data, func(t *target) error {
			o.Project, o.Instance = t.project, t.instance
			if err := c.look(ctx, c.Against, t, true); err != nil {
				return err
			}
			return verify(t.conn)
		})
	}
	var now func() time.Time
	if isFixture(c.Source) {
		if now, err = fixtureClock(os.DirFS(c.Source)); err != nil {
			return asInputError(inFixture(c.Source, err))
		}
	}
	return withPrivateStore(c.Source, now, func(s *store) error {
		o.RunGC, o.Restart = s.runGC, s.restart
		if c.Update.UpdateMode != "" {
			changes, err := migrate.UpdateGoldens(ctx, s.conn(), c.Source, o)
			done()
			if err != nil {
				return asInputError(inFixture(c.Source, err))
			}
			for _, change := range changes {
				_, _ = fmt.Fprintf(p.stdout, "%s\n", change)
			}
			_, _ = fmt.Fprintf(p.stdout, "golden files written: %d\n", len(changes))
			return nil
		}
		return verify(s.conn())
	})
}

// compared records in the report which rows were compared. It warns if the environment names a
// server that was not read: load would have written there.
func (c *verifyCommand) compared(r *report.Report) {
	server := environmentTarget()
	switch {
	case c.Against != "":
		r.ComparedWith = c.Against
	case c.Data != "":
		r.ComparedWith = "the data folder " + c.Data
	case server == "":
		r.ComparedWith = "a private store; --against HOST:PORT checks a server"
	default:
		r.ComparedWith = fmt.Sprintf("a private store; --against %s checks that server", server)
		r.Warnings = append(r.Warnings, fmt.Sprintf("BIGTABLE_EMULATOR_HOST is %s, but verify did not read that server: use --against", server))
	}
}

// writeMappings writes the mapping of each table of a report.
func (c *verifyCommand) writeMappings(r *report.Report) error {
	if c.WriteMapping == "" {
		return nil
	}
	files := mappingFiles{}
	for _, t := range r.Tables {
		files.add(c.WriteMapping, t.Target, []byte(t.Mapping))
	}
	if err := c.check("--write-mapping", files); err != nil {
		return err
	}
	return files.write("--write-mapping")
}
