package value

import (
	"math"
	"unicode/utf8"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
)

// KindField returns the name of the field of a type's kind, as in int64_type; "" without a kind.
func KindField(m *btpb.Type) string {
	r := m.ProtoReflect()
	if f := r.WhichOneof(r.Descriptor().Oneofs().ByName("kind")); f != nil {
		return string(f.Name())
	}
	return ""
}

// FromProto returns the value of a message of type t. Values in arrays, structs and maps may not
// have types of their own.
func FromProto(m *btpb.Value, t Type) (Value, error) {
	if m.GetKind() == nil {
		return Null, nil
	}
	switch t.kind {
	case KindBool:
		if k, ok := m.GetKind().(*btpb.Value_BoolValue); ok {
			return Bool(k.BoolValue), nil
		}
	case KindInt64:
		if k, ok := m.GetKind().(*btpb.Value_IntValue); ok {
			return Int64(k.IntValue), nil
		}
	case KindFloat32, KindFloat64:
		if k, ok := m.GetKind().(*btpb.Value_FloatValue); ok {
			return floatFromProto(k.FloatValue, t)
		}
	case KindString:
		if k, ok := m.GetKind().(*btpb.Value_StringValue); ok {
			if !utf8.ValidString(k.StringValue) {
				return Null, InvalidArgument("a STRING is not valid UTF-8")
			}
			return String(k.StringValue), nil
		}
	case KindBytes:
		if k, ok := m.GetKind().(*btpb.Value_BytesValue); ok {
			return Bytes(k.BytesValue), nil
		}
	case KindDate:
		if k, ok := m.GetKind().(*btpb.Value_DateValue); ok {
			d := k.DateValue
			days, ok := DateOf(int(d.GetYear()), int(d.GetMonth()), int(d.GetDay()))
			if !ok {
				return Null, InvalidArgument("%d-%d-%d is not a DATE", d.GetYear(), d.GetMonth(), d.GetDay())
			}
			return Date(days), nil
		}
	case KindTimestamp:
		if k, ok := m.GetKind().(*btpb.Value_TimestampValue); ok {
			at := k.TimestampValue
			if err := at.CheckValid(); err != nil {
				return Null, InvalidArgument("a TIMESTAMP is outside of the years 1 to 9999")
			}
			return Timestamp(at.GetSeconds()*microsPerSec + int64(at.GetNanos()/1000)), nil
		}
	case KindArray, KindStruct, KindMap:
		if k, ok := m.GetKind().(*btpb.Value_ArrayValue); ok {
			return compositeFromProto(k.ArrayValue.GetValues(), t)
		}
	case KindNone, KindEnum, KindProto, KindCallable: // not types of parameters
	}
	return Null, InvalidArgument("a value of type %v has another kind", t)
}

func floatFromProto(f float64, t Type) (Value, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return Null, InvalidArgument("a %v may not be NaN or infinite", t)
	}
	if t.kind == KindFloat32 {
		if math.Abs(f) > math.MaxFloat32 {
			return Null, InvalidArgument("%g is outside of the range of FLOAT32", f)
		}
		return Float32(float32(f)), nil
	}
	return Float64(f), nil
}

func compositeFromProto(values []*btpb.Value, t Type) (Value, error) {
	for _, m := range values {
		if m.GetType() != nil {
			return Null, InvalidArgument("a value inside of a %v has a type of its own", t.kind)
		}
	}
	switch t.kind { //nolint:exhaustive // of the others, the last case
	case KindArray:
		elems, err := fromArray(values, func(int) Type { return t.Elem() })
		return Array(elems), err
	case KindStruct:
		fields := t.Fields()
		if len(values) != len(fields) {
			return Null, InvalidArgument("a STRUCT has %d values, want %d", len(values), len(fields))
		}
		elems, err := fromArray(values, func(i int) Type { return fields[i].Type })
		return Struct(elems...), err
	default:
		pairs := make([]Value, 0, 2*len(values))
		for _, m := range values {
			entry, ok := m.GetKind().(*btpb.Value_ArrayValue)
			if !ok || len(entry.ArrayValue.GetValues()) != 2 {
				return Null, InvalidArgument("an entry of a MAP must be an array of a key and a value")
			}
			pair, err := compositeFromProto(entry.ArrayValue.GetValues(), StructOf(Field{Type: t.Key()}, Field{Type: t.Elem()}))
			if err != nil {
				return Null, err
			}
			pairs = append(pairs, pair.Elems()...)
		}
		m, _, ok := MapOfPairs(pairs)
		if !ok {
			return Null, InvalidArgument("a MAP has a key twice")
		}
		return m, nil
	}
}

func fromArray(in []*btpb.Value, typeOf func(int) Type) ([]Value, error) {
	out := make([]Value, len(in))
	for i, m := range in {
		var err error
		if out[i], err = FromProto(m, typeOf(i)); err != nil {
			return nil, err
		}
	}
	return out, nil
}
