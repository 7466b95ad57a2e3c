package load

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/loadnote"
	"github.com/tabletop-emu/tabletop/internal/layout/rowtext"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// schemaNotes returns the rows of layout.SchemaTable of the job's table, as they were at
// the first call since the job wrote them.
func (j *job) schemaNotes(ctx context.Context) (rows []layout.Row, err error) {
	if !j.notedNow {
		j.noted, err = j.b.SchemaOf(ctx, j.Report.Target)
		if j.notedNow = err == nil; j.notedNow && !j.looked {
			j.looked, j.latest = true, loadnote.Load(j.noted, j.Report.Target)
		}
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
		if err := j.begin(ctx); err != nil {
			return false, false, err
		}
		err = j.writeFirst(ctx, []*btpb.Mutation{btclient.SetCell(layout.SchemaFamily, []byte(loadnote.UnfinishedColumn), table.Micros(at), loadnote.MomentValue(ends))})
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

// endNote notes that the load is at its end; unfinished, that its exports are loaded.
func (j *job) endNote(ctx context.Context, unfinished bool) error {
	var muts []*btpb.Mutation
	if unfinished {
		muts = append(muts, btclient.DeleteColumn(layout.SchemaFamily, []byte(loadnote.UnfinishedColumn), 0, 0))
	}
	if j.latest != "" { // of this load, or of one that was cut off
		muts = append(muts, btclient.DeleteColumn(layout.SchemaFamily, []byte(loadnote.LoadColumn), 0, 0))
	}
	if len(muts) == 0 {
		return nil
	}
	j.noted, j.notedNow, j.latest, j.begun = nil, false, "", false
	return changeNote(ctx, j.b, j.Report.Target, muts...)
}

// begin notes the id of this load in the first of the rows of its table, before it writes
// anything, and looks again whether the load may be. Of two loads that look at one moment, one
// finds the id of the other, and is refused. Parts of a load begin at one moment and
// have no ids, nor have loads by an app profile that routes to several clusters, which can
// check no row.
func (j *job) begin(ctx context.Context) error {
	if j.begun || j.inParts() {
		return nil
	}
	if _, err := j.b.MakeTable(ctx, layout.SchemaTable, table.SchemaFamilies); err != nil {
		return err
	}
	id := rand.Text()
	set := []*btpb.Mutation{btclient.DeleteColumn(layout.SchemaFamily, []byte(loadnote.LoadColumn), 0, 0), btclient.SetCell(layout.SchemaFamily, []byte(loadnote.LoadColumn), j.Micros, []byte(id))}
	done, err := j.ifLatest(ctx, id, set)
	if status.Code(err) == codes.FailedPrecondition {
		return nil
	}
	if err != nil {
		return err
	}
	if !done {
		return j.overtaken()
	}
	j.latest, j.begun, j.noted, j.notedNow = id, true, nil, false
	if _, err := j.check(ctx); err != nil {
		return errors.Join(err, j.endNote(ctx, false))
	}
	return nil
}

// overtaken refuses the load, since another one has begun.
func (j *job) overtaken() error {
	return source.Damaged(source.TargetNewer, source.Position{}, nil, "Bigtable table %s: another load has begun since this one looked: let it end, then load again", j.Report.Target)
}

// ifLatest changes the first row, and leaves the id of a load there, if the load that it
// names is the latest that this one knows. It reports whether it was done.
func (j *job) ifLatest(ctx context.Context, id string, muts []*btpb.Mutation) (done bool, err error) {
	guard := btclient.Guard{Family: layout.SchemaFamily, Qualifier: []byte(loadnote.LoadColumn)}
	if j.latest != "" {
		guard.Was = []byte(j.latest)
	}
	return j.b.ChangeGuarded(ctx, layout.SchemaTable, layout.SchemaRowPrefix(j.Report.Target), guard, []byte(id), muts)
}

// writeFirst changes the first of the rows of the job's table, unless another load has
// begun.
func (j *job) writeFirst(ctx context.Context, muts []*btpb.Mutation) error {
	if !j.begun {
		return changeNote(ctx, j.b, j.Report.Target, muts...)
	}
	done, err := j.ifLatest(ctx, j.latest, muts)
	if err == nil && !done {
		err = j.overtaken()
	}
	return err
}

// changeNote changes the first of the rows of a table.
func changeNote(ctx context.Context, b *table.Bigtable, table string, muts ...*btpb.Mutation) error {
	refused, err := b.MutateRows(ctx, layout.SchemaTable, []*btpb.MutateRowsRequest_Entry{{RowKey: layout.SchemaRowPrefix(table), Mutations: muts}})
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
	if contents := j.contents(); contents != "" {
		loadnote.SetContents(want, contents)
	}
	door, _ := writtenAt(got, j.Report.Target)
	stale := door > 0 && door <= j.earlier
	got = table.CutNote(table.CutNote(got, loadnote.WrittenColumn), loadnote.LoadColumn)
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
		if i == 0 {
			if err := j.begin(ctx); err != nil {
				return 0, err
			}
			if err := j.writeFirst(ctx, btclient.AppendSets(gone, row.Cells)); err != nil {
				return 0, err
			}
			changed++
			continue
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
	return changed + len(entries), nil
}

// inParts reports whether this is a part of a load, or ends one in parts.
func (j *job) inParts() bool { return j.Options.Share.Of > 0 || j.Options.Parts != "" }

// contents are those of the source, if it tells no time and this is not a part of it.
func (j *job) contents() string {
	if !j.Source.ExportTime.IsZero() || j.inParts() {
		return ""
	}
	text, _ := j.Wanted.Items.MarshalText() // it never fails
	return string(text)
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
