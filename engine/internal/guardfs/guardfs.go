// Package guardfs wraps the file system that Pebble uses. A disk error makes the store fail,
// instead of ending the process.
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

// ErrNoSpace is wrapped by the error of a store that failed because the disk is full.
var ErrNoSpace = errors.New("the disk is full")

// ErrLocked is returned by Lock if the name is already locked.
var ErrLocked = errors.New("data directory is in use")

// Store describes the store that owns the guarded files.
type Store struct {
	// Failed returns the error that made the store fail, or nil.
	Failed func() error
	// Fail makes the store fail with an error.
	Fail func(error)
	// Closing is closed when the store begins to close.
	Closing <-chan struct{}
	// Apart is a directory in which errors do not make the store fail. The callers that write its
	// files return the errors.
	Apart string
}

// FS is a file system that hides disk errors from Pebble, and returns ErrLocked for a lock that is
// taken. On an error of the log, Pebble would end the process; on an error of a table file, it
// would retry without a pause. Here the first error makes the store fail, so that it acknowledges
// no more writes. From then on the directory stays as a crash at that moment would have left it: no
// file is removed, and writes are discarded, or kept in memory if they may be read again. This lets
// waiting calls finish.
type FS struct {
	vfs.FS
	store Store
	// opened is set once Pebble has opened the store: from then on errors of its files are
	// failures.
	opened atomic.Bool
	// after holds the table files made after the failure: the former memory buffers.
	after *vfs.MemFS
}

// New returns a file system over fs that guards the files of s.
func New(fs vfs.FS, s Store) *FS { return &FS{FS: fs, store: s, after: vfs.NewMem()} }

// Opened must be called once Pebble has opened the store. From then on, an error of any of its
// files makes the store fail. Before, only errors of the log do; Pebble's Open returns the others.
func (f *FS) Opened() { f.opened.Store(true) }

// Lock implements vfs.FS.
func (f *FS) Lock(name string) (io.Closer, error) {
	l, err := f.FS.Lock(name)
	if err == nil || errors.Is(err, ErrLocked) {
		return l, err
	}
	// A file that cannot be created is a *PathError. The remaining errors come from the lock
	// itself: an errno (another process) or a text (this process).
	var path *os.PathError
	var errno syscall.Errno
	if !errors.As(err, &path) && (errors.As(err, &errno) || err.Error() == "lock held by current process") {
		return nil, fmt.Errorf("%w: stop the other program that has it open, or choose another directory (%w)", ErrLocked, err)
	}
	return nil, err
}

// IsLog reports whether name is the name of a write-ahead log.
func IsLog(name string) bool { return strings.HasSuffix(name, ".log") }

func isTable(name string) bool { return strings.HasSuffix(name, ".sst") }

// guards reports whether an error of a file fails the store.
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
			// The marker names the list of files. Pebble creates both before it syncs their
			// directory, so a crash could leave the marker alone.
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

// guard creates a file, or one outside the disk if the store has failed.
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

// compaction is Pebble's category for the output of compactions. They change no data, so a
// failed store does not need them.
const compaction vfs.DiskWriteCategory = "pebble-compaction"

// pause rejects a compaction after a delay, since Pebble retries at once.
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
	_ = f.after.Remove(name) // it may not exist
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
		err = fmt.Errorf("%w: free some space and open the store again: %w", ErrNoSpace, err)
	}
	f.store.Fail(fmt.Errorf("%s: %w", kind, err))
}

// guarded is a file open for writing, or a directory whose new names it syncs.
type guarded struct {
	vfs.File
	name string
	fs   *FS
}

// guard runs call unless the store has failed. It returns errors of table files, which Pebble
// then writes again completely. Errors of appended files are hidden: a failed store never
// reads them again.
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
