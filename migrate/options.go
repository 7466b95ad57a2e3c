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
	// Project and Instance name where the tables live. Default: "tabletop"
	// for both. A [Side] of Diff has its own.
	Project, Instance string

	// AppProfile is the app profile that row calls use. Default: the default profile of
	// the instance.
	AppProfile string

	// Mappings are the mappings, selected by the name of their DynamoDB table; a single
	// mapping also serves the single table of a source. A table without a mapping gets an
	// inferred one. Diff and Reverse take their mappings elsewhere.
	Mappings []*mapping.Mapping

	// Now is the clock for the ages of cells, and the clock of the DynamoDB endpoint that runs
	// access patterns. The clock of a fixture overrides it. Default: ages are not checked (the
	// report says so), and the endpoint uses its default.
	Now func() time.Time

	// MaxDifferences is how many failures a report lists; all are counted. Default: 100.
	MaxDifferences int

	// Stopwatch is a monotonic clock that measures the phases in the report. Default: the
	// report has no times.
	Stopwatch func() time.Duration

	// Progress, if set, is called from time to time during long work.
	Progress func(source.Progress)

	// TempDir is the folder for the hashes of large tables. Default: the temporary folder
	// of the system.
	TempDir string

	// Deadline is the longest time without an answer from Bigtable; then the call ends with an
	// error. Default: a minute.
	Deadline time.Duration

	// Sleep waits before a retry of a call that Bigtable answered with a transient error.
	// The first load of a table that existed before also waits 2 s, until DynamoDB
	// endpoints know of the load. Otherwise an endpoint that looked a moment before could
	// delete items that come back with incremental exports. Default: nothing waits.
	Sleep func(context.Context, time.Duration) error

	// Jitter returns a number from 0 up to 1. Half of it is the share by which a wait before
	// a retry is shortened, so that many loads do not retry together. Default: 0.
	Jitter func() float64

	// Waiting is called before each Sleep, for example to show progress. Default: no call.
	Waiting func(Wait)

	// MaxRowsPerSecond limits the rows a second that a load looks up and writes, or that a
	// verification reads back, with those of changes since a full export. It needs Stopwatch and
	// Sleep. Retries do not count. Default: no limit.
	MaxRowsPerSecond int

	knobs table.Knobs // of tests
}

// Wait announces the retry of a call after a transient error of Bigtable, or after no
// answer.
type Wait struct {
	Table string
	Call  string        // "ReadRows", "MutateRows", "MutateRow"
	Err   error         // the answer of Bigtable
	Spent time.Duration // on earlier waits for this call, since the last answer
	Next  time.Duration // the wait that begins
	Left  time.Duration // for waits until the work ends, including this one
}

// LoadOptions configure [Load] and [Prepare]. The zero value is ready to use.
type LoadOptions struct {
	Common

	// Target names the Bigtable behind the connection, such as its HOST:PORT. A Checkpoint
	// of a load to another Target is rejected. Default: only Project and Instance
	// distinguish targets.
	Target string

	// Checkpoint is a file in which the load keeps its progress. A load of the same source
	// and mapping to the same Target resumes from that file. If a table lacks the rows, it
	// warns and starts over. A complete load removes the file. Default: none.
	Checkpoint string

	// Part selects the data files of the source that this load writes. The source must be a
	// full export to S3 with given mappings. Checkpoint is then a folder that all parts
	// share: each keeps its progress there, and whether it is complete. Parts run in any
	// order, or at once. A killed part resumes where it was, and a complete one does nothing.
	// [FinishLoad] ends the load, which counts as unfinished until then. It also finds items
	// of several parts that meet in one cell; a load in one go rejects the whole source for
	// them. Default: all of the source, in one go.
	Part source.Part

	// Tablets is the number of tablets of a table that the load creates, so that several
	// servers share it. The table is split at row keys of the data, into tablets of about
	// equal size. Existing tables stay as they are. Default: 1; Bigtable splits tables as
	// they grow.
	Tablets int

	// DeadLetter receives the items that cannot be loaded, one JSON object per line, with
	// position and reason. The rest is loaded, and each dead letter is a difference
	// (NotLoaded). Default: the first such item rejects the whole source, and nothing is
	// written. A file that is damaged as a whole is always rejected.
	DeadLetter io.Writer

	// Remap lets the load write to a table in which an earlier load left cells of the same
	// items by another mapping. Cells that this mapping does not write stay, and the
	// report warns of them. Default: such cells are a [source.Error] (MappingRefused), and
	// nothing is written.
	Remap bool

	// Mix lets the load write to a table that was loaded from another source: with a later full
	// export, or with a source without a time over an export. The table then has the items of
	// both sources. An item of both also keeps the attributes that only the other source has. A
	// later load of the first source restores its own values. The report warns of it. Default:
	// such a table is a [source.Error] (TargetNewer), and nothing is written.
	Mix bool

	// KeepWrites lets the load write to a table in which a DynamoDB endpoint has written
	// since the last load. The items that the endpoint wrote stay as they are, in indexes
	// too; those that it deleted come back. The report warns of it. Default: that is a
	// [source.Error] (TargetWritten), and nothing is written. A source with incremental
	// exports is refused either way.
	KeepWrites bool

	// Lint, if set, applies the rules of package lint to the items and their rows during the
	// load.
	Lint *LintRules
}

// PlanOptions configure [MakePlan]. The zero value is ready to use. Options that say how
// to reach a Bigtable are ignored.
type PlanOptions struct{ Common }

// VerifyOptions configure [Verify] and [UpdateGoldens]. The zero value is ready to
// use.
type VerifyOptions struct {
	Common

	// Stored means that the rows are already written: Verify only reads them. Default: Verify
	// loads the rows, into tables that hold no other rows.
	Stored bool

	// Part selects a part of the work, like LoadOptions.Part: Verify lays out the items of its
	// data files, and reads its range of the stored rows. It requires Stored, and does not
	// lint. [FinishVerify] combines the results of all parts.
	Part source.Part
	// Parts is the folder in which parts keep their results.
	Parts string

	// AllowEmpty accepts a source without items, although it proves nothing. Default: such a
	// source is a [source.Error] (SourceEmpty), so that an empty export does not pass by
	// mistake.
	AllowEmpty bool

	// Timestamps selects how the times of cells are compared. Default: exact.
	Timestamps fixtures.TimestampPolicy

	// LenientSets accepts an empty cell for a member of a set if the rows are Stored: the
	// mapping writes a zero byte, but other loaders may not. A fixture can also set it in
	// its tolerances. Default: an empty cell is a difference.
	LenientSets bool

	// DeadLetter receives the items that cannot be loaded, as LoadOptions.DeadLetter does.
	// Default: items of the kinds Unmatched, KeyCollision and LimitExceeded are failures, and
	// the rest is verified; others reject the whole source.
	DeadLetter io.Writer

	// Lint configures the rules of package lint. Default: all rules apply to a fixture, and
	// findings are not differences; a source is not linted. With Stored, rules about rows use
	// the stored rows instead of those of the mapping.
	Lint *LintRules

	// RunGC runs garbage collection on the Bigtable, by the clock Now. With it, verification
	// checks the remaining cells. Default: that check is skipped.
	RunGC func(context.Context) error

	// Restart closes the Bigtable, opens it again over the same store, and returns a new
	// connection; the old one is not used any more. Verification then ends with a check
	// that every row reads back the same. Default: that check is skipped.
	Restart func(context.Context) (grpc.ClientConnInterface, error)

	// Differential is the number of items to draw from each mapping, by Seed. They run
	// through the mapping, the DynamoDB endpoint and the loader, in tables named
	// _differential that are deleted afterwards. As many requests on such items are
	// compared with a naive DynamoDB: writes with conditions, updates, batches,
	// transactions, queries and scans of tables and indexes. With RunGC time passes
	// between them, so that items expire and garbage is collected. A failing case is
	// shrunk, and saved as a fixture directory in the folder Regress if set. Default:
	// none. Stored rows do not allow it.
	Differential int
	Seed         uint64
	Regress      string
}

// DiffOptions configure [Diff]. The zero value is ready to use.
type DiffOptions struct{ Common }

// ReverseOptions configure [Reverse]. The zero value is ready to use.
type ReverseOptions struct {
	Common

	// ExportTime is the time of the export. A load of the export gives it to cells without
	// a time of their own. Default: the time of the last load, from _migration_schema; it
	// is an error if that has no time.
	ExportTime time.Time

	// Partial exports the rows that the mapping can read, and lists the others in the
	// warnings. Default: a row that it cannot read is an error, and nothing is exported.
	Partial bool

	fileBytes int // s3export.DataFileBytes, except in tests
}

// LintOptions configure [Lint]. The zero value is ready to use. Options that say how to
// reach a Bigtable are ignored.
type LintOptions struct {
	Common
	LintRules
}

// LintRules configure the rules of package lint.
type LintRules struct {
	// Config takes precedence over the settings in a fixture and in mapping files.
	// Default: none.
	Config *lint.Config
	// FailOn makes findings of this level and of worse levels differences (LintError).
	// Default: findings are not differences.
	FailOn lint.Level
}

// options converts them for the inner packages.
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
	x.AllowEmpty, x.Timestamps, x.DeadLetter, x.Expires = o.AllowEmpty, o.Timestamps, o.DeadLetter, true
	x.Share, x.Parts = o.Part, o.Parts
	x.RunGC, x.Restart, x.Differential, x.Seed, x.Regress = o.RunGC, o.Restart, o.Differential, o.Seed, o.Regress
	return x
}
