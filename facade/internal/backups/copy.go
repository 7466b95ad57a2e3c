package backups

import (
	"cmp"
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

const (
	// restoreKept is how long the result of a restore is kept.
	restoreKept = 24 * time.Hour

	// failedKept is how long a failed backup is kept; no request can delete it.
	failedKept = 24 * time.Hour
)

// Kinds returns the kinds of jobs that create and restore the backups of a store.
func Kinds(st *store.Store) []jobs.Kind {
	w := worker{st}
	return []jobs.Kind{
		{Name: KindBackup, Run: w.backUp, KeepOf: func(id string, ended jobs.State) time.Duration {
			switch {
			case ended == jobs.Failed:
				return failedKept
			case strings.Contains(id, systemSuffix+"/"):
				return systemAge
			}
			return 0
		}, Forget: w.forget},
		{Name: KindRestore, Run: w.restore, Keep: restoreKept, Most: jobs.DefaultMost},
	}
}

type worker struct{ st *store.Store }

// forget drops the items of an expired backup.
func (w worker) forget(ctx context.Context, j jobs.Job) error {
	b, err := decode(j)
	if err != nil {
		return err
	}
	return w.st.DropKept(ctx, b.rows(w.st))
}

// saveEvery is the number of items between two saves of a copy's progress.
const saveEvery = 10_000

// counted yields items and counts them in p, which it saves regularly.
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

// scratch drops the scratch table of an earlier attempt. Unless all items are copied, it starts
// the progress again, with a new scratch table.
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
	if p.Whole {
		return p, nil
	}
	p = progress{Scratch: w.st.History.NewScratch()}
	return p, c.Save(ctx, &p)
}

// hold starts to retain the log of a backup's table. It returns the new request of the
// backup's job.
func (w worker) hold(ctx context.Context, id string, r record, t *tabledef.Table) (json.RawMessage, error) {
	held, before, err := w.st.HoldLog(ctx, t, id)
	if err != nil {
		return nil, err
	}
	r.Before = before
	return r.request(held)
}

// prepared calls prepare if the operation that created the job ended before it called
// prepare. It stores the request that prepare returns.
func prepared(ctx context.Context, c *jobs.Claim, prepare func(ctx context.Context) (json.RawMessage, error)) error {
	request, err := prepare(ctx)
	if err != nil {
		return err
	}
	return c.Update(ctx, func(j *jobs.Job) error { j.Request = request; return nil })
}

// backUp copies a table.
func (w worker) backUp(ctx context.Context, c *jobs.Claim) error {
	b, err := decode(c.Job())
	if err != nil {
		return err
	}
	if b.Before == 0 {
		err := prepared(ctx, c, func(ctx context.Context) (json.RawMessage, error) { return w.hold(ctx, b.ID, b.record, b.def) })
		if err == nil {
			b, err = decode(c.Job())
		}
		if err != nil {
			return w.ended(ctx, c, b.def.Name, err)
		}
	}
	p, err := w.scratch(ctx, c)
	if err != nil {
		return err
	}
	if p.Whole {
		return w.ended(ctx, c, b.def.Name, nil)
	}
	def, err := w.source(ctx, b.def)
	if err != nil {
		return w.ended(ctx, c, b.def.Name, err)
	}
	items := w.st.History.Items(ctx, def, p.Scratch, b.Before)
	if err = w.st.Keep(ctx, b.def, b.rows(w.st), counted(ctx, c, &p, items)); err == nil {
		p.Scratch, p.Whole = "", true
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

// source returns the current definition of a table. Errors: ErrTableNotFound.
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

// ended releases the log of a source table, unless the work will be repeated. It returns err, as
// a *jobs.Failure if another attempt cannot succeed.
func (w worker) ended(ctx context.Context, c *jobs.Claim, table string, err error) error {
	switch {
	case errors.Is(err, store.ErrTableNotFound): // the source or the target was deleted meanwhile
		err = &jobs.Failure{Code: "TableNotFound", Message: err.Error()}
	case err != nil && ctx.Err() != nil:
		return err
	case errors.Is(err, store.ErrOutsideMapping), errors.Is(err, history.ErrNoLog), err != nil && c.LastAttempt():
		err = &jobs.Failure{Code: jobs.CodeInternal, Message: err.Error()}
	case err != nil:
		return err
	}
	if releaseErr := w.st.ReleaseLog(ctx, table, c.Job().ID); releaseErr != nil {
		if !c.LastAttempt() {
			return releaseErr // a job that has ended cannot release anything
		}
		return errors.Join(err, releaseErr)
	}
	return err
}

// begin creates the target table of a restore, without items, and holds the log of the
// source. It records in r the state that the job needs.
func (w worker) begin(ctx context.Context, id string, r *restore) (*tabledef.Table, error) {
	t, err := tabledef.Decode(r.Table)
	if err != nil {
		return nil, err
	}
	src, err := tabledef.Decode(r.Source)
	if err != nil {
		return nil, err
	}
	if r.Backup == "" {
		held, above, err := w.st.HoldLog(ctx, src, id)
		if err != nil {
			return nil, err
		}
		if r.UpToNow {
			r.Before = max(r.Before, above)
		}
		if r.Source, err = tabledef.Encode(held); err != nil {
			return nil, errors.Join(err, w.undo(ctx, src.Name, t.Name, id))
		}
	}
	created, err := w.st.CreateTable(ctx, t)
	if errors.Is(err, store.ErrTableExists) { // it may have been created for this very job
		there, found := w.st.TableNow(ctx, t.Name)
		if found == nil && there.Restore != nil && there.Restore.Job == id {
			created, err = there, nil
		}
	}
	if err != nil {
		return nil, errors.Join(err, w.undo(ctx, src.Name, t.Name, id))
	}
	r.Table = nil
	return created, nil
}

// undo reverts begin for a job.
func (w worker) undo(ctx context.Context, source, target, id string) error {
	ctx = context.WithoutCancel(ctx)
	return errors.Join(w.st.ReleaseLog(ctx, source, id), w.abandon(ctx, target, id))
}

// abandon removes the table of a restore, which may not exist.
func (w worker) abandon(ctx context.Context, target, id string) error {
	err := w.st.AbandonRestore(ctx, target, id)
	if errors.Is(err, store.ErrTableNotFound) {
		return nil
	}
	return err
}

// restore puts items into the target table.
func (w worker) restore(ctx context.Context, c *jobs.Claim) error {
	var r restore
	if err := json.Unmarshal(c.Job().Request, &r); err != nil {
		return err
	}
	var preparing error
	if r.Table != nil {
		preparing = prepared(ctx, c, func(ctx context.Context) (json.RawMessage, error) {
			if _, err := w.begin(ctx, c.Job().ID, &r); err != nil {
				return nil, err
			}
			return json.Marshal(r)
		})
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
	err = cmp.Or(preparing, err)
	if err == nil && (target.Restore == nil || target.Restore.Job != c.Job().ID) {
		if target.Restore != nil && target.Restore.Job == "" { // done, but not recorded
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
		if abandonErr := w.abandon(ctx, r.Target, c.Job().ID); abandonErr != nil {
			return abandonErr
		}
		return &jobs.Failure{Code: jobs.CodeInternal, Message: err.Error()}
	}
	return err
}

// copyRest copies the items of a deleted table, which no longer change, into a backup's
// table.
func copyRest(ctx context.Context, st *store.Store, t *tabledef.Table, id string) error {
	return st.Keep(ctx, t, st.KeptTable(id), func(yield func(attr.Item, error) bool) {
		for stored, err := range st.Kept(ctx, t, "") {
			var item attr.Item
			if err == nil {
				item, err = stored.Item()
			}
			if !yield(item, err) {
				return
			}
		}
	})
}

// copyLast acts like copyRest for a table whose rows exist only while it is DELETING. Errors:
// ErrTableNotFound, if they were removed meanwhile: the copy may be incomplete.
func (w worker) copyLast(ctx context.Context, id string, t *tabledef.Table) error {
	err := copyRest(ctx, w.st, t, id)
	if _, gone := w.source(ctx, t); gone != nil {
		return gone
	}
	return err
}

// KeepDeleted creates a backup of a deleted table that had point-in-time recovery. keep
// reports whether the rows of the table become the backup.
func KeepDeleted(ctx context.Context, st *store.Store, t *tabledef.Table) (keep bool, err error) {
	if !t.Recovery.On() {
		return false, nil
	}
	id := newID(t.Deleted, systemSuffix, t.Name)
	r := record{Name: t.Name + "$DeletedTableBackup", Type: typeSystem}
	if t.Mapped { // another table may be created over the rows
		if err := copyRest(ctx, st, t, id); err != nil {
			return false, err
		}
	} else {
		r.Rows = t.BigtableTable
	}
	request, err := r.request(t)
	if err != nil {
		return false, err
	}
	_, err = st.Jobs.Create(ctx, jobs.Spec{Kind: KindBackup, ID: id, Request: request, Done: true})
	if errors.Is(err, jobs.ErrExists) {
		err = nil
	}
	return !t.Mapped, err
}
