package follow

import (
	"context"
	"time"

	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	ms "github.com/tabletop-emu/tabletop/internal/layout/migrationstate"
	"github.com/tabletop-emu/tabletop/migrate/internal/statetable"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
)

// End ends the migration of a table: endpoints accept writes again. A table that a process follows is a
// [*ms.HeldError]. A second call finishes an interrupted one.
func End(ctx context.Context, b *table.Bigtable, m *layout.Mapping, by string, now func() time.Time) error {
	s := statetable.Store{B: b, Table: m.TargetTable(), Now: now}
	_, err := s.Change(ctx, func(was ms.State) (ms.State, *ms.Event, error) {
		if _, err := was.Leased(s.Table, by, now(), now()); err != nil {
			return was, nil, err
		}
		return was.To(s.Table, ms.Ended, by, now())
	})
	if err != nil {
		return err
	}
	if err := s.EndFollowed(ctx); err != nil {
		return err
	}
	if err := s.Clear(ctx); err != nil {
		return err
	}
	tables := []string{s.Table}
	for _, x := range m.Indexes() {
		tables = append(tables, x.TargetTable())
	}
	for _, id := range tables {
		if err := b.DropFamily(ctx, id, lens.FamilyPosition); err != nil {
			return err
		}
	}
	return nil
}
