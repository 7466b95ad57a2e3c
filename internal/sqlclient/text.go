package sqlclient

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
)

// TypeText returns the text of a type, such as MAP<BYTES, BYTES>.
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

// scalar returns the text of an INT64, a BOOL, a DATE or a TIMESTAMP.
func scalar(v *btpb.Value) string {
	switch k := v.GetKind().(type) {
	case *btpb.Value_IntValue:
		return strconv.FormatInt(k.IntValue, 10)
	case *btpb.Value_BoolValue:
		return strconv.FormatBool(k.BoolValue)
	case *btpb.Value_DateValue:
		return fmt.Sprintf("%04d-%02d-%02d", k.DateValue.GetYear(), k.DateValue.GetMonth(), k.DateValue.GetDay())
	case *btpb.Value_TimestampValue:
		return timeText(k.TimestampValue.AsTime())
	default:
		return fmt.Sprint(v)
	}
}

func timeText(t time.Time) string { return t.Format(time.RFC3339Nano) }

// composite returns the text of an array, a struct or a map.
func composite(values []*btpb.Value, t *btpb.Type) string {
	parts := make([]string, len(values))
	open, end := "[", "]"
	for i, e := range values {
		switch of := t.GetKind().(type) {
		case *btpb.Type_MapType:
			open, end = "{", "}"
			pair := e.GetArrayValue().GetValues()
			if len(pair) == 2 {
				parts[i] = Text(pair[0], of.MapType.GetKeyType()) + "=" + Text(pair[1], of.MapType.GetValueType())
			}
		case *btpb.Type_StructType:
			open, end = "(", ")"
			if i < len(of.StructType.GetFields()) {
				parts[i] = Text(e, of.StructType.GetFields()[i].GetType())
			}
		default:
			parts[i] = Text(e, t.GetArrayType().GetElementType())
		}
	}
	if t.GetMapType() != nil {
		open, end = "{", "}"
	}
	return open + strings.Join(parts, ", ") + end
}

// quote returns a text in single quotes, with escapes for quotes, backslashes and control characters.
// If raw is set, it also escapes all bytes outside of ASCII.
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

// Text returns a readable form of a value. Printable strings and bytes are not quoted.
func Text(v *btpb.Value, t *btpb.Type) string {
	switch k := v.GetKind().(type) {
	case nil:
		return "NULL"
	case *btpb.Value_StringValue:
		return Printable(k.StringValue)
	case *btpb.Value_BytesValue:
		return Printable(string(k.BytesValue))
	case *btpb.Value_ArrayValue:
		return composite(k.ArrayValue.GetValues(), t)
	case *btpb.Value_FloatValue:
		return strconv.FormatFloat(k.FloatValue, 'g', -1, 64)
	default:
		return scalar(v)
	}
}

// Printable returns a text unchanged if a terminal can show it, and else as a literal with escapes.
func Printable(s string) string {
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
