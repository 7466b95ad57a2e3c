package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/migrate"
)

type diffCommand struct {
	Sides       []string `arg:"" optional:"" help:"The two sides to compare. Each is an input, as for verify, or a Bigtable table." placeholder:"PATH|HOST:PORT/TABLE|projects/P/instances/I/tables/T"`
	Source      string   `help:"First side: an input." placeholder:"PATH" group:"Input:"`
	Key         string   `help:"Key attributes, if the inputs do not declare them." placeholder:"PK[,SK]" group:"Input:"`
	TableSchema string   `help:"File with a DescribeTable response or CreateTable request, if the inputs have no key schema." placeholder:"FILE" group:"Input:"`
	Table       string   `help:"Table to compare, if the inputs have several." placeholder:"NAME" group:"Input:"`
	csvFlags
	Mapping string `help:"Mapping file that converts the rows of a table to items. Without it, two tables are compared row by row." placeholder:"FILE" group:"Mapping:"`
	Target  string `help:"Second side: a Bigtable table. Without /TABLE, it is the table that --mapping names." placeholder:"HOST:PORT[/TABLE]|projects/P/instances/I[/tables/T]" group:"Bigtable:"`
	connectFlags
	maxDiffsFlag
	reportFlags
}

// validate adds --source and --target to the sides, and checks combinations of flags.
func (c *diffCommand) validate(*kong.Context) error {
	if c.Source != "" {
		c.Sides, c.Source = append([]string{c.Source}, c.Sides...), ""
	}
	if c.Target != "" {
		c.Sides, c.Target = append(c.Sides, c.Target), ""
	}
	var sides error
	if n := len(c.Sides); n != 2 {
		sides = fmt.Errorf("name the two sides to compare: FIRST SECOND, or --source PATH --target HOST:PORT --mapping FILE; got %d", n)
	}
	if err := errors.Join(sides, c.validateMaxDiffs(), c.validateReports()); err != nil {
		return err
	}
	inputs := append(c.inputs(), namedFile{flag: "--mapping", name: c.Mapping}, namedFile{flag: "--table-schema", name: c.TableSchema})
	for _, side := range c.Sides {
		inputs = append(inputs, namedFile{flag: "the input", name: side})
	}
	return checkOutputs(reportOutputs(c.Report), inputs)
}

// Help returns the long help of the command.
func (*diffCommand) Help() string {
	return `Compares two inputs item by item, two Bigtable tables row by row, or an input with a table through a mapping.

Exits 0 if they are equal, 1 if they differ, 2 if an input is wrong, 3 if a server or this machine fails.`
}

func (*diffCommand) examples() []example {
	return []example{
		{"Two exports", "tabletop migrate diff export-monday export-tuesday"},
		{"Compare an export with its table", "tabletop migrate diff export 127.0.0.1:8086/orders --mapping orders.yaml"},
	}
}

// Run compares the two sides.
func (c *diffCommand) Run(ctx context.Context, p *program) (err error) {
	relaxGC(memoryGoal)
	var m *mapping.Mapping
	if c.Mapping != "" {
		mappings, err := loadMappings([]string{c.Mapping})
		if err != nil {
			return err
		}
		m = mappings[0]
	}
	var sides [2]migrate.Side
	for i, text := range c.Sides {
		side, done, err := c.side(ctx, text, m)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, done()) }()
		sides[i] = side
	}
	o := migrate.DiffOptions{Common: p.common(nil)}
	o.MaxDifferences, o.Deadline, o.AppProfile = c.MaxDiffs, c.CallTimeout, c.AppProfile
	done := p.showProgress(&o.Progress)
	r, err := migrate.Diff(ctx, sides[0], sides[1], o)
	done()
	if err != nil {
		return asInputError(err)
	}
	return c.finish(p, r)
}

// side opens one side.
func (c *diffCommand) side(ctx context.Context, text string, m *mapping.Mapping) (migrate.Side, func() error, error) {
	side := migrate.Side{Name: text, Mapping: m}
	where, table, found := bigtableSide(text)
	switch {
	case found && table == "" && m == nil:
		example := text + "/TABLE"
		if cloudInstance.MatchString(text) {
			example = text + "/tables/TABLE"
		}
		return side, nil, badInput("%s is a Bigtable: add the table to compare, as in %s, or pass --mapping", text, example)
	case !found:
		from := inputFlags{Source: text, Key: c.Key, TableSchema: c.TableSchema, Table: c.Table, csvFlags: c.csvFlags}
		src, _, err := from.open(mappingFlags{})
		side.Source = src
		return side, func() error { return nil }, err
	}
	t, err := c.connect(ctx, where)
	if err != nil {
		return side, nil, fmt.Errorf("%s: %w", text, err)
	}
	side.Conn, side.Project, side.Instance, side.Table = t.conn, t.project, t.instance, table
	return side, t.close, nil
}

// bigtableSide parses the name of a Bigtable, or of a table in one. An existing path is not
// one.
func bigtableSide(text string) (where, table string, found bool) {
	if cloudInstance.MatchString(text) {
		return text, "", true
	}
	if where, table, found = strings.Cut(text, "/tables/"); found && cloudInstance.MatchString(where) {
		return where, table, true
	}
	where, table, found = strings.Cut(text, "/")
	if strings.Contains(table, "/") || found && table == "" || !strings.Contains(where, ":") || checkTarget("", where) != nil {
		return "", "", false
	}
	if _, err := os.Lstat(text); err == nil {
		return "", "", false
	}
	return where, table, true
}
