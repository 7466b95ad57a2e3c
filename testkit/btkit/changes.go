package btkit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tabletop-emu/tabletop/control/lab/changestream"
	"github.com/tabletop-emu/tabletop/internal/cells"
)

// Change is one record of the change stream of a Bigtable table: a write of a row, which
// is atomic, or what a collection of garbage took from it.
//
// https://cloud.google.com/bigtable/docs/reference/data/rpc/google.bigtable.v2#google.bigtable.v2.ReadChangeStreamResponse.DataChange
type Change struct {
	Row     string
	Entries []ChangeEntry // in the order of the request; at least one
	// CommitTime increases with the commits of a row; here, with those of all rows.
	CommitTime time.Time
	GC         bool            // what garbage collection did, and no caller
	Cluster    string          // the id of the cluster that took the write; "" with GC
	Tiebreaker int32           // the larger one wins, of clusters that wrote a cell at one CommitTime
	Partition  ChangePartition // the one in which it was read
	Token      string          // the continuation token to go on behind it in Partition
}

// ChangePartition is the rows from Start up to but not including End, which has no
// bound if it is empty.
type ChangePartition struct{ Start, End string }

// ChangeEntry is one mutation of a record.
type ChangeEntry struct {
	Kind   ChangeKind
	Family string
	Column string // the qualifier; "" with DeleteFamily
	// Timestamp is that of the cell that was stored: of SetCell, AddToCell and
	// MergeToCell.
	Timestamp bigtable.Timestamp
	Value     []byte // of SetCell; of MergeToCell, the state that was merged
	Input     int64  // of AddToCell
	// Start and End are the timestamps of the cells that DeleteCells deletes, End not
	// included and without a bound if 0. Both are 0 for all cells of the column.
	Start, End bigtable.Timestamp
}

// ChangeKind says what a ChangeEntry does.
type ChangeKind uint8

// The kinds of ChangeEntry.
const (
	SetCell     = ChangeKind(changestream.SetCell)
	DeleteCells = ChangeKind(changestream.DeleteCells)
	// DeleteFamily deletes the cells of a family in the row. A row is deleted by
	// one for each family of the table.
	DeleteFamily = ChangeKind(changestream.DeleteFamily)
	AddToCell    = ChangeKind(changestream.AddToCell)
	MergeToCell  = ChangeKind(changestream.MergeToCell)
)

// String returns the record on one line, without its times, cluster and token:
//
//	customer7#0001: o:total @1000 = "42"; delete o:state; delete p
//	customer7#0001 gc: delete o:total [1000, 2000)
func (c Change) String() string {
	texts := make([]string, len(c.Entries))
	for i := range c.Entries {
		texts[i] = c.Entries[i].String()
	}
	origin := ""
	if c.GC {
		origin = " gc"
	}
	return c.Row + origin + ": " + strings.Join(texts, "; ")
}

// String returns the entry in the form of [Env.CheckRow], as Change.String has it.
func (c ChangeEntry) String() string {
	cell := cells.Cell{Family: c.Family, Qualifier: []byte(c.Column), Timestamp: int64(c.Timestamp), Value: c.Value}
	column := strings.TrimSuffix(cellLine(cells.Cell{Family: c.Family, Qualifier: cell.Qualifier}), ` @0 = ""`)
	switch c.Kind {
	case SetCell:
		return cellLine(cell)
	case DeleteCells:
		switch {
		case c.Start == 0 && c.End == 0:
			return "delete " + column
		case c.End == 0:
			return fmt.Sprintf("delete %s [%d, )", column, c.Start)
		}
		return fmt.Sprintf("delete %s [%d, %d)", column, c.Start, c.End)
	case DeleteFamily:
		return "delete " + c.Family
	case AddToCell:
		return fmt.Sprintf("%s @%d + %d", column, c.Timestamp, c.Input)
	case MergeToCell:
		return strings.Replace(cellLine(cell), " = ", " + ", 1)
	}
	return fmt.Sprintf("ChangeKind(%d) of %s", c.Kind, column)
}

// changeOf is a record as it was read.
func changeOf(r *changestream.Record) Change {
	c := Change{
		Row: r.Row, Entries: make([]ChangeEntry, len(r.Entries)), CommitTime: r.CommitTime, GC: r.GC, Cluster: r.Cluster,
		Tiebreaker: r.Tiebreaker, Partition: ChangePartition(r.Partition), Token: r.Token,
	}
	for i, e := range r.Entries {
		c.Entries[i] = ChangeEntry{
			Kind: ChangeKind(e.Kind), Family: e.Family, Column: e.Column, Timestamp: bigtable.Timestamp(e.Timestamp), Value: e.Value, Input: e.Input,
			Start: bigtable.Timestamp(e.Start), End: bigtable.Timestamp(e.End),
		}
	}
	return c
}

// Changes returns all records so far of the change stream of a Bigtable table of the
// environment's instance, by commit time: those of all writes that were acknowledged
// before the call. It reads them over the API, whatever the partitions are and become.
// Records are kept for the stream's retention period of the environment's time.
//
// What a DynamoDB endpoint keeps for itself in the rows of its tables is left out, and
// so are records of nothing else, unless [WithBookkeeping] asks for it. [Env.ReadChanges]
// continues from there.
func (e *Env) Changes(tb testing.TB, table string, opts ...ChangesOption) []Change {
	tb.Helper()
	return e.ReadChanges(tb, table, opts...).Rest()
}
