package expr

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// script is the state of one datadriven file: the placeholders, keys and item for the
// following commands.
type script struct {
	names      map[string]string
	values     map[string]attr.Value
	item       attr.Item
	hash, sort []KeyAttribute
}

// runScripts runs the files of one folder. The commands:
//
//	names, values  lines of "#name attribute" or ":value JSON"; without lines: nil,
//	               or with the argument empty: an empty map
//	item           JSON, or nothing for no item
//	keys           hash=name:type [hash=…] [sort=name:type] …
//	condition, filter, key-condition, project, update   an expression
//	unused         expressions of any kind, one per line, then the unused placeholders
//
// A case argument names the subject; "row-N" stands for row N of
// facade/testdata/messages.tsv.
func runScripts(t *testing.T, folder string) {
	t.Helper()
	datadriven.Walk(t, "testdata/"+folder, func(t *testing.T, path string) {
		t.Helper()
		var s script
		datadriven.RunTest(t, path, s.run)
	})
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	// Abbreviations of long and odd texts.
	input := strings.NewReplacer("<empty>", "", "<4097 bytes>", "a = :s "+strings.Repeat(" ", 4090)).Replace(d.Input)
	switch d.Cmd {
	case "names":
		s.names = nil
		if d.HasArg("empty") {
			s.names = map[string]string{}
		}
		for line := range strings.Lines(input) {
			if s.names == nil {
				s.names = map[string]string{}
			}
			key, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			s.names[key] = name
		}
		return s.checkPlaceholders()
	case "values":
		s.values = nil
		if d.HasArg("empty") {
			s.values = map[string]attr.Value{}
		}
		for line := range strings.Lines(input) {
			if s.values == nil {
				s.values = map[string]attr.Value{}
			}
			key, json, _ := strings.Cut(line, " ")
			v, err := attr.UnmarshalValue([]byte(json))
			if err != nil {
				d.Fatalf(t, "%s: %v", key, err)
			}
			s.values[key] = v
		}
		return s.checkPlaceholders()
	case "item":
		s.item = nil
		if input != "" {
			s.item = decodeItem(t, input)
		}
		return ""
	case "keys":
		s.hash, s.sort = nil, nil
		for _, a := range d.CmdArgs {
			name, tag, _ := strings.Cut(a.Vals[0], ":")
			typ, _ := attr.ParseType(tag)
			if a.Key == "hash" {
				s.hash = append(s.hash, KeyAttribute{name, typ})
			} else {
				s.sort = append(s.sort, KeyAttribute{name, typ})
			}
		}
		return ""
	}
	p, err := NewPlaceholders(s.names, s.values)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	out, err := s.expression(t, d, input, p)
	if err != nil {
		var e *Error
		if !errors.As(err, &e) {
			d.Fatalf(t, "%T is no *Error: %v", err, err)
		}
		return "error: " + e.Message
	}
	return out
}

// changes returns a text with the attributes that differ between two items.
func changes(before, after attr.Item) string {
	var lines []string
	for name, v := range after {
		if !attr.Equal(v, before[name]) {
			lines = append(lines, fmt.Sprintf("%s = %s", name, v))
		}
	}
	for name := range before {
		if _, found := after[name]; !found {
			lines = append(lines, name+" removed")
		}
	}
	if len(lines) == 0 {
		return "unchanged"
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func (s *script) checkPlaceholders() string {
	if _, err := NewPlaceholders(s.names, s.values); err != nil {
		return "error: " + err.Error()
	}
	return ""
}

func decodeItem(tb testing.TB, json string) attr.Item {
	tb.Helper()
	item, err := attr.UnmarshalItem([]byte(json))
	if err != nil {
		tb.Fatal(err)
	}
	return item
}

func (s *script) expression(t *testing.T, d *datadriven.TestData, input string, p *Placeholders) (string, error) {
	t.Helper()
	before := string(attr.AppendItemJSON(nil, s.item))
	switch d.Cmd {
	case "condition", "filter":
		kind := ConditionExpression
		if d.Cmd == "filter" {
			kind = FilterExpression
		}
		c, err := ParseCondition(kind, input, p)
		if err != nil {
			return "", err
		}
		out := fmt.Sprint(c.Eval(s.item))
		if name, exists, ok := c.Existence(); ok {
			out += fmt.Sprintf(" existence of %s: %t", name, exists)
		}
		if d.HasArg("paths") {
			out += fmt.Sprintf(" paths %v", c.Paths())
		}
		return out, nil
	case "project":
		projection, err := ParseProjection(input, p)
		if err != nil {
			return "", err
		}
		return projection.Apply(s.item).String(), nil
	case "update":
		u, err := ParseUpdate(input, p)
		if err != nil {
			return "", err
		}
		item, err := u.Apply(s.item)
		if after := string(attr.AppendItemJSON(nil, s.item)); after != before {
			t.Errorf("the old item changed from %s to %s", before, after)
		}
		if err != nil {
			return "", err
		}
		out := changes(s.item, item)
		if d.HasArg("touched") {
			touched := ProjectionOf(u.Paths()...)
			out += fmt.Sprintf("\nold %s\nnew %s\nreads %v", touched.Apply(s.item), touched.Apply(item), u.ReadPaths())
		}
		return out, nil
	case "key-condition":
		k, err := ParseKeyCondition(input, p)
		if err != nil {
			return "", err
		}
		if err := k.Check(); err != nil {
			return "", err
		}
		r, err := k.Resolve(s.hash, s.sort)
		if err != nil {
			return "", err
		}
		operators := []string{"-", "=", "<", "<=", ">", ">=", "BETWEEN", "begins_with"}
		out := fmt.Sprintf("hash %s sort %s %s %s", r.Hashes(), operators[r.Op], r.A, r.B)
		if len(r.Equal) > 0 {
			out += fmt.Sprintf(" after %s", r.Equal)
		}
		return out, nil
	case "unused":
		for line := range strings.Lines(input) {
			kind, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
			var err error
			switch kind {
			case "update":
				_, err = ParseUpdate(text, p)
			case "project":
				_, err = ParseProjection(text, p)
			default:
				_, err = ParseCondition(ConditionExpression, text, p)
			}
			if err != nil {
				return "", err
			}
		}
		return "all used", p.CheckUsed()
	}
	d.Fatalf(t, "unknown command %s", d.Cmd)
	return "", nil
}

func TestCondition(t *testing.T) {
	t.Parallel()
	runScripts(t, "condition")
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	runScripts(t, "update")
}

func TestProjection(t *testing.T) {
	t.Parallel()
	runScripts(t, "projection")
}

func TestKeyCondition(t *testing.T) {
	t.Parallel()
	runScripts(t, "key_condition")
}

func TestPlaceholders(t *testing.T) {
	t.Parallel()
	runScripts(t, "placeholders")
}
