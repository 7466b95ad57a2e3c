package layout

import (
	"bytes"
	"fmt"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// keyOrder is how the bytes of an encoder sort, against the values.
type keyOrder uint8

const (
	noOrder keyOrder = iota
	sameOrder
	reversedOrder
)

// encoder writes one value into a row key, a qualifier or the text of a key
// attribute, injectively on its domain unless it is derived.
type encoder struct {
	name string // as written in a template: "revms(13)"
	in   attr.Type
	time bool // the value is an instant in milliseconds
	// derived says that the value cannot be told from what is written: it is
	// told elsewhere, and what is written is checked against it.
	derived bool
	// identifies says that a derived encoder is a hash that two values will
	// not have in common.
	identifies bool
	shards     int      // of a salt: how many different texts it writes
	prefix     string   // of values, that is not written
	version    bool     // the value is the number of a version
	order      keyOrder // of values of type in
	width      int      // in bytes, of every encoded value; 0: it varies
	expected   string   // the domain, in words
	bytes      bool     // the encoded form is no UTF-8
	encode     func(dst []byte, v attr.Value) ([]byte, bool)
	decode     func(b []byte) (attr.Value, bool)
}

// encodeKey appends the encoded form of v; false outside of the domain.
func (e *encoder) encodeKey(dst []byte, v attr.Value) ([]byte, bool) {
	if v.Type != e.in {
		return dst, false
	}
	return e.encode(dst, v)
}

// decodeKey is the inverse: it takes nothing that encodeKey does not write.
func (e *encoder) decodeKey(b []byte) (attr.Value, bool) {
	switch {
	case e.derived:
		return attr.Value{}, false
	case e == verbatim:
		return attr.Value{Type: e.in, Str: string(b)}, true
	}
	v, ok := e.decode(b)
	if !ok {
		return attr.Value{}, false
	}
	back, ok := e.encode(nil, v)
	return v, ok && bytes.Equal(back, b)
}

// verbatim is how {attr}, {member} and {key} are written without an encoder: the
// text of a name or number, the bytes of a binary.
var verbatim = &encoder{
	in: attr.S, order: sameOrder,
	encode: asItIs,
}

// parseElementEncoder finds the encoder of members of a set, or of keys of a map,
// of type t.
func parseElementEncoder(text string, t attr.Type) (*encoder, error) {
	if text == "" {
		return verbatim, nil
	}
	e, err := parseEncoder(text, t)
	if err == nil && e.derived {
		err = fmt.Errorf("encoder %s does not tell the value back", e.name)
	}
	return e, err
}

func pow10(n int) int64 {
	p := int64(1)
	for range n {
		p *= 10
	}
	return p
}
