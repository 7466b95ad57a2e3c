// Package ddbmodel implements a naive DynamoDB. It is the reference for tests of the facade and for
// the differential runs of package migrate. It keeps a list of items for each table, evaluates
// expressions that are built rather than parsed, and prefers obvious correctness to speed. It
// shares no code with the facade, and does not deal with rows. It is not safe for concurrent use.
package ddbmodel

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// Value is an attribute value. A value without Type is absent. Values are never changed in place.
type Value struct {
	Type string // S, N, B, BOOL, NULL, SS, NS, BS, L or M
	Text string // the content of S, N (canonical) and B
	Bool bool
	Set  []string // the members of SS, NS and BS, in bytewise order
	List []Value
	Map  Item
}

// Item maps attribute names to values. It represents an item or a map value.
type Item map[string]Value

// String returns a value of type S.
func String(s string) Value { return Value{Type: "S", Text: s} }

// Binary returns a value of type B.
func Binary(b string) Value { return Value{Type: "B", Text: b} }

// Number returns a value of type N for a decimal text.
func Number(text string) Value {
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		panic("not a number: " + text)
	}
	return Value{Type: "N", Text: decimal(r)}
}

// Boolean returns a value of type BOOL.
func Boolean(b bool) Value { return Value{Type: "BOOL", Bool: b} }

// Null returns the value of type NULL.
func Null() Value { return Value{Type: "NULL"} }

// SetOf returns a value of type SS, NS or BS. Members of NS must be canonical.
func SetOf(kind string, members ...string) Value {
	members = slices.Clone(members)
	slices.Sort(members)
	return Value{Type: kind, Set: slices.Compact(members)}
}

// ListOf returns a value of type L.
func ListOf(elements ...Value) Value { return Value{Type: "L", List: elements} }

// MapOf returns a value of type M.
func MapOf(m Item) Value { return Value{Type: "M", Map: m} }

// Limits of numbers.
const (
	maxDigits    = 38
	lowestPlaces = 130 + maxDigits // digits after the point of the smallest
)

var (
	numberEnd   = power(126)  // magnitudes are below
	numberStart = power(-130) // and not below, unless zero
)

func power(exponent int64) *big.Rat {
	r := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(max(exponent, -exponent)), nil))
	if exponent < 0 {
		r.Inv(r)
	}
	return r
}

func (v Value) rat() *big.Rat {
	r, ok := new(big.Rat).SetString(v.Text)
	if !ok {
		panic("not a number: " + v.Text)
	}
	return r
}

// decimal returns DynamoDB's form of a number: expanded, without zeros at the ends.
func decimal(r *big.Rat) string {
	text := strings.TrimRight(strings.TrimRight(r.FloatString(2*lowestPlaces), "0"), ".")
	if text == "-0" {
		return "0"
	}
	return text
}

const (
	faultOverflow = "Number overflow. Attempting to store a number with magnitude larger than supported range"
	faultDigits   = "Attempting to store more than 38 significant digits in a Number"
)

// numberFault returns DynamoDB's error for a number, if any.
func numberFault(r *big.Rat) string {
	magnitude := new(big.Rat).Abs(r)
	digits := strings.Trim(strings.Replace(decimal(magnitude), ".", "", 1), "0")
	switch {
	case r.Sign() == 0:
		return ""
	case magnitude.Cmp(numberEnd) >= 0:
		return faultOverflow
	case magnitude.Cmp(numberStart) < 0:
		return "Number underflow. Attempting to store a number with magnitude smaller than supported range"
	case len(digits) > maxDigits:
		return faultDigits
	}
	return ""
}

// isPresent reports whether the value is present.
func (v Value) isPresent() bool { return v.Type != "" }

// equal compares two values by type and content; absent ones are not equal.
func equal(v, w Value) bool { return v.isPresent() && v.json() == w.json() }

// order compares two values of one ordered type.
func order(v, w Value) (sign int, ok bool) {
	if v.Type != w.Type {
		return 0, false
	}
	switch v.Type {
	case "N":
		return v.rat().Cmp(w.rat()), true
	case "S", "B":
		return strings.Compare(v.Text, w.Text), true
	}
	return 0, false
}

// MarshalJSON returns the wire form, which is the same for equal values.
func (v Value) MarshalJSON() ([]byte, error) {
	var content any
	switch v.Type {
	case "S", "N":
		content = v.Text
	case "B":
		content = []byte(v.Text)
	case "BOOL":
		content = v.Bool
	case "NULL":
		content = true
	case "SS", "NS":
		content = v.Set
	case "BS":
		members := make([]string, len(v.Set))
		for i, m := range v.Set {
			members[i] = base64.StdEncoding.EncodeToString([]byte(m))
		}
		slices.Sort(members)
		content = members
	case "L":
		content = append([]Value{}, v.List...)
	case "M":
		content = v.Map
		if v.Map == nil {
			content = Item{}
		}
	}
	return json.Marshal(map[string]any{v.Type: content})
}

func (v Value) json() string { return Text(v) }

// Text returns the JSON of anything that consists of values. It sorts the members of objects and
// sets, so equal contents have equal texts.
func Text(content any) string {
	b, err := json.Marshal(content)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// Canonical converts a server's JSON to the form of Text. It only sorts members, and leaves the
// texts of numbers unchanged.
func Canonical(answer []byte) (string, error) {
	d := json.NewDecoder(strings.NewReader(string(answer)))
	d.UseNumber()
	var content any
	if err := d.Decode(&content); err != nil {
		return "", err
	}
	return Text(sortSets(content)), nil
}

func sortSets(content any) any {
	switch content := content.(type) {
	case map[string]any:
		for name, member := range content {
			content[name] = sortSets(member)
		}
		for _, kind := range []string{"SS", "NS", "BS"} {
			if members, ok := content[kind].([]any); ok && len(content) == 1 {
				slices.SortFunc(members, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
			}
		}
	case []any:
		for i := range content {
			content[i] = sortSets(content[i])
		}
	}
	return content
}
