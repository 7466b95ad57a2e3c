package wire

import (
	"cmp"
	"reflect"
	"strings"
	"sync"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// Scan decodes a valid body into in with one pass over the text, which takes about half
// as long as checking and decoding it. It returns false if the body is invalid, or has
// members that in does not have. The result equals that of Decode. Each string in the
// result keeps the whole body in memory.
func Scan(body []byte, in any) bool {
	to := reflect.ValueOf(in).Elem()
	known, ok := scanners.Load(to.Type())
	if !ok {
		known, _ = scanners.LoadOrStore(to.Type(), scannerOf(to.Type()))
	}
	s := attr.NewScanner(body)
	read := known.(scanner)
	return read != nil && read(s, to) && s.End()
}

// scanner reads a value of one type; nil leaves the type to the decoder.
type scanner func(s *attr.Scanner, to reflect.Value) bool

// scanners caches the scanners of request types.
var scanners sync.Map

// scannerOf returns the scanner of a type. The model has no recursive types.
func scannerOf(t reflect.Type) scanner {
	switch t {
	case reflect.TypeFor[Item]():
		return reading(scanItem)
	case reflect.TypeFor[Value]():
		return reading(scanValue)
	case reflect.TypeFor[Parameter]():
		return reading(scanParameter)
	case reflect.TypeFor[Flag]():
		return reading(scanFlag)
	case reflect.TypeFor[Integer]():
		return func(s *attr.Scanner, to reflect.Value) bool {
			return scanInteger(s, reflect.ValueOf(&to.Addr().Interface().(*Integer).Nearest).Elem())
		}
	case reflect.TypeFor[string]():
		return reading((*attr.Scanner).Text)
	case reflect.TypeFor[map[string]string]():
		return readingMap((*attr.Scanner).Text)
	case reflect.TypeFor[map[string]Value]():
		return readingMap(scanValue)
	}
	switch kind := t.Kind(); kind { //nolint:exhaustive // requests have no others
	case reflect.Int32, reflect.Int64:
		return scanInteger
	case reflect.Struct:
		return structScanner(t)
	case reflect.Pointer, reflect.Slice, reflect.Map:
		element := scannerOf(t.Elem())
		switch {
		case element == nil:
			return nil
		case kind == reflect.Pointer:
			return pointerScanner(t, element)
		case kind == reflect.Slice:
			return listScanner(t, element)
		default:
			return mapScanner(t, element)
		}
	default:
		return nil
	}
}

// reading converts read to a scanner.
func reading[T any](read func(*attr.Scanner) (T, bool)) scanner {
	return func(s *attr.Scanner, to reflect.Value) (ok bool) {
		*to.Addr().Interface().(*T), ok = read(s)
		return ok
	}
}

// readingMap returns the scanner of a map whose values read returns.
func readingMap[T any](read func(*attr.Scanner) (T, bool)) scanner {
	return func(s *attr.Scanner, to reflect.Value) bool {
		m := map[string]T{}
		*to.Addr().Interface().(*map[string]T) = m
		return s.Object(func(name string) (ok bool) {
			m[name], ok = read(s)
			return ok
		})
	}
}

func scanItem(s *attr.Scanner) (Item, bool) {
	item, ok := s.Item()
	return Item{Item: item, Err: checkNames(item)}, ok
}

func scanValue(s *attr.Scanner) (Value, bool) {
	value, ok := s.Value()
	return Value{Value: value, Err: checkNamesWithin(value)}, ok
}

// scanParameter leaves zeros to the decoder, which records how they are written.
func scanParameter(s *attr.Scanner) (Parameter, bool) {
	value, ok := scanValue(s)
	return Parameter{Value: value}, ok && !hasZero(value.Value)
}

func scanFlag(s *attr.Scanner) (Flag, bool) {
	value, ok := s.Bool()
	return Flag(value), ok
}

func scanInteger(s *attr.Scanner, to reflect.Value) bool {
	n, ok := s.Int()
	if !ok || to.OverflowInt(n) {
		return false
	}
	to.SetInt(n)
	return true
}

func pointerScanner(t reflect.Type, element scanner) scanner {
	return func(s *attr.Scanner, to reflect.Value) bool {
		to.Set(reflect.New(t.Elem()))
		return element(s, to.Elem())
	}
}

func listScanner(t reflect.Type, element scanner) scanner {
	return func(s *attr.Scanner, to reflect.Value) bool {
		ok := s.List(func() bool {
			n := to.Len()
			to.Grow(1)
			to.SetLen(n + 1)
			return element(s, to.Index(n))
		})
		if to.IsNil() {
			to.Set(reflect.MakeSlice(t, 0, 0))
		}
		return ok
	}
}

func mapScanner(t reflect.Type, element scanner) scanner {
	return func(s *attr.Scanner, to reflect.Value) bool {
		to.Set(reflect.MakeMap(t))
		return s.Object(func(name string) bool {
			value := reflect.New(t.Elem()).Elem()
			ok := element(s, value)
			to.SetMapIndex(reflect.ValueOf(name), value)
			return ok
		})
	}
}

// structScanner returns the scanner of struct type t, including the members of embedded structs.
func structScanner(t reflect.Type) scanner {
	type member struct {
		index []int
		read  scanner
	}
	members := map[string]member{}
	for _, f := range reflect.VisibleFields(t) {
		if f.Anonymous || !f.IsExported() {
			continue
		}
		if read := scannerOf(f.Type); read != nil {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			members[cmp.Or(name, f.Name)] = member{f.Index, read}
		}
	}
	return func(s *attr.Scanner, to reflect.Value) bool {
		return s.Object(func(name string) bool {
			m, ok := members[name]
			return ok && m.read(s, to.FieldByIndex(m.index))
		})
	}
}
