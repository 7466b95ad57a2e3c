package table

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/cells"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/loadnote"
)

// SchemaFamilies are the column families of layout.SchemaTable.
var SchemaFamilies = []layout.Family{{Name: layout.SchemaFamily, GC: layout.GC{Versions: 1}}}

// SchemaRows returns the rows that layout.SchemaTable should hold for the job's table.
// They include until, the end of the table's exports, if it differs from the time of the
// cells. A default layout has no such rows.
func (j *Job) SchemaRows(until time.Time) ([]layout.Row, error) {
	if j.Mapping.Spec() == nil {
		return nil, nil
	}
	rows, err := j.Mapping.SchemaRows(j.Micros)
	if err == nil && !until.IsZero() && Micros(until) != j.Micros {
		loadnote.SetUntil(rows, until)
	}
	return rows, err
}

// SchemaOf reads the rows of one table in layout.SchemaTable. It returns no rows if
// layout.SchemaTable does not exist.
func (b *Bigtable) SchemaOf(ctx context.Context, table string) ([]layout.Row, error) {
	prefix := layout.SchemaRowPrefix(table)
	var rows []layout.Row
	for row, err := range b.Rows(ctx, btclient.Read{Table: layout.SchemaTable, Spans: []layout.Span{cells.Prefixed(prefix)}}) {
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

// CutNote returns the rows without the cells of one column.
func CutNote(rows []layout.Row, column string) []layout.Row {
	return CutColumns(rows, func(of string) bool { return of == column })
}

// CutColumns returns the rows without the cells of the columns that which selects.
func CutColumns(rows []layout.Row, which func(column string) bool) []layout.Row {
	rest := slices.Clone(rows)
	for i, row := range rest {
		rest[i].Cells = slices.DeleteFunc(slices.Clone(row.Cells), func(c layout.Cell) bool { return which(string(c.Qualifier)) })
	}
	return rest
}
