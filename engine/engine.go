package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tabletop-emu/tabletop/engine/internal/guardfs"
	"github.com/tabletop-emu/tabletop/engine/internal/memfs"
	"github.com/tabletop-emu/tabletop/internal/clock"
)

// ServerTimestamp is the timestamp of a mutation to which the engine assigns the current time,
// truncated to the table's granularity.
const ServerTimestamp int64 = -1

// NewMemFS returns an in-memory file system for Options.FS, for use with a Dir. Its files outlive
// the store, which can be closed and opened again. The files are on the Go heap, and are freed with
// the file system.
func NewMemFS() vfs.FS { return vfs.NewMem() }

// Options configures Open. The zero value opens a private in-memory store.
type Options struct {
	// Dir is the data directory. If it is empty, all data is kept in memory.
	Dir string
	// FS replaces the file system. Tests use it together with Dir to inject crashes and faults.
	// Without Dir, no log is written, and Close loses unflushed data. Default: the disk if Dir is
	// set, off-heap memory otherwise.
	FS vfs.FS
	// NoSync acknowledges writes before they reach the disk. Default: every write
	// is synced when Dir is set. It has no effect in memory.
	NoSync bool
	// EagerGC hides cells from all reads, in scans and in transactions, as soon as the rules of
	// their family select them. A row that has only hidden cells does not exist for readers. Hidden
	// cells take space until RunGC removes them. They may become visible again: for example, if a
	// newer version of a column is deleted, an older version may no longer exceed the limit.
	// Default: as in the service, cells are visible until RunGC removes them.
	EagerGC bool
	// KeepDeleted is how long UndeleteTable can restore a soft-deleted table. Default: 7 days, as
	// in the service.
	KeepDeleted time.Duration
	// KeepDeletedBytes limits the total bytes of soft-deleted tables. When a table is deleted, the
	// oldest soft-deleted tables are removed permanently until the rest fits. A table that alone
	// exceeds the limit is also removed. Cells that are not yet flushed to files do not count.
	// Default: 128 MiB in memory, unlimited with a Dir. A negative value means unlimited.
	KeepDeletedBytes int64
	// KeepDeletedTables limits the number of soft-deleted tables; the newest are kept. Default: 100
	// in memory, unlimited with a Dir. A negative value means unlimited.
	KeepDeletedTables int
	// BackupBytes limits the total bytes of keys and values in all backups. A backup that would
	// exceed the limit fails. Default: 4 GiB in memory, unlimited with a Dir. A negative value
	// means unlimited.
	BackupBytes int64
	// MemTableBytes is the size of each of the up to two buffers for data that has not been written
	// to files yet. Tests use small buffers to get more files. Default: 4 MiB in memory, 8 MiB with
	// a Dir.
	MemTableBytes int
	// Now is the time source. Default: the wall clock.
	Now func() time.Time
	// Logger logs warnings of the store. Default: nothing is logged.
	Logger *slog.Logger
}

// Granularity is the granularity of a table's timestamps.
type Granularity uint8

// Timestamps are always in microseconds. In a Millis table, the timestamps that the engine assigns
// are multiples of 1000.
const (
	Millis Granularity = iota
	Micros
)

// Aggregate is the function that accumulates the cells of a family. It is set when the family is
// created, and never changes.
type Aggregate uint8

// These are the kinds of aggregates. The state of a sum, minimum or maximum is an int64 in eight
// bytes, big-endian; a sum wraps on overflow. The state of an AggregateHLL is a HyperLogLog++
// sketch of package internal/hllpp.
const (
	NoAggregate Aggregate = iota // an ordinary family
	AggregateSum
	AggregateMin
	AggregateMax
	AggregateHLL // the number of distinct inputs
)

// Family is a column family of a table.
type Family struct {
	Name      string
	Ordinal   uint16 // order of creation in its table; never reused
	Aggregate Aggregate
	GC        GCRule
	Meta      []byte // opaque to the engine
}

// Table is the definition of a table. Tables that the engine returns are shared and immutable:
// neither the engine nor its callers may change them.
type Table struct {
	Name        string   // full resource name; the engine only compares it
	ID          uint32   // never reused
	Families    []Family // in order of creation
	Granularity Granularity
	Splits      [][]byte // initial split points, sorted
	Journal     Journal  // the purposes for which its changes are recorded
	Meta        []byte   // opaque to the engine
}

// FamilyChange is one step of ModifyFamilies. Exactly one of Create, Update and Drop must be set.
type FamilyChange struct {
	Create *Family // Ordinal is assigned
	Update *Family // replaces GC and Meta of the family with that name; Aggregate must not change
	Drop   string
}

// MutationKind is the kind of change that a Mutation makes.
type MutationKind uint8

// These are the kinds of mutations.
const (
	SetCell MutationKind = iota + 1
	DeleteFromColumn
	DeleteFromFamily
	DeleteFromRow
	AddToCell   // adds an input to a cell of an aggregate family
	MergeToCell // merges a state into a cell of an aggregate family
)

// Mutation is one change of a row. The engine reads its byte slices only during the call.
type Mutation struct {
	Kind MutationKind
	// Ordinal is the ordinal of Family if the caller knows it. It lets the engine find the family
	// without a search. A wrong ordinal is ignored.
	Ordinal   uint16
	Family    string
	Qualifier []byte
	// Timestamp is the cell's timestamp in microseconds, or ServerTimestamp, for
	// SetCell, AddToCell and MergeToCell. Aggregates accumulate by column and
	// timestamp.
	Timestamp int64
	// Value is the value of a SetCell, or the state that a MergeToCell merges; a nil state changes
	// nothing. For an AddToCell to an AggregateHLL, it is the input; if it is nil, Input is added
	// instead.
	Value      []byte
	Input      int64 // AddToCell: the input if Value is nil
	Start, End int64 // DeleteFromColumn: [Start, End) in microseconds; 0 is unbounded
}

// RuleReadModifyWrite is one rule of ReadModifyWrite. It appends Append if that is not nil, and
// otherwise adds Increment.
type RuleReadModifyWrite struct {
	Family    string
	Qualifier []byte
	Append    []byte
	Increment int64
	MaxBytes  int // maximum size of the result of an Append; 0 means unlimited
}

// Cell is one version of one column. Its slices belong to the engine and are
// valid until the scan moves, unless the returning function says otherwise.
type Cell struct {
	Family    string
	Ordinal   uint16 // the ordinal of Family
	Qualifier []byte
	Timestamp int64 // microseconds
	Value     []byte
}

// Span is a half-open range of row keys [Start, End). An empty Start or End means no bound. The
// span of a single row r is [r, r+"\x00").
type Span struct {
	Start, End []byte
}

// ScanOptions selects the rows that a Scan visits.
type ScanOptions struct {
	// Spans are the ranges to read, which must be sorted, disjoint and non-empty; nil means the
	// whole table. They must not change until the scan is closed.
	Spans []Span
	// Reverse visits rows in descending order. The order of the cells within a row does not change.
	Reverse bool
}

// Sample is a split point of a table and the approximate number of bytes
// stored before it.
type Sample struct {
	RowKey      []byte // "" for the end of the table
	OffsetBytes int64
}

// latches is the number of row latches. Rows share them by hash. The rows of InternalTables have the
// second half, so that their large groups do not delay writers of other tables.
const (
	latches     = 2 * halfLatches
	halfLatches = 256
)

// latch serializes the writers of the rows that hash to it.
type latch struct {
	mu sync.Mutex
	// deletes counts the commits under this latch that removed cells: garbage found by the
	// collector stays garbage while the count is the same. Guarded by mu.
	deletes uint64
	covered uint64   // value of deletes when dead cells were last covered; guarded by mu
	_       [40]byte // puts neighbors into separate cache lines
}

// DB is an open store. It is safe for concurrent use.
type DB struct {
	pebble  *pebble.DB
	options *pebble.Options // of pebble
	fs      vfs.FS          // the store's
	mem     *memfs.FS       // storage of a private in-memory store, else nil
	write   *pebble.WriteOptions
	now     func() time.Time
	logger  *slog.Logger // may be nil

	eagerGC     bool
	keepDeleted keepDeletedBounds
	backups     backupBounds

	// snapshotDir holds the snapshots of this DB and nothing that outlives it.
	snapshotDir string
	snapshots   atomic.Int64 // number of names created in snapshotDir

	seed    maphash.Seed
	latches [latches]latch

	// overwritten has, by latch, the number of further walks through a row that seek instead
	// of stepping; see walk.
	overwritten [latches]atomic.Int32
	notes       atomic.Int32 // number of elements of overwritten above 0

	// copyMu is held for reading while a table is copied. Restore, which reuses the ids of
	// tables, waits for it.
	copyMu sync.RWMutex
	// catalogMu serializes changes of the catalog and of resources, except for resources of
	// rows.
	catalogMu sync.Mutex
	// catalog is immutable and replaced as a whole, under catalogMu. Changing or deleting a
	// table also needs all latches and viewMu.
	catalog atomic.Pointer[catalog]
	// resourceVersion counts the changes of resources; see ResourceVersion.
	resourceVersion atomic.Uint64
	// viewMu is held for reading from the read of the catalog until a view of the store is
	// taken, so that both are of one moment.
	viewMu sync.RWMutex

	journal       journal
	dropPieceRows int // rows in a piece of a drop; 0 is the default, for tests

	smallDrops atomic.Int32 // number of small drops since the last flush

	gcMu sync.Mutex // serializes RunGC

	// failure is the first error after which writes cannot be trusted: the store rejects every
	// later call.
	failure atomic.Pointer[error]

	// closed is set once; afterwards no call begins and open scans stop. The Pebble store is
	// released after running calls and open scans have ended.
	closed   atomic.Bool
	calls    atomic.Int64
	scans    atomic.Int64
	idleOnce sync.Once
	idle     chan struct{} // closed when DB is closed and no call is running
	// life ends when Close begins; background has the goroutines that run until then.
	life        context.Context
	end         context.CancelFunc
	background  sync.WaitGroup
	releaseOnce sync.Once
	releaseErr  error // error of the release; written inside releaseOnce
}

// Open opens the store that o describes, and creates it if it does not exist. Errors: ErrLocked if
// another store has the directory open, ErrFormatVersion if a newer version of the program, or
// another program, wrote it.
func Open(o Options) (*DB, error) {
	now := o.Now
	if now == nil {
		now = clock.New().Now
	}
	d := &DB{
		now: now, logger: o.Logger, seed: maphash.MakeSeed(), idle: make(chan struct{}), write: pebble.NoSync,
		eagerGC: o.EagerGC, keepDeleted: o.keepDeleted(), backups: o.backupBounds(),
	}
	d.journal.d = d
	d.life, d.end = context.WithCancel(context.Background())
	if o.KeepDeleted < 0 || o.MemTableBytes < 0 {
		return nil, fmt.Errorf("engine: open %s: %w: KeepDeleted or MemTableBytes is negative", storeName(o.Dir), ErrInvalid)
	}
	memTable := cmp.Or(o.MemTableBytes, memTableBytes)
	if o.MemTableBytes == 0 && o.Dir != "" {
		memTable = memTableDiskBytes
	}
	po := &pebble.Options{
		FormatMajorVersion:    pebble.FormatNewest,
		MemTableSize:          uint64(memTable),
		CacheSize:             2*int64(memTable) + cacheBytes,
		L0CompactionThreshold: compactAt,
		L0StopWritesThreshold: 40,
		Logger:                storeLogger{d},
	}
	// Pebble's default scheduler checks ten times a second whether more merges may run at the
	// same time, and wakes an idle process. Here it is always one merge, which starts the next.
	po.Experimental.CompactionScheduler = pebble.NewConcurrencyLimitSchedulerWithNoPeriodicGrantingForTest()
	po.CompactionConcurrencyRange = func() (lower, upper int) { return 1, 1 }
	po.EventListener = &pebble.EventListener{DataCorruption: func(info pebble.DataCorruptionInfo) { d.fail(damaged(info)) }}
	for i := range po.Levels {
		po.Levels[i].BlockSize = blockBytes
		po.Levels[i].IndexBlockSize = blockBytes
	}
	dir := o.Dir
	if dir == "" {
		dir = "/store"
		po.DisableWAL = true
		po.NoSyncOnClose = true
		po.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionNone })
		if po.FS = o.FS; po.FS == nil {
			d.mem = memfs.New(now)
			po.FS = d.mem
		}
	} else {
		po.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionFastest })
		if !o.NoSync {
			d.write = pebble.Sync
		}
		if po.FS = o.FS; po.FS == nil {
			po.FS = vfs.Default
			var err error
			if dir, err = diskDir(dir); err != nil {
				return nil, fmt.Errorf("engine: open %s: %w", o.Dir, err)
			}
		}
	}
	d.snapshotDir = po.FS.PathJoin(dir, "snapshots")
	guard := guardfs.New(po.FS, guardfs.Store{Failed: d.failed, Fail: d.fail, Closing: d.life.Done(), Apart: d.snapshotDir})
	po.FS = guard
	if err := checkDir(dir, po.FS); err != nil {
		return nil, d.abandon(fmt.Errorf("engine: open %s: %w", storeName(o.Dir), err))
	}
	d.fs, d.options = po.FS, po

	p, err := pebble.Open(dir, po)
	if err != nil {
		return nil, d.abandon(fmt.Errorf("engine: open %s: %w", storeName(o.Dir), openError(err, dir, po.FS)))
	}
	d.pebble = p
	guard.Opened()
	c, err := d.loadCatalog()
	if err == nil {
		err = d.journal.load(c)
	}
	if err == nil {
		// Snapshots of a DB that was not closed.
		err = errors.Join(d.failed(), d.fs.RemoveAll(d.snapshotDir))
	}
	if err != nil {
		_ = p.Close()
		return nil, d.abandon(fmt.Errorf("engine: open %s: %w", storeName(o.Dir), damage(err)))
	}
	d.catalog.Store(c)
	if err := d.Backups().dropUnfinished(); err != nil {
		_ = p.Close()
		return nil, d.abandon(fmt.Errorf("engine: open %s: %w", storeName(o.Dir), err))
	}
	return d, nil
}

// storeFile matches the files in the folder of a store, even one whose first Open failed, and
// the file with the offset of a server's clock.
var storeFile = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(LOCK|CURRENT.*|(OPTIONS|MANIFEST|marker)[-.].*|\d+\.(log|sst|blob|dbtmp)|temporary\..*|snapshots|clock-lead(\.new)?|lost\+found)$`)
})

// checkDir rejects a folder with foreign files: a store among a project's sources would
// disturb both. A missing folder is created later.
func checkDir(dir string, fs vfs.FS) error {
	names, err := fs.List(dir)
	if err != nil {
		return nil //nolint:nilerr // opening the store reports it, where it matters
	}
	for _, name := range names {
		if !storeFile().MatchString(name) {
			return fmt.Errorf("%w: the folder contains %q, which is not a file of a store; expected an empty folder or a store", ErrInvalid, name)
		}
	}
	return nil
}

// The sizes below were measured together. The cache is charged for two memtables, so a cache
// of at most their size caches nothing. The rest holds 100,000 rows of 1 KB. A block outside the
// cache is copied from a file for each read, in memory too; that costs as much as the rest of the
// read. The cache fills with blocks that are read, not with those that are written. A cache for
// half of a table saves little, since each scan replaces its content. Memtables grow to
// this size step by step, and the last flushed memtable is reused for the next: a store with
// constant writes holds two. In memory, writes cost the same with 4 MiB as with 8, and the
// load of a large table the same as with 2. On disk, small ones cost nothing while a store is
// small. Later each merge of a few rewrites most of the files: with 2 MiB, merges took a fifth
// of the CPU of a server that is written all the time, and with 8 MiB a tenth. With
// 5 MiB a server stays below 90 MB after the DynamoDB workloads.
//
// Overwritten data takes space until a compaction, which compactAt starts. At 4 overlapping
// files a store in memory whose items are overwritten repeatedly holds 10 MB less than at 8.
// The curves are in docs/notes/performance.md.
//
// A cached block is on the heap and, with the 341 bytes that Pebble adds to it, fills one of
// the runtime's size classes. A block of 8 KiB would waste an eighth of its class.
const (
	memTableBytes     = 4 << 20
	memTableDiskBytes = 5 << 20
	cacheBytes        = 112 << 20 // in addition to the memtables
	compactAt         = 4
	blockBytes        = 9472 - 344
)

func storeName(dir string) string {
	if dir == "" {
		return "the in-memory store"
	}
	return dir
}

// diskDir creates the directory and returns its canonical path, so that two spellings of it
// meet the same lock.
func diskDir(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

// openError explains the failure of Pebble to open dir.
func openError(err error, dir string, fs vfs.FS) error {
	if errors.Is(err, ErrLocked) {
		return err
	}
	names, listErr := fs.List(dir)
	if listErr != nil {
		return err
	}
	var logs []string
	for _, name := range names {
		if guardfs.IsLog(name) {
			logs = append(logs, fs.PathJoin(dir, name))
		}
		var format uint64
		if n, _ := fmt.Sscanf(name, "marker.format-version.%d.%d", new(uint64), &format); n == 2 &&
			format > uint64(pebble.FormatNewest) {
			return fmt.Errorf("%w: files of format %d, this program reads up to %d: open the store with a newer version of the program",
				ErrFormatVersion, format, uint64(pebble.FormatNewest))
		}
	}
	if strings.Contains(err.Error(), "replaying WAL") {
		slices.Sort(logs)
		return fmt.Errorf("write-ahead log %s is damaged; %s: %w", strings.Join(logs, " or "), cure, err)
	}
	return damage(err)
}

// abandon frees the resources of a failed Open and returns err.
func (d *DB) abandon(err error) error {
	d.end()
	if d.mem != nil {
		d.mem.Release()
	}
	return err
}

// Compact writes memory buffers to files and rewrites the files, which frees the space of deleted
// data. It reads all data once while other calls continue.
func (d *DB) Compact(ctx context.Context) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.leave()
	if err := ctx.Err(); err != nil {
		return err
	}
	err := d.pebble.Flush()
	if err == nil {
		lower, upper := storeBounds()
		err = d.pebble.Compact(ctx, lower, upper, true)
	}
	if err != nil {
		return fmt.Errorf("engine: compact: %w", damage(err))
	}
	return d.failed()
}

// enter begins a call; if it returns nil, leave must end the call.
func (d *DB) enter() error {
	d.calls.Add(1)
	if d.closed.Load() {
		d.leave()
		return ErrClosed
	}
	if err := d.failed(); err != nil {
		d.leave()
		return err
	}
	return nil
}

// leave ends a call.
func (d *DB) leave() {
	if d.calls.Add(-1) == 0 && d.closed.Load() && d.calls.Load() == 0 {
		// A call that entered before closed was set would be counted here.
		d.idleOnce.Do(func() { close(d.idle) })
	}
}

// Close ends background garbage collection, waits for running calls, stops open scans with
// ErrClosed, and releases the store with its snapshots. If scans are still open, it returns an
// error, and closing the last scan releases the store. Later calls do nothing and return nil. Close
// must not be called inside Update or UpdateCatalog.
func (d *DB) Close() error {
	d.end()
	if d.closed.Swap(true) {
		<-d.idle
		return nil
	}
	d.journal.wakeAll()
	d.calls.Add(1)
	d.leave()
	<-d.idle
	d.background.Wait() // no remaining call could add to it
	if n := d.scans.Load(); n > 0 {
		// The last scan may have ended by now; the release runs once.
		if d.scansDone() {
			return d.releaseErr
		}
		return fmt.Errorf("engine: close: %d scans are still open", n)
	}
	d.scansDone()
	return d.releaseErr
}

// scansDone releases the store if it is closed, no call is running and no scan is open. It
// reports whether the store is released.
func (d *DB) scansDone() bool {
	if !d.closed.Load() {
		return false
	}
	select {
	case <-d.idle:
	default:
		return false // Close is still waiting and will check again
	}
	if d.scans.Load() != 0 {
		return false
	}
	d.releaseOnce.Do(func() {
		err := d.fs.RemoveAll(d.snapshotDir)
		if !d.options.DisableWAL && d.failed() == nil {
			// Table files have checksums throughout. The end of a log has no checksum that
			// distinguishes damage from the effect of a crash.
			err = errors.Join(err, d.pebble.Flush(), d.failed())
		}
		if err = errors.Join(err, d.pebble.Close()); err != nil {
			d.releaseErr = fmt.Errorf("engine: close: %w", err)
		}
		if d.mem != nil {
			d.mem.Release()
		}
	})
	return true
}

// latchOf returns the index of the latch of a row.
func (d *DB) latchOf(t *table, row []byte) int {
	return t.firstLatch + int((maphash.Bytes(d.seed, row)+uint64(t.def.ID)*0x9E3779B97F4A7C15)%halfLatches)
}

// lockAll takes all row latches and returns their release. deletes must be set if the caller
// is going to remove cells.
func (d *DB) lockAll(deletes bool) (unlock func()) {
	for i := range d.latches {
		d.latches[i].mu.Lock()
		if deletes {
			d.latches[i].deletes++
		}
	}
	return func() {
		for i := range d.latches {
			d.latches[i].mu.Unlock()
		}
	}
}

// commit applies and acknowledges b, and closes it.
func (d *DB) commit(b *pebble.Batch) error { return d.apply(b, d.write) }

// apply applies b and closes it. With pebble.NoSync it does not wait for the disk: until
// syncLog, a crash may lose all of b together with all later batches.
func (d *DB) apply(b *pebble.Batch, o *pebble.WriteOptions) error {
	if err := d.failed(); err != nil {
		_ = b.Close()
		return err
	}
	if err := b.Commit(o); err != nil {
		return fmt.Errorf("engine: commit: %w", err)
	}
	// Pebble reports a permanently failed commit only to its logger.
	if err := d.failed(); err != nil {
		return err
	}
	return b.Close()
}

// syncLog makes all applied batches as durable as committed ones.
func (d *DB) syncLog() error {
	b := d.pebble.NewBatch()
	if err := b.LogData(nil, nil); err != nil {
		_ = b.Close()
		return fmt.Errorf("engine: sync: %w", err)
	}
	return d.commit(b)
}
