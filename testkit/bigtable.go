package testkit

import (
	"log/slog"
	"time"

	"github.com/tabletop-emu/tabletop/testkit/btkit"
)

// Aliases of types of package btkit, which has everything about Bigtable alone.
type (
	// Clusters are the clusters of an environment's instance; see [btkit.Clusters].
	Clusters = btkit.Clusters
	// Snapshot is the data of an environment at one moment: instances, tables, families, rows,
	// and therefore the DynamoDB tables and items too; see [btkit.Snapshot].
	Snapshot = btkit.Snapshot
	// ChangeReader reads a change stream, each record once; see [btkit.ChangeReader].
	ChangeReader = btkit.ChangeReader
	// ChangesOption changes what [btkit.Env.Changes] and [btkit.Env.ReadChanges] return.
	ChangesOption = btkit.ChangesOption
	// GC selects when the garbage-collection rules of families are applied; see [btkit.GC].
	GC = btkit.GC
)

// The modes of garbage collection.
const (
	GCManual     = btkit.GCManual     // only on RunGC; the default
	GCBackground = btkit.GCBackground // once a minute, including the minutes that Advance passes
	GCEager      = btkit.GCEager      // no reader sees cells that the rules would remove
)

// WithBookkeeping also returns the DynamoDB endpoint's own cells in the rows of its
// tables, in the families _f, _t and _x, and those of a migration, in _m.
func WithBookkeeping() ChangesOption { return btkit.WithBookkeeping() }

// WithBigtable sets options of package btkit.
func WithBigtable(opts ...btkit.Option) Option {
	return func(c *config) {
		for _, o := range opts {
			o(&c.bigtable)
		}
	}
}

// WithGC sets when garbage is collected. Default: GCManual.
func WithGC(mode GC) Option { return WithBigtable(btkit.WithGC(mode)) }

// WithSeed seeds the random sequences of the environment, which [WithProbability],
// [WithPartitionChurn] and the row sample filter use. Each run of a test sees the same
// sequences, also with the default seed of 0.
func WithSeed(seed uint64) Option { return WithBigtable(btkit.WithSeed(seed)) }

// WithDir stores the data in dir, on disk, instead of in memory. A later Start with the same
// dir finds it again; two concurrent ones are rejected.
func WithDir(dir string) Option { return WithBigtable(btkit.WithDir(dir)) }

// WithFrozenClock stops the environment's time at t until Env.Advance moves
// it.
func WithFrozenClock(t time.Time) Option { return WithBigtable(btkit.WithFrozenClock(t)) }

// WithInstance names the project and instance of the clients and of the DynamoDB tables.
// Default: tabletop and tabletop.
func WithInstance(project, instance string) Option {
	return WithBigtable(btkit.WithInstance(project, instance))
}

// WithLogger receives panics of handlers and faults of the servers. Default:
// nothing is logged.
func WithLogger(l *slog.Logger) Option { return WithBigtable(btkit.WithLogger(l)) }

// WithAdminDelay makes operations of Bigtable's administration take d; see
// [btkit.WithAdminDelay].
func WithAdminDelay(d time.Duration) Option { return WithBigtable(btkit.WithAdminDelay(d)) }

// WithLoadCounts counts the load of requests on keys, for ListHotTablets; see
// [btkit.WithLoadCounts].
func WithLoadCounts() Option { return WithBigtable(btkit.WithLoadCounts()) }

// WithBackupBytes limits the total size of backups; see [btkit.WithBackupBytes].
func WithBackupBytes(n int64) Option { return WithBigtable(btkit.WithBackupBytes(n)) }

// WithIAM enforces IAM policies for the clients of BigtableAs and BigtableAdminAs; see
// [btkit.WithIAM]. The DynamoDB endpoint owns everything.
func WithIAM() Option { return WithBigtable(btkit.WithIAM()) }

// WithPartitionChurn splits partitions of change streams and merges them while they are
// read, with the probability p after each record; see [btkit.WithPartitionChurn].
func WithPartitionChurn(p float64) Option { return WithBigtable(btkit.WithPartitionChurn(p)) }

// WithRandomRouting makes app profiles that route to any cluster draw one for each call;
// see [btkit.WithRandomRouting].
func WithRandomRouting() Option { return WithBigtable(btkit.WithRandomRouting()) }
