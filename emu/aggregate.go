package emu

import (
	"encoding/binary"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/emu/internal/admin"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/engine"
)

// stateBytes is the state size of a sum, minimum or maximum.
const stateBytes = 8

// addToCell validates and converts an input to a cell of an aggregate family.
func (s *Server) addToCell(t *engine.Table, field string, m *btpb.Mutation_AddToCell, origin btpb.Mutation_TimestampOrigin) (engine.Mutation, error) {
	out, f, err := s.aggregateCell(t, field, engine.AddToCell, m, origin)
	if err != nil {
		return out, err
	}
	field += ".input"
	in := m.GetInput()
	switch admin.ValueType(f).GetAggregateType().GetInputType().GetKind().(type) {
	case *btapb.Type_Int64Type:
		out.Input, err = intValue(field, in)
	case *btapb.Type_StringType:
		v, ok := in.GetKind().(*btpb.Value_StringValue)
		if !ok {
			return out, refusal.Invalid(field, "family %q takes a string_value", f.Name)
		}
		out.Value = []byte(v.StringValue)
	default:
		out.Value, err = bytesValue(field, in)
	}
	if err != nil {
		return out, err
	}
	return out, s.limits.CheckValue(field, out.Value)
}

// mergeToCell validates and converts a state to merge into a cell of an aggregate family.
// Merging NULL has no effect.
func (s *Server) mergeToCell(t *engine.Table, field string, m *btpb.Mutation_MergeToCell, origin btpb.Mutation_TimestampOrigin) (engine.Mutation, error) {
	out, f, err := s.aggregateCell(t, field, engine.MergeToCell, m, origin)
	if err != nil {
		return out, err
	}
	field += ".input"
	in := m.GetInput()
	switch {
	case in == nil:
		return out, refusal.Invalid(field, "must be set")
	case in.GetKind() == nil: // NULL
		return out, nil
	case f.Aggregate == engine.AggregateHLL:
		out.Value, err = bytesValue(field, in)
	default:
		var n int64
		n, err = intValue(field, in)
		out.Value = binary.BigEndian.AppendUint64(nil, uint64(n))
	}
	if err != nil {
		return out, err
	}
	return out, s.limits.CheckValue(field, out.Value)
}

// aggregateCell converts the common fields of AddToCell and MergeToCell, and returns the
// aggregate family.
func (s *Server) aggregateCell(t *engine.Table, field string, kind engine.MutationKind, m interface {
	GetFamilyName() string
	GetColumnQualifier() *btpb.Value
	GetTimestamp() *btpb.Value
}, origin btpb.Mutation_TimestampOrigin,
) (engine.Mutation, *engine.Family, error) {
	f, err := admin.FindFamily(t, m.GetFamilyName())
	if err != nil {
		return engine.Mutation{}, nil, err
	}
	out := engine.Mutation{Kind: kind, Family: f.Name, Ordinal: f.Ordinal}
	if f.Aggregate == engine.NoAggregate {
		return out, nil, refusal.Invalid(field+".family_name", "%q is not an aggregate family", out.Family)
	}
	q, ok := m.GetColumnQualifier().GetKind().(*btpb.Value_RawValue)
	if !ok || m.GetColumnQualifier().GetType() != nil {
		return out, nil, refusal.Invalid(field+".column_qualifier", "must be a raw_value without a type")
	}
	out.Qualifier = q.RawValue
	if err := s.limits.CheckQualifier(field+".column_qualifier", out.Qualifier); err != nil {
		return out, nil, err
	}
	ts, ok := m.GetTimestamp().GetKind().(*btpb.Value_RawTimestampMicros)
	if !ok || m.GetTimestamp().GetType() != nil {
		return out, nil, refusal.Invalid(field+".timestamp", "must be a raw_timestamp_micros without a type")
	}
	if out.Timestamp = ts.RawTimestampMicros; out.Timestamp < 0 {
		// With the server's time, each input would have its own cell.
		return out, nil, refusal.Invalid(field+".timestamp", "%d is negative", out.Timestamp)
	}
	out.Timestamp, err = granular(t, out.Timestamp, origin)
	return out, f, err
}

// intValue decodes a typed or encoded int64.
func intValue(field string, v *btpb.Value) (int64, error) {
	switch k := v.GetKind().(type) {
	case *btpb.Value_IntValue:
		return k.IntValue, nil
	case *btpb.Value_RawValue:
		return encodedInt(field, k.RawValue)
	case *btpb.Value_BytesValue:
		return encodedInt(field, k.BytesValue)
	}
	return 0, refusal.Invalid(field, "must be an int64: an int_value, or a raw_value of %d bytes, big-endian", stateBytes)
}

func encodedInt(field string, b []byte) (int64, error) {
	if len(b) != stateBytes {
		return 0, refusal.Invalid(field, "must be an int64 of %[2]d bytes, but has %[1]d", len(b), stateBytes)
	}
	return int64(binary.BigEndian.Uint64(b)), nil
}

// bytesValue decodes typed or raw bytes; the result is never nil.
func bytesValue(field string, v *btpb.Value) ([]byte, error) {
	var b []byte
	switch k := v.GetKind().(type) {
	case *btpb.Value_BytesValue:
		b = k.BytesValue
	case *btpb.Value_RawValue:
		b = k.RawValue
	default:
		return nil, refusal.Invalid(field, "must be a bytes_value or a raw_value")
	}
	if b == nil {
		b = []byte{}
	}
	return b, nil
}
