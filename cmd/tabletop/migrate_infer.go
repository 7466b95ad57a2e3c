package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/infer"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

type inferCommand struct {
	inputFlags
	Mapping string `help:"Complete this mapping file instead of finding one: give each rule that has \"*\" and no schema the attributes of its items." placeholder:"FILE" group:"Mapping:"`
	Output  string `help:"Write the mapping to a file; {table} in its name is replaced by the name of each table. Default: standard output, with the choices on standard error." short:"o" placeholder:"FILE" group:"Mapping:"`
	forceFlag
}

// validate checks combinations of flags.
func (c *inferCommand) validate(args *kong.Context) error {
	if err := c.validateInput(args); err != nil {
		return err
	}
	return checkOutputs([]namedFile{{flag: "--output", name: c.Output}}, append(c.inputs(), namedFile{flag: "--mapping", name: c.Mapping}))
}

// Help returns the long help of the command.
func (*inferCommand) Help() string {
	return `Reads the whole input and proposes a lossless mapping: one row per item, the most frequent type of each attribute, families for sets and maps, and a joiner that all keys allow. It prints each choice with its reason. A choice that the data does not determine, such as an undeclared key, is a guess, and causes a warning. Edit the mapping file as needed, and check it with verify. With --mapping, infer completes an existing mapping: each rule with "*" gets a schema with the attributes of its items. It continues despite faults in the file that a schema repairs, and reports the first.

Exits 0 if it finds a mapping, 2 if the input is wrong, 3 if this machine fails.`
}

func (*inferCommand) examples() []example {
	return []example{
		{"Infer a mapping for an export to S3", "tabletop migrate infer export -o orders.yaml"},
		{"Infer a mapping for JSON without types", "tabletop migrate infer orders.json --plain --key customer,id --table orders"},
	}
}

// Run infers and writes the mappings.
func (c *inferCommand) Run(ctx context.Context, p *program) error {
	relaxGC(memoryGoal)
	given := mappingFlags{}
	if c.Mapping != "" {
		given.Mapping = []string{c.Mapping}
	}
	src, mappings, err := c.open(given)
	faulty, ok := errors.AsType[*maperr.SpecError](err)
	if ok { // the inferred schema may repair it
		mappings, src, err = c.openFaulty(err)
	}
	if err != nil {
		return err
	}
	if !given.auto() {
		if n := len(src.Tables); n > 1 {
			src.Tables = slices.DeleteFunc(src.Tables, func(t *source.Table) bool { return t.Name != mappings[0].SourceTable() })
		}
		if len(src.Tables) == 0 {
			return badInput("--mapping: %s is for table %s, which is not in %s", c.Mapping, mappings[0].SourceTable(), c.Source)
		}
	}
	if n := len(src.Tables); n > 1 && !strings.Contains(c.Output, tableInName) {
		return badInput("--output: %s has %d tables: put %s into the name, or select one table with --table", c.Source, n, tableInName)
	}
	var o infer.Options
	all := make([]*infer.Inferred, len(src.Tables)) // before anything is written
	for i, t := range src.Tables {
		done := p.showProgress(&o.Progress)
		if given.auto() {
			all[i], err = infer.Table(ctx, t, o)
		} else {
			all[i], err = infer.Attributes(ctx, t, mappings[0], o)
		}
		done()
		if err != nil {
			return asInputError(err)
		}
	}
	choices := p.stdout
	if c.Output == "" {
		choices = p.stderr
	}
	if faulty != nil {
		all[0].Warnings = append(all[0].Warnings, fmt.Sprintf("%s had faults that the inferred schemas repair: the first was %v", c.Mapping, faulty))
	}
	files := mappingFiles{}
	texts := make([][]byte, len(all))
	for i, found := range all {
		if texts[i], err = found.Mapping.Spec().YAML(); err != nil {
			return err
		}
		if c.Output != "" {
			files.add(c.Output, found.Mapping.TargetTable(), texts[i])
		}
	}
	if err := c.check("--output", files); err != nil {
		return err
	}
	for i, found := range all {
		_, _ = fmt.Fprintf(choices, "table %s\n", src.Tables[i].Name)
		for _, choice := range found.Choices {
			_, _ = fmt.Fprintf(choices, "  %-10s %s\n  %-10s   (%s)\n", choice.What, choice.Chosen, "", choice.Why)
		}
		for _, warning := range found.Warnings {
			_, _ = fmt.Fprintf(p.stderr, "warning: %s\n", warning)
		}
		if c.Output == "" {
			_, _ = p.stdout.Write(texts[i])
		}
	}
	return files.write("--output")
}

// openFaulty opens the source with a faulty mapping file, if the file still determines which
// items its rules take. Otherwise it returns fault.
func (c *inferCommand) openFaulty(fault error) ([]*mapping.Mapping, *source.Source, error) {
	text, err := os.ReadFile(c.Mapping)
	if err != nil {
		return nil, nil, fault
	}
	spec, err := mapfile.Read(c.Mapping, text, os.DirFS(filepath.Dir(c.Mapping)))
	if err != nil {
		return nil, nil, fault
	}
	m, err := layout.Matching(spec)
	if err != nil {
		return nil, nil, fault
	}
	src, _, err := c.open(mappingFlags{})
	return []*mapping.Mapping{(*mapping.Mapping)(m)}, src, err
}

type planCommand struct {
	inputFlags
	mappingFlags
	Report []string `help:"Also write the plan to files; text without a file prints to the terminal. May be repeated." placeholder:"text=FILE|json=FILE" group:"Report:"`
}

// validate checks combinations of flags.
func (c *planCommand) validate(args *kong.Context) error {
	if err := errors.Join(c.validateInput(args), c.validateMapping(), validateReports(c.Report, "text", "json")); err != nil {
		return err
	}
	return checkOutputs(reportOutputs(c.Report), append(c.inputFlags.inputs(), c.mappingFlags.inputs()...))
}

// Help returns the long help of the command.
func (*planCommand) Help() string {
	return `Lays out the whole input without writing it. It prints the Bigtable tables with their families and garbage collection, and the continuous materialized views. For each rule, it prints the number of items and an example row key. The fidelity table shows whether each attribute survives (lossless), survives or is rejected (lossless in domain), or is lost because the mapping allows it (lossy). It also prints other changes, and counts the items that the mapping cannot lay out, by reason.

Exits 0 if a load would succeed, 1 if it would reject such items, 2 if the input or the mapping is wrong, 3 if this machine fails.`
}

func (*planCommand) examples() []example {
	return []example{
		{"Show the tables and cells of an export", "tabletop migrate plan export --mapping orders.yaml"},
		{"Write the plan as JSON", "tabletop migrate plan export --mapping orders.yaml --report json=plan.json"},
	}
}

// Run prints the plan.
func (c *planCommand) Run(ctx context.Context, p *program) error {
	relaxGC(memoryGoal)
	src, mappings, err := c.open(c.mappingFlags)
	if err != nil {
		return err
	}
	o := migrate.PlanOptions{Common: p.common(mappings)}
	done := p.showProgress(&o.Progress)
	plan, err := migrate.MakePlan(ctx, src, o)
	done()
	if err != nil {
		return asInputError(err)
	}
	_, _ = fmt.Fprint(p.stdout, plan.Text())
	for _, to := range c.Report {
		format, file, _ := strings.Cut(to, "=")
		if file == "" { // already printed
			continue
		}
		text := []byte(plan.Text())
		if format == "json" {
			text, err = plan.JSON()
		}
		if err == nil {
			err = os.WriteFile(file, text, 0o666)
		}
		if err != nil {
			return fmt.Errorf("--report: %w", err)
		}
	}
	if plan.Refuses() {
		return &exitError{code: exitDifferences}
	}
	return nil
}
