package engine

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// backupBytes is the default of Options.BackupBytes in memory, where backups take memory from
// the program.
const backupBytes = 4 << 30

// backupBounds limits the space that backups take.
type backupBounds struct {
	bytes int64 // below 0: unlimited
}

// backupBounds returns the limit that the Options set.
func (o *Options) backupBounds() backupBounds {
	if o.BackupBytes == 0 && o.Dir == "" {
		return backupBounds{backupBytes}
	}
	return backupBounds{cmp.Or(o.BackupBytes, -1)}
}

// Backup is a named copy of a table and its rows at one moment. It is independent of the table, is
// not listed among the tables, and never changes. Returned values are shared; callers must not
// change them.
type Backup struct {
	Name  string // full resource name; the engine only compares it
	Table *Table // the original definition, except for its ID
	Bytes int64  // size of the stored keys and values of its cells
}

// backup is a backup of the catalog.
type backup struct {
	shown Backup
	t     *table
}

// backupRecord is a backup as stored, in JSON.
type backupRecord struct {
	Name  []byte      `json:"name"`
	Bytes int64       `json:"bytes"`
	Table tableRecord `json:"table"`
}

func newBackup(name string, c *copied) *backup {
	return &backup{shown: Backup{Name: name, Table: &c.t.def, Bytes: c.bytes}, t: c.t}
}

// decodeBackup reads a backupRecord.
func decodeBackup(value []byte) (*backup, error) {
	var r backupRecord
	if err := json.Unmarshal(value, &r); err != nil {
		return nil, err
	}
	t, err := r.Table.table()
	if err != nil {
		return nil, err
	}
	return newBackup(string(r.Name), &copied{t: t, bytes: r.Bytes}), nil
}

// Backups reads and changes the backups of a store.
type Backups struct{ d *DB }

// Backups returns the backups of the store.
func (d *DB) Backups() Backups { return Backups{d} }

// Create makes a backup of a table at one moment during the call, and runs fn in the catalog change
// that adds the backup. It reads and writes the whole table while other calls continue. If it
// fails, it leaves neither a backup nor changes of fn. Errors: ErrTableNotFound, ErrBackupExists,
// ErrBackupBytes, and the error of fn.
func (k Backups) Create(ctx context.Context, from, name string, fn func(*CatalogTx, *Backup) error) error {
	return k.keepCopy(ctx, name, func(c *catalog) (*table, error) { return c.table(from) }, fn)
}

// Copy makes a copy of another backup, and runs fn like Create. Errors: ErrBackupNotFound,
// ErrBackupExists, ErrBackupBytes, and the error of fn.
func (k Backups) Copy(ctx context.Context, from, name string, fn func(*CatalogTx, *Backup) error) error {
	return k.keepCopy(ctx, name, func(c *catalog) (*table, error) { return c.backupTable(from) }, fn)
}

func (k Backups) keepCopy(ctx context.Context, name string, find func(*catalog) (*table, error), fn func(*CatalogTx, *Backup) error) error {
	if _, ok := k.d.catalog.Load().backups[name]; ok {
		return fmt.Errorf("%w: %q", ErrBackupExists, name)
	}
	room := func(n int64) error { return k.d.backups.room(k.d.catalog.Load(), n) }
	return k.copyTable(ctx, find, room, func(tx *CatalogTx, copied *copied) error {
		if _, ok := tx.c.backups[name]; ok {
			return fmt.Errorf("%w: %q", ErrBackupExists, name)
		}
		if err := k.d.backups.room(tx.c, copied.bytes); err != nil {
			return err
		}
		b := newBackup(name, copied)
		tx.change().backups[name] = b
		return fn(tx, &b.shown)
	})
}

// room returns an error if n more bytes exceed the limit.
func (x backupBounds) room(c *catalog, n int64) error {
	if x.bytes < 0 {
		return nil
	}
	kept := int64(0)
	for _, b := range c.backups {
		kept += b.shown.Bytes
	}
	if n > x.bytes-kept {
		return fmt.Errorf("%w: backups are limited to %d bytes in total, and %d are in use", ErrBackupBytes, x.bytes, kept)
	}
	return nil
}

// Restore creates a table with the definition and the rows of a backup, and runs fn in the catalog
// change that adds the table. fn may change the table as in UpdateTable. Restore reads and writes
// the whole backup while other calls continue. If it fails, it leaves neither a table nor changes
// of fn. Errors: ErrBackupNotFound, ErrTableExists, and the error of fn.
func (k Backups) Restore(ctx context.Context, from, to string, fn func(*CatalogTx) error) error {
	if _, err := k.d.lookup(to); err == nil {
		return fmt.Errorf("%w: %q", ErrTableExists, to)
	}
	find := func(c *catalog) (*table, error) { return c.backupTable(from) }
	unbounded := func(int64) error { return nil }
	return k.copyTable(ctx, find, unbounded, func(tx *CatalogTx, copied *copied) error {
		if _, ok := tx.c.tables[to]; ok {
			return fmt.Errorf("%w: %q", ErrTableExists, to)
		}
		copied.t.def.Name = to
		tx.change().tables[to] = copied.t
		return fn(tx)
	})
}

// Get returns the backup with the given name, or ErrBackupNotFound.
func (k Backups) Get(name string) (*Backup, error) {
	if err := k.d.enter(); err != nil {
		return nil, err
	}
	defer k.d.leave()
	return k.d.catalog.Load().backup(name)
}

// List returns the backups whose names start with prefix, sorted by name. It returns nothing if the
// store is closed.
func (k Backups) List(prefix string) []*Backup {
	if k.d.enter() != nil {
		return nil
	}
	defer k.d.leave()
	return k.d.catalog.Load().backupsUnder(prefix)
}

// Backup returns the backup with the given name, or ErrBackupNotFound.
func (tx *CatalogTx) Backup(name string) (*Backup, error) {
	if err := tx.check(); err != nil {
		return nil, err
	}
	return tx.c.backup(name)
}

// Backups returns the backups whose names start with prefix, sorted by name. It returns nothing
// after the end of the transaction.
func (tx *CatalogTx) Backups(prefix string) []*Backup {
	if tx.check() != nil {
		return nil
	}
	return tx.c.backupsUnder(prefix)
}

// DeleteBackup removes a backup with its rows, or returns ErrBackupNotFound. A Copy or Restore that
// is already reading the backup completes.
func (tx *CatalogTx) DeleteBackup(name string) error {
	if _, err := tx.Backup(name); err != nil {
		return err
	}
	delete(tx.change().backups, name)
	return nil
}

func (c *catalog) backup(name string) (*Backup, error) {
	b, ok := c.backups[name]
	if !ok {
		return nil, fmt.Errorf("%w: %q", ErrBackupNotFound, name)
	}
	return &b.shown, nil
}

// backupTable returns the table in the backup with the given name.
func (c *catalog) backupTable(name string) (*table, error) {
	if _, err := c.backup(name); err != nil {
		return nil, err
	}
	return c.backups[name].t, nil
}

func (c *catalog) backupsUnder(prefix string) []*Backup {
	return shownUnder(c.backups, prefix, func(b *backup) *Backup { return &b.shown })
}

// backupIDs returns the ids of backups and of unfinished copies.
func (c *catalog) backupIDs() map[uint32]bool {
	ids := make(map[uint32]bool, len(c.backups)+len(c.copying))
	for _, b := range c.backups {
		ids[b.t.def.ID] = true
	}
	for id := range c.copying {
		ids[id] = true
	}
	return ids
}

// writeBackups adds the difference between the stored backups of from and those of c to a
// batch, and returns backupIDs.
func (c *catalog) writeBackups(batch *pebble.Batch, from *catalog) (map[uint32]bool, error) {
	for name, b := range c.backups {
		if from.backups[name] != b {
			r := backupRecord{Name: []byte(name), Bytes: b.shown.Bytes, Table: b.t.record()}
			if err := setJSON(batch, catalogKey(catalogBackup, name), r); err != nil {
				return nil, err
			}
		}
	}
	for name := range from.backups {
		if _, ok := c.backups[name]; !ok {
			if err := batch.Delete(catalogKey(catalogBackup, name), nil); err != nil {
				return nil, err
			}
		}
	}
	for id := range c.copying {
		if !from.copying[id] {
			if err := raiseVersion(batch); err != nil {
				return nil, err
			}
			if err := batch.Set(copyKey(id), nil, nil); err != nil {
				return nil, err
			}
		}
	}
	for id := range from.copying {
		if !c.copying[id] {
			if err := batch.Delete(copyKey(id), nil); err != nil {
				return nil, err
			}
		}
	}
	return c.backupIDs(), nil
}

// copyKey returns the key of the catalog entry of an unfinished copy to id.
func copyKey(id uint32) []byte {
	return catalogKey(catalogCopy, string(binary.BigEndian.AppendUint32(nil, id)))
}
