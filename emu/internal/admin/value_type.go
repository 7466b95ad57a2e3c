package admin

import (
	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/engine"
)

// Aggregate families. The engine stores the kind of aggregate and accumulates.
// The rest of a family's type, such as the input type, is stored in the
// family's Meta: a btapb.ColumnFamily with only a value_type.

// setValueType validates the value type of a new family and stores it in f. The type must be an
// aggregate, or nil for plain bytes. The rules are in the comments of ColumnFamily.value_type and
// Type.Aggregate.
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

// ValueType returns the type of a family's values, including the state type that the server fills
// in. It returns nil for plain bytes.
func ValueType(f *engine.Family) *btapb.Type {
	if len(f.Meta) == 0 {
		return nil
	}
	meta := &btapb.ColumnFamily{}
	if err := proto.Unmarshal(f.Meta, meta); err != nil {
		// Only this package writes Meta.
		return nil
	}
	return meta.GetValueType()
}

// checkSameAggregate rejects a type other than the aggregate type of f.
func checkSameAggregate(f *engine.Family, field string, asked *btapb.Type) error {
	var want engine.Family
	if err := setValueType(&want, field+".value_type", asked); err != nil {
		return err
	}
	if want.Aggregate != f.Aggregate || !proto.Equal(ValueType(&want), ValueType(f)) {
		return refusal.ImmutableValueType()
	}
	return nil
}

// changeValueType changes the value type of family from, and stores it in to. For a family
// without an aggregate type, it sets or clears the type, which only describes the values. An
// aggregate type cannot be changed, added or removed; the official Go client's tests show both.
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

func scalarWithEncoding(t *btapb.Type) bool {
	switch k := t.GetKind().(type) {
	case *btapb.Type_BytesType:
		return k.BytesType.GetEncoding().GetEncoding() != nil
	case *btapb.Type_StringType:
		return k.StringType.GetEncoding().GetEncoding() != nil
	case *btapb.Type_Int64Type:
		return k.Int64Type.GetEncoding().GetEncoding() != nil
	case *btapb.Type_TimestampType:
		return k.TimestampType.GetEncoding().GetUnixMicrosInt64().GetEncoding() != nil
	}
	return false
}
