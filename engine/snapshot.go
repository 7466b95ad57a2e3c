package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Snapshot is the state of a store at one moment: tables, deleted tables, rows and resources. It
// consists of sorted files in the file system of the store, which Restore links instead of copying.
// Closing the store deletes the snapshot. It is safe for concurrent use.
type Snapshot struct {
	d   *DB
	dir string

	mu     sync.RWMutex // guards the fields below
	files  []string
	closed bool
}

// Snapshot takes a consistent snapshot of the store's current data while other calls continue. It
// reads all data once. The caller must close the snapshot to free its space.
func (d *DB) Snapshot(ctx context.Context) (*Snapshot, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	s := &Snapshot{d: d, dir: d.fs.PathJoin(d.snapshotDir, fmt.Sprint(d.snapshots.Add(1)))}
	if err := d.fs.MkdirAll(s.dir, 0o755); err != nil {
		return nil, fmt.Errorf("engine: snapshot: %w", err)
	}
	if err := s.write(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("engine: snapshot: %w", err), s.Close())
	}
	return s, nil
}

// storeBounds returns the bounds of all keys.
func storeBounds() (lower, upper []byte) { return []byte{spaceCatalog}, []byte{spaceJournal + 1} }

// write fills the snapshot's files.
func (s *Snapshot) write(ctx context.Context) error {
	lower, upper := storeBounds()
	it, err := s.d.pebble.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return err
	}
	w := sortedFiles{d: s.d, dir: s.dir}
	for n := 0; it.Valid() || n == 0 && it.First(); n++ {
		value, err := it.ValueAndErr()
		if err == nil && n%1024 == 0 {
			err = ctx.Err()
		}
		if err == nil {
			err = w.set(it.Key(), value)
		}
		if err != nil {
			return errors.Join(err, w.close(), it.Close())
		}
		it.Next()
	}
	err = errors.Join(it.Close(), w.close())
	s.files = w.files
	return err
}

// Close frees the space of the snapshot, except for files that stores restored from it still use.
// It may be called more than once, and after the store was closed.
func (s *Snapshot) Close() error {
	if err := s.d.enter(); err != nil {
		return nil // a closed store has deleted its snapshots
	}
	defer s.d.leave()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if err := s.d.fs.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("engine: close snapshot: %w", err)
	}
	return nil
}

// Bytes returns the size of the snapshot's files.
func (s *Snapshot) Bytes() (total int64, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, path := range s.files {
		info, err := s.d.fs.Stat(path)
		if err != nil {
			return 0, fmt.Errorf("engine: snapshot: %w", err)
		}
		total += info.Size()
	}
	return total, nil
}

// Restore atomically replaces the contents of the store with those of s, even across a crash.
// Concurrent calls see the state either before or after it; running scans keep their view. Restore
// waits until running backups, and restores of backups, have finished. It does not change the
// clock. s may be restored any number of times, even into other stores, which copies its files.
// Errors: ErrSnapshotClosed.
func (d *DB) Restore(ctx context.Context, s *Snapshot) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.leave()
	if s.d != d {
		if err := s.d.enter(); err != nil {
			return fmt.Errorf("%w: its store is closed", ErrSnapshotClosed)
		}
		defer s.d.leave()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	dir := d.fs.PathJoin(d.snapshotDir, fmt.Sprintf("restore-%d", d.snapshots.Add(1)))
	paths, err := s.export(d.fs, dir)
	if err == nil {
		err = d.replaceAll(ctx, paths)
	}
	// The store has links to ingested files.
	if err := errors.Join(err, d.fs.RemoveAll(dir)); err != nil {
		return fmt.Errorf("engine: restore: %w", err)
	}
	return nil
}

// export makes the snapshot's files available in a new directory of fs.
func (s *Snapshot) export(fs vfs.FS, dir string) ([]string, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil, ErrSnapshotClosed
	}
	if err := fs.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var paths []string
	for i, from := range s.files {
		to := fs.PathJoin(dir, fmt.Sprintf("%d.sst", i))
		var err error
		if fs == s.d.fs {
			err = vfs.LinkOrCopy(fs, from, to)
		} else {
			err = copyFile(s.d.fs, from, fs, to)
		}
		if err != nil {
			return nil, err
		}
		paths = append(paths, to)
	}
	return paths, nil
}

// copyFile copies a file from one file system to another.
func copyFile(fromFS vfs.FS, from string, toFS vfs.FS, to string) error {
	r, err := fromFS.Open(from, vfs.SequentialReadsOption)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	w, err := toFS.Create(to, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if _, err := io.Copy(w, r); err != nil {
		return errors.Join(err, w.Close())
	}
	return errors.Join(w.Sync(), w.Close())
}

// replaceAll replaces the contents of the store with those of the files.
func (d *DB) replaceAll(ctx context.Context, paths []string) error {
	d.copyMu.Lock() // otherwise copies would use ids that may be assigned again
	defer d.copyMu.Unlock()
	if err := replaceStore(ctx, d, paths); err != nil {
		return err
	}
	return d.Backups().dropUnfinished() // unfinished copies of the snapshot's store
}

// replaceStore replaces the contents of the store with those of paths, for replaceAll.
func replaceStore(ctx context.Context, d *DB, paths []string) error {
	d.gcMu.Lock()
	defer d.gcMu.Unlock()
	d.catalogMu.Lock()
	defer d.catalogMu.Unlock()
	defer d.lockAll(true)()
	d.viewMu.Lock()
	defer d.viewMu.Unlock()
	lower, upper := storeBounds()
	if _, err := d.pebble.IngestAndExcise(ctx, paths, nil, nil, pebble.KeyRange{Start: lower, End: upper}); err != nil {
		return err
	}
	d.resourceVersion.Add(1)
	if err := d.failed(); err != nil {
		return err
	}
	c, err := d.loadCatalog()
	if err == nil {
		err = d.journal.load(c)
	}
	if err != nil {
		d.fail(err) // the catalog in memory differs from the stored one
		return err
	}
	d.catalog.Store(c)
	d.journal.restored()
	return nil
}
