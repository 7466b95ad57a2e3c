package sqlclient

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
)

// TypeText writes a type, such as MAP<BYTES, BYTES>.
func TypeText(t *btpb.Type) string {
	switch k := t.GetKind().(type) {
	case *btpb.Type_ArrayType:
		return "ARRAY<" + TypeText(k.ArrayType.GetElementType()) + ">"
	case *btpb.Type_MapType:
		return "MAP<" + TypeText(k.MapType.GetKeyType()) + ", " + TypeText(k.MapType.GetValueType()) + ">"
	case *btpb.Type_StructType:
		var fields []string
		for _, f := range k.StructType.GetFields() {
			fields = append(fields, strings.TrimSpace(f.GetFieldName()+" "+TypeText(f.GetType())))
		}
		return "STRUCT<" + strings.Join(fields, ", ") + ">"
	default:
		f := t.ProtoReflect().WhichOneof(t.ProtoReflect().Descriptor().Oneofs().ByName("kind"))
		if f == nil {
			return "?"
		}
		return strings.ToUpper(strings.TrimSuffix(string(f.Name()), "_type"))
	}
}

// Literal writes a value as a literal, a struct as (a, b), and a map as {key=value}. BYTES have escapes for
// all bytes outside of ASCII.
func Literal(v *btpb.Value, t *btpb.Type) string {
	switch k := v.GetKind().(type) {
	case nil:
		return "NULL"
	case *btpb.Value_BytesValue:
		return "b" + quote(string(k.BytesValue), true)
	case *btpb.Value_StringValue:
		return quote(k.StringValue, false)
	case *btpb.Value_ArrayValue:
		return composite(k.ArrayValue.GetValues(), t, Literal)
	case *btpb.Value_FloatValue:
		text := strconv.FormatFloat(k.FloatValue, 'g', -1, 64)
		if !strings.ContainsAny(text, ".eN") {
			text += ".0"
		}
		return text
	default:
		return scalar(v)
	}
}

// scalar writes a number, a BOOL, a date or a time.
func scalar(v *btpb.Value) string {
	switch k := v.GetKind().(type) {
	case *btpb.Value_IntValue:
		return strconv.FormatInt(k.IntValue, 10)
	case *btpb.Value_BoolValue:
		return strconv.FormatBool(k.BoolValue)
	case *btpb.Value_DateValue:
		return fmt.Sprintf("%04d-%02d-%02d", k.DateValue.GetYear(), k.DateValue.GetMonth(), k.DateValue.GetDay())
	case *btpb.Value_TimestampValue:
		return k.TimestampValue.AsTime().Format(time.RFC3339Nano)
	default:
		return fmt.Sprint(v)
	}
}

// composite writes an array, a struct or a map.
func composite(values []*btpb.Value, t *btpb.Type, text func(*btpb.Value, *btpb.Type) string) string {
	parts := make([]string, len(values))
	open, end := "[", "]"
	for i, e := range values {
		switch of := t.GetKind().(type) {
		case *btpb.Type_MapType:
			open, end = "{", "}"
			pair := e.GetArrayValue().GetValues()
			if len(pair) == 2 {
				parts[i] = text(pair[0], of.MapType.GetKeyType()) + "=" + text(pair[1], of.MapType.GetValueType())
			}
		case *btpb.Type_StructType:
			open, end = "(", ")"
			if i < len(of.StructType.GetFields()) {
				parts[i] = text(e, of.StructType.GetFields()[i].GetType())
			}
		default:
			parts[i] = text(e, t.GetArrayType().GetElementType())
		}
	}
	if t.GetMapType() != nil {
		open, end = "{", "}"
	}
	return open + strings.Join(parts, ", ") + end
}

// quote quotes a text. If raw is set, it escapes all bytes outside of ASCII.
func quote(s string, raw bool) string {
	var b strings.Builder
	b.WriteByte('\'')
	for i := range len(s) {
		c := s[i]
		switch {
		case c == '\\' || c == '\'':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c == 0x7f || raw && c > 0x7f:
			fmt.Fprintf(&b, "\\x%02x", c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('\'')
	return b.String()
}

// Text writes a value for people: texts and bytes without quotes if they are printable.
func Text(v *btpb.Value, t *btpb.Type) string {
	switch k := v.GetKind().(type) {
	case nil:
		return "NULL"
	case *btpb.Value_StringValue:
		return printable(k.StringValue)
	case *btpb.Value_BytesValue:
		return printable(string(k.BytesValue))
	case *btpb.Value_ArrayValue:
		return composite(k.ArrayValue.GetValues(), t, Text)
	case *btpb.Value_FloatValue:
		return strconv.FormatFloat(k.FloatValue, 'g', -1, 64)
	default:
		return scalar(v)
	}
}

// printable returns a text as it is, or with escapes.
func printable(s string) string {
	if !utf8.ValidString(s) {
		return "b" + quote(s, true)
	}
	for _, r := range s {
		if !strconv.IsPrint(r) {
			return quote(s, false)
		}
	}
	return s
}

// Param returns the value of a parameter: kind is STRING, BYTES, INT64, FLOAT64 or BOOL.
func Param(kind, text string) (*btpb.Value, error) {
	switch strings.ToUpper(kind) {
	case "STRING":
		return &btpb.Value{Type: &btpb.Type{Kind: &btpb.Type_StringType{StringType: &btpb.Type_String{}}}, Kind: &btpb.Value_StringValue{StringValue: text}}, nil
	case "BYTES":
		return &btpb.Value{Type: &btpb.Type{Kind: &btpb.Type_BytesType{BytesType: &btpb.Type_Bytes{}}}, Kind: &btpb.Value_BytesValue{BytesValue: []byte(text)}}, nil
	case "INT64":
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is not an INT64", text)
		}
		return &btpb.Value{Type: &btpb.Type{Kind: &btpb.Type_Int64Type{Int64Type: &btpb.Type_Int64{}}}, Kind: &btpb.Value_IntValue{IntValue: n}}, nil
	case "FLOAT64":
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is not a FLOAT64", text)
		}
		return &btpb.Value{Type: &btpb.Type{Kind: &btpb.Type_Float64Type{Float64Type: &btpb.Type_Float64{}}}, Kind: &btpb.Value_FloatValue{FloatValue: f}}, nil
	case "BOOL":
		b, err := strconv.ParseBool(text)
		if err != nil {
			return nil, fmt.Errorf("%q is not a BOOL", text)
		}
		return &btpb.Value{Type: &btpb.Type{Kind: &btpb.Type_BoolType{BoolType: &btpb.Type_Bool{}}}, Kind: &btpb.Value_BoolValue{BoolValue: b}}, nil
	default:
		return nil, fmt.Errorf("%q is not a type of a parameter; expected STRING, BYTES, INT64, FLOAT64 or BOOL", kind)
	}
}

// Object is a JSON object whose members keep their order.
type Object []member

type member struct {
	name  string
	value any
}

// JSON returns a row as a JSON object. Bytes are texts if they are UTF-8, else base64 with the prefix
// "base64:".
func JSON(row []*btpb.Value, columns []*btpb.ColumnMetadata) Object {
	var o Object
	for i, v := range row {
		o = append(o, member{columns[i].GetName(), jsonValue(v, columns[i].GetType())})
	}
	return o
}

// MarshalJSON writes the members in their order.
func (o Object) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, m := range o {
		name, err := json.Marshal(m.name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, name...), ':'), value...)
	}
	return append(out, '}'), nil
}

func jsonValue(v *btpb.Value, t *btpb.Type) any {
	switch k := v.GetKind().(type) {
	case nil:
		return nil
	case *btpb.Value_StringValue:
		return k.StringValue
	case *btpb.Value_BytesValue:
		return jsonBytes(k.BytesValue)
	case *btpb.Value_IntValue:
		return k.IntValue
	case *btpb.Value_FloatValue:
		return k.FloatValue
	case *btpb.Value_BoolValue:
		return k.BoolValue
	case *btpb.Value_ArrayValue:
		return jsonComposite(k.ArrayValue.GetValues(), t)
	default:
		return scalar(v)
	}
}

func jsonBytes(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return "base64:" + base64.StdEncoding.EncodeToString(b)
}

func jsonComposite(values []*btpb.Value, t *btpb.Type) any {
	switch of := t.GetKind().(type) {
	case *btpb.Type_MapType:
		var o Object
		for _, e := range values {
			if pair := e.GetArrayValue().GetValues(); len(pair) == 2 {
				o = append(o, member{Text(pair[0], of.MapType.GetKeyType()), jsonValue(pair[1], of.MapType.GetValueType())})
			}
		}
		return o
	case *btpb.Type_StructType:
		var o Object
		for i, e := range values {
			if f := of.StructType.GetFields(); i < len(f) {
				o = append(o, member{f[i].GetFieldName(), jsonValue(e, f[i].GetType())})
			}
		}
		return o
	default:
		list := []any{}
		for _, e := range values {
			list = append(list, jsonValue(e, t.GetArrayType().GetElementType()))
		}
		return list
	}
}
