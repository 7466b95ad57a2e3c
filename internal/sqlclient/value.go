package sqlclient

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
)

// Object is an object whose members keep their order.
type Object []member

type member struct {
	name  string
	value any
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

// form converts the values whose form depends on the output: JSON, a page, or Go.
type form struct {
	bytes     func([]byte) any
	integer   func(int64) any
	timestamp func(time.Time) any
	object    func(Object) any // of a map, a struct or a row
}

var jsonForm = form{
	bytes: func(b []byte) any {
		if utf8.Valid(b) {
			return string(b)
		}
		return "base64:" + base64.StdEncoding.EncodeToString(b)
	},
	integer:   func(n int64) any { return n },
	timestamp: func(t time.Time) any { return timeText(t) },
	object:    func(o Object) any { return o },
}

// pageForm is jsonForm for JavaScript, whose numbers are exact up to maxExact.
var pageForm = form{
	bytes: jsonForm.bytes,
	integer: func(n int64) any {
		if n < -maxExact || n > maxExact {
			return strconv.FormatInt(n, 10)
		}
		return n
	},
	timestamp: jsonForm.timestamp,
	object:    jsonForm.object,
}

const maxExact = 1<<53 - 1

// goForm makes a map of an object, or a slice of its values if two members have the same name.
var goForm = form{
	bytes:     func(b []byte) any { return string(b) },
	integer:   func(n int64) any { return n },
	timestamp: func(t time.Time) any { return t },
	object: func(o Object) any {
		out, values := make(map[string]any, len(o)), make([]any, len(o))
		for i, m := range o {
			out[m.name], values[i] = m.value, m.value
		}
		if len(out) < len(o) {
			return values
		}
		return out
	},
}

// JSON returns a row as a JSON object. Bytes are texts if they are UTF-8, else base64 with the prefix
// "base64:".
func JSON(row []*btpb.Value, columns []*btpb.ColumnMetadata) Object {
	return jsonForm.row(row, columns)
}

// Page returns the values of a row for a page: as JSON, except that integers that JavaScript would round are
// texts.
func Page(row []*btpb.Value, columns []*btpb.ColumnMetadata) []any {
	out := make([]any, len(row))
	for i, v := range row {
		out[i] = pageForm.value(v, columns[i].GetType())
	}
	return out
}

// Go returns a row as Go values by the names of their columns: string for STRING and BYTES, int64, float64,
// bool, time.Time, string for DATE, []any for an array, map[string]any for a map or a struct, and nil for
// NULL. A map or struct with two equal names is a []any of its values. It returns false if two columns
// have the same name.
func Go(row []*btpb.Value, columns []*btpb.ColumnMetadata) (map[string]any, bool) {
	out, ok := goForm.object(goForm.row(row, columns)).(map[string]any)
	return out, ok
}

func (f form) row(row []*btpb.Value, columns []*btpb.ColumnMetadata) Object {
	o := make(Object, len(row))
	for i, v := range row {
		o[i] = member{columns[i].GetName(), f.value(v, columns[i].GetType())}
	}
	return o
}

func (f form) value(v *btpb.Value, t *btpb.Type) any {
	switch k := v.GetKind().(type) {
	case nil:
		return nil
	case *btpb.Value_StringValue:
		return k.StringValue
	case *btpb.Value_BytesValue:
		return f.bytes(k.BytesValue)
	case *btpb.Value_IntValue:
		return f.integer(k.IntValue)
	case *btpb.Value_FloatValue:
		return k.FloatValue
	case *btpb.Value_BoolValue:
		return k.BoolValue
	case *btpb.Value_TimestampValue:
		return f.timestamp(k.TimestampValue.AsTime())
	case *btpb.Value_ArrayValue:
		return f.composite(k.ArrayValue.GetValues(), t)
	default:
		return scalar(v)
	}
}

func (f form) composite(values []*btpb.Value, t *btpb.Type) any {
	switch of := t.GetKind().(type) {
	case *btpb.Type_MapType:
		var o Object
		for _, e := range values {
			if pair := e.GetArrayValue().GetValues(); len(pair) == 2 {
				o = append(o, member{f.name(pair[0], of.MapType.GetKeyType()), f.value(pair[1], of.MapType.GetValueType())})
			}
		}
		return f.object(o)
	case *btpb.Type_StructType:
		var o Object
		for i, e := range values {
			if fields := of.StructType.GetFields(); i < len(fields) {
				o = append(o, member{fields[i].GetFieldName(), f.value(e, fields[i].GetType())})
			}
		}
		return f.object(o)
	default:
		list := []any{}
		for _, e := range values {
			list = append(list, f.value(e, t.GetArrayType().GetElementType()))
		}
		return list
	}
}

// name returns a key of a map as the name of a member: a string itself, another key as readable text.
func (f form) name(key *btpb.Value, t *btpb.Type) string {
	if text, ok := f.value(key, t).(string); ok {
		return text
	}
	return Text(key, t)
}
