package changelog

import (
	"context"
	"fmt"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/cells"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

// Each open process has a row in the catalog, even if it never writes a log: a process that
// turns a log on must know whether others may write without recording. The row does not prove
// that the process is alive: if a process without a slot ends without closing, others wait
// for it in vain.

var slotQualifier = []byte("slot")

func (lg *Logs) presentRow(epoch uint64) []byte {
	return fmt.Appendf(nil, "%s%020d", lg.o.Present, epoch)
}

// Appear records in the catalog that the process is open. Call it after Start, and before
// reading any table definition.
func (lg *Logs) Appear(ctx context.Context) error {
	row := lg.presentRow(lg.epoch)
	return lg.bt.MutateRow(ctx, lg.o.Catalog, row, []*btpb.Mutation{
		btclient.SetCell(lg.o.Family, slotQualifier, lg.o.Now().UnixMilli()*1000, []byte(lg.o.Slot)),
	})
}

// Disappear reverts Appear. If it fails, other processes only wait longer.
func (lg *Logs) Disappear(ctx context.Context) {
	if lg.epoch == 0 {
		return
	}
	if err := lg.bt.MutateRow(ctx, lg.o.Catalog, lg.presentRow(lg.epoch), []*btpb.Mutation{btclient.DeleteRow()}); err != nil {
		lg.o.Logger.DebugContext(ctx, "a closed process stays in the catalog", "error", err)
	}
}

// Others reports whether another process may be open. Earlier processes of the same slot do not
// count; Others deletes their rows.
func (lg *Logs) Others(ctx context.Context) (others bool, err error) {
	prefix := []byte(lg.o.Present)
	own := string(lg.presentRow(lg.epoch))
	var gone [][]byte
	read := btclient.Read{Table: lg.o.Catalog, Spans: []layout.Span{cells.Prefixed(prefix)}, Filter: btclient.Newest(1)}
	for row, err := range lg.bt.Read(ctx, read) {
		switch {
		case err != nil:
			return false, fmt.Errorf("looking for other processes: %w", err)
		case len(row.Cells) == 0 || string(row.Key) == own:
		case lg.o.Slot != "" && string(row.Cells[0].Value) == lg.o.Slot:
			gone = append(gone, row.Key)
		default:
			others = true
		}
	}
	if len(gone) > 0 {
		err = lg.bt.DeleteRows(ctx, lg.o.Catalog, gone)
	}
	return others, err
}
