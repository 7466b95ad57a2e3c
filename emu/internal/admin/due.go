package admin

import (
	"context"
	"errors"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/emu/internal/due"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/engine"
)

// This file contains the scheduled work; see package due. Visible effects, such
// as the expiry of a backup, are computed from stored times and do not wait for
// it.

// Work returns the kinds of scheduled work that the control plane has.
func (s *Control) Work() []due.Work {
	return []due.Work{expiries{s}, purges{s}, AutomatedBackups{s}}
}

// expiries frees the space of expired backups and snapshots.
type expiries struct{ s *Control }

// Due implements due.Work.
func (w expiries) Due() ([]due.Item, error) {
	var items []due.Item
	goneAt, all, err := backups(w.s.DB)
	for _, b := range all {
		items = append(items, due.Item{At: goneAt(b), Name: b.GetName()})
	}
	snapshots, snapshotsErr := loadRecords[btapb.Snapshot](w.s.DB, KindSnapshot, "")
	for _, x := range snapshots {
		items = append(items, due.Item{At: x.Message.GetDeleteTime().AsTime(), Name: x.Message.GetName()})
	}
	return items, errors.Join(err, snapshotsErr)
}

// Run implements due.Work.
func (w expiries) Run(ctx context.Context, _ due.Item) error {
	return w.s.SweepBackups(ctx)
}

// purges frees the space of tables that can no longer be undeleted, and removes
// the resources kept with them.
type purges struct{ s *Control }

// Due implements due.Work.
func (w purges) Due() ([]due.Item, error) {
	if at, ok := w.s.DB.NextPurge(); ok {
		return []due.Item{{At: at, Name: "deleted tables"}}, nil
	}
	return nil, nil
}

// Run implements due.Work. It also removes the remaining data of deleted tables that the engine
// purged early to make room; see engine.Options.KeepDeletedBytes.
func (w purges) Run(ctx context.Context, _ due.Item) error {
	return w.s.change(ctx, func(tx *engine.CatalogTx) error {
		if err := tx.PurgeExpired(); err != nil {
			return err
		}
		kept := map[string]bool{}
		for _, x := range w.s.DB.DeletedTables("") {
			kept[x.Table.Name] = true
		}
		for _, t := range tx.Tables("") {
			kept[t.Name] = true
		}
		for _, kind := range []string{KindAuthorizedView, kindSchemaBundle, KindPartitions, KindPolicy} {
			found, err := tx.Resources(kind)
			if err != nil {
				return err
			}
			for _, r := range found {
				table := resname.First(r.Name[len(kind):], 6)
				if !kept[table] && resname.HasShape(table, "projects", "instances", "tables") {
					if err := remove(tx, r.Name); err != nil {
						return err
					}
				}
			}
		}
		return nil
	})
}

// AutomatedBackups makes the backups that the automated backup policies of tables require.
type AutomatedBackups struct{ Control *Control }

// Due implements due.Work.
func (w AutomatedBackups) Due() ([]due.Item, error) {
	var items []due.Item
	for _, t := range w.Control.DB.Tables("") {
		if p := AutomatedPlanOf(t); p.inForce() {
			items = append(items, due.Item{At: p.next(), Name: t.Name})
		}
	}
	return items, nil
}

// AutomatedPlanOf returns the plan of a table's automated backups.
func AutomatedPlanOf(t *engine.Table) AutomatedPlan {
	if len(t.Meta) == 0 {
		return AutomatedPlan{}
	}
	return settingsOf(t).plan()
}

// Run implements due.Work: it makes a backup in each cluster that has not failed. It keeps a
// backup that already exists, because an earlier run made it before a crash. It skips and logs a
// backup that fails with ResourceExhausted.
func (w AutomatedBackups) Run(ctx context.Context, i due.Item) error {
	s := w.Control
	t, err := s.DB.Table(i.Name)
	if err != nil {
		return nil //nolint:nilerr // it was deleted meanwhile
	}
	p := AutomatedPlanOf(t)
	if !p.inForce() || !p.next().Equal(i.At) {
		return nil
	}
	clusters, err := StoredClusters(s.DB, resname.First(t.Name, 4))
	if err != nil {
		return err
	}
	view := s.Replication.View(resname.First(t.Name, 4))
	for _, c := range automatedPlaces(p.Policy, clusters, i.At) {
		b := AutomatedBackup(p.Policy, t.Name, c, i.At)
		if view.Failed(resname.Last(c.GetName())) || i.At.IsZero() || !b.GetExpireTime().AsTime().After(s.now()) || readyAt(t).After(i.At) {
			continue // failed cluster; planned from now on; already expired; nothing to copy
		}
		err := w.Make(ctx, b)
		if code := status.Code(err); code == codes.ResourceExhausted {
			s.Logger.Warn("an automated backup was skipped", "backup", b.GetName(), "table", t.Name, "error", err)
		} else if err != nil && code != codes.AlreadyExists && code != codes.NotFound { // its table was deleted meanwhile
			return err
		}
	}
	return s.change(ctx, func(tx *engine.CatalogTx) error {
		_, err := tx.UpdateTable(t.Name, func(t *engine.Table) error {
			return Replan(t, func(p *AutomatedPlan) {
				if p.inForce() && p.next().Equal(i.At) {
					p.done(i.At, s.now())
				}
			})
		})
		if errors.Is(err, engine.ErrTableNotFound) {
			return nil
		}
		return err
	})
}

// Make makes backup b, which AutomatedBackup defined.
func (w AutomatedBackups) Make(ctx context.Context, b *btapb.Backup) error {
	s := w.Control
	check := func(r Catalog, _ *btapb.Cluster, _ *btapb.Instance) error {
		_, err := FindTable(r, "backup.source_table", b.GetSourceTable())
		return err
	}
	make := func(fn func(*engine.CatalogTx, *engine.Backup) error) error {
		return s.DB.Backups().Create(ctx, b.GetSourceTable(), b.GetName(), fn)
	}
	return s.keepBackup(ctx, b, check, make, func(*engine.CatalogTx) error { return nil })
}

// Replan calls fn to change the plan of a table's automated backups, and stores the result in t.
func Replan(t *engine.Table, fn func(*AutomatedPlan)) (err error) {
	settings := settingsOf(t)
	plan := settings.plan()
	fn(&plan)
	settings.planFrom = plan.From
	t.Meta, err = settings.encode()
	return err
}
