// Package engine is sorted storage with Bigtable's data model on Pebble:
// tables of rows, column families, versioned cells, garbage-collection rules
// and row-atomic mutations, in memory or on disk.
//
// It knows bytes and its own small types: no protos, no gRPC, no DynamoDB.
// One Pebble key holds one cell, so that a read costs what it returns and
// never what the row holds.
//
// The package is exported so that the module's own layers can use it; its API
// carries no promise of stability.
package engine

import (
	"context"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ServerTimestamp as the timestamp of a SetCell asks the engine to assign its
// own time, truncated to the table's granularity.
const ServerTimestamp int64 = -1

// Options configure Open. The zero value is a private in-memory store.
type Options struct {
	// Dir is the data directory; "" keeps everything in memory.
	Dir string
	// FS replaces the file system: tests use it to inject crashes and faults.
	// Default: the disk when Dir is set, off-heap memory otherwise.
	FS vfs.FS
	// NoSync acknowledges writes before they reach the disk. Default: every
	// write is synced when Dir is set. Without effect in memory.
	NoSync bool
	// Now is the time source. Default: the wall clock.
	Now func() time.Time
	// Logger receives warnings of the store. Default: none are written.
	Logger *slog.Logger
}

// Granularity is the unit of a table's timestamps.
type Granularity uint8

// Timestamps are always microseconds; Millis tables hold multiples of 1000.
const (
	Millis Granularity = iota
	Micros
)

// RuleKind tells which rule a GCRule is.
type RuleKind uint8

// The kinds of garbage-collection rules. NoGC keeps everything.
const (
	NoGC RuleKind = iota
	MaxVersions
	MaxAge
	Union        // collect what any of Rules collects
	Intersection // collect what all of Rules collect
)

// GCRule says which cells of a family may be collected.
type GCRule struct {
	Kind     RuleKind
	Versions int           // MaxVersions: the newest cells of a column to keep
	Age      time.Duration // MaxAge: cells older than this go
	Rules    []GCRule      // Union, Intersection
}

// Family is a column family of a table.
type Family struct {
	Name    string
	Ordinal uint16 // order of creation in its table; never reused
	GC      GCRule
	Meta    []byte // opaque to the engine
}

// Table is the definition of a table. Values returned by the engine are
// copies that no one changes.
type Table struct {
	Name        string   // full resource name; the engine only compares it
	ID          uint32   // never reused
	Families    []Family // in order of creation
	Granularity Granularity
	Splits      [][]byte // initial split points, sorted
	Meta        []byte   // opaque to the engine
}

// FamilyChange is one step of ModifyFamilies: exactly one of Create, Update,
// Drop is set.
type FamilyChange struct {
	Create *Family // Ordinal is assigned
	Update *Family // replaces GC and Meta of the family of that name
	Drop   string
}

// MutationKind tells which change a Mutation is.
type MutationKind uint8

// The kinds of mutations.
const (
	SetCell MutationKind = iota + 1
	DeleteFromColumn
	DeleteFromFamily
	DeleteFromRow
)

// Mutation is one change of a row. Byte slices are read during the call only.
type Mutation struct {
	Kind       MutationKind
	Family     string
	Qualifier  []byte
	Timestamp  int64  // SetCell: microseconds, or ServerTimestamp
	Value      []byte // SetCell
	Start, End int64  // DeleteFromColumn: [Start, End) in microseconds; End 0 is no bound
}

// RuleReadModifyWrite is one rule of ReadModifyWrite: Append when it is not
// nil, else Increment.
type RuleReadModifyWrite struct {
	Family    string
	Qualifier []byte
	Append    []byte
	Increment int64
}

// Cell is one version of one column. Its slices belong to the engine and are
// valid until the scan moves, unless the returning function says otherwise.
type Cell struct {
	Family    string
	Ordinal   uint16 // the family's
	Qualifier []byte
	Timestamp int64 // microseconds
	Value     []byte
}

// Span is a half-open range of row keys [Start, End). An empty End has no
// bound; Start "" is the table's beginning. A single row r is [r, r+"\x00").
type Span struct {
	Start, End []byte
}

// ScanOptions say which rows a Scan visits.
type ScanOptions struct {
	// Spans are sorted, disjoint, and not empty; nil is the whole table.
	Spans []Span
	// Reverse visits rows in descending order; cells inside a row keep their
	// order.
	Reverse bool
}

// Scan is a consistent view of the rows of one table, visited row by row and
// cell by cell in storage order: family by creation, qualifier bytewise,
// timestamp descending. It is for one goroutine.
//
//	for s.NextRow() {
//		for s.NextCell() {
//			use(s.Row(), s.Cell())
//		}
//	}
//	err := s.Close()
type Scan struct{ scan }

// RowTx is a locked row, inside Update.
type RowTx struct{ rowTx }

// Sample is a split point of a table and the approximate number of bytes
// stored before it.
type Sample struct {
	RowKey      []byte // "" is the end of the table
	OffsetBytes int64
}

// GCStats is the account of one GC run.
type GCStats struct {
	CellsScanned, CellsDeleted int64
}

// API lists what DB offers, as the contract between this package and emu.
type api interface {
	Close() error

	// Tables and families. Errors: ErrTableExists, ErrTableNotFound,
	// ErrFamilyExists, ErrFamilyNotFound, ErrInvalid.
	CreateTable(ctx context.Context, t Table) (*Table, error)
	Table(name string) (*Table, error)
	Tables(prefix string) []*Table // sorted by name
	UpdateTable(ctx context.Context, name string, fn func(*Table) error) (*Table, error)
	ModifyFamilies(ctx context.Context, name string, changes []FamilyChange) (*Table, error) // all or none
	DeleteTable(ctx context.Context, name string) error
	DropRows(ctx context.Context, table string, span Span) error

	// Rows.
	Mutate(ctx context.Context, table string, row []byte, muts []Mutation) error
	ReadModifyWrite(ctx context.Context, table string, row []byte, rules []RuleReadModifyWrite) ([]Cell, error)
	// Update locks the row and runs fn, which may read it (tx.Scan), and call
	// tx.Mutate once; what fn mutated is committed if it returns nil.
	Update(ctx context.Context, table string, row []byte, fn func(tx *RowTx) error) error
	Scan(ctx context.Context, table string, o ScanOptions) (*Scan, error)
	SampleRowKeys(ctx context.Context, table string) ([]Sample, error)

	// RunGC applies every family's rule once, at the clock's time.
	RunGC(ctx context.Context) (GCStats, error)
}
