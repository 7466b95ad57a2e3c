package main

import (
	"cmp"
	"context"
	"errors"

	"github.com/alecthomas/kong"

	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/lint"
)

type lintCommand struct {
	sourceFlags
	lintFlags
}

// validate checks combinations of flags.
func (c *lintCommand) validate(args *kong.Context) error {
	if err := errors.Join(c.sourceFlags.validate(args), c.validateFailOn()); err != nil {
		return err
	}
	return checkOutputs(reportOutputs(c.Report), append(c.sourceFlags.inputs(), c.lintFlags.inputs()...))
}

// Help returns the long help of the command.
func (*lintCommand) Help() string {
	return `Checks the mapping, the data, the access patterns and a trace of a fixture folder (mapping.yaml, source/, access/, trace/), or the data of an input, against the rules of docs/lint.md, which cite the published design guides. It needs no Bigtable.

Exits 0 if no finding has the level of --fail-on (default: lint=error) or a worse one, 1 if one does, 2 if the input or the mapping is wrong.`
}

func (*lintCommand) examples() []example {
	return []example{
		{"Check a fixture folder with its access patterns", "tabletop migrate lint fixtures/orders"},
		{"Check a mapping and an export, and fail on warnings", "tabletop migrate lint export --mapping orders.yaml --fail-on lint=warn"},
	}
}

// Run lints a fixture or an input.
func (c *lintCommand) Run(ctx context.Context, p *program) error {
	relaxGC(memoryGoal)
	rules, err := c.lint()
	if err != nil {
		return err
	}
	in, mappings, _, err := c.input()
	if err != nil {
		return err
	}
	o := migrate.LintOptions{Common: p.common(mappings), LintRules: *cmp.Or(rules, &migrate.LintRules{})}
	o.FailOn = cmp.Or(o.FailOn, lint.Error)
	done := p.showProgress(&o.Progress)
	r, err := migrate.Lint(ctx, in, o)
	done()
	if err != nil {
		return asInputError(inFixture(c.Source, err))
	}
	return c.finish(p, r)
}
