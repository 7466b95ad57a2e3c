package value

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// messageFromText casts a message in the text format to a PROTO.
func messageFromText(to Type) CastFunc {
	return func(v Value, _ *time.Location) (Value, error) {
		m := dynamicpb.NewMessage(to.parts.message)
		if err := prototext.Unmarshal([]byte(v.s), m); err != nil {
			// The module varies the space behind its prefix from build to build.
			return Null, OutOfRange("Error parsing proto: %s", strings.TrimSpace(strings.TrimPrefix(err.Error(), "proto:")))
		}
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			return Null, OutOfRange("Invalid cast to type %v from string: %s", to, strconv.Quote(v.s))
		}
		return Proto(b), nil
	}
}

// messageToText casts a PROTO to its text format in one line, which package prototext does not
// keep stable.
func messageToText(from Type) CastFunc {
	return func(v Value, _ *time.Location) (Value, error) {
		m := dynamicpb.NewMessage(from.parts.message)
		if err := (proto.UnmarshalOptions{AllowPartial: true}).Unmarshal(v.Bytes(), m); err != nil {
			return Null, OutOfRange("Invalid cast to string from type %v", from)
		}
		return String(strings.TrimSuffix(string(appendMessage(nil, m)), " ")), nil
	}
}

// appendMessage appends the fields of a message, in the order of their numbers, each followed by a
// space.
func appendMessage(dst []byte, m protoreflect.Message) []byte {
	var fields []protoreflect.FieldDescriptor
	m.Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		fields = append(fields, f)
		return true
	})
	slices.SortFunc(fields, func(a, b protoreflect.FieldDescriptor) int { return cmp.Compare(a.Number(), b.Number()) })
	for _, f := range fields {
		switch v := m.Get(f); {
		case f.IsMap():
			dst = appendEntries(dst, f, v.Map())
		case f.IsList():
			for i := range v.List().Len() {
				dst = appendField(dst, f.TextName(), f, v.List().Get(i))
			}
		default:
			dst = appendField(dst, f.TextName(), f, v)
		}
	}
	return appendUnknown(dst, m.GetUnknown(), unknownDepth)
}

// unknownDepth bounds the levels of unknown fields that are printed as messages.
const unknownDepth = 10

func appendEntries(dst []byte, f protoreflect.FieldDescriptor, entries protoreflect.Map) []byte {
	var keys []protoreflect.MapKey
	entries.Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool {
		keys = append(keys, k)
		return true
	})
	slices.SortFunc(keys, func(a, b protoreflect.MapKey) int {
		switch x := a.Interface().(type) {
		case string:
			return strings.Compare(x, b.String())
		case bool:
			return cmp.Compare(strconv.FormatBool(x), strconv.FormatBool(b.Bool()))
		case int32, int64:
			return cmp.Compare(a.Int(), b.Int())
		default:
			return cmp.Compare(a.Uint(), b.Uint())
		}
	})
	for _, k := range keys {
		dst = append(append(dst, f.Name()...), " { "...)
		dst = appendField(dst, "key", f.MapKey(), k.Value())
		dst = append(appendField(dst, "value", f.MapValue(), entries.Get(k)), "} "...)
	}
	return dst
}

func appendField(dst []byte, name string, f protoreflect.FieldDescriptor, v protoreflect.Value) []byte {
	dst = append(dst, name...)
	if f.Message() != nil {
		return append(appendMessage(append(dst, " { "...), v.Message()), "} "...)
	}
	dst = append(dst, ": "...)
	switch x := v.Interface().(type) {
	case protoreflect.EnumNumber:
		dst = append(dst, enumOf(f.Enum(), x).s...)
	case float32:
		dst = append(dst, floatText(float64(x), 32, 6, 9)...)
	case float64:
		dst = append(dst, floatText(x, 64, 15, 17)...)
	case string:
		dst = append(append(append(dst, '"'), escapeC(x, true)...), '"')
	case []byte:
		dst = append(append(append(dst, '"'), escapeC(string(x), false)...), '"')
	default:
		dst = fmt.Append(dst, x)
	}
	return append(dst, ' ')
}

// appendUnknown appends fields that the message does not define. A BYTES that reads as a message is
// printed as one, above the given depth.
func appendUnknown(dst, fields []byte, depth int) []byte {
	for len(fields) > 0 {
		number, wire, n := protowire.ConsumeField(fields)
		_, _, tag := protowire.ConsumeTag(fields)
		content := fields[tag:n]
		fields = fields[n:]
		dst = strconv.AppendInt(dst, int64(number), 10)
		nested, isMessage := content, wire == protowire.StartGroupType
		if isMessage {
			nested, _ = protowire.ConsumeGroup(number, content)
		} else if wire == protowire.BytesType {
			nested, _ = protowire.ConsumeBytes(content)
			isMessage = len(nested) > 0 && depth > 0 && readsAsMessage(nested)
		}
		switch {
		case isMessage:
			dst = append(appendUnknown(append(dst, " { "...), nested, depth-1), '}')
		case wire == protowire.BytesType:
			dst = append(append(append(dst, `: "`...), escapeC(string(nested), false)...), '"')
		case wire == protowire.VarintType:
			v, _ := protowire.ConsumeVarint(content)
			dst = fmt.Appendf(dst, ": %d", v)
		case wire == protowire.Fixed32Type:
			v, _ := protowire.ConsumeFixed32(content)
			dst = fmt.Appendf(dst, ": 0x%08x", v)
		default:
			v, _ := protowire.ConsumeFixed64(content)
			dst = fmt.Appendf(dst, ": 0x%016x", v)
		}
		dst = append(dst, ' ')
	}
	return dst
}

func readsAsMessage(b []byte) bool {
	for len(b) > 0 {
		_, wire, n := protowire.ConsumeField(b)
		if n < 0 || wire == protowire.EndGroupType {
			return false
		}
		b = b[n:]
	}
	return true
}
