package sqlclient

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"cloud.google.com/go/civil"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/genproto/googleapis/type/date"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// ParseParam parses a parameter of the form NAME:TYPE=VALUE; see Param.
func ParseParam(text string) (name string, v *btpb.Value, err error) {
	declared, value, ok := strings.Cut(text, "=")
	name, kind, typed := strings.Cut(declared, ":")
	if !ok || !typed || name == "" {
		return "", nil, fmt.Errorf("%q must be NAME:TYPE=VALUE, such as key:BYTES=a", text)
	}
	if v, err = Param(kind, value); err != nil {
		return "", nil, fmt.Errorf("%s: %w", name, err)
	}
	return name, v, nil
}

// paramTypes are the types of Param in its error.
const paramTypes = "STRING, BYTES, INT64, FLOAT64, BOOL, DATE, TIMESTAMP, or ARRAY<...> of one of these"

// Param parses text as the value of a parameter of type kind, one of paramTypes in upper or lower case. For
// BYTES, text is a literal b'...' with escapes, or else the bytes themselves; for a TIMESTAMP, it has the form of
// RFC 3339. An array is in JSON, and its elements have the texts of their type.
func Param(kind, text string) (*btpb.Value, error) {
	var v any
	var err error
	kind = strings.ToUpper(kind)
	if of, ok := strings.CutPrefix(kind, "ARRAY<"); ok && strings.HasSuffix(of, ">") {
		return arrayParam(strings.TrimSuffix(of, ">"), text)
	}
	switch kind {
	case "STRING":
		v = text
	case "BYTES":
		v, err = bytesParam(text)
	case "INT64":
		v, err = strconv.ParseInt(text, 10, 64)
	case "FLOAT64":
		v, err = strconv.ParseFloat(text, 64)
	case "BOOL":
		v, err = strconv.ParseBool(text)
	case "DATE":
		v, err = civil.ParseDate(text)
	case "TIMESTAMP":
		v, err = time.Parse(time.RFC3339Nano, text)
	default:
		return nil, unknownType(kind)
	}
	if err != nil {
		return nil, fmt.Errorf("%q is not of type %s%s", text, kind, formOf[kind])
	}
	return ParamOf(v)
}

// formOf has the form of a type whose texts are not obvious, for an error.
var formOf = map[string]string{"DATE": ", such as 2024-01-31", "TIMESTAMP": ", such as 2024-01-31T12:00:00Z"}

// arrayParam parses a JSON array of elements of type kind.
func arrayParam(kind, text string) (*btpb.Value, error) {
	zero, ok := zeros[kind]
	if !ok {
		return nil, unknownType(kind)
	}
	empty, err := ParamOf(zero) // for its type
	if err != nil {
		return nil, err
	}
	var texts []jsontext.Value
	if err := json.Unmarshal([]byte(text), &texts); err != nil {
		return nil, fmt.Errorf("%q is not a JSON array, such as [\"a\", \"b\"]", text)
	}
	array := &btpb.ArrayValue{}
	for _, element := range texts {
		of := string(element)
		switch isText := kind == "STRING" || kind == "BYTES"; {
		case element.Kind() == '"':
			if err := json.Unmarshal(element, &of); err != nil {
				return nil, fmt.Errorf("%s: %w", element, err)
			}
		case isText:
			return nil, fmt.Errorf("%s is not of type %s", element, kind)
		}
		v, err := Param(kind, of)
		if err != nil {
			return nil, err
		}
		array.Values = append(array.Values, &btpb.Value{Kind: v.GetKind()})
	}
	return arrayOf(empty.GetType(), array), nil
}

// zeros has a value of each type.
var zeros = map[string]any{
	"STRING": "", "BYTES": []byte(nil), "INT64": int64(0), "FLOAT64": 0.0, "BOOL": false, "DATE": civil.Date{}, "TIMESTAMP": time.Time{},
}

func unknownType(kind string) error {
	return fmt.Errorf("%q is not a type of a parameter; expected %s", kind, paramTypes)
}

func arrayOf(elem *btpb.Type, array *btpb.ArrayValue) *btpb.Value {
	return &btpb.Value{Type: &btpb.Type{Kind: &btpb.Type_ArrayType{ArrayType: &btpb.Type_Array{ElementType: elem}}}, Kind: &btpb.Value_ArrayValue{ArrayValue: array}}
}

// bytesParam returns the bytes that a literal b'...' denotes, or the bytes of any other text.
func bytesParam(text string) ([]byte, error) {
	inner, isLiteral := strings.CutPrefix(text, "b'")
	if isLiteral {
		inner, isLiteral = strings.CutSuffix(inner, "'")
	}
	if !isLiteral {
		return []byte(text), nil
	}
	out := []byte{}
	for inner != "" {
		if inner[0] != '\\' && inner[0] != '\'' {
			out, inner = append(out, inner[0]), inner[1:]
			continue
		}
		c, wide, rest, err := strconv.UnquoteChar(inner, '\'')
		if err != nil || wide { // a literal of bytes has no \u
			return nil, strconv.ErrSyntax
		}
		out, inner = append(out, byte(c)), rest
	}
	return out, nil
}

// ParamOf converts v to the value of a parameter. v is a string, []byte, int, int64, float64, bool,
// time.Time, civil.Date, or a slice of one of these.
func ParamOf(v any) (*btpb.Value, error) {
	switch v := v.(type) {
	case string:
		return &btpb.Value{Type: &btpb.Type{Kind: &btpb.Type_StringType{StringType: &btpb.Type_String{}}}, Kind: &btpb.Value_StringValue{StringValue: v}}, nil
	case []byte:
		return &btpb.Value{Type: &btpb.Type{Kind: &btpb.Type_BytesType{BytesType: &btpb.Type_Bytes{}}}, Kind: &btpb.Value_BytesValue{BytesValue: v}}, nil
	case int:
		return ParamOf(int64(v))
	case int64:
		return &btpb.Value{Type: &btpb.Type{Kind: &btpb.Type_Int64Type{Int64Type: &btpb.Type_Int64{}}}, Kind: &btpb.Value_IntValue{IntValue: v}}, nil
	case float64:
		return &btpb.Value{Type: &btpb.Type{Kind: &btpb.Type_Float64Type{Float64Type: &btpb.Type_Float64{}}}, Kind: &btpb.Value_FloatValue{FloatValue: v}}, nil
	case bool:
		return &btpb.Value{Type: &btpb.Type{Kind: &btpb.Type_BoolType{BoolType: &btpb.Type_Bool{}}}, Kind: &btpb.Value_BoolValue{BoolValue: v}}, nil
	case time.Time:
		return &btpb.Value{Type: &btpb.Type{Kind: &btpb.Type_TimestampType{TimestampType: &btpb.Type_Timestamp{}}}, Kind: &btpb.Value_TimestampValue{TimestampValue: timestamppb.New(v)}}, nil
	case civil.Date:
		on := &date.Date{Year: int32(v.Year), Month: int32(v.Month), Day: int32(v.Day)} //nolint:gosec // the server checks it
		return &btpb.Value{Type: &btpb.Type{Kind: &btpb.Type_DateType{DateType: &btpb.Type_Date{}}}, Kind: &btpb.Value_DateValue{DateValue: on}}, nil
	}
	list := reflect.ValueOf(v)
	if list.Kind() != reflect.Slice {
		return nil, fmt.Errorf("a %T is not a parameter; expected string, []byte, int, int64, float64, bool, time.Time, civil.Date, or a slice of these", v)
	}
	element, err := ParamOf(reflect.Zero(list.Type().Elem()).Interface()) // for its type
	if err != nil {
		return nil, err
	}
	array := &btpb.ArrayValue{}
	for i := range list.Len() {
		e, err := ParamOf(list.Index(i).Interface())
		if err != nil {
			return nil, err
		}
		array.Values = append(array.Values, &btpb.Value{Kind: e.GetKind()})
	}
	return arrayOf(element.GetType(), array), nil
}
