package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/internal/preflight"
)

// connect connects the endpoint to the target. checked means that --check was given and passed.
func (s *serving) connect(ctx context.Context, o *facade.Options) (checked bool, err error) {
	c := s.command
	t, err := (&connectFlags{Project: c.Project, Instance: c.Instance, Endpoint: c.Endpoint, CA: c.CA, TokenFile: c.Token, tokenFlag: "--target-token-file", Compress: c.Compress, CallTimeout: c.Timeout}).connect(ctx, c.Target)
	if err != nil {
		return false, fmt.Errorf("--target: %w", err)
	}
	s.closers = append(s.closers, t.close)
	c.Project, c.Instance = t.project, t.instance
	o.Conn, o.Project, o.Instance, o.AppProfile = t.conn, t.project, t.instance, c.Profile
	look := preflight.Options{
		Conn: t.conn, Project: t.project, Instance: t.instance, AppProfile: c.Profile,
		Transactions: true, Now: s.clock.Now, Deadline: c.Timeout,
	}
	if c.Check {
		look.Views = viewsOf(o.Mappings)
		look.Tables, look.More = tablesOf(o.Mappings), func(yield func(preflight.Table, error) bool) {
			for t, err := range facade.BigtableTables(ctx, *o) {
				if !yield(preflightTable(t), err) {
					return
				}
			}
		}
		if err := s.program.check(ctx, look, "the endpoint"); err != nil {
			return true, fmt.Errorf("--target %s: %w", c.Target, err)
		}
		return true, nil
	}
	if c.Profile == "" && !cloudInstance.MatchString(c.Target) {
		return false, nil // app profiles do not matter to emulators
	}
	if err := preflight.Start(ctx, look); err != nil {
		return false, fmt.Errorf("--target %s: %w", c.Target, err)
	}
	return false, nil
}

// ofEndpoint returns the error of opening the DynamoDB endpoint; it names the flag or the target.
func (c *serveCommand) ofEndpoint(err error) error {
	if errors.Is(err, facade.ErrOtherMapping) {
		return badInput("--mapping: %w", err)
	}
	if bad, ok := errors.AsType[*facade.OptionError](err); ok {
		return badInput("%s: %w", dynamoDBFlag[bad.Option], bad.Err)
	}
	return c.ofTarget(err)
}

// ofTarget returns the error of opening an endpoint; with --target, it names the target.
func (c *serveCommand) ofTarget(err error) error {
	if c.Target == "" {
		return err
	}
	return fmt.Errorf("--target %s: %w", c.Target, preflight.Explain(err))
}

// preflightTable converts a table of the server for a preflight.
func preflightTable(t facade.BigtableTable) preflight.Table {
	out := preflight.Table{ID: t.ID}
	for _, f := range t.Families {
		out.Families = append(out.Families, layout.Family{Name: f.Name, GC: layout.GC{Versions: f.Versions, MaxAge: f.MaxAge}})
	}
	return out
}

// tablesOf returns the tables of mappings, their indexes, and the table with the recorded
// mappings.
func tablesOf(mappings []*mapping.Mapping) (tables []preflight.Table) {
	for _, m := range mappings {
		l := (*layout.Mapping)(m)
		tables = append(tables, preflight.Table{ID: l.TargetTable(), Families: l.Families()})
		for _, x := range l.Indexes() {
			tables = append(tables, preflight.Table{ID: x.TargetTable(), Families: x.Families()})
		}
	}
	return append(tables, preflight.Table{ID: layout.SchemaTable, Families: []layout.Family{{Name: layout.SchemaFamily, GC: layout.GC{Versions: 1}}}})
}

// viewsOf returns the views that the mappings use.
func viewsOf(mappings []*mapping.Mapping) (views []preflight.View) {
	for _, m := range mappings {
		for _, v := range (*layout.Mapping)(m).Views() {
			views = append(views, preflight.View{ID: v.ID(), Query: v.SQL()})
		}
	}
	return views
}

// check prints the findings of a preflight. It returns an error if one of them would keep who
// from working.
func (p *program) check(ctx context.Context, o preflight.Options, who string) error {
	findings, err := preflight.Run(ctx, o)
	if err != nil {
		return err
	}
	wrong := 0
	for _, f := range findings {
		if f.Level == preflight.Wrong {
			wrong++
		}
		_, _ = fmt.Fprintf(p.stdout, "%s: %s: %s\n", f.Level, f.Check, f.Text)
	}
	if wrong > 0 {
		return fmt.Errorf("%s would keep %s from working", phrase.Counted(int64(wrong), "finding"), who)
	}
	return nil
}
