package engine

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// guardFS stands between Pebble and the file system.
//
// It names the error of a lock that is taken, and it keeps errors of the disk
// from Pebble, which answers those of the log by ending the process and those
// of table files by trying again without a pause. The first one fails the DB, so
// that nothing is acknowledged any more. From then on the directory stays what
// a crash at that moment would have left: no file is removed, and what is
// written goes nowhere, or into memory where it may be read again, which lets
// the calls that wait for it come to their end.
type guardFS struct {
	vfs.FS
	d *DB
	// after holds the table files made since the DB failed: what was in memory
	// buffers.
	after *vfs.MemFS
}

// Lock implements vfs.FS.
func (f guardFS) Lock(name string) (io.Closer, error) {
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

func isLog(name string) bool { return strings.HasSuffix(name, ".log") }

func isTable(name string) bool { return strings.HasSuffix(name, ".sst") }

// guards tells whether an error of a file is one of the DB. It is not before
// the DB is open, since Open returns it, unless Pebble ends the process for it;
// nor is that of a snapshot, which the snapshot returns.
func (d *DB) guards(name string) bool {
	return isLog(name) || d.opened.Load() && !strings.HasPrefix(name, d.snapshotDir)
}

// Create implements vfs.FS.
func (f guardFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if isTable(name) && c == compaction && f.d.failed() != nil {
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
func (f guardFS) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.guard(newname, func() (vfs.File, error) { return f.FS.ReuseForWrite(oldname, newname, c) })
}

// guard makes a file, or one that is not on the disk if that fails.
func (f guardFS) guard(name string, create func() (vfs.File, error)) (vfs.File, error) {
	if f.d.failed() == nil || !f.d.guards(name) {
		file, err := create()
		if err == nil {
			return &guardFile{File: file, name: name, d: f.d}, nil
		}
		if !f.d.guards(name) {
			return nil, err
		}
		f.d.failFile(name, err)
	}
	if !isTable(name) {
		return &guardFile{File: vfs.NewMemFile(nil), name: name, d: f.d}, nil
	}
	if err := f.after.MkdirAll(f.PathDir(name), 0o755); err != nil {
		return nil, err
	}
	return f.after.Create(name, vfs.WriteCategoryUnspecified)
}

// compaction is how Pebble calls what it writes to sort its files anew: it
// changes nothing, and nobody needs it in a DB that has failed.
const compaction vfs.DiskWriteCategory = "pebble-compaction"

// pause refuses a compaction after a while, since Pebble tries at once again.
func (f guardFS) pause() error {
	t := time.NewTimer(time.Second)
	defer t.Stop()
	select {
	case <-t.C:
	case <-f.d.life.Done():
	}
	return f.d.failed()
}

// Open implements vfs.FS.
func (f guardFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if f.d.failed() != nil {
		if file, err := f.after.Open(name, opts...); err == nil {
			return file, nil
		}
	}
	return f.FS.Open(name, opts...)
}

// Stat implements vfs.FS.
func (f guardFS) Stat(name string) (vfs.FileInfo, error) {
	if f.d.failed() != nil {
		if info, err := f.after.Stat(name); err == nil {
			return info, nil
		}
	}
	return f.FS.Stat(name)
}

// Remove implements vfs.FS.
func (f guardFS) Remove(name string) error {
	if !f.d.guards(name) || f.d.failed() == nil {
		return f.FS.Remove(name)
	}
	_ = f.after.Remove(name) // it need not be there
	return nil
}

// OpenDir implements vfs.FS.
func (f guardFS) OpenDir(name string) (vfs.File, error) {
	file, err := f.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &guardFile{File: file, name: name, d: f.d}, nil
}

// Unwrap implements vfs.FS.
func (f guardFS) Unwrap() vfs.FS { return f.FS }

// failFile fails the DB for an error of one of its files.
func (d *DB) failFile(name string, err error) {
	kind := "file of the store"
	switch {
	case isLog(name):
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
	d.fail(fmt.Errorf("%s: %w", kind, err))
}

// guardFile is a file that is written, or a directory, which the creation of
// one syncs.
type guardFile struct {
	vfs.File
	name string
	d    *DB
}

// guard runs call, unless the DB has failed. The error is that of a table file:
// Pebble makes another, which is complete. What is appended to others is never
// read again by a DB that has failed.
func (f *guardFile) guard(call func() error) error {
	if f.d.failed() == nil || !f.d.guards(f.name) {
		err := call()
		if err == nil || !f.d.guards(f.name) {
			return err
		}
		f.d.failFile(f.name, err)
	}
	if isTable(f.name) {
		return f.d.failed()
	}
	return nil
}

// Write implements vfs.File.
func (f *guardFile) Write(p []byte) (int, error) {
	if err := f.guard(func() error { _, err := f.File.Write(p); return err }); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Preallocate implements vfs.File.
func (f *guardFile) Preallocate(offset, length int64) error {
	return f.guard(func() error { return f.File.Preallocate(offset, length) })
}

// Sync implements vfs.File.
func (f *guardFile) Sync() error { return f.guard(f.File.Sync) }

// SyncData implements vfs.File.
func (f *guardFile) SyncData() error { return f.guard(f.File.SyncData) }

// SyncTo implements vfs.File.
func (f *guardFile) SyncTo(length int64) (full bool, err error) {
	err = f.guard(func() error { full, err = f.File.SyncTo(length); return err })
	return full, err
}

// Close implements vfs.File.
func (f *guardFile) Close() error {
	if err := f.File.Close(); err != nil {
		return f.guard(func() error { return err })
	}
	return nil
}
