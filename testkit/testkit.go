package testkit

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tabletop-emu/tabletop/control"
	"github.com/tabletop-emu/tabletop/control/lab"
	labdynamodb "github.com/tabletop-emu/tabletop/control/lab/dynamodb"
	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/testkit/internal/iam"
)

// Option changes how Start sets up an Env.
type Option func(*config)

type config struct {
	dir               string
	project, instance string
	clock             *clock.Clock
	logger            *slog.Logger
	mappings          []*mapping.Mapping
	mappingFiles      []string
	clone             bool
	gc                GC
	seed              uint64
	dynamoDB          facade.Options
	update            *migrate.UpdateMode // nil without UpdateFlag
	backupBytes       int64
	adminDelay        time.Duration
	countLoad         bool
	iam               *iam.Roles // nil without WithIAM
	randomRouting     bool
	restarts          bool // see Env.restart
	churn             float64
	buckets           string            // "" without WithBuckets
	observed          *control.Requests // nil without WithConsole
}

// GC says when the garbage-collection rules of families are applied.
type GC uint8

// The modes of garbage collection.
const (
	// GCManual collects only on [Env.RunGC]. It is the default.
	GCManual GC = iota
	// GCBackground collects once a minute, whether the minute passes by itself or
	// by [Env.Advance], which then returns after the collection: expired cells can
	// be read for a while, as in the service.
	GCBackground
	// GCEager hides from every reader what the rules would remove.
	GCEager
)

// WithGC says when garbage is collected. Default: GCManual.
func WithGC(mode GC) Option { return func(c *config) { c.gc = mode } }

// WithSeed seeds the random sequences of the environment: those of
// [WithProbability], [WithPartitionChurn] and of the row sample filter. Default: 0, a seed like any
// other: each run of a test sees the same sequences.
func WithSeed(seed uint64) Option { return func(c *config) { c.seed = seed } }

// WithDir keeps the data in dir, on disk, instead of in memory. A later Start
// with the same dir finds it again; two at the same time are refused.
func WithDir(dir string) Option { return func(c *config) { c.dir = dir } }

// WithFrozenClock stops the environment's time at t until Env.Advance moves
// it.
func WithFrozenClock(t time.Time) Option {
	return func(c *config) { c.clock = clock.NewFrozen(t) }
}

// WithInstance names the project and instance that the clients are connected
// to and that hold the DynamoDB tables. Default: tabletop and tabletop.
func WithInstance(project, instance string) Option {
	return func(c *config) { c.project, c.instance = project, instance }
}

// WithLogger receives panics of handlers and faults of the servers. Default:
// nothing is logged.
func WithLogger(l *slog.Logger) Option { return func(c *config) { c.logger = l } }

// WithMapping lays out the items of a DynamoDB table as m describes. It may be
// given more than once, for different tables.
func WithMapping(m *mapping.Mapping) Option {
	return func(c *config) { c.mappings = append(c.mappings, m) }
}

// WithMappingFile is WithMapping with the YAML file at path.
func WithMappingFile(path string) Option {
	return func(c *config) { c.mappingFiles = append(c.mappingFiles, path) }
}

// WithDynamoDBOptions sets the options of the DynamoDB server, except those
// that the environment sets itself (Conn, Project, Instance, Mappings and
// Now): for example, how long writes take to reach global indexes.
//
//	testkit.Start(t, testkit.WithDynamoDBOptions(facade.Options{IndexLag: time.Second}))
func WithDynamoDBOptions(o facade.Options) Option { return func(c *config) { c.dynamoDB = o } }

// WithAdminDelay keeps operations of Bigtable's administration under way for d, as
// in the service, where they take a while: what they make is CREATING until
// [Env.Advance] passes it. Default: they are done when their call returns.
func WithAdminDelay(d time.Duration) Option { return func(c *config) { c.adminDelay = d } }

// WithLoadCounts counts what requests do to which keys, for ListHotTablets, also in the
// environment's own instance: it shows which keys of a design are hot. Default: counted are
// requests to instances that the test creates.
func WithLoadCounts() Option { return func(c *config) { c.countLoad = true } }

// WithClonedMessages copies every message between the DynamoDB door and the
// Bigtable behind it, as a wire would. For tests of Tabletop itself: the
// default shares them.
func WithClonedMessages() Option { return func(c *config) { c.clone = true } }

// Start starts a private server that lives as long as the test tb. Any error
// fails tb at once.
func Start(tb testing.TB, opts ...Option) *Env {
	tb.Helper()
	c := config{project: "tabletop", instance: "tabletop"}
	for _, o := range opts {
		o(&c)
	}
	if c.clock == nil {
		c.clock = clock.New()
	}
	if c.logger == nil {
		c.logger = slog.New(slog.DiscardHandler)
	}
	for _, path := range c.mappingFiles {
		src, err := os.ReadFile(path)
		if err != nil {
			tb.Fatalf("testkit: mapping: %v", err)
		}
		m, err := mapping.Load(path, src, os.DirFS(filepath.Dir(path)))
		if err != nil {
			tb.Fatalf("testkit: mapping: %v", err)
		}
		c.mappings = append(c.mappings, m)
	}
	if c.buckets != "" {
		root, err := os.OpenRoot(c.buckets)
		if err != nil {
			tb.Fatalf("testkit: buckets: %v", err)
		}
		tb.Cleanup(func() { _ = root.Close() })
		c.dynamoDB.Buckets = root
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	e := &Env{tb: tb, config: c, ctx: ctx, cancel: cancel}
	e.Clusters = Clusters{e}
	e.lab = lab.New(e.labOptions())
	e.ddb = labdynamodb.New(e.lab, c.dynamoDBOptions())
	if err := e.lab.Open(); err != nil {
		cancel()
		tb.Fatalf("testkit: %v", err)
	}
	tb.Cleanup(e.close)
	if c.observed != nil {
		tb.Cleanup(e.holdFailed)
	}
	return e
}

// labOptions are those of the server that the configuration asks for.
func (e *Env) labOptions() lab.Options {
	c := e.config
	o := lab.Options{
		Clock: c.clock, Logger: c.logger, Project: c.project, Instance: c.instance, Seed: c.seed,
		Store: engine.Options{Dir: c.dir, EagerGC: c.gc == GCEager, BackupBytes: c.backupBytes},
		Bigtable: emu.Options{
			CloneInProcess: c.clone, Seed: c.seed, StreamWorkers: streamWorkers,
			AdminDelay: c.adminDelay, PartitionChurn: c.churn, CountLoad: c.countLoad, RandomRouting: c.randomRouting,
		},
	}
	if c.observed != nil {
		o.Bigtable.Observe, o.Bigtable.CountLoad = c.observed.Observe, true
	}
	if c.gc == GCBackground {
		o.GCInterval = gcInterval
	}
	if c.iam != nil {
		o.Bigtable.UnaryInterceptor, o.Bigtable.StreamInterceptor = e.enforce()
	}
	if c.restarts && c.dir == "" {
		o.Store.Dir, o.Store.FS, o.Store.NoSync = "/store", engine.NewMemFS(), true // nobody reads it after a crash
	}
	return o
}

// dynamoDBOptions are those of the DynamoDB server that the configuration asks for.
func (c *config) dynamoDBOptions() facade.Options {
	o := c.dynamoDB
	o.Mappings = c.mappings
	if c.observed != nil {
		o.Observe = c.observed.ObserveDynamoDB
	}
	return o
}
