package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// A copy of a table is made in three steps. First an id is taken, and written
// down as one that is being copied to. Then the cells, of one moment, are written
// to files under that id, which the store takes in at once. Last, the id is given
// to a backup or a table, in one change of the catalog. What a crash leaves of it
// is an id that is being copied to: its cells are dropped when the store is opened.

// copied is cells under an id that no one has yet.
type copied struct {
	t     *table // the definition of that moment, with the new id
	bytes int64  // of keys and values
}

// copyTable copies a table that find returns, as it is at one moment, and runs
// place, which gives what was copied its name, in a change of the catalog. No
// lock that others need is held while cells are copied. room is asked with the
// number of bytes of keys and values so far, as they become more.
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

// takeCopyID takes an id to copy to. It is on the disk before a cell is under it,
// also where writes are not waited for: else a crash could give the id to another
// table.
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

// dropCopies drops what was copied to ids that nobody got.
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

// dropUnfinished drops what copies left that did not come to their end.
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

// copyCells puts the cells of the table that find returns under id.
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
	// What is to be swept of families that are gone is left out.
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
	// What has been taken in is linked from the store.
	if err = errors.Join(err, d.fs.RemoveAll(w.dir), d.failed()); err != nil {
		return nil, fmt.Errorf("engine: copy table %q: %w", from.def.Name, damage(err))
	}
	return c, nil
}

// copyCheckCells is after how many cells a copy looks whether it is to go on.
const copyCheckCells = 1024

// write writes the cells of from that it reads, under the new id.
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
				return fmt.Errorf("key %x is not a cell's", it.Key())
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
