// Package faultdisk injects faults between a store and its disk in tests.
package faultdisk

import (
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// Wrap is errorfs.Wrap for a disk that reuses no logs: errorfs does not see writes to a reused
// log.
func Wrap(fs vfs.FS, inj errorfs.Injector) vfs.FS {
	return freshLogs{errorfs.Wrap(fs, inj)}
}

type freshLogs struct{ vfs.FS }

// ReuseForWrite implements vfs.FS.
func (f freshLogs) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := f.Remove(oldname); err != nil {
		return nil, err
	}
	return f.Create(newname, c)
}
