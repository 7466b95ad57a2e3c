package table

import (
	"cmp"
	"context"
	"io"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/migrate/infer"
	"github.com/tabletop-emu/tabletop/migrate/internal/pace"
	"github.com/tabletop-emu/tabletop/migrate/internal/parts"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// FallbackTime is the timestamp of imported cells if neither the mapping nor the input
// gives a time. It is a constant instead of the current time, so that the same input
// gives the same cells.
var FallbackTime = time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC)

// Options holds the options of all functions of package migrate. The fields are
// documented there, in the options of each function.
type Options struct {
	Project, Instance, Target string
	AppProfile                string
	Mappings                  []*mapping.Mapping
	MaxDifferences            int
	AllowEmpty                bool
	ViewWait                  time.Duration // how long a verification waits for a view that lags
	Timestamps                fixtures.TimestampPolicy
	LenientSets               bool   // see the tolerances in fixture.yaml
	Fixture                   string // name of the fixture, for the report

	Progress  func(source.Progress)
	TempDir   string
	Now       func() time.Time
	Stopwatch func() time.Duration
	Deadline  time.Duration
	Sleep     func(context.Context, time.Duration) error
	Jitter    func() float64
	Waiting   func(btclient.Wait)

	DeadLetter io.Writer
	Checkpoint string
	Share      source.Part // part of the source to process; zero means all of it
	Parts      string      // folder that holds the progress of the parts
	Tablets    int         // number of tablets of a table that the load creates
	Pace       *pace.Pace  // limits the rows written or read; nil sets no limit
	Remap      bool
	Mix        bool // allow loading over another source
	KeepWrites bool // allow loading over later writes of a DynamoDB endpoint
	RunGC      func(context.Context) error
	Restart    func(context.Context) (grpc.ClientConnInterface, error)

	Differential int
	Seed         uint64
	Regress      string

	Judges bool // report items that cannot be laid out as failures, as a verification does
	Warn   bool // warn of losses by garbage collection, since no comparison follows
	// Expires excludes from a verification the items whose time to live is over. Garbage
	// collection may already have deleted them.
	Expires bool

	Knobs
}

// Defaults of Knobs.
const (
	// maxWindowBytes bounds the memory for sorting when tables differ. Equal tables are not
	// sorted: see extsort.Bag.
	maxWindowBytes = 64 << 20
	// maxPartBytes is the size above which a row is wide, and the size of its parts.
	maxPartBytes = 1 << 20
	// maxBatchBytes is well below Bigtable's limit for a request (256 MB).
	maxBatchBytes   = 1 << 20
	checkpointEvery = 8 << 20
	// maxOracleItems bounds the items, which are put one by one.
	maxOracleItems = 10_000
)

// Knobs holds options that only tests set.
type Knobs struct {
	Held            int // bytes of items that are kept decoded; default source.MaxHeldBytes
	Window          int // bytes for sorting; default maxWindowBytes
	Part            int // bytes of a part of a wide row; default maxPartBytes
	Batch           int // bytes of a batch of mutations; default maxBatchBytes
	CheckpointBytes int // bytes after which a checkpoint is saved; default checkpointEvery
	OracleItems     int // the most items of an oracle; default maxOracleItems

	// Inverse, if set, replaces Mapping.Items in differential runs.
	Inverse func(*layout.Mapping, layout.Row) ([]attr.Item, error)
}

// folder returns the folder of the parts; the run sets its identity later.
func (o Options) folder() parts.Folder {
	verb := parts.Verifying
	if o.Warn { // only loads warn
		verb = parts.Loading
	}
	return parts.Folder{Dir: o.Parts, Verb: verb, MaxDifferences: o.MaxDifferences}
}

// defaultName is the default project and instance.
const defaultName = "tabletop"

// Exact reports whether the comparison must be exact, without any tolerance.
func (o Options) Exact() bool { return o.Tolerance() == "" }

// Tolerance returns the name of the comparison's tolerance, or "" if it has none.
func (o Options) Tolerance() string {
	var parts []string
	if o.Timestamps != "" && o.Timestamps != fixtures.TimestampsExact {
		parts = append(parts, "timestamps "+string(o.Timestamps))
	}
	if o.LenientSets {
		parts = append(parts, "lenient sets")
	}
	return strings.Join(parts, ", ")
}

// Inference returns the options of an inference for a caller that lays out all items, or
// that needs only the key.
func (o Options) Inference() infer.Options {
	return infer.Options{Progress: o.Progress, TempDir: o.TempDir, OpenJoiner: true}
}

// Normalized returns the options with defaults filled in.
func (o Options) Normalized() Options {
	o.Project, o.Instance = cmp.Or(o.Project, defaultName), cmp.Or(o.Instance, defaultName)
	o.Held, o.Window, o.Part = cmp.Or(o.Held, source.MaxHeldBytes), cmp.Or(o.Window, maxWindowBytes), cmp.Or(o.Part, maxPartBytes)
	o.Batch, o.CheckpointBytes = cmp.Or(o.Batch, maxBatchBytes), cmp.Or(o.CheckpointBytes, checkpointEvery)
	o.OracleItems = cmp.Or(o.OracleItems, maxOracleItems)
	o.MaxDifferences = cmp.Or(o.MaxDifferences, 100)
	if o.Progress == nil {
		o.Progress = func(source.Progress) {}
	}
	return o
}
