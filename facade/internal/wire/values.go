package wire

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/awserr"
)

// Flag is a Boolean member of the API model: true, false, or a string that AWS accepts as
// one of them.
type Flag bool

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (f *Flag) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	value, err := dec.ReadValue()
	if err != nil {
		return err
	}
	switch byte(value.Kind()) {
	case 't', 'f', 'n':
		*f = value.Kind() == 't'
		return nil
	case '"':
		text, err := jsontext.AppendUnquote(nil, value)
		if err != nil {
			return err
		}
		b, ok := attr.ParseBoolean(string(text))
		if !ok {
			return serializationError(awserr.MsgUnexpectedToken)
		}
		*f = Flag(b)
		return nil
	default:
		return serializationError("%s", scalarMismatchText(value.Kind(), value, "Boolean"))
	}
}

// String formats an optional flag as AWS does.
func (f *Flag) String() string {
	if f == nil {
		return "null"
	}
	return strconv.FormatBool(bool(*f))
}

// IsTrue reports whether an optional flag is given and true.
func (f *Flag) IsTrue() bool { return f != nil && bool(*f) }

// Integer is a member of the API model's type Integer. Requests may set it to any number: the
// newer layer of the service truncates decimals, and then uses the nearest 32-bit integer.
type Integer struct {
	Nearest int32
	Err     error // error of the older layer, if the number does not fit
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (n *Integer) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	value, err := dec.ReadValue()
	if err != nil {
		return err
	}
	given, err := strconv.ParseInt(string(value), 10, 32)
	if err != nil {
		mismatch := serializationError("%s", scalarMismatchText(value.Kind(), value, "Integer"))
		if value.Kind() != '0' {
			return mismatch
		}
		f, _ := strconv.ParseFloat(string(value), 64) // infinite if it is too large
		given, n.Err = int64(max(math.MinInt32, min(f, math.MaxInt32))), mismatch
	}
	n.Nearest = int32(given)
	return nil
}

// Int32 returns a pointer to the nearest int32, or nil if n is nil.
func (n *Integer) Int32() *int32 {
	if n == nil {
		return nil
	}
	return &n.Nearest
}

// EpochSeconds is a time in the format of the protocol: seconds since 1970, with
// milliseconds as decimals.
type EpochSeconds int64 // in milliseconds

// MarshalJSONTo implements json.MarshalerTo.
func (t EpochSeconds) MarshalJSONTo(enc *jsontext.Encoder) error {
	return enc.WriteValue(jsontext.Value(strconv.FormatFloat(float64(t)/1000, 'f', -1, 64)))
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom. It rounds to milliseconds.
func (t *EpochSeconds) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	value, err := dec.ReadValue()
	if err != nil {
		return err
	}
	if value.Kind() != '0' {
		return serializationError("%s", scalarMismatchText(value.Kind(), value, "Date"))
	}
	seconds, err := strconv.ParseFloat(string(value), 64)
	const most = 1 << 52 / 1000 // milliseconds above this are not exact
	if err != nil || math.Abs(seconds) > most {
		return serializationError("%s", scalarMismatchText(value.Kind(), value, "Date"))
	}
	*t = EpochSeconds(math.Round(seconds * 1000))
	return nil
}

// Time converts t to a time.Time.
func (t EpochSeconds) Time() time.Time { return time.UnixMilli(int64(t)) }

// Double is a floating-point number in the format of the protocol. It always has a
// decimal point, by which clients distinguish it from an integer.
type Double float64

// MarshalJSONTo implements json.MarshalerTo.
func (d Double) MarshalJSONTo(enc *jsontext.Encoder) error {
	text := strconv.FormatFloat(float64(d), 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return enc.WriteValue(jsontext.Value(text))
}

// Item is an item or a key in a request or a response. A value that is well-formed JSON
// but not an attribute value does not stop the decoding, because AWS checks it after the
// constraints of the members. Err holds the error of such a value.
type Item struct {
	Item attr.Item
	Err  error // fault of an item in a request; Item is then nil, or has attributes without a name
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (w *Item) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	raw, err := dec.ReadValue()
	if err != nil || raw.Kind() == 'n' {
		return err
	}
	if w.Item, w.Err = attr.UnmarshalItem(raw); w.Err != nil {
		if e, ok := errors.AsType[*attr.Error](w.Err); ok && e.Problem == attr.TooDeep && hasUnnamed(raw) {
			w.Err = errEmptyName // of the item itself, it precedes the depth of any value
			return nil
		}
		return serializationOf(w.Err)
	}
	w.Err = checkNames(w.Item)
	return nil
}

// hasUnnamed reports whether an item has an attribute without a name.
func hasUnnamed(item jsontext.Value) bool {
	var attributes map[string]jsontext.Value
	_ = json.Unmarshal(item, &attributes) // a fault behind the depth is not reported
	_, found := attributes[""]
	return found
}

// MarshalJSONTo implements json.MarshalerTo.
func (w Item) MarshalJSONTo(enc *jsontext.Encoder) error {
	return enc.WriteValue(attr.AppendItemJSON(nil, w.Item))
}

// Value is an attribute value. It is decoded in the same way as Item.
type Value struct {
	Value attr.Value
	Err   error
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (w *Value) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	if k := raw.Kind(); k != '{' && k != '[' && k != 'n' {
		return errNoStructure
	}
	if w.Value, w.Err = attr.UnmarshalValue(raw); w.Err != nil {
		return serializationOf(w.Err)
	}
	w.Err = checkNamesWithin(w.Value)
	return nil
}

// MarshalJSONTo implements json.MarshalerTo.
func (w Value) MarshalJSONTo(enc *jsontext.Encoder) error {
	return enc.WriteValue(attr.AppendJSON(nil, w.Value))
}

// Parameter is the value of a parameter of a statement.
type Parameter struct {
	Value
	// Zeros holds the number of fraction digits that each zero was written with, since
	// the values do not preserve it.
	Zeros string
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (p *Parameter) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	raw = raw.Clone()
	if err := p.Value.UnmarshalJSONFrom(jsontext.NewDecoder(bytes.NewReader(raw))); err != nil || p.Err != nil || !hasZero(p.Value.Value) {
		return err
	}
	var written struct {
		N  string
		NS []string
	}
	if err := json.Unmarshal(raw, &written); err != nil {
		return err
	}
	if p.Value.Value.Type == attr.N {
		written.NS = []string{written.N}
	}
	for _, text := range written.NS {
		if n, err := attr.ParseNumber(text); err == nil && n == "0" {
			_, scale, _ := attr.Scale(text)
			p.Zeros += strconv.Itoa(int(scale)) + " "
		}
	}
	return nil
}

// hasZero reports whether a value is zero or a set with zero.
func hasZero(v attr.Value) bool {
	return v.Type == attr.N && v.Str == "0" || v.Type == attr.NS && slices.Contains(v.Set, "0")
}

// errNoStructure is the error of a value that is not a structure; the client's text depends
// on the place of the value in the request.
var errNoStructure = errors.New("the value is not a structure")

// errEmptyName is the error of an attribute without a name.
var errEmptyName = errors.New(awserr.MsgEmptyName) //nolint:staticcheck // ST1005: its text is the answer

// checkNames rejects attributes without a name, which are possible in rows but not in
// requests.
func checkNames(m map[string]attr.Value) error {
	for name, value := range m {
		if name == "" {
			return errEmptyName
		}
		if err := checkNamesWithin(value); err != nil {
			return err
		}
	}
	return nil
}

func checkNamesWithin(value attr.Value) error {
	for _, element := range value.List {
		if err := checkNamesWithin(element); err != nil {
			return err
		}
	}
	return checkNames(value.Map)
}

// OptionalItem returns the item for a response, or nil to omit the member if the item is
// nil.
func OptionalItem(item attr.Item) *Item {
	if item == nil {
		return nil
	}
	return &Item{Item: item}
}

// serializationOf returns err's SerializationException if the value is unreadable, or nil if
// validation must reject it.
func serializationOf(err error) error {
	var e *attr.Error
	if !errors.As(err, &e) {
		return err
	}
	text, unreadable := e.AWSMessage()
	if !unreadable {
		return nil
	}
	return serializationError("%s", text)
}
