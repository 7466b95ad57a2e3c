package strictyaml

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Options configures decoding.
type Options struct {
	// Hooks lists hooks for values that do not correspond to a Go type. They take precedence over
	// the tags of fields.
	Hooks []Hook
	// Loose accepts a number or a boolean instead of a text, a number in quotes, and null instead
	// of a missing value.
	Loose bool
	// All makes decoding continue after a fault, so that the error contains all faults; see
	// [Faults].
	All bool
	// Positions, if not nil, receives the positions of the values.
	Positions Positions
}

// Hook decodes the values of a type, or of a key of a struct.
type Hook struct {
	typ  reflect.Type
	key  string // "" for the whole type
	read func(Value, any) error
}

// Read returns a hook for all values of type T.
func Read[T any](read func(Value, *T) error) Hook { return ReadKey("", read) }

// ReadKey returns a hook for a key of the struct type T, which then does not need a field for the
// key.
func ReadKey[T any](key string, read func(Value, *T) error) Hook {
	return Hook{reflect.TypeFor[T](), key, func(v Value, into any) error { return read(v, into.(*T)) }}
}

// With returns a copy of the value with the options for decoding it and its inner values.
func (v Value) With(o Options) Value {
	v.o = o
	return v
}

// Decode decodes the value into the target of a pointer. The zero Value leaves the target
// unchanged. Its error is an [Error], or several joined ones with Options.All.
//
// A field of a struct has a tag `yaml:"key,option"`. The options are required; filled, for a text
// that must not be empty; null, which is then allowed even without Loose; and inline, for a struct
// whose fields are keys of the outer struct. A key a.b means the key b of a mapping a. Further tags
// are expect, the expected value in errors; words, the allowed texts; and range, such as
// `range:"1,90"`, the limits of an integer. Fields without a tag are ignored.
func (v Value) Decode(into any) error {
	if v.IsZero() {
		return nil
	}
	return v.decode(reflect.ValueOf(into).Elem(), field{})
}

// Struct is like Decode into a struct, but does not call the hook of the struct's type. That hook
// can therefore call it.
func (v Value) Struct(into any) error {
	set := newFieldSet()
	set.addStruct(reflect.ValueOf(into).Elem(), v.o.Hooks)
	return set.read(v)
}

// field has the tags of a field.
type field struct {
	required, filled, null bool
	expect                 string
	words                  []string
	least, most            int64 // of an integer; 0 and 0 for no limits
}

// expected returns the expected value for errors.
func (f field) expected(usual string) string {
	switch {
	case f.expect != "":
		return f.expect
	case f.words != nil:
		return strings.Join(f.words, ", ")
	case f.least != 0 || f.most != 0:
		return fmt.Sprintf("an integer from %d to %d", f.least, f.most)
	}
	return usual
}

// fieldOf reads the tags of a field; without tags, key is "".
func fieldOf(from reflect.StructField) (key string, inline bool, f field) {
	tag := strings.Split(from.Tag.Get("yaml"), ",")
	has := func(option string) bool { return slices.Contains(tag[1:], option) }
	f = field{required: has("required"), filled: has("filled"), null: has("null"), expect: from.Tag.Get("expect")}
	if words := from.Tag.Get("words"); words != "" {
		f.words = strings.Split(words, ",")
	}
	if least, most, ok := strings.Cut(from.Tag.Get("range"), ","); ok {
		f.least, _ = strconv.ParseInt(least, 10, 64)
		f.most, _ = strconv.ParseInt(most, 10, 64)
	}
	return tag[0], has("inline"), f
}

func (v Value) decode(into reflect.Value, f field) error {
	if into.Type() == reflect.TypeFor[Value]() {
		into.Set(reflect.ValueOf(v))
		return nil
	}
	if i := slices.IndexFunc(v.o.Hooks, func(h Hook) bool { return h.typ == into.Type() && h.key == "" }); i >= 0 {
		return v.o.Hooks[i].read(v, into.Addr().Interface())
	}
	if v.Kind() == Null && (f.null || v.o.Loose) {
		return nil
	}
	switch into.Kind() { //nolint:exhaustive // files do not have the others
	case reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		return v.decode(into.Elem(), f)
	case reflect.Struct:
		return v.Struct(into.Addr().Interface())
	case reflect.Map:
		return v.decodeMap(into, f)
	case reflect.Slice:
		return v.decodeSlice(into, f)
	case reflect.String:
		return v.decodeText(into, f)
	case reflect.Bool:
		if v.Kind() != Bool {
			return v.Other(f.expected("true or false"))
		}
		into.SetBool(isTrue(v.node))
	case reflect.Int, reflect.Int32, reflect.Int64:
		return v.decodeInteger(into, f)
	case reflect.Interface:
		if plain := v.node.plain(); plain != nil {
			into.Set(reflect.ValueOf(plain))
		}
	default:
		panic(fmt.Sprintf("strictyaml: no value of a file is of type %s", into.Type()))
	}
	return nil
}

// fieldSet has the fields and hooks of the keys of a mapping.
type fieldSet struct {
	fields   map[string]func(Value) error
	groups   map[string]*fieldSet // of a.b and a.c, by a
	required []string
}

func newFieldSet() *fieldSet {
	return &fieldSet{fields: map[string]func(Value) error{}, groups: map[string]*fieldSet{}}
}

func (s *fieldSet) add(key string, read func(Value) error) {
	head, rest, grouped := strings.Cut(key, ".")
	if !grouped {
		s.fields[key] = read
		return
	}
	group, ok := s.groups[head]
	if !ok {
		group = newFieldSet()
		s.groups[head] = group
		s.fields[head] = group.read
	}
	group.add(rest, read)
}

func (s *fieldSet) read(v Value) error { return v.Fields(s.fields, s.required...) }

// addStruct adds the fields of a struct, and the hooks of its keys.
func (s *fieldSet) addStruct(into reflect.Value, hooks []Hook) {
	for i := range into.NumField() {
		key, inline, f := fieldOf(into.Type().Field(i))
		field := into.Field(i)
		switch {
		case inline && field.Kind() == reflect.Pointer:
			s.addStruct(field.Elem(), hooks)
		case inline:
			s.addStruct(field, hooks)
		case key != "" && key != "-":
			s.add(key, func(v Value) error { return v.decode(field, f) })
			if f.required {
				s.required = append(s.required, key)
			}
		}
	}
	for _, h := range hooks {
		if h.typ == into.Type() && h.key != "" {
			s.add(h.key, func(v Value) error { return h.read(v, into.Addr().Interface()) })
		}
	}
}

func (v Value) decodeMap(into reflect.Value, f field) error {
	entries, err := v.Entries()
	if err != nil {
		return err
	}
	into.Set(reflect.MakeMapWithSize(into.Type(), len(entries)))
	faults := faults{all: v.o.All}
	for _, e := range entries {
		value := reflect.New(into.Type().Elem()).Elem()
		if faults.add(e.Value.decode(value, f.inner())) {
			break
		}
		into.SetMapIndex(reflect.ValueOf(e.Name), value)
	}
	return faults.err()
}

func (v Value) decodeSlice(into reflect.Value, f field) error {
	items, err := v.Items()
	if err != nil {
		return err
	}
	into.Set(reflect.MakeSlice(into.Type(), len(items), len(items)))
	faults := faults{all: v.o.All}
	for i, item := range items {
		if faults.add(item.decode(into.Index(i), f.inner())) {
			break
		}
	}
	return faults.err()
}

// inner returns the field for the elements of a list, or the values of a mapping.
func (f field) inner() field {
	f.required, f.null = false, false
	return f
}

// Text returns the value as a text. expected describes the text in errors.
func (v Value) Text(expected string) (string, error) {
	if kind := v.Kind(); kind == Text || v.o.Loose && kind != Null && kind != List && kind != Mapping {
		return v.node.text, nil
	}
	return "", v.Other(expected)
}

// Word acts like Text for a text that must be one of the given words.
func (v Value) Word(words ...string) (string, error) {
	expected := strings.Join(words, ", ")
	text, err := v.Text(expected)
	if err == nil && !slices.Contains(words, text) {
		err = v.Unfit(expected)
	}
	return text, err
}

func (v Value) decodeText(into reflect.Value, f field) error {
	text, err := v.Text(f.expected("a text"))
	switch {
	case err != nil:
		return err
	case f.words != nil && !slices.Contains(f.words, text), f.filled && text == "":
		return v.Unfit(f.expected("a text"))
	}
	into.SetString(text)
	return nil
}

func (v Value) decodeInteger(into reflect.Value, f field) error {
	expected := f.expected("an integer")
	var n int64
	switch number := v.node.number.(type) {
	case int64:
		n = number
	case uint64:
		if number > math.MaxInt64 {
			return v.Unfit(expected)
		}
		n = int64(number)
	default:
		var err error
		if n, err = strconv.ParseInt(v.node.text, 10, 64); err != nil || v.Kind() != Text || !v.o.Loose {
			return v.Other(expected)
		}
	}
	if into.OverflowInt(n) || (f.least != 0 || f.most != 0) && (n < f.least || n > f.most) {
		return v.Unfit(expected)
	}
	into.SetInt(n)
	return nil
}

// plain returns the value without a target type: a map[string]any, []any, string, bool, uint64,
// int64, float64 or nil.
func (n *node) plain() any {
	switch n.kind {
	case Text:
		return n.text
	case Bool:
		return isTrue(n)
	case Integer, Float:
		return n.number
	case Null:
	case List:
		all := make([]any, len(n.items))
		for i, item := range n.items {
			all[i] = item.plain()
		}
		return all
	case Mapping:
		all := make(map[string]any, len(n.entries))
		for _, e := range n.entries {
			all[e.key] = e.value.plain()
		}
		return all
	}
	return nil
}

func isTrue(n *node) bool { return strings.EqualFold(n.text, "true") }
