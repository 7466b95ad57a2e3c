package changes

import (
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/engine"
)

// ParsePartition parses a partition. A nil p means the partition of all keys.
func ParsePartition(field string, p *btpb.StreamPartition) (Partition, error) {
	out := Partition{Start: []byte{}, End: []byte{}}
	switch k := p.GetRowRange().GetStartKey().(type) {
	case nil:
	case *btpb.RowRange_StartKeyClosed:
		out.Start = k.StartKeyClosed
	default:
		return out, refusal.Invalid(field+".row_range", "the start key must be start_key_closed")
	}
	switch k := p.GetRowRange().GetEndKey().(type) {
	case nil:
	case *btpb.RowRange_EndKeyOpen:
		out.End = k.EndKeyOpen
	default:
		return out, refusal.Invalid(field+".row_range", "the end key must be end_key_open")
	}
	if out.Empty() {
		return out, refusal.Invalid(field+".row_range", "start_key must be less than end_key")
	}
	return out, nil
}

// ToPartition converts a partition to its message. It always sets both bounds, even to "", because
// clients read them.
func ToPartition(p Partition) *btpb.StreamPartition {
	return &btpb.StreamPartition{RowRange: &btpb.RowRange{
		StartKey: &btpb.RowRange_StartKeyClosed{StartKeyClosed: p.Start}, EndKey: &btpb.RowRange_EndKeyOpen{EndKeyOpen: p.End},
	}}
}

// ToMutation converts a recorded mutation to a message with the kinds of values that the Java
// client accepts.
func ToMutation(m *engine.Mutation) *btpb.Mutation {
	value := func(b []byte) *btpb.Value { return &btpb.Value{Kind: &btpb.Value_RawValue{RawValue: b}} }
	at := &btpb.Value{Kind: &btpb.Value_RawTimestampMicros{RawTimestampMicros: m.Timestamp}}
	switch m.Kind {
	case engine.SetCell:
		return &btpb.Mutation{Mutation: &btpb.Mutation_SetCell_{SetCell: &btpb.Mutation_SetCell{
			FamilyName: m.Family, ColumnQualifier: m.Qualifier, TimestampMicros: m.Timestamp, Value: m.Value,
		}}}
	case engine.DeleteFromColumn:
		d := &btpb.Mutation_DeleteFromColumn{FamilyName: m.Family, ColumnQualifier: m.Qualifier}
		if m.Start != 0 || m.End != 0 {
			d.TimeRange = &btpb.TimestampRange{StartTimestampMicros: m.Start, EndTimestampMicros: m.End}
		}
		return &btpb.Mutation{Mutation: &btpb.Mutation_DeleteFromColumn_{DeleteFromColumn: d}}
	case engine.AddToCell:
		in := value(m.Value)
		if m.Value == nil {
			in = &btpb.Value{Kind: &btpb.Value_IntValue{IntValue: m.Input}}
		}
		return &btpb.Mutation{Mutation: &btpb.Mutation_AddToCell_{AddToCell: &btpb.Mutation_AddToCell{
			FamilyName: m.Family, ColumnQualifier: value(m.Qualifier), Timestamp: at, Input: in,
		}}}
	case engine.MergeToCell:
		return &btpb.Mutation{Mutation: &btpb.Mutation_MergeToCell_{MergeToCell: &btpb.Mutation_MergeToCell{
			FamilyName: m.Family, ColumnQualifier: value(m.Qualifier), Timestamp: at, Input: value(m.Value),
		}}}
	case engine.DeleteFromFamily, engine.DeleteFromRow: // the latter is never recorded
	}
	return &btpb.Mutation{Mutation: &btpb.Mutation_DeleteFromFamily_{DeleteFromFamily: &btpb.Mutation_DeleteFromFamily{FamilyName: m.Family}}}
}
