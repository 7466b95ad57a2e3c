package endpoints

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/sqlclient"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
)

// keyColumn is the column of a table that has the row key.
const keyColumn = "_key"

// sqlRows runs a statement, and yields each row of its result as the row of a table or view that has
// the same columns. A result from which no row follows is an error with the code InvalidArgument.
func sqlRows(ctx context.Context, b *table.Bigtable, from Index, q *fixtures.NativeSQL) iter.Seq2[layout.Row, error] {
	return func(yield func(layout.Row, error) bool) {
		given, err := q.Values()
		params := map[string]*btpb.Value{}
		for name, v := range given {
			if err == nil {
				params[name], err = sqlclient.ParamOf(v)
			}
		}
		var rows *sqlclient.Rows
		if err == nil {
			rows, err = b.SQL(ctx, q.Query, params)
		}
		if err != nil {
			yield(layout.Row{}, err)
			return
		}
		defer rows.Close()
		for values, err := range rows.All() {
			var row layout.Row
			if err == nil {
				if row, err = sqlRow(values, rows.Columns, from); err != nil {
					err = status.Error(codes.InvalidArgument, err.Error())
				}
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

// sqlRow returns the row of a table or view that a row of a result shows.
func sqlRow(values []*btpb.Value, columns []*btpb.ColumnMetadata, from Index) (layout.Row, error) {
	var families []layout.Cell
	single := map[string][]byte{}
	for i, c := range columns {
		name, v := c.GetName(), values[i]
		switch of := c.GetType().GetKind().(type) {
		case *btpb.Type_BytesType:
			if v.GetKind() != nil { // otherwise it is NULL
				single[name] = v.GetBytesValue()
			}
			continue
		case *btpb.Type_MapType:
			if history, ok := ofFamily(of.MapType); ok {
				families = append(families, familyCells(name, v, history)...)
				continue
			}
		}
		return layout.Row{}, fmt.Errorf("column %s of the result is neither a family nor of type BYTES, so it is not a column of %s", name, from.ID)
	}
	slices.SortStableFunc(families, func(a, b layout.Cell) int {
		return cmp.Or(strings.Compare(a.Family, b.Family), bytes.Compare(a.Qualifier, b.Qualifier))
	})
	if from.View != nil {
		return from.View.RowOf(single, families)
	}
	key, ok := single[keyColumn]
	if !ok {
		return layout.Row{}, fmt.Errorf("the result has no column %s with the row key of table %s", keyColumn, from.ID)
	}
	return layout.Row{Key: key, Cells: families}, nil
}

// ofFamily reports whether a map is a family: its keys are of type BYTES, and its values too, or arrays of
// structures with a time and a value, if it has the history.
func ofFamily(m *btpb.Type_Map) (history, ok bool) {
	if m.GetKeyType().GetBytesType() == nil {
		return false, false
	}
	versions := m.GetValueType().GetArrayType()
	if versions == nil {
		return false, m.GetValueType().GetBytesType() != nil
	}
	fields := versions.GetElementType().GetStructType().GetFields()
	return true, len(fields) == 2 && fields[0].GetType().GetTimestampType() != nil && fields[1].GetType().GetBytesType() != nil
}

// familyCells returns the cells of a family. The newest cell of a column is first.
func familyCells(family string, v *btpb.Value, history bool) (cells []layout.Cell) {
	for _, entry := range v.GetArrayValue().GetValues() {
		pair := entry.GetArrayValue().GetValues()
		cell := layout.Cell{Family: family, Qualifier: pair[0].GetBytesValue()}
		if !history {
			cell.Value = pair[1].GetBytesValue()
			cells = append(cells, cell)
			continue
		}
		for _, version := range pair[1].GetArrayValue().GetValues() {
			fields := version.GetArrayValue().GetValues()
			cell.Timestamp, cell.Value = fields[0].GetTimestampValue().AsTime().UnixMicro(), fields[1].GetBytesValue()
			cells = append(cells, cell)
		}
	}
	return cells
}
