package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/fixtures"
)

// sourceFlags are the flags that say what is read and how it is laid out.
type sourceFlags struct {
	Source      string   `required:"" help:"What to read: an export to S3, JSON lines, a BatchWriteItem file, a NoSQL Workbench model; plain or gzip. Recognized by content." placeholder:"PATH"`
	Mapping     []string `default:"auto" help:"How items become rows: a mapping file, repeatable, or auto to infer it from the data. Default: ${default}." placeholder:"FILE|auto" sep:"none"`
	Key         string   `help:"Key attributes, for an input that does not say." placeholder:"PK[,SK]"`
	TableSchema string   `help:"DescribeTable answer or CreateTable request, for an input that carries no key schema." placeholder:"FILE"`
	Table       string   `help:"The one table of the input to take, or the name for a table that has none." placeholder:"NAME"`
	reportFlags
}

// Validate checks what flags cannot say alone.
func (f *sourceFlags) Validate() error {
	if len(f.Mapping) > 1 {
		for _, m := range f.Mapping {
			if m == "auto" {
				return errors.New("--mapping: auto and mapping files exclude each other")
			}
		}
	}
	return f.reportFlags.validate()
}

// open reads the mappings and recognizes the source.
func (f *sourceFlags) open() (*fixtures.Source, []*mapping.Mapping, error) {
	var mappings []*mapping.Mapping
	var err error
	if f.Mapping[0] != "auto" {
		if mappings, err = loadMappings(f.Mapping); err != nil {
			return nil, nil, err
		}
	}
	o := fixtures.SourceOptions{Key: f.Key, Table: f.Table, TableSchemaFile: f.TableSchema}
	if f.TableSchema != "" {
		if o.TableSchema, err = os.ReadFile(f.TableSchema); err != nil {
			return nil, nil, badInput("--table-schema: %w", err)
		}
	}
	src, err := fixtures.Open(f.Source, o)
	if err != nil {
		return nil, nil, asInputError(err)
	}
	return src, mappings, nil
}

// asInputError gives err the exit code of a bad input, if that is what it is.
func asInputError(err error) error {
	if err == nil {
		return nil
	}
	_, input := errors.AsType[*fixtures.InputError](err)
	_, spec := errors.AsType[*mapping.SpecError](err)
	_, layout := errors.AsType[*mapping.Error](err)
	if input || spec || layout {
		return &exitError{exitBadInput, err}
	}
	return err
}

type verifyCommand struct {
	sourceFlags
	failOnFlag
	WriteMapping string `help:"Also write the inferred mapping to a file, for serve --mapping. Where the input has several tables, {table} in the name stands for each." placeholder:"FILE"`
}

// Validate checks what flags cannot say alone.
func (c *verifyCommand) Validate() error {
	if c.WriteMapping != "" && c.Mapping[0] != "auto" {
		return errors.New("--write-mapping is for an inferred mapping; --mapping gives one")
	}
	return errors.Join(c.sourceFlags.Validate(), c.failOnFlag.validate())
}

// Help is the long help of the command.
func (*verifyCommand) Help() string {
	return `Loads the source into a private store in memory, reads every row back, and compares cell by cell and item by item. Cells that the garbage-collection rules of the mapping would take count as differences, unless its accept_loss names them (what: retention). Exceptions are sidecar cells, which keep what the mapping's types cannot say; the report tells their kinds. Exits 0 when all is equal, 1 when something differs, 2 when the input or the mapping is at fault.`
}

// Run verifies the source.
func (c *verifyCommand) Run(ctx context.Context, p *program) error {
	src, mappings, err := c.open()
	if err != nil {
		return err
	}
	if n := len(src.Tables); n > 1 && c.WriteMapping != "" && !strings.Contains(c.WriteMapping, tableInName) {
		return badInput("--write-mapping: %s has %d tables: put %s into the name, or take one by --table", c.Source, n, tableInName)
	}
	return withStore("", func(conn grpc.ClientConnInterface, runGC func(context.Context) error) error {
		o := fixtures.Options{Mappings: mappings, Now: time.Now, RunGC: runGC, Lint: fixtures.LintOptions{Run: true, FailOn: c.level()}}
		done := p.showProgress(&o)
		r, err := fixtures.VerifySource(ctx, conn, src, o)
		done()
		if err != nil {
			return asInputError(err)
		}
		if err := c.writeMappings(r); err != nil {
			return fmt.Errorf("--write-mapping: %w", err)
		}
		return c.finish(p, r)
	})
}

// tableInName stands in --write-mapping for the name of a table.
const tableInName = "{table}"

// writeMappings writes the mapping of each table of a report.
func (c *verifyCommand) writeMappings(r *fixtures.Report) error {
	if c.WriteMapping == "" {
		return nil
	}
	for _, t := range r.Tables {
		// The Bigtable table's name can name a file; that of the source may not.
		file := strings.ReplaceAll(c.WriteMapping, tableInName, t.Target)
		if err := os.WriteFile(file, []byte(t.Mapping), 0o666); err != nil {
			return err
		}
	}
	return nil
}

type loadCommand struct {
	sourceFlags
	Target   string `help:"The Bigtable to write to, over plain gRPC. Default: $$BIGTABLE_EMULATOR_HOST." placeholder:"HOST:PORT"`
	Data     string `help:"Write to the data folder of a server that is not running." placeholder:"DIR"`
	Project  string `help:"Project of the tables. Default: ${default}." default:"tabletop"`
	Instance string `help:"Instance of the tables. Default: ${default}." default:"tabletop"`
}

// Validate checks what flags cannot say alone.
func (c *loadCommand) Validate() error {
	if c.Target != "" && c.Data != "" {
		return errors.New("--target and --data exclude each other")
	}
	if c.Target == "" && c.Data == "" {
		if c.Target = os.Getenv("BIGTABLE_EMULATOR_HOST"); c.Target == "" {
			return errors.New("say where to write: --target HOST:PORT, --data DIR, or BIGTABLE_EMULATOR_HOST in the environment")
		}
	}
	return c.sourceFlags.Validate()
}

// Help is the long help of the command.
func (*loadCommand) Help() string {
	return `Creates the tables and writes the rows that the mapping describes. The whole input is checked first: a damaged one leaves nothing behind, not even a folder. Loading again changes nothing. Nothing is compared: verify does that.`
}

// Run loads the source.
func (c *loadCommand) Run(ctx context.Context, p *program) error {
	src, mappings, err := c.open()
	if err != nil {
		return err
	}
	o := fixtures.Options{Mappings: mappings, Project: c.Project, Instance: c.Instance, Now: time.Now}
	done := p.showProgress(&o)
	prepared, err := fixtures.Prepare(ctx, src, o) // before a store is opened: a refused load creates none
	done()
	if err != nil {
		return asInputError(err)
	}
	load := func(conn grpc.ClientConnInterface) error {
		r, err := prepared.Load(ctx, conn)
		done()
		if err != nil {
			return asInputError(err)
		}
		return c.finish(p, r)
	}
	if c.Data != "" {
		return withStore(c.Data, func(conn grpc.ClientConnInterface, _ func(context.Context) error) error { return load(conn) })
	}
	conn, err := dialBigtable(c.Target)
	if err != nil {
		return fmt.Errorf("--target: %w", err)
	}
	defer func() { _ = conn.Close() }()
	if err := load(conn); err != nil {
		if _, ok := errors.AsType[*exitError](err); ok {
			return err
		}
		return fmt.Errorf("--target %s: %w", c.Target, err)
	}
	return nil
}

// withStore runs fn on a Bigtable of its own, in the folder dir or, if that is
// "", in memory; runGC collects its garbage.
func withStore(dir string, fn func(conn grpc.ClientConnInterface, runGC func(context.Context) error) error) (err error) {
	db, err := engine.Open(engine.Options{Dir: dir})
	if err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	srv, err := emu.New(emu.Options{DB: db})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, srv.Close()) }()
	return fn(srv.Conn(), func(ctx context.Context) error {
		_, err := srv.RunGC(ctx)
		return err
	})
}
