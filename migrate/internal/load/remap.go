package load

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/loadnote"
	"github.com/tabletop-emu/tabletop/internal/layout/secondary"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// remaps compares the mapping with the one by which its table was loaded before,
// if a load noted one in layout.SchemaTable. Where that one left cells of items of
// the source in columns, or at times, at which this one has none, a load would mix
// the two layouts, and no later one would take the old cells away: a [source.Error],
// unless table.Options.Remap lets it. What else differs is a warning; "" for none.
func (j *job) remaps(ctx context.Context) (warning string, err error) {
	noted, err := j.schemaNotes(ctx)
	if err != nil {
		return "", err
	}
	changes := loadnote.Changes(noted, j.Mapping)
	if len(changes) == 0 {
		return "", nil
	}
	by := fmt.Sprintf("Bigtable table %s was loaded by another mapping: %s", j.Report.Target, strings.Join(changes, "; "))
	was, err := layout.FromSchemaRows(j.Report.Target, noted)
	if err != nil { // it is one of the changes
		return by, nil //nolint:nilerr // see above
	}
	l := leftovers{j: j, b: j.b, was: was}
	switch err := l.find(ctx); {
	case status.Code(err) == codes.NotFound: // the table has been deleted since
		return "", nil
	case err != nil:
		return "", err
	case l.cells == 0:
		return by + "; of the items of this source it left no cell that this one does not write", nil
	}
	stay := fmt.Sprintf("%s; %s of items of this source would stay beside those of this one, e.g. %s", by, phrase.Counted(l.cells, "cell"), l.example)
	if !j.Options.Remap {
		return "", source.Damaged(source.MappingRefused, source.Position{}, nil, "%s: load into another table, delete this table first, or keep the old cells with --remap", stay)
	}
	return stay, nil
}

// leftovers are the cells of a table and its indexes that another mapping made of
// the items of a source, and that the job's does not write.
type leftovers struct {
	j       *job
	b       *table.Bigtable
	was     *layout.Mapping
	cells   int64
	example string

	rows  map[string]map[string]map[column]string // the columns to look for, by table and row, with the item that each is of
	bytes int
}

// column is one of a row or, where both mappings have it, one cell of it.
type column struct {
	family, qualifier string
	micros            int64 // anyTime for all cells
}

const anyTime = -1

// find goes over the items, and looks up in the tables what they had there: in that
// of the items, and in those of indexes that this mapping has too. Nobody reads the
// others any more.
func (l *leftovers) find(ctx context.Context) error {
	l.rows = map[string]map[string]map[column]string{}
	err := l.j.Each(ctx, "checking", func(p table.Placed) error {
		if l.bytes >= l.j.Options.Batch {
			if err := l.lookUp(ctx); err != nil {
				return err
			}
		}
		before, err := l.was.Place(p.Entry.Item, l.j.Micros)
		if err != nil {
			return nil //nolint:nilerr // that mapping never took the item
		}
		item := l.j.KeyJSON(p.Entry.Item)
		l.compare(l.j.Report.Target, before, p.Base, item)
		back, _ := l.was.Returned(p.Entry.Item, before)
		for _, x := range l.was.Indexes() {
			i := slices.IndexFunc(l.j.Indexes, func(now *secondary.Index) bool { return now.TargetTable() == x.TargetTable() })
			if i < 0 {
				continue
			}
			if entry, ok, err := x.Place(back, l.j.Micros); err == nil && ok {
				l.compare(x.TargetTable(), entry, p.Index[i], item)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return l.lookUp(ctx)
}

// compare notes what an item had in a table and does not have now.
func (l *leftovers) compare(table string, before, now lens.Placed, item string) {
	written := map[column]bool{}
	if bytes.Equal(before.Row, now.Row) {
		for _, c := range now.Cells {
			written[column{c.Family, string(c.Qualifier), anyTime}] = true
			written[column{c.Family, string(c.Qualifier), c.Timestamp}] = true
		}
	}
	for _, c := range before.Cells {
		at := column{c.Family, string(c.Qualifier), c.Timestamp}
		if written[at] {
			continue
		}
		if at.micros = anyTime; written[at] {
			at.micros = c.Timestamp
		}
		l.add(table, before.Row, at, item)
	}
}

func (l *leftovers) add(table string, row []byte, at column, item string) {
	rows := l.rows[table]
	if rows == nil {
		rows = map[string]map[column]string{}
		l.rows[table] = rows
	}
	columns := rows[string(row)]
	if columns == nil {
		columns = map[column]string{}
		rows[string(row)] = columns
		l.bytes += len(row)
	}
	columns[at] = item
	l.bytes += len(at.qualifier) + len(item) + 64
}

// lookUp counts those that the tables have.
func (l *leftovers) lookUp(ctx context.Context) error {
	for _, table := range slices.Sorted(maps.Keys(l.rows)) {
		err := l.lookUpIn(ctx, table)
		if status.Code(err) == codes.NotFound && table != l.j.Report.Target {
			continue // the index has been deleted since
		}
		if err != nil {
			return err
		}
	}
	clear(l.rows)
	l.bytes = 0
	return nil
}

func (l *leftovers) lookUpIn(ctx context.Context, table string) error {
	r := btclient.Read{Table: table}
	for key := range l.rows[table] {
		r.Keys = append(r.Keys, []byte(key))
	}
	slices.SortFunc(r.Keys, bytes.Compare)
	for row, err := range l.b.Rows(ctx, r) {
		if err != nil {
			return err
		}
		columns := l.rows[table][string(row.Key)]
		for _, c := range row.Cells {
			at := column{c.Family, string(c.Qualifier), anyTime}
			item, ok := columns[at]
			if !ok {
				at.micros = c.Timestamp
				item, ok = columns[at]
			}
			if !ok {
				continue
			}
			if l.cells++; l.cells > 1 {
				continue
			}
			l.example = fmt.Sprintf("column %s:%s of row %q", c.Family, phrase.Column(string(c.Qualifier)), row.Key)
			if table != l.j.Report.Target {
				l.example += " of table " + table
			}
			l.example += ", of item " + item
		}
	}
	return nil
}
