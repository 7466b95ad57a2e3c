package testkit

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/tabletop-emu/tabletop/control"
	labdynamodb "github.com/tabletop-emu/tabletop/control/lab/dynamodb"
	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/seed"
	"github.com/tabletop-emu/tabletop/testkit/btkit"
	"github.com/tabletop-emu/tabletop/testkit/internal/server"
)

// Option configures the Env that Start returns.
type Option func(*config)

type config struct {
	bigtable     server.Config
	mappings     []*mapping.Mapping
	mappingFiles []string
	seeds        []string
	dynamoDB     facade.Options
	update       *migrate.UpdateMode // nil without UpdateFlag
	buckets      string              // "" without WithBuckets
	observed     *control.Requests   // nil without WithConsole
}

// WithMapping stores the items of a DynamoDB table in Bigtable as the mapping m describes. It may
// be given more than once, for different tables. The table exists from the start, so CreateTable
// fails with a ResourceInUseException.
func WithMapping(m *mapping.Mapping) Option {
	return func(c *config) { c.mappings = append(c.mappings, m) }
}

// WithMappingFile is like WithMapping, with the mapping in the YAML file at path.
func WithMappingFile(path string) Option {
	return func(c *config) { c.mappingFiles = append(c.mappingFiles, path) }
}

// WithSeedFiles creates the DynamoDB tables of files and folders, with their items, at the start and after
// [btkit.Env.Reset]: descriptions of tables, JSON lines, exports, and the other forms of
// `tabletop serve --seed`. A fixture folder also brings its mapping.
func WithSeedFiles(paths ...string) Option {
	return func(c *config) { c.seeds = append(c.seeds, paths...) }
}

// WithDynamoDBOptions sets the options of the DynamoDB server, such as the lag of global
// indexes. The environment itself sets Conn, Project, Instance, Mappings and Now.
//
//	testkit.Start(t, testkit.WithDynamoDBOptions(facade.Options{IndexLag: time.Second}))
func WithDynamoDBOptions(o facade.Options) Option { return func(c *config) { c.dynamoDB = o } }

// WithClonedMessages copies every message between the DynamoDB endpoint and the Bigtable behind it,
// as a network connection would. It is for tests of Tabletop itself. Default: messages are shared.
func WithClonedMessages() Option {
	return func(c *config) { c.bigtable.Lab.Bigtable.CloneInProcess = true }
}

// Start starts a private server that lives as long as the test tb. Any error
// fails tb at once.
func Start(tb testing.TB, opts ...Option) *Env {
	tb.Helper()
	var c config
	for _, o := range opts {
		o(&c)
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
	seeds, err := seed.Open(c.seeds...)
	if err != nil {
		tb.Fatalf("testkit: seed: %v", err)
	}
	c.dynamoDB.Mappings = append(c.mappings, seeds.Mappings...)
	if c.buckets != "" {
		root, err := os.OpenRoot(c.buckets)
		if err != nil {
			tb.Fatalf("testkit: buckets: %v", err)
		}
		tb.Cleanup(func() { _ = root.Close() })
		c.dynamoDB.Buckets = root
	}
	if c.observed != nil {
		c.bigtable.Lab.Bigtable.Observe, c.bigtable.Lab.Bigtable.CountLoad = c.observed.Observe, true
		c.dynamoDB.Observe = c.observed.ObserveDynamoDB
	}
	s := server.Start(tb, c.bigtable)
	e := &Env{Env: btkit.Over(s), server: s, ddb: labdynamodb.New(s.Lab(), c.dynamoDB), observed: c.observed}
	tb.Cleanup(e.close)
	if len(c.seeds) > 0 {
		e.fill(tb, seeds)
	}
	if len(c.seeds)+len(c.dynamoDB.Mappings) > 0 {
		e.open(tb) // Dump and OnTable know the names of these tables before the first client
	}
	tb.Cleanup(e.pauseFailed)
	return e
}

// fill fills the tables of the seeds, now and after each reset.
func (e *Env) fill(tb testing.TB, seeds *seed.Seed) {
	tb.Helper()
	fill := func(ctx context.Context) error {
		return e.ddb.Prepare(ctx, func(ctx context.Context, server *facade.Server) error {
			_, err := seeds.Fill(ctx, server)
			return err
		})
	}
	if err := fill(e.server.Context()); err != nil {
		tb.Fatalf("testkit: seed: %v", err)
	}
	e.server.Lab().FillAfterReset(fill)
}
