package emu

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/emu/internal/materialized"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/clock"
)

// Limits selects whether the server enforces the documented limits of Bigtable.
type Limits uint8

// These are the settings of Options.Limits.
const (
	// StrictLimits rejects requests that exceed the documented limits of Bigtable. It is the
	// default, so that a test fails where production would.
	StrictLimits Limits = iota
	// NoLimits accepts keys, values, filters and requests of any size that fits into a message.
	// Other rules still hold, such as the grammar of names and the granularity of timestamps.
	NoLimits
	// ProductionLimits also enforces the rules of production for instances, clusters and app
	// profiles. It rejects short ids and display names, ids that end in a hyphen, locations
	// that are not zones, and long descriptions. StrictLimits accepts these because tests use
	// short names.
	ProductionLimits
)

// ManualViews is the Options.ViewLag of views that only Server.RefreshViews changes, and MaxViewLag is the
// longest lag.
const (
	ManualViews = materialized.Manual
	MaxViewLag  = materialized.MaxLag
)

// Clock is a time source that callers can wait on. It is safe for concurrent use.
type Clock interface {
	// Now returns the current time. It never decreases.
	Now() time.Time
	// At returns a channel that is closed once Now is t or later, and a function that ends the wait
	// and frees its memory. The function may be called at any time, even twice.
	At(t time.Time) (reached <-chan struct{}, stop func())
}

// Options configures New. Only DB is required.
type Options struct {
	// DB stores the tables and rows. The caller owns it, and must close it after the server.
	// Required.
	DB *engine.DB
	// Clock is the time source of request statistics, resources, operations and consistency tokens.
	// Requests that wait use it too. Cell timestamps come from the DB, which should use the same
	// clock. Default: the wall clock.
	Clock Clock
	// AdminDelay is how long, on Clock, long-running admin operations take. New resources are
	// CREATING meanwhile. Default: 0, operations finish before their call returns.
	AdminDelay time.Duration
	// ReplicationLag is the delay, on Clock, after which a write is visible in the other clusters
	// of its instance, up to MaxReplicationLag. Server.Replication can change it. Default: 0, a
	// write is visible everywhere at once.
	ReplicationLag time.Duration
	// ViewLag is the delay, on Clock, after which a change of a table reaches its materialized
	// views, up to MaxViewLag. A later change of the same row may become visible with it.
	// ManualViews leaves the views unchanged until Server.RefreshViews. Default: 0, a view
	// reflects a write once it is acknowledged.
	ViewLag time.Duration
	// RandomRouting makes app profiles that route to any cluster choose a random cluster for each
	// call, with numbers seeded by Seed. Default: the first available cluster, by the profile's
	// order and then by name.
	RandomRouting bool
	// Logger logs panics in handlers and other faults of the server. Default: nothing is logged.
	Logger *slog.Logger
	// Limits selects whether documented limits are enforced. Default: StrictLimits.
	Limits Limits
	// Seed seeds the random numbers of the row sample filter, SQL functions, PartitionChurn and
	// RandomRouting. With the same seed, the same requests get the same samples.
	Seed uint64
	// Token is the secret that every RPC on a listener must carry, as the header `authorization:
	// Bearer TOKEN`; other RPCs fail with Unauthenticated. The channel of Conn needs no token. Use
	// tokens only over TLS. Default: no token.
	Token string
	// StreamWorkers is the number of long-lived goroutines that handle calls on listeners; calls
	// beyond that number get new goroutines. Their stacks have already grown, which saves a
	// tenth of the time of a small call. The workers start with the server, so use few of them
	// for a single test. Default: 64.
	StreamWorkers uint32
	// After returns a channel that receives a value after the given duration, independently of
	// Clock. Change streams use it to send a heartbeat after 20 seconds of silence. Default:
	// time.After.
	After func(time.Duration) <-chan time.Time
	// AnyPartition lets ReadChangeStream read any range of keys in one stream, for tests that want
	// all changes. Default: as in the service, the range must be a partition of the table;
	// otherwise the stream only returns the tokens of the current partitions.
	AnyPartition bool
	// CountLoad counts the load on keys, for ListHotTablets, in implicit instances too. It costs
	// about 0.1 microseconds per request, and at most 32 MiB of memory per server. Default: only
	// requests to created instances are counted.
	CountLoad bool
	// PartitionChurn is the probability, 0 to 1, that a change stream partition is split or merged
	// after a record is sent, so that consumers under test meet both. Default: 0, only
	// SplitPartition and MergePartitions change partitions.
	PartitionChurn float64
	// SQLMemory is the maximum size, in bytes, of the rows that one SQL query holds in memory to
	// sort, group or unpack them. A query that needs more fails. Default: 64 MiB.
	SQLMemory int64
	// CloneInProcess copies every message on the channel that Conn returns, as a network connection
	// would. Tests use it to find code that changes messages after sending them. Default: messages
	// are shared.
	CloneInProcess bool
	// Faults makes calls fail, on every listener and on the channel of Conn. Default: none.
	Faults Faults
	// Observe is called at the end of each call, for unary calls before the response is sent. The
	// call waits until Observe returns. Calls may run Observe concurrently. Default: none.
	Observe func(*Call)
	// UnaryInterceptor and StreamInterceptor wrap every handler, on every listener and on the
	// channel of Conn. UnaryInterceptor also wraps each request in a session, as if it were a
	// ReadRows or MutateRow call. Default: none.
	UnaryInterceptor  grpc.UnaryServerInterceptor
	StreamInterceptor grpc.StreamServerInterceptor
}

func (o Options) validate() error {
	if o.DB == nil {
		return errors.New("emu: Options.DB is nil; a server needs an open engine.DB")
	}
	if o.Limits > ProductionLimits {
		return errors.New("emu: Options.Limits is not StrictLimits, NoLimits or ProductionLimits")
	}
	if !(o.PartitionChurn >= 0 && o.PartitionChurn <= 1) {
		return fmt.Errorf("emu: Options.PartitionChurn is %v, want 0 to 1", o.PartitionChurn)
	}
	if o.ViewLag != ManualViews && (o.ViewLag < 0 || o.ViewLag > MaxViewLag) {
		return fmt.Errorf("emu: Options.ViewLag is %v, want 0 to %v, or ManualViews", o.ViewLag, MaxViewLag)
	}
	if o.AdminDelay < 0 {
		return fmt.Errorf("emu: Options.AdminDelay is %v, want 0 or more", o.AdminDelay)
	}
	if o.SQLMemory < 0 {
		return fmt.Errorf("emu: Options.SQLMemory is %d, want 0 or more", o.SQLMemory)
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = clock.New()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.After == nil {
		o.After = time.After //nolint:forbidigo // the default of the injected timer
	}
	o.StreamWorkers = cmp.Or(o.StreamWorkers, 64)
	o.SQLMemory = cmp.Or(o.SQLMemory, 64<<20)
	return o
}
