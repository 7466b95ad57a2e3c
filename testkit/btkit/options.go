package btkit

import (
	"log/slog"
	"testing"
	"time"

	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/testkit/internal/server"
)

// Option configures the Env that Start returns.
type Option func(*server.Config)

// GC selects when the garbage-collection rules of families are applied.
type GC uint8

// These constants are the modes of garbage collection.
const (
	// GCManual collects only on [Env.RunGC]. It is the default.
	GCManual GC = iota
	// GCBackground collects once a minute, by the machine's clock or while [Env.Advance] moves the
	// time. Advance returns after the collection. Until then expired cells can be read, as in the
	// service.
	GCBackground
	// GCEager hides from every reader the cells that the rules would remove.
	GCEager
)

// gcInterval is the time between two collections of GCBackground.
const gcInterval = time.Minute

// WithGC sets when garbage collection runs. Default: GCManual.
func WithGC(mode GC) Option {
	return func(c *server.Config) {
		c.Lab.GCInterval, c.Lab.Store.EagerGC = 0, mode == GCEager
		if mode == GCBackground {
			c.Lab.GCInterval = gcInterval
		}
	}
}

// WithSeed seeds the environment's random numbers, which [WithProbability], [WithPartitionChurn]
// and the row sample filter use. Every run of a test sees the same random numbers, even with the
// default seed, 0.
func WithSeed(seed uint64) Option {
	return func(c *server.Config) { c.Lab.Seed, c.Lab.Bigtable.Seed = seed, seed }
}

// WithDir stores the data on disk, in dir, instead of in memory. A later Start with the same dir
// finds the data again. Two environments cannot use the same dir at the same time.
func WithDir(dir string) Option { return func(c *server.Config) { c.Lab.Store.Dir = dir } }

// WithFrozenClock stops the environment's time at t until Env.Advance moves
// it.
func WithFrozenClock(t time.Time) Option {
	return func(c *server.Config) { c.Lab.Clock = clock.NewFrozen(t) }
}

// WithInstance names the project and instance of the clients. Default: tabletop and tabletop.
func WithInstance(project, instance string) Option {
	return func(c *server.Config) { c.Lab.Project, c.Lab.Instance = project, instance }
}

// WithLogger logs panics in handlers and server faults to l. Default: nothing is logged.
func WithLogger(l *slog.Logger) Option { return func(c *server.Config) { c.Lab.Logger = l } }

// WithAdminDelay makes Bigtable admin operations take d, as in the service. New resources are
// CREATING until [Env.Advance] has moved the clock by d. Default: an operation is done when its
// call returns.
func WithAdminDelay(d time.Duration) Option {
	return func(c *server.Config) { c.Lab.Bigtable.AdminDelay = d }
}

// WithLoadCounts counts the load that requests put on keys, for ListHotTablets, in the
// environment's own instance too. It shows the hot keys of a schema. Default: requests are counted
// only in instances that the test creates.
func WithLoadCounts() Option { return func(c *server.Config) { c.Lab.Bigtable.CountLoad = true } }

// Start starts a private server that lives as long as the test tb. Any error
// fails tb at once.
func Start(tb testing.TB, opts ...Option) *Env {
	tb.Helper()
	var c server.Config
	for _, o := range opts {
		o(&c)
	}
	return Over(server.Start(tb, c))
}
