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

// Limits says whether the server enforces the documented limits of Bigtable.
type Limits uint8

// The settings of Options.Limits.
const (
	// StrictLimits refuses what the documented limits of Bigtable refuse. It is
	// the default, so that a test fails where production would.
	StrictLimits Limits = iota
	// NoLimits accepts keys, values, filters and requests of any size that fits
	// into a message. Rules that do not concern size, such as the grammar of names
	// and the granularity of timestamps, still hold.
	NoLimits
)

// Clock is a time source that can be waited on. It is safe for concurrent use.
type Clock interface {
	// Now returns the time, at least that of any earlier answer.
	Now() time.Time
	// At returns a channel that is closed once Now is t or later, never before,
	// and a function that ends the wait and leaves nothing of it. The function may
	// be called at any time, also twice.
	At(t time.Time) (reached <-chan struct{}, stop func())
}

// Options configure New. Only DB is required.
type Options struct {
	// DB holds the tables and rows. The caller owns it and closes it after the
	// server. Required.
	DB *engine.DB
	// Clock is the time source of latencies in request statistics, of resources
	// and operations, and of the age of consistency tokens, and what requests wait
	// on. The times of cells come from the DB, whose clock is to be the same one.
	// Default: the wall clock.
	Clock Clock
	// AdminDelay is how long an operation of instance or table administration is
	// under way, by Clock, where the service takes its time: what it makes is
	// CREATING until then. Default: 0, operations are done when their call returns.
	AdminDelay time.Duration
	// ReplicationLag is how long what a cluster takes is on its way to the others of
	// its instance, up to MaxReplicationLag, by Clock, until Server.Replication says something else. Default: 0,
	// all see it at once.
	ReplicationLag time.Duration
	// RandomRouting makes app profiles that route to any cluster draw one, with Seed,
	// for each call. Default: the first that is up, by the profile's order and then by name.
	RandomRouting bool
	// Logger receives panics of handlers and other faults of the server. Default:
	// nothing is logged.
	Logger *slog.Logger
	// Limits says whether documented limits are enforced. Default: they are.
	Limits Limits
	// Seed starts the random sequence of the row sample filter and of PartitionChurn:
	// with the same seed the same requests see the same samples. Default: 0, a
	// sequence like any other.
	Seed uint64
	// Token is what every RPC on a listener must carry, as the header
	// `authorization: Bearer TOKEN`; one that does not is answered with
	// Unauthenticated. The channel of Conn, which only this process reaches,
	// needs none. A token is only as secret as the connection: use it over TLS.
	// Default: no token is required.
	Token string
	// StreamWorkers is the number of goroutines that each answer calls from a wire
	// one after the other. Their stacks have already grown, which saves a tenth of
	// a small call's time; further calls get goroutines of their own. They start
	// with the server: a server for a single test is better off with few. Default:
	// 64.
	StreamWorkers uint32
	// After returns a channel that receives a value when the duration has passed,
	// whatever Clock says: change streams give a sign of life after 20 seconds
	// without one. Default: time.After.
	After func(time.Duration) <-chan time.Time
	// AnyPartition lets ReadChangeStream read any range of keys in one stream, for
	// tests that want all changes. Default: a range that is not one of the table's
	// partitions is answered by the tokens for those which are, as by the service.
	AnyPartition bool
	// CountLoad counts what requests do to which keys, for ListHotTablets, in instances
	// too that nobody created. It costs a request about a tenth of a microsecond, and the server at
	// most 32 MiB. Default: counted are requests to instances that were created.
	CountLoad bool
	// PartitionChurn is how probable it is, 0 to 1, that a partition of a table's
	// change stream is split, or two are merged, after a record that a stream of it
	// was sent: consumers meet both. Default: 0, partitions change when told.
	PartitionChurn float64
	// CloneInProcess copies every message on the channel that Conn returns, as
	// a wire would. It is for tests that look for a message changed after it was
	// handed over. Default: messages are shared.
	CloneInProcess bool
	// Faults strike calls, on every listener and on the channel of Conn. Default: none.
	Faults Faults
	// Observe is told of each call that has ended, before its answer is sent if it is
	// unary, from as many goroutines as there are calls; they wait for it. Default: nobody is told.
	Observe func(*Call)
	// UnaryInterceptor and StreamInterceptor run around every handler, on every
	// listener and on the channel of Conn. They are for tests that stand
	// between a client and the server. The unary one runs around each request in a
	// session too, as around a ReadRows or MutateRow. Methods that Support lists as Refused do
	// not reach them. Default: none.
	UnaryInterceptor  grpc.UnaryServerInterceptor
	StreamInterceptor grpc.StreamServerInterceptor
}

func (o Options) validate() error {
	if o.DB == nil {
		return errors.New("emu: Options.DB is nil; a server needs an open engine.DB")
	}
	if o.Limits > NoLimits {
		return errors.New("emu: Options.Limits is neither StrictLimits nor NoLimits")
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
	o.StreamWorkers = cmp.Or(o.StreamWorkers, streamWorkers)
	return o
}
