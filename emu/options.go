package emu

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/clock"
)

// Limits selects whether the server enforces the documented limits of Bigtable.
type Limits uint8

// The settings of Options.Limits.
const (
	// StrictLimits rejects requests beyond the documented limits of Bigtable. It is
	// the default, so that a test fails where production would.
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

// Clock is a time source that can be waited on. It is safe for concurrent use.
type Clock interface {
	// Now returns the time. It never decreases.
	Now() time.Time
	// At returns a channel that closes once Now is t or later, and a function that ends the
	// wait and frees its memory. The function may be called at any time, even twice.
	At(t time.Time) (reached <-chan struct{}, stop func())
}

// Options configure New. Only DB is required.
type Options struct {
	// DB holds the tables and rows. The caller owns it and closes it after the
	// server. Required.
	DB *engine.DB
	// Clock is the time source of request statistics, resources, operations and consistency
	// tokens; requests wait on it. Cell timestamps come from the DB, which should have the same
	// clock. Default: the wall clock.
	Clock Clock
	// AdminDelay is the time, by Clock, that long operations of instance and table
	// administration take; new resources are CREATING meanwhile. Default: 0, operations finish
	// before their call returns.
	AdminDelay time.Duration
	// ReplicationLag is the time, by Clock, after which a write is visible in the other
	// clusters of its instance, up to MaxReplicationLag. Server.Replication changes it.
	// Default: 0, a write is visible everywhere at once.
	ReplicationLag time.Duration
	// RandomRouting makes app profiles that route to any cluster choose one at random for
	// each call, with Seed. Default: the first available one, by the profile's order and
	// then by name.
	RandomRouting bool
	// Logger receives panics of handlers and other faults of the server. Default: no logs.
	Logger *slog.Logger
	// Limits selects whether documented limits are enforced. Default: StrictLimits.
	Limits Limits
	// Seed starts the random sequences of the row sample filter, of PartitionChurn and of
	// RandomRouting: with the same seed, the same requests see the same samples.
	Seed uint64
	// Token is the secret that every RPC on a listener must carry, as the header
	// `authorization: Bearer TOKEN`; other RPCs fail with Unauthenticated. The channel of Conn
	// needs no token. Use tokens over TLS only. Default: no token.
	Token string
	// StreamWorkers is the number of long-lived goroutines that answer calls on listeners;
	// calls beyond them get new goroutines. Their grown stacks save a tenth of a small call's
	// time. They start with the server: use few for a single test. Default: 64.
	StreamWorkers uint32
	// After returns a channel that receives a value after the duration, independent of Clock.
	// Change streams use it to send a heartbeat after 20 seconds of silence. Default:
	// time.After.
	After func(time.Duration) <-chan time.Time
	// AnyPartition lets ReadChangeStream read any range of keys in one stream, for tests that
	// want all changes. Default: as in the service, the range must be a partition of the table;
	// otherwise the stream returns the tokens of the partitions.
	AnyPartition bool
	// CountLoad counts the load on keys, for ListHotTablets, in implicit instances too. It
	// costs about 0.1 microseconds per request and at most 32 MiB per server. Default: only
	// requests to created instances are counted.
	CountLoad bool
	// PartitionChurn is the probability, 0 to 1, that a partition of a table's change stream is
	// split, or merged with another, after a record is sent, so that consumers see both.
	// Default: 0, only SplitPartition and MergePartitions change partitions.
	PartitionChurn float64
	// CloneInProcess copies every message on the channel that Conn returns, as a wire would.
	// Tests use it to find messages that are changed after they were sent. Default: messages
	// are shared.
	CloneInProcess bool
	// Faults make calls fail, on every listener and on the channel of Conn. Default: none.
	Faults Faults
	// Observe receives each call when it ends; a unary call, before its response is sent. Each
	// call waits for Observe in its own goroutine. Default: none.
	Observe func(*Call)
	// UnaryInterceptor and StreamInterceptor run around every handler, on every listener and on
	// the channel of Conn. UnaryInterceptor also runs around each request in a session, as
	// around a ReadRows or MutateRow. Default: none.
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
	if o.AdminDelay < 0 {
		return fmt.Errorf("emu: Options.AdminDelay is %v, want 0 or more", o.AdminDelay)
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
	return o
}
