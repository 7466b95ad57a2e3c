package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/internal/sqlclient"
)

type sqlCommand struct {
	Query  string   `arg:"" optional:"" help:"The query. Default: the text on standard input." placeholder:"QUERY"`
	Target string   `help:"The Bigtable. Default: $$BIGTABLE_EMULATOR_HOST." placeholder:"HOST:PORT|projects/P/instances/I" group:"Bigtable:"`
	Format string   `enum:"table,json,csv" default:"table" help:"How rows are printed: an aligned table, a JSON object for each row, or CSV with a header. Default: ${default}." placeholder:"table|json|csv" group:"Query:"`
	Param  []string `help:"The value of a parameter: NAME:TYPE=VALUE. Types: STRING, BYTES, INT64, FLOAT64, BOOL. Repeat the flag for several." placeholder:"NAME:TYPE=VALUE" sep:"none" group:"Query:"`
	connectFlags

	params map[string]*btpb.Value
}

// Validate checks the flags.
func (c *sqlCommand) Validate() error {
	var wrong []error
	c.params = map[string]*btpb.Value{}
	for _, text := range c.Param {
		declared, value, ok := strings.Cut(text, "=")
		name, kind, typed := strings.Cut(declared, ":")
		if !ok || !typed || name == "" {
			wrong = append(wrong, fmt.Errorf("--param: %q must be NAME:TYPE=VALUE, such as key:BYTES=a", text))
			continue
		}
		v, err := sqlclient.Param(kind, value)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("--param %s: %w", name, err))
		}
		c.params[name] = v
	}
	if c.Target == "" {
		if c.Target = environmentTarget(); c.Target == "" {
			return errors.Join(append(wrong, errors.New("name the Bigtable: --target HOST:PORT, or BIGTABLE_EMULATOR_HOST in the environment"))...)
		}
	}
	return errors.Join(append(wrong, checkTarget("--target", c.Target))...)
}

// Help is the long help of the command.
func (*sqlCommand) Help() string {
	return `Runs a SQL query (GoogleSQL) on the tables and views of a Bigtable instance, and prints its rows. docs/sql.md lists the supported part of the language.

Exits 0; 2 if the query is invalid; 3 if the query or a server fails.`
}

func (*sqlCommand) examples() []example {
	return []example{
		{"The first rows of a table", "tabletop sql 'SELECT * FROM orders LIMIT 10' --target 127.0.0.1:8086"},
		{"One row by its key, as JSON", "tabletop sql 'SELECT * FROM orders WHERE _key = @k' --param k:BYTES=customer#1 --format json --target 127.0.0.1:8086"},
	}
}

// maxQueryBytes bounds a query from standard input.
const maxQueryBytes = 1 << 20

// Run runs the query.
func (c *sqlCommand) Run(ctx context.Context, p *program) error {
	text := c.Query
	if text == "" {
		read, err := io.ReadAll(io.LimitReader(p.stdin, maxQueryBytes))
		if err != nil {
			return fmt.Errorf("standard input: %w", err)
		}
		text = string(read)
	}
	if strings.TrimSpace(text) == "" {
		return badInput("there is no query: pass one, or write it to standard input")
	}
	return c.withTarget(ctx, "--target", c.Target, func(t *target) error {
		rows, err := sqlclient.Run(ctx, t.conn, sqlclient.Query{
			Instance: "projects/" + t.project + "/instances/" + t.instance, AppProfile: c.AppProfile, Text: text, Params: c.params,
		})
		if err == nil {
			defer rows.Close()
			err = c.print(p.stdout, rows)
		}
		if code := status.Code(err); code == codes.InvalidArgument || code == codes.Unimplemented {
			return badInput("%s", status.Convert(err).Message())
		}
		return err
	})
}

// print prints the rows in the format.
func (c *sqlCommand) print(w io.Writer, rows *sqlclient.Rows) error {
	switch c.Format {
	case "json":
		for row, err := range rows.All() {
			if err != nil {
				return err
			}
			text, err := json.Marshal(sqlclient.JSON(row, rows.Columns))
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(w, "%s\n", text); err != nil {
				return err
			}
		}
		return nil
	case "csv":
		out := csv.NewWriter(w)
		if err := out.Write(columnNames(rows)); err != nil {
			return err
		}
		defer out.Flush()
		for row, err := range rows.All() {
			if err == nil {
				err = out.Write(rowTexts(row, rows))
			}
			if err != nil {
				return err
			}
		}
		out.Flush()
		return out.Error()
	default:
		return printTable(w, rows)
	}
}

func columnNames(rows *sqlclient.Rows) []string {
	names := make([]string, len(rows.Columns))
	for i, c := range rows.Columns {
		names[i] = c.GetName()
	}
	return names
}

func rowTexts(row []*btpb.Value, rows *sqlclient.Rows) []string {
	texts := make([]string, len(row))
	for i, v := range row {
		texts[i] = sqlclient.Text(v, rows.Columns[i].GetType())
	}
	return texts
}

// alignedRows is the number of rows that decide the widths of a table's columns.
const alignedRows = 1000

// printTable prints aligned columns. Rows behind the first ones have the widths of those.
func printTable(w io.Writer, rows *sqlclient.Rows) error {
	names := columnNames(rows)
	widths := make([]int, len(names))
	var first [][]string
	n := 0
	line := func(cells []string) error {
		var b strings.Builder
		for i, cell := range cells {
			if i > 0 {
				b.WriteString("  ")
			}
			b.WriteString(cell)
			if i < len(cells)-1 {
				b.WriteString(strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(cell))))
			}
		}
		_, err := fmt.Fprintln(w, b.String())
		return err
	}
	flush := func() error {
		for _, cells := range append([][]string{names}, first...) {
			for i, cell := range cells {
				widths[i] = max(widths[i], utf8.RuneCountInString(cell))
			}
		}
		err := line(names)
		for _, cells := range first {
			err = errors.Join(err, line(cells))
		}
		first = nil
		return err
	}
	for row, err := range rows.All() {
		if err != nil {
			return err
		}
		cells := rowTexts(row, rows)
		if n++; n > alignedRows {
			err = line(cells)
		} else if first = append(first, cells); n == alignedRows {
			err = flush()
		}
		if err != nil {
			return err
		}
	}
	if n < alignedRows {
		if err := flush(); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "(%s)\n", phrase.Counted(int64(n), "row"))
	return err
}
