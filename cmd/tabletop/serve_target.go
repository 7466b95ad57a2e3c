package main

import (
	"context"
	"fmt"

	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/internal/preflight"
)

// connect connects the door to the target. It reports true when that was only to be
// checked.
func (s *serving) connect(ctx context.Context, o *facade.Options) (checked bool, err error) {
	c := s.command
	t, err := (&connectFlags{Project: c.Project, Instance: c.Instance, Endpoint: c.Endpoint, CA: c.CA, TokenFile: c.Token}).connect(ctx, c.Target)
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
		for _, m := range o.Mappings {
			look.Tables = append(look.Tables, preflight.Table{ID: m.TargetTable(), Families: (*layout.Mapping)(m).Families()})
		}
		return true, s.program.check(ctx, c.Target, look)
	}
	if c.Profile == "" && !cloudInstance.MatchString(c.Target) {
		return false, nil // emulators have no app profiles to speak of
	}
	if err := preflight.Start(ctx, look); err != nil {
		return false, fmt.Errorf("--target %s: %w", c.Target, err)
	}
	return false, nil
}

// check prints what a preflight finds. It fails if something is wrong.
func (p *program) check(ctx context.Context, target string, o preflight.Options) error {
	findings, err := preflight.Run(ctx, o)
	if err != nil {
		return fmt.Errorf("--target %s: %w", target, err)
	}
	wrong := 0
	for _, f := range findings {
		if f.Level == preflight.Wrong {
			wrong++
		}
		_, _ = fmt.Fprintf(p.stdout, "%s: %s: %s\n", f.Level, f.Check, f.Text)
	}
	if wrong > 0 {
		return fmt.Errorf("--target %s: %s", target, phrase.Counted(int64(wrong), "finding")+" would keep the door from its work")
	}
	return nil
}
