package attr

import "github.com/go-json-experiment/json/jsontext"

// MaxDepth is how many levels of lists, maps and the value inside them an
// attribute may have: a scalar is one level, a list of scalars two.
// Source: developer guide, "Service, account, and table quotas", nested
// attribute depth.
const MaxDepth = 32

// UnmarshalItem reads one item, `{"name": {"S": "…"}, …}`, from data, which
// holds nothing else. Errors are of type *Error, with a path that begins with
// "Item".
func UnmarshalItem(data []byte) (Item, error) { panic("x") }

// UnmarshalValue reads one value, `{"S": "…"}`, from data, which holds nothing
// else. Errors are of type *Error.
func UnmarshalValue(data []byte) (Value, error) { panic("x") }

// DecodeItem reads the next JSON value of d as an item. After an error d
// stands somewhere inside of it. Errors are of type *Error, except for those
// of the reader below d.
func DecodeItem(d *jsontext.Decoder) (Item, error) { panic("x") }

// DecodeValue is DecodeItem for one attribute value.
func DecodeValue(d *jsontext.Decoder) (Value, error) { panic("x") }

// AppendJSON appends the canonical JSON of v: sorted member names, no spaces,
// sets in canonical order, minimal escapes (RFC 8785).
func AppendJSON(dst []byte, v Value) []byte { panic("x") }

// AppendItemJSON appends the canonical JSON of an item.
func AppendItemJSON(dst []byte, item Item) []byte { panic("x") }
