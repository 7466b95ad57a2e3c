package value

import (
	"math"
	"slices"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/genproto/googleapis/type/date"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Proto returns the message of a type, without encodings.
func (t Type) Proto() *btpb.Type {
	switch t.kind {
	case KindBool:
		return &btpb.Type{Kind: &btpb.Type_BoolType{BoolType: &btpb.Type_Bool{}}}
	case KindInt64:
		return &btpb.Type{Kind: &btpb.Type_Int64Type{Int64Type: &btpb.Type_Int64{}}}
	case KindFloat32:
		return &btpb.Type{Kind: &btpb.Type_Float32Type{Float32Type: &btpb.Type_Float32{}}}
	case KindFloat64:
		return &btpb.Type{Kind: &btpb.Type_Float64Type{Float64Type: &btpb.Type_Float64{}}}
	case KindString:
		return &btpb.Type{Kind: &btpb.Type_StringType{StringType: &btpb.Type_String{}}}
	case KindBytes:
		return &btpb.Type{Kind: &btpb.Type_BytesType{BytesType: &btpb.Type_Bytes{}}}
	case KindDate:
		return &btpb.Type{Kind: &btpb.Type_DateType{DateType: &btpb.Type_Date{}}}
	case KindTimestamp:
		return &btpb.Type{Kind: &btpb.Type_TimestampType{TimestampType: &btpb.Type_Timestamp{}}}
	case KindArray:
		return &btpb.Type{Kind: &btpb.Type_ArrayType{ArrayType: &btpb.Type_Array{ElementType: t.Elem().Proto()}}}
	case KindStruct:
		s := &btpb.Type_Struct{}
		for _, f := range t.Fields() {
			s.Fields = append(s.Fields, &btpb.Type_Struct_Field{FieldName: f.Name, Type: f.Type.Proto()})
		}
		return &btpb.Type{Kind: &btpb.Type_StructType{StructType: s}}
	case KindMap:
		return &btpb.Type{Kind: &btpb.Type_MapType{MapType: &btpb.Type_Map{KeyType: t.Key().Proto(), ValueType: t.Elem().Proto()}}}
	case KindEnum:
		bundle, name := t.Name()
		return &btpb.Type{Kind: &btpb.Type_EnumType{EnumType: &btpb.Type_Enum{SchemaBundleId: bundle, EnumName: name}}}
	case KindProto:
		bundle, name := t.Name()
		return &btpb.Type{Kind: &btpb.Type_ProtoType{ProtoType: &btpb.Type_Proto{SchemaBundleId: bundle, MessageName: name}}}
	case KindNone, KindCallable:
	}
	return &btpb.Type{}
}

// maxTypeDepth bounds the nesting of types in messages, which clients send.
const maxTypeDepth = 15

// TypeFromProto returns the type of a parameter. It ignores encodings.
func TypeFromProto(m *btpb.Type) (Type, error) { return typeFromProto(m, maxTypeDepth) }

func typeFromProto(m *btpb.Type, depth int) (Type, error) {
	if depth == 0 {
		return Type{}, InvalidArgument("a type has more than %d levels", maxTypeDepth)
	}
	switch k := m.GetKind().(type) {
	case *btpb.Type_BoolType:
		return BoolType, nil
	case *btpb.Type_Int64Type:
		return Int64Type, nil
	case *btpb.Type_Float32Type:
		return Float32Type, nil
	case *btpb.Type_Float64Type:
		return Float64Type, nil
	case *btpb.Type_StringType:
		return StringType, nil
	case *btpb.Type_BytesType:
		return BytesType, nil
	case *btpb.Type_DateType:
		return DateType, nil
	case *btpb.Type_TimestampType:
		return TimestampType, nil
	case *btpb.Type_ArrayType:
		elem, err := typeFromProto(k.ArrayType.GetElementType(), depth-1)
		if err == nil && elem.kind == KindArray {
			err = InvalidArgument("an array cannot contain arrays")
		}
		return ArrayOf(elem), err
	case *btpb.Type_StructType:
		var fields []Field
		for _, f := range k.StructType.GetFields() {
			t, err := typeFromProto(f.GetType(), depth-1)
			if err != nil {
				return Type{}, err
			}
			fields = append(fields, Field{f.GetFieldName(), t})
		}
		return StructOf(fields...), nil
	case *btpb.Type_MapType:
		key, err := typeFromProto(k.MapType.GetKeyType(), depth-1)
		if err != nil {
			return Type{}, err
		}
		switch key.kind { //nolint:exhaustive // the API allows these keys alone
		case KindBytes, KindString, KindInt64:
		default:
			return Type{}, InvalidArgument("a key of a map must be BYTES, STRING or INT64, not %v", key)
		}
		elem, err := typeFromProto(k.MapType.GetValueType(), depth-1)
		return MapOf(key, elem), err
	case *btpb.Type_EnumType, *btpb.Type_ProtoType:
		return Type{}, InvalidArgument("a parameter cannot be a PROTO or an ENUM")
	default:
		return Type{}, InvalidArgument("a type without a kind that SQL supports")
	}
}

// ToProto returns the message of a value of type t. NaN and infinity have no message.
func ToProto(v Value, t Type) (*btpb.Value, error) {
	if v.IsNull() {
		return &btpb.Value{}, nil
	}
	switch t.kind {
	case KindBool:
		return &btpb.Value{Kind: &btpb.Value_BoolValue{BoolValue: v.Bool()}}, nil
	case KindInt64, KindEnum:
		return &btpb.Value{Kind: &btpb.Value_IntValue{IntValue: v.Int64()}}, nil
	case KindFloat32, KindFloat64:
		f := v.Float64()
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, OutOfRange("a result may not be %s", FloatText(v))
		}
		return &btpb.Value{Kind: &btpb.Value_FloatValue{FloatValue: f}}, nil
	case KindString:
		return &btpb.Value{Kind: &btpb.Value_StringValue{StringValue: v.s}}, nil
	case KindBytes, KindProto:
		return &btpb.Value{Kind: &btpb.Value_BytesValue{BytesValue: v.Bytes()}}, nil
	case KindDate:
		y, m, d := TimeOfDate(v.Int64()).Date()
		return &btpb.Value{Kind: &btpb.Value_DateValue{DateValue: &date.Date{Year: int32(y), Month: int32(m), Day: int32(d)}}}, nil
	case KindTimestamp:
		n := v.Int64()
		seconds, micros := n/microsPerSec, n%microsPerSec
		if micros < 0 {
			seconds, micros = seconds-1, micros+microsPerSec
		}
		return &btpb.Value{Kind: &btpb.Value_TimestampValue{TimestampValue: &timestamppb.Timestamp{Seconds: seconds, Nanos: int32(micros) * 1000}}}, nil
	case KindArray:
		return toArray(v.Elems(), func(int) Type { return t.Elem() })
	case KindStruct:
		fields := t.Fields()
		if len(fields) != len(v.Elems()) {
			return nil, InvalidArgument("a STRUCT has %d fields, want %d", len(v.Elems()), len(fields))
		}
		return toArray(v.Elems(), func(i int) Type { return fields[i].Type })
	case KindMap:
		pairs := v.Elems()
		entries := make([]*btpb.Value, 0, len(pairs)/2)
		for ; len(pairs) > 1; pairs = pairs[2:] {
			entry, err := toArray(pairs[:2], func(i int) Type {
				if i == 0 {
					return t.Key()
				}
				return t.Elem()
			})
			if err != nil {
				return nil, err
			}
			entries = append(entries, entry)
		}
		return &btpb.Value{Kind: &btpb.Value_ArrayValue{ArrayValue: &btpb.ArrayValue{Values: entries}}}, nil
	case KindNone, KindCallable:
	}
	return nil, InvalidArgument("a result of type %v has no message", t)
}

// Numbers of the fields of a Value and of its ArrayValue.
const (
	bytesField, stringField, arrayField, intField, boolField, floatField = 2, 3, 4, 6, 10, 11
	elemField                                                            = 1
)

// AppendProto appends a field that contains the encoded message that ToProto returns for v. For
// the usual types, it encodes v without making that message.
func AppendProto(dst []byte, field protowire.Number, v Value, t Type) ([]byte, error) {
	dst = protowire.AppendTag(dst, field, protowire.BytesType)
	from := len(dst)
	dst = append(dst, 0) // the length of a short message
	dst, err := appendValue(dst, v, t)
	return withLength(dst, from), err
}

// withLength sets the length of the message that begins after dst[from], a byte that is reserved
// for the length. It moves the message for a longer length.
func withLength(dst []byte, from int) []byte {
	n := len(dst) - from - 1
	if n < 1<<7 {
		dst[from] = byte(n)
		return dst
	}
	more := protowire.SizeVarint(uint64(n)) - 1
	dst = slices.Insert(dst, from, make([]byte, more)...)
	protowire.AppendVarint(dst[:from], uint64(n))
	return dst
}

func appendValue(dst []byte, v Value, t Type) ([]byte, error) {
	if v.IsNull() {
		return dst, nil
	}
	switch t.kind {
	case KindBool, KindInt64, KindEnum:
		field := protowire.Number(intField)
		if t.kind == KindBool {
			field = boolField
		}
		return protowire.AppendVarint(protowire.AppendTag(dst, field, protowire.VarintType), v.n), nil
	case KindString:
		return protowire.AppendString(protowire.AppendTag(dst, stringField, protowire.BytesType), v.s), nil
	case KindBytes, KindProto:
		return protowire.AppendString(protowire.AppendTag(dst, bytesField, protowire.BytesType), v.s), nil
	case KindFloat32, KindFloat64:
		if !math.IsNaN(v.Float64()) && !math.IsInf(v.Float64(), 0) {
			return protowire.AppendFixed64(protowire.AppendTag(dst, floatField, protowire.Fixed64Type), v.n), nil
		}
	case KindArray:
		return appendArray(dst, v.Len(), func(dst []byte, i int) ([]byte, error) {
			return AppendProto(dst, elemField, v.c.elems[i], t.Elem())
		})
	case KindMap:
		return appendArray(dst, v.Len(), func(dst []byte, i int) ([]byte, error) {
			dst = protowire.AppendTag(dst, elemField, protowire.BytesType)
			from := len(dst)
			dst, err := appendArray(append(dst, 0), 2, func(dst []byte, part int) ([]byte, error) {
				return AppendProto(dst, elemField, v.c.elems[2*i+part], []Type{t.Key(), t.Elem()}[part])
			})
			return withLength(dst, from), err
		})
	case KindStruct:
		if len(v.Elems()) == len(t.Fields()) {
			return appendArray(dst, v.Len(), func(dst []byte, i int) ([]byte, error) {
				return AppendProto(dst, elemField, v.c.elems[i], t.Fields()[i].Type)
			})
		}
	case KindDate, KindTimestamp, KindNone, KindCallable:
	}
	m, err := ToProto(v, t)
	if err != nil {
		return dst, err
	}
	return proto.MarshalOptions{}.MarshalAppend(dst, m)
}

// appendArray appends n elements.
func appendArray(dst []byte, n int, add func(dst []byte, i int) ([]byte, error)) ([]byte, error) {
	dst = protowire.AppendTag(dst, arrayField, protowire.BytesType)
	from := len(dst)
	dst = append(dst, 0)
	for i := range n {
		var err error
		if dst, err = add(dst, i); err != nil {
			return dst, err
		}
	}
	return withLength(dst, from), nil
}

func toArray(in []Value, typeOf func(int) Type) (*btpb.Value, error) {
	out := make([]*btpb.Value, len(in))
	for i, v := range in {
		var err error
		if out[i], err = ToProto(v, typeOf(i)); err != nil {
			return nil, err
		}
	}
	return &btpb.Value{Kind: &btpb.Value_ArrayValue{ArrayValue: &btpb.ArrayValue{Values: out}}}, nil
}
