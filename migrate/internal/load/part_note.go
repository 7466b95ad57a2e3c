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

// Parts of a load write notes to the first row of their table in layout.SchemaTable, in
// columns of their own load. The part that creates the tables notes that they are new, and
// each part notes, before it writes, that it has begun. A part that finds new tables, and no
// note of its own, need not look up its rows: none can exist. It decides only after it has
// written its own note: of two processes of one part, one finds the other.
//
// A row that is looked up is not written again, and is counted as found. Writing it again would
// be harmless, since cells have their times from the source. So wrong notes never cause wrong
// rows; at most, existing rows are counted as written. That happens if a new table is replaced
// with one that holds rows of the source; the first batch, which is always looked up, detects
// this. Any other load deletes these notes when it writes its own, before it writes items
// (writeSchema), and Finish deletes them at the end. Later notes stay: if two loads begin at
// once, and one creates the tables after the other has written its notes, parts of it may count
// the other's rows as written.

// madeColumn notes that the tables are new.
const madeColumn = "made"

// notesPrefix returns the prefix of the columns of a load's parts; "" if the load is not in
// parts, or notes nothing about the table.
func notesPrefix(r *table.Run, j *table.Job) string {
	if r.Options.Share.Of == 0 || r.Folder.Verb != parts.Loading || j.Mapping.Spec() == nil {
		return ""
	}
	return loadnote.PartsPrefix + r.Folder.Identity[:16] + "/"
}

// noteMade notes that the load has created its tables, if it has created all of them.
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

// partNotes yields the columns of the table's first row in layout.SchemaTable that hold notes
// of parts, of this and of other loads.
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

// noteBegun notes that the part has begun, and determines whether its tables are untried.
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
