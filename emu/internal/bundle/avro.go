package bundle

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Avro checks an Avro schema in JSON. Types, names, symbols and sizes must be valid. Each named
// type must be defined exactly once, before its use. Defaults, aliases and logical types are
// ignored.
//
// https://avro.apache.org/docs/1.8.1/spec.html
func Avro(schema string) error {
	d := json.NewDecoder(strings.NewReader(schema))
	d.UseNumber()
	var parsed any
	if err := d.Decode(&parsed); err != nil {
		return fmt.Errorf("is not JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("has data after the schema")
	}
	_, err := (&avro{defined: map[string]bool{}}).schema(parsed, "")
	return err
}

// avro checks one schema document.
type avro struct {
	defined map[string]bool // full names
}

var avroPrimitives = []string{"null", "boolean", "int", "long", "float", "double", "bytes", "string"}

// schema checks a schema in a namespace. It returns the key by which a union
// distinguishes its members: the full name of a named type, else the kind.
func (a *avro) schema(s any, namespace string) (string, error) {
	switch s := s.(type) {
	case string:
		return a.reference(s, namespace)
	case []any:
		return "union", a.union(s, namespace)
	case map[string]any:
		kind, ok := s["type"].(string)
		if !ok {
			return "", errors.New(`a type has no string member "type"`)
		}
		switch kind {
		case "record", "error", "enum", "fixed":
			return a.named(kind, s, namespace)
		case "array":
			return kind, a.member(s, "items", kind, namespace)
		case "map":
			return kind, a.member(s, "values", kind, namespace)
		}
		return a.reference(kind, namespace)
	}
	return "", fmt.Errorf("%v is not a type", s)
}

// reference checks that name is a primitive type or was defined before, and returns its full
// name.
func (a *avro) reference(name, namespace string) (string, error) {
	if slices.Contains(avroPrimitives, name) {
		return name, nil
	}
	full := fullName(name, namespace)
	if !a.defined[full] {
		return "", fmt.Errorf("type %q is not defined before it is used", full)
	}
	return full, nil
}

func (a *avro) union(members []any, namespace string) error {
	var seen []string
	for _, m := range members {
		kind, err := a.schema(m, namespace)
		switch {
		case err != nil:
			return err
		case kind == "union":
			return errors.New("a union contains another union")
		case slices.Contains(seen, kind):
			return fmt.Errorf("a union contains %q twice", kind)
		}
		seen = append(seen, kind)
	}
	return nil
}

// member checks the schema in the member `field` of the JSON object s. of names the object in
// errors.
func (a *avro) member(s map[string]any, field, of, namespace string) error {
	inner, ok := s[field]
	if !ok {
		return fmt.Errorf("%s has no %q", of, field)
	}
	_, err := a.schema(inner, namespace)
	return err
}

// named checks the definition of a named type, records it as defined, and returns its full name.
func (a *avro) named(kind string, s map[string]any, namespace string) (string, error) {
	name, _ := s["name"].(string)
	if given, ok := s["namespace"]; ok && !strings.Contains(name, ".") {
		if namespace, ok = given.(string); !ok {
			return "", fmt.Errorf("the namespace of %s %q is not a string", kind, name)
		}
	}
	full := fullName(name, namespace)
	for _, part := range strings.Split(full, ".") {
		if !isAvroName(part) {
			return "", fmt.Errorf("%q is not the name of a %s", full, kind)
		}
	}
	if slices.Contains(avroPrimitives, full) || a.defined[full] {
		return "", fmt.Errorf("type %q is defined twice", full)
	}
	a.defined[full] = true // a record may contain itself
	switch kind {
	case "enum":
		return full, symbols(full, s["symbols"])
	case "fixed":
		size, _ := s["size"].(json.Number)
		if n, err := size.Int64(); err != nil || n < 0 {
			return "", fmt.Errorf("the size of fixed %q must be an integer of 0 or more", full)
		}
		return full, nil
	}
	return full, a.fields(full, s["fields"])
}

func symbols(of string, given any) error {
	list, ok := given.([]any)
	if !ok {
		return fmt.Errorf("enum %q has no list of symbols", of)
	}
	seen := map[string]bool{}
	for _, x := range list {
		symbol, _ := x.(string)
		if !isAvroName(symbol) || seen[symbol] {
			return fmt.Errorf("enum %q: %v is not a valid symbol, or occurs twice", of, x)
		}
		seen[symbol] = true
	}
	return nil
}

// fields checks the fields of a record, in the namespace of the record.
func (a *avro) fields(of string, given any) error {
	list, ok := given.([]any)
	if !ok {
		return fmt.Errorf("record %q has no list of fields", of)
	}
	namespace := of[:max(strings.LastIndexByte(of, '.'), 0)]
	seen := map[string]bool{}
	for _, x := range list {
		field, _ := x.(map[string]any)
		name, _ := field["name"].(string)
		if !isAvroName(name) || seen[name] {
			return fmt.Errorf("record %q: %q is not a valid field name, or occurs twice", of, name)
		}
		seen[name] = true
		if order, ok := field["order"]; ok && order != "ascending" && order != "descending" && order != "ignore" {
			return fmt.Errorf("field %q of record %q: %v is not a sort order", name, of, order)
		}
		if err := a.member(field, "type", "a field", namespace); err != nil {
			return fmt.Errorf("field %q of record %q: %w", name, of, err)
		}
	}
	return nil
}

// fullName returns a name qualified by a namespace, unless it is qualified
// already.
func fullName(name, namespace string) string {
	if namespace == "" || strings.Contains(name, ".") {
		return name
	}
	return namespace + "." + name
}

// isAvroName reports whether s is [A-Za-z_][A-Za-z0-9_]*.
func isAvroName(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}
