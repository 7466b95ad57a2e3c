package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/seed"
)

// seedFlags are the flags for the tables that exist when the server is ready, and for those that
// it leaves behind.
type seedFlags struct {
	Seed         []string `help:"Create and fill DynamoDB tables from this file or folder; repeatable." placeholder:"PATH" sep:"none"`
	ExportOnExit string   `name:"export-on-exit" help:"At a stop, write all DynamoDB tables to this folder, which --seed reads again. Replaces an earlier export there." placeholder:"DIR" rare:""`
}

// check rejects combinations of flags.
func (f *seedFlags) check(c *serveCommand) error {
	switch {
	case len(f.Seed) == 0 && f.ExportOnExit == "":
		return nil
	case c.DynamoDB == off:
		return errors.New("--seed and --export-on-exit need the DynamoDB endpoint, which --dynamodb turns off")
	case c.Dynamo.Namespaced:
		return errors.New("--seed and --export-on-exit cannot be combined with --namespaced: they name tables without an access key and a region")
	}
	return nil
}

// open reads the seeds. It returns them with the mappings to serve: a given mapping precedes that
// of a fixture folder.
func (f *seedFlags) open(mappings []*mapping.Mapping) (*seed.Seed, []*mapping.Mapping, error) {
	if f.ExportOnExit != "" {
		if err := seed.CheckTarget(f.ExportOnExit); err != nil {
			return nil, nil, badInput("--export-on-exit: %w", err)
		}
	}
	paths := slices.DeleteFunc(slices.Clone(f.Seed), func(path string) bool {
		return f.ExportOnExit != "" && absolute(path) == absolute(f.ExportOnExit) && isEmpty(path)
	})
	seeds, err := seed.Open(paths...)
	if err != nil {
		return nil, nil, badInput("--seed: %w", err)
	}
	for _, m := range seeds.Mappings {
		if !slices.ContainsFunc(mappings, func(given *mapping.Mapping) bool { return given.SourceTable() == m.SourceTable() }) {
			mappings = append(mappings, m)
		}
	}
	return seeds, mappings, nil
}

// isEmpty reports whether a folder is missing or empty, as before the first export to it.
func isEmpty(dir string) bool {
	entries, err := os.ReadDir(dir)
	return errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0
}

// fill creates and fills the tables of the seeds, and prints the result. A reset does it again.
func (s *serving) fill(ctx context.Context, seeds *seed.Seed, o facade.Options) error {
	if len(s.command.Seeds.Seed) == 0 {
		return nil
	}
	err := s.prepare(ctx, o, func(ctx context.Context, server *facade.Server) error {
		filled, err := seeds.Fill(ctx, server)
		if err != nil {
			return fmt.Errorf("--seed: %w", asInputError(err))
		}
		for _, t := range filled {
			s.report(t)
		}
		return nil
	})
	if err == nil && s.lab != nil {
		s.lab.FillAfterReset(func(ctx context.Context) error {
			return s.endpoint.Prepare(ctx, func(ctx context.Context, server *facade.Server) error {
				_, err := seeds.Fill(ctx, server)
				return err
			})
		})
	}
	return err
}

// report prints the result for one table of a seed.
func (s *serving) report(t seed.Filled) {
	if t.Differs != "" {
		_, _ = fmt.Fprintf(s.program.stderr, "tabletop: warning: --seed %s: table %s exists, and %s: it is served as it is\n", t.Path, t.Table, t.Differs)
	}
	if t.Left {
		_, _ = fmt.Fprintf(s.program.stdout, "# seed %s: table %s has items, and stays as it is\n", t.Path, t.Table)
		return
	}
	_, _ = fmt.Fprintf(s.program.stdout, "# seed %s: %s of table %s\n", t.Path, phrase.Counted(t.Items, "item"), t.Table)
}

// prepare runs do with a server without lags, delays and throttling, while no other runs.
func (s *serving) prepare(ctx context.Context, o facade.Options, do func(context.Context, *facade.Server) error) error {
	if s.lab != nil {
		return s.command.ofEndpoint(s.endpoint.Prepare(ctx, do))
	}
	server, err := facade.New(ctx, o.Immediate())
	if err != nil {
		return s.command.ofEndpoint(err)
	}
	return errors.Join(do(ctx, server), server.Close())
}

// exportAtStop makes a stop write the tables, after the DynamoDB endpoint is closed. A start that
// fails writes none.
func (s *serving) exportAtStop(o facade.Options) {
	dir := s.command.Seeds.ExportOnExit
	if dir == "" {
		return
	}
	s.closers = append(s.closers, func() error {
		if !s.stopped {
			return nil
		}
		err := s.prepare(context.Background(), o, func(ctx context.Context, server *facade.Server) error {
			tables, err := seed.Write(ctx, server, dir, s.clock.Now())
			if err == nil {
				_, _ = fmt.Fprintf(s.program.stdout, "# exported %s to %s\n", phrase.Counted(int64(tables), "table"), dir)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("--export-on-exit: %w", err)
		}
		return nil
	})
}
