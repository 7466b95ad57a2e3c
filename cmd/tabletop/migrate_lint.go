package main

import (
	"cmp"
	"context"
	"errors"
	"os"

	"github.com/alecthomas/kong"

	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/lint"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

type lintCommand struct {
	sourceFlags
	lintFlags
}

// Validate checks what flags cannot say alone.
func (c *lintCommand) Validate(args *kong.Context) error {
	if err := errors.Join(c.sourceFlags.Validate(args), c.validateFailOn()); err != nil {
		return err
	}
	return checkOutputs(reportOutputs(c.Report), append(c.sourceFlags.inputs(), c.lintFlags.inputs()...))
}

// Help is the long help of the command.
func (*lintCommand) Help() string {
	return `Judges the mapping, the data, the access patterns and a trace of a fixture folder (mapping.yaml, source/, access/, trace/), or the data of an input, by the 58 rules of docs/lint.md, which cite the published design guides. Nothing is written and no Bigtable is needed. Exits 0 when no finding has the level of --fail-on (default: lint=error) or worse, 1 when one does, 2 when the input or the mapping is at fault.`
}

// Run lints a fixture or an input.
func (c *lintCommand) Run(ctx context.Context, p *program) error {
	relaxGC()
	o := options(nil)
	var err error
	if o.Lint, err = c.lint(); err != nil {
		return err
	}
	o.Lint.FailOn = cmp.Or(o.Lint.FailOn, lint.Error)
	done := p.showProgress(&o.Progress)
	r, err := c.judge(ctx, o)
	done()
	if err != nil {
		return asInputError(err)
	}
	return c.finish(p, r)
}

func (c *lintCommand) judge(ctx context.Context, o migrate.Options) (*report.Report, error) {
	if isFixture(c.Source) {
		if err := c.ownFixture(); err != nil {
			return nil, err
		}
		r, err := migrate.Lint(ctx, os.DirFS(c.Source), o)
		return r, inFixture(c.Source, err)
	}
	src, mappings, err := c.open(c.mappingFlags)
	if err != nil {
		return nil, err
	}
	o.Mappings = mappings
	return migrate.LintSource(ctx, src, o)
}
