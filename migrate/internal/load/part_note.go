package load

import (
	"bytes"
	"context"
	"crypto/rand"
	"iter"
	"strconv"
	"strings"

	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/loadnote"
	"github.com/tabletop-emu/tabletop/migrate/internal/parts"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
)

// Parts of a load note in the first row that is of their table in layout.SchemaTable, in
// columns of their own load: the one that makes the tables, that they are new; and each
// part, before it writes, that it has begun. So a part that finds new tables, and not
// itself, knows that nothing of it can be there, and need not look for it. It may only say
// so after it has noted itself: of two processes of one part, one finds the other.
//
// What is looked up is not written again, and counted as it was found. Written again, it
// would be the same: cells have their times from the source. So rows are right whatever is
// noted; what a part that is wrong about the table wrote is counted as written. It is, where
// somebody puts another table in the place of the one that the load made, with rows that
// hold what the source does: that, the first batch finds, which is looked up in any case.
// Any other load takes away what is noted when it writes its own notes, before it writes
// items (writeSchema), and Finish does at the end. Later notes stay: where two loads
// begin at once, and one makes the tables after the other has noted itself, parts of it may
// count what the other wrote as written.

// madeColumn says that the tables are new to the load.
const madeColumn = "made"

// notesPrefix is the prefix of the columns of a load's parts; "" if the load notes nothing
// of the table, or is not one of parts.
func notesPrefix(r *table.Run, j *table.Job) string {
	if r.Options.Share.Of == 0 || r.Folder.Verb != parts.Loading || j.Mapping.Spec() == nil {
		return ""
	}
	return loadnote.PartsPrefix + r.Folder.Identity[:16] + "/"
}

// noteMade notes that the load has made its tables, if it has made all.
func (j *job) noteMade(ctx context.Context) error {
	if j.notes == "" {
		return nil
	}
	for _, table := range j.Targets() {
		if !j.made[table] {
			return nil
		}
	}
	return j.note(ctx, madeColumn)
}

// partNotes are the columns in which parts of loads noted something.
func (j *job) partNotes(rows []layout.Row) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, row := range rows {
			if !bytes.Equal(row.Key, layout.SchemaRowPrefix(j.Report.Target)) {
				continue
			}
			for _, c := range row.Cells {
				if column := string(c.Qualifier); strings.HasPrefix(column, loadnote.PartsPrefix) && !yield(column) {
					return
				}
			}
		}
	}
}

// noteBegun notes that the part has begun, and finds out whether its tables are untried.
func (j *job) noteBegun(ctx context.Context) error {
	if j.notes == "" {
		return nil
	}
	part := strconv.Itoa(j.Options.Share.Index) + "/"
	self := part + rand.Text()
	if err := j.note(ctx, self); err != nil {
		return err
	}
	rows, err := j.b.SchemaOf(ctx, j.Report.Target)
	if err != nil {
		return err
	}
	isNew, before := false, false
	for column := range j.partNotes(rows) {
		column, own := strings.CutPrefix(column, j.notes)
		isNew = isNew || own && column == madeColumn
		before = before || own && column != self && strings.HasPrefix(column, part)
	}
	j.untried = isNew && !before
	return nil
}

func (j *job) note(ctx context.Context, column string) error {
	return changeNote(ctx, j.b, j.Report.Target, btclient.SetCell(layout.SchemaFamily, []byte(j.notes+column), j.Micros, nil))
}
