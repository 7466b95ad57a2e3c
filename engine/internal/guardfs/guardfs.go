// Package guardfs wraps the file system for Pebble. It keeps disk errors from ending the
// process, and fails the store instead.
package guardfs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrNoSpace is wrapped in what a store fails with when the disk is full.
var ErrNoSpace = errors.New("the disk is full")

// ErrLocked is returned by Lock for a lock that is taken.
var ErrLocked = errors.New("data directory is in use")

// Store is whose files are guarded.
type Store struct {
	// Failed returns why the store has failed, nil while it has not.
	Failed func() error
	// Fail makes the store fail.
	Fail func(error)
	// Closing is closed when nobody waits for the store any more.
	Closing <-chan struct{}
	// Apart is the directory of files whose errors are not the store's: who made
	// them returns those.
	Apart string
}

// FS names the error of a lock that is taken, and keeps errors of the disk
// from Pebble, which answers those of the log by ending the process and those
// of table files by trying again without a pause. The first one fails the store, so
// that nothing is acknowledged any more. From then on the directory stays what
// a crash at that moment would have left: no file is removed, and what is
// written goes nowhere, or into memory where it may be read again, which lets
// the calls that wait for it come to their end.
type FS struct {
	vfs.FS
	store Store
	// opened tells that Pebble has the store: from then on errors of its files
	// are failures.
	opened atomic.Bool
	// after holds the table files made since the store failed: what was in memory
	// buffers.
	after *vfs.MemFS
}

// New returns a file system that guards the files of s, on fs.
func New(fs vfs.FS, s Store) *FS { return &FS{FS: fs, store: s, after: vfs.NewMem()} }

// Opened tells that Pebble has the store: from now on errors of all its files fail
// it. Before, those of the log alone do; the others are returned to who opens it.
func (f *FS) Opened() { f.opened.Store(true) }

// Lock implements vfs.FS.
func (f *FS) Lock(name string) (io.Closer, error) {
	l, err := f.FS.Lock(name)
	if err == nil || errors.Is(err, ErrLocked) {
		return l, err
	}
	// A file that cannot be created is a *PathError; what is left is the lock
	// itself, which says so by an errno (another process) or a text (this one).
	var path *os.PathError
	var errno syscall.Errno
	if !errors.As(err, &path) && (errors.As(err, &errno) || err.Error() == "lock held by current process") {
		return nil, fmt.Errorf("%w: stop the other program that has it open, or choose another directory (%w)", ErrLocked, err)
	}
	return nil, err
}

// IsLog tells whether a file is a write-ahead log, by its name.
func IsLog(name string) bool { return strings.HasSuffix(name, ".log") }

func isTable(name string) bool { return strings.HasSuffix(name, ".sst") }

// guards tells whether an error of a file is one of the store.
func (f *FS) guards(name string) bool {
	return IsLog(name) || f.opened.Load() && !strings.HasPrefix(name, f.store.Apart)
}

// Create implements vfs.FS.
func (f *FS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if isTable(name) && c == compaction && f.store.Failed() != nil {
		return nil, f.pause()
	}
	return f.guard(name, func() (vfs.File, error) {
		if strings.HasPrefix(f.PathBase(name), "marker.manifest.") {
			// It names the list of files. Pebble makes both before it syncs their
			// directory, so that a crash could leave this one alone.
			if err := syncDir(f.FS, f.PathDir(name)); err != nil {
				return nil, err
			}
		}
		return f.FS.Create(name, c)
	})
}

// syncDir makes the names in a directory durable.
func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// ReuseForWrite implements vfs.FS.
func (f *FS) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.guard(newname, func() (vfs.File, error) { return f.FS.ReuseForWrite(oldname, newname, c) })
}

// guard makes a file, or one that is not on the disk if that fails.
func (f *FS) guard(name string, create func() (vfs.File, error)) (vfs.File, error) {
	if f.store.Failed() == nil || !f.guards(name) {
		file, err := create()
		if err == nil {
			return &guarded{File: file, name: name, fs: f}, nil
		}
		if !f.guards(name) {
			return nil, err
		}
		f.fail(name, err)
	}
	if !isTable(name) {
		return &guarded{File: vfs.NewMemFile(nil), name: name, fs: f}, nil
	}
	if err := f.after.MkdirAll(f.PathDir(name), 0o755); err != nil {
		return nil, err
	}
	return f.after.Create(name, vfs.WriteCategoryUnspecified)
}

// compaction is how Pebble calls what it writes to sort its files anew: it
// changes nothing, and nobody needs it in a store that has failed.
const compaction vfs.DiskWriteCategory = "pebble-compaction"

// pause refuses a compaction after a while, since Pebble tries at once again.
func (f *FS) pause() error {
	t := time.NewTimer(time.Second)
	defer t.Stop()
	select {
	case <-t.C:
	case <-f.store.Closing:
	}
	return f.store.Failed()
}

// Open implements vfs.FS.
func (f *FS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if f.store.Failed() != nil {
		if file, err := f.after.Open(name, opts...); err == nil {
			return file, nil
		}
	}
	return f.FS.Open(name, opts...)
}

// Stat implements vfs.FS.
func (f *FS) Stat(name string) (vfs.FileInfo, error) {
	if f.store.Failed() != nil {
		if info, err := f.after.Stat(name); err == nil {
			return info, nil
		}
	}
	return f.FS.Stat(name)
}

// Remove implements vfs.FS.
func (f *FS) Remove(name string) error {
	if !f.guards(name) || f.store.Failed() == nil {
		return f.FS.Remove(name)
	}
	_ = f.after.Remove(name) // it need not be there
	return nil
}

// OpenDir implements vfs.FS.
func (f *FS) OpenDir(name string) (vfs.File, error) {
	file, err := f.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &guarded{File: file, name: name, fs: f}, nil
}

// Unwrap implements vfs.FS.
func (f *FS) Unwrap() vfs.FS { return f.FS }

// fail fails the store for an error of one of its files.
func (f *FS) fail(name string, err error) {
	kind := "file of the store"
	switch {
	case IsLog(name):
		kind = "write-ahead log"
	case isTable(name):
		kind = "table file"
	}
	if !strings.Contains(err.Error(), filepath.Base(name)) {
		err = fmt.Errorf("%s: %w", name, err)
	}
	if errors.Is(err, syscall.ENOSPC) {
		err = fmt.Errorf("%w: make room and open the store again: %w", ErrNoSpace, err)
	}
	f.store.Fail(fmt.Errorf("%s: %w", kind, err))
}

// guarded is a file that is written, or a directory, which the creation of
// one syncs.
type guarded struct {
	vfs.File
	name string
	fs   *FS
}

// guard runs call, unless the store has failed. The error is that of a table file:
// Pebble makes another, which is complete. What is appended to others is never
// read again by a store that has failed.
func (f *guarded) guard(call func() error) error {
	if f.fs.store.Failed() == nil || !f.fs.guards(f.name) {
		err := call()
		if err == nil || !f.fs.guards(f.name) {
			return err
		}
		f.fs.fail(f.name, err)
	}
	if isTable(f.name) {
		return f.fs.store.Failed()
	}
	return nil
}

// Write implements vfs.File.
func (f *guarded) Write(p []byte) (int, error) {
	if err := f.guard(func() error { _, err := f.File.Write(p); return err }); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Preallocate implements vfs.File.
func (f *guarded) Preallocate(offset, length int64) error {
	return f.guard(func() error { return f.File.Preallocate(offset, length) })
}

// Sync implements vfs.File.
func (f *guarded) Sync() error { return f.guard(f.File.Sync) }

// SyncData implements vfs.File.
func (f *guarded) SyncData() error { return f.guard(f.File.SyncData) }

// SyncTo implements vfs.File.
func (f *guarded) SyncTo(length int64) (full bool, err error) {
	err = f.guard(func() error { full, err = f.File.SyncTo(length); return err })
	return full, err
}

// Close implements vfs.File.
func (f *guarded) Close() error {
	if err := f.File.Close(); err != nil {
		return f.guard(func() error { return err })
	}
	return nil
}
