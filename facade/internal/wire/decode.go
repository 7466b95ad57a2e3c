package wire

import (
	"bytes"
	"errors"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/facade/awserr"
)

// CheckJSON returns an error unless the body is exactly one JSON object.
func CheckJSON(body []byte) error {
	value := jsontext.Value(body)
	if !value.IsValid() {
		return serializationError("")
	}
	if value.Kind() != '{' {
		return serializationError(awserr.MsgUnexpectedToken)
	}
	return nil
}

// Decode decodes a request into in, a pointer to a struct with the member names of the
// API model. It is as strict as AWS: names are case-sensitive, and invalid UTF-8 and
// repeated names are rejected. Null counts as absent, and unknown members are ignored.
// The model's Integer is int32, and its Long is int64. Errors are of type *awserr.Error.
func Decode(body []byte, in any) error {
	if err := json.Unmarshal(body, in); err != nil {
		return decodeError(body, in, err)
	}
	return nil
}

// decodeError returns AWS's error for err, from decoding body into in.
func decodeError(body []byte, in any, err error) error {
	if refused, ok := awserr.As(err); ok {
		return refused
	}
	var semantic *json.SemanticError
	if !errors.As(err, &semantic) || semantic.GoType == nil {
		return serializationError("")
	}
	at := placeOf(in, semantic.JSONPointer)
	switch {
	case !errors.Is(err, errNoStructure):
		value := valueAt(body, semantic.ByteOffset)
		return serializationError("%s", mismatchText(semantic.JSONKind, value, semantic.GoType, at))
	case at.element:
		return serializationError(awserr.MsgUnexpectedValueType)
	default:
		return serializationError(awserr.MsgUnexpectedFieldType)
	}
}

// place is the position of a value in a request.
type place struct {
	element bool   // in a list or a map, not a member of a structure
	member  string // structure and member, such as "WriteRequest.PutRequest"
}

// placeOf returns the place of the value at a pointer into the request in.
func placeOf(in any, at jsontext.Pointer) place {
	var p place
	t := reflect.TypeOf(in)
	for name := range at.Tokens() {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		switch t.Kind() { //nolint:exhaustive // requests have no others
		case reflect.Struct:
			field, ok := t.FieldByName(name)
			if !ok {
				return place{}
			}
			p = place{member: capitalized(t.Name()) + "." + name}
			t = field.Type
		case reflect.Slice, reflect.Map:
			p, t = place{element: true}, t.Elem()
		default:
			return place{}
		}
	}
	return p
}

// valueAt returns the part of body that begins with the JSON value at or after an offset.
func valueAt(body []byte, offset int64) []byte {
	rest := bytes.TrimLeft(body[min(int(offset), len(body)):], " \t\r\n:,")
	end := bytes.IndexAny(rest, ",]} \t\r\n")
	if end < 0 {
		return rest
	}
	return rest[:end]
}

// mismatchText returns AWS's text for a JSON value of a type that the model does not expect.
func mismatchText(kind jsontext.Kind, value []byte, t reflect.Type, at place) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	goKind := t.Kind()
	if target, ok := scalarNames[goKind]; ok {
		return scalarMismatchText(kind, value, target)
	}
	switch {
	case goKind == reflect.Slice && kind == '{':
		return awserr.MsgStartOfStructure
	case goKind == reflect.Map && kind == '[':
		return "Unrecognized collection type java.util.Map<java.lang.String, " + modelTypeName(t.Elem()) + ">"
	case goKind == reflect.Struct && kind == '[':
		if name, ok := memberTypeNames[at.member]; ok {
			return "Unrecognized collection type class " + modelPackage + name
		}
		return "Unrecognized collection type class " + modelTypeName(t)
	case goKind == reflect.Struct && at.element:
		return awserr.MsgUnexpectedValueType
	default:
		return awserr.MsgUnexpectedFieldType
	}
}

// scalarNames are the model's names of Go's scalar types.
var scalarNames = map[reflect.Kind]string{
	reflect.String: "String", reflect.Int32: "Integer", reflect.Int64: "Long", reflect.Bool: "Boolean",
}

// scalarMismatchText acts like mismatchText for an expected scalar.
func scalarMismatchText(kind jsontext.Kind, value []byte, target string) string {
	switch byte(kind) {
	case '{':
		return awserr.MsgStartOfStructure
	case '[':
		return "Unrecognized collection type class java.lang." + target
	case 't':
		return "TRUE_VALUE cannot be converted to " + target
	case 'f':
		return "FALSE_VALUE cannot be converted to " + target
	case '"':
		if target == "Boolean" {
			return awserr.MsgUnexpectedToken
		}
		return "STRING_VALUE cannot be converted to " + target
	case '0':
		if bytes.ContainsAny(value, ".eE") {
			return "DECIMAL_VALUE cannot be converted to " + target
		}
		return "NUMBER_VALUE cannot be converted to " + target
	default:
		return awserr.MsgUnexpectedToken
	}
}

// modelPackage is the Java package of AWS's types.
const modelPackage = "com.amazonaws.dynamodb.v20120810."

// memberTypeNames are the model's type names of members whose Go type has no name, or stands
// for several types of the model.
var memberTypeNames = map[string]string{
	"GlobalSecondaryIndexUpdate.Create": "CreateGlobalSecondaryIndexAction",
	"GlobalSecondaryIndexUpdate.Update": "UpdateGlobalSecondaryIndexAction",
	"GlobalSecondaryIndexUpdate.Delete": "DeleteGlobalSecondaryIndexAction",
	"TransactGetItem.Get":               "Get",
	"TransactWriteItem.ConditionCheck":  "ConditionCheck",
	"TransactWriteItem.Delete":          "Delete",
	"TransactWriteItem.Put":             "Put",
	"TransactWriteItem.Update":          "Update",
	"CreateTableInput.SSESpecification": "SSESpecification",
	"UpdateTableInput.SSESpecification": "SSESpecification",
}

// modelTypeName returns AWS's name of a model type: our structs have the same names with a
// small first letter.
func modelTypeName(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t {
	case reflect.TypeFor[string]():
		return "java.lang.String"
	case reflect.TypeFor[Value](), reflect.TypeFor[Parameter]():
		return modelPackage + "AttributeValue"
	}
	if t.Kind() == reflect.Slice {
		return "java.util.List<" + modelTypeName(t.Elem()) + ">"
	}
	return modelPackage + capitalized(t.Name())
}

func capitalized(name string) string {
	if name == "" {
		return ""
	}
	return strings.ToUpper(name[:1]) + name[1:]
}
