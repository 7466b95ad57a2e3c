package run

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/migrate/infer"
	"github.com/tabletop-emu/tabletop/migrate/lint"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// FallbackTime is the timestamp of imported cells where neither the mapping
// nor the input gives a time: never the current time, so that the same input
// gives the same cells.
var FallbackTime = time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC)

// Options configure Load, VerifySource, Compare and Verify. The zero value is
// ready to use.
type Options struct {
	// Project and Instance name where the tables live. Default: "tabletop"
	// for both.
	Project, Instance string

	// Target names the Bigtable behind the connection, such as its HOST:PORT, for
	// the Checkpoint: that of a load to another one is refused. Default: Project and
	// Instance alone tell one from another.
	Target string

	// Mappings are the layouts, found by the name of their DynamoDB table; a
	// single one also serves the single table of a source. A table without
	// one gets an inferred mapping.
	Mappings []*mapping.Mapping

	// MaxDifferences is how many failures a report lists. Default: 100.
	MaxDifferences int

	// AllowEmpty lets Verify, VerifySource and Compare take a source without items,
	// of which they can show nothing. Default: it is a [source.Error] (SourceEmpty),
	// so that an export that came out empty does not pass.
	AllowEmpty bool

	// Timestamps is how a comparison takes the times of cells. Default: exact.
	Timestamps fixtures.TimestampPolicy

	// Progress is called now and then during long work, if it is set.
	Progress func(source.Progress)

	// TempDir is where the hashes of large tables go. Default: the system's.
	TempDir string

	// DeadLetter receives what cannot be loaded, one JSON object a line: where it
	// stands in the source, why it was refused, and the item. The rest is
	// loaded, and each dead letter is a difference (NotLoaded). Default: the
	// first such item refuses the whole source, and nothing is written; but what
	// Verify, VerifySource and Compare find of the kinds Unmatched, KeyCollision and
	// LimitExceeded is a failure then, and the rest is verified. A file that is
	// damaged as a whole is refused either way.
	DeadLetter io.Writer

	// Checkpoint is a file in which Load keeps how far it has come. A load of the
	// same source and mapping to the same Target that finds it goes on from there,
	// or, with a warning, begins anew where a table has not the rows; one that is
	// complete removes it. Default: none.
	Checkpoint string

	// Remap lets Load write to a table in which another mapping, that of an earlier
	// load, left cells of the same items that this one does not write: they stay, and
	// the report warns of them. Default: that is a [source.Error] (MappingRefused), and
	// nothing is written.
	Remap bool

	// Deadline is how long the Bigtable may go without an answer; then the call ends
	// with an error that names it. Default: a minute.
	Deadline time.Duration

	// Sleep waits before a call that Bigtable answered with a passing error is
	// sent again. Default: it is sent again at once.
	Sleep func(context.Context, time.Duration) error

	// Waiting is called before each Sleep, so that a person can be told. Default: it
	// is not.
	Waiting func(Wait)

	// Stopwatch is a monotonic clock, by which the report tells how long each
	// phase took. Default: it does not.
	Stopwatch func() time.Duration

	// Now is the clock that the ages of cells are judged by, and that of the
	// DynamoDB door that access patterns are run through. Default: ages are not
	// judged (the report says so), and the door's default. The clock of a fixture
	// goes before it.
	Now func() time.Time

	// RunGC runs garbage collection on the Bigtable, by the same clock. With
	// it, verification checks what is left. Default: that check is skipped.
	RunGC func(context.Context) error

	// Restart closes the Bigtable, opens it again over the same store, and returns
	// a connection to it; the one before is not used any more. With it, verification
	// ends by checking that every row is read back the same. Default: that check is
	// skipped.
	Restart func(context.Context) (grpc.ClientConnInterface, error)

	// Lint says how the rules of package lint are applied. Default: Verify
	// applies all of them, and no finding is a difference.
	Lint LintOptions

	// Differential is how many items Verify and VerifySource draw from each
	// mapping, by Seed, and run through the lens, the DynamoDB door and the loader,
	// in tables named _differential that are deleted afterwards; as many requests of
	// such items (writes with conditions, updates, batches, transactions, queries
	// and scans of tables and indexes) are compared with a naive DynamoDB; with RunGC
	// time passes between them, so that items expire and garbage is collected. What
	// fails is shrunk, and saved as a fixture directory in the folder Regress, if
	// there is one. Default: none.
	Differential int
	Seed         uint64
	Regress      string

	// Rand and Logger are handed to the DynamoDB door. Default: its defaults.
	Rand   io.Reader
	Logger *slog.Logger

	// Inverse stands for Mapping.Items in differential runs; nil but in tests.
	Inverse func(*layout.Mapping, layout.Row) ([]attr.Item, error)

	LenientSets bool // see tolerances

	// Judges says that items which cannot be laid out are failures: of a verification.
	Judges  bool
	Fixture string // name of the fixture that is verified

	Held            int  // bytes of items that are held decoded; maxHeldBytes but in tests
	Window          int  // bytes that a comparison holds; maxWindowBytes but in tests
	Part            int  // bytes of a part of a wide row; maxPartBytes but in tests
	Batch           int  // bytes of a batch of mutations; maxBatchBytes but in tests
	CheckpointBytes int  // bytes after which a checkpoint is saved; checkpointEvery but in tests
	Warn            bool // of what garbage collection would take, which no comparison will tell
}

// Wait says that a call is going to be sent again, since Bigtable answered with a
// passing error, or not at all.
type Wait struct {
	Table string
	Call  string        // "ReadRows", "MutateRows", "MutateRow"
	Err   error         // what Bigtable answered
	Spent time.Duration // on waits for this call before, since something came
	Next  time.Duration // the wait that begins
	Left  time.Duration // of all waits that may come, this one included; then the work ends
}

// DefaultName is the project and the instance where none are given.
const DefaultName = "tabletop"

// Exact reports whether a comparison tolerates nothing.
func (o Options) Exact() bool { return o.Tolerance() == "" }

// Tolerance says what a comparison lets pass, "" for nothing.
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

// Inference are the options of inference on the way, by a caller that lays all items
// out, or needs the key alone.
func (o Options) Inference() infer.Options {
	return infer.Options{Progress: o.Progress, TempDir: o.TempDir, OpenJoiner: true}
}

// Normalized are the options with their defaults.
func (o Options) Normalized() Options {
	o.Project, o.Instance = cmp.Or(o.Project, DefaultName), cmp.Or(o.Instance, DefaultName)
	if o.Held == 0 {
		o.Held = source.MaxHeldBytes
	}
	if o.Window == 0 {
		o.Window = maxWindowBytes
	}
	if o.Part == 0 {
		o.Part = maxPartBytes
	}
	if o.CheckpointBytes == 0 {
		o.CheckpointBytes = checkpointEvery
	}
	if o.Batch == 0 {
		o.Batch = maxBatchBytes
	}
	if o.MaxDifferences == 0 {
		o.MaxDifferences = 100
	}
	if o.Progress == nil {
		o.Progress = func(source.Progress) {}
	}
	return o
}

// LintOptions say how the rules of package lint are applied.
type LintOptions struct {
	// Config goes before what a fixture and the mapping files say. Default: none.
	Config *lint.Config
	// FailOn makes findings of this level, and of worse ones, differences
	// (LintError). Default: none is.
	FailOn lint.Level
	// Run makes VerifySource, Compare and Load lint what they read; Verify and
	// VerifyAgainst always do. Compare and VerifyAgainst also lint the stored rows.
	Run bool
}
