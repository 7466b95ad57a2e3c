package strictyaml

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tabletop-emu/tabletop/internal/nearest"
)

// Kind is the kind of a value in the file.
type Kind int

// These are the kinds of values.
const (
	Null Kind = iota
	Text
	Bool
	Integer
	Float
	List
	Mapping
)

// Position is a 1-based position in a file. It is zero if unknown.
type Position struct{ Line, Column int }

// Positions maps the paths of the values in a file, such as rules[2].put[0].cell, to their
// positions: the beginning of a mapping or its key, or of an element of a list.
type Positions map[string]Position

// Near returns the position of a path. If the file does not have the path, it returns the position
// of the nearest enclosing path, or zero.
func (p Positions) Near(path string) Position {
	for {
		if at, ok := p[path]; ok {
			return at
		}
		i := strings.LastIndexAny(path, ".[")
		if i < 0 {
			return Position{}
		}
		path = path[:i]
	}
}

var plainKey = regexp.MustCompile(`^[-_a-zA-Z0-9]+$`)

// Join returns the path of a key in the mapping at a path. The path of the whole file is "".
func Join(path, key string) string {
	switch {
	case !plainKey.MatchString(key):
		return path + "[" + strconv.Quote(key) + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

// Error describes a fault of a file: its position, the fault and the expected value.
type Error struct {
	File     string
	At       Position
	Path     string // such as rules[2].put[0].cell; "" for the whole file
	What     string
	Expected string // "" if What contains it
}

// Error returns `file:line:column: path: what; expected …`.
func (e *Error) Error() string {
	if e.At == (Position{}) {
		return e.File + ": " + e.Detail()
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.At.Line, e.At.Column, e.Detail())
}

// Detail returns `path: what; expected …`.
func (e *Error) Detail() string {
	text := e.What
	if e.Path != "" {
		text = e.Path + ": " + text
	}
	if e.Expected != "" {
		text += "; expected " + e.Expected
	}
	return text
}

// Value is a value in a file, with its path.
type Value struct {
	file string
	path string
	node *node
	o    Options
}

// IsZero reports whether the value is the zero Value, as for an empty file.
func (v Value) IsZero() bool { return v.node == nil }

// Kind returns the kind of the value.
func (v Value) Kind() Kind {
	if v.IsZero() {
		return Null
	}
	return v.node.kind
}

// Scalar returns the text of a value that is neither a list nor a mapping: a text without its
// quotes, or a number as written.
func (v Value) Scalar() string {
	if v.IsZero() {
		return ""
	}
	return v.node.text
}

// Place returns the position of the value as `file:line:column`.
func (v Value) Place() string {
	if v.IsZero() {
		return v.file
	}
	return fmt.Sprintf("%s:%d:%d", v.file, v.node.at.Line, v.node.at.Column)
}

// Fail returns an error about the value.
func (v Value) Fail(what, expected string) error {
	if v.IsZero() {
		return v.fault(Position{}, what, expected)
	}
	return v.fault(v.node.at, what, expected)
}

// Unfit returns the error for a scalar that is not one of the expected values.
func (v Value) Unfit(expected string) error {
	switch v.Kind() { //nolint:exhaustive // the others are scalars
	case Null, List, Mapping:
		return v.Other(expected)
	}
	return v.Fail(quoted(v.Scalar()), expected)
}

// Other returns the error for a value whose kind is not the expected one.
func (v Value) Other(expected string) error {
	what := "this is " + quoted(v.Scalar())
	switch v.Kind() { //nolint:exhaustive // the others show their text
	case Null:
		what = "this is null"
	case List:
		what = "this is a list"
	case Mapping:
		what = "this is a mapping"
	}
	return v.Fail(what, expected)
}

func (v Value) fault(at Position, what, expected string) error {
	return &Error{File: v.file, At: at, Path: v.path, What: what, Expected: expected}
}

// quoted returns the beginning of a text, in quotes.
func quoted(text string) string {
	const most = 80
	if runes := []rune(text); len(runes) > most {
		return strconv.Quote(string(runes[:most])) + "…"
	}
	return strconv.Quote(text)
}

// Entry is a key of a mapping with its value. Key is a Value too, so that errors can refer to it.
type Entry struct {
	Name       string
	Key, Value Value
}

// Unknown returns the error for an unknown key of a mapping.
func (e Entry) Unknown(known []string, expected string) error {
	what := "unknown key"
	if name := nearest.To(e.Name, known); name != "" {
		what += ", nearest to " + name
	}
	return e.Key.Fail(what, expected)
}

// Entries returns the entries of a mapping, in order.
func (v Value) Entries() ([]Entry, error) {
	if v.Kind() != Mapping {
		return nil, v.Other("a mapping (key: value)")
	}
	v.note(v.path, v.node.at)
	all := make([]Entry, len(v.node.entries))
	for i, e := range v.node.entries {
		below := Value{v.file, Join(v.path, e.key), e.value, v.o}
		key := below
		key.node = &node{kind: Text, text: e.key, at: e.at}
		v.note(below.path, e.at)
		all[i] = Entry{e.key, key, below}
	}
	return all, nil
}

// Items returns the elements of a list, in order.
func (v Value) Items() ([]Value, error) {
	if v.Kind() != List {
		return nil, v.Other("a list ([…])")
	}
	all := make([]Value, len(v.node.items))
	for i, item := range v.node.items {
		all[i] = Value{v.file, fmt.Sprintf("%s[%d]", v.path, i), item, v.o}
		v.note(all[i].path, item.at)
	}
	return all, nil
}

func (v Value) note(path string, at Position) {
	if v.o.Positions != nil {
		v.o.Positions[path] = at
	}
}

// Fields returns the entries of a mapping that may have only the given keys, in the order of the
// file. required lists the keys that must exist. A required key is not reported as missing if an
// unknown key is close to it.
func (v Value) Fields(fields map[string]func(Value) error, required ...string) error {
	entries, err := v.Entries()
	if err != nil {
		return err
	}
	faults := faults{all: v.o.All}
	seen := make(map[string]bool, len(entries))
	for _, e := range entries {
		read, ok := fields[e.Name]
		var err error
		if seen[e.Name] = true; ok {
			err = read(e.Value)
		} else {
			known := slices.Sorted(maps.Keys(fields))
			seen[nearest.To(e.Name, known)] = true
			err = e.Unknown(known, strings.Join(known, ", "))
		}
		if faults.add(err) {
			return faults.err()
		}
	}
	for _, key := range required {
		if !seen[key] && faults.add(v.Fail(fmt.Sprintf("%q is missing", key), "")) {
			break
		}
	}
	return faults.err()
}

// faults collects the faults inside a list or a mapping: all of them, or the first.
type faults struct {
	all  bool
	list []error
}

// add adds a fault, and reports whether to stop reading.
func (f *faults) add(err error) (stop bool) {
	if err == nil {
		return false
	}
	f.list = append(f.list, err)
	return !f.all
}

func (f *faults) err() error {
	if len(f.list) == 1 {
		return f.list[0]
	}
	return errors.Join(f.list...)
}

// Faults returns the faults in an error of Decode, in the order in which they were found. It
// returns several only with [Options.All].
func Faults(err error) (all []*Error) {
	switch err := err.(type) { //nolint:errorlint // each is looked into
	case *Error:
		return []*Error{err}
	case interface{ Unwrap() []error }:
		for _, e := range err.Unwrap() {
			all = append(all, Faults(e)...)
		}
	}
	return all
}
