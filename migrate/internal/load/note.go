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

// schemaNotes returns the rows of layout.SchemaTable of the job's table. They are read at the
// first call after the job wrote them.
func (j *job) schemaNotes(ctx context.Context) (rows []layout.Row, err error) {
	if !j.notedNow {
		j.noted, err = j.b.SchemaOf(ctx, j.Report.Target)
		if j.notedNow = err == nil; j.notedNow && !j.looked {
			j.looked, j.latest = true, loadnote.Load(j.noted, j.Report.Target)
		}
	}
	return j.noted, err
}

// beginNote notes the beginning of a load whose exports do not end at the same time as those of
// the stored items: if the load is interrupted, the table has items of both. unfinished reports
// whether endNote must remove that note, and first whether the table has no note yet.
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
	// Without a note there is nothing that a catch-up could remove.
	if !first && !begun.Equal(ends) {
		if err := j.begin(ctx); err != nil {
			return false, false, err
		}
		err = j.writeFirst(ctx, []*btpb.Mutation{btclient.SetCell(layout.SchemaFamily, []byte(loadnote.UnfinishedColumn), table.Micros(at), loadnote.MomentValue(ends))})
	}
	return true, first, err
}

// awaitEndpoints waits until every DynamoDB endpoint has seen the first note of a table, before
// rows are written: until then an endpoint may write and delete without a note. A table that
// the load itself creates needs no wait, since an endpoint looks for the note when it first
// finds the table.
func (j *job) awaitEndpoints(ctx context.Context) error {
	if !j.unseen && j.notes == "" {
		return nil
	}
	created, err := j.makeTables(ctx)
	if err != nil || created || !j.unseen || j.Options.Sleep == nil {
		return err
	}
	return j.Options.Sleep(ctx, 2*loadnote.MaxAge) // twice, since their clocks may be slower than this one
}

// makeTables creates the table of the items. If that table did not exist, it also creates
// those of the indexes, and created is true.
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

// endNote records the end of the load and, if unfinished, that its exports are loaded.
func (j *job) endNote(ctx context.Context, unfinished bool) error {
	var muts []*btpb.Mutation
	if unfinished {
		muts = append(muts, btclient.DeleteColumn(layout.SchemaFamily, []byte(loadnote.UnfinishedColumn), 0, 0))
	}
	if j.latest != "" { // of this load, or of an interrupted one
		muts = append(muts, btclient.DeleteColumn(layout.SchemaFamily, []byte(loadnote.LoadColumn), 0, 0))
	}
	if len(muts) == 0 {
		return nil
	}
	j.noted, j.notedNow, j.latest, j.begun = nil, false, "", false
	return changeNote(ctx, j.b, j.Report.Target, muts...)
}

// begin writes the id of this load to the first row of its table in layout.SchemaTable before
// anything else, and checks again that the load is allowed. If two loads check at the same
// time, one finds the other's id and is rejected. Some loads have no id: parts, which begin
// at the same time, and loads with an app profile that routes to several clusters, which
// cannot check a row.
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

// overtaken returns the error of a load that another one has overtaken.
func (j *job) overtaken() error {
	return source.Damaged(source.TargetNewer, source.Position{}, nil, "Bigtable table %s: another load has begun since this one checked the table: wait until that load ends, then load again", j.Report.Target)
}

// ifLatest changes the first row, and writes the id of a load there, unless the row names
// a load that is not the latest known one. It reports whether it did.
func (j *job) ifLatest(ctx context.Context, id string, muts []*btpb.Mutation) (done bool, err error) {
	guard := btclient.Guard{Family: layout.SchemaFamily, Qualifier: []byte(loadnote.LoadColumn)}
	if j.latest != "" {
		guard.Was = []byte(j.latest)
	}
	return j.b.ChangeGuarded(ctx, layout.SchemaTable, layout.SchemaRowPrefix(j.Report.Target), guard, []byte(id), muts)
}

// writeFirst changes the first row of the job's table, unless another load has begun.
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

// changeNote changes the first row of a table.
func changeNote(ctx context.Context, b *table.Bigtable, table string, muts ...*btpb.Mutation) error {
	refused, err := b.MutateRows(ctx, layout.SchemaTable, []*btpb.MutateRowsRequest_Entry{{RowKey: layout.SchemaRowPrefix(table), Mutations: muts}})
	if err == nil && len(refused) > 0 {
		err = refused[0].Err
	}
	return err
}

// writeSchema changes the rows about the job's table in layout.SchemaTable to those of its
// mapping, each row atomically. It does not write equal rows; changed counts the others.
// Notes of endpoints stay, unless they are about an earlier table, and so do notes of other
// parts of this load. unfinished notes that the load is incomplete.
func (j *job) writeSchema(ctx context.Context, unfinished bool) (changed int, err error) {
	if j.Mapping.Spec() == nil {
		return 0, nil
	}
	if _, err := j.b.MakeTable(ctx, layout.SchemaTable, table.SchemaFamilies); err != nil {
		return 0, err
	}
	// Read again: parts of other loads may have added notes since the first look.
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
	written, _ := writtenAt(got, j.Report.Target)
	stale := written > 0 && written <= j.earlier
	got = table.CutColumns(got, func(column string) bool {
		return column == loadnote.WrittenColumn || column == loadnote.LoadColumn || column == loadnote.FollowedColumn
	})
	if j.notes != "" { // notes of other loads in parts become invalid by this load
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
		if i == 0 { // endpoints and other parts may add notes at this moment: those stay
			gone = noteDeletes(got, row.Key)
			if stale {
				gone = append(gone, btclient.DeleteColumn(layout.SchemaFamily, []byte(loadnote.WrittenColumn), 0, j.earlier+1000))
			}
		}
		if i == 0 {
			begun, earlier := j.begun, j.earlier
			if err := j.begin(ctx); err != nil {
				return 0, err
			}
			// A load that may mix with this one may have ended since got was read. A note that an
			// endpoint made since then is about the new table.
			if j.begun && !begun {
				j.earlier = earlier
				return j.writeSchema(ctx, unfinished)
			}
			if err := j.writeFirst(ctx, btclient.AppendSets(gone, row.Cells)); err != nil {
				return 0, err
			}
			changed++
			continue
		}
		replace(row.Key, gone, row.Cells)
	}
	for _, key := range slices.Sorted(maps.Keys(there)) { // of attributes that the mapping no longer has
		replace([]byte(key), []*btpb.Mutation{btclient.DeleteRow()}, nil)
	}
	// These rows belong to no item: they are not counted, and cannot be dead letters.
	w := &writer{b: j.b, o: j.Options}
	for batch := range batches(entries) {
		if _, err := w.send(ctx, layout.SchemaTable, batch); err != nil {
			return 0, err
		}
	}
	return changed + len(entries), nil
}

// inParts reports whether this is a part of a load, or the end of a load in parts.
func (j *job) inParts() bool { return j.Options.Share.Of > 0 || j.Options.Parts != "" }

// contents returns the sums of the source's items if the source has no time and this is not a
// part of it, else "".
func (j *job) contents() string {
	if !j.Source.ExportTime.IsZero() || j.inParts() {
		return ""
	}
	text, _ := j.Wanted.Items.MarshalText() // it never fails
	return string(text)
}

// writtenAt returns the first and last time at which DynamoDB endpoints noted that they write
// in a table, in microseconds; 0: never.
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

// exportsBefore returns the noted end times of the exports of earlier loads, which a load of
// a source without a time keeps. They are zero if the table has no rows.
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

// noteDeletes returns deletions for each column of the row with the given key.
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
