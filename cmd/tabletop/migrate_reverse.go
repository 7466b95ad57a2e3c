package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/alecthomas/kong"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

type reverseCommand struct {
	Output     string   `required:"" short:"o" help:"Folder in which to create AWSDynamoDB/EXPORT." placeholder:"DIR" group:"Export:"`
	Table      string   `help:"Export only this table, by its name in DynamoDB or in Bigtable." placeholder:"NAME" group:"Export:"`
	ExportTime string   `help:"Time of the export, which rows loaded from it get as their timestamp. load selects the recorded time of the last load, so that a load of the export gives the same rows. Default: now." placeholder:"RFC3339|load" group:"Export:"`
	Partial    bool     `help:"Export the readable rows, and name the unreadable ones (exit code 1). Default: a table with unreadable rows is not exported." group:"Export:"`
	Mapping    []string `help:"Mapping file that converts the rows to items. May be repeated. Default: the mappings of all tables that loads recorded in the table _migration_schema." placeholder:"FILE" sep:"none" group:"Mapping:"`
	Target     string   `help:"Bigtable to read. Default: $$BIGTABLE_EMULATOR_HOST." placeholder:"HOST:PORT|projects/P/instances/I" group:"Bigtable:"`
	Data       string   `help:"Read the data folder of a server that is not running." placeholder:"DIR" group:"Bigtable:"`
	connectFlags
}

// exportTimeLoad is the --export-time of the load.
const exportTimeLoad = "load"

// validate takes a missing target from the environment, and checks combinations of flags.
func (c *reverseCommand) validate(*kong.Context) error {
	var wrong error
	if _, err := time.Parse(time.RFC3339Nano, c.ExportTime); c.ExportTime != "" && c.ExportTime != exportTimeLoad && err != nil {
		wrong = fmt.Errorf("--export-time: %q must be load or a time such as 2024-05-14T11:14:20.608Z", c.ExportTime)
	}
	switch {
	case c.Target != "" && c.Data != "":
		return errors.Join(wrong, errors.New("--target and --data cannot be combined"))
	case c.Data != "":
		return wrong
	case c.Target == "":
		if c.Target = environmentTarget(); c.Target == "" {
			return errors.Join(wrong, errors.New("name the Bigtable to read: --target HOST:PORT, --data DIR, or BIGTABLE_EMULATOR_HOST in the environment"))
		}
	}
	return errors.Join(wrong, checkTarget("--target", c.Target))
}

// Help returns the long help of the command.
func (*reverseCommand) Help() string {
	return `Reads the rows of each table, converts them to items with its mapping, and writes them as an export to S3: manifests with checksums, and data files that DynamoDB imports from S3. With --export-time load, a load of the export gives the same rows again. A table with rows that the mapping cannot read is not exported, except with --partial; reverse counts these rows, and names the first ten. It leaves out rows that match no rule, with a warning.

Exits 0 if everything is written, 1 if --partial left rows out, 2 if a mapping is wrong or cannot read a row, 3 if a server or this machine fails.`
}

func (*reverseCommand) examples() []example {
	return []example{
		{"Export all loaded tables of a server", "tabletop migrate reverse --target 127.0.0.1:8086 -o export"},
		{"Export one table of a data folder", "tabletop migrate reverse --data store --table orders -o export"},
	}
}

// Run writes the exports.
func (c *reverseCommand) Run(ctx context.Context, p *program) error {
	relaxGC(memoryGoal)
	mappings, err := loadMappings(c.Mapping)
	if err != nil {
		return err
	}
	return c.withStored(ctx, "--target", c.Target, c.Data, func(t *target) error { return c.reverse(ctx, p, t, mappings) })
}

func (c *reverseCommand) reverse(ctx context.Context, p *program, t *target, mappings []*mapping.Mapping) (err error) {
	o := migrate.ReverseOptions{Common: p.common(nil), ExportTime: time.Now()}
	if c.ExportTime == exportTimeLoad {
		o.ExportTime = time.Time{}
	} else if c.ExportTime != "" {
		o.ExportTime, _ = time.Parse(time.RFC3339Nano, c.ExportTime) // checked by validate
	}
	o.Project, o.Instance, o.Deadline, o.AppProfile = t.project, t.instance, c.deadline(c.Target), c.AppProfile
	if len(mappings) == 0 {
		if mappings, err = migrate.StoredMappings(ctx, t.conn, o.Common); err != nil {
			return asInputError(err)
		}
		if len(mappings) == 0 {
			return badInput("table %s does not contain the mapping of any load: pass --mapping FILE", layout.SchemaTable)
		}
	}
	if c.Table != "" {
		mappings = slices.DeleteFunc(mappings, func(m *mapping.Mapping) bool { return m.SourceTable() != c.Table && m.TargetTable() != c.Table })
		if len(mappings) == 0 {
			return badInput("--table: there is no mapping for table %s", c.Table)
		}
	}
	o.Partial = c.Partial
	var refused []error // tables with unreadable rows, which do not prevent the others
	var unread int64
	for _, m := range mappings {
		done := p.showProgress(&o.Progress)
		r, err := migrate.Reverse(ctx, t.conn, m, c.Output, o)
		done()
		if source.DamageOf(err) == source.MappingRefused {
			refused = append(refused, err)
			continue
		}
		if err != nil {
			return asInputError(errors.Join(append(refused, err)...))
		}
		unread += r.Unreadable
		for _, warning := range r.Warnings {
			_, _ = fmt.Fprintf(p.stderr, "warning: %s\n", warning)
		}
		_, _ = fmt.Fprintln(p.stdout, r)
	}
	if unread > 0 && len(refused) == 0 {
		return &exitError{code: exitDifferences}
	}
	return asInputError(errors.Join(refused...))
}
