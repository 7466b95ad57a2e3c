package table

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout/migrationstate"
)

// StateOf returns the migration state of a table, and the content of the cell that stores it,
// which guards changes of the state. If the table has no state, it returns the zero value and
// nil.
func (b *Bigtable) StateOf(ctx context.Context, table string) (s migrationstate.State, cell []byte, err error) {
	key := migrationstate.StateRow(table)
	for row, err := range b.Rows(ctx, btclient.Read{Table: migrationstate.Table, Keys: [][]byte{key}, Filter: btclient.Chain(btclient.OfFamily(migrationstate.FamilyState), btclient.Newest(1))}) {
		switch {
		case status.Code(err) == codes.NotFound:
			return s, nil, nil
		case err != nil:
			return s, nil, err
		}
		s, err = migrationstate.Decode[migrationstate.State](key, row.Cells[0].Value)
		return s, row.Cells[0].Value, err
	}
	return s, nil, nil
}
