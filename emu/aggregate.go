package emu

import (
	"encoding/binary"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/engine"
)

// Aggregate families. The engine accumulates; what the API says of a family's
// type beyond the kind of aggregate, such as the type of the inputs, is kept
// in the family's Meta: a btapb.ColumnFamily with a value_type alone.

// stateBytes is the length of the state of a sum, minimum or maximum.
const stateBytes = 8

// setValueType validates the value type of a family to be created and enters
// it in f. It is an aggregate, or unset for plain bytes: the rules are those of
// ColumnFamily.value_type and Type.Aggregate in the protos.
func setValueType(f *engine.Family, field string, vt *btapb.Type) error {
	if vt == nil {
		return nil
	}
	agg := vt.GetAggregateType()
	if agg == nil {
		return refusal.Invalid(field, "only aggregate_type can be set")
	}
	field += ".aggregate_type"
	var state *btapb.Type
	switch in := agg.GetInputType().GetKind().(type) {
	case *btapb.Type_Int64Type:
		if in.Int64Type.GetEncoding().GetBigEndianBytes() == nil {
			return refusal.Invalid(field+".input_type", "an int64 must have the encoding big_endian_bytes")
		}
		state = &btapb.Type{Kind: &btapb.Type_Int64Type{Int64Type: &btapb.Type_Int64{Encoding: &btapb.Type_Int64_Encoding{
			Encoding: &btapb.Type_Int64_Encoding_BigEndianBytes_{BigEndianBytes: &btapb.Type_Int64_Encoding_BigEndianBytes{}},
		}}}}
	case *btapb.Type_BytesType:
		if in.BytesType.GetEncoding().GetRaw() == nil {
			return refusal.Invalid(field+".input_type", "bytes must have the encoding raw")
		}
	case *btapb.Type_StringType:
		if in.StringType.GetEncoding().GetUtf8Bytes() == nil {
			return refusal.Invalid(field+".input_type", "a string must have the encoding utf8_bytes")
		}
	default:
		return refusal.Invalid(field+".input_type", "expected int64_type, or bytes_type or string_type for hllpp_unique_count")
	}
	switch agg.GetAggregator().(type) {
	case *btapb.Type_Aggregate_Sum_:
		f.Aggregate = engine.AggregateSum
	case *btapb.Type_Aggregate_Min_:
		f.Aggregate = engine.AggregateMin
	case *btapb.Type_Aggregate_Max_:
		f.Aggregate = engine.AggregateMax
	case *btapb.Type_Aggregate_HllppUniqueCount:
		f.Aggregate = engine.AggregateHLL
		state = &btapb.Type{Kind: &btapb.Type_BytesType{BytesType: &btapb.Type_Bytes{Encoding: &btapb.Type_Bytes_Encoding{
			Encoding: &btapb.Type_Bytes_Encoding_Raw_{Raw: &btapb.Type_Bytes_Encoding_Raw{}},
		}}}}
	default:
		return refusal.Invalid(field, "no aggregator is set; expected sum, min, max or hllpp_unique_count")
	}
	if state == nil {
		return refusal.Invalid(field+".input_type", "sum, min and max take int64_type")
	}
	stored := &btapb.Type{Kind: &btapb.Type_AggregateType{AggregateType: &btapb.Type_Aggregate{
		InputType: agg.GetInputType(), Aggregator: agg.GetAggregator(), StateType: state,
	}}}
	var err error
	f.Meta, err = proto.MarshalOptions{Deterministic: true}.Marshal(&btapb.ColumnFamily{ValueType: stored})
	return refusal.Of(err)
}

// valueType is the type of a family's values, with the state type that the
// server fills in; nil for plain bytes.
func valueType(f *engine.Family) *btapb.Type {
	if len(f.Meta) == 0 {
		return nil
	}
	meta := &btapb.ColumnFamily{}
	if err := proto.Unmarshal(f.Meta, meta); err != nil {
		// Only this package writes it.
		return nil
	}
	return meta.GetValueType()
}

// checkSameAggregate refuses a type that is not the one the aggregate f has.
func checkSameAggregate(f *engine.Family, field string, asked *btapb.Type) error {
	var want engine.Family
	if err := setValueType(&want, field+".value_type", asked); err != nil {
		return err
	}
	if want.Aggregate != f.Aggregate || !proto.Equal(valueType(&want), valueType(f)) {
		return refusal.ImmutableValueType()
	}
	return nil
}

// changeValueType gives a family that is no aggregate another type, which only
// says how its values are meant to be read, or none. What is an aggregate stays
// one and nothing becomes one; the official Go client's tests show both.
func changeValueType(to, from *engine.Family, field string, asked *btapb.Type) error {
	switch {
	case from.Aggregate != engine.NoAggregate && asked.GetAggregateType() != nil:
		return checkSameAggregate(from, field, asked)
	case from.Aggregate != engine.NoAggregate, asked.GetAggregateType() != nil:
		return refusal.ImmutableValueType()
	case asked == nil:
		to.Meta = nil
		return nil
	case !scalarWithEncoding(asked):
		return refusal.Invalid(field+".value_type", "expected a bytes, string, int64 or timestamp type with an encoding")
	}
	var err error
	to.Meta, err = proto.MarshalOptions{Deterministic: true}.Marshal(&btapb.ColumnFamily{ValueType: asked})
	return refusal.Of(err)
}

// addToCell validates an input to a cell of an aggregate family and converts
// it.
func (s *Server) addToCell(t *engine.Table, field string, m *btpb.Mutation_AddToCell, origin btpb.Mutation_TimestampOrigin) (engine.Mutation, error) {
	out, f, err := s.aggregateCell(t, field, engine.AddToCell, m, origin)
	if err != nil {
		return out, err
	}
	field += ".input"
	in := m.GetInput()
	switch valueType(f).GetAggregateType().GetInputType().GetKind().(type) {
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
	return out, s.checkValue(field, out.Value)
}

// mergeToCell validates a state to be merged into a cell of an aggregate
// family and converts it. Merging NULL has no effect.
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
	return out, s.checkValue(field, out.Value)
}

// aggregateCell converts what AddToCell and MergeToCell have in common, and
// returns the family, which is an aggregate.
func (s *Server) aggregateCell(t *engine.Table, field string, kind engine.MutationKind, m interface {
	GetFamilyName() string
	GetColumnQualifier() *btpb.Value
	GetTimestamp() *btpb.Value
}, origin btpb.Mutation_TimestampOrigin,
) (engine.Mutation, *engine.Family, error) {
	out := engine.Mutation{Kind: kind, Family: m.GetFamilyName()}
	f, err := family(t, out.Family)
	if err != nil {
		return out, nil, err
	}
	if f.Aggregate == engine.NoAggregate {
		return out, nil, refusal.Invalid(field+".family_name", "%q is not an aggregate family", out.Family)
	}
	q, ok := m.GetColumnQualifier().GetKind().(*btpb.Value_RawValue)
	if !ok || m.GetColumnQualifier().GetType() != nil {
		return out, nil, refusal.Invalid(field+".column_qualifier", "must be a raw_value without a type")
	}
	out.Qualifier = q.RawValue
	if err := s.checkQualifier(field+".column_qualifier", out.Qualifier); err != nil {
		return out, nil, err
	}
	ts, ok := m.GetTimestamp().GetKind().(*btpb.Value_RawTimestampMicros)
	if !ok || m.GetTimestamp().GetType() != nil {
		return out, nil, refusal.Invalid(field+".timestamp", "must be a raw_timestamp_micros without a type")
	}
	if out.Timestamp = ts.RawTimestampMicros; out.Timestamp < 0 {
		// The server's time would give each input a cell of its own.
		return out, nil, refusal.Invalid(field+".timestamp", "%d is negative", out.Timestamp)
	}
	out.Timestamp, err = granular(t, out.Timestamp, origin)
	return out, f, err
}

// intValue reads an int64, typed or encoded.
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
		return 0, refusal.Invalid(field, "%d bytes are no int64, which has %d", len(b), stateBytes)
	}
	return int64(binary.BigEndian.Uint64(b)), nil
}

// bytesValue reads bytes, typed or not; they are never nil.
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
