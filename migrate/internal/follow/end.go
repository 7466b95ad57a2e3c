package follow

import (
	"context"
	"errors"
	"time"

	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	ms "github.com/tabletop-emu/tabletop/internal/layout/migrationstate"
	"github.com/tabletop-emu/tabletop/migrate/internal/statetable"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// End ends the migration of a table: endpoints accept writes again. A table that a process follows is a
// [*ms.HeldError]; after a crash of that process, End waits for the end of its lease. A second call
// finishes an interrupted one.
//
// It is refused in phase CATCHING_UP, and while changes are dead letters, unless abandon is set.
func End(ctx context.Context, b *table.Bigtable, m *layout.Mapping, by string, abandon bool, now func() time.Time, sleep func(context.Context, time.Duration) error) error {
	s := statetable.Store{B: b, Table: m.TargetTable(), Now: now}
	seen, err := awaitLease(ctx, s, sleep, func(string, ...any) {})
	if err != nil {
		return err
	}
	// hold takes the lease, and then renews it: no follower begins meanwhile.
	hold := func() (ms.State, error) {
		return s.Change(ctx, func(was ms.State) (ms.State, *ms.Event, error) {
			need := []ms.Phase{ms.Following, ms.Drained, ms.Ended}
			if abandon {
				need = append(need, ms.CatchingUp)
			}
			if err := was.Need(s.Table, "end", need...); err != nil {
				return was, nil, err
			}
			was, err := was.Leased(s.Table, by, now(), seen)
			return was, nil, err
		})
	}
	held, err := hold()
	if err != nil {
		return err
	}
	term := held.Term
	holding := func(do func() error) error {
		held, err := hold()
		if err == nil && held.Term != term {
			err = &ms.HeldError{Table: s.Table, Owner: held.Owner}
		}
		if err != nil {
			return err
		}
		return do()
	}
	for letter, err := range s.Letters(ctx) {
		if err == nil && !abandon {
			err = source.Damaged(source.Unsupported, source.Position{}, nil, "Bigtable table %s: a change of item %s was not applied (%s): correct the item in the source and follow again, or abandon such changes (--abandon); tabletop migrate status --letters lists all", s.Table, letter.Key, letter.Reason)
			_, release := s.Change(ctx, func(was ms.State) (ms.State, *ms.Event, error) { return was.Released(by), nil, nil })
			err = errors.Join(err, release)
		}
		if err != nil {
			return err
		}
	}
	tables := []string{s.Table}
	for _, x := range m.Indexes() {
		tables = append(tables, x.TargetTable())
	}
	// Without the family, no late write of a former follower succeeds.
	for _, id := range tables {
		if err := holding(func() error { return b.DropFamily(ctx, id, lens.FamilyPosition) }); err != nil {
			return err
		}
	}
	if err := holding(func() error { return s.Clear(ctx, term) }); err != nil {
		return err
	}
	_, err = s.Change(ctx, func(was ms.State) (ms.State, *ms.Event, error) {
		if was.Term != term && was.Phase != ms.Ended {
			return was, nil, &ms.HeldError{Table: s.Table, Owner: was.Owner}
		}
		return was.Released(by).To(s.Table, ms.Ended, by, now())
	})
	if err != nil {
		return err
	}
	return s.EndFollowed(ctx)
}
