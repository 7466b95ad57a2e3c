package engine

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// guardFS stands between Pebble and the file system.
//
// It names the error of a lock that is taken, and it keeps errors of the
// write-ahead log from Pebble, which answers some of them by ending the
// process. The first one fails the DB, so that nothing is acknowledged any
// more; from then on the log is written nowhere, which leaves on disk what a
// crash at that moment would have left.
type guardFS struct {
	vfs.FS
	d *DB
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

// Create implements vfs.FS.
func (f guardFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if !isLog(name) {
		return f.FS.Create(name, c)
	}
	return f.guardLog(func() (vfs.File, error) { return f.FS.Create(name, c) })
}

// ReuseForWrite implements vfs.FS.
func (f guardFS) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if !isLog(newname) {
		return f.FS.ReuseForWrite(oldname, newname, c)
	}
	return f.guardLog(func() (vfs.File, error) { return f.FS.ReuseForWrite(oldname, newname, c) })
}

// guardLog opens a log, or one that is written nowhere if that fails.
func (f guardFS) guardLog(open func() (vfs.File, error)) (vfs.File, error) {
	if f.d.failed() == nil {
		file, err := open()
		if err == nil {
			return &guardFile{File: file, d: f.d}, nil
		}
		f.d.fail(fmt.Errorf("write-ahead log: %w", err))
	}
	return &guardFile{File: vfs.NewMemFile(nil), d: f.d}, nil
}

// OpenDir implements vfs.FS.
func (f guardFS) OpenDir(name string) (vfs.File, error) {
	file, err := f.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &guardFile{File: file, d: f.d}, nil
}

// Unwrap implements vfs.FS.
func (f guardFS) Unwrap() vfs.FS { return f.FS }

// guardFile is a log, or a directory, which the log's creation syncs.
type guardFile struct {
	vfs.File
	d *DB
}

// guard runs call, unless the DB has failed.
func (f *guardFile) guard(call func() error) {
	if f.d.failed() != nil {
		return
	}
	if err := call(); err != nil {
		f.d.fail(fmt.Errorf("write-ahead log: %w", err))
	}
}

// Write implements vfs.File.
func (f *guardFile) Write(p []byte) (int, error) {
	f.guard(func() error { _, err := f.File.Write(p); return err })
	return len(p), nil
}

// Preallocate implements vfs.File.
func (f *guardFile) Preallocate(offset, length int64) error {
	f.guard(func() error { return f.File.Preallocate(offset, length) })
	return nil
}

// Sync implements vfs.File.
func (f *guardFile) Sync() error {
	f.guard(f.File.Sync)
	return nil
}

// SyncData implements vfs.File.
func (f *guardFile) SyncData() error {
	f.guard(f.File.SyncData)
	return nil
}

// SyncTo implements vfs.File.
func (f *guardFile) SyncTo(length int64) (full bool, err error) {
	f.guard(func() error { full, err = f.File.SyncTo(length); return err })
	return full, nil
}

// Close implements vfs.File.
func (f *guardFile) Close() error {
	if err := f.File.Close(); err != nil {
		f.d.fail(fmt.Errorf("write-ahead log: %w", err))
	}
	return nil
}
