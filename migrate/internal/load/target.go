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
	"github.com/tabletop-emu/tabletop/internal/layout/migrationstate"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// followed rejects a table into which a migration follows a live table, or did until it ended: the load
// could undo later changes, or bring deleted items back.
func (j *job) followed(ctx context.Context) (warning string, err error) {
	noted, err := j.schemaNotes(ctx)
	if err != nil {
		return "", err
	}
	since, followed := loadnote.Followed(noted, j.Report.Target)
	if !followed {
		return "", j.wasFollowed(ctx, noted)
	}
	what := "since " + since.UTC().Format(time.RFC3339)
	switch s, _, err := j.b.StateOf(ctx, j.Report.Target); {
	case err != nil:
		return "", err
	case s.Phase != "":
		what = s.String()
	}
	return "", source.Damaged(source.TargetFollowed, source.Position{}, nil, "Bigtable table %s follows a live table (%s), and the load would undo some of the later changes: %s",
		j.Report.Target, what, migrationstate.EndFirst)
}

func (j *job) wasFollowed(ctx context.Context, noted []layout.Row) error {
	target := j.Report.Target
	at, ended := loadnote.Ended(noted, target)
	if !ended {
		return nil
	}
	if there, err := stands(ctx, j.b, target); err != nil || !there {
		return err
	}
	return source.Damaged(source.TargetFollowed, source.Position{}, nil, "Bigtable table %s has the changes of a live table, which a migration followed until %s, and the load would undo some of them: load into another table, or delete this one and the tables of its indexes first", target, at.UTC().Format(time.RFC3339))
}

// endpointWrites returns an error for tables that a DynamoDB endpoint wrote. With incremental
// exports, the [source.Error] gives the number of changes that can be counted. Other sources
// are rejected unless the load keeps those writes, since a deleted item looks like one that
// never existed.
func (j *job) endpointWrites(ctx context.Context) (warning string, err error) {
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
		return "", j.countEndpointWrites(ctx, written)
	case !written:
		return "", nil
	case !j.Options.KeepWrites:
		return "", source.Damaged(source.TargetWritten, source.Position{}, nil,
			"Bigtable table %s: a DynamoDB endpoint has written to it since the last load, and the items that the endpoint deleted would come back: load into another table, delete this table first, or use --keep-writes, which keeps written items unchanged and brings deleted items back", j.Report.Target)
	}
	j.keeps = true
	return fmt.Sprintf("Bigtable table %s: a DynamoDB endpoint has written to it since the last load: the items that the endpoint wrote stay unchanged, and the items that it deleted come back", j.Report.Target), nil
}

// countEndpointWrites acts like endpointWrites for a source with incremental exports; written
// means that the endpoint itself noted that it writes.
func (j *job) countEndpointWrites(ctx context.Context, written bool) error {
	// An endpoint keeps the state of each item that it wrote in the item's row, and a tombstone
	// for each index entry that it removed.
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
	if gone > 0 { // of deleted items, which leave no state, or of moved ones
		wrote = append(wrote, "removed "+phrase.Counted(gone, "index row"))
	}
	did := "written to it since the load, but left nothing to count, as after deletions"
	if len(wrote) > 0 {
		did = fmt.Sprintf("%s since the load, e.g. in row %s (items that it deleted cannot be counted)", strings.Join(wrote, " and "), example)
	}
	return source.Damaged(source.TargetWritten, source.Position{}, nil,
		"Bigtable table %s: a DynamoDB endpoint has %s: the changes in the source may be older, and would undo these writes: load into another table, or delete this one first",
		j.Report.Target, did)
}

// countColumns counts the items with bookkeeping in one family of a table, and returns an
// example row. A missing table has none.
func countColumns(ctx context.Context, b *table.Bigtable, table, family string) (n int64, example string, err error) {
	for row, err := range b.Rows(ctx, btclient.Read{Table: table, Spans: []layout.Span{{}}, Filter: btclient.OfFamily(family)}) {
		if status.Code(err) == codes.NotFound {
			return 0, "", nil
		}
		if err != nil {
			return 0, "", err
		}
		of := map[string]bool{} // each item has several columns with the same suffix
		for _, c := range row.Cells {
			of[string(c.Qualifier[min(1, len(c.Qualifier)):])] = true
		}
		if n += int64(len(of)); example == "" {
			example = fmt.Sprintf("%q", row.Key)
		}
	}
	return n, example, nil
}

// otherTime rejects exports that are older than the last load, by its note in
// layout.SchemaTable: later changes would be undone in part, and indexes would contradict their
// items. It also rejects a source with older cells than the stored ones, since reads would
// return the stored cells. This includes a source without a time after an export: only the user
// knows which is newer, and an invented time would break verifications. It warns if the rows
// are from another full export, since nothing shows which items have been deleted since.
func (j *job) otherTime(ctx context.Context) (warning string, err error) {
	noted, err := j.schemaNotes(ctx)
	if err != nil {
		return "", err
	}
	target, ends := j.Report.Target, j.Source.ExportTime
	at, until, how := loadnote.At(noted, target), loadnote.Until(noted, target), "was loaded with exports up to"
	if begun := loadnote.Unfinished(noted, target); !begun.IsZero() && !begun.Before(until) {
		until, how = begun, "is partly loaded with exports up to"
	}
	older := !ends.IsZero() && table.Micros(ends) < table.Micros(until)
	begins := j.Source.FullTime
	if begins.IsZero() {
		begins = ends
	}
	later := !ends.IsZero() && table.Micros(begins) > table.Micros(until) // nothing shows deletions in between
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
		return "", source.Damaged(source.TargetNewer, source.Position{}, nil, "Bigtable table %s %s %s, but the source ends earlier, at %s, and would undo some of the later changes: load the exports up to the first of these times, or load into another table",
			target, how, until.UTC().Format(time.RFC3339Nano), ends.UTC().Format(time.RFC3339Nano))
	case j.Micros < table.Micros(at):
		noTime := ""
		if ends.IsZero() {
			noTime = ", which has no time"
		}
		return "", source.Damaged(source.TargetNewer, source.Position{}, nil, "Bigtable table %s has cells at %s from an earlier load, and reads would not return the older cells of the source%s, at %s: set timestamps.default in the mapping to the first of these times or later, or load into another table",
			target, at.Format(time.RFC3339Nano), noTime, own)
	}
	what := fmt.Sprintf("Bigtable table %s was loaded from other items of a source that also has no time: the items of both sources would mix, and deleted attributes and index entries would stay", target)
	if !other || table.Micros(at) != j.Micros {
		what = fmt.Sprintf("Bigtable table %s was loaded from another source, with cells at %s: the items of both sources would mix, with new cells at %s, and deleted attributes and index entries would stay", target, at.Format(time.RFC3339Nano), own)
	}
	if !j.Options.Mix {
		return "", source.Damaged(source.TargetNewer, source.Position{}, nil, "%s: load the full export of that time with the incremental ones since, load into another table, or allow the mix (--mix)", what)
	}
	return what, nil
}

// stands reports whether a table exists and has rows.
func stands(ctx context.Context, b *table.Bigtable, table string) (bool, error) {
	there, err := b.HasRows(ctx, table)
	if status.Code(err) == codes.NotFound {
		return false, nil
	}
	return there, err
}
