package migrate

import (
	"context"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/migrate/internal/load"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// Load writes the rows of a source to Bigtable, including those of the indexes that its
// mappings lay out, and creates the materialized views of other indexes. It is the same as
// [Prepare] followed by [Prepared.Load]. At the end, it records in _migration_schema how to
// read the tables. Load reads the whole source before it writes, so after a [source.Error]
// or a [maperr.SpecError] nothing has been written. Repeating a load changes nothing. Load
// does not compare anything: see [Verify].
//
// Incremental exports that follow a full one update tables that only loads have written
// to, and delete the items that they list as deleted. Load rejects tables to which a
// DynamoDB endpoint has written since the last load (TargetWritten). Before its first
// write, the endpoint records in _migration_schema that it writes, since deletions leave
// no other trace. Deleting the table deletes that record; an endpoint that serves the
// table must then be restarted.
//
// Load rejects tables into which a migration follows a live table (TargetFollowed).
//
// Load also rejects tables that a load of later exports wrote, or began to write
// (TargetNewer). It also rejects tables whose cells are newer than those of the source,
// and would hide them: for example, a source without a time has older cells than an
// export. If the stored row or the former index entry of an item cannot be read, the item
// stays as it is, which is a difference (NotLoaded).
func Load(ctx context.Context, conn grpc.ClientConnInterface, src *source.Source, o LoadOptions) (*report.Report, error) {
	p, err := Prepare(ctx, src, o)
	if err != nil {
		return nil, err
	}
	return p.Load(ctx, conn)
}

// Prepared is a source that was read and laid out, but has not been written.
type Prepared struct {
	source *source.Source
	run    *table.Run
	lint   *LintRules
}

// Prepare does the part of Load that does not need a Bigtable. It finds faults in the
// source, the mappings and the checkpoint before the caller opens a connection or a
// store.
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

// Load writes the prepared rows. It can be called only once.
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

// FinishLoad ends a load in parts. LoadOptions.Checkpoint names the folder of the parts.
// FinishLoad checks that all parts of the source are complete, and that the table holds
// the last row of each. It then checks that items of different parts do not meet in a
// cell; such items are a [source.Error] (KeyDuplicate, CellCollision). If parts can share
// rows of the table or of an index, it reads the whole source for this check. Finally, it
// records that the load is complete, and removes the files of the parts from the folder.
// The report covers all parts.
func FinishLoad(ctx context.Context, conn grpc.ClientConnInterface, src *source.Source, o LoadOptions) (*report.Report, error) {
	x := o.options()
	x.Share, x.Parts, x.Checkpoint = source.Part{}, o.Checkpoint, ""
	return load.Finish(ctx, conn, src, x)
}

// noLintOfParts rejects lint for a part, since rules apply to all items.
func noLintOfParts(src *source.Source) error {
	return source.Damaged(source.Unsupported, source.Position{File: src.Path}, nil, "lint rules apply to all items, not to a part of them: lint the source separately")
}
