package function

import (
	"bytes"
	"encoding/base64"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// A name may occur twice in JSON: the first one counts.
var lenient = []jsontext.Options{jsontext.AllowDuplicateNames(true)}

func jsonTable() []*Function {
	return []*Function{
		fn("JSON_QUERY", jsonSignatures("STRING", false, jsonValue)...),
		fn("JSON_EXTRACT", jsonSignatures("STRING", true, jsonValue)...),
		fn("JSON_VALUE", jsonSignatures("STRING", false, jsonScalar)...),
		fn("JSON_EXTRACT_SCALAR", jsonSignatures("STRING", true, jsonScalar)...),
		fn("JSON_QUERY_ARRAY", jsonSignatures("ARRAY<STRING>", false, jsonElements)...),
		fn("TO_JSON_STRING", open("ANY, [BOOL] -> STRING", bindToJSON)),
	}
}

// jsonSignatures returns the signatures of a function that takes JSON and a path. It reads JSON in
// BYTES as UTF-8, as the documentation says.
func jsonSignatures(result string, brackets bool, convert func(jsontext.Value) (value.Value, error)) []signature {
	bind := func(*Call) (Eval, error) {
		var last atomic.Pointer[jsonPath] // usually, all rows have the same path
		return func(_ *Context, a []value.Value) (value.Value, error) {
			text := "$"
			if len(a) > 1 {
				text = a[1].Str()
			}
			path := last.Load()
			if path == nil || path.text != text {
				var err error
				if path, err = parseJSONPath(strings.Clone(text), brackets); err != nil {
					return value.Null, err
				}
				last.Store(path)
			}
			document := jsontext.Value(a[0].Bytes())
			if !document.IsValid(lenient...) {
				return value.Null, nil
			}
			found, ok := path.find(document)
			if !ok || found.Kind() == jsontext.KindNull {
				return value.Null, nil
			}
			return convert(found)
		}, nil
	}
	return []signature{bound("STRING, [STRING] -> "+result, bind), bound("BYTES, [STRING] -> "+result, bind)}
}

// compactJSON removes spaces and needless escapes, and keeps the spelling of numbers.
func compactJSON(v jsontext.Value) string {
	v = bytes.Clone(v)
	if err := v.Compact(append(lenient, jsontext.EscapeForJS(true), jsontext.PreserveRawStrings(false))...); err != nil {
		return "" // of JSON that is valid
	}
	return string(v)
}

func jsonValue(v jsontext.Value) (value.Value, error) { return value.String(compactJSON(v)), nil }

func jsonScalar(v jsontext.Value) (value.Value, error) {
	switch v.Kind() { //nolint:exhaustive // the others are not scalar
	case jsontext.KindString:
		s, err := jsontext.AppendUnquote(nil, v)
		if err != nil {
			return value.Null, nil //nolint:nilerr // JSON that is not valid has no value
		}
		return value.String(string(s)), nil
	case jsontext.KindNumber, jsontext.KindTrue, jsontext.KindFalse:
		return value.String(string(bytes.TrimSpace(v))), nil
	}
	return value.Null, nil
}

func jsonElements(v jsontext.Value) (value.Value, error) {
	if v.Kind() != jsontext.KindBeginArray {
		return value.Null, nil
	}
	out := []value.Value{}
	walkArray(v, func(_ int, e jsontext.Value) bool {
		out = append(out, value.String(compactJSON(e)))
		return len(out) <= maxElements
	})
	return value.Array(out), checkElements(len(out))
}

// walkArray calls yield for each element of an array that is valid.
func walkArray(v jsontext.Value, yield func(i int, e jsontext.Value) bool) {
	d := jsontext.NewDecoder(bytes.NewBuffer(v), lenient...)
	if _, err := d.ReadToken(); err != nil {
		return
	}
	for i := 0; d.PeekKind() != jsontext.KindEndArray; i++ {
		e, err := lastValue(d, v)
		if err != nil || !yield(i, e) {
			return
		}
	}
}

// lastValue reads a value of v, and returns it in the memory of v.
func lastValue(d *jsontext.Decoder, v jsontext.Value) (jsontext.Value, error) {
	e, err := d.ReadValue()
	if err != nil {
		return nil, err
	}
	end := d.InputOffset()
	return v[end-int64(len(e)) : end], nil
}

// jsonPath is a path such as $.a[0]."b c", or $['b c'] in the older functions.
type jsonPath struct {
	text  string
	steps []jsonStep
}

// jsonStep is the name of a member, which is also an index of an array if it is a number.
type jsonStep struct {
	name  string
	index int // -1 without one
}

func parseJSONPath(text string, brackets bool) (*jsonPath, error) {
	p := &jsonPath{text: text}
	rest, ok := strings.CutPrefix(text, "$")
	if !ok {
		return nil, value.OutOfRange("JSONPath must start with '$'")
	}
	for rest != "" {
		step, after, ok := cutJSONStep(rest, brackets)
		if !ok {
			if rest == "." && brackets {
				break
			}
			for _, operator := range []string{"*", "..", "@"} {
				if strings.HasPrefix(strings.TrimLeft(rest, ".["), operator) || strings.HasPrefix(rest, operator) {
					return nil, value.OutOfRange("Unsupported operator in JSONPath: %s", operator)
				}
			}
			return nil, value.OutOfRange("Invalid token in JSONPath at: %s", rest)
		}
		step.index = -1
		if index, err := strconv.Atoi(step.name); err == nil {
			step.index = index
		}
		p.steps = append(p.steps, step)
		rest = after
	}
	return p, nil
}

func isJSONName(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsSpace(r) || strings.ContainsRune("_-:", r)
}

// cutJSONStep reads .name, ."name", [0] or ['name'].
func cutJSONStep(s string, brackets bool) (step jsonStep, rest string, ok bool) {
	if after, found := strings.CutPrefix(s, "."); found {
		if quoted, found := strings.CutPrefix(after, `"`); found && !brackets {
			step.name, rest, ok = cutQuoted(quoted, '"')
			return step, rest, ok
		}
		n := strings.IndexFunc(after, func(r rune) bool { return !isJSONName(r) })
		if n < 0 {
			n = len(after)
		}
		step.name = after[:n]
		return step, after[n:], n > 0
	}
	after, found := strings.CutPrefix(s, "[")
	if !found {
		return step, "", false
	}
	after = strings.TrimLeftFunc(after, unicode.IsSpace)
	if quoted, found := strings.CutPrefix(after, "'"); found && brackets {
		if step.name, rest, ok = cutQuoted(quoted, '\''); !ok {
			return step, "", false
		}
	} else {
		n := strings.IndexFunc(after, func(r rune) bool {
			return !unicode.IsNumber(r) && r != '_' && r != '-' && (!brackets || !unicode.IsLetter(r))
		})
		if n <= 0 {
			return step, "", false
		}
		step.name, rest = after[:n], after[n:]
	}
	rest, ok = strings.CutPrefix(strings.TrimLeftFunc(rest, unicode.IsSpace), "]")
	return step, rest, ok
}

// cutQuoted reads up to a quote; a backslash escapes a quote.
func cutQuoted(s string, quote byte) (name, rest string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && s[i+1] == quote:
			i++
			b.WriteByte(quote)
		case s[i] == quote:
			return b.String(), s[i+1:], true
		default:
			b.WriteByte(s[i])
		}
	}
	return "", "", false
}

// find returns the value at the path in JSON that is valid.
func (p *jsonPath) find(v jsontext.Value) (found jsontext.Value, ok bool) {
	for _, step := range p.steps {
		switch v.Kind() { //nolint:exhaustive // the others have no parts
		case jsontext.KindBeginObject:
			if v, ok = member(v, step.name); !ok {
				return nil, false
			}
		case jsontext.KindBeginArray:
			next := jsontext.Value(nil)
			walkArray(v, func(i int, e jsontext.Value) bool {
				if i == step.index {
					next = e
				}
				return i < step.index
			})
			if v = next; v == nil {
				return nil, false
			}
		default:
			return nil, false
		}
	}
	return v, true
}

func member(v jsontext.Value, name string) (found jsontext.Value, ok bool) {
	d := jsontext.NewDecoder(bytes.NewBuffer(v), lenient...)
	if _, err := d.ReadToken(); err != nil {
		return nil, false
	}
	for d.PeekKind() != jsontext.KindEndObject {
		token, err := d.ReadToken()
		if err != nil {
			return nil, false
		}
		matches := token.String() == name
		e, err := lastValue(d, v)
		if err != nil {
			return nil, false
		}
		if matches {
			return e, true
		}
	}
	return nil, false
}

func bindToJSON(c *Call) (Eval, error) {
	t := c.Params[0]
	if containsMap(t) {
		return nil, value.Unimplemented("TO_JSON_STRING of %v is not implemented", t)
	}
	return func(_ *Context, a []value.Value) (value.Value, error) {
		if len(a) > 1 && a[1].IsNull() {
			return value.Null, nil
		}
		b := jsontext.Value(appendJSON(nil, a[0], t))
		if len(b) > maxText {
			return value.Null, value.Exhausted("a result has more than %d bytes", maxText)
		}
		if len(a) > 1 && a[1].Bool() {
			if err := b.Indent(append(lenient, jsontext.WithIndent("  "), jsontext.PreserveRawStrings(true))...); err != nil {
				return value.Null, value.OutOfRange("TO_JSON_STRING: %v", err)
			}
		}
		return value.String(string(b)), nil
	}, nil
}

func containsMap(t value.Type) bool {
	switch t.Kind() { //nolint:exhaustive // the others contain no type
	case value.KindMap, value.KindProto:
		return true
	case value.KindArray:
		return containsMap(t.Elem())
	case value.KindStruct:
		for _, f := range t.Fields() {
			if containsMap(f.Type) {
				return true
			}
		}
	}
	return false
}

// maxJSONInt is the largest integer that each reader of JSON represents exactly; larger ones are
// strings.
const maxJSONInt = 1 << 53

func appendJSON(b []byte, v value.Value, t value.Type) []byte {
	if v.IsNull() {
		return append(b, "null"...)
	}
	switch t.Kind() {
	case value.KindBool:
		return strconv.AppendBool(b, v.Bool())
	case value.KindInt64:
		if n := v.Int64(); n > maxJSONInt || n < -maxJSONInt {
			return append(strconv.AppendInt(append(b, '"'), n, 10), '"')
		}
		return strconv.AppendInt(b, v.Int64(), 10)
	case value.KindFloat32, value.KindFloat64:
		switch text := value.FloatText(v); text {
		case "nan":
			return append(b, `"NaN"`...)
		case "inf":
			return append(b, `"Infinity"`...)
		case "-inf":
			return append(b, `"-Infinity"`...)
		default:
			return append(b, text...)
		}
	case value.KindString, value.KindEnum:
		return appendJSONString(b, v.Str())
	case value.KindBytes:
		return append(base64.StdEncoding.AppendEncode(append(b, '"'), v.Bytes()), '"')
	case value.KindDate:
		return append(append(append(b, '"'), value.DateText(v.Int64())...), '"')
	case value.KindTimestamp:
		text := value.TimestampText(v.Int64(), time.UTC)
		text = strings.TrimSuffix(strings.Replace(text, " ", "T", 1), "+00")
		return append(append(append(b, '"'), text...), `Z"`...)
	case value.KindArray:
		b = append(b, '[')
		for i, e := range v.Elems() {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, e, t.Elem())
		}
		return append(b, ']')
	case value.KindStruct:
		b = append(b, '{')
		for i, e := range v.Elems() {
			if i > 0 {
				b = append(b, ',')
			}
			f := t.Fields()[i]
			b = append(appendJSONString(b, f.Name), ':')
			b = appendJSON(b, e, f.Type)
		}
		return append(b, '}')
	case value.KindNone, value.KindMap, value.KindProto, value.KindCallable:
	}
	return append(b, "null"...)
}

func appendJSONString(b []byte, s string) []byte {
	const hexDigits = "0123456789abcdef"
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\b':
			b = append(b, `\b`...)
		case r == '\f':
			b = append(b, `\f`...)
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r < 0x20 || r == 0x2028 || r == 0x2029:
			b = append(b, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}
