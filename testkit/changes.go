package testkit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
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
	SetCell ChangeKind = iota + 1
	DeleteCells
	// DeleteFamily deletes the cells of a family in the row. A row is deleted by
	// one for each family of the table.
	DeleteFamily
	AddToCell
	MergeToCell
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
	cell := layout.Cell{Family: c.Family, Qualifier: []byte(c.Column), Timestamp: int64(c.Timestamp), Value: c.Value}
	column := strings.TrimSuffix(cellLine(layout.Cell{Family: c.Family, Qualifier: cell.Qualifier}), ` @0 = ""`)
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

// bookkeeping tells whether a family is one that the DynamoDB door keeps for itself.
func bookkeeping(family string) bool {
	return family == lens.FamilyState || family == lens.FamilyTypes || family == lens.FamilyTombstone
}

// Changes returns all records so far of the change stream of a Bigtable table of the
// environment's instance, by commit time: those of all writes that were acknowledged
// before the call. It reads them over the API, whatever the partitions are and become.
// Records are kept for the stream's retention period of the environment's time.
//
// What the DynamoDB door keeps for itself in the rows of its tables is left out, and
// so are records of nothing else, unless [WithBookkeeping] asks for it. To read on from
// there see [Env.ReadChanges]; the streams of DynamoDB are read by [Env.StreamRecords].
func (e *Env) Changes(tb testing.TB, table string, opts ...ChangesOption) []Change {
	tb.Helper()
	return e.ReadChanges(tb, table, opts...).Rest()
}

// decodeEntry decodes a mutation as it comes in a record.
func decodeEntry(m *btpb.Mutation) (ChangeEntry, error) {
	switch k := m.GetMutation().(type) {
	case *btpb.Mutation_SetCell_:
		s := k.SetCell
		return ChangeEntry{
			Kind: SetCell, Family: s.GetFamilyName(), Column: string(s.GetColumnQualifier()),
			Timestamp: bigtable.Timestamp(s.GetTimestampMicros()), Value: s.GetValue(),
		}, nil
	case *btpb.Mutation_DeleteFromColumn_:
		d := k.DeleteFromColumn
		return ChangeEntry{
			Kind: DeleteCells, Family: d.GetFamilyName(), Column: string(d.GetColumnQualifier()),
			Start: bigtable.Timestamp(d.GetTimeRange().GetStartTimestampMicros()), End: bigtable.Timestamp(d.GetTimeRange().GetEndTimestampMicros()),
		}, nil
	case *btpb.Mutation_DeleteFromFamily_:
		return ChangeEntry{Kind: DeleteFamily, Family: k.DeleteFromFamily.GetFamilyName()}, nil
	case *btpb.Mutation_AddToCell_:
		a := k.AddToCell
		return ChangeEntry{
			Kind: AddToCell, Family: a.GetFamilyName(), Column: string(a.GetColumnQualifier().GetRawValue()),
			Timestamp: bigtable.Timestamp(a.GetTimestamp().GetRawTimestampMicros()), Input: a.GetInput().GetIntValue(),
		}, nil
	case *btpb.Mutation_MergeToCell_:
		g := k.MergeToCell
		return ChangeEntry{
			Kind: MergeToCell, Family: g.GetFamilyName(), Column: string(g.GetColumnQualifier().GetRawValue()),
			Timestamp: bigtable.Timestamp(g.GetTimestamp().GetRawTimestampMicros()), Value: g.GetInput().GetRawValue(),
		}, nil
	}
	return ChangeEntry{}, fmt.Errorf("a record with a mutation that is not known: %v", m)
}
