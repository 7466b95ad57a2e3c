package run

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// Incremental exports tell what an earlier load may have left that is not so any
// more. A load that follows them takes away of each item that they changed the cells
// that it has no more, and its former entries in indexes; then it writes what there
// is, as every load does. What an item may have had is known from its images, and
// from the item as it is stored: both, since exports need not have old images. Of
// one item, index entries go before its cells: a load that is cut off between finds
// the stored item again.
//
// That is right while nobody else writes: what a door has written since is newer than
// what the exports say.

// DoorWrites refuses, where the source has incremental exports, tables that a DynamoDB
// door wrote: a [source.Error] that says how much.
func (j *Job) DoorWrites(ctx context.Context, b *Bigtable) error {
	if j.Source.FullTime.IsZero() {
		return nil
	}
	// A door keeps the state of each item that it wrote in the item's row, and, where
	// it took an entry out of an index, a tombstone.
	items, example, err := b.countColumns(ctx, j.Report.Target, lens.FamilyState)
	if err != nil {
		return err
	}
	gone := int64(0)
	for _, x := range j.Indexes {
		n, row, err := b.countColumns(ctx, x.TargetTable(), lens.FamilyTombstone)
		if err != nil {
			return err
		}
		if gone += n; example == "" && n > 0 {
			example = row + " of table " + x.TargetTable()
		}
	}
	if items+gone == 0 {
		return nil
	}
	entries := ""
	if gone > 0 { // of items that were deleted, which leave no state, or that moved
		entries = fmt.Sprintf(", and taken entries out of %s of its indexes", phrase.Counted(gone, "row"))
	}
	return source.Damaged(source.TargetWritten, source.Position{}, nil,
		"a DynamoDB door has written %s of Bigtable table %s since the load%s, e.g. row %s: what the incremental exports tell may be older, and would undo that: load into another table, or delete this one first",
		phrase.Counted(items, "item"), j.Report.Target, entries, example)
}

// countColumns counts the bookkeeping of items in one family of a table, and names a
// row that has some; nothing where there is no such table.
func (b *Bigtable) countColumns(ctx context.Context, table, family string) (n int64, example string, err error) {
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

// catchUp takes away what the source's incremental exports deleted.
func (j *Job) catchUp(ctx context.Context, b *Bigtable) error {
	j.Report.CellsDeleted = 0
	if j.Source.FullTime.IsZero() {
		return nil
	}
	c := &catchUp{j: j, b: b, was: j.Mapping}
	noted, err := b.SchemaOf(ctx, j.Report.Target)
	if err != nil {
		return err
	}
	if len(LoadedBy(noted, j.Mapping)) > 0 {
		if was, err := layout.FromSchemaRows(j.Report.Target, noted); err == nil && was != nil {
			c.was = was
		}
	}
	done := j.Timed("catching up")
	n := int64(0)
	j.Source.Changes(func(change source.Change, failed error) bool {
		if err = failed; err == nil {
			err = ctx.Err()
		}
		if err == nil {
			c.changes = append(c.changes, change)
			if c.bytes += changeBytes(change); c.bytes >= j.Options.Batch {
				err = c.apply(ctx)
			}
		}
		if n++; n%256 == 0 {
			j.Options.Progress(source.Progress{Table: j.Source.Name, Phase: "catching up", Items: n, Total: -1})
		}
		return err == nil
	})
	if err == nil {
		err = c.apply(ctx)
	}
	done(n)
	return err
}

// changeBytes is about what a change takes in memory.
func changeBytes(c source.Change) int {
	n := c.Key.Size() + c.Now.Size() + 256
	for _, item := range c.Was {
		n += item.Size()
	}
	return n
}

// catchUp is a batch of changes.
type catchUp struct {
	j       *Job
	b       *Bigtable
	was     *layout.Mapping // by which the table was loaded
	changes []source.Change
	bytes   int
}

// touched is a row that may have cells that are to go.
type touched struct {
	own    []lens.Extent // the cells that may go
	wanted []layout.Cell // the cells among them that stay
	// keys are, of a row of an index, the items whose former entry it may be: with
	// one of them in it and nothing wanted, the whole row goes.
	keys  map[string]bool
	whole bool
}

// rowsOf are rows by table and key.
type rowsOf map[string]map[string]*touched

func (r rowsOf) at(table string, row []byte) *touched {
	if r[table] == nil {
		r[table] = map[string]*touched{}
	}
	t := r[table][string(row)]
	if t == nil {
		t = &touched{keys: map[string]bool{}}
		r[table][string(row)] = t
	}
	return t
}

// apply takes away what the changes deleted.
func (c *catchUp) apply(ctx context.Context) error {
	defer func() { c.changes, c.bytes = c.changes[:0], 0 }()
	m, target := c.j.Mapping, c.j.Report.Target
	places := map[string]bool{}
	for _, change := range c.changes {
		for _, by := range []*layout.Mapping{m, c.was} {
			if at, err := by.Locate(change.Key); err == nil { // else it never took the item
				places[string(at.Row)] = true
			}
		}
	}
	stored, err := c.read(ctx, target, slices.Sorted(maps.Keys(places)))
	if err != nil {
		return err
	}
	base, index := rowsOf{}, rowsOf{}
	for _, change := range c.changes {
		if err := c.touch(change, stored, base, index); err != nil {
			return err
		}
	}
	for _, table := range slices.Sorted(maps.Keys(index)) {
		rows, err := c.read(ctx, table, slices.Sorted(maps.Keys(index[table])))
		if err != nil {
			return err
		}
		x := c.j.Indexes[slices.IndexFunc(c.j.Indexes, func(x *layout.Index) bool { return x.TargetTable() == table })]
		for key, t := range index[table] {
			if t.wanted == nil {
				items, err := x.Items(rows[key])
				t.whole = err == nil && slices.ContainsFunc(items, func(item attr.Item) bool { return t.keys[c.j.KeyJSON(item)] })
				continue
			}
			for _, f := range x.Families() {
				t.own = append(t.own, lens.Extent{Family: f.Name, Prefix: true})
			}
		}
		if err := c.take(ctx, table, rows, index[table]); err != nil {
			return err
		}
	}
	return c.take(ctx, target, stored, base[target])
}

// touch notes the rows in which a changed item may have cells that it has no more.
func (c *catchUp) touch(change source.Change, stored map[string]layout.Row, base, index rowsOf) error {
	m, key := c.j.Mapping, c.j.KeyJSON(change.Key)
	var now lens.Placed
	var back attr.Item
	if change.Now != nil {
		var err error
		if now, err = m.Place(change.Now, c.j.Micros); err != nil {
			return nil //nolint:nilerr // a dead letter, or a failure: it stays as it was
		}
		back, _ = m.Returned(change.Now, now)
	}
	images := change.Was
	for _, by := range slices.Compact([]*layout.Mapping{m, c.was}) {
		at, err := by.Locate(change.Key)
		if err != nil || at.Derived {
			continue
		}
		item, err := by.Item(stored[string(at.Row)], change.Key)
		if err != nil {
			return source.Damaged(source.MappingRefused, change.Position, err, "row %q of table %s cannot be read by the mapping, so that the change of item %s cannot be made there", at.Row, c.j.Report.Target, key)
		}
		if item != nil {
			images = append(images[:len(images):len(images)], item)
		}
		if item == nil && at.Shared { // what is in its columns is another item's
			continue
		}
		t := base.at(c.j.Report.Target, at.Row)
		t.own = append(t.own, at.Own...)
		if bytes.Equal(at.Row, now.Row) {
			t.wanted = append(t.wanted, now.Cells...)
		}
	}
	for i, x := range c.j.Indexes {
		if entry, ok, err := x.Place(back, c.j.Micros); err == nil && ok {
			t := index.at(c.j.Indexes[i].TargetTable(), entry.Row)
			t.wanted = append(t.wanted, entry.Cells...)
		}
	}
	for _, image := range images {
		placed, err := c.was.Place(image, c.j.Micros)
		if err != nil {
			continue // it was never loaded
		}
		image, _ = c.was.Returned(image, placed)
		for _, x := range c.was.Indexes() {
			if !slices.ContainsFunc(c.j.Indexes, func(now *layout.Index) bool { return now.TargetTable() == x.TargetTable() }) {
				continue // nobody reads it
			}
			if entry, ok, err := x.Place(image, c.j.Micros); err == nil && ok {
				index.at(x.TargetTable(), entry.Row).keys[key] = true
			}
		}
	}
	return nil
}

// read reads rows of a table, without the bookkeeping of doors; none where there is no
// table.
func (c *catchUp) read(ctx context.Context, table string, keys []string) (map[string]layout.Row, error) {
	rows := map[string]layout.Row{}
	if len(keys) == 0 {
		return rows, nil
	}
	r := btclient.Read{Table: table}
	for _, key := range keys {
		r.Keys = append(r.Keys, []byte(key))
	}
	for row, err := range c.b.Rows(ctx, r) {
		if status.Code(err) == codes.NotFound {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		row.Cells = slices.DeleteFunc(row.Cells, func(c layout.Cell) bool {
			return c.Family == lens.FamilyState || c.Family == lens.FamilyTombstone
		})
		rows[string(row.Key)] = row
	}
	return rows, nil
}

// take deletes the cells of rows that may go and are not wanted.
func (c *catchUp) take(ctx context.Context, table string, rows map[string]layout.Row, touched map[string]*touched) error {
	var entries []WriteEntry
	cells := int64(0)
	for _, key := range slices.Sorted(maps.Keys(touched)) {
		row, t := rows[key], touched[key]
		wanted := map[column]bool{}
		for _, w := range t.wanted {
			wanted[column{w.Family, string(w.Qualifier), w.Timestamp}] = true
		}
		var gone []*btpb.Mutation
		for _, cell := range row.Cells {
			own := slices.ContainsFunc(t.own, func(e lens.Extent) bool { return e.Covers(cell) })
			if own && !wanted[column{cell.Family, string(cell.Qualifier), cell.Timestamp}] {
				gone = append(gone, btclient.DeleteColumn(cell.Family, cell.Qualifier, cell.Timestamp, cell.Timestamp+1000))
			}
		}
		cells += int64(len(gone))
		if t.whole { // with what a door that filled the index keeps in the row
			gone, cells = []*btpb.Mutation{btclient.DeleteRow()}, cells+int64(len(row.Cells))
		}
		for some := range slices.Chunk(gone, maxBatchMutations) {
			entries = append(entries, WriteEntry{MutateRowsRequest_Entry: &btpb.MutateRowsRequest_Entry{RowKey: row.Key, Mutations: some}})
		}
	}
	for batch := range batches(entries) {
		rows := make([]*btpb.MutateRowsRequest_Entry, len(batch))
		for i, e := range batch {
			rows[i] = e.MutateRowsRequest_Entry
		}
		refused, err := c.b.MutateRows(ctx, table, rows)
		if err != nil {
			return err
		}
		if len(refused) > 0 {
			return source.Damaged(source.WriteRefused, source.Position{}, refused[0].Err, "Bigtable refuses to delete cells of row %q of table %s; what comes before is done", rows[refused[0].Entry].GetRowKey(), table)
		}
	}
	c.j.Report.CellsDeleted += cells
	return nil
}
