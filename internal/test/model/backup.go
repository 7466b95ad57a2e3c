package model

import (
	"maps"
	"slices"

	"github.com/tabletop-emu/tabletop/engine"
)

// CreateBackup saves the current state of a table under a name.
func (d *DB) CreateBackup(from, name string) error {
	if _, ok := d.backups[name]; ok {
		return engine.ErrBackupExists
	}
	t, err := d.table(from)
	if err != nil {
		return err
	}
	d.backups[name] = t.copied()
	return nil
}

// CopyBackup creates a backup from another.
func (d *DB) CopyBackup(from, name string) error {
	if _, ok := d.backups[name]; ok {
		return engine.ErrBackupExists
	}
	b, ok := d.backups[from]
	if !ok {
		return engine.ErrBackupNotFound
	}
	d.backups[name] = b.copied()
	return nil
}

// RestoreBackup creates a table from a backup.
func (d *DB) RestoreBackup(from, name string) error {
	if _, ok := d.tables[name]; ok {
		return engine.ErrTableExists
	}
	b, ok := d.backups[from]
	if !ok {
		return engine.ErrBackupNotFound
	}
	t := b.copied()
	t.name, t.id = name, d.id()
	d.tables[name] = t
	return nil
}

// DeleteBackup removes a backup.
func (d *DB) DeleteBackup(name string) error {
	if _, ok := d.backups[name]; !ok {
		return engine.ErrBackupNotFound
	}
	delete(d.backups, name)
	return nil
}

// Backups returns the contents of all backups, by name.
func (d *DB) Backups() map[string]Table {
	out := map[string]Table{}
	for name, t := range d.backups {
		out[name] = t.definition()
	}
	return out
}

// copied returns a copy of a table, without its journal.
func (t *table) copied() *table {
	n := *t
	n.families, n.cells, n.journal = slices.Clone(t.families), maps.Clone(t.cells), journal{}
	return &n
}
