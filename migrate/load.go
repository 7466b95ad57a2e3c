package migrate

import (
	"context"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/migrate/internal/load"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// Load writes a source into Bigtable as its mappings say, and the rows of the
// indexes that they lay out: [Prepare], then [Prepared.Load]. Finally it records in
// _migration_schema how the tables are to be read. It reads the whole
// source first: an error that is a [source.Error] or a [mapping.SpecError] says
// that nothing has been written. Loading again changes nothing. Nothing is
// compared: see [Verify].
//
// Incremental exports behind a full one bring tables that only loads have written up
// to date: what they deleted goes. Tables that a DynamoDB door has written since are
// refused (TargetWritten): the door notes in _migration_schema that it writes, before its
// first write, since what it deletes leaves nothing to find. The note goes with the
// table; a door that serves it meanwhile is to be started again. Refused are, too, tables
// that a load of later exports wrote, or began to write, and those with cells of a load
// below which the source's would lie unseen, as those of a source that tells no time would
// below an export's (TargetNewer). An item whose stored row, or former entry in an index,
// cannot be read stays as it is, which is a difference (NotLoaded).
func Load(ctx context.Context, conn grpc.ClientConnInterface, src *source.Source, o LoadOptions) (*report.Report, error) {
	p, err := Prepare(ctx, src, o)
	if err != nil {
		return nil, err
	}
	return p.Load(ctx, conn)
}

// Prepared is a source that has been read and laid out, and not been written.
type Prepared struct {
	source *source.Source
	run    *table.Run
	lint   *LintRules
}

// Prepare does all of Load that needs no Bigtable: whatever is wrong with the
// source, its mappings or the checkpoint is found before a connection, or a store,
// is opened.
func Prepare(ctx context.Context, src *source.Source, o LoadOptions) (*Prepared, error) {
	if o.Part.Of > 0 && o.Lint != nil {
		return nil, noLintOfParts(src)
	}
	r, err := table.Prepare(ctx, src, o.options())
	if err != nil {
		return nil, err
	}
	if err := load.CheckCheckpoint(r.Jobs); err != nil {
		return nil, err
	}
	return &Prepared{src, r, o.Lint}, nil
}

// Load writes what was prepared, once.
func (p *Prepared) Load(ctx context.Context, conn grpc.ClientConnInterface) (*report.Report, error) {
	r := p.run
	if r.Complete() {
		return r.Report, nil
	}
	r.Connect(conn)
	l := load.New(r)
	if err := l.Check(ctx); err != nil {
		return nil, err
	}
	if err := l.All(ctx); err != nil {
		return nil, err
	}
	if p.lint != nil {
		if err := lintInput(ctx, r, table.OfSource(p.source), *p.lint, false); err != nil {
			return nil, err
		}
	}
	r.Sum()
	if r.Options.Share.Of > 0 {
		return r.Report, l.EndPart()
	}
	return r.Report, nil
}

// FinishLoad ends a load in parts, by the folder LoadOptions.Checkpoint: it makes sure
// that all parts of the source are there and complete, and that the table holds the row
// that each wrote last. Then it makes sure that no item of one part met one of another:
// where parts have rows in common, as where one row has many items, or where an index may
// have several items in a row, it reads the source as a whole for it, and such items are
// a [source.Error] (KeyDuplicate, CellCollision). Last it notes that the load is at its
// end, and removes what the parts left in the folder. The report is that of all parts.
func FinishLoad(ctx context.Context, conn grpc.ClientConnInterface, src *source.Source, o LoadOptions) (*report.Report, error) {
	x := o.options()
	x.Share, x.Parts, x.Checkpoint = source.Part{}, o.Checkpoint, ""
	return load.Finish(ctx, conn, src, x)
}

// noLintOfParts refuses to judge a part: rules are of all items.
func noLintOfParts(src *source.Source) error {
	return source.Damaged(source.Unsupported, source.Position{File: src.Path}, nil, "rules of lint judge all items, not a part of them: lint the source by itself")
}
