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

// Common are the options that verbs share. The zero value is ready to use.
type Common struct {
	// Project and Instance name where the tables live. Default: "tabletop"
	// for both. A [Side] of Diff has its own.
	Project, Instance string

	// AppProfile is the app profile of the instance that calls on rows go by. Default:
	// the instance's own.
	AppProfile string

	// Mappings are the layouts, found by the name of their DynamoDB table; a
	// single one also serves the single table of a source. A table without
	// one gets an inferred mapping. Diff and Reverse are given theirs otherwise.
	Mappings []*mapping.Mapping

	// Now is the clock that the ages of cells are judged by, and that of the
	// DynamoDB door that access patterns are run through. Default: ages are not
	// judged (the report says so), and the door's default. The clock of a fixture
	// takes precedence over it.
	Now func() time.Time

	// MaxDifferences is how many failures a report lists; all are counted. Default: 100.
	MaxDifferences int

	// Stopwatch is a monotonic clock, by which the report tells how long each
	// phase took. Default: it does not.
	Stopwatch func() time.Duration

	// Progress is called now and then during long work, if it is set.
	Progress func(source.Progress)

	// TempDir is where the hashes of large tables go. Default: the system's.
	TempDir string

	// Deadline is how long the Bigtable may go without an answer; then the call ends
	// with an error that names it. Default: a minute.
	Deadline time.Duration

	// Sleep waits before a call that Bigtable answered with a transient error is
	// sent again, and in the first load of a table that was there before, 2 s, until
	// DynamoDB doors know of the load: one may otherwise have looked a moment before, and
	// what it deletes would come back with incremental exports. Default: nothing waits.
	Sleep func(context.Context, time.Duration) error

	// Jitter returns a number from 0 up to 1. Half of it is the share by which a wait before
	// a retry is shortened, so that many loads do not retry together. Default: 0.
	Jitter func() float64

	// Waiting is called before each Sleep, for example to show progress. Default: no call.
	Waiting func(Wait)

	// MaxRowsPerSecond bounds how many rows a load looks up and writes, or a verification
	// reads back, in a second, by Stopwatch and Sleep, which it needs. What is sent again,
	// and what an incremental export changes, is not counted. Default: no bound.
	MaxRowsPerSecond int

	knobs table.Knobs // of tests
}

// Wait says that a call is going to be sent again, since Bigtable answered with a
// transient error, or not at all.
type Wait struct {
	Table string
	Call  string        // "ReadRows", "MutateRows", "MutateRow"
	Err   error         // what Bigtable answered
	Spent time.Duration // on waits for this call before, since something came
	Next  time.Duration // the wait that begins
	Left  time.Duration // of all waits that may come, this one included; then the work ends
}

// LoadOptions configure [Load] and [Prepare]. The zero value is ready to use.
type LoadOptions struct {
	Common

	// Target names the Bigtable behind the connection, such as its HOST:PORT, for
	// the Checkpoint: that of a load to another one is refused. Default: Project and
	// Instance alone tell one from another.
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

	// Tablets is in how many pieces of about as many rows a table begins, each for a server
	// of its own, where the load makes it: it is cut at row keys of the data. Tables that are
	// there stay as they are. Default: 1; Bigtable splits them as they grow.
	Tablets int

	// DeadLetter receives what cannot be loaded, one JSON object a line: where it
	// stands in the source, why it was refused, and the item. The rest is
	// loaded, and each dead letter is a difference (NotLoaded). Default: the
	// first such item refuses the whole source, and nothing is written. A file that is
	// damaged as a whole is refused either way.
	DeadLetter io.Writer

	// Remap lets the load write to a table in which another mapping, that of an earlier
	// load, left cells of the same items that this one does not write: they stay, and
	// the report warns of them. Default: that is a [source.Error] (MappingRefused), and
	// nothing is written.
	Remap bool

	// Mix lets the load write to a table that was loaded from another source: a later
	// full export, or one that tells no time over an export. Items of both are there
	// then, and in an item that both have, attributes that only the one has; a later
	// load of the first takes its own values back. The report warns of it. Default:
	// that is a [source.Error] (TargetNewer), and nothing is written.
	Mix bool

	// KeepWrites lets the load write to a table in which a DynamoDB endpoint has written
	// since the last load. The items that the endpoint wrote stay as they are, in indexes
	// too; those that it deleted come back. The report warns of it. Default: that is a
	// [source.Error] (TargetWritten), and nothing is written. A source with incremental
	// exports is refused either way.
	KeepWrites bool

	// Lint, if it is set, has the items and their rows judged by the rules of package
	// lint as they are loaded.
	Lint *LintRules
}

// PlanOptions configure [MakePlan]. The zero value is ready to use; what says of a
// Bigtable how it is reached counts for nothing.
type PlanOptions struct{ Common }

// VerifyOptions configure [Verify] and [UpdateGoldens]. The zero value is ready to
// use.
type VerifyOptions struct {
	Common

	// Stored says that the rows are there: another loader wrote them, or an earlier
	// load. They are only read. Default: Verify loads them, into tables that hold no
	// other rows.
	Stored bool

	// Part is the part of the work, as of LoadOptions: it lays out the items of its data
	// files, and reads its range of the rows, which are Stored, since both may be done
	// apart. Lint is not applied. [FinishVerify] compares what all parts found.
	Part source.Part
	// Parts is the folder in which parts keep what they found.
	Parts string

	// AllowEmpty accepts a source without items, although it proves nothing. Default: such a
	// source is a [source.Error] (SourceEmpty), so that an empty export does not pass by
	// mistake.
	AllowEmpty bool

	// Timestamps is how a comparison takes the times of cells. Default: exact.
	Timestamps fixtures.TimestampPolicy

	// LenientSets takes an empty value for a member of a set, which the mapping writes as
	// one byte 00, where the rows are Stored: other loaders may write none. A fixture's
	// tolerances can say so too. Default: it is a difference.
	LenientSets bool

	// DeadLetter receives what cannot be loaded, as LoadOptions.DeadLetter does.
	// Default: items of the kinds Unmatched, KeyCollision and LimitExceeded are
	// failures, and the rest is verified; others refuse the whole source.
	DeadLetter io.Writer

	// Lint says how the rules of package lint are applied. Default: a fixture is
	// judged by all of them, and no finding is a difference; a source is not judged.
	// Of Stored rows, these are judged in place of those that the mapping makes.
	Lint *LintRules

	// RunGC runs garbage collection on the Bigtable, by the clock Now. With
	// it, verification checks what is left. Default: that check is skipped.
	RunGC func(context.Context) error

	// Restart closes the Bigtable, opens it again over the same store, and returns
	// a connection to it; the one before is not used any more. With it, verification
	// ends by checking that every row is read back the same. Default: that check is
	// skipped.
	Restart func(context.Context) (grpc.ClientConnInterface, error)

	// Differential is how many items are drawn from each
	// mapping, by Seed, and run through the lens, the DynamoDB door and the loader,
	// in tables named _differential that are deleted afterwards; as many requests of
	// such items (writes with conditions, updates, batches, transactions, queries
	// and scans of tables and indexes) are compared with a naive DynamoDB; with RunGC
	// time passes between them, so that items expire and garbage is collected. What
	// fails is shrunk, and saved as a fixture directory in the folder Regress, if
	// there is one. Default: none. It is not for Stored rows.
	Differential int
	Seed         uint64
	Regress      string
}

// DiffOptions configure [Diff]. The zero value is ready to use.
type DiffOptions struct{ Common }

// ReverseOptions configure [Reverse]. The zero value is ready to use.
type ReverseOptions struct {
	Common

	// ExportTime is the moment that the export is said to be of. Cells without a
	// time of their own are loaded back at it. Default: that at which the load
	// wrote them, as _migration_schema tells; without such a note it is an error.
	ExportTime time.Time

	// Partial exports what the mapping can read and tells in the warnings what it
	// cannot. Default: rows that it cannot read are an error, and nothing is exported.
	Partial bool

	fileBytes int // s3export.DataFileBytes but in tests
}

// LintOptions configure [Lint]. The zero value is ready to use; what says of a
// Bigtable how it is reached counts for nothing.
type LintOptions struct {
	Common
	LintRules
}

// LintRules say how the rules of package lint are applied.
type LintRules struct {
	// Config takes precedence over what a fixture and the mapping files say. Default:
	// none.
	Config *lint.Config
	// FailOn makes findings of this level, and of worse ones, differences
	// (LintError). Default: none is.
	FailOn lint.Level
}

// options are those of the work below.
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
		x.Share, x.Parts, x.Checkpoint = o.Part, o.Checkpoint, "" // a file of it is the part's
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
