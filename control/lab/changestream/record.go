package changestream

import (
	"fmt"
	"slices"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// Record is a record of a change stream: an atomic write to a row, or the removal of cells of a row
// by garbage collection.
//
// https://cloud.google.com/bigtable/docs/reference/data/rpc/google.bigtable.v2#google.bigtable.v2.ReadChangeStreamResponse.DataChange
type Record struct {
	Row     string
	Entries []Entry // in the order of the request; at least one
	// CommitTime increases with each commit: in the service, with each commit to the same row;
	// here, with each commit to any row.
	CommitTime time.Time
	GC         bool      // the change was made by garbage collection, not by a caller
	Cluster    string    // the id of the cluster that received the write; "" with GC
	Tiebreaker int32     // if clusters wrote a cell at the same CommitTime, the larger one wins
	Partition  Partition // the partition from which the record was read
	Token      string    // the continuation token in Partition after the record
}

// Partition is the range of rows from Start up to but not including End. An empty End means no
// bound.
type Partition struct{ Start, End string }

// Entry is one mutation of a record. Times are in microseconds.
type Entry struct {
	Kind      Kind
	Family    string
	Column    string // the qualifier; "" with DeleteFamily
	Timestamp int64  // of the stored cell, for SetCell, AddToCell and MergeToCell
	Value     []byte // the value of SetCell, or the state that MergeToCell merged
	Input     int64  // the input of AddToCell
	// Start and End bound the timestamps of the cells that DeleteCells deletes. End is exclusive; 0
	// means no bound. If all cells of the column are deleted, both are 0.
	Start, End int64
}

// Kind is the kind of an Entry.
type Kind uint8

// These are the kinds of Entry.
const (
	SetCell Kind = iota + 1
	DeleteCells
	// DeleteFamily deletes the cells of a family in the row. The deletion of a row has one such
	// entry per family of the table.
	DeleteFamily
	AddToCell
	MergeToCell
)

// Bookkeeping reports whether the entry changes a cell that is not part of an item. The
// families of such cells are _f and _x of the DynamoDB endpoint, _m of a migration, and _t of
// types.
func (e Entry) Bookkeeping() bool {
	return lens.Bookkeeping(e.Family) || e.Family == lens.FamilyTypes
}

// size returns the bytes of the record that count towards Reader.Bytes.
func (r *Record) size() int {
	n := len(r.Row)
	for _, e := range r.Entries {
		n += len(e.Column) + len(e.Value)
	}
	return n
}

// addTo adds a message to its record: r, or a new one if that is nil.
func addTo(r *Record, m *btpb.ReadChangeStreamResponse_DataChange) (*Record, error) {
	if r == nil {
		r = &Record{
			Row: string(m.GetRowKey()), CommitTime: m.GetCommitTimestamp().AsTime(), Cluster: m.GetSourceClusterId(), Tiebreaker: m.GetTiebreaker(),
			GC: m.GetType() == btpb.ReadChangeStreamResponse_DataChange_GARBAGE_COLLECTION,
		}
	}
	r.Token = m.GetToken()
	for _, chunk := range m.GetChunks() {
		if chunk.GetChunkInfo().GetChunkedValueOffset() > 0 { // the value continues
			last := &r.Entries[len(r.Entries)-1]
			last.Value = append(last.Value, chunk.GetMutation().GetSetCell().GetValue()...)
			continue
		}
		entry, err := entryOf(chunk.GetMutation())
		if err != nil {
			return nil, err
		}
		r.Entries = append(r.Entries, entry)
	}
	return r, nil
}

// entryOf decodes a mutation of a record.
func entryOf(m *btpb.Mutation) (Entry, error) {
	switch k := m.GetMutation().(type) {
	case *btpb.Mutation_SetCell_:
		s := k.SetCell
		return Entry{
			Kind: SetCell, Family: s.GetFamilyName(), Column: string(s.GetColumnQualifier()),
			Timestamp: s.GetTimestampMicros(), Value: s.GetValue(),
		}, nil
	case *btpb.Mutation_DeleteFromColumn_:
		d := k.DeleteFromColumn
		return Entry{
			Kind: DeleteCells, Family: d.GetFamilyName(), Column: string(d.GetColumnQualifier()),
			Start: d.GetTimeRange().GetStartTimestampMicros(), End: d.GetTimeRange().GetEndTimestampMicros(),
		}, nil
	case *btpb.Mutation_DeleteFromFamily_:
		return Entry{Kind: DeleteFamily, Family: k.DeleteFromFamily.GetFamilyName()}, nil
	case *btpb.Mutation_AddToCell_:
		a := k.AddToCell
		return Entry{
			Kind: AddToCell, Family: a.GetFamilyName(), Column: string(a.GetColumnQualifier().GetRawValue()),
			Timestamp: a.GetTimestamp().GetRawTimestampMicros(), Input: a.GetInput().GetIntValue(),
		}, nil
	case *btpb.Mutation_MergeToCell_:
		g := k.MergeToCell
		return Entry{
			Kind: MergeToCell, Family: g.GetFamilyName(), Column: string(g.GetColumnQualifier().GetRawValue()),
			Timestamp: g.GetTimestamp().GetRawTimestampMicros(), Value: g.GetInput().GetRawValue(),
		}, nil
	}
	return Entry{}, fmt.Errorf("a record has an unknown mutation: %v", m)
}

// DropBookkeeping removes the entries that change bookkeeping cells, and reports whether any other
// entry remains.
func (r *Record) DropBookkeeping() bool {
	r.Entries = slices.DeleteFunc(r.Entries, Entry.Bookkeeping)
	return len(r.Entries) > 0
}
