package facade

import (
	"bytes"
	"errors"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// Requests and answers are Go structs with the member names of the API model.
// Decoding is strict where AWS is: names are case-sensitive, invalid UTF-8 and
// repeated names are refused, null counts as absent, unknown members are
// ignored. Numbers of the model type Integer are int32 here, Long is int64.

// responseOptions make answers reproducible: members of maps are sorted.
var responseOptions = json.JoinOptions(json.Deterministic(true), jsontext.EscapeForHTML(false))

// checkJSON reports whether body is one JSON object.
func checkJSON(body []byte) error {
	value := jsontext.Value(body)
	if !value.IsValid() {
		return serializationError("")
	}
	if value.Kind() != '{' {
		return serializationError(msgUnexpectedToken)
	}
	return nil
}

func decodeRequest(body []byte, in any) error {
	if err := json.Unmarshal(body, in); err != nil {
		return decodeError(body, err)
	}
	return nil
}

func encodeResponse(out any) ([]byte, error) {
	if items, ok := out.(itemsAnswer); ok {
		var w answerWriter
		items.writeJSON(&w)
		return w.end()
	}
	return json.Marshal(out, responseOptions)
}

// decodeError gives err, from decoding body, AWS's text.
func decodeError(body []byte, err error) error {
	if e, ok := asError(err); ok {
		return e
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
	case reflect.TypeFor[wireValue]():
		return "com.amazonaws.dynamodb.v20120810.AttributeValue"
	}
	name := t.Name()
	if name == "" {
		return "java.util.List"
	}
	return "com.amazonaws.dynamodb.v20120810." + strings.ToUpper(name[:1]) + name[1:]
}

// flag is a Boolean of the model: true, false, or a string that AWS takes for
// one.
type flag bool

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (f *flag) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	value, err := dec.ReadValue()
	if err != nil {
		return err
	}
	switch byte(value.Kind()) {
	case 't', 'f', 'n':
		*f = value.Kind() == 't'
		return nil
	case '"':
		text, err := jsontext.AppendUnquote(nil, value)
		if err != nil {
			return err
		}
		b, ok := attr.ParseBoolean(string(text))
		if !ok {
			return serializationError(msgUnexpectedToken)
		}
		*f = flag(b)
		return nil
	default:
		return serializationError(scalarMismatchText(value.Kind(), value, "Boolean"))
	}
}

// isTrue reports whether an optional flag is given and true.
func (f *flag) isTrue() bool { return f != nil && bool(*f) }

// epochSeconds is a time as the protocol writes it: seconds since 1970, with
// milliseconds as decimals.
type epochSeconds int64 // milliseconds

// MarshalJSONTo implements json.MarshalerTo.
func (t epochSeconds) MarshalJSONTo(enc *jsontext.Encoder) error {
	return enc.WriteValue(jsontext.Value(strconv.FormatFloat(float64(t)/1000, 'f', -1, 64)))
}

// double is a number with a fraction as the protocol writes it: always with a
// decimal point, by which clients tell it from a whole number.
type double float64

// MarshalJSONTo implements json.MarshalerTo.
func (d double) MarshalJSONTo(enc *jsontext.Encoder) error {
	text := strconv.FormatFloat(float64(d), 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return enc.WriteValue(jsontext.Value(text))
}

// encodeError returns the body of an error answer.
func encodeError(e *Error) []byte {
	var buf bytes.Buffer
	enc := jsontext.NewEncoder(&buf, responseOptions)
	tokens := []jsontext.Token{jsontext.BeginObject, jsontext.String("__type"), jsontext.String(namespaceOf(e.Code) + e.Code)}
	if e.Message != "" {
		tokens = append(tokens, jsontext.String(messageMember(e.Code)), jsontext.String(strings.ToValidUTF8(e.Message, "\uFFFD")))
	}
	for _, token := range tokens {
		if err := enc.WriteToken(token); err != nil {
			return nil // a Buffer takes every token of this fixed shape
		}
	}
	if e.Item != nil {
		_ = enc.WriteToken(jsontext.String("Item"))
		_ = json.MarshalEncode(enc, wireItem{Item: e.Item}, responseOptions)
	}
	if e.Reasons != nil {
		_ = enc.WriteToken(jsontext.String("CancellationReasons"))
		reasons := make([]cancellationReason, len(e.Reasons))
		for i, r := range e.Reasons {
			reasons[i] = cancellationReason{Code: r.Code, Message: strings.ToValidUTF8(r.Message, "\uFFFD"), Item: optionalItem(r.Item)}
		}
		_ = json.MarshalEncode(enc, reasons, responseOptions)
	}
	_ = enc.WriteToken(jsontext.EndObject)
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

// cancellationReason is CancellationReason on the wire.
type cancellationReason struct {
	Code    string
	Message string    `json:",omitzero"`
	Item    *wireItem `json:",omitzero"`
}

// wireItem is an item, or a key, of a request or an answer. A value that is
// well-formed JSON but no attribute value does not stop the decoding: AWS
// looks at it after the members' constraints, see validator.item.
type wireItem struct {
	Item attr.Item
	err  error
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (w *wireItem) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	raw, err := dec.ReadValue()
	if err != nil || raw.Kind() == 'n' {
		return err
	}
	if w.Item, w.err = attr.UnmarshalItem(raw); w.err != nil {
		return serializationOf(w.err)
	}
	w.err = checkNames(w.Item)
	return nil
}

// MarshalJSONTo implements json.MarshalerTo.
func (w wireItem) MarshalJSONTo(enc *jsontext.Encoder) error {
	return enc.WriteValue(attr.AppendItemJSON(nil, w.Item))
}

// wireValue is wireItem for one value.
type wireValue struct {
	Value attr.Value
	err   error
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (w *wireValue) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	if w.Value, w.err = attr.UnmarshalValue(raw); w.err != nil {
		return serializationOf(w.err)
	}
	w.err = checkNamesWithin(w.Value)
	return nil
}

// MarshalJSONTo implements json.MarshalerTo.
func (w wireValue) MarshalJSONTo(enc *jsontext.Encoder) error {
	return enc.WriteValue(attr.AppendJSON(nil, w.Value))
}

// errEmptyName is the error of an attribute without a name.
var errEmptyName = errors.New(msgEmptyName) //nolint:staticcheck // ST1005: the text is the service's //nolint:staticcheck // its text is the answer

// checkNames refuses attributes without a name, which requests cannot have
// though rows can.
func checkNames(m map[string]attr.Value) error {
	for name, value := range m {
		if name == "" {
			return errEmptyName
		}
		if err := checkNamesWithin(value); err != nil {
			return err
		}
	}
	return nil
}

func checkNamesWithin(value attr.Value) error {
	for _, element := range value.List {
		if err := checkNamesWithin(element); err != nil {
			return err
		}
	}
	return checkNames(value.Map)
}

// optionalItem is nil for a nil item, so that the member is left out.
func optionalItem(item attr.Item) *wireItem {
	if item == nil {
		return nil
	}
	return &wireItem{Item: item}
}

// serializationOf returns err's SerializationException if the value could not
// be read at all, or nil if it is for validation to refuse it.
func serializationOf(err error) error {
	var e *attr.Error
	if !errors.As(err, &e) {
		return err
	}
	text, unreadable := e.AWSMessage()
	if !unreadable {
		return nil
	}
	return serializationError(text)
}
