package migrate

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/cells"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// schemaFamilies are the families of layout.SchemaTable.
var schemaFamilies = []layout.Family{{Name: layout.SchemaFamily, GC: layout.GC{Versions: 1}}}

// StoredMappings are the mappings by which the tables of an instance were loaded,
// as the rows of _migration_schema tell, sorted by Bigtable table; none where no
// load noted one. Options say which instance. An error is an [source.Error] where
// what is noted cannot be read; others are Bigtable's.
func StoredMappings(ctx context.Context, conn grpc.ClientConnInterface, o Options) ([]*mapping.Mapping, error) {
	o = o.normalized()
	var all []*mapping.Mapping
	for row, err := range newBigtable(conn, o).read(ctx, btclient.Read{Table: layout.SchemaTable, Spans: []layout.Span{{}}}) {
		if status.Code(err) == codes.NotFound {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		// The rows of attributes have the attribute's name behind the '#', which no
		// Bigtable table has in its own.
		table, attribute, _ := strings.Cut(string(row.Key), "#")
		if attribute != "" {
			continue
		}
		m, err := layout.FromSchemaRows(table, []layout.Row{row})
		if err != nil {
			return nil, source.Damaged(source.MappingRefused, source.Position{File: layout.SchemaTable}, err, "the mapping that is noted of table %s cannot be read", table)
		}
		if m == nil || m.TargetTable() != table {
			return nil, source.Damaged(source.MappingRefused, source.Position{File: layout.SchemaTable}, nil, "row %q does not note the mapping of a table", row.Key)
		}
		all = append(all, (*mapping.Mapping)(m))
	}
	return all, nil
}

// schemaRows are the rows of layout.SchemaTable that are to be there for the
// job's table. A default layout has none.
func (j *job) schemaRows() ([]layout.Row, error) {
	if j.mapping.Spec() == nil {
		return nil, nil
	}
	return j.mapping.SchemaRows(j.micros)
}

// schemaOf reads the rows of layout.SchemaTable of one table; none where there
// is no such table.
func (b *bigtable) schemaOf(ctx context.Context, table string) ([]layout.Row, error) {
	prefix := layout.SchemaRowPrefix(table)
	var rows []layout.Row
	for row, err := range b.read(ctx, btclient.Read{Table: layout.SchemaTable, Spans: []layout.Span{{Start: prefix, End: cells.PrefixEnd(prefix)}}}) {
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

// writeSchema makes the rows of layout.SchemaTable that are of the job's table
// those of its mapping, each row at once. Rows that are so already are not
// written; changed is how many were.
func (j *job) writeSchema(ctx context.Context, b *bigtable) (changed int, err error) {
	want, err := j.schemaRows()
	if err != nil || want == nil {
		return 0, err
	}
	if _, err := b.ensureTable(ctx, layout.SchemaTable, schemaFamilies); err != nil {
		return 0, err
	}
	got, err := b.schemaOf(ctx, j.report.Target)
	if err != nil {
		return 0, err
	}
	there := map[string]string{}
	for _, row := range got {
		there[string(row.Key)] = string(layout.FormatRow(nil, row))
	}
	var entries []writeEntry
	replace := func(key []byte, content []layout.Cell) {
		e := &btpb.MutateRowsRequest_Entry{RowKey: key, Mutations: []*btpb.Mutation{btclient.DeleteRow()}}
		e.Mutations = btclient.AppendSets(e.Mutations, content)
		entries = append(entries, writeEntry{MutateRowsRequest_Entry: e})
	}
	for _, row := range want {
		if there[string(row.Key)] != string(layout.FormatRow(nil, row)) {
			replace(row.Key, row.Cells)
		}
		delete(there, string(row.Key))
	}
	for _, key := range slices.Sorted(maps.Keys(there)) { // of attributes that the mapping has no more
		replace([]byte(key), nil)
	}
	// None of this is of an item: it is not counted, and no dead letter.
	uncounted := *j
	uncounted.letters, uncounted.wrote = nil, nil
	w := &writer{b: b, j: &uncounted}
	for batch := range batches(entries) {
		if _, err := w.send(ctx, layout.SchemaTable, batch); err != nil {
			return 0, err
		}
	}
	return len(entries), nil
}

// compareSchema compares the rows of layout.SchemaTable that are of the job's
// table with those of its mapping. Who loads the items by other means need not
// write them: without required nothing is compared where there are none.
func (r *run) compareSchema(ctx context.Context, j *job, required bool) error {
	want, err := j.schemaRows()
	if err != nil || want == nil {
		return err
	}
	got, err := r.b.schemaOf(ctx, j.report.Target)
	if err != nil {
		return err
	}
	if len(got) == 0 && !required {
		return nil
	}
	return r.report.Check("schema table", layout.SchemaTable, func() (string, error) {
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
				r.report.Fail(at)
				continue
			}
			diffCells(row.Cells, j.alignTimes(row.Cells, is.Cells), func(d cellDiff) { r.report.Fail(d.in(at)) })
		}
		for _, key := range slices.Sorted(maps.Keys(there)) {
			at := report.InRow(layout.SchemaTable, []byte(key))
			at.Kind, at.Got = report.ExtraRow, phrase.Counted(int64(len(there[key].Cells)), "cell")
			r.report.Fail(at)
		}
		detail := phrase.Counted(int64(len(got)), "row") + " of table " + j.report.Target
		if changes := loadedBy(got, j.mapping); len(changes) > 0 {
			detail += "; the table was loaded by another mapping: " + strings.Join(changes, "; ")
		}
		return detail, nil
	})
}

// loadedBy says in what a mapping differs from the one by which its table was
// loaded, as the rows of layout.SchemaTable tell; nil where they do not.
func loadedBy(rows []layout.Row, m *layout.Mapping) []string {
	was, err := layout.FromSchemaRows(m.TargetTable(), rows)
	if err != nil {
		return []string{err.Error()}
	}
	if was == nil || m.Spec() == nil {
		return nil
	}
	if m.ProveJoiner() != nil { // it is open, and what was chosen is noted
		if m, err = m.Proven(was.Joiner()); err != nil {
			return []string{err.Error()}
		}
	}
	old, err := was.Lock()
	if err != nil {
		return []string{err.Error()}
	}
	now, err := m.Lock()
	if err != nil {
		return []string{err.Error()}
	}
	return old.Changes(now)
}

// loadedAt is the time that the last load of a table gave to cells without one of
// their own; zero where the rows do not tell.
func loadedAt(rows []layout.Row, table string) time.Time {
	for _, row := range rows {
		if slices.Equal(row.Key, layout.SchemaRowPrefix(table)) && len(row.Cells) > 0 {
			return time.UnixMicro(row.Cells[0].Timestamp).UTC()
		}
	}
	return time.Time{}
}
