package attr

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxDepth is the maximum depth of an attribute. It counts lists, maps and the value
// inside them, so a scalar has depth one, and a list of scalars has depth two. Source:
// developer guide, "Service, account, and table quotas", nested attribute depth.
const MaxDepth = 32

// MaxCountedDepth is the largest depth that Error.Levels reports. If a value in a write of
// one item is nested at least so deeply, the service checks the write in its older layer.
const MaxCountedDepth = 64

// MaxNameBytes is the maximum length of the name of an attribute or map member. Source:
// developer guide, "Limits: Attributes".
const MaxNameBytes = 65535

// rootPath begins the paths in errors of an item.
const rootPath = "Item"

// UnmarshalItem parses data, which must be exactly one item, such as `{"name": {"S":
// "…"}}`. Its errors are of type *Error, with a path that begins with "Item".
//
// Parsing is strict. Member names are case-sensitive and unique, and a value has exactly
// one type tag. Binaries are standard padded base64, NULL is true, and text is UTF-8.
// Sets are not empty, and their members are unique.
func UnmarshalItem(data []byte) (Item, error) {
	if m, ok := scan(data, (*Scanner).Item); ok {
		return m, nil
	}
	return unmarshal(data, DecodeItem)
}

// UnmarshalValue parses data, which must be exactly one value, such as `{"S": "…"}`. It
// is as strict as UnmarshalItem. Its errors are of type *Error.
func UnmarshalValue(data []byte) (Value, error) {
	if v, ok := scan(data, (*Scanner).Value); ok {
		return v, nil
	}
	return unmarshal(data, DecodeValue)
}

func unmarshal[T any](data []byte, decode func(*jsontext.Decoder) (T, error)) (T, error) {
	var zero T
	d := jsontext.NewDecoder(bytes.NewBuffer(data))
	v, err := decode(d)
	if err != nil {
		return zero, err
	}
	if _, err = d.ReadToken(); !errors.Is(err, io.EOF) {
		if err == nil {
			err = errors.New("more text follows the value")
		}
		return zero, &Error{Problem: BadJSON, Offset: d.InputOffset(), Err: err}
	}
	return v, nil
}

// DecodeItem reads the next JSON value from d as an item. It is as strict as UnmarshalItem.
// After an error, the position of d is undefined within that value. Errors are of type
// *Error, except those of d's reader.
func DecodeItem(d *jsontext.Decoder) (Item, error) {
	item := Item{}
	if err := decodeMembers(d, Absent, item, 1); err != nil {
		return nil, within(rootPath, err)
	}
	return item, nil
}

// DecodeValue reads the next JSON value from d as an attribute value, in the same way as
// DecodeItem. The paths in its errors are relative to the value.
func DecodeValue(d *jsontext.Decoder) (Value, error) { return decodeValue(d, 1) }

// These are the expected kinds of a JSON token, for Error.Want.
const (
	wantString  = "string"
	wantBoolean = "boolean"
	wantArray   = "array"
	wantObject  = "object"
	wantValue   = `object with a type tag, such as {"S": "a"}`
)

// within prepends a step to the path of an error.
func within(step string, err error) error {
	var e *Error
	if errors.As(err, &e) {
		e.Path = step + e.Path
	}
	return err
}

// memberStep returns the step of an error's path to a member of an item or a map.
func memberStep(name string) string {
	for _, c := range []byte(name) {
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return "." + strconv.Quote(clipText(name))
		}
	}
	return "." + clipText(name)
}

// failed converts an error of the JSON decoder d to an *Error. It returns errors of d's reader
// unchanged.
func failed(d *jsontext.Decoder, err error) error {
	var syntax *jsontext.SyntacticError
	switch {
	case errors.As(err, &syntax):
		e := &Error{Problem: BadJSON, Offset: syntax.ByteOffset, Err: err}
		if errors.Is(err, jsontext.ErrDuplicateName) {
			e.Problem = DuplicateName
			e.Text = syntax.JSONPointer.LastToken()
		}
		return e
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &Error{Problem: BadJSON, Offset: d.InputOffset(), Err: io.ErrUnexpectedEOF}
	}
	return err
}

func problemAt(d *jsontext.Decoder, p Problem, t Type, text string) *Error {
	return &Error{Problem: p, Type: t, Text: text, Offset: d.InputOffset()}
}

// wrongToken reads the next token, and returns the error that a token of the kind want was
// expected. t is the type of the value.
func wrongToken(d *jsontext.Decoder, t Type, want string) error {
	tok, err := d.ReadToken()
	if err != nil {
		return failed(d, err)
	}
	e := problemAt(d, WrongToken, t, "")
	e.Want = want
	e.Text = tokenNames[tok.Kind()]
	if tok.Kind() == jsontext.KindNumber && strings.ContainsAny(tok.String(), ".eE") {
		e.Text = "decimal number"
	}
	return e
}

// tokenNames holds the names of the kinds of tokens for Error.Text.
var tokenNames = map[jsontext.Kind]string{
	jsontext.KindNull: "null", jsontext.KindTrue: "true", jsontext.KindFalse: "false",
	jsontext.KindString: "string", jsontext.KindNumber: "number",
	jsontext.KindBeginArray: "array", jsontext.KindBeginObject: "object",
}

// open reads the token that begins an object or an array. If the next token is of another kind,
// it returns wrongToken.
func open(d *jsontext.Decoder, kind jsontext.Kind, t Type, want string) error {
	if k := d.PeekKind(); k != kind {
		return wrongToken(d, t, want)
	}
	if _, err := d.ReadToken(); err != nil {
		return failed(d, err)
	}
	return nil
}

// decodeMembers reads an object of attribute values, an item or a map, into m. depth is the
// depth of the values.
func decodeMembers(d *jsontext.Decoder, t Type, m map[string]Value, depth int) error {
	if err := open(d, jsontext.KindBeginObject, t, wantObject); err != nil {
		return err
	}
	for {
		tok, err := d.ReadToken()
		if err != nil {
			return failed(d, err)
		}
		if tok.Kind() == jsontext.KindEndObject {
			return nil
		}
		name := tok.String()
		if _, found := m[name]; found {
			return problemAt(d, DuplicateName, t, name)
		}
		if len(name) > MaxNameBytes {
			return problemAt(d, LongName, t, name)
		}
		v, err := decodeValue(d, depth)
		if err != nil {
			return within(memberStep(name), err)
		}
		m[name] = v
	}
}

func decodeValue(d *jsontext.Decoder, depth int) (Value, error) {
	if depth > MaxDepth {
		return Value{}, tooDeep(d)
	}
	if d.PeekKind() == jsontext.KindNull {
		return Value{}, problemAt(d, NoType, Absent, "")
	}
	if err := open(d, jsontext.KindBeginObject, Absent, wantValue); err != nil {
		return Value{}, err
	}
	tok, err := d.ReadToken()
	if err != nil {
		return Value{}, failed(d, err)
	}
	if tok.Kind() == jsontext.KindEndObject {
		return Value{}, problemAt(d, NoType, Absent, "")
	}
	t, known := ParseType(tok.String())
	if !known {
		return Value{}, problemAt(d, UnknownType, Absent, tok.String())
	}
	v, err := decodeContent(d, t, depth)
	if err != nil {
		return Value{}, err
	}
	tok, err = d.ReadToken()
	if err != nil {
		return Value{}, failed(d, err)
	}
	if tok.Kind() == jsontext.KindEndObject {
		return v, nil
	}
	return Value{}, manyTypes(d, t, tok.String(), depth)
}

// tooDeep reads the next value, which is the first one that is too deep, and returns the error
// for it.
func tooDeep(d *jsontext.Decoder) error {
	e := problemAt(d, TooDeep, Absent, "")
	e.Levels = MaxDepth + 1
	outside := d.StackDepth()
	for tokens := 1; e.Levels < MaxCountedDepth; tokens++ {
		tok, err := d.ReadToken()
		if err != nil { // truncated or invalid JSON
			break
		}
		if tokens == 2 { // the tag
			e.Type, _ = ParseType(tok.String())
		}
		opened := d.StackDepth() - outside
		if opened <= 0 {
			break
		}
		// A value opens an object, and a list or map opens another object or array in it.
		e.Levels = max(e.Levels, MaxDepth+1+(opened-1)/2)
	}
	return e
}

// manyTypes reads the rest of a value that has several type tags: first is the type of the first
// tag, and tag is the second one, whose content follows. It returns the error of the first tag
// that is unknown or has invalid content, as DynamoDB does, or else a ManyTypes error.
func manyTypes(d *jsontext.Decoder, first Type, tag string, depth int) error {
	many := problemAt(d, ManyTypes, first, tag)
	for {
		t, known := ParseType(tag)
		if !known {
			return problemAt(d, UnknownType, Absent, tag)
		}
		if _, err := decodeContent(d, t, depth); err != nil {
			return err
		}
		tok, err := d.ReadToken()
		if err != nil {
			return failed(d, err)
		}
		if tok.Kind() == jsontext.KindEndObject {
			return many
		}
		tag = tok.String()
	}
}

// decodeContent reads the content of a type tag.
func decodeContent(d *jsontext.Decoder, t Type, depth int) (Value, error) {
	if d.PeekKind() == jsontext.KindNull {
		return Value{}, problemAt(d, NoType, t, "")
	}
	v := Value{Type: t}
	var err error
	switch t {
	case S, N, B:
		v.Str, err = decodeMember(d, t)
	case BOOL, NULL:
		if v.Bool, err = decodeBoolean(d, t); err == nil && t == NULL {
			if !v.Bool {
				err = problemAt(d, NullNotTrue, t, "")
			}
			v.Bool = false
		}
	case SS, NS, BS:
		return decodeSet(d, t)
	case L:
		v.List, err = decodeList(d, depth)
	case M:
		v.Map = map[string]Value{}
		err = decodeMembers(d, t, v.Map, depth+1)
	case Absent:
		err = problemAt(d, NoType, t, "")
	}
	if err != nil {
		return Value{}, err
	}
	return v, nil
}

// decodeMember reads a string, number or binary, alone or as a member of a set. t is the type of
// the whole value.
func decodeMember(d *jsontext.Decoder, t Type) (string, error) {
	if d.PeekKind() != jsontext.KindString {
		return "", wrongToken(d, t, wantString)
	}
	tok, err := d.ReadToken()
	if err != nil {
		return "", failed(d, err)
	}
	text := tok.String()
	switch t {
	case N, NS:
		n, err := ParseNumber(text)
		var e *Error
		if errors.As(err, &e) {
			e.Offset = d.InputOffset()
			return "", e
		}
		return n, nil
	case B, BS:
		// The base64 decoder of the standard library ignores line ends.
		raw, err := base64.StdEncoding.Strict().DecodeString(text)
		if err != nil || strings.ContainsAny(text, "\r\n") {
			return "", problemAt(d, BadBase64, t, text)
		}
		return string(raw), nil
	case Absent, S, BOOL, NULL, SS, L, M:
	}
	return text, nil
}

// decodeBoolean reads true, false, or a string that DynamoDB accepts as a boolean.
func decodeBoolean(d *jsontext.Decoder, t Type) (bool, error) {
	if k := d.PeekKind(); k != jsontext.KindTrue && k != jsontext.KindFalse && k != jsontext.KindString {
		return false, wrongToken(d, t, wantBoolean)
	}
	tok, err := d.ReadToken()
	if err != nil {
		return false, failed(d, err)
	}
	if tok.Kind() != jsontext.KindString {
		return tok.Bool(), nil
	}
	b, ok := ParseBoolean(tok.String())
	if !ok {
		e := problemAt(d, WrongToken, t, tokenNames[tok.Kind()])
		e.Want = wantBoolean
		return false, e
	}
	return b, nil
}

// ParseBoolean converts a string that a request contains instead of a boolean. DynamoDB
// accepts true, yes and 1, and false, no and 0, in upper or lower case.
func ParseBoolean(s string) (value, ok bool) {
	switch strings.ToLower(s) {
	case "true", "yes", "1":
		return true, true
	case "false", "no", "0":
		return false, true
	default:
		return false, false
	}
}

func decodeSet(d *jsontext.Decoder, t Type) (Value, error) {
	if err := open(d, jsontext.KindBeginArray, t, wantArray); err != nil {
		return Value{}, err
	}
	var members []string
	for d.PeekKind() != jsontext.KindEndArray {
		m, err := decodeMember(d, t)
		if err != nil {
			return Value{}, within(fmt.Sprintf("[%d]", len(members)), err)
		}
		members = append(members, m)
	}
	if _, err := d.ReadToken(); err != nil {
		return Value{}, failed(d, err)
	}
	v, err := newSet(t, members)
	var e *Error
	if errors.As(err, &e) {
		e.Offset = d.InputOffset()
	}
	return v, err
}

func decodeList(d *jsontext.Decoder, depth int) ([]Value, error) {
	if err := open(d, jsontext.KindBeginArray, L, wantArray); err != nil {
		return nil, err
	}
	list := []Value{}
	for d.PeekKind() != jsontext.KindEndArray {
		v, err := decodeValue(d, depth+1)
		if err != nil {
			return nil, within(fmt.Sprintf("[%d]", len(list)), err)
		}
		list = append(list, v)
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, failed(d, err)
	}
	return list, nil
}

// tokenMessage returns DynamoDB's text for an error with the problem WrongToken.
func (e *Error) tokenMessage() string {
	const (
		structure  = "Start of structure or map found where not expected"
		collection = "Unrecognized collection type "
		model      = "com.amazonaws.dynamodb.v20120810.AttributeValue"
	)
	switch e.Want {
	case wantObject:
		if e.Text == "array" {
			return collection + "java.util.Map<java.lang.String, " + model + ">"
		}
		return "Unexpected field type"
	case wantValue:
		if e.Text == "array" {
			return collection + "class " + model
		}
		return "Unexpected value type in payload"
	case wantArray:
		if e.Text == "object" {
			return structure
		}
		return "Unexpected field type"
	}
	target, class := "String", "java.lang.String"
	binary := e.Type == B || e.Type == BS
	if e.Want == wantBoolean {
		target, class = "Boolean", "java.lang.Boolean"
	} else if binary {
		class = "java.nio.ByteBuffer"
	}
	switch e.Text {
	case "object":
		return structure
	case "array":
		return collection + "class " + class
	}
	if binary {
		return "only base-64-encoded strings are convertible to bytes"
	}
	switch e.Text {
	case "number":
		return "NUMBER_VALUE cannot be converted to " + target
	case "decimal number":
		return "DECIMAL_VALUE cannot be converted to " + target
	case "true":
		return "TRUE_VALUE cannot be converted to " + target
	case "false":
		return "FALSE_VALUE cannot be converted to " + target
	}
	return "Unexpected token received from parser"
}

// base64Message returns DynamoDB's text for invalid base64.
func base64Message(text string) string {
	if len(text)%4 != 0 {
		return fmt.Sprintf("Base64 encoded length is expected a multiple of 4 bytes but found: %d", len(text))
	}
	// The spelling is the service's.
	return "Invalid last non-pad Base64 character dectected"
}

// AppendJSON appends the canonical JSON of v. Member names are sorted, sets are in
// canonical order, there are no spaces, and only necessary characters are escaped (RFC
// 8785). An absent value becomes null.
func AppendJSON(dst []byte, v Value) []byte {
	if v.Type == Absent {
		return append(dst, "null"...)
	}
	dst = append(dst, '{', '"')
	dst = append(dst, v.Type.String()...)
	dst = append(dst, '"', ':')
	switch v.Type {
	case S, N, B:
		dst = appendMember(dst, v.Type, v.Str)
	case BOOL:
		dst = strconv.AppendBool(dst, v.Bool)
	case NULL:
		dst = append(dst, "true"...)
	case SS, NS, BS:
		dst = append(dst, '[')
		for i, m := range v.Set {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendMember(dst, v.Type, m)
		}
		dst = append(dst, ']')
	case L:
		dst = append(dst, '[')
		for i, e := range v.List {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = AppendJSON(dst, e)
		}
		dst = append(dst, ']')
	case M:
		dst = appendMembers(dst, v.Map)
	case Absent:
	}
	return append(dst, '}')
}

// AppendItemJSON appends the canonical JSON of an item, like AppendJSON. A nil item
// becomes null.
func AppendItemJSON(dst []byte, item Item) []byte {
	if item == nil {
		return append(dst, "null"...)
	}
	return appendMembers(dst, item)
}

func appendMembers(dst []byte, m map[string]Value) []byte {
	var few [24]string // enough for most items, and off the heap
	names := few[:0]
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	dst = append(dst, '{')
	for i, name := range names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendText(dst, name), ':')
		dst = AppendJSON(dst, m[name])
	}
	return append(dst, '}')
}

// appendMember appends a string, number or binary, alone or as a member of a set of type t.
func appendMember[T text](dst []byte, t Type, s T) []byte {
	if t == B || t == BS {
		dst = append(dst, '"')
		dst = base64.StdEncoding.AppendEncode(dst, []byte(s))
		return append(dst, '"')
	}
	return appendText(dst, s)
}

// text is the type of the content of a JSON string.
type text interface{ string | []byte }

// appendText appends s as a JSON string. s must be UTF-8: invalid bytes would become U+FFFD.
func appendText[T text](dst []byte, s T) []byte {
	if isPlain(s) {
		return append(append(append(dst, '"'), s...), '"')
	}
	dst, _ = jsontext.AppendQuote(dst, s)
	return dst
}

// isPlain reports whether a string is ASCII without characters that JSON escapes.
func isPlain[T text](s T) bool {
	for i := plainRun(s); i < len(s); i++ {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// plainRun returns the length of a prefix of s that is plain (see isPlain): a multiple of eight,
// and not always the longest. It tests eight bytes at a time, because most text is plain.
func plainRun[T text](s T) int {
	const (
		ones  = 0x0101010101010101
		highs = 0x80 * ones
	)
	// has sets a bit of highs if a byte of x is 0, given that no byte is above 7f.
	has := func(x uint64) uint64 { return (x - ones) &^ x }
	n := 0
	for ; len(s)-n >= 8; n += 8 {
		b := s[n : n+8]
		x := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
			uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
		if (x|(x-' '*ones)|has(x^'"'*ones)|has(x^'\\'*ones)|has(x^0x7f*ones))&highs != 0 {
			break
		}
	}
	return n
}

// String returns the canonical JSON of v, for messages and debugging.
func (v Value) String() string { return string(AppendJSON(nil, v)) }

// String returns the canonical JSON of the item.
func (i Item) String() string { return string(AppendItemJSON(nil, i)) }
