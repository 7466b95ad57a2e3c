package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/alecthomas/kong"

	"github.com/tabletop-emu/tabletop/control/lab"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// demoConsole is the listen address of a demo's console; "" disables it.
type demoConsole listenAddress

// anyPort lets the system choose the port.
const anyPort = "127.0.0.1:0"

// IsBool implements kong.BoolMapperValue: --console without a value listens on a free port.
func (*demoConsole) IsBool() bool { return true }

// Decode implements kong.MapperValue.
func (d *demoConsole) Decode(ctx *kong.DecodeContext) error {
	text := "true"
	if ctx.Scan.Peek().Type == kong.FlagValueToken {
		text = fmt.Sprint(ctx.Scan.Pop().Value)
	}
	addr, err := consoleAddress(text)
	*d = demoConsole(addr)
	return err
}

// consoleAddress returns the listen address for a flag's text: a free port for "true", none for
// "".
func consoleAddress(text string) (listenAddress, error) {
	switch text {
	case "true":
		return anyPort, nil
	case "false", string(off):
		return "", nil
	}
	return parseListenAddress(text)
}

// validate checks combinations of flags.
func (c *demoCommand) validate(*kong.Context) error {
	switch {
	case c.Console == "" && (c.ConsoleFile != "" || c.PortFile != ""):
		return errors.New("--console-token-file and --port-file need --console")
	case c.Console != "" && c.Write != "":
		return errors.New("--console and --write cannot be combined")
	case c.Console != "" && !isLoopback(string(c.Console)):
		return fmt.Errorf("--console %s can be reached from other machines: a demo listens on 127.0.0.1 only; tabletop serve has flags for more", c.Console)
	}
	return nil
}

// hold serves all fixtures until ctx ends. Their data are of different times, so nothing
// expires unless a user requests it.
func (c *demoCommand) hold(ctx context.Context, p *program, subjects []fixtures.Subject) error {
	with := beginning{fixtures: fixtures.Folder()}
	sources := make([]*source.Source, len(subjects))
	for i, s := range subjects {
		src, m, err := migrate.OpenFixture(s.Files, source.Options{})
		if err != nil {
			return asInputError(fmt.Errorf("fixture %s: %w", s.Name, err))
		}
		sources[i] = src
		with.mappings = append(with.mappings, m)
	}
	with.load = func(ctx context.Context, l *lab.Lab) error {
		for i, s := range subjects {
			o := migrate.LoadOptions{Common: migrate.Common{Mappings: []*mapping.Mapping{with.mappings[i]}}}
			// Probe keeps these calls out of the list of requests.
			r, err := migrate.Load(lab.Probe(ctx), l.Bigtable().Conn(), sources[i], o)
			if err != nil {
				return fmt.Errorf("fixture %s: %w", s.Name, err)
			}
			_, _ = fmt.Fprintf(p.stdout, "# %s: %d items of %s in %d rows of %s\n", s.Name, r.Items, with.mappings[i].SourceTable(), r.Rows, with.mappings[i].TargetTable())
		}
		return nil
	}
	serve := &serveCommand{
		Bigtable: anyPort, DynamoDB: anyPort, Project: "tabletop", Instance: "tabletop", GC: gcManual, TTLInterval: math.MaxInt64, Grace: time.Second,
		Control:  consoleFlags{Console: serveConsole(c.Console), ConsoleFile: c.ConsoleFile},
		PortFile: c.PortFile,
	}
	return serve.serve(ctx, p, with)
}
