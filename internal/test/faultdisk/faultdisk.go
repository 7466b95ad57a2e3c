// Package faultdisk injects faults between a store and its disk in tests.
package faultdisk

import (
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// MemTableBytes is the size of memtables in tests that open many stores: each opening clears one.
const MemTableBytes = 256 << 10

// Wrap is like errorfs.Wrap, but prevents the reuse of logs, because errorfs does not see writes to
// a reused log.
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

// Memory is an in-memory disk that can be cloned at any moment while a store uses it.
//
// It serializes Link, ReuseForWrite and CrashClone. In vfs.MemFS, the first two acquire the clone
// lock twice, nested, and deadlock if CrashClone starts to wait between the two.
type Memory struct {
	*vfs.MemFS
	mu sync.Mutex // held by these three
}

// NewMemory returns an empty disk.
func NewMemory() *Memory { return &Memory{MemFS: vfs.NewCrashableMem()} }

// Link implements vfs.FS.
func (m *Memory) Link(oldname, newname string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.MemFS.Link(oldname, newname)
}

// ReuseForWrite implements vfs.FS.
func (m *Memory) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.MemFS.ReuseForWrite(oldname, newname, c)
}

// CrashClone returns a copy of the disk after a crash at this moment, like vfs.MemFS.
func (m *Memory) CrashClone(cfg vfs.CrashCloneCfg) *vfs.MemFS {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.MemFS.CrashClone(cfg)
}
