package load

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/internal/extsort"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/internal/parts"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// Finish ends a load in parts. It checks that all parts are complete and that no items of
// different parts collide. It then records how to read the tables. The report covers all
// parts.
func Finish(ctx context.Context, conn grpc.ClientConnInterface, src *source.Source, o table.Options) (*report.Report, error) {
	r, done, err := table.Finish(ctx, src, o)
	if err != nil {
		return nil, err
	}
	r.Connect(conn)
	for i, j := range r.Jobs {
		if err := holdsParts(ctx, r, j, done, i); err != nil {
			return nil, err
		}
	}
	apart, err := partsApart(r, done)
	if err != nil {
		return nil, err
	}
	joined := report.Joined(r.Options.MaxDifferences, parts.Reports(done))
	for _, t := range joined.Tables {
		joined.Restate(loadCheck, t.Target, phrase.Counted(t.Items, "item"))
	}
	if !apart { // parts share a row of the items, or may share one of an index
		for i, j := range r.Jobs {
			if joined.Tables[i].DeadLetters > 0 { // the parts reported them
				j.Letters, j.Source.Lenient = table.NewDeadLetters(io.Discard, r.Report), true
			}
		}
		if err := r.Examine(ctx, src); err != nil {
			return nil, fmt.Errorf("the parts are written, but do not fit together: %w", err)
		}
		for i, j := range r.Jobs {
			joined.Tables[i].Rows = j.Report.Rows
			if more := j.Report.DeadLetters - joined.Tables[i].DeadLetters; more > 0 {
				return nil, source.Damaged(source.CellCollision, source.Position{File: src.Path}, nil, "the parts of table %s are written, but do not fit together: cells of %s are also written by items of other parts", j.Source.Name, phrase.Counted(more, "item"))
			}
		}
		joined.Rows = 0
		for _, t := range joined.Tables {
			joined.Rows += t.Rows
		}
	}
	if err := r.ProveJoiners(done); err != nil {
		return nil, err
	}
	for _, j := range New(r).jobs {
		if _, err := j.writeSchema(ctx, false); err != nil {
			return nil, err
		}
	}
	if err := r.Folder.Remove(len(done)); err != nil {
		return nil, err
	}
	return joined, nil
}

// holdsParts refuses to finish if the last row of a part is missing, as after a restart of a
// Bigtable in memory.
func holdsParts(ctx context.Context, r *table.Run, j *table.Job, done []*parts.Complete, index int) error {
	for i, p := range done {
		row := p.Tables[index].Row
		if len(row) == 0 {
			continue
		}
		there, err := holds(ctx, r.B, j.Report.Target, row)
		if err != nil {
			return err
		}
		if !there {
			at := source.Part{Index: i + 1, Of: len(done)}
			return source.Damaged(source.CheckpointInvalid, source.Position{File: r.Folder.File(at, parts.Done)}, nil,
				"table %s does not hold row %q, which part %v wrote: remove the file, and load the part again", j.Report.Target, row, at)
		}
	}
	return nil
}

// partsApart reports whether parts cannot have items in one row of a table or of an index, so
// that no items can collide.
func partsApart(r *table.Run, done []*parts.Complete) (bool, error) {
	apart := true
	for i, j := range r.Jobs {
		rows := extsort.NewSet(j.Options.TempDir)
		shared, err := sharedRows(r, j, rows, done, i)
		rows.Close()
		if err != nil {
			return false, err
		}
		apart = apart && !shared
		for _, x := range j.Indexes {
			apart = apart && x.Distinct()
		}
	}
	return apart, nil
}

// hashBytes is the size of a row's hash in the file of a part.
const hashBytes = 16

// sharedRows reports whether parts have rows of a table in common. A file that lacks rows of
// its part is an error.
func sharedRows(r *table.Run, j *table.Job, rows *extsort.Set, done []*parts.Complete, index int) (bool, error) {
	for i, d := range done {
		p := source.Part{Index: i + 1, Of: len(done)}
		f, err := os.Open(r.Folder.RowsFile(p, j.Report.Target))
		if err != nil {
			return false, fmt.Errorf("reading the rows that part %v wrote: %w", p, err)
		}
		rows.Join(f) // Join closes it
		is, err := f.Stat()
		if err != nil {
			return false, fmt.Errorf("reading the rows that part %v wrote: %w", p, err)
		}
		if n := d.Tables[index].Rows; is.Size() != n*hashBytes {
			return false, source.Damaged(source.CheckpointInvalid, source.Position{File: f.Name()}, nil,
				"the file has %s, but the %s of part %v take %d: remove %s beside it, and load the part again",
				phrase.Counted(is.Size(), "byte"), phrase.Counted(n, "row"), p, n*hashBytes, filepath.Base(r.Folder.File(p, parts.Done)))
		}
	}
	_, shared, _, err := rows.Finish(1, 1)
	return len(shared) > 0, err
}
