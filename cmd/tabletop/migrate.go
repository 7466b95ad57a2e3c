package main

import (
	"context"
	"errors"
	"os"
	"runtime/debug"
	"time"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/fixtures"
)

// sourceFlags are the flags that say what is read and how it is laid out.
type sourceFlags struct {
	Source      string   `required:"" help:"What to read: an export to S3 with the incremental exports after it, JSON lines, a BatchWriteItem file, a NoSQL Workbench model, CSV; plain, gzip or zstd. Recognized by content." placeholder:"PATH"`
	Mapping     []string `default:"auto" help:"How items become rows: a mapping file, repeatable, or auto to infer it from the data. Default: ${default}." placeholder:"FILE|auto" sep:"none"`
	Key         string   `help:"Key attributes, for an input that does not say." placeholder:"PK[,SK]"`
	TableSchema string   `help:"DescribeTable answer or CreateTable request, for an input that carries no key schema." placeholder:"FILE"`
	Table       string   `help:"The one table of the input to take, or the name for a table that has none." placeholder:"NAME"`
	csvFlags
	reportFlags
}

// csvFlags say how a CSV input is written.
type csvFlags struct {
	CSVDelimiter   string   `name:"csv-delimiter" help:"Between the cells of a CSV input. Default: a comma; a tab for .tsv." placeholder:"CHARACTER"`
	CSVHeader      []string `name:"csv-header" help:"The columns of a CSV input without a header: NAME or NAME:TYPE, separated by commas." placeholder:"NAME:TYPE"`
	CSVQuotedEmpty string   `name:"csv-quoted-empty" help:"What an empty quoted cell of a CSV input is: value (empty text) or absent. Default: value." placeholder:"value|absent"`
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
	return f.validateReports()
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
	o := fixtures.SourceOptions{
		Key: f.Key, Table: f.Table, TableSchemaFile: f.TableSchema,
		CSV: fixtures.CSVOptions{Delimiter: f.CSVDelimiter, Header: f.CSVHeader, QuotedEmpty: f.CSVQuotedEmpty},
	}
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

// memoryGoal is what a migration keeps its memory near, however large the
// source, unless GOMEMLIMIT or GOGC say otherwise.
const (
	memoryGoal       = 320 << 20
	relaxedGCPercent = 300
)

// options are the options of all commands that work on a source: the clocks
// of this machine, and its memory.
func options(mappings []*mapping.Mapping) fixtures.Options {
	if os.Getenv("GOMEMLIMIT") == "" && os.Getenv("GOGC") == "" {
		debug.SetMemoryLimit(memoryGoal)
		debug.SetGCPercent(relaxedGCPercent) // what is below the goal need not be collected often
	}
	start := time.Now()
	return fixtures.Options{
		Mappings: mappings, Now: time.Now, Sleep: sleep,
		Stopwatch: func() time.Duration { return time.Since(start) },
	}
}

// sleep waits, unless ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
