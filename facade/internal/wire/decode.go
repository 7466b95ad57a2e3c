package wire

import (
	"bytes"
	"errors"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// CheckJSON refuses a body that is not one JSON object.
func CheckJSON(body []byte) error {
	value := jsontext.Value(body)
	if !value.IsValid() {
		return serializationError("")
	}
	if value.Kind() != '{' {
		return serializationError(msgUnexpectedToken)
	}
	return nil
}

// Decode reads a request into in, a pointer to a struct with the member names of
// the API model. It is strict where AWS is: names are case-sensitive, invalid UTF-8
// and repeated names are refused, null counts as absent, unknown members are
// ignored. Numbers of the model type Integer are int32 in it, Long is int64. Its
// error is a *Refusal.
func Decode(body []byte, in any) error {
	if err := json.Unmarshal(body, in); err != nil {
		return decodeError(body, err)
	}
	return nil
}

// decodeError gives err, from decoding body, AWS's text.
func decodeError(body []byte, err error) error {
	var refused *Refusal
	if errors.As(err, &refused) {
		return refused
	}
	var semantic *json.SemanticError
	if !errors.As(err, &semantic) || semantic.GoType == nil {
		return serializationError("")
	}
	return serializationError(mismatchText(semantic.JSONKind, valueAt(body, semantic.ByteOffset), semantic.GoType))
}

// valueAt returns the text of body that begins with the JSON value at or after
// an offset.
func valueAt(body []byte, offset int64) []byte {
	rest := bytes.TrimLeft(body[min(int(offset), len(body)):], " \t\r\n:,")
	end := bytes.IndexAny(rest, ",]} \t\r\n")
	if end < 0 {
		return rest
	}
	return rest[:end]
}

// mismatchText is what AWS says about a JSON value where the model wants
// another type.
func mismatchText(kind jsontext.Kind, value []byte, t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	goKind := t.Kind()
	if target, ok := scalarNames[goKind]; ok {
		return scalarMismatchText(kind, value, target)
	}
	switch {
	case goKind == reflect.Slice && kind == '{':
		return msgStartOfStructure
	case goKind == reflect.Map && kind == '[':
		return "Unrecognized collection type java.util.Map<java.lang.String, " + modelTypeName(t.Elem()) + ">"
	case goKind == reflect.Struct && kind == '[':
		return "Unrecognized collection type class " + modelTypeName(t)
	default:
		return msgUnexpectedFieldType
	}
}

// scalarNames are the model's names of our scalar types.
var scalarNames = map[reflect.Kind]string{
	reflect.String: "String", reflect.Int32: "Integer", reflect.Int64: "Long", reflect.Bool: "Boolean",
}

// scalarMismatchText is mismatchText where the model wants a scalar.
func scalarMismatchText(kind jsontext.Kind, value []byte, target string) string {
	switch byte(kind) {
	case '{':
		return msgStartOfStructure
	case '[':
		return "Unrecognized collection type class java.lang." + target
	case 't':
		return "TRUE_VALUE cannot be converted to " + target
	case 'f':
		return "FALSE_VALUE cannot be converted to " + target
	case '"':
		if target == "Boolean" {
			return msgUnexpectedToken
		}
		return "STRING_VALUE cannot be converted to " + target
	case '0':
		if bytes.ContainsAny(value, ".eE") {
			return "DECIMAL_VALUE cannot be converted to " + target
		}
		return "NUMBER_VALUE cannot be converted to " + target
	default:
		return msgUnexpectedToken
	}
}

// modelTypeName returns the name AWS prints for a type of the model: our
// structs carry the model's names, with a small first letter.
func modelTypeName(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t {
	case reflect.TypeFor[string]():
		return "java.lang.String"
	case reflect.TypeFor[Value]():
		return "com.amazonaws.dynamodb.v20120810.AttributeValue"
	}
	name := t.Name()
	if name == "" {
		return "java.util.List"
	}
	return "com.amazonaws.dynamodb.v20120810." + strings.ToUpper(name[:1]) + name[1:]
}
