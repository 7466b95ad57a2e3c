package backups

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/jobs"
	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/facade/internal/store/history"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
)

// restoreKept is how long what came of a restore is known.
const restoreKept = 24 * time.Hour

// Kinds are the kinds of jobs of backups and restores over a store.
func Kinds(st *store.Store) []jobs.Kind {
	w := worker{st}
	return []jobs.Kind{
		{Name: KindBackup, Run: w.backUp, KeepOf: func(id string) time.Duration {
			if strings.Contains(id, systemSuffix+"/") {
				return systemAge
			}
			return 0
		}, Forget: w.forget},
		{Name: KindRestore, Run: w.restore, Keep: restoreKept, Most: jobs.DefaultMost},
	}
}

type worker struct{ st *store.Store }

// forget drops the items of a backup whose time is over.
func (w worker) forget(ctx context.Context, j jobs.Job) error {
	b, err := decode(j)
	if err != nil {
		return err
	}
	return w.st.DropKept(ctx, b.rows(w.st))
}

// saveEvery is how many items come between two notes of how far a copy is.
const saveEvery = 10_000

// counted yields items and counts them in p, which is saved now and then.
func counted(ctx context.Context, c *jobs.Claim, p *progress, items iter.Seq2[history.Item, error]) iter.Seq2[attr.Item, error] {
	return func(yield func(attr.Item, error) bool) {
		for i, err := range items {
			var item attr.Item
			if err == nil {
				item, err = i.Attributes()
			}
			p.Items++
			p.Bytes += int64(i.Size)
			if err == nil && p.Items%saveEvery == 0 {
				err = c.Save(ctx, p)
			}
			if !yield(item, err) || err != nil {
				return
			}
		}
	}
}

// scratch gives a reading a table of its own, and drops that of an attempt before.
func (w worker) scratch(ctx context.Context, c *jobs.Claim) (p progress, err error) {
	if text := c.Job().Progress; text != nil {
		if err := json.Unmarshal(text, &p); err != nil {
			return p, err
		}
	}
	if p.Scratch != "" {
		if err := w.st.History.DropScratch(ctx, p.Scratch); err != nil {
			return p, err
		}
	}
	p = progress{Scratch: w.st.History.NewScratch()}
	return p, c.Save(ctx, &p)
}

// backUp copies a table.
func (w worker) backUp(ctx context.Context, c *jobs.Claim) error {
	b, err := decode(c.Job())
	if err != nil {
		return err
	}
	p, err := w.scratch(ctx, c)
	if err != nil {
		return err
	}
	def, err := w.source(ctx, b.def)
	if err != nil {
		return w.ended(ctx, c, b.def.Name, err)
	}
	items := w.st.History.Items(ctx, def, p.Scratch, b.Before)
	if err = w.st.Keep(ctx, b.def, b.rows(w.st), counted(ctx, c, &p, items)); err == nil {
		p.Scratch = ""
		err = c.Save(ctx, &p)
	}
	if err = w.ended(ctx, c, b.def.Name, err); err == nil {
		return nil
	}
	var failed *jobs.Failure
	if errors.As(err, &failed) {
		return errors.Join(err, w.st.DropKept(ctx, b.rows(w.st)))
	}
	return err
}

// source returns a table as it is defined now. Errors: ErrTableNotFound.
func (w worker) source(ctx context.Context, was *tabledef.Table) (*tabledef.Table, error) {
	now, err := w.st.TableNow(ctx, was.Name)
	if err == nil && now.ID != was.ID {
		err = fmt.Errorf("%w: %s was deleted and created again", store.ErrTableNotFound, was.Name)
	}
	if err != nil {
		return was, err
	}
	return now, nil
}

// ended lets go of the log of a table that is read no more, unless the work is to be done
// again.
func (w worker) ended(ctx context.Context, c *jobs.Claim, table string, err error) error {
	switch {
	case errors.Is(err, store.ErrTableNotFound): // it was deleted meanwhile
		return &jobs.Failure{Code: "TableNotFound", Message: err.Error()}
	case err != nil && ctx.Err() != nil:
		return err
	case errors.Is(err, store.ErrOutsideMapping), errors.Is(err, history.ErrNoLog), err != nil && c.LastAttempt():
		err = &jobs.Failure{Code: jobs.CodeInternal, Message: err.Error()}
	case err != nil:
		return err
	}
	if releaseErr := w.st.ReleaseLog(ctx, table, c.Job().ID); releaseErr != nil {
		return errors.Join(err, releaseErr)
	}
	return err
}

// restore puts items into a table that was made for them.
func (w worker) restore(ctx context.Context, c *jobs.Claim) error {
	var r restore
	if err := json.Unmarshal(c.Job().Request, &r); err != nil {
		return err
	}
	src, err := tabledef.Decode(r.Source)
	if err != nil {
		return err
	}
	p, err := w.scratch(ctx, c)
	if err != nil {
		return err
	}
	target, err := w.st.TableNow(ctx, r.Target)
	if err == nil && (target.Restore == nil || target.Restore.Job != c.Job().ID) {
		if target.Restore != nil && target.Restore.Job == "" { // done, but for the note of it
			return w.ended(ctx, c, src.Name, nil)
		}
		err = fmt.Errorf("%w: %s", store.ErrTableNotFound, r.Target)
	}
	if err == nil && r.Backup == "" {
		src, err = w.source(ctx, src)
	}
	if err == nil {
		var items iter.Seq2[history.Item, error]
		if items = w.st.History.Items(ctx, src, p.Scratch, r.Before); r.Backup != "" {
			items = history.Stored(w.st.Kept(ctx, src, r.Rows))
		}
		err = w.st.Keep(ctx, target, "", counted(ctx, c, &p, items))
	}
	if err == nil {
		err = w.st.FinishRestore(ctx, r.Target, c.Job().ID)
	}
	if r.Backup == "" {
		err = w.ended(ctx, c, src.Name, err)
	}
	var failed *jobs.Failure
	if errors.Is(err, store.ErrTableNotFound) || errors.As(err, &failed) || err != nil && ctx.Err() == nil && c.LastAttempt() {
		abandonErr := w.st.AbandonRestore(ctx, r.Target, c.Job().ID)
		if abandonErr != nil && !errors.Is(abandonErr, store.ErrTableNotFound) {
			return abandonErr
		}
		return &jobs.Failure{Code: jobs.CodeInternal, Message: err.Error()}
	}
	return err
}

// KeepDeleted makes the backup of a table that goes and could be restored. It reports
// whether the table's own rows are what is kept.
func KeepDeleted(ctx context.Context, st *store.Store, t *tabledef.Table) (keep bool, err error) {
	if !t.Recovery.On() {
		return false, nil
	}
	id := newID(t.Deleted, systemSuffix, t.Name)
	r := record{Name: t.Name + "$DeletedTableBackup", Type: typeSystem}
	if t.Mapped { // the rows are not the table's alone: another may be made over them
		all := func(yield func(attr.Item, error) bool) {
			for stored, err := range st.Kept(ctx, t, "") {
				var item attr.Item
				if err == nil {
					item, err = stored.Item()
				}
				if !yield(item, err) {
					return
				}
			}
		}
		if err := st.Keep(ctx, t, st.KeptTable(id), all); err != nil {
			return false, err
		}
	} else {
		r.Rows = t.BigtableTable
	}
	if r.Table, err = tabledef.Encode(t); err != nil {
		return false, err
	}
	request, err := json.Marshal(r)
	if err != nil {
		return false, err
	}
	_, err = st.Jobs.Create(ctx, jobs.Spec{Kind: KindBackup, ID: id, Request: request, Done: true})
	if errors.Is(err, jobs.ErrExists) {
		err = nil
	}
	return !t.Mapped, err
}
