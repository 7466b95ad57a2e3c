// Package memfs implements an in-memory file system for stores without a directory.
package memfs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// smallFileBytes is the size up to which a file is one slice of the Go heap; larger files are
// entirely in chunks.
const smallFileBytes = 64 << 10

// ErrLocked is returned by Lock if the name is already locked.
var ErrLocked = errors.New("in use")

// FS is an in-memory file system with little overhead. It stores file contents in chunks outside
// the Go heap. A growing file is therefore not copied, and the contents do not raise the heap size
// at which Go collects garbage. The memory of a file is freed with its last link and its last
// handle; Release frees the memory of all files.
//
// Names are slash-separated; the root and "." are the same directory.
type FS struct {
	now func() time.Time

	// mu guards nodes and locks, and the links and handles of every node. It is taken before
	// the mutex of a node, never after.
	mu    sync.Mutex
	nodes map[string]*memNode // by clean path; "/" is the root
	locks map[string]bool
}

var _ vfs.FS = (*FS)(nil)

// memNode is a file or a directory.
type memNode struct {
	dir            bool
	links, handles int // guarded by FS.mu

	mu       sync.RWMutex // guards the fields below
	size     int64
	small    []byte   // the contents while chunks is empty
	chunks   [][]byte // the contents, chunkBytes each
	modified time.Time
	freed    bool
}

// New returns an empty file system. It calls now for the modification times of files.
func New(now func() time.Time) *FS {
	f := &FS{now: now, nodes: map[string]*memNode{}, locks: map[string]bool{}}
	f.nodes["/"] = &memNode{dir: true, links: 1, modified: now()}
	return f
}

// Held returns the memory that the files use, in bytes.
func (f *FS) Held() (n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, node := range f.nodes {
		node.mu.RLock()
		n += int64(len(node.chunks))*chunkBytes + int64(cap(node.small))
		node.mu.RUnlock()
	}
	return n
}

// Release frees the contents of all files. The file system must not be used afterwards;
// handles that are still open return os.ErrClosed.
func (f *FS) Release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range f.nodes {
		n.free()
	}
	clear(f.nodes)
}

func cleanName(name string) string { return path.Clean("/" + name) }

func pathError(op, name string, err error) error {
	return &os.PathError{Op: op, Path: name, Err: err}
}

var (
	errNotDir   = errors.New("not a directory")
	errIsDir    = errors.New("is a directory")
	errNotEmpty = errors.New("directory not empty")
)

// parentLocked checks that the directory of name exists.
func (f *FS) parentLocked(op, name string) error {
	p, ok := f.nodes[path.Dir(name)]
	if !ok {
		return pathError(op, name, os.ErrNotExist)
	}
	if !p.dir {
		return pathError(op, name, errNotDir)
	}
	return nil
}

// unlinkLocked removes one link of n.
func (n *memNode) unlinkLocked() {
	n.links--
	if n.links == 0 && n.handles == 0 {
		n.free()
	}
}

// Create implements vfs.FS.
func (f *FS) Create(name string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	name = cleanName(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.createLocked(name)
}

func (f *FS) createLocked(name string) (vfs.File, error) {
	if err := f.parentLocked("create", name); err != nil {
		return nil, err
	}
	if old, ok := f.nodes[name]; ok {
		if old.dir {
			return nil, pathError("create", name, errIsDir)
		}
		old.unlinkLocked()
	}
	n := &memNode{links: 1, modified: f.now()}
	f.nodes[name] = n
	return f.handleLocked(name, n, true), nil
}

func (f *FS) handleLocked(name string, n *memNode, write bool) *memFile {
	n.handles++
	return &memFile{fs: f, n: n, name: path.Base(name), write: write}
}

// Link implements vfs.FS.
func (f *FS) Link(oldname, newname string) error {
	oldname, newname = cleanName(oldname), cleanName(newname)
	f.mu.Lock()
	defer f.mu.Unlock()
	n, ok := f.nodes[oldname]
	if !ok {
		return &os.LinkError{Op: "link", Old: oldname, New: newname, Err: os.ErrNotExist}
	}
	if n.dir {
		return &os.LinkError{Op: "link", Old: oldname, New: newname, Err: errIsDir}
	}
	if err := f.parentLocked("link", newname); err != nil {
		return err
	}
	if _, ok := f.nodes[newname]; ok {
		return &os.LinkError{Op: "link", Old: oldname, New: newname, Err: os.ErrExist}
	}
	n.links++
	f.nodes[newname] = n
	return nil
}

func (f *FS) open(name string, write bool) (*memFile, error) {
	name = cleanName(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	n, ok := f.nodes[name]
	if !ok {
		return nil, pathError("open", name, os.ErrNotExist)
	}
	if n.dir && write {
		return nil, pathError("open", name, errIsDir)
	}
	return f.handleLocked(name, n, write), nil
}

// Open implements vfs.FS.
func (f *FS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	file, err := f.open(name, false)
	if err != nil {
		return nil, err
	}
	for _, o := range opts {
		o.Apply(file)
	}
	return file, nil
}

// OpenReadWrite implements vfs.FS.
func (f *FS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	file, err := f.open(name, true)
	if errors.Is(err, os.ErrNotExist) {
		return f.Create(name, c)
	}
	if err != nil {
		return nil, err
	}
	for _, o := range opts {
		o.Apply(file)
	}
	return file, nil
}

// OpenDir implements vfs.FS.
func (f *FS) OpenDir(name string) (vfs.File, error) {
	file, err := f.open(name, false)
	if err != nil {
		return nil, err
	}
	if !file.n.dir {
		_ = file.Close()
		return nil, pathError("open", name, errNotDir)
	}
	return file, nil
}

// childrenLocked returns the full names below the directory name, sorted: all of them if deep,
// otherwise only the direct ones.
func (f *FS) childrenLocked(name string, deep bool) []string {
	prefix := strings.TrimSuffix(name, "/") + "/"
	var names []string
	for p := range f.nodes {
		if rest, ok := strings.CutPrefix(p, prefix); ok && rest != "" && (deep || !strings.Contains(rest, "/")) {
			names = append(names, p)
		}
	}
	slices.Sort(names)
	return names
}

// Remove implements vfs.FS.
func (f *FS) Remove(name string) error {
	name = cleanName(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	n, ok := f.nodes[name]
	switch {
	case !ok || name == "/":
		return pathError("remove", name, os.ErrNotExist)
	case n.dir && len(f.childrenLocked(name, false)) > 0:
		return pathError("remove", name, errNotEmpty)
	}
	delete(f.nodes, name)
	n.unlinkLocked()
	return nil
}

// RemoveAll implements vfs.FS.
func (f *FS) RemoveAll(name string) error {
	name = cleanName(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range append(f.childrenLocked(name, true), name) {
		if n, ok := f.nodes[p]; ok && p != "/" {
			delete(f.nodes, p)
			n.unlinkLocked()
		}
	}
	return nil
}

// Rename implements vfs.FS, for files only: no caller renames directories.
func (f *FS) Rename(oldname, newname string) error {
	oldname, newname = cleanName(oldname), cleanName(newname)
	f.mu.Lock()
	defer f.mu.Unlock()
	n, ok := f.nodes[oldname]
	if !ok {
		return pathError("rename", oldname, os.ErrNotExist)
	}
	if n.dir {
		return pathError("rename", oldname, errIsDir)
	}
	if err := f.parentLocked("rename", newname); err != nil {
		return err
	}
	if oldname == newname {
		return nil
	}
	if old, ok := f.nodes[newname]; ok {
		if old.dir {
			return pathError("rename", newname, errIsDir)
		}
		old.unlinkLocked()
	}
	delete(f.nodes, oldname)
	f.nodes[newname] = n
	return nil
}

// ReuseForWrite implements vfs.FS.
func (f *FS) ReuseForWrite(oldname, newname string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	if err := f.Rename(oldname, newname); err != nil {
		return nil, err
	}
	file, err := f.open(newname, true)
	if err != nil {
		return nil, err
	}
	return file, nil
}

// MkdirAll implements vfs.FS.
func (f *FS) MkdirAll(dir string, _ os.FileMode) error {
	dir = cleanName(dir)
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := 1; i <= len(dir); i++ {
		if i < len(dir) && dir[i] != '/' {
			continue
		}
		name := dir[:i]
		if n, ok := f.nodes[name]; !ok {
			f.nodes[name] = &memNode{dir: true, links: 1, modified: f.now()}
		} else if !n.dir {
			return pathError("mkdir", name, errNotDir)
		}
	}
	return nil
}

// memLock is a held lock.
type memLock struct {
	fs   *FS
	name string
	free bool // guarded by fs.mu
}

// Close releases the lock; a second call does nothing.
func (l *memLock) Close() error {
	l.fs.mu.Lock()
	defer l.fs.mu.Unlock()
	if !l.free {
		l.free = true
		delete(l.fs.locks, l.name)
	}
	return nil
}

// Lock implements vfs.FS. It excludes other stores on the same file system.
func (f *FS) Lock(name string) (io.Closer, error) {
	name = cleanName(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.locks[name] {
		return nil, fmt.Errorf("%w: lock of %s is held", ErrLocked, name)
	}
	file, err := f.createLocked(name)
	if err != nil {
		return nil, err
	}
	file.(*memFile).closeLocked()
	f.locks[name] = true
	return &memLock{fs: f, name: name}, nil
}

// List implements vfs.FS; the names are sorted.
func (f *FS) List(dir string) ([]string, error) {
	dir = cleanName(dir)
	f.mu.Lock()
	defer f.mu.Unlock()
	n, ok := f.nodes[dir]
	if !ok {
		return nil, pathError("open", dir, os.ErrNotExist)
	}
	if !n.dir {
		return nil, pathError("open", dir, errNotDir)
	}
	names := f.childrenLocked(dir, false)
	for i := range names {
		names[i] = path.Base(names[i])
	}
	return names, nil
}

// Stat implements vfs.FS.
func (f *FS) Stat(name string) (vfs.FileInfo, error) {
	file, err := f.open(name, false)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return file.Stat()
}

// PathBase implements vfs.FS.
func (*FS) PathBase(p string) string { return path.Base(p) }

// PathJoin implements vfs.FS.
func (*FS) PathJoin(elem ...string) string { return path.Join(elem...) }

// PathDir implements vfs.FS.
func (*FS) PathDir(p string) string { return path.Dir(p) }

// GetDiskUsage implements vfs.FS: there is no disk.
func (*FS) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{}, vfs.ErrUnsupported
}

// Unwrap implements vfs.FS.
func (*FS) Unwrap() vfs.FS { return nil }

// free frees the node's memory. Later reads and writes return os.ErrClosed.
func (n *memNode) free() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.chunks {
		freeChunk(c)
	}
	n.chunks, n.small, n.size, n.freed = nil, nil, 0, true
}

// readAt copies contents from off to p.
func (n *memNode) readAt(p []byte, off int64) (int, error) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if n.freed {
		return 0, os.ErrClosed
	}
	if off < 0 {
		return 0, os.ErrInvalid
	}
	if off >= n.size {
		if len(p) == 0 {
			return 0, nil
		}
		return 0, io.EOF
	}
	want := p[:min(int64(len(p)), n.size-off)]
	if len(n.chunks) == 0 {
		copy(want, n.small[off:n.size])
	} else {
		for done := 0; done < len(want); {
			at := off + int64(done)
			done += copy(want[done:], n.chunks[at/chunkBytes][at%chunkBytes:])
		}
	}
	if len(want) < len(p) {
		return len(want), io.EOF
	}
	return len(want), nil
}

// writeAt copies p to off, growing the contents with zeros as needed.
func (n *memNode) writeAt(p []byte, off int64, now time.Time) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.freed {
		return 0, os.ErrClosed
	}
	if off < 0 {
		return 0, os.ErrInvalid
	}
	end := max(n.size, off+int64(len(p)))
	if err := n.growLocked(end); err != nil {
		return 0, err
	}
	if len(n.chunks) == 0 {
		copy(n.small[off:], p)
	} else {
		for done := 0; done < len(p); {
			at := off + int64(done)
			done += copy(n.chunks[at/chunkBytes][at%chunkBytes:], p[done:])
		}
	}
	n.size, n.modified = end, now
	return len(p), nil
}

// growLocked allocates room for size bytes.
func (n *memNode) growLocked(size int64) error {
	if len(n.chunks) == 0 && size <= smallFileBytes {
		if more := int(size) - len(n.small); more > 0 {
			n.small = append(n.small, make([]byte, more)...)
		}
		return nil
	}
	for int64(len(n.chunks))*chunkBytes < size {
		c, err := allocChunk()
		if err != nil {
			return fmt.Errorf("engine: cannot allocate a file of %d bytes: %w", size, err)
		}
		if len(n.chunks) == 0 {
			copy(c, n.small)
			n.small = nil
		}
		n.chunks = append(n.chunks, c)
	}
	return nil
}

// memFile is an open file or directory. As vfs.File requires, writes to one file do not
// overlap; reads may run concurrently with them.
type memFile struct {
	fs     *FS
	n      *memNode
	name   string
	write  bool
	closed bool // guarded by fs.mu

	rpos, wpos int64 // of the single reader and the single writer
}

// Close implements vfs.File.
func (f *memFile) Close() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if f.closed {
		return os.ErrClosed
	}
	f.closeLocked()
	return nil
}

func (f *memFile) closeLocked() {
	f.closed = true
	f.n.handles--
	if f.n.handles == 0 && f.n.links == 0 {
		f.n.free()
	}
}

// Read implements vfs.File.
func (f *memFile) Read(p []byte) (int, error) {
	n, err := f.ReadAt(p, f.rpos)
	f.rpos += int64(n)
	if n > 0 {
		err = nil
	}
	return n, err
}

// ReadAt implements vfs.File.
func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	if f.n.dir {
		return 0, pathError("read", f.name, errIsDir)
	}
	return f.n.readAt(p, off)
}

// Write implements vfs.File. It writes after the previous Write.
func (f *memFile) Write(p []byte) (int, error) {
	n, err := f.WriteAt(p, f.wpos)
	f.wpos += int64(n)
	return n, err
}

// WriteAt implements vfs.File.
func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	if !f.write {
		return 0, pathError("write", f.name, os.ErrPermission)
	}
	return f.n.writeAt(p, off, f.fs.now())
}

// Preallocate implements vfs.File. Chunks are allocated on demand.
func (f *memFile) Preallocate(int64, int64) error { return nil }

// Stat implements vfs.File.
func (f *memFile) Stat() (vfs.FileInfo, error) {
	f.n.mu.RLock()
	defer f.n.mu.RUnlock()
	return memFileInfo{name: f.name, size: f.n.size, modified: f.n.modified, dir: f.n.dir}, nil
}

// Sync implements vfs.File. Memory needs no sync.
func (f *memFile) Sync() error { return nil }

// SyncTo implements vfs.File.
func (f *memFile) SyncTo(int64) (bool, error) { return false, nil }

// SyncData implements vfs.File.
func (f *memFile) SyncData() error { return nil }

// Prefetch implements vfs.File.
func (f *memFile) Prefetch(int64, int64) error { return nil }

// Fd implements vfs.File.
func (f *memFile) Fd() uintptr { return vfs.InvalidFd }

// memFileInfo describes a file of a FS.
type memFileInfo struct {
	name     string
	size     int64
	modified time.Time
	dir      bool
}

// Name implements os.FileInfo.
func (i memFileInfo) Name() string { return i.name }

// Size implements os.FileInfo.
func (i memFileInfo) Size() int64 { return i.size }

// Mode implements os.FileInfo.
func (i memFileInfo) Mode() os.FileMode {
	if i.dir {
		return os.ModeDir | 0o755
	}
	return 0o755
}

// ModTime implements os.FileInfo.
func (i memFileInfo) ModTime() time.Time { return i.modified }

// IsDir implements os.FileInfo.
func (i memFileInfo) IsDir() bool { return i.dir }

// Sys implements os.FileInfo.
func (i memFileInfo) Sys() any { return nil }

// DeviceID implements vfs.FileInfo.
func (i memFileInfo) DeviceID() vfs.DeviceID { return vfs.DeviceID{} }
