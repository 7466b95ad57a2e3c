package migrate

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/loadnote"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// StoredMappings returns the mappings with which the tables of an instance were loaded,
// sorted by Bigtable table. It reads them from _migration_schema. It returns none if no
// load recorded one. The options select the instance. If the rows cannot be parsed, the
// error is a [source.Error]; other errors come from Bigtable.
func StoredMappings(ctx context.Context, conn grpc.ClientConnInterface, o Common) ([]*mapping.Mapping, error) {
	var all []*mapping.Mapping
	for row, err := range table.NewBigtable(conn, o.options()).Rows(ctx, btclient.Read{Table: layout.SchemaTable, Spans: []layout.Span{{}}}) {
		if status.Code(err) == codes.NotFound {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		// The row key of an attribute continues with '#' and the attribute's name; names of
		// Bigtable tables have no '#'.
		table, attribute, _ := strings.Cut(string(row.Key), "#")
		if attribute != "" {
			continue
		}
		m, err := layout.FromSchemaRows(table, []layout.Row{row})
		if err != nil {
			return nil, source.Damaged(source.MappingRefused, source.Position{File: layout.SchemaTable}, err, "the recorded mapping of table %s cannot be read", table)
		}
		if !slices.ContainsFunc(row.Cells, func(c layout.Cell) bool { return loadnote.OfLoad(string(c.Qualifier)) }) {
			continue // a load has begun, and recorded no mapping yet
		}
		if m == nil || m.TargetTable() != table {
			return nil, source.Damaged(source.MappingRefused, source.Position{File: layout.SchemaTable}, nil, "row %q does not record the mapping of a table", row.Key)
		}
		all = append(all, (*mapping.Mapping)(m))
	}
	return all, nil
}
