package migrate

import (
	"context"
	"io"
	"time"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/migrate/internal/pace"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/lint"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// Common holds the options that several functions share. The zero value is ready to use.
type Common struct {
	// Project and Instance identify the Bigtable instance that holds the tables. Default:
	// "tabletop" for both. A [Side] of Diff has separate fields for them.
	Project, Instance string

	// AppProfile is the app profile that row calls use. Default: the default profile of
	// the instance.
	AppProfile string

	// Mappings are selected by the name of their DynamoDB table. A single mapping also
	// applies to the single table of a source, whatever its name. A table without a
	// mapping gets an inferred one. Diff and Reverse ignore this field, and take their
	// mappings from elsewhere.
	Mappings []*mapping.Mapping

	// Now is the clock for the ages of cells, and for the DynamoDB endpoint that runs
	// access patterns. The clock of a fixture overrides it. Default: ages are not
	// checked, as the report notes, and the endpoint uses its default clock.
	Now func() time.Time

	// MaxDifferences is the maximum number of failures that a report lists. All are
	// counted. Default: 100.
	MaxDifferences int

	// Stopwatch is a monotonic clock that measures the phases in the report. Default: the
	// report has no times.
	Stopwatch func() time.Duration

	// Progress, if set, is called periodically during long operations.
	Progress func(source.Progress)

	// TempDir is the folder for the hashes of large tables. Default: the temporary folder
	// of the system.
	TempDir string

	// Deadline is how long a call waits for an answer from Bigtable before it fails.
	// Default: a minute.
	Deadline time.Duration

	// Sleep waits before a call is retried after a transient error of Bigtable. It also
	// waits 2 s before the first load into a table that existed before, until DynamoDB
	// endpoints know of the load. Otherwise an endpoint that checked a moment earlier
	// could delete items that come back with incremental exports. Default: nothing waits.
	Sleep func(context.Context, time.Duration) error

	// Jitter returns a number in the range [0, 1). Half of it is the fraction by which a
	// wait before a retry is shortened, so that many loads do not retry together.
	// Default: 0.
	Jitter func() float64

	// Waiting is called before each Sleep, for example to show progress. Default: no
	// call.
	Waiting func(Wait)

	// MaxRowsPerSecond limits the rows per second that a load looks up and writes, or
	// that a verification reads back. Rows of changes since a full export count too;
	// retries do not count. It needs Stopwatch and Sleep. Default: no limit.
	MaxRowsPerSecond int

	knobs table.Knobs // of tests
}

// Wait describes a pending retry of a call, after a transient error of Bigtable or after
// no answer.
type Wait struct {
	Table string
	Call  string        // name of the RPC: "ReadRows", "MutateRows", "MutateRow"
	Err   error         // error that Bigtable returned
	Spent time.Duration // time already spent waiting for this call, since the last answer
	Next  time.Duration // duration of the wait that begins now
	Left  time.Duration // time left for waits before the operation gives up, including this one
}

// LoadOptions configures [Load] and [Prepare]. The zero value is ready to use.
type LoadOptions struct {
	Common

	// Target identifies the Bigtable behind the connection, for example as HOST:PORT. A
	// Checkpoint that belongs to another Target is rejected. Default: only Project and
	// Instance distinguish targets.
	Target string

	// Checkpoint is the name of the file in which the load keeps its progress. A load of
	// the same source and mapping to the same Target resumes from that file. If a table
	// lacks rows that the file records, the load warns and starts over. A complete load
	// removes the file. Default: no checkpoint.
	Checkpoint string

	// Part selects the data files of the source that this load writes. The source must be
	// a full export to S3, with given mappings. Checkpoint is then a folder that all
	// parts share, in which each part keeps its progress and records its end. Parts run
	// in any order, or at the same time. A killed part resumes from its last progress,
	// and a complete part does nothing. [FinishLoad] ends the load, which counts as
	// unfinished until then. FinishLoad also finds items of different parts that meet in
	// one cell, while a load without parts rejects the whole source for them. Default:
	// load the whole source at once.
	Part source.Part

	// Tablets is the initial number of tablets of each table that the load creates, so
	// that several servers share it. The table is split at row keys of the data, into
	// tablets of about equal size. Existing tables stay as they are. Default: 1; Bigtable
	// splits tables as they grow.
	Tablets int

	// DeadLetter receives the items that cannot be loaded, as one JSON object per line
	// with position and reason. The other items are loaded, and each dead letter is a
	// difference (NotLoaded). Default: the first such item rejects the whole source, and
	// nothing is written. A file that is damaged as a whole is always rejected.
	DeadLetter io.Writer

	// Remap allows a load into a table in which an earlier load, with another mapping,
	// left cells of the same items. Cells that this mapping does not write stay, and the
	// report warns of them. Default: such cells are a [source.Error] (MappingRefused),
	// and nothing is written.
	Remap bool

	// Mix allows a load into a table that was loaded from another source: from a later
	// full export or, if this source has no time, from any export. The table then has the
	// items of both sources. An item in both sources also keeps the attributes that only
	// the other source has. A later load of the first source restores its own values. The
	// report warns of the mixture. Default: such a table is a [source.Error]
	// (TargetNewer), and nothing is written.
	Mix bool

	// KeepWrites allows a load into a table to which a DynamoDB endpoint has written
	// since the last load. The items that the endpoint wrote stay as they are, in indexes
	// too, but the items that it deleted come back. The report warns of this. Default:
	// such a table is a [source.Error] (TargetWritten), and nothing is written. A source
	// with incremental exports is rejected in either case.
	KeepWrites bool

	// Lint, if set, applies the rules of package lint to the items and their rows during
	// the load.
	Lint *LintRules
}

// PlanOptions configures [MakePlan]. The zero value is ready to use. Options for reaching
// a Bigtable are ignored.
type PlanOptions struct{ Common }

// VerifyOptions configures [Verify] and [UpdateGoldens]. The zero value is ready to use.
type VerifyOptions struct {
	Common

	// Stored means that the rows are already written, and that Verify only reads them.
	// Default: Verify loads the rows into tables that hold no other rows.
	Stored bool

	// Followed means that [Follow] has changed the stored rows since the time AsOf of the
	// source. An item that differs is then no difference if its last change is newer: the
	// report counts it in report.Live. An item that the target lacks must have been
	// deleted after that time. Entries of indexes are compared with the stored items.
	// Only the times of cells that the mapping derives from items are compared, so
	// Followed excludes Timestamps, and also Part. It needs Now and Sleep.
	Followed bool
	// AsOf is the time of the source's items. Default: the end of its exports.
	AsOf time.Time

	// Part selects a part of the work, like LoadOptions.Part: Verify lays out the items
	// in the part's data files, and reads the part's range of the stored rows. Part
	// requires Stored, and excludes Lint. [FinishVerify] combines the results of all
	// parts.
	Part source.Part
	// Parts is the folder in which parts keep their results.
	Parts string

	// AllowEmpty accepts a source without items, although verifying it proves nothing.
	// Default: such a source is a [source.Error] (SourceEmpty), so that an empty export
	// does not pass by mistake.
	AllowEmpty bool

	// Timestamps selects how the times of cells are compared. Default: exact.
	Timestamps fixtures.TimestampPolicy

	// LenientSets accepts an empty cell for a member of a set in Stored rows: the mapping
	// writes a zero byte, but other loaders may not. A fixture can also set it in its
	// tolerances. Default: an empty cell is a difference.
	LenientSets bool

	// ViewWait is how long Verify waits for the materialized views of indexes (`as: view`)
	// to show the rows of their tables, if the tables have the expected rows: Bigtable
	// updates views with a delay. A view that still differs is a difference. It needs
	// Sleep. Default: no wait.
	ViewWait time.Duration

	// DeadLetter receives the items that cannot be loaded, like LoadOptions.DeadLetter.
	// Default: items of the kinds Unmatched, KeyCollision and LimitExceeded are failures,
	// and the other items are verified. Items of any other kind reject the whole source.
	DeadLetter io.Writer

	// Lint configures the rules of package lint. Default: all rules apply to a fixture,
	// but findings are not differences, and a source is not linted. If Stored is set,
	// rules about rows check the stored rows instead of those that the mapping produces.
	Lint *LintRules

	// RunGC runs garbage collection on the Bigtable as of the clock Now. If it is set,
	// Verify checks the cells that remain. Default: that check is skipped.
	RunGC func(context.Context) error

	// Restart closes the Bigtable, opens it again over the same store, and returns a new
	// connection. The old connection is not used afterwards. If Restart is set, Verify
	// ends with a check that every row reads back the same. Default: that check is
	// skipped.
	Restart func(context.Context) (grpc.ClientConnInterface, error)

	// Differential is the number of items to draw at random from each mapping, with the
	// seed Seed. They run through the mapping, the DynamoDB endpoint and the loader, in
	// tables named _differential that are deleted afterwards. The same number of requests
	// on such items is compared with a naive DynamoDB: writes with conditions, updates,
	// batches, transactions, and queries and scans of tables and indexes. If RunGC is
	// set, time passes between requests, so that items expire and garbage is collected. A
	// failing case is shrunk, and saved as a fixture directory in the folder Regress if
	// that is set. Default: none. Differential cannot be combined with Stored.
	Differential int
	Seed         uint64
	Regress      string
}

// DiffOptions configures [Diff]. The zero value is ready to use.
type DiffOptions struct{ Common }

// ReverseOptions configures [Reverse]. The zero value is ready to use.
type ReverseOptions struct {
	Common

	// ExportTime is the time of the export. A load of the export gives this time to cells
	// that have no time in the data. Default: the time of the last load, from
	// _migration_schema. Reverse returns an error if _migration_schema has no time
	// either.
	ExportTime time.Time

	// Partial exports the rows that the mapping can read, and lists the others in the
	// warnings. Default: a row that the mapping cannot read is an error, and nothing is
	// exported.
	Partial bool

	fileBytes int // s3export.DataFileBytes, except in tests
}

// LintOptions configures [Lint]. The zero value is ready to use. Options for reaching a
// Bigtable are ignored.
type LintOptions struct {
	Common
	LintRules
}

// LintRules configures the rules of package lint.
type LintRules struct {
	// Config takes precedence over the settings in fixtures and mapping files. Default:
	// none.
	Config *lint.Config
	// FailOn turns findings of this level or a worse one into differences (LintError).
	// Default: findings are not differences.
	FailOn lint.Level
}

// options converts the options for the inner packages.
func (c Common) options() table.Options {
	o := table.Options{
		Project: c.Project, Instance: c.Instance, AppProfile: c.AppProfile, Mappings: c.Mappings, Now: c.Now, MaxDifferences: c.MaxDifferences,
		Stopwatch: c.Stopwatch, Progress: c.Progress, TempDir: c.TempDir, Deadline: c.Deadline, Sleep: c.Sleep, Jitter: c.Jitter, Knobs: c.knobs,
		Pace: pace.New(c.MaxRowsPerSecond, c.Stopwatch, c.Sleep),
	}
	if c.Waiting != nil {
		o.Waiting = func(w btclient.Wait) { c.Waiting(Wait(w)) }
	}
	return o
}

func (o LoadOptions) options() table.Options {
	x := o.Common.options()
	x.Target, x.Checkpoint, x.DeadLetter, x.Remap, x.Mix, x.Warn = o.Target, o.Checkpoint, o.DeadLetter, o.Remap, o.Mix, true
	x.KeepWrites = o.KeepWrites
	x.Tablets = o.Tablets
	if o.Part.Of > 0 {
		x.Share, x.Parts, x.Checkpoint = o.Part, o.Checkpoint, "" // a file of it belongs to the part
	}
	return x
}

func (o VerifyOptions) options() table.Options {
	x := o.Common.options()
	x.AllowEmpty, x.Timestamps, x.DeadLetter = o.AllowEmpty, o.Timestamps, o.DeadLetter
	x.Share, x.Parts, x.ViewWait = o.Part, o.Parts, o.ViewWait
	x.Expires = !o.Followed // the comparison excuses them
	x.RunGC, x.Restart, x.Differential, x.Seed, x.Regress = o.RunGC, o.Restart, o.Differential, o.Seed, o.Regress
	return x
}
