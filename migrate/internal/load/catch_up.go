package load

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/extsort"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/loadnote"
	"github.com/tabletop-emu/tabletop/migrate/internal/apply"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// catchUp applies the source's incremental exports to the stored items: it deletes the cells and
// index entries that the changed items no longer have. The load then writes the missing cells.
// Changes that cannot be made are failures in r.
//
// That is correct only without other writers: later writes of an endpoint are newer than the
// exports.
func (j *job) catchUp(ctx context.Context, r *report.Report) error {
	j.Report.CellsDeleted, j.Report.ChangesLeft, j.caughtUp, j.changesLeft = 0, 0, 0, nil
	if j.Source.FullTime.IsZero() {
		return nil
	}
	w := &apply.Writer{B: j.b, Mapping: j.Mapping, Pace: j.Options.Pace, Left: func(key attr.Item) bool { return j.changesLeft.has(j, key) }}
	w.Refuse = func(c apply.Change, err error) error {
		if source.DamageOf(err) == "" { // the mapping cannot lay out the item
			return nil // a dead letter, or a failure: the examination of the source reported it
		}
		return j.leave(c, err, r)
	}
	noted, err := j.schemaNotes(ctx)
	if err != nil {
		return err
	}
	if len(loadnote.Changes(noted, j.Mapping)) > 0 {
		if was, err := layout.FromSchemaRows(j.Report.Target, noted); err == nil && was != nil {
			w.Was = was
		}
	}
	var changes []apply.Change
	bytes := 0
	flush := func() error {
		done, err := w.Apply(ctx, changes)
		j.Report.CellsDeleted += done.CellsDeleted
		j.caughtUp += done.CellsWritten
		changes, bytes = changes[:0], 0
		return err
	}
	done := j.Timed("catching up")
	n := int64(0)
	j.Source.Changes(func(change source.Change, failed error) bool {
		if err = failed; err == nil {
			err = ctx.Err()
		}
		if err == nil {
			c := apply.Change{Key: change.Key, Was: change.Was, Now: change.Now, Cells: j.Micros, At: change.Position}
			changes = append(changes, c)
			if bytes += c.Size(); bytes >= j.Options.Batch {
				err = flush()
			}
		}
		if n++; n%256 == 0 {
			j.Options.Progress(source.Progress{Table: j.Source.Name, Phase: "catching up", Items: n, Total: -1})
		}
		return err == nil
	})
	if err == nil {
		err = flush()
	}
	done(n)
	return err
}

// changesLeft holds the key hashes of items whose changes could not be made. The load leaves
// these items unchanged.
type changesLeft map[extsort.Hash]bool

// maxChangesLeft bounds the items that are left unchanged.
const maxChangesLeft = 100_000

// has reports whether an item is left unchanged.
func (l changesLeft) has(j *job, item attr.Item) bool {
	return len(l) > 0 && l[extsort.HashOf([]byte(j.KeyJSON(item)))]
}

// leave records that change c cannot be made, since the stored item cannot be read: it adds a
// failure to r and, if they are enabled, a dead letter. It returns an error if maxChangesLeft
// items have failed already.
func (j *job) leave(c apply.Change, unread error, r *report.Report) error {
	if len(j.changesLeft) >= maxChangesLeft {
		return fmt.Errorf("%w; %d earlier items failed in the same way, which is the maximum: check that the mapping belongs to the table", unread, maxChangesLeft)
	}
	if j.changesLeft == nil {
		j.changesLeft = changesLeft{}
	}
	key := j.KeyJSON(c.Key)
	j.changesLeft[extsort.HashOf([]byte(key))] = true
	j.Report.ChangesLeft++
	r.Fail(table.NotLoaded(j.Job, key, unread))
	if j.Letters == nil {
		return nil
	}
	letter := table.DeadLetter{Key: jsontext.Value(key)}
	if c.Now != nil {
		letter = table.DeadLetter{Item: attr.AppendItemJSON(nil, c.Now)}
	}
	return j.Letters.Write(j.Job, letter, c.At, unread)
}
