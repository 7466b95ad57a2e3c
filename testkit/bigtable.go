package testkit

import (
	"log/slog"
	"time"

	"github.com/tabletop-emu/tabletop/testkit/btkit"
)

// These types are aliases of types in package btkit, which implements the Bigtable part.
type (
	// Clusters controls the clusters of an environment's instance; see [btkit.Clusters].
	Clusters = btkit.Clusters
	// Snapshot holds the data of an environment at one moment: instances, tables, families and
	// rows, and so also the DynamoDB tables and items; see [btkit.Snapshot].
	Snapshot = btkit.Snapshot
	// ChangeReader reads a change stream, each record once; see [btkit.ChangeReader].
	ChangeReader = btkit.ChangeReader
	// ChangesOption configures [btkit.Env.Changes] and [btkit.Env.ReadChanges].
	ChangesOption = btkit.ChangesOption
	// GC selects when the garbage-collection rules of families are applied; see [btkit.GC].
	GC = btkit.GC
)

// These constants are the modes of garbage collection.
const (
	GCManual     = btkit.GCManual     // collects only when RunGC is called; the default
	GCBackground = btkit.GCBackground // collects once a minute, including the minutes that Advance skips
	GCEager      = btkit.GCEager      // hides from all readers the cells that the rules would remove
)

// WithBookkeeping also returns the DynamoDB endpoint's own cells in the rows of its
// tables, in the families _f, _t and _x, and those of a migration, in _m.
func WithBookkeeping() ChangesOption { return btkit.WithBookkeeping() }

// WithBigtable applies options of package btkit to the environment's Bigtable.
func WithBigtable(opts ...btkit.Option) Option {
	return func(c *config) {
		for _, o := range opts {
			o(&c.bigtable)
		}
	}
}

// WithGC sets when garbage collection runs. Default: GCManual.
func WithGC(mode GC) Option { return WithBigtable(btkit.WithGC(mode)) }

// WithSeed seeds the environment's random numbers, which [WithProbability], [WithPartitionChurn]
// and the row sample filter use. Every run of a test sees the same random numbers, even with the
// default seed, 0.
func WithSeed(seed uint64) Option { return WithBigtable(btkit.WithSeed(seed)) }

// WithDir stores the data on disk, in dir, instead of in memory. A later Start with the same dir
// finds the data again. Two environments cannot use the same dir at the same time.
func WithDir(dir string) Option { return WithBigtable(btkit.WithDir(dir)) }

// WithFrozenClock stops the environment's time at t until Env.Advance moves
// it.
func WithFrozenClock(t time.Time) Option { return WithBigtable(btkit.WithFrozenClock(t)) }

// WithInstance names the project and instance of the clients and of the DynamoDB tables.
// Default: tabletop and tabletop.
func WithInstance(project, instance string) Option {
	return WithBigtable(btkit.WithInstance(project, instance))
}

// WithLogger logs panics in handlers and server faults to l. Default: nothing is logged.
func WithLogger(l *slog.Logger) Option { return WithBigtable(btkit.WithLogger(l)) }

// WithAdminDelay makes Bigtable admin operations take d; see [btkit.WithAdminDelay].
func WithAdminDelay(d time.Duration) Option { return WithBigtable(btkit.WithAdminDelay(d)) }

// ManualViews is the lag of materialized views that only RefreshViews changes; see [WithViewLag].
const ManualViews = btkit.ManualViews

// WithViewLag sets how long a change of a table takes to reach its materialized views; see
// [btkit.WithViewLag].
func WithViewLag(d time.Duration) Option { return WithBigtable(btkit.WithViewLag(d)) }

// WithLoadCounts counts the load that requests put on keys, for ListHotTablets; see
// [btkit.WithLoadCounts].
func WithLoadCounts() Option { return WithBigtable(btkit.WithLoadCounts()) }

// WithBackupBytes limits the total size of backups; see [btkit.WithBackupBytes].
func WithBackupBytes(n int64) Option { return WithBigtable(btkit.WithBackupBytes(n)) }

// WithSQLMemory limits the rows that one SQL query holds; see [btkit.WithSQLMemory].
func WithSQLMemory(bytes int64) Option { return WithBigtable(btkit.WithSQLMemory(bytes)) }

// WithIAM enforces IAM policies for the clients that BigtableAs and BigtableAdminAs return; see
// [btkit.WithIAM]. The DynamoDB endpoint has all permissions.
func WithIAM() Option { return WithBigtable(btkit.WithIAM()) }

// WithPartitionChurn splits or merges partitions of change streams while they are read, with
// probability p after each record; see [btkit.WithPartitionChurn].
func WithPartitionChurn(p float64) Option { return WithBigtable(btkit.WithPartitionChurn(p)) }

// WithRandomRouting makes app profiles that route to any cluster choose a random cluster for each
// call; see [btkit.WithRandomRouting].
func WithRandomRouting() Option { return WithBigtable(btkit.WithRandomRouting()) }
