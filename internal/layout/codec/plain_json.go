package codec

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// AppendPlainJSON appends v as JSON without types: binaries as base64, sets as arrays in canonical
// order, and maps with sorted keys.
func AppendPlainJSON(dst []byte, v attr.Value) []byte {
	quote := func(dst []byte, s string) []byte {
		b, err := jsontext.AppendQuote(dst, s)
		if err != nil { // not UTF-8, so not a DynamoDB string; the replaced text differs from v, which is therefore rejected
			return b
		}
		return b
	}
	array := func(n int, elem func(dst []byte, i int) []byte) []byte {
		dst = append(dst, '[')
		for i := range n {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = elem(dst, i)
		}
		return append(dst, ']')
	}
	switch v.Type {
	case attr.S:
		return quote(dst, v.Str)
	case attr.N:
		return append(dst, v.Str...)
	case attr.B:
		return quote(dst, base64.StdEncoding.EncodeToString([]byte(v.Str)))
	case attr.BOOL:
		if v.Bool {
			return append(dst, "true"...)
		}
		return append(dst, "false"...)
	case attr.NULL, attr.Absent:
		return append(dst, "null"...)
	case attr.SS, attr.NS, attr.BS:
		return array(len(v.Set), func(dst []byte, i int) []byte {
			return AppendPlainJSON(dst, attr.Value{Type: MemberType(v.Type), Str: v.Set[i]})
		})
	case attr.L:
		return array(len(v.List), func(dst []byte, i int) []byte { return AppendPlainJSON(dst, v.List[i]) })
	case attr.M:
		dst = append(dst, '{')
		for i, k := range slices.Sorted(maps.Keys(v.Map)) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(quote(dst, k), ':')
			dst = AppendPlainJSON(dst, v.Map[k])
		}
		return append(dst, '}')
	}
	return dst
}

// parsePlainJSON reads plain JSON. Where the schema has no type or does not fit, JSON's own
// types decide: string S, number N, boolean BOOL, null NULL, array L, object M.
func parsePlainJSON(b []byte, s Schema) (attr.Value, error) {
	d := jsontext.NewDecoder(strings.NewReader(string(b)))
	v, err := DecodePlainJSON(d, s)
	if err != nil {
		return attr.Value{}, err
	}
	if _, err := d.ReadToken(); err == nil {
		return attr.Value{}, errors.New("more than one JSON value")
	}
	return v, nil
}

// DecodePlainJSON decodes the next value of d. Where s has no type or does not fit, JSON's own
// types decide.
func DecodePlainJSON(d *jsontext.Decoder, s Schema) (attr.Value, error) {
	tok, err := d.ReadToken()
	if err != nil {
		return attr.Value{}, err
	}
	switch tok.Kind() {
	case 'n':
		return attr.Null(), nil
	case 't', 'f':
		return attr.Boolean(tok.Bool()), nil
	case '0':
		return attr.Number(tok.String())
	case '"':
		text := tok.String()
		if s.Type == attr.B {
			if raw, err := base64.StdEncoding.DecodeString(text); err == nil {
				return attr.Binary(raw), nil
			}
		}
		return attr.String(text), nil
	case '[':
		elem := Schema{}
		if s.Elem != nil {
			elem = *s.Elem
		}
		if s.Type == attr.BS {
			elem.Type = attr.B
		}
		list := []attr.Value{}
		for d.PeekKind() != ']' {
			v, err := DecodePlainJSON(d, elem)
			if err != nil {
				return attr.Value{}, err
			}
			list = append(list, v)
		}
		if _, err := d.ReadToken(); err != nil {
			return attr.Value{}, err
		}
		if set, ok := asSet(list, s.Type); ok {
			return set, nil
		}
		return attr.Value{Type: attr.L, List: list}, nil
	case '{':
		m := map[string]attr.Value{}
		for d.PeekKind() != '}' {
			tok, err := d.ReadToken()
			if err != nil {
				return attr.Value{}, err
			}
			k := tok.String()
			if m[k], err = DecodePlainJSON(d, s.At(k)); err != nil {
				return attr.Value{}, err
			}
		}
		if _, err := d.ReadToken(); err != nil {
			return attr.Value{}, err
		}
		return attr.MapOf(m), nil
	case jsontext.KindInvalid, jsontext.KindEndObject, jsontext.KindEndArray:
	}
	return attr.Value{}, fmt.Errorf("unexpected %v", tok.Kind())
}

// asSet converts the elements of an array to a set of type t, if possible.
func asSet(list []attr.Value, t attr.Type) (attr.Value, bool) {
	if !t.IsSet() || len(list) == 0 {
		return attr.Value{}, false
	}
	members := make([]string, len(list))
	for i, v := range list {
		if v.Type != MemberType(t) {
			return attr.Value{}, false
		}
		members[i] = v.Str
	}
	return attr.SetOf(t, members...), true
}

// MemberType returns the type of the members of a set of type t.
func MemberType(t attr.Type) attr.Type {
	switch t { //nolint:exhaustive // the other types are no sets
	case attr.NS:
		return attr.N
	case attr.BS:
		return attr.B
	}
	return attr.S
}
