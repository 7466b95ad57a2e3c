package run

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/cells"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/loadnote"
	"github.com/tabletop-emu/tabletop/internal/layout/rowtext"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

// SchemaFamilies are the families of layout.SchemaTable.
var SchemaFamilies = []layout.Family{{Name: layout.SchemaFamily, GC: layout.GC{Versions: 1}}}

// schemaRows are the rows of layout.SchemaTable that are to be there for the
// job's table, with the moment until which its exports tell where that is not the time
// of their cells. A default layout has none.
func (j *Job) schemaRows(until time.Time) ([]layout.Row, error) {
	if j.Mapping.Spec() == nil {
		return nil, nil
	}
	rows, err := j.Mapping.SchemaRows(j.Micros)
	if err == nil && !until.IsZero() && micros(until) != j.Micros {
		loadnote.SetUntil(rows, until)
	}
	return rows, err
}

// SchemaOf reads the rows of layout.SchemaTable of one table; none where there
// is no such table.
func (b *Bigtable) SchemaOf(ctx context.Context, table string) ([]layout.Row, error) {
	prefix := layout.SchemaRowPrefix(table)
	var rows []layout.Row
	for row, err := range b.Rows(ctx, btclient.Read{Table: layout.SchemaTable, Spans: []layout.Span{{Start: prefix, End: cells.PrefixEnd(prefix)}}}) {
		if status.Code(err) == codes.NotFound {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// Noted are the rows of layout.SchemaTable of the job's table, as they were when the job
// first asked, at all or since it wrote them.
func (j *Job) Noted(ctx context.Context, b *Bigtable) (rows []layout.Row, err error) {
	if !j.notedNow {
		j.noted, err = b.SchemaOf(ctx, j.Report.Target)
		j.notedNow = err == nil
	}
	return j.noted, err
}

// beginNote notes that a load begins, of exports that end at another moment than what is
// there: one that is cut off leaves items of both. It reports whether endNote is to
// take that back, and whether nothing is noted yet.
func (j *Job) beginNote(ctx context.Context, b *Bigtable) (unfinished, first bool, err error) {
	if j.Mapping.Spec() == nil {
		return false, false, nil
	}
	noted, err := j.Noted(ctx, b)
	if err != nil {
		return false, false, err
	}
	table, ends := j.Report.Target, j.Source.ExportTime
	at, begun := loadnote.At(noted, table), loadnote.Unfinished(noted, table)
	first = at.IsZero()
	j.unseen = first || !begun.IsZero()
	if ends.IsZero() || begun.IsZero() && micros(loadnote.Until(noted, table)) == micros(ends) {
		return false, first, nil
	}
	// Where there is no note yet, nothing is there that a catch-up could take away.
	if !first && !begun.Equal(ends) {
		err = b.changeNote(ctx, table, btclient.SetCell(layout.SchemaFamily, []byte(loadnote.UnfinishedColumn), micros(at), loadnote.MomentValue(ends)))
	}
	return true, first, err
}

// awaitDoors lets every DynamoDB door find the first note of a table, before rows of the
// table are written: until then one may write, and delete, without noting it. A table that
// the load makes itself no door can write yet: one that finds it made looks for the note.
func (j *Job) awaitDoors(ctx context.Context, b *Bigtable) error {
	if !j.unseen && j.parts == "" {
		return nil
	}
	created, err := j.makeTables(ctx, b)
	if err != nil || created || !j.unseen || j.Options.Sleep == nil {
		return err
	}
	return j.Options.Sleep(ctx, 2*loadnote.MaxAge) // their clocks may be slower than this one
}

// makeTables makes the table of the job and, if it is not there yet, those of the indexes.
func (j *Job) makeTables(ctx context.Context, b *Bigtable) (created bool, err error) {
	created, err = b.MakeTable(ctx, j.Report.Target, j.Mapping.Families())
	if err != nil || !created {
		return false, err
	}
	j.made = map[string]bool{j.Report.Target: true}
	for _, x := range j.Indexes {
		if j.made[x.TargetTable()], err = b.MakeTable(ctx, x.TargetTable(), x.Families()); err != nil {
			return true, err
		}
	}
	return true, tablePart{j}.noteMade(ctx, b)
}

// endNote notes that the load is at its end.
func (j *Job) endNote(ctx context.Context, b *Bigtable) error {
	j.noted, j.notedNow = nil, false
	return b.changeNote(ctx, j.Report.Target, btclient.DeleteColumn(layout.SchemaFamily, []byte(loadnote.UnfinishedColumn), 0, 0))
}

// changeNote changes the first of the rows of a table.
func (b *Bigtable) changeNote(ctx context.Context, table string, m *btpb.Mutation) error {
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
func (j *Job) writeSchema(ctx context.Context, b *Bigtable, unfinished bool) (changed int, err error) {
	if j.Mapping.Spec() == nil {
		return 0, nil
	}
	if _, err := b.MakeTable(ctx, layout.SchemaTable, SchemaFamilies); err != nil {
		return 0, err
	}
	// Read anew: parts of other loads may have noted something since the load looked first.
	got, err := b.SchemaOf(ctx, j.Report.Target)
	if err != nil {
		return 0, err
	}
	j.noted, j.notedNow = nil, false
	until, begun := j.Source.ExportTime, time.Time{}
	if unfinished {
		begun = until
	}
	if until.IsZero() {
		if until, begun, err = j.exportsBefore(ctx, b, got); err != nil {
			return 0, err
		}
	}
	want, err := j.schemaRows(until)
	if err != nil {
		return 0, err
	}
	if !begun.IsZero() {
		loadnote.SetUnfinished(want, begun)
	}
	door, _ := writtenAt(got, j.Report.Target)
	stale := door > 0 && door <= j.earlier
	got = cutNote(got, loadnote.WrittenColumn)
	if j.parts != "" { // what other loads in parts know goes, since this one changes it
		got = cutColumns(got, func(column string) bool { return strings.HasPrefix(column, j.parts) })
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
	uncounted := *j
	uncounted.Letters, uncounted.wrote = nil, nil
	w := &writer{B: b, J: &uncounted}
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
func (j *Job) exportsBefore(ctx context.Context, b *Bigtable, noted []layout.Row) (until, unfinished time.Time, err error) {
	table := j.Report.Target
	if until = loadnote.Until(noted, table); until.IsZero() {
		return until, unfinished, nil
	}
	if there, err := b.stands(ctx, table); err != nil || !there {
		return time.Time{}, time.Time{}, err
	}
	return until, loadnote.Unfinished(noted, table), nil
}

// cutNote returns rows without what is noted in a column of the first.
func cutNote(rows []layout.Row, column string) []layout.Row {
	return cutColumns(rows, func(of string) bool { return of == column })
}

// cutColumns returns rows without the cells of some columns.
func cutColumns(rows []layout.Row, which func(column string) bool) []layout.Row {
	rest := slices.Clone(rows)
	for i, row := range rest {
		rest[i].Cells = slices.DeleteFunc(slices.Clone(row.Cells), func(c layout.Cell) bool { return which(string(c.Qualifier)) })
	}
	return rest
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

// compareSchema compares the rows of layout.SchemaTable that are of the job's
// table with those of its mapping. Who loads the items by other means need not
// write them: without required nothing is compared where there are none.
func (r *Run) compareSchema(ctx context.Context, j *Job, required bool) error {
	want, err := j.schemaRows(j.Source.ExportTime)
	if err != nil || want == nil {
		return err
	}
	got, err := r.B.SchemaOf(ctx, j.Report.Target)
	if err != nil {
		return err
	}
	if len(got) == 0 && !required {
		return nil
	}
	got = cutNote(got, loadnote.WrittenColumn) // what a door wrote differs by itself
	got = cutColumns(got, func(column string) bool { return strings.HasPrefix(column, loadnote.PartsPrefix) })
	if j.Source.ExportTime.IsZero() {
		got = cutNote(got, loadnote.UntilColumn) // of exports before it
	}
	return r.Report.Check("schema table", layout.SchemaTable, func() (string, error) {
		there := map[string]layout.Row{}
		for _, row := range got {
			there[string(row.Key)] = row
		}
		for _, row := range want {
			at := report.InRow(layout.SchemaTable, row.Key)
			is, ok := there[string(row.Key)]
			delete(there, string(row.Key))
			if !ok {
				at.Kind, at.Want = report.MissingRow, phrase.Counted(int64(len(row.Cells)), "cell")
				r.Report.Fail(at)
				continue
			}
			got, stored := j.alignTimes(row.Cells, is.Cells)
			diffCellsAs(row.Cells, got, cellText, stored, func(int) bool { return false }, func(d CellDiff) { r.Report.Fail(d.In(at)) })
		}
		for _, key := range slices.Sorted(maps.Keys(there)) {
			at := report.InRow(layout.SchemaTable, []byte(key))
			at.Kind, at.Got = report.ExtraRow, phrase.Counted(int64(len(there[key].Cells)), "cell")
			r.Report.Fail(at)
		}
		detail := phrase.Counted(int64(len(got)), "row") + " of table " + j.Report.Target
		if changes := loadnote.Changes(got, j.Mapping); len(changes) > 0 {
			detail += "; the table was loaded by another mapping: " + strings.Join(changes, "; ")
		}
		return detail, nil
	})
}
