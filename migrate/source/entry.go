package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// shape is the form of an item in an input.
type shape uint8

const (
	plainItem    shape = iota // {"id": {"S": "…"}, …}
	wrappedItem               // {"Item": {"id": …}}
	putRequest                // {"PutRequest": {"Item": {"id": …}}}
	plainJSON                 // {"id": "…", …}
	pipelineItem              // {"id": {"s": "…"}, …}
	sampleItem                // plainItem whose documents may be plain JSON: {"doc": {"M": {"on": true}}, …}
)

// wrappers returns the names of the objects around an item, outermost first.
func (s shape) wrappers() []string {
	switch s {
	case wrappedItem:
		return []string{"Item"}
	case putRequest:
		return []string{"PutRequest", "Item"}
	case plainItem, sampleItem, plainJSON, pipelineItem:
	}
	return nil
}

// Names returns the names of the item's top-level attributes in the order of the input.
// Item does not preserve that order, which key inference needs. Call Names before reading
// the next entry.
func (e Entry) Names() []string {
	d := jsontext.NewDecoder(bytes.NewBuffer(e.Text))
	var names []string
	if _, err := d.ReadToken(); err != nil {
		return nil // cannot happen: the text has been read as an item
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return names
		}
		names = append(names, name.String())
		if d.SkipValue() != nil {
			return names
		}
	}
	return names
}

// parseEntry parses one item from its JSON text. With an error, the entry has the text and its
// position.
func parseEntry(text []byte, s shape, at Position) (Entry, error) {
	switch s { //nolint:exhaustive // the other shapes are DynamoDB JSON
	case plainJSON:
		text = typedItem(text)
	case pipelineItem:
		if typed, ok := retagged(text); ok {
			text = typed
		}
	}
	if tag := textOfTruth(text); tag != "" {
		return Entry{Position: at, Text: text}, Damaged(ValueInvalid, at, nil, "not a DynamoDB value: a string follows %s, expected true or false without quotes", tag)
	}
	if body, ok := bodyOf(text, s); ok {
		if item, err := attr.UnmarshalItem(body); err == nil {
			return Entry{Item: item, Position: at, Text: body}, nil
		}
	}
	e, err := parseItem(text, s, at)
	if err != nil && s == sampleItem {
		if typed, again := parseItem(typeDocuments(text), s, at); again == nil {
			return typed, nil
		}
	}
	if wrong := ionError(text); err != nil && wrong != nil {
		err = Damaged(NotAnItem, at, wrong, "not an item")
	}
	if err != nil {
		return Entry{Position: at, Text: text}, err
	}
	return e, nil
}

// textOfTruth returns the type tag "BOOL" or "NULL" if a string follows it in text, else "".
// Requests may contain {"BOOL":"true"}, but exports do not. Inside a string the quotes of the
// tag are escaped.
func textOfTruth(text []byte) string {
	for _, tag := range []string{`"BOOL"`, `"NULL"`} {
		for rest := text; ; {
			i := bytes.Index(rest, []byte(tag))
			if i < 0 {
				break
			}
			rest = bytes.TrimLeft(rest[i+len(tag):], jsonSpace)
			if value, ok := bytes.CutPrefix(rest, []byte(":")); ok && bytes.HasPrefix(bytes.TrimLeft(value, jsonSpace), []byte(`"`)) {
				return tag
			}
		}
	}
	return ""
}

// jsonSpace is the white space of JSON.
const jsonSpace = " \t\r\n"

// bodyOf removes the wrappers of an item without parsing it, if they contain nothing else. If
// the body parses as an item, the text was well formed.
func bodyOf(text []byte, s shape) (body []byte, ok bool) {
	body = bytes.Trim(text, jsonSpace)
	for _, name := range s.wrappers() {
		for _, token := range []string{"{", `"` + name + `"`, ":"} {
			if body, ok = bytes.CutPrefix(body, []byte(token)); !ok {
				return nil, false
			}
			body = bytes.TrimLeft(body, jsonSpace)
		}
		if body, ok = bytes.CutSuffix(body, []byte("}")); !ok {
			return nil, false
		}
		body = bytes.TrimRight(body, jsonSpace)
	}
	return body, true
}

// parseItem parses an item token by token, to find its fault.
func parseItem(text []byte, s shape, at Position) (Entry, error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(text))
	wrappers := s.wrappers()
	for _, name := range wrappers {
		if err := unwrap(d, name, at); err != nil {
			return Entry{}, err
		}
	}
	start := d.InputOffset()
	item, err := attr.DecodeItem(d)
	if bad, ok := errors.AsType[*attr.Error](err); ok && s == plainItem && bad.Problem == attr.WrongToken && bad.Type == attr.Absent && strings.Contains(bad.Path, ".") {
		return Entry{}, Damaged(NotAnItem, at, fmt.Errorf("%w; --plain reads JSON without type tags", err), "not an item")
	}
	if err != nil {
		return Entry{}, itemError(err, at)
	}
	body := bytes.TrimLeft(text[start:d.InputOffset()], ": \t\r\n")
	for range wrappers {
		tok, err := d.ReadToken()
		if err != nil {
			return Entry{}, Damaged(NotJSON, at, JSONCause(err), "not JSON")
		}
		if tok.Kind() != '}' {
			return Entry{}, Damaged(NotAnItem, at, nil, "unexpected member %q beside the item", tok.String())
		}
	}
	switch _, err := d.ReadToken(); {
	case err == nil:
		return Entry{}, Damaged(NotJSON, at, nil, "not JSON: more text follows the item")
	case !errors.Is(err, io.EOF):
		return Entry{}, Damaged(NotJSON, at, JSONCause(err), "not JSON")
	}
	return Entry{Item: item, Position: at, Text: body}, nil
}

// unwrap reads `{"name":`.
func unwrap(d *jsontext.Decoder, name string, at Position) error {
	for _, want := range []jsontext.Kind{'{', '"'} {
		tok, err := d.ReadToken()
		if err != nil {
			return Damaged(NotJSON, at, JSONCause(err), "not JSON")
		}
		switch {
		case tok.Kind() != want && tok.Kind() == '}':
			return Damaged(NotAnItem, at, nil, "found an empty object; expected {%q: …}", name)
		case tok.Kind() != want:
			return Damaged(NotAnItem, at, nil, "found a JSON %s; expected {%q: …}", kindName(tok.Kind()), name)
		case want == '"' && tok.String() != name:
			return Damaged(NotAnItem, at, nil, "found member %q; expected %q", tok.String(), name)
		}
	}
	return nil
}

// JSONCause returns the cause inside a JSON error. For a syntax error it adds the position in
// the text, in bytes from 1.
func JSONCause(err error) error {
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		return fmt.Errorf("%w at byte %d", syntactic.Err, syntactic.ByteOffset+1)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return errors.New("the text ends early")
	}
	return err
}

// itemError converts an error of decoding an item to an Error.
func itemError(err error, at Position) error {
	var bad *attr.Error
	if !errors.As(err, &bad) {
		return Damaged(NotJSON, at, JSONCause(err), "not JSON")
	}
	switch bad.Problem {
	case attr.BadJSON:
		return Damaged(NotJSON, at, JSONCause(bad.Err), "not JSON")
	case attr.DuplicateName:
		return Damaged(NotJSON, at, err, "not valid JSON for an item")
	case attr.WrongToken:
		return Damaged(NotAnItem, at, err, "not an item")
	case attr.NoType, attr.ManyTypes, attr.UnknownType:
		return Damaged(TypeUnknown, at, err, "unknown type")
	case attr.NotNumber, attr.Overflow, attr.Underflow, attr.TooPrecise:
		return Damaged(NumberInvalid, at, err, "not a DynamoDB number")
	case attr.NullNotTrue, attr.BadBase64, attr.EmptySet, attr.DuplicateMember, attr.TooDeep, attr.LongName:
		return Damaged(ValueInvalid, at, err, "not a DynamoDB value")
	}
	return Damaged(ValueInvalid, at, err, "not a DynamoDB value")
}
