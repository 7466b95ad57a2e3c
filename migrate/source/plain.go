package source

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// recognizePlain recognizes a file of plain JSON, whose values have no type tags.
func recognizePlain(in *input) (fileLayout, shape, error) {
	d := newDocument(in)
	tok, err := d.ReadToken()
	switch {
	case err != nil:
		return unknownLayout, 0, d.failed(err)
	case tok.Kind() == '[':
		return itemArray, plainJSON, nil
	case tok.Kind() != '{':
		return unknownLayout, 0, nil
	}
	if tok, err = d.ReadToken(); err == nil && tok.String() == "Items" && d.PeekKind() == '[' {
		return itemsMember, plainJSON, nil
	}
	return itemLines, plainJSON, nil
}

// typedItem converts an item from plain JSON to DynamoDB JSON; text that is not a JSON object
// stays as it is.
func typedItem(text []byte) []byte {
	v := jsontext.Value(bytes.Trim(text, jsonSpace))
	if v.Kind() != '{' || !v.IsValid() {
		return text
	}
	typed := appendTyped(nil, v) // {"M":{…}}
	return typed[len(`{"M":`) : len(typed)-1]
}

// pipelineTags are the type tags of AWS Data Pipeline, and of programs that write the Java
// names of the types.
var pipelineTags = map[string]string{
	"s": "S", "n": "N", "b": "B", "sS": "SS", "nS": "NS", "bS": "BS", "m": "M", "l": "L", "bOOL": "BOOL", "nULL": "NULL", "nULLValue": "NULL",
}

// retagged converts an item from AWS Data Pipeline's tags to DynamoDB JSON; false for other
// text.
func retagged(text []byte) ([]byte, bool) {
	v := jsontext.Value(bytes.Trim(text, jsonSpace))
	if v.Kind() != '{' || !v.IsValid() {
		return nil, false
	}
	return appendMembers(nil, v)
}

// appendMembers appends an object or an array whose members are values with AWS Data
// Pipeline's tags, as DynamoDB JSON. ok is false if a member is another value.
func appendMembers(dst []byte, v jsontext.Value) (out []byte, ok bool) {
	d := jsontext.NewDecoder(bytes.NewReader(v))
	open, err := d.ReadToken()
	if err != nil {
		return nil, false
	}
	object, begin := open.Kind() == '{', len(dst)+1
	dst = append(dst, v[0])
	for d.PeekKind() != '}' && d.PeekKind() != ']' {
		if len(dst) > begin {
			dst = append(dst, ',')
		}
		element, err := d.ReadValue()
		if err == nil && object {
			dst = append(append(dst, element...), ':')
			element, err = d.ReadValue()
		}
		if err != nil || element.Kind() != '{' {
			return nil, false
		}
		if dst, ok = appendRetagged(dst, element); !ok {
			return nil, false
		}
	}
	return append(dst, v[len(v)-1]), true
}

// appendRetagged appends one value with a tag of AWS Data Pipeline as DynamoDB JSON. ok is
// false for other values.
func appendRetagged(dst []byte, v jsontext.Value) (out []byte, ok bool) {
	d := jsontext.NewDecoder(bytes.NewReader(v))
	if _, err := d.ReadToken(); err != nil {
		return nil, false
	}
	name, err := d.ReadToken()
	if err != nil || name.Kind() != '"' {
		return nil, false
	}
	tag, known := pipelineTags[name.String()]
	value, err := d.ReadValue()
	if !known || err != nil {
		return nil, false
	}
	if value = value.Clone(); d.PeekKind() != '}' {
		return nil, false
	}
	dst = append(append(append(dst, `{"`...), tag...), `":`...)
	if tag == "M" || tag == "L" {
		if want := map[string]jsontext.Kind{"M": '{', "L": '['}[tag]; value.Kind() != want {
			return nil, false
		}
		if dst, ok = appendMembers(dst, value); !ok {
			return nil, false
		}
	} else {
		dst = append(dst, value...)
	}
	return append(dst, '}'), true
}
