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
	"github.com/alecthomas/kong"

	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/internal/sqlclient"
)

type sqlCommand struct {
	Query  string   `arg:"" optional:"" help:"The statements. Default: those on standard input, or a prompt on a terminal." placeholder:"QUERY"`
	Target string   `help:"Bigtable to query. Default: $$BIGTABLE_EMULATOR_HOST." placeholder:"HOST:PORT|projects/P/instances/I" group:"Bigtable:"`
	Format string   `enum:"table,json,csv" default:"table" help:"Form of the rows: an aligned table, a JSON object for each row, or CSV with a header. Default: ${default}." placeholder:"table|json|csv" group:"Query:"`
	Param  []string `help:"The value of a parameter: NAME:TYPE=VALUE. Types: STRING, BYTES, INT64, FLOAT64, BOOL, DATE, TIMESTAMP, and ARRAY<...> of these in JSON. Repeat the flag for several." placeholder:"NAME:TYPE=VALUE" sep:"none" group:"Query:"`
	connectFlags

	params map[string]*btpb.Value
}

// validate parses --param, takes a missing target from the environment, and checks the flags.
func (c *sqlCommand) validate(*kong.Context) error {
	var wrong []error
	c.params = map[string]*btpb.Value{}
	for _, text := range c.Param {
		name, v, err := sqlclient.ParseParam(text)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("--param: %w", err))
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
	return `Runs SQL queries (GoogleSQL) on the tables and views of a Bigtable instance, and prints their rows. A semicolon separates statements, and the first error ends the command. On a terminal, a prompt reads statements, and continues after an error; its history is in the user's configuration folder. docs/sql.md lists the supported part of the language, and the commands of the prompt.

Exits 0; 2 if the query is invalid; 3 if the query or a server fails.`
}

func (*sqlCommand) examples() []example {
	return []example{
		{"The first rows of a table", "tabletop sql 'SELECT * FROM orders LIMIT 10' --target 127.0.0.1:8086"},
		{"A prompt", "tabletop sql --target 127.0.0.1:8086"},
		{"One row by its key, as JSON", "tabletop sql 'SELECT * FROM orders WHERE _key = @k' --param k:BYTES=customer#1 --format json --target 127.0.0.1:8086"},
	}
}

// Run runs the statements of the command line, of standard input or of a prompt.
func (c *sqlCommand) Run(ctx context.Context, p *program) error {
	return c.withTarget(ctx, "--target", c.Target, func(t *target) error {
		s := &sqlSession{sqlCommand: c, target: t, out: p.stdout}
		switch {
		case c.Query != "":
			return plainly(s.lines(ctx, strings.NewReader(c.Query)))
		case p.terminal:
			return s.prompt(ctx, p)
		}
		return plainly(s.lines(ctx, p.stdin))
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
		names[i] = sqlclient.Printable(c.GetName())
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

// printTable prints aligned columns. The first rows decide the widths for later ones.
func printTable(w io.Writer, rows *sqlclient.Rows) error {
	t := &alignedTable{w: w}
	first := [][]string{columnNames(rows)}
	n := 0
	for row, err := range rows.All() {
		if err != nil {
			return err
		}
		cells := rowTexts(row, rows)
		if n++; n < alignedRows {
			first = append(first, cells)
			continue
		}
		if n == alignedRows {
			err = t.first(append(first, cells))
		} else {
			err = t.line(cells)
		}
		if err != nil {
			return err
		}
	}
	if n < alignedRows {
		if err := t.first(first); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "(%s)\n", phrase.Counted(int64(n), "row"))
	return err
}

// printAligned prints aligned columns.
func printAligned(w io.Writer, lines [][]string) error { return (&alignedTable{w: w}).first(lines) }

// alignedTable prints lines with the widths of the first ones.
type alignedTable struct {
	w      io.Writer
	widths []int
}

// first prints the first lines, and sets the widths.
func (t *alignedTable) first(lines [][]string) error {
	t.widths = make([]int, len(lines[0]))
	for _, cells := range lines {
		for i, cell := range cells {
			t.widths[i] = max(t.widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, cells := range lines {
		if err := t.line(cells); err != nil {
			return err
		}
	}
	return nil
}

func (t *alignedTable) line(cells []string) error {
	for len(cells) > 0 && cells[len(cells)-1] == "" {
		cells = cells[:len(cells)-1] // without trailing blanks
	}
	var b strings.Builder
	for i, cell := range cells {
		b.WriteString(cell)
		if i < len(cells)-1 {
			b.WriteString(strings.Repeat(" ", 2+max(0, t.widths[i]-utf8.RuneCountInString(cell))))
		}
	}
	_, err := fmt.Fprintln(t.w, b.String())
	return err
}
