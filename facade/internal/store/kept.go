package store

import (
	"context"
	"fmt"
	"iter"
	"strings"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

// keeper stores items outside the tables of requests: for backups, deleted tables, and tables
// that are being restored.
type keeper struct {
	*instance
	cat    *catalog
	reader *reader
	filler *filler
	tables *tables
}

// KeptTable returns the id of the Bigtable table that keeps items under the given name, such
// as the id of a backup.
func (k *keeper) KeptTable(name string) string {
	return newTableID(reservedPrefix+"b.", strings.ReplaceAll(name, "/", "."))
}

// DropKept drops the Bigtable table with an id that KeptTable returned, if it exists.
func (k *keeper) DropKept(ctx context.Context, table string) error {
	return k.bt.DropTable(ctx, table)
}

// keptLayout returns the layout of def's items in the given Bigtable table; "" means the one
// that def names.
func (k *keeper) keptLayout(def *tabledef.Table, table string) (*tableLayout, error) {
	if table == "" {
		return k.cat.newLayout(def)
	}
	return k.cat.newLayout(&tabledef.Table{Name: def.Name, ID: def.ID, BigtableTable: table, Key: def.Key})
}

// Kept yields the items of def's table that the given Bigtable table keeps; "" means the one
// that def names. The Bigtable table must not change meanwhile.
func (k *keeper) Kept(ctx context.Context, def *tabledef.Table, table string) iter.Seq2[layout.Stored, error] {
	return func(yield func(layout.Stored, error) bool) {
		l, err := k.keptLayout(def, table)
		if err != nil {
			yield(nil, err)
			return
		}
		everyone := func(layout.Stored) bool { return true }
		k.reader.scanBase(ctx, l, l.base.PlanScan(), everyone, nil, nil, yield)
	}
}

// Keep writes items of def's table into the given Bigtable table, which must be unknown to
// other callers: one that KeptTable names or, for "", that of a table that is being restored.
// It creates the Bigtable table if necessary, and replaces existing items.
func (k *keeper) Keep(ctx context.Context, def *tabledef.Table, table string, items iter.Seq2[attr.Item, error]) error {
	l, err := k.keptLayout(def, table)
	if err != nil {
		return err
	}
	if _, err := k.bt.EnsureTable(ctx, l.table, l.families(), nil); err != nil {
		return err
	}
	var entries []*btpb.MutateRowsRequest_Entry
	size, muts := 0, 0
	flush := func() error {
		if len(entries) == 0 {
			return nil
		}
		refused, err := k.bt.MutateRows(ctx, l.table, entries)
		if err == nil && len(refused) > 0 {
			err = fmt.Errorf("writing %d items of table %s: %w", len(refused), def.Name, refused[0].Err)
		}
		entries, size, muts = entries[:0], 0, 0
		return err
	}
	for item, err := range items {
		if err != nil {
			return err
		}
		placed, err := l.base.Place(item, k.nowMicros())
		if err != nil {
			return outsideMapping(err)
		}
		sets := btclient.AppendSets(nil, placed.Cells)
		entries = append(entries, &btpb.MutateRowsRequest_Entry{RowKey: placed.Row, Mutations: sets})
		muts += len(sets)
		for _, c := range placed.Cells {
			size += len(c.Qualifier) + len(c.Value)
		}
		if len(entries) >= fillBatch || size >= k.batchBytes() || muts >= maxKeptMutations {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// maxKeptMutations is the number of mutations at which a request of Keep ends. It leaves room
// for the mutations of the last item below Bigtable's limit of 100,000.
// https://cloud.google.com/bigtable/quotas
const maxKeptMutations = 50_000

// FinishRestore fills the indexes of a table whose items the job id has restored, and makes
// the table ACTIVE. It returns ErrTableNotFound if that job no longer restores the table.
func (k *keeper) FinishRestore(ctx context.Context, name, id string) error {
	c, err := k.restored(ctx, name, id)
	if err != nil {
		return err
	}
	for _, x := range c.layout.indexes {
		if err := k.filler.backfill(ctx, c.layout, x); err != nil {
			return err
		}
	}
	k.cat.ddl.Lock()
	defer k.cat.ddl.Unlock()
	if c, err = k.restored(ctx, name, id); err != nil {
		return err
	}
	next, err := c.def.Clone()
	if err != nil {
		return err
	}
	next.Restore.Job = ""
	_, err = k.tables.activate(ctx, next, c.version)
	return err
}

// AbandonRestore removes a table that the job id failed to restore. It returns
// ErrTableNotFound if that job no longer restores the table.
func (k *keeper) AbandonRestore(ctx context.Context, name, id string) error {
	k.cat.ddl.Lock()
	defer k.cat.ddl.Unlock()
	c, err := k.restored(ctx, name, id)
	if err != nil {
		return err
	}
	return k.tables.finishDelete(ctx, c.def)
}

// restored returns the table that the job id is restoring. Errors: ErrTableNotFound.
func (k *keeper) restored(ctx context.Context, name, id string) (*cachedTable, error) {
	c, err := k.cat.refresh(ctx, name)
	if err == nil && (c.def.Restore == nil || c.def.Restore.Job != id) {
		err = fmt.Errorf("%w: %s is no longer restored by job %s", ErrTableNotFound, name, id)
	}
	return c, err
}
