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

// remaps compares the mapping with that of the earlier load in layout.SchemaTable. If the
// earlier mapping wrote cells of source items that this one does not write, the two layouts
// would mix, and no later load would delete the old cells. That is a [source.Error], or a
// warning if table.Options.Remap allows it. Other differences of the mappings are a warning.
func (j *job) remaps(ctx context.Context) (warning string, err error) {
	noted, err := j.schemaNotes(ctx)
	if err != nil {
		return "", err
	}
	changes := loadnote.Changes(noted, j.Mapping)
	if len(changes) == 0 {
		return "", nil
	}
	by := fmt.Sprintf("Bigtable table %s was loaded with another mapping: %s", j.Report.Target, strings.Join(changes, "; "))
	was, err := layout.FromSchemaRows(j.Report.Target, noted)
	if err != nil { // also a change
		return by, nil //nolint:nilerr // see above
	}
	l := leftovers{j: j, b: j.b, was: was}
	switch err := l.find(ctx); {
	case status.Code(err) == codes.NotFound: // the table has been deleted since
		return "", nil
	case err != nil:
		return "", err
	case l.cells == 0:
		return by + "; this mapping writes every cell that the other one wrote for this source's items", nil
	}
	stay := fmt.Sprintf("%s; %s of items of this source would stay beside the new cells, e.g. %s", by, phrase.Counted(l.cells, "cell"), l.example)
	if !j.Options.Remap {
		return "", source.Damaged(source.MappingRefused, source.Position{}, nil, "%s: load into another table, delete this table first, or keep the old cells with --remap", stay)
	}
	return stay, nil
}

// leftovers are cells in a table and its indexes that another mapping wrote for the items of a
// source, and that the job's mapping does not write.
type leftovers struct {
	j       *job
	b       *table.Bigtable
	was     *layout.Mapping
	cells   int64
	example string

	rows  map[string]map[string]map[column]string // the columns to look up, by table and row, with the item of each
	bytes int
}

// column is a column of a row, or one cell of it if both mappings have the column.
type column struct {
	family, qualifier string
	micros            int64 // anyTime for all cells
}

const anyTime = -1

// find iterates over the items and looks up their earlier cells, in their table and in indexes
// that this mapping also has. Other indexes are no longer read.
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

// compare records the columns that an item had in a table and no longer has.
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

// lookUp counts the cells that the tables hold in the recorded columns, and forgets these
// columns.
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
