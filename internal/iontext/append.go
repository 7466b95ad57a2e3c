package iontext

import (
	"encoding/base64"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// The annotations that distinguish sets from lists.
const (
	stringSet = "$dynamodb_SS"
	numberSet = "$dynamodb_NS"
	binarySet = "$dynamodb_BS"
)

// version is the beginning of a text of Ion.
const version = "$ion_1_0"

// AppendLine appends the line of an export that has the given members, such as `Item`. It does not
// append the line end.
func AppendLine(b []byte, members ...Member) []byte {
	b = append(b, version+" {"...)
	for i, m := range members {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendName(b, m.Name), ':')
		b = appendItem(b, m.Item)
	}
	return append(b, '}')
}

// Member is a member of the Ion structure on a line.
type Member struct {
	Name string
	Item attr.Item
}

func appendItem(b []byte, item attr.Item) []byte {
	b = append(b, '{')
	for i, name := range slices.Sorted(maps.Keys(item)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendValue(append(appendName(b, name), ':'), item[name])
	}
	return append(b, '}')
}

// appendName appends the name of a field, in quotes unless it is a plain symbol.
func appendName(b []byte, name string) []byte {
	plain := name != "" && !isReserved(name) && !strings.HasPrefix(name, "$")
	for i := range len(name) {
		plain = plain && isSymbolByte(name[i], i == 0)
	}
	if plain {
		return append(b, name...)
	}
	return appendQuoted(b, name, '\'')
}

// isReserved reports whether a symbol has another meaning in Ion.
func isReserved(name string) bool {
	return slices.Contains([]string{"null", "true", "false", "nan"}, name)
}

func isSymbolByte(c byte, first bool) bool {
	return c == '_' || c == '$' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || !first && '0' <= c && c <= '9'
}

func appendQuoted(b []byte, text string, quote byte) []byte {
	b = append(b, quote)
	for _, r := range text {
		switch {
		case r == rune(quote), r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, '\\', 'n')
		case r == '\r':
			b = append(b, '\\', 'r')
		case r == '\t':
			b = append(b, '\\', 't')
		case r < ' ', r == 0x7f:
			const hex = "0123456789abcdef"
			b = append(b, '\\', 'x', hex[r>>4], hex[r&15])
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, quote)
}

func appendValue(b []byte, v attr.Value) []byte {
	switch v.Type {
	case attr.S:
		return appendQuoted(b, v.Str, '"')
	case attr.N:
		return appendNumber(b, v.Str)
	case attr.B:
		return appendBlob(b, v.Str)
	case attr.BOOL:
		return strconv.AppendBool(b, v.Bool)
	case attr.SS:
		return appendList(b, stringSet, v.Set, func(b []byte, s string) []byte { return appendQuoted(b, s, '"') })
	case attr.NS:
		return appendList(b, numberSet, v.Set, appendNumber)
	case attr.BS:
		return appendList(b, binarySet, v.Set, appendBlob)
	case attr.L:
		return appendList(b, "", v.List, appendValue)
	case attr.M:
		return appendItem(b, v.Map)
	case attr.NULL, attr.Absent:
	}
	return append(b, "null"...)
}

func appendList[T any](b []byte, annotation string, members []T, one func([]byte, T) []byte) []byte {
	if annotation != "" {
		b = append(append(b, annotation...), "::"...)
	}
	b = append(b, '[')
	for i, m := range members {
		if i > 0 {
			b = append(b, ',')
		}
		b = one(b, m)
	}
	return append(b, ']')
}

// appendNumber appends a number as a decimal, which has a point or a d; whole numbers of
// DynamoDB have neither.
func appendNumber(b []byte, canonical string) []byte {
	b = append(b, canonical...)
	if !strings.ContainsRune(canonical, '.') {
		b = append(b, '.')
	}
	return b
}

func appendBlob(b []byte, blob string) []byte {
	b = append(b, "{{"...)
	return append(base64.StdEncoding.AppendEncode(b, []byte(blob)), "}}"...)
}
