package load

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/loadnote"
	"github.com/tabletop-emu/tabletop/internal/layout/rowtext"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
)

// schemaNotes returns the rows of layout.SchemaTable of the job's table, as they were at
// the first call since the job wrote them.
func (j *job) schemaNotes(ctx context.Context) (rows []layout.Row, err error) {
	if !j.notedNow {
		j.noted, err = j.b.SchemaOf(ctx, j.Report.Target)
		j.notedNow = err == nil
	}
	return j.noted, err
}

// beginNote notes that a load begins, of exports that end at another moment than what is
// there: one that is cut off leaves items of both. It reports whether endNote is to
// take that back, and whether nothing is noted yet.
func (j *job) beginNote(ctx context.Context) (unfinished, first bool, err error) {
	if j.Mapping.Spec() == nil {
		return false, false, nil
	}
	noted, err := j.schemaNotes(ctx)
	if err != nil {
		return false, false, err
	}
	target, ends := j.Report.Target, j.Source.ExportTime
	at, begun := loadnote.At(noted, target), loadnote.Unfinished(noted, target)
	first = at.IsZero()
	j.unseen = first || !begun.IsZero()
	if ends.IsZero() || begun.IsZero() && table.Micros(loadnote.Until(noted, target)) == table.Micros(ends) {
		return false, first, nil
	}
	// Where there is no note yet, nothing is there that a catch-up could take away.
	if !first && !begun.Equal(ends) {
		err = changeNote(ctx, j.b, target, btclient.SetCell(layout.SchemaFamily, []byte(loadnote.UnfinishedColumn), table.Micros(at), loadnote.MomentValue(ends)))
	}
	return true, first, err
}

// awaitDoors lets every DynamoDB door find the first note of a table, before rows of the
// table are written: until then one may write, and delete, without noting it. A table that
// the load makes itself no door can write yet: one that finds it made looks for the note.
func (j *job) awaitDoors(ctx context.Context) error {
	if !j.unseen && j.notes == "" {
		return nil
	}
	created, err := j.makeTables(ctx)
	if err != nil || created || !j.unseen || j.Options.Sleep == nil {
		return err
	}
	return j.Options.Sleep(ctx, 2*loadnote.MaxAge) // their clocks may be slower than this one
}

// makeTables makes the table of the job and, if it is not there yet, those of the indexes.
func (j *job) makeTables(ctx context.Context) (created bool, err error) {
	created, err = j.b.MakeTable(ctx, j.Report.Target, j.Mapping.Families())
	if err != nil || !created {
		return false, err
	}
	j.made = map[string]bool{j.Report.Target: true}
	for _, x := range j.Indexes {
		if j.made[x.TargetTable()], err = j.b.MakeTable(ctx, x.TargetTable(), x.Families()); err != nil {
			return true, err
		}
	}
	return true, j.noteMade(ctx)
}

// endNote notes that the load is at its end.
func (j *job) endNote(ctx context.Context) error {
	j.noted, j.notedNow = nil, false
	return changeNote(ctx, j.b, j.Report.Target, btclient.DeleteColumn(layout.SchemaFamily, []byte(loadnote.UnfinishedColumn), 0, 0))
}

// changeNote changes the first of the rows of a table.
func changeNote(ctx context.Context, b *table.Bigtable, table string, m *btpb.Mutation) error {
	refused, err := b.MutateRows(ctx, layout.SchemaTable, []*btpb.MutateRowsRequest_Entry{{RowKey: layout.SchemaRowPrefix(table), Mutations: []*btpb.Mutation{m}}})
	if err == nil && len(refused) > 0 {
		err = refused[0].Err
	}
	return err
}

// writeSchema makes the rows of layout.SchemaTable that are of the job's table
// those of its mapping, each row at once. Rows that are so already are not
// written; changed is how many were. What a door notes there stays, unless it is of an
// earlier table, and so does what parts of the same load note. The load is noted as
// unfinished if it is to be.
func (j *job) writeSchema(ctx context.Context, unfinished bool) (changed int, err error) {
	if j.Mapping.Spec() == nil {
		return 0, nil
	}
	if _, err := j.b.MakeTable(ctx, layout.SchemaTable, table.SchemaFamilies); err != nil {
		return 0, err
	}
	// Read anew: parts of other loads may have noted something since the load looked first.
	got, err := j.b.SchemaOf(ctx, j.Report.Target)
	if err != nil {
		return 0, err
	}
	j.noted, j.notedNow = nil, false
	until, begun := j.Source.ExportTime, time.Time{}
	if unfinished {
		begun = until
	}
	if until.IsZero() {
		if until, begun, err = j.exportsBefore(ctx, got); err != nil {
			return 0, err
		}
	}
	want, err := j.SchemaRows(until)
	if err != nil {
		return 0, err
	}
	if !begun.IsZero() {
		loadnote.SetUnfinished(want, begun)
	}
	door, _ := writtenAt(got, j.Report.Target)
	stale := door > 0 && door <= j.earlier
	got = table.CutNote(got, loadnote.WrittenColumn)
	if j.notes != "" { // what other loads in parts know goes, since this one changes it
		got = table.CutColumns(got, func(column string) bool { return strings.HasPrefix(column, j.notes) })
	}
	there := map[string]string{}
	for _, row := range got {
		there[string(row.Key)] = string(rowtext.FormatRow(nil, row))
	}
	var entries []writeEntry
	replace := func(key []byte, gone []*btpb.Mutation, content []layout.Cell) {
		e := &btpb.MutateRowsRequest_Entry{RowKey: key, Mutations: btclient.AppendSets(gone, content)}
		entries = append(entries, writeEntry{MutateRowsRequest_Entry: e})
	}
	for i, row := range want {
		was := there[string(row.Key)]
		delete(there, string(row.Key))
		if same := was == string(rowtext.FormatRow(nil, row)); same && (i > 0 || !stale) {
			continue
		}
		gone := []*btpb.Mutation{btclient.DeleteRow()}
		if i == 0 { // doors, and other parts, may note something just now: that stays
			gone = noteDeletes(got, row.Key)
			if stale {
				gone = append(gone, btclient.DeleteColumn(layout.SchemaFamily, []byte(loadnote.WrittenColumn), 0, j.earlier+1000))
			}
		}
		replace(row.Key, gone, row.Cells)
	}
	for _, key := range slices.Sorted(maps.Keys(there)) { // of attributes that the mapping has no more
		replace([]byte(key), []*btpb.Mutation{btclient.DeleteRow()}, nil)
	}
	// None of this is of an item: it is not counted, and no dead letter.
	w := &writer{b: j.b, o: j.Options}
	for batch := range batches(entries) {
		if _, err := w.send(ctx, layout.SchemaTable, batch); err != nil {
			return 0, err
		}
	}
	return len(entries), nil
}

// writtenAt is when DynamoDB doors noted that they write in a table, the first and the last
// of them, in microseconds; 0: none did.
func writtenAt(rows []layout.Row, table string) (first, last int64) {
	for _, row := range rows {
		if !slices.Equal(row.Key, layout.SchemaRowPrefix(table)) {
			continue
		}
		for _, c := range row.Cells {
			if string(c.Qualifier) != loadnote.WrittenColumn {
				continue
			}
			if last = max(last, c.Timestamp); first == 0 || c.Timestamp < first {
				first = c.Timestamp
			}
		}
	}
	return first, last
}

// exportsBefore are the moments that are noted of the exports of earlier loads: a source
// that tells no time says nothing of them, and leaves them as they are, unless their rows
// are gone.
func (j *job) exportsBefore(ctx context.Context, noted []layout.Row) (until, unfinished time.Time, err error) {
	target := j.Report.Target
	if until = loadnote.Until(noted, target); until.IsZero() {
		return until, unfinished, nil
	}
	if there, err := stands(ctx, j.b, target); err != nil || !there {
		return time.Time{}, time.Time{}, err
	}
	return until, loadnote.Unfinished(noted, target), nil
}

// noteDeletes deletes what is in the row of a key, column by column.
func noteDeletes(rows []layout.Row, key []byte) (muts []*btpb.Mutation) {
	for _, row := range rows {
		if !slices.Equal(row.Key, key) {
			continue
		}
		for i, c := range row.Cells {
			if i == 0 || !slices.Equal(c.Qualifier, row.Cells[i-1].Qualifier) {
				muts = append(muts, btclient.DeleteColumn(c.Family, c.Qualifier, 0, 0))
			}
		}
	}
	return muts
}
