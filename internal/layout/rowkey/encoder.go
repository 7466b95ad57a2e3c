package rowkey

import (
	"bytes"
	"fmt"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// KeyOrder is the order of encoded values relative to the order of the values.
type KeyOrder uint8

// These are the orders of encoders.
const (
	NoOrder KeyOrder = iota
	SameOrder
	ReversedOrder
)

// Encoder encodes a value in a row key, a qualifier or the text of a key attribute. It is injective
// on its domain unless it is derived.
type Encoder struct {
	Name string // name in a template, such as "revms(13)"
	In   attr.Type
	Time bool // the value is an instant in milliseconds
	// Derived reports whether the encoded form does not determine the value. In this case the value
	// is stored elsewhere, and the encoded form is checked against it.
	Derived bool
	// Identifies reports whether a derived encoder is a hash that has no collisions in practice.
	Identifies bool
	Shards     int      // for a salt: the number of its possible texts
	Prefix     string   // prefix of all values, omitted from the encoded form
	Version    bool     // the value is a version number
	Order      KeyOrder // order of encoded values of type In
	Width      int      // width in bytes of every encoded value; 0 if it varies
	Expected   string   // describes the domain
	Bytes      bool     // the encoded form is not UTF-8
	encode     func(dst []byte, v attr.Value) ([]byte, bool)
	// Decode decodes a value that EncodeKey encoded. It may accept more than EncodeKey writes.
	Decode func(b []byte) (attr.Value, bool)
}

// EncodeKey appends the encoded form of v. It returns false if v is outside the domain.
func (e *Encoder) EncodeKey(dst []byte, v attr.Value) ([]byte, bool) {
	if v.Type != e.In {
		return dst, false
	}
	return e.encode(dst, v)
}

// DecodeKey decodes a value that EncodeKey encoded, and rejects everything that EncodeKey does not
// write.
func (e *Encoder) DecodeKey(b []byte) (attr.Value, bool) {
	switch {
	case e.Derived:
		return attr.Value{}, false
	case e == Verbatim:
		return attr.Value{Type: e.In, Str: string(b)}, true
	}
	v, ok := e.Decode(b)
	if !ok {
		return attr.Value{}, false
	}
	back, ok := e.encode(nil, v)
	return v, ok && bytes.Equal(back, b)
}

// Verbatim is the default encoder of {attr}, {member} and {key}. It writes the text of a name or
// number, or the bytes of a binary.
var Verbatim = &Encoder{
	In: attr.S, Order: SameOrder,
	encode: asItIs,
}

// ParseElementEncoder returns the encoder for members of a set, or for keys of a map, of type t.
func ParseElementEncoder(text string, t attr.Type) (*Encoder, error) {
	if text == "" {
		return Verbatim, nil
	}
	e, err := ParseEncoder(text, t)
	if err == nil && e.Derived {
		err = fmt.Errorf("encoder %s does not determine the value", e.Name)
	}
	return e, err
}

// Pow10 returns 10^n.
func Pow10(n int) int64 {
	p := int64(1)
	for range n {
		p *= 10
	}
	return p
}
