package edge

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/rowkey"
)

// Values draws random values that test the limits of a mapping.
type Values struct {
	*rand.Rand

	Mild  bool     // draw only values without a special meaning to joiners and codecs
	Marks []string // texts with a special meaning to the mapping
}

// Pick draws a random element of from.
func Pick[T any](g *Values, from ...T) T { return from[g.IntN(len(from))] }

// LargeMember is the length in bytes of the large texts that are drawn occasionally, as a value or
// a member of a value, but not as a key.
const LargeMember = 16 << 10

// Encoded draws a value near the boundaries of an encoder's domain, and sometimes a value outside
// of it.
func (g *Values) Encoded(e *rowkey.Encoder) attr.Value {
	if !g.Mild && g.IntN(4) == 0 {
		return g.Plain(e.In)
	}
	name, arg, _ := strings.Cut(strings.TrimSuffix(e.Name, ")"), "(")
	switch {
	case name == "strip":
		return attr.String(arg + g.Plain(attr.S).Str)
	case name == "const":
		return attr.String(arg)
	case name == "revdigits":
		return attr.String(fmt.Sprint(g.IntN(1000000)))
	case e.Version:
		return attr.Int(int64(g.IntN(13)))
	case codec.TimeFormats[e.Name] != codec.TimeFormat{}:
		millis := Pick(g, int64(1694359308000), 1694359309000, 1694359308001, 9999999999999, 1000000000000)
		if e.Time {
			return attr.Int(millis)
		}
		text, _ := codec.TimeFormats[e.Name].Format(millis)
		return attr.Value{Type: e.In, Str: text}
	case e.In == attr.N && e.Width > 0 && name != "i64":
		limit := rowkey.Pow10(min(e.Width, 18)) - 1
		return attr.Int(Pick(g, 0, 1, 2, limit/2, limit-1, limit, limit+1))
	}
	return g.Plain(e.In)
}

// Plain draws a key value. If Mild is set, the value has no special meaning.
func (g *Values) Plain(kind attr.Type) attr.Value {
	switch {
	case !g.Mild:
	case kind == attr.S:
		return attr.String(Pick(g, "a", "b", "ab", "hats", "z9") + Pick(g, "", "0", "1", "2"))
	case kind == attr.N:
		return attr.Int(g.Int64N(100))
	case kind == attr.B:
		return attr.Binary([]byte(Pick(g, "a", "zz", "b")))
	}
	return g.Key(kind)
}

// Key draws a non-empty key value of type S, N or B.
func (g *Values) Key(kind attr.Type) attr.Value {
	for {
		v := attr.Value{Type: kind}
		switch kind { //nolint:exhaustive // a key has one of three types
		case attr.N:
			v.Str = g.number()
		case attr.B:
			v.Str = g.bytes()
		default:
			v.Str = g.text()
		}
		if v.Str != "" {
			return v
		}
	}
}

// text draws delimiters, escapes, prefixes of one another, the ends of the alphabet, marks of
// the mapping, or an empty text.
func (g *Values) text() string {
	var b strings.Builder
	for range g.IntN(6) {
		if len(g.Marks) > 0 && g.IntN(5) == 0 {
			b.WriteString(Pick(g, g.Marks...))
			continue
		}
		b.WriteString(Pick(g, "#", "$", "$23", "\x00", "\x01", "\x00\x01", "a", "b", "ab", "é", "~", "/", ":", ".", " ", `"`, "{", "}", "0", "9", "\uffff", "\U0010ffff", "C", "c/"))
	}
	return b.String()
}

// member draws a text, sometimes a large one.
func (g *Values) member() string {
	if g.IntN(100) == 0 {
		bit := Pick(g, "x", "é", "\x00")
		return strings.Repeat(bit, LargeMember/len(bit))
	}
	return g.text()
}

// number draws numbers at the limits of DynamoDB and of the codecs.
func (g *Values) number() string {
	text := Pick(g, "0", "-1", "1", "3", "20", "0.5", "-1.2", "-1.23", "1E-130", "9.99E+125", "99999999999999999999999999999999999999",
		"-99999999999999999999999999999999999999", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "1694372475000", "1425330757685", "42")
	switch g.IntN(3) {
	case 0:
		text = fmt.Sprint(g.IntN(2050) - 50)
	case 1:
		text = fmt.Sprintf("%dE%d", int64(g.Uint64()), g.IntN(190)-100)
	}
	canonical, err := attr.ParseNumber(text)
	if err != nil {
		return "0" // unreachable: all of them are DynamoDB numbers
	}
	return canonical
}

func (g *Values) bytes() string {
	var b []byte
	for range g.IntN(11) {
		b = append(b, Pick[byte](g, 0, 1, 2, '#', '$', 'a', 0x7f, 0xfe, 0xff))
	}
	return string(b)
}

// Value draws a value of any type, with documents nested up to depth.
func (g *Values) Value(depth int) attr.Value {
	types := []attr.Type{attr.S, attr.N, attr.B, attr.BOOL, attr.NULL, attr.SS, attr.NS, attr.BS, attr.L, attr.M}
	if depth <= 0 {
		types = types[:8]
	}
	return g.Typed(codec.Schema{Type: Pick(g, types...)}, depth)
}

// Typed draws a value of the schema's type.
func (g *Values) Typed(s codec.Schema, depth int) attr.Value {
	set := func(member func() string) attr.Value {
		var members []string
		for range 1 + g.IntN(4) {
			members = append(members, member())
		}
		return attr.SetOf(s.Type, members...)
	}
	switch s.Type {
	case attr.S:
		return attr.String(g.member())
	case attr.N:
		return attr.Value{Type: attr.N, Str: g.number()}
	case attr.B:
		return attr.Value{Type: attr.B, Str: g.bytes()}
	case attr.BOOL:
		return attr.Boolean(g.IntN(2) == 0)
	case attr.NULL:
		return attr.Null()
	case attr.SS:
		return set(g.member)
	case attr.NS:
		return set(g.number)
	case attr.BS:
		return set(g.bytes)
	case attr.L:
		v := attr.Value{Type: attr.L}
		for range g.IntN(4) {
			if s.Elem != nil {
				v.List = append(v.List, g.Typed(*s.Elem, depth-1))
			} else {
				v.List = append(v.List, g.Value(depth-1))
			}
		}
		return v
	case attr.M:
		v := attr.MapOf(map[string]attr.Value{})
		for _, k := range slices.Sorted(maps.Keys(s.Keys)) {
			if g.IntN(2) == 0 {
				v.Map[k] = g.Typed(s.Keys[k], depth-1)
			}
		}
		for range g.IntN(3) {
			k := g.Key(attr.S).Str // DynamoDB rejects empty member names
			v.Map[k] = g.Typed(s.At(k), depth-1)
		}
		return v
	case attr.Absent:
	}
	return g.Value(max(depth, 0))
}

// Message draws a map with a few fields of a protobuf message, with boundary values of their kinds.
func (g *Values) Message(d protoreflect.MessageDescriptor, s codec.Schema, depth int) attr.Value {
	v := attr.MapOf(map[string]attr.Value{})
	for range min(g.IntN(4), d.Fields().Len()) {
		f := d.Fields().Get(g.IntN(d.Fields().Len()))
		name := string(f.Name())
		switch schema := s.At(name); {
		case f.IsMap():
			entries := attr.MapOf(map[string]attr.Value{})
			for range g.IntN(3) {
				key := g.field(f.MapKey(), codec.Schema{}, 0)
				text := key.Str
				if key.Type == attr.BOOL {
					text = strconv.FormatBool(key.Bool)
				}
				entries.Map[text] = g.field(f.MapValue(), schema.At(text), depth-1)
			}
			v.Map[name] = entries
		case f.IsList():
			elem := codec.Schema{}
			if schema.Elem != nil {
				elem = *schema.Elem
			}
			list := attr.Value{Type: attr.L}
			for range g.IntN(3) {
				list.List = append(list.List, g.field(f, elem, depth-1))
			}
			v.Map[name] = list
		default:
			v.Map[name] = g.field(f, schema, depth-1)
		}
	}
	return v
}

// field draws a value of the kind of a field.
func (g *Values) field(f protoreflect.FieldDescriptor, s codec.Schema, depth int) attr.Value {
	switch f.Kind() {
	case protoreflect.StringKind:
		return attr.String(g.member())
	case protoreflect.BytesKind:
		return attr.Value{Type: attr.B, Str: g.bytes()}
	case protoreflect.BoolKind:
		return attr.Boolean(g.IntN(2) == 0)
	case protoreflect.EnumKind:
		values := f.Enum().Values()
		return attr.String(string(values.Get(g.IntN(values.Len())).Name()))
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return attr.Int(Pick[int64](g, math.MinInt32, math.MinInt32-1, -1, 0, 1, math.MaxInt32, math.MaxInt32+1))
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return attr.Int(Pick[int64](g, -1, 0, 1, math.MaxUint32, math.MaxUint32+1))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return attr.Value{Type: attr.N, Str: Pick(g, "-9223372036854775809", "-9223372036854775808", "-1", "0", "1", "9223372036854775807", "9223372036854775808")}
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return attr.Value{Type: attr.N, Str: Pick(g, "-1", "0", "1", "18446744073709551615", "18446744073709551616")}
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return attr.Value{Type: attr.N, Str: g.number()}
	case protoreflect.MessageKind, protoreflect.GroupKind:
		if depth > 0 {
			return g.Message(f.Message(), s, depth)
		}
	}
	return attr.MapOf(map[string]attr.Value{})
}
