package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

type demoCommand struct {
	Console     demoConsole `help:"Instead of running the fixtures, serve all of them on both endpoints and in the console, and print its address. Ctrl-C stops the server. --console=HOST:PORT sets the address. See docs/console.md." placeholder:"HOST:PORT" group:"What to do with the fixtures:"`
	ConsoleFile string      `name:"console-token-file" help:"With --console, write the control API's token to this file, readable only by its owner. The file is removed on exit." placeholder:"FILE" group:"What to do with the fixtures:" rare:""`
	PortFile    string      `help:"With --console, write the addresses to this file when ready, as serve does. The file is removed on exit." placeholder:"FILE" group:"What to do with the fixtures:" rare:""`
	Write       string      `help:"Instead of running the fixtures, write each of them to a subfolder of this one, to read, change and verify. If a subfolder already exists, the command fails and writes nothing." placeholder:"DIR" group:"What to do with the fixtures:"`
}

// Help returns the long help of the command.
func (*demoCommand) Help() string {
	return `For each shipped fixture, reads its DynamoDB items, writes them as Bigtable rows through its mapping, compares the rows with the golden ones, reads the items back, and runs its access patterns as DynamoDB requests and as native Bigtable reads.`
}

func (*demoCommand) examples() []example {
	return []example{
		{"Run all fixtures end to end", "tabletop demo"},
		{"Browse their data", "tabletop demo --console"},
		{"Write them as folders to read and change", "tabletop demo --write fixtures"},
	}
}

// Run runs every shipped fixture in a private store, or writes them all.
func (c *demoCommand) Run(ctx context.Context, p *program) error {
	subjects, err := fixtures.Subjects()
	if err != nil {
		return err
	}
	switch {
	case c.Write != "":
		return c.write(p, subjects)
	case c.Console != "":
		return c.hold(ctx, p, subjects)
	}
	equal := true
	for _, s := range subjects {
		now, err := fixtureClock(s.Files)
		if err != nil {
			return asInputError(fmt.Errorf("fixture %s: %w", s.Name, err))
		}
		err = withEngine(inMemory(now), func(store *store) error {
			o := migrate.VerifyOptions{Common: migrate.Common{Now: time.Now}, RunGC: store.runGC, Restart: store.restart}
			done := p.showProgress(&o.Progress)
			r, err := migrate.Verify(ctx, store.conn(), migrate.OfFixture(s.Files), o)
			done()
			if err != nil {
				return asInputError(fmt.Errorf("fixture %s: %w", s.Name, err))
			}
			p.printSubject(s, r)
			equal = equal && r.Equal()
			return nil
		})
		if err != nil {
			return err
		}
	}
	if !equal {
		return &exitError{code: exitDifferences}
	}
	_, _ = fmt.Fprintf(p.stdout, "All %d fixtures: all items came back unchanged, from both endpoints.\n", len(subjects))
	return nil
}

// write creates a folder for each fixture, or none if one already exists.
func (c *demoCommand) write(p *program, subjects []fixtures.Subject) error {
	for _, s := range subjects {
		dir := filepath.Join(c.Write, s.Name)
		if _, err := os.Lstat(dir); err == nil {
			return badInput("--write: %s already exists", dir)
		}
	}
	for _, s := range subjects {
		dir := filepath.Join(c.Write, s.Name)
		if err := os.CopyFS(dir, s.Files); err != nil {
			return fmt.Errorf("--write: %w", err)
		}
		_, _ = fmt.Fprintf(p.stdout, "%s  %s\n", p.bold(dir), s.Title)
	}
	return nil
}

// printSubject prints the results of one fixture.
func (p *program) printSubject(s fixtures.Subject, r *report.Report) {
	w := p.stdout
	_, _ = fmt.Fprintf(w, "%s  %s\n", p.bold(s.Name), s.Title)
	line := func(what string, got any) { _, _ = fmt.Fprintf(w, "  %-24s %v\n", what, got) }
	line("items read", r.Items)
	line("rows written", r.Rows)
	line("round-trip differences", p.differences(r.Differences-patternDifferences(r)))
	passed, both := 0, 0
	for _, pattern := range r.Patterns {
		if pattern.Differences == 0 {
			passed++
			if slices.Contains(pattern.Endpoints, "dynamodb") && slices.Contains(pattern.Endpoints, "bigtable") {
				both++
			}
		}
	}
	where := fmt.Sprintf("%d of them on both endpoints", both)
	if both == 0 {
		where = "on one endpoint"
	}
	line("access patterns passed", p.outOf(passed, len(r.Patterns))+", "+where)
	p.printFailures(r)
	_, _ = fmt.Fprintln(w)
}

func patternDifferences(r *report.Report) (n int64) {
	for _, pattern := range r.Patterns {
		n += pattern.Differences
	}
	return n
}
