package main

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/fixtures/lint"
)

type lintCommand struct {
	Path        string   `arg:"" help:"A fixture folder (mapping.yaml, source/, access/, trace/), or an input as verify --source takes it." placeholder:"DIR"`
	Mapping     []string `default:"auto" help:"For an input: how items become rows; a mapping file, repeatable, or auto to infer it. Default: ${default}." placeholder:"FILE|auto" sep:"none"`
	Key         string   `help:"For an input: key attributes, if it does not say." placeholder:"PK[,SK]"`
	TableSchema string   `help:"For an input: DescribeTable answer or CreateTable request." placeholder:"FILE"`
	Table       string   `help:"For an input: the one table of it to take." placeholder:"NAME"`
	Rules       string   `help:"Levels and thresholds, over those of the fixture." placeholder:"FILE"`
	failOnFlag
	reportFlags
}

// Validate checks what flags cannot say alone.
func (c *lintCommand) Validate() error {
	return errors.Join(c.validateFailOn(), c.validateReports())
}

// Help is the long help of the command.
func (*lintCommand) Help() string {
	return `Judges the mapping, the data, the access patterns and a trace by the 58 rules of docs/lint.md, which cite the published design guides. Nothing is written and no Bigtable is needed. Exits 0 when no finding is of the level of --fail-on (default: lint=error) or worse, 1 when one is, 2 when the input or the mapping is at fault.`
}

// Run lints a fixture or an input.
func (c *lintCommand) Run(ctx context.Context, p *program) error {
	o := fixtures.Options{Lint: fixtures.LintOptions{FailOn: cmp.Or(c.level(), lint.Error)}}
	if c.Rules != "" {
		text, err := os.ReadFile(c.Rules)
		if err == nil {
			o.Lint.Config, err = lint.ParseConfig(c.Rules, text)
		}
		if err != nil {
			return badInput("--rules: %w", err)
		}
	}
	done := p.showProgress(&o)
	r, err := c.lint(ctx, o)
	done()
	if err != nil {
		return asInputError(err)
	}
	return c.finish(p, r)
}

func (c *lintCommand) lint(ctx context.Context, o fixtures.Options) (*fixtures.Report, error) {
	if isFixture(c.Path) {
		return fixtures.Lint(ctx, os.DirFS(c.Path), o)
	}
	from := sourceFlags{Source: c.Path, Mapping: c.Mapping, Key: c.Key, TableSchema: c.TableSchema, Table: c.Table}
	if err := from.Validate(); err != nil {
		return nil, badInput("%w", err)
	}
	src, mappings, err := from.open()
	if err != nil {
		return nil, err
	}
	o.Mappings = mappings
	return fixtures.LintSource(ctx, src, o)
}

// isFixture reports whether a folder is a fixture rather than an export.
func isFixture(dir string) bool {
	for _, name := range []string{"fixture.yaml", "mapping.yaml", "source"} {
		if _, err := os.Stat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) && err == nil {
			return true
		}
	}
	return false
}
