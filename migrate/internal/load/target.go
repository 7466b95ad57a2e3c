package load

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/loadnote"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// doorWrites refuses, where the source has incremental exports, tables that a DynamoDB
// door wrote: a [source.Error] that says how much of it can be counted. Without such
// exports it refuses such a table unless the load is to keep what was written: it cannot
// tell an item that was deleted from one that was never there.
func (j *job) doorWrites(ctx context.Context) (warning string, err error) {
	noted, err := j.schemaNotes(ctx)
	if err != nil {
		return "", err
	}
	written := loadnote.Written(noted, j.Report.Target)
	if written {
		there, err := j.b.HasTable(ctx, j.Report.Target)
		if err != nil {
			return "", err
		}
		if written = there; !there {
			_, j.earlier = writtenAt(noted, j.Report.Target)
		}
	}
	switch {
	case !j.Source.FullTime.IsZero():
		return "", j.countDoorWrites(ctx, written)
	case !written:
		return "", nil
	case !j.Options.KeepWrites:
		return "", source.Damaged(source.TargetWritten, source.Position{}, nil,
			"Bigtable table %s: a DynamoDB endpoint has written since the last load, and the items that it deleted would come back: load into another table, delete this one first, or insist (--keep-writes): written items then stay as they are, and deleted ones come back", j.Report.Target)
	}
	j.keeps = true
	return fmt.Sprintf("Bigtable table %s: a DynamoDB endpoint has written since the last load: the items that it wrote stay as they are, and those that it deleted come back", j.Report.Target), nil
}

// countDoorWrites is doorWrites for a source with incremental exports; written says that
// the door itself noted that it writes.
func (j *job) countDoorWrites(ctx context.Context, written bool) error {
	// A door keeps the state of each item that it wrote in the item's row, and, where
	// it took an entry out of an index, a tombstone.
	items, example, err := countColumns(ctx, j.b, j.Report.Target, lens.FamilyState)
	if err != nil {
		return err
	}
	gone := int64(0)
	for _, x := range j.Indexes {
		n, row, err := countColumns(ctx, j.b, x.TargetTable(), lens.FamilyTombstone)
		if err != nil {
			return err
		}
		if gone += n; example == "" && n > 0 {
			example = row + " of table " + x.TargetTable()
		}
	}
	if items+gone == 0 && !written {
		return nil
	}
	var wrote []string
	if items > 0 {
		wrote = append(wrote, "written "+phrase.Counted(items, "item"))
	}
	if gone > 0 { // of items that it deleted, which leave no state, or that moved
		wrote = append(wrote, "taken away "+phrase.Counted(gone, "index row"))
	}
	did := "written since the load, and left nothing that can be counted, as deletes do"
	if len(wrote) > 0 {
		did = fmt.Sprintf("%s since the load, e.g. in row %s (items that it deleted cannot be counted)", strings.Join(wrote, " and "), example)
	}
	return source.Damaged(source.TargetWritten, source.Position{}, nil,
		"Bigtable table %s: a DynamoDB endpoint has %s: the incremental exports may be older, and would undo that: load into another table, or delete this one first",
		j.Report.Target, did)
}

// countColumns counts the bookkeeping of items in one family of a table, and names a
// row that has some; nothing where there is no such table.
func countColumns(ctx context.Context, b *table.Bigtable, table, family string) (n int64, example string, err error) {
	for row, err := range b.Rows(ctx, btclient.Read{Table: table, Spans: []layout.Span{{}}, Filter: btclient.OfFamily(family)}) {
		if status.Code(err) == codes.NotFound {
			return 0, "", nil
		}
		if err != nil {
			return 0, "", err
		}
		of := map[string]bool{} // each item has several columns that end alike
		for _, c := range row.Cells {
			of[string(c.Qualifier[min(1, len(c.Qualifier)):])] = true
		}
		if n += int64(len(of)); example == "" {
			example = fmt.Sprintf("%q", row.Key)
		}
	}
	return n, example, nil
}

// otherTime refuses an export that is older than the one of the last load, as
// layout.SchemaTable tells: what came since would be half undone, and indexes would
// contradict their items. It refuses a source whose cells would lie below those of that
// load: reads would go on finding those, although the load says that it is done. That is
// so of one that tells no time, over an export: which of them is newer nobody knows but
// who calls, and no time is made up, since verification of the same source looks for the
// same cells. It warns of rows that a load of another full export wrote: nothing says
// what is gone since.
func (j *job) otherTime(ctx context.Context) (warning string, err error) {
	noted, err := j.schemaNotes(ctx)
	if err != nil {
		return "", err
	}
	target, ends := j.Report.Target, j.Source.ExportTime
	at, until, how := loadnote.At(noted, target), loadnote.Until(noted, target), "was loaded with exports up to"
	if begun := loadnote.Unfinished(noted, target); !begun.IsZero() && !begun.Before(until) {
		until, how = begun, "is loaded in part with exports up to"
	}
	older := !ends.IsZero() && table.Micros(ends) < table.Micros(until)
	begins := j.Source.FullTime
	if begins.IsZero() {
		begins = ends
	}
	later := !ends.IsZero() && table.Micros(begins) > table.Micros(until) // nothing tells what was deleted in between
	undated := ends.IsZero() && loadnote.Dated(noted, target)
	contents := loadnote.Contents(noted, target)
	other := j.Options.Warn && contents != "" && j.contents() != "" && contents != j.contents() // a verification compares
	if at.IsZero() || table.Micros(at) == j.Micros && !older && !later && !undated && !other {
		return "", nil
	}
	own := time.UnixMicro(j.Micros).UTC().Format(time.RFC3339Nano)
	switch there, err := stands(ctx, j.b, target); {
	case err != nil || !there:
		return "", err
	case older:
		return "", source.Damaged(source.TargetNewer, source.Position{}, nil, "Bigtable table %s %s %s, and the source ends at %s: what changed in between would be half undone: load the exports up to then, or into another table",
			target, how, until.UTC().Format(time.RFC3339Nano), ends.UTC().Format(time.RFC3339Nano))
	case j.Micros < table.Micros(at):
		untold := ""
		if ends.IsZero() {
			untold = ", which tells no time,"
		}
		return "", source.Damaged(source.TargetNewer, source.Position{}, nil, "Bigtable table %s was loaded with cells at %s, and those of the source%s would lie below them, at %s, where no read finds them: let the mapping say a time that is not before (timestamps.default), or load into another table",
			target, at.Format(time.RFC3339Nano), untold, own)
	}
	what := fmt.Sprintf("Bigtable table %s was loaded from other items, by a source that tells no time either: those of this one would come beside them, and what is no longer in an item or an index would stay", target)
	if !other || table.Micros(at) != j.Micros {
		what = fmt.Sprintf("Bigtable table %s was loaded from another source, with cells at %s: those of this one, at %s, would come beside them, and what is no longer in an item or an index would stay", target, at.Format(time.RFC3339Nano), own)
	}
	if !j.Options.Mix {
		return "", source.Damaged(source.TargetNewer, source.Position{}, nil, "%s: load the full export of that time with the incremental ones since, load into another table, or let them mix (--mix)", what)
	}
	return what, nil
}

// stands reports whether there are rows of a table.
func stands(ctx context.Context, b *table.Bigtable, table string) (bool, error) {
	there, err := b.HasRows(ctx, table)
	if status.Code(err) == codes.NotFound {
		return false, nil
	}
	return there, err
}
