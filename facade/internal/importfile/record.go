package importfile

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/iontext"
	"github.com/tabletop-emu/tabletop/internal/itemtext"
)

// Record is an item of a bulk operation, with the condition under which it is put.
// Assumption: the other members are those of PutItem.
type Record struct {
	Item      attr.Item
	Condition *string
	Names     map[string]string     // nil if not given
	Values    map[string]attr.Value // nil if not given
}

// errNotRecord reports a line that is not a record.
var errNotRecord = errors.New(`the line is not {"Item": {…}}, with or without ConditionExpression, ExpressionAttributeNames and ExpressionAttributeValues`)

// Record returns the next record of a file in JSON or Ion. It returns the same errors as
// Next.
func (r *Reader) Record() (rec Record, err error) {
	if r.o.Format == FormatIon {
		var line []byte
		if line, err = r.texts.Next(); err == nil {
			if r.json, err = iontext.AppendRecord(r.json[:0], line); err == nil {
				rec, err = parseRecord(r.json, true)
			}
		}
	} else {
		err = r.texts.Item(func(text []byte) (err error) {
			rec, err = parseRecord(text, false)
			return err
		})
	}
	if errors.Is(err, itemtext.ErrTooLong) || errors.Is(err, itemtext.ErrBlank) {
		err = errTooLong
	}
	return rec, err
}

// parseRecord parses a line of JSON. In a line that was Ion, all strings are attribute values.
func parseRecord(line []byte, wasIon bool) (rec Record, err error) {
	if !jsontext.Value(line).IsValid(jsontext.AllowDuplicateNames(true)) {
		return rec, errors.New("the line is not JSON")
	}
	d := jsontext.NewDecoder(bytes.NewReader(line))
	if d.PeekKind() != '{' {
		return rec, &ItemError{errNotRecord}
	}
	_, err = d.ReadToken()
	for err == nil && d.PeekKind() == '"' {
		var token jsontext.Token
		if token, err = d.ReadToken(); err != nil {
			break
		}
		member := token.String()
		switch member {
		case "Item":
			rec.Item, err = attr.DecodeItem(d)
		case "ConditionExpression":
			rec.Condition = new(string)
			*rec.Condition, err = decodeText(d, wasIon)
		case "ExpressionAttributeNames":
			rec.Names, err = decodeNames(d, wasIon)
		case "ExpressionAttributeValues":
			rec.Values, err = attr.DecodeItem(d)
		default:
			err = errNotRecord
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", member, err)
		}
	}
	if err == nil && rec.Item == nil {
		err = errNotRecord
	}
	if err != nil {
		return Record{}, &ItemError{err}
	}
	return rec, nil
}

func decodeText(d *jsontext.Decoder, wasIon bool) (text string, err error) {
	if !wasIon {
		return text, json.UnmarshalDecode(d, &text)
	}
	v, err := attr.DecodeValue(d)
	if err == nil && v.Type != attr.S {
		err = errNotRecord
	}
	return v.Str, err
}

func decodeNames(d *jsontext.Decoder, wasIon bool) (names map[string]string, err error) {
	if !wasIon {
		return names, json.UnmarshalDecode(d, &names)
	}
	values, err := attr.DecodeItem(d)
	names = make(map[string]string, len(values))
	for key, v := range values {
		if v.Type != attr.S {
			return nil, errNotRecord
		}
		names[key] = v.Str
	}
	return names, err
}
