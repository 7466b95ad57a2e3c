package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Copying a table has three steps. First, it takes an id and stores it as the target of a
// copy. Second, it writes the cells of one moment under that id to files, which the store
// ingests. Third, one catalog change gives the id to a backup or a table. A crash leaves an id
// that is the target of a copy; the next Open drops its cells.

// copied is a copy of cells under an id that has no owner yet.
type copied struct {
	t     *table // the definition at that moment, with the new id
	bytes int64  // of keys and values
}

// copyTable copies the table that find returns as of one moment, and runs place in a catalog
// change to give the copy a name. It holds no lock that other calls need while it copies. It
// calls room with the growing number of bytes of keys and values.
func (k Backups) copyTable(
	ctx context.Context, find func(*catalog) (*table, error), room func(int64) error, place func(*CatalogTx, *copied) error,
) (err error) {
	d := k.d
	if err := d.enter(); err != nil {
		return err
	}
	defer d.leave()
	d.copyMu.RLock()
	defer d.copyMu.RUnlock()
	id, err := k.takeCopyID(ctx)
	if err != nil {
		return err
	}
	placed := false
	defer func() {
		if !placed {
			err = errors.Join(err, k.dropCopies(id))
		}
	}()
	c, err := k.copyCells(ctx, id, find, room)
	if err != nil {
		return err
	}
	err = d.UpdateCatalog(ctx, func(tx *CatalogTx) error {
		if err := place(tx, c); err != nil {
			return err
		}
		delete(tx.change().copying, id)
		return nil
	})
	placed = err == nil
	return err
}

// takeCopyID allocates the target id of a copy. It is on disk before the first cell, even with
// NoSync: otherwise a crash could give the id to another table.
func (k Backups) takeCopyID(ctx context.Context) (uint32, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	d := k.d
	d.catalogMu.Lock()
	defer d.catalogMu.Unlock()
	next := d.catalog.Load().clone()
	id, err := next.takeID()
	if err != nil {
		return 0, err
	}
	next.copying[id] = true
	o := pebble.Sync
	if d.options.DisableWAL {
		o = pebble.NoSync
	}
	return id, d.replaceCatalog(d.pebble.NewBatch(), next, o)
}

// dropCopies drops the cells of ids that got no owner.
func (k Backups) dropCopies(ids ...uint32) error {
	d := k.d
	d.catalogMu.Lock()
	defer d.catalogMu.Unlock()
	next := d.catalog.Load().clone()
	for _, id := range ids {
		delete(next.copying, id)
	}
	return d.replaceCatalog(d.pebble.NewBatch(), next, pebble.NoSync)
}

// dropUnfinished drops the cells of unfinished copies.
func (k Backups) dropUnfinished() error {
	var ids []uint32
	for id := range k.d.catalog.Load().copying {
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return nil
	}
	return k.dropCopies(ids...)
}

// copyCells copies the cells of the table that find returns to id.
func (k Backups) copyCells(ctx context.Context, id uint32, find func(*catalog) (*table, error), room func(int64) error) (*copied, error) {
	d := k.d
	d.viewMu.RLock()
	from, err := find(d.catalog.Load())
	if err != nil {
		d.viewMu.RUnlock()
		return nil, err
	}
	lower := appendTablePrefix(nil, from.def.ID)
	it, err := d.pebble.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: prefixEnd(bytes.Clone(lower))})
	d.viewMu.RUnlock()
	if err != nil {
		return nil, fmt.Errorf("engine: copy table %q: %w", from.def.Name, err)
	}
	// The copy excludes dropped families that a sweep has yet to remove.
	def := cloneTable(from.def)
	def.ID, def.Journal = id, Journal{}
	c := &copied{t: newTable(def, from.nextOrdinal, nil)}
	w := sortedFiles{d: d, dir: d.fs.PathJoin(d.snapshotDir, fmt.Sprintf("copy-%d", d.snapshots.Add(1)))}
	err = d.fs.MkdirAll(w.dir, 0o755)
	if err == nil {
		err = c.write(ctx, &w, it, from, room)
	}
	if err = errors.Join(err, it.Close(), w.close()); err == nil && len(w.files) > 0 {
		err = d.pebble.Ingest(ctx, w.files)
	}
	// The store has links to ingested files.
	if err = errors.Join(err, d.fs.RemoveAll(w.dir), d.failed()); err != nil {
		return nil, fmt.Errorf("engine: copy table %q: %w", from.def.Name, damage(err))
	}
	return c, nil
}

// copyCheckCells is the number of cells between two checks of room and context.
const copyCheckCells = 1024

// write copies the cells of the iterator it to w under the new id, without those of dropped families
// of from.
func (c *copied) write(ctx context.Context, w *sortedFiles, it *pebble.Iterator, from *table, room func(int64) error) error {
	var key []byte
	n := 0
	check := func() error { return errors.Join(ctx.Err(), w.d.life.Err(), room(c.bytes)) }
	for valid := it.First(); valid; valid = it.Next() {
		if n++; n%copyCheckCells == 0 {
			if err := check(); err != nil {
				return err
			}
		}
		if len(from.dropped) > 0 {
			rowEnd, _, ok := splitCellKey(it.Key())
			if !ok {
				return fmt.Errorf("key %x is not the key of a cell", it.Key())
			}
			if from.live(binary.BigEndian.Uint16(it.Key()[rowEnd:])) == nil {
				continue
			}
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		key = append(appendTablePrefix(key[:0], c.t.def.ID), it.Key()[tablePrefixLen:]...)
		if err := w.set(key, value); err != nil {
			return err
		}
		c.bytes += int64(len(key) + len(value))
	}
	return check()
}
