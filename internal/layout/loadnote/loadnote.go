package loadnote

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/secondary"
	"github.com/tabletop-emu/tabletop/internal/phrase"
)

// Changes returns the differences between a mapping and the mapping with which its table was
// loaded, as stored in the rows of layout.SchemaTable. It returns nil if there are no such rows.
func Changes(rows []layout.Row, m *layout.Mapping) []string {
	if same, err := m.IsStored(rows); err != nil {
		return []string{err.Error()}
	} else if same {
		return nil
	}
	was, err := layout.FromSchemaRows(m.TargetTable(), rows)
	if err != nil {
		return []string{err.Error()}
	}
	if was == nil || m.Spec() == nil {
		return nil
	}
	if m, err = as(m, was); err != nil {
		return []string{err.Error()}
	}
	old, err := was.Lock()
	if err != nil {
		return []string{err.Error()}
	}
	now, err := m.Lock()
	if err != nil {
		return []string{err.Error()}
	}
	return old.Changes(now)
}

// as returns m with the joiner of the existing rows if m's file leaves the joiner open, unless
// that would change the rows: auto only leaves a choice between plain and escaped.
func as(m, was *layout.Mapping) (*layout.Mapping, error) {
	proof := m.ProveJoiner()
	switch {
	case proof == nil:
		return m, nil
	case was.ProveJoiner() != nil:
		return m, nil // it is open there too
	case proof.Apart():
		return m.Proven(proof.Joiner())
	}
	if same, err := m.Proven(was.Joiner()); err == nil && !same.Apart() {
		return same, nil
	}
	return m, nil
}

// At returns the timestamp that the last load of a table used for cells without a specific
// timestamp. It returns zero if the rows do not have it.
func At(rows []layout.Row, table string) time.Time {
	for _, row := range rows {
		if !slices.Equal(row.Key, layout.SchemaRowPrefix(table)) {
			continue
		}
		for _, c := range row.Cells {
			if OfLoad(string(c.Qualifier)) {
				return time.UnixMicro(c.Timestamp).UTC()
			}
		}
	}
	return time.Time{}
}

// These are columns of the first row, next to those of its mapping. [Until] reads UntilColumn if
// the time of the cells differs, and [Unfinished] reads UnfinishedColumn. A DynamoDB endpoint
// writes WrittenColumn, which [Written] reads.
const (
	UntilColumn      = "until"
	UnfinishedColumn = "unfinished"
	WrittenColumn    = "written"
	// ContentsColumn identifies the contents of the source of the last load, if the source has no
	// time.
	ContentsColumn = "contents"
	// LoadColumn holds the id of a load that is running or was interrupted. It can exist before any
	// other column.
	LoadColumn = "load"
	// FollowedColumn has the time since which a migration follows a live table, for [Followed]:
	// the migration sets it before its first write to the table, and deletes it at its end. It
	// can exist before any other column. Package migrationstate has the state itself.
	FollowedColumn = "followed"
	// EndedColumn has the time at which that migration ended, for [Ended]. It stays until the table
	// is deleted and loaded again.
	EndedColumn = "ended"
)

// OfLoad reports whether a column of the first row exists because a load wrote the table.
func OfLoad(column string) bool {
	return column != LoadColumn && column != FollowedColumn && column != EndedColumn
}

// PartsPrefix begins the columns of the first row in which the parts of a running load
// share their progress.
const PartsPrefix = "parts/"

// MaxAge limits how long a DynamoDB endpoint relies on having found no load. After that time it
// checks again before it acknowledges a write, and records the write if it finds a load.
const MaxAge = time.Second

// SetUntil records the time of a table's export in its rows.
func SetUntil(rows []layout.Row, at time.Time) { addMoment(rows, UntilColumn, at) }

// SetUnfinished records in the rows of a table that a load of exports up to a given time has begun.
func SetUnfinished(rows []layout.Row, at time.Time) { addMoment(rows, UnfinishedColumn, at) }

func addMoment(rows []layout.Row, column string, at time.Time) {
	addCell(rows, column, MomentValue(at))
}

// addCell adds a column to the first row, with the time of the row.
func addCell(rows []layout.Row, column string, value []byte) {
	row := &rows[0]
	row.Cells = append(row.Cells, layout.Cell{Family: layout.SchemaFamily, Qualifier: []byte(column), Timestamp: row.Cells[0].Timestamp, Value: value})
	slices.SortStableFunc(row.Cells, order)
}

// MomentValue returns the value of a column that holds a time: RFC 3339 in UTC, with nanoseconds.
func MomentValue(at time.Time) []byte { return []byte(at.UTC().Format(time.RFC3339Nano)) }

// Until returns the time of the last export in the last load of a table. It returns zero if the
// rows do not have it.
func Until(rows []layout.Row, table string) time.Time {
	if at, ok := momentOf(rows, table, UntilColumn); ok {
		return at
	}
	return At(rows, table)
}

// Dated reports whether the rows record the time of the exports separately from the time of the
// cells, for which the mapping may set another time.
func Dated(rows []layout.Row, table string) bool {
	_, dated := momentOf(rows, table, UntilColumn)
	return dated
}

// Unfinished returns the end time of the exports in a table's unfinished load, or zero if no load
// is unfinished.
func Unfinished(rows []layout.Row, table string) time.Time {
	at, _ := momentOf(rows, table, UnfinishedColumn)
	return at
}

// Written reports whether a DynamoDB endpoint may have written to a table since a load. The
// endpoint records this before its first write.
func Written(rows []layout.Row, table string) bool {
	_, written := momentOf(rows, table, WrittenColumn)
	return written
}

// Followed returns the time since which a migration follows a live table into this one, and
// whether one does. An endpoint and a load then must not write items.
func Followed(rows []layout.Row, table string) (since time.Time, ok bool) {
	return momentOf(rows, table, FollowedColumn)
}

// Ended returns the time at which a migration from a live table into this one ended, and whether one
// did. Its items are then newer than those of any load before.
func Ended(rows []layout.Row, table string) (at time.Time, ok bool) {
	return momentOf(rows, table, EndedColumn)
}

// SetContents records in the rows of a table the contents of the loaded source.
func SetContents(rows []layout.Row, contents string) { addCell(rows, ContentsColumn, []byte(contents)) }

// Contents returns the contents of the source of the last load, as SetContents recorded
// them, or "".
func Contents(rows []layout.Row, table string) string { return textOf(rows, table, ContentsColumn) }

// Load returns the id of a load that is running or was interrupted, or "".
func Load(rows []layout.Row, table string) string { return textOf(rows, table, LoadColumn) }

// textOf reads a column of the first row; "" if it is missing.
func textOf(rows []layout.Row, table, column string) string {
	value, _ := columnOf(rows, table, column)
	return string(value)
}

// momentOf reads a column of the first row as a moment; zero if it is not one.
func momentOf(rows []layout.Row, table, column string) (at time.Time, ok bool) {
	value, ok := columnOf(rows, table, column)
	if ok {
		at, _ = time.Parse(time.RFC3339Nano, string(value))
	}
	return at, ok
}

// columnOf reads a column of the first row.
func columnOf(rows []layout.Row, table, column string) (value []byte, ok bool) {
	for _, row := range rows {
		if !slices.Equal(row.Key, layout.SchemaRowPrefix(table)) {
			continue
		}
		for _, c := range row.Cells {
			if string(c.Qualifier) == column {
				return c.Value, true
			}
		}
	}
	return nil, false
}

// Moves finds items that the new mapping lays out in places that differ from the old one's.
type Moves struct{ was, now *layout.Mapping }

// NewMoves returns a Moves that compares the mapping of stored rows with the current mapping.
func NewMoves(was, now *layout.Mapping) (Moves, error) {
	now, err := as(now, was)
	return Moves{was, now}, err
}

// Of describes the part of an item that the current mapping lays out elsewhere or differently: a
// cell, its row, or its entry in an index that both mappings lay out in the same table. It returns
// "" if the item has no such part.
func (v Moves) Of(item attr.Item) string {
	before, err := v.was.Place(item, 0)
	if err != nil {
		return "" // nothing that the mapping laid out
	}
	after, err := v.now.Place(item, 0)
	if err != nil {
		return "the mapping cannot hold it: " + err.Error()
	}
	if what := moved(before, after); what != "" {
		return what
	}
	back, _ := v.was.Returned(item, before)
	for _, x := range v.was.Indexes() {
		i := slices.IndexFunc(v.now.Indexes(), func(o *secondary.Index) bool { return o.TargetTable() == x.TargetTable() })
		if i < 0 {
			continue // no longer read
		}
		before, ok, err := x.Place(back, 0)
		if err != nil || !ok {
			continue
		}
		after, ok, err := v.now.Indexes()[i].Place(back, 0)
		switch {
		case err != nil:
			return fmt.Sprintf("index %s cannot hold it: %v", x.Name(), err)
		case !ok:
			return fmt.Sprintf("it would not be in index %s", x.Name())
		}
		if what := moved(before, after); what != "" {
			return fmt.Sprintf("in index %s, %s", x.Name(), what)
		}
	}
	return ""
}

// moved describes the first difference between two layouts of one item; "" if they are equal.
func moved(before, after lens.Placed) string {
	if !bytes.Equal(before.Row, after.Row) {
		return fmt.Sprintf("it is in row %s, but the mapping expects it in row %s", phrase.Clip(phrase.Column(string(before.Row))), phrase.Clip(phrase.Column(string(after.Row))))
	}
	old, now := sorted(before.Cells), sorted(after.Cells)
	i := 0
	for i < len(old) && i < len(now) && order(old[i], now[i]) == 0 && bytes.Equal(old[i].Value, now[i].Value) {
		i++
	}
	column := func(c layout.Cell) string { return phrase.Clip(c.Family + ":" + phrase.Column(string(c.Qualifier))) }
	switch {
	case i == len(old) && i == len(now):
		return ""
	case i == len(now), i < len(old) && order(old[i], now[i]) < 0:
		return fmt.Sprintf("it has a cell in column %s, which the mapping does not read there", column(old[i]))
	case i == len(old), order(old[i], now[i]) > 0:
		return fmt.Sprintf("it has no cell in column %s, which the mapping reads", column(now[i]))
	}
	return fmt.Sprintf("its cell in column %s does not hold the value that the mapping expects there", column(old[i]))
}

func sorted(cells []layout.Cell) []layout.Cell {
	return slices.SortedFunc(slices.Values(cells), order)
}

func order(a, b layout.Cell) int {
	return cmp.Or(cmp.Compare(a.Family, b.Family), bytes.Compare(a.Qualifier, b.Qualifier), cmp.Compare(a.Timestamp, b.Timestamp))
}
