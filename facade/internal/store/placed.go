package store

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/cells"
	"github.com/tabletop-emu/tabletop/facade/internal/changelog"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

// Placed is a Bigtable table with the column families that the store needs in it.
type Placed struct {
	ID       string
	Families []layout.Family
}

// PlacedTables yields the Bigtable tables of a store that is not open: its catalog, the
// tables of rows, indexes and due times of each DynamoDB table without a mapping, and the
// table of each log. PlacedTables does not write. It yields an error last. It uses only Conn,
// Project, Instance, AppProfile and Deadline of o.
func PlacedTables(ctx context.Context, o Options) iter.Seq2[Placed, error] {
	bt := btclient.New(o.Conn, o.Project, o.Instance, btclient.Options{AppProfile: o.AppProfile, Deadline: o.Deadline})
	return func(yield func(Placed, error) bool) {
		if !yield(Placed{CatalogTable, CatalogFamilies()}, nil) {
			return
		}
		cat := newCatalog(&instance{o: Options{Catalog: CatalogTable}, bt: bt}, nil)
		for row, err := range bt.Read(ctx, btclient.Read{
			Table:  CatalogTable,
			Spans:  []layout.Span{{Start: []byte(tableRowPrefix), End: cells.PrefixEnd([]byte(tableRowPrefix))}},
			Filter: btclient.Chain(btclient.OfColumn(catalogFamily, definitionQualifier), btclient.Newest(1)),
		}) {
			if status.Code(err) == codes.NotFound {
				return // the Bigtable never had a store
			}
			var placed []Placed
			if err == nil {
				placed, err = cat.placed(row)
			}
			for _, p := range placed {
				if !yield(p, nil) {
					return
				}
			}
			if err != nil {
				yield(Placed{}, err)
				return
			}
		}
	}
}

// placed decodes the table definition in a catalog row, and returns the Bigtable tables that
// PlacedTables yields for it: of a mapped table, only the log.
func (cat *catalog) placed(row btclient.Row) (all []Placed, err error) {
	def, err := tabledef.Decode(row.Cells[0].Value)
	if err != nil {
		return nil, fmt.Errorf("definition of table %s: %w", strings.TrimPrefix(string(row.Key), tableRowPrefix), err)
	}
	if !def.Mapped {
		l, err := cat.newLayout(def)
		if err != nil {
			return nil, err
		}
		all = append(all, Placed{l.table, l.families()})
		for _, x := range l.indexes {
			all = append(all, Placed{x.table, x.families()})
		}
	}
	if log := def.Log; log.On() {
		all = append(all, Placed{log.Table, []layout.Family{{Name: changelog.Family, GC: layout.GC{MaxAge: log.Retention}}}})
	}
	return all, nil
}
