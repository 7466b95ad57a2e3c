package load

import (
	"context"
	"fmt"

	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/internal/parts"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

// Loader loads the tables of a run. The run must be prepared and connected.
type Loader struct {
	run  *table.Run
	jobs []*job // of the run, in its order
}

// New returns a Loader for a run.
func New(r *table.Run) *Loader {
	l := &Loader{run: r}
	for _, j := range r.Jobs {
		l.jobs = append(l.jobs, &job{Job: j, b: r.B, notes: notesPrefix(r, j)})
	}
	return l
}

// job is the load of one table.
type job struct {
	*table.Job
	b *table.Bigtable

	// The rows of the table in layout.SchemaTable, once they are read.
	noted    []layout.Row
	notedNow bool
	looked   bool            // latest is known
	latest   string          // the load in the table's note when the job last read or wrote it; "": none
	begun    bool            // latest is this load
	earlier  int64           // for a deleted table: the time, in microseconds, of the last note of a writing endpoint; 0: none
	unseen   bool            // endpoints may not know yet that it was loaded
	made     map[string]bool // the tables, by id, that this load has created
	notes    string          // the prefix of the columns with the notes of the load's parts; "": no notes
	untried  bool            // the load created the tables, and this part has written nothing before

	views []report.Check // the results of creating the views

	keeps       bool // items that an endpoint wrote stay unchanged
	changesLeft changesLeft
	caughtUp    int64  // cells that the catch-up wrote along with deletions
	lastRow     []byte // key of the last row that the load wrote
}

// loadCheck is the check that the items of a table are loaded.
const loadCheck = "load"

// Check rejects tables that the load would corrupt, before anything is written. It may
// add warnings to the report.
func (l *Loader) Check(ctx context.Context) error {
	for _, j := range l.jobs {
		warnings, err := j.check(ctx)
		if err != nil {
			return err
		}
		l.run.Report.Warnings = append(l.run.Report.Warnings, warnings...)
	}
	return nil
}

// check rejects a table that the load would corrupt according to its current notes.
func (j *job) check(ctx context.Context) (warnings []string, err error) {
	for _, check := range []func(context.Context) (string, error){j.followed, j.endpointWrites, j.remaps, j.otherTime, j.otherViews} {
		warning, err := check(ctx)
		if err != nil {
			return nil, err
		}
		if warning != "" {
			warnings = append(warnings, warning)
		}
	}
	return warnings, nil
}

// All loads all tables, each from its position in the checkpoint.
func (l *Loader) All(ctx context.Context) error {
	r := l.run
	c, err := openCheckpoint(r.Jobs)
	if err != nil {
		return err
	}
	for i, j := range l.jobs {
		if err := j.splitTables(ctx); err != nil {
			return err
		}
		err := r.Report.Check(loadCheck, j.Report.Target, func() (string, error) {
			return phrase.Counted(j.Report.Items, "item"), j.loadNoted(ctx, r.Report, c, i)
		})
		if err != nil {
			return err
		}
		r.Report.Checks = append(r.Report.Checks, j.views...)
	}
	r.Report.Warnings = append(r.Report.Warnings, c.lost...)
	if r.Options.Share.Of > 0 {
		return nil // EndPart removes the checkpoint
	}
	return c.remove()
}

// loadNoted catches up and loads one table, and notes that in layout.SchemaTable. Changes that
// cannot be made are failures in r.
func (j *job) loadNoted(ctx context.Context, r *report.Report, c *checkpoint, index int) error {
	unfinished, first, err := j.beginNote(ctx)
	if err != nil {
		return err
	}
	// The note precedes the rows, so that the next load detects an interrupted one. Without an
	// earlier note or table, catching up does not need it. An endpoint's note about a deleted
	// table is removed before the new table is created.
	early := first || j.earlier > 0
	if early {
		if _, err := j.writeSchema(ctx, unfinished); err != nil {
			return err
		}
	}
	if err := j.awaitEndpoints(ctx); err != nil {
		return err
	}
	if err := j.noteBegun(ctx); err != nil {
		return err
	}
	if err := j.catchUp(ctx, r); err != nil {
		return err
	}
	if !early {
		if _, err := j.writeSchema(ctx, unfinished); err != nil {
			return err
		}
	}
	if err := j.makeViews(ctx); err != nil {
		return err
	}
	if err := j.load(ctx, c, index, nil); err != nil {
		return err
	}
	if j.Options.Share.Of > 0 {
		return nil // Finish ends the note
	}
	return j.endNote(ctx, unfinished)
}

// Again loads all tables a second time, and checks that it had nothing to write.
func (l *Loader) Again(ctx context.Context) error {
	for _, j := range l.jobs {
		if err := l.run.Report.Check("second load", j.Report.Target, func() (string, error) { return j.again(ctx, l.run.Report) }); err != nil {
			return err
		}
	}
	return nil
}

func (j *job) again(ctx context.Context, r *report.Report) (string, error) {
	first := j.Report
	err := j.load(ctx, newCheckpoint(), 0, func(id string, e writeEntry) {
		tl := table.LayoutOf(id, j.Job)
		for _, m := range e.GetMutations() {
			s := m.GetSetCell()
			f := report.InRow(id, e.GetRowKey())
			f.Kind, f.Column = report.NotIdempotent, s.GetFamilyName()+":"+phrase.Column(string(s.GetColumnQualifier()))
			f.Want = table.CellText(layout.Cell{Timestamp: s.GetTimestampMicros(), Value: s.GetValue()})
			f.Detail = "the cell was missing, and was written again"
			r.Fail(tl.Owned(f, tl.OwnerOf(e.entry.Item)))
		}
	})
	if err != nil {
		return "", err
	}
	written, unchanged := j.Report.CellsWritten, j.Report.CellsUnchanged
	j.Report.CellsWritten, j.Report.CellsUnchanged, j.Report.Existed = first.CellsWritten, first.CellsUnchanged, first.Existed
	if changed, err := j.writeSchema(ctx, false); err != nil {
		return "", err
	} else if changed > 0 {
		r.Fail(report.Failure{Kind: report.NotIdempotent, Table: layout.SchemaTable, Want: "nothing to write", Got: phrase.Counted(int64(changed), "row") + " written again"})
	}
	return fmt.Sprintf("%s already there, %d written", phrase.Counted(unchanged, "cell"), written), nil
}

// Afresh loads the table of a job without a checkpoint or notes.
func Afresh(ctx context.Context, b *table.Bigtable, j *table.Job) error {
	return (&job{Job: j, b: b}).load(ctx, newCheckpoint(), 0, nil)
}

// EndPart records that this part of the load is complete, and removes its checkpoint.
func (l *Loader) EndPart() error {
	var done []parts.Table
	for _, j := range l.jobs {
		done = append(done, parts.Table{Joiner: j.Joiner, Row: j.lastRow, Rows: j.Report.Rows})
	}
	if err := l.run.EndPart(done); err != nil {
		return err
	}
	c := &checkpoint{path: l.run.Folder.File(l.run.Options.Share, parts.Checkpoint)}
	return c.remove()
}

// splitTables sets the split keys of tables that the load creates, for the number of tablets in
// the options. Existing tables stay unchanged.
func (j *job) splitTables(ctx context.Context) error {
	if j.Options.Tablets < 2 {
		return nil
	}
	if there, err := j.b.HasTable(ctx, j.Report.Target); there || err != nil {
		return err
	}
	if j.b.Splits == nil {
		j.b.Splits = map[string][][]byte{}
	}
	for id, keys := range j.Cuts(j.Options.Tablets) {
		j.b.Splits[id] = keys
	}
	return nil
}
