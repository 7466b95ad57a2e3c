package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"github.com/alecthomas/kong"

	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// inputFlags name the input.
type inputFlags struct {
	Path        string `arg:"" optional:"" help:"The same as --source." placeholder:"PATH"`
	Source      string `help:"Data to read: an export to S3 (with the incremental exports or change records that follow it), JSON lines, Ion text, a BatchWriteItem file, pages of a Scan, a NoSQL Workbench model, CSV, a folder of files that together hold one table, or a fixture folder. Files may be compressed with gzip or zstd. The format is recognized by the content, CSV by .csv or .tsv." placeholder:"PATH" group:"Input:"`
	Key         string `help:"Key attributes, if the input does not declare them." placeholder:"PK[,SK]" group:"Input:"`
	TableSchema string `help:"File with a DescribeTable response or CreateTable request, if the input has no key schema. If items expire, the DescribeTimeToLive response may follow in the same file." placeholder:"FILE" group:"Input:"`
	Table       string `help:"Table to use if the input has several, or the table's name if the input does not give it. Required to load with a mapping of another name." placeholder:"NAME" group:"Input:"`
	Plain       bool   `help:"Read JSON without type tags; needs --key or --table-schema." group:"Input:"`
	csvFlags
}

// validateInput uses the path argument as the source; it overrides one from the environment or
// a file.
func (f *inputFlags) validateInput(args *kong.Context) error {
	both := slices.ContainsFunc(args.Path, func(p *kong.Path) bool { return p.Flag != nil && p.Flag.Name == "source" && !p.Resolved })
	switch {
	case f.Path != "" && f.Source != "" && both:
		return fmt.Errorf("%s and --source %s both name the input", f.Path, f.Source)
	case f.Path == "" && f.Source == "":
		return errors.New("name the input: --source PATH")
	case f.Path != "":
		f.Source, f.Path = f.Path, ""
	}
	return nil
}

// mappingFlags select the mapping.
type mappingFlags struct {
	Mapping []string `default:"auto" help:"Mapping file (repeatable), or auto: use the mapping of a fixture folder, or infer one from the data. Default: ${default}." placeholder:"FILE|auto" sep:"none" group:"Mapping:"`
}

func (f *mappingFlags) validateMapping() error {
	if len(f.Mapping) > 1 && slices.Contains(f.Mapping, mappingAuto) {
		return errors.New("--mapping: auto and mapping files cannot be combined")
	}
	return nil
}

// mappingAuto selects no mapping file.
const mappingAuto = "auto"

func (f *mappingFlags) auto() bool { return len(f.Mapping) == 0 || f.Mapping[0] == mappingAuto }

// sourceFlags are the flags of commands that lay out an input and report.
type sourceFlags struct {
	inputFlags
	mappingFlags
	reportFlags
}

// validate checks combinations of flags.
func (f *sourceFlags) validate(args *kong.Context) error {
	return errors.Join(f.validateInput(args), f.validateMapping(), f.validateReports())
}

// csvFlags describe the form of a CSV input.
type csvFlags struct {
	CSVDelimiter   string   `name:"csv-delimiter" help:"Delimiter of a CSV input. Default: a comma, or a tab for .tsv files." placeholder:"CHARACTER" group:"CSV input:" rare:""`
	CSVHeader      []string `name:"csv-header" help:"Columns of a CSV input without a header: NAME or NAME:TYPE, separated by commas." placeholder:"NAME:TYPE" group:"CSV input:" rare:""`
	CSVRagged      bool     `name:"csv-ragged" help:"Accept CSV records that are shorter than the header (their last attributes are absent), and ignore empty cells at the end." group:"CSV input:" rare:""`
	CSVQuotedEmpty string   `name:"csv-quoted-empty" help:"Meaning of an empty quoted CSV cell: value (empty text) or absent. Default: value." placeholder:"value|absent" group:"CSV input:" rare:""`
}

// set reports whether a flag is given.
func (f csvFlags) set() bool {
	return f.CSVDelimiter != "" || len(f.CSVHeader) > 0 || f.CSVRagged || f.CSVQuotedEmpty != ""
}

// open reads the mappings and recognizes the source.
func (f *inputFlags) open(m mappingFlags) (*source.Source, []*mapping.Mapping, error) {
	var mappings []*mapping.Mapping
	var err error
	if !m.auto() {
		if mappings, err = loadMappings(m.Mapping); errors.Is(err, fs.ErrNotExist) {
			err = badInput("%w: tabletop migrate infer --source %s -o FILE writes one", err, f.Source)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	o := source.Options{
		Key: f.Key, Table: f.Table, Plain: f.Plain, TableSchemaFile: f.TableSchema,
		CSV: source.CSVOptions{Delimiter: f.CSVDelimiter, Header: f.CSVHeader, Ragged: f.CSVRagged, QuotedEmpty: f.CSVQuotedEmpty},
	}
	if f.TableSchema != "" {
		if o.TableSchema, err = os.ReadFile(f.TableSchema); err != nil {
			return nil, nil, badInput("--table-schema: %w", err)
		}
	}
	if isFixture(f.Source) {
		src, own, err := migrate.OpenFixture(os.DirFS(f.Source), o)
		if err != nil {
			return nil, nil, asInputError(inFixture(f.Source, err))
		}
		if own != nil && m.auto() {
			mappings = []*mapping.Mapping{own}
		}
		return src, mappings, nil
	}
	src, err := source.Open(f.Source, o)
	if err != nil {
		return nil, nil, asInputError(err)
	}
	return src, mappings, nil
}

// input opens the input of verify or lint: a whole fixture, or a source with its number of
// tables and the given mappings.
func (f *sourceFlags) input() (in migrate.Input, mappings []*mapping.Mapping, tables int, err error) {
	if !isFixture(f.Source) {
		src, mappings, err := f.open(f.mappingFlags)
		if err != nil {
			return in, nil, 0, err
		}
		return migrate.OfSource(src), mappings, len(src.Tables), nil
	}
	if !f.auto() || f.Key != "" || f.Table != "" || f.TableSchema != "" {
		return in, nil, 0, badInput("--source %s is a fixture with its own mapping, key and schema: --mapping, --key, --table and --table-schema are for other inputs", f.Source)
	}
	return migrate.OfFixture(os.DirFS(f.Source)), nil, 0, nil
}

// isFixture reports whether a folder is a fixture rather than an export.
func isFixture(dir string) bool { return fixtures.Is(os.DirFS(dir)) }

// inFixture makes the paths in a fixture's error relative to the current folder.
func inFixture(dir string, err error) error {
	if !isFixture(dir) {
		return err
	}
	if input, ok := errors.AsType[*source.Error](err); ok {
		named := *input
		named.File = filepath.ToSlash(filepath.Join(dir, input.File))
		return &named
	}
	if fixture, ok := errors.AsType[*fixtures.Error](err); ok {
		named := *fixture
		named.File = filepath.ToSlash(filepath.Join(dir, fixture.File))
		return &named
	}
	return err
}

// asInputError gives err the exit code of a bad input if it is one.
func asInputError(err error) error {
	if err == nil {
		return nil
	}
	_, input := errors.AsType[*source.Error](err)
	_, fixture := errors.AsType[*fixtures.Error](err)
	_, spec := errors.AsType[*maperr.SpecError](err)
	_, item := errors.AsType[*maperr.Error](err)
	if input || fixture || spec || item {
		return &exitError{exitBadInput, err}
	}
	return err
}

// memoryGoal is the approximate memory of a migration, however large the source, and followGoal that
// of a follower, unless GOMEMLIMIT or GOGC override them.
const (
	memoryGoal       = 320 << 20
	followGoal       = 160 << 20
	relaxedGCPercent = 300
)

// relaxGC lets the process use memory up to a goal before it collects garbage often. Each
// command with a source calls it first.
func relaxGC(goal int64) {
	if os.Getenv("GOMEMLIMIT") == "" && os.Getenv("GOGC") == "" {
		debug.SetMemoryLimit(goal)
		debug.SetGCPercent(relaxedGCPercent) // below the goal, collect rarely
	}
}

// common returns the options that all commands with a source need: the mappings, and the
// clocks of this machine.
func (p *program) common(mappings []*mapping.Mapping) migrate.Common {
	start := time.Now()
	return migrate.Common{
		Mappings: mappings, Now: time.Now, Sleep: p.wait, Jitter: rand.Float64,
		Stopwatch: func() time.Duration { return time.Since(start) },
	}
}

// wait makes a wait of a migration.
func (p *program) wait(ctx context.Context, d time.Duration) error {
	if p.sleep != nil {
		return p.sleep(ctx, d)
	}
	return sleep(ctx, d)
}

// sleep waits, unless ctx ends first.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
