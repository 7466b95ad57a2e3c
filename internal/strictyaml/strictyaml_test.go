package strictyaml_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tabletop-emu/tabletop/internal/strictyaml"
)

type order struct {
	ID     string         `yaml:"id,required" expect:"the order's id"`
	Lines  []line         `yaml:"lines"`
	Ship   *address       `yaml:"ship"`
	Bill   *address       `yaml:"bill,null"`
	State  string         `yaml:"state" words:"open,paid"`
	Note   string         `yaml:"note,filled"`
	Rush   bool           `yaml:"flags.rush"`
	Gift   bool           `yaml:"flags.gift"`
	Tags   map[string]int `yaml:"tags"`
	Rest   any            `yaml:"rest"`
	Raw    strictyaml.Value
	Lag    time.Duration `yaml:"lag"`
	amount `yaml:",inline"`
}

type amount struct {
	Total int64 `yaml:"total" range:"1,1000"`
	Cents int32 `yaml:"cents"`
}

type line struct {
	SKU   string `yaml:"sku,required"`
	Count *int   `yaml:"count"`
}

type address struct {
	Street string `yaml:"street"`
}

var hooks = []strictyaml.Hook{
	strictyaml.ReadKey("lag", func(v strictyaml.Value, o *order) (err error) {
		if o.Lag, err = time.ParseDuration(v.Scalar()); err != nil {
			err = v.Unfit("a duration")
		}
		return err
	}),
	strictyaml.Read(func(v strictyaml.Value, a *address) error {
		if v.Kind() != strictyaml.Text {
			return v.Struct(a)
		}
		a.Street = v.Scalar()
		return nil
	}),
}

func decode(text string, o strictyaml.Options) (got order, err error) {
	root, err := strictyaml.Parse("f.yaml", []byte(text))
	if err != nil {
		return got, err
	}
	o.Hooks = hooks
	return got, root.With(o).Decode(&got)
}

func pointer(n int) *int { return &n }

func TestDecode(t *testing.T) {
	t.Parallel()
	const text = `id: x # a comment
lines:
- {sku: a, count: 2}
- sku: "b"
ship: Main Street
bill: ~
state: paid
note: |
  two
  lines
flags: {rush: true}
tags: {a: 1, "b c": 0x10}
lag: 5s
total: 7
cents: -1
rest: {n: 1, m: -2, f: 1.5, t: "1", l: [true, null], "": {}}
`
	want := order{
		ID: "x", Lines: []line{{SKU: "a", Count: pointer(2)}, {SKU: "b"}}, Ship: &address{"Main Street"}, State: "paid", Note: "two\nlines\n", Rush: true,
		Tags: map[string]int{"a": 1, "b c": 16}, Lag: 5 * time.Second, amount: amount{7, -1},
		Rest: map[string]any{"n": uint64(1), "m": int64(-2), "f": 1.5, "t": "1", "l": []any{true, nil}, "": map[string]any{}},
	}
	for _, loose := range []bool{false, true} {
		got, err := decode(text, strictyaml.Options{Loose: loose})
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(order{}), cmp.AllowUnexported(amount{}), cmp.Comparer(func(a, b strictyaml.Value) bool { return a.IsZero() == b.IsZero() })); err != nil || diff != "" {
			t.Errorf("loose %t: %v\n%s", loose, err, diff)
		}
	}
}

// Loose files may have a number for a text, and null for an empty value.
func TestDecode_Loose(t *testing.T) {
	t.Parallel()
	const text = "id: 5\nlines: ~\nship:\nstate: null\nnote: true\ntags: {a: '12'}\ntotal: \"7\"\n"
	got, err := decode(text, strictyaml.Options{Loose: true})
	if err != nil || got.ID != "5" || got.Lines != nil || got.Ship != nil || got.State != "" || got.Note != "true" || got.Tags["a"] != 12 || got.Total != 7 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestDecode_Aliases(t *testing.T) {
	t.Parallel()
	const text = `id: &id x
note: *id
lines:
- &first {sku: a, count: 1}
- {<<: *first, sku: b}
- <<: [{count: 3}, *first]
- *first
rest: &id {a: *id}
tags: &none {}
flags: *none
state: !!str open
`
	got, err := decode(text, strictyaml.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, l := range got.Lines {
		lines = append(lines, fmt.Sprint(l.SKU, *l.Count))
	}
	if diff := cmp.Diff([]string{"a1", "b1", "a3", "a1"}, lines); diff != "" || got.Note != "x" || got.State != "open" {
		t.Errorf("%+v\n%s", got, diff)
	}
	if diff := cmp.Diff(map[string]any{"a": "x"}, got.Rest); diff != "" {
		t.Error(diff)
	}
}

func TestDecode_Empty(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "\n", "# a comment\n", "---\n", "%YAML 1.2\n---\n"} {
		root, err := strictyaml.Parse("f.yaml", []byte(text))
		if err != nil || !root.IsZero() {
			t.Errorf("%q: %v, %v", text, root, err)
		}
		if err := root.Decode(&order{}); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if err := root.Fail("the file is empty", "id: text"); err.Error() != "f.yaml: the file is empty; expected id: text" {
			t.Errorf("%q: %v", text, err)
		}
	}
	if got, err := decode("%YAML 1.2\n---\nid: x\n...\n", strictyaml.Options{}); err != nil || got.ID != "x" {
		t.Errorf("%+v, %v", got, err)
	}
}

// An error has the position, the fault and the expected value.
func TestDecode_Refused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"- id: x", `1:1: this is a list; expected a mapping (key: value)`},
		{"x", `1:1: this is "x"; expected a mapping (key: value)`},
		{"{}", `1:1: "id" is missing`},
		{"state: open", `1:1: "id" is missing`},
		{"id: [a]", `1:5: id: this is a list; expected the order's id`},
		{"id: {a: b}", `1:5: id: this is a mapping; expected the order's id`},
		{"id: ~", `1:5: id: this is null; expected the order's id`},
		{"id: 5", `1:5: id: this is "5"; expected the order's id`},
		{"id: x\nstatus: open", `2:1: status: unknown key, nearest to state; expected bill, cents, flags, id, lag, lines, note, rest, ship, state, tags, total`},
		{"id: x\nwhatever: 1", `2:1: whatever: unknown key; expected bill, cents, flags, id, lag, lines, note, rest, ship, state, tags, total`},
		{"{id: x, lines: [{sku: a}, {sku: b, cnt: 1}]}", `1:36: lines[1].cnt: unknown key; expected count, sku`},
		{"id: x\nlines:\n- sku: a\n- count: 1", `4:3: lines[1]: "sku" is missing`},
		{"id: x\nlines: {}", `2:8: lines: this is a mapping; expected a list ([…])`},
		{"id: x\nlines: [{sku: a, count: b}]", `2:25: lines[0].count: this is "b"; expected an integer`},
		{"id: x\nlines: [{sku: a, count: '1'}]", `2:25: lines[0].count: this is "1"; expected an integer`},
		{"id: x\nlines: [{sku: a, count: 1.5}]", `2:25: lines[0].count: this is "1.5"; expected an integer`},
		{"id: x\nlines: [{sku: a, count: 18446744073709551615}]", `2:25: lines[0].count: "18446744073709551615"; expected an integer`},
		{"id: x\ncents: 3000000000", `2:8: cents: "3000000000"; expected an integer`},
		{"id: x\ntotal: 0", `2:8: total: "0"; expected an integer from 1 to 1000`},
		{"id: x\ntotal: []", `2:8: total: this is a list; expected an integer from 1 to 1000`},
		{"id: x\nstate: shut", `2:8: state: "shut"; expected open, paid`},
		{"id: x\nstate: ''", `2:8: state: ""; expected open, paid`},
		{"id: x\nnote: ''", `2:7: note: ""; expected a text`},
		{"id: x\nship: ~", `2:7: ship: this is null; expected a mapping (key: value)`},
		{"id: x\nship: {stret: y}", `2:8: ship.stret: unknown key, nearest to street; expected street`},
		{"id: x\nflags: {rush: 1}", `2:15: flags.rush: this is "1"; expected true or false`},
		{"id: x\nflags: {rash: true}", `2:9: flags.rash: unknown key, nearest to rush; expected gift, rush`},
		{"id: x\nflags: true", `2:8: flags: this is "true"; expected a mapping (key: value)`},
		{"id: x\ntags:\n  'a b': c", `3:10: tags["a b"]: this is "c"; expected an integer`},
		{"id: x\nlag: [5s]", `2:6: lag: this is a list; expected a duration`},
		{"id: x\nlag: " + strings.Repeat("é", 100), `2:6: lag: "` + strings.Repeat("é", 80) + `"…; expected a duration`},
		{"id: x\nid: y", `2:1: id: the key occurs twice, first at 1:1`},
		{"id: x\nrest: {a: {b: 1,\n  b: 2}}", `3:3: rest.a.b: the key occurs twice, first at 2:12`},
		{"id: x\nrest: [{1: a, 1: b}]", `2:15: rest[0].1: the key occurs twice, first at 2:9`},
		{"id: x\n? [a]\n: b", `3:1: found an invalid key for this map`},
		{"id: x\n&k a: b", `2:1: unsupported kind of key; expected a plain or quoted name`},
		{"id: *x", `1:5: id: alias *x has no anchor; expected an anchor &x that ends before it`},
		{"id: x\nrest: &r [*r]", `2:11: rest[0]: alias *r has no anchor; expected an anchor &r that ends before it`},
		{"id: x\nrest: {<<: 1}", `2:12: rest["<<"]: the merged value is not a mapping; expected a mapping, or a list of mappings`},
		{"id: x\nrest: {<<: [{a: b}, c]}", `2:21: rest["<<"]: the merged value is not a mapping; expected a mapping, or a list of mappings`},
		{"id: x\nrest: {<<: {a: b}, <<: {c: d}}", `2:20: rest["<<"]: the key occurs twice, first at 2:8`},
		{"id: !!binary aGk=", `1:5: id: tag !!binary; expected no tag, or !!str before a text`},
		{"id: !foo {a: b}", `1:5: id: tag !foo; expected no tag, or !!str before a text`},
		{"id: x\n---\nid: y", `3:1: a second document; expected one mapping in a file`},
		{"id: [", `1:5: sequence end token ']' not found`},
		{"id: \"x", `1:5: could not find end character of double-quoted text`},
	} {
		_, err := decode(c.text, strictyaml.Options{})
		if err == nil || err.Error() != "f.yaml:"+c.want {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
		if fault, ok := errors.AsType[*strictyaml.Error](err); !ok || fault.File != "f.yaml" {
			t.Errorf("%q: the error is %#v", c.text, err)
		}
	}
}

// Positions do not depend on the style of a mapping.
func TestPositions(t *testing.T) {
	t.Parallel()
	at := strictyaml.Positions{}
	const text = "id: x\nlines:\n  - sku: a\n    count: 1\n  - {sku: b, count: 2}\ntags:\n  \"a b\": 1\nflags: {rush: true,\n gift: false}\n"
	if _, err := decode(text, strictyaml.Options{Positions: at}); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]strictyaml.Position{
		"": {1, 1}, "id": {1, 1}, "lines": {2, 1}, "lines[0]": {3, 5}, "lines[0].count": {4, 5}, "lines[1]": {5, 5}, "lines[1].sku": {5, 6}, "lines[1].count": {5, 14},
		"tags": {7, 3}, `tags["a b"]`: {7, 3}, "flags": {8, 8}, "flags.gift": {9, 2},
		"lines[0].none": {3, 5}, "lines[7].sku": {2, 1}, "none": {}, // missing paths
	} {
		if got := at.Near(path); got != want {
			t.Errorf("%s is at %v, want %v", path, got, want)
		}
	}
	// As in JSON.
	at = strictyaml.Positions{}
	if _, err := decode(`{"id":"x","tags":{"a":1,"b":2},"rest":[]}`, strictyaml.Options{Positions: at}); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]strictyaml.Position{"": {1, 1}, "tags": {1, 18}, "tags.b": {1, 25}, "rest": {1, 32}} {
		if got := at.Near(path); got != want {
			t.Errorf("%s is at %v, want %v", path, got, want)
		}
	}
}

func TestValue(t *testing.T) {
	t.Parallel()
	root, err := strictyaml.Parse("f.yaml", []byte("[~, x, true, 0x1f, 1.50, .inf, .nan, [], {}]"))
	if err != nil {
		t.Fatal(err)
	}
	items, err := root.Items()
	if err != nil || len(items) != 9 {
		t.Fatal(items, err)
	}
	for i, want := range []struct {
		kind strictyaml.Kind
		text string
	}{
		{strictyaml.Null, "~"},
		{strictyaml.Text, "x"},
		{strictyaml.Bool, "true"},
		{strictyaml.Integer, "0x1f"},
		{strictyaml.Float, "1.50"},
		{strictyaml.Float, ".inf"},
		{strictyaml.Float, ".nan"},
		{strictyaml.List, ""},
		{strictyaml.Mapping, ""},
	} {
		if v := items[i]; v.Kind() != want.kind || v.Scalar() != want.text {
			t.Errorf("[%d] is %d %q, want %d %q", i, v.Kind(), v.Scalar(), want.kind, want.text)
		}
	}
	var plain []any
	if err := root.Decode(&plain); err != nil || plain[3] != uint64(31) || plain[4] != 1.5 || !math.IsInf(plain[5].(float64), 1) || !math.IsNaN(plain[6].(float64)) {
		t.Errorf("%v, %v", plain, err)
	}
	if items[1].Place() != "f.yaml:1:5" {
		t.Error(items[1].Place())
	}
}

// Texts that would take more memory, time or stack than their size suggests are rejected.
func TestParse_Bounds(t *testing.T) {
	t.Parallel()
	repeat := strings.Repeat
	keys := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "k%d: 1\n", i)
		}
		return b.String()
	}
	var laughs strings.Builder
	laughs.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 12; i++ {
		fmt.Fprintf(&laughs, "a%d: &a%d [%s*a%d]\n", i, i, repeat(fmt.Sprintf("*a%d, ", i-1), 9), i-1)
	}
	for _, c := range []struct{ name, text, want string }{
		{"size", "a: " + repeat("x", 4<<20), "f.yaml: the file has 4194307 bytes; expected at most 4194304"},
		{"marks", "a: [" + repeat(",", 1<<20), "f.yaml: the file has 1048578 lines and marks such as commas; expected at most 400000"},
		{"brackets", "a: " + repeat("[", 100_000), "f.yaml:1:203: the values are nested too deeply; expected at most 200 levels"},
		{"braces", "a: " + repeat("{a: ", 30_000), "the values are nested too deeply"},
		{"dashes", repeat("- ", 190_000) + "a", "f.yaml:1:401: the values are nested too deeply"},
		{"questions", repeat("? ", 100_000) + "a", "the values are nested too deeply"},
		{"lines", deepLines(600), "f.yaml:201:202: the values are nested too deeply"},
		{"quotes", repeat("'' ", 1<<20), "f.yaml: the file has 1048576 lines and marks such as commas; expected at most 400000"},
		{"anchors", "a: " + repeat("&a ", 60_000) + "a", "the file has too many anchors and tags; expected at most 10000"},
		{"tags", "a: " + repeat("!a ", 60_000) + "a", "the file has too many anchors and tags; expected at most 10000"},
		{"nested anchors", "a: " + repeat("&a ", 5000) + "a", ""},
		{"keys", keys(20_000), "f.yaml:5000:6: the mappings in block style have too many keys; expected at most 5000, or a mapping in braces ({key: value, …})"},
		{"many keys", "rest: {" + strings.ReplaceAll(keys(10_000), "\n", ", ") + "}\nid: x\n", ""},
		{"documents", repeat("---\na: 1\n", 20_000), "f.yaml:5:1: a second document; expected one mapping in a file"},
		{"ends of documents", repeat("a: 1\n...\n", 20_000), "f.yaml:6:1: a second document; expected one mapping in a file"},
		{"laughs", laughs.String(), "the aliases expand to too many values; expected at most 100000"},
		{"merges", func() string {
			var b strings.Builder
			b.WriteString("a0: &a0 {x: 1}\n")
			for i := 1; i < 40; i++ {
				fmt.Fprintf(&b, "a%d: &a%d {<<: *a%d, y%d: {<<: *a%d}}\n", i, i, i-1, i, i-1)
			}
			return b.String()
		}(), "the aliases expand to too many values; expected at most 100000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := strictyaml.Parse("f.yaml", []byte(c.text))
			if err == nil && c.want != "" || err != nil && c.want == "" && !strings.Contains(err.Error(), "f.yaml:1:") || c.want != "" && err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%.300v, want %s", err, c.want)
			}
		})
	}
}

// deepLines returns keys, each indented more than the previous one.
func deepLines(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

// FuzzDecode checks that no text makes the reader panic, that errors have positions, and that
// strictly accepted text reads the same loosely.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{
		"id: x\nlines:\n- {sku: a, count: 2}\n- sku: b\nflags: {rush: true}\ntags: {a: 1}\nrest: [~, 1.5, {a: b}]\n",
		"id: &x a\nnote: *x\nlines: [&l {sku: a}, {<<: *l}, {<<: [*l, {count: 1}]}]\n", "? a\n: b\n", "? {a: b}\n: c", "a: &x [*x]", "<<: {a: 1}\n---\nb: !!binary aGk=",
		"a: |\n  x\nb: >-\n  y\n", "%YAML 1.2\n---\nid: !!str 5\n...\n", "{\"id\": \"\\u00e9\", total: 0x1}", "- - - a", "lag: 5s\nship: x\nbill: {street: y}\n", "*x : y\n", "&x : *x\n", "a: !!str\n", "!!str &a *a", "a: &\n", "a: *\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at := strictyaml.Positions{}
		strict, err := decode(text, strictyaml.Options{Positions: at})
		if err != nil {
			fault, ok := errors.AsType[*strictyaml.Error](err)
			if !ok || fault.What == "" || fault.At.Line < 0 || fault.At.Line > strings.Count(text, "\n")+strings.Count(text, "\r")+1 {
				t.Fatalf("%#v", err)
			}
			return
		}
		for path, p := range at {
			if p.Line < 1 || p.Column < 1 {
				t.Fatalf("%q is at %v", path, p)
			}
		}
		loose, err := decode(text, strictyaml.Options{Loose: true})
		if err != nil || fmt.Sprint(strict.ID, strict.Lines == nil, strict.State, strict.amount, strict.Tags, strict.Rest) != fmt.Sprint(loose.ID, loose.Lines == nil, loose.State, loose.amount, loose.Tags, loose.Rest) {
			t.Fatalf("loosely: %+v, %v; strictly: %+v", loose, err, strict)
		}
	})
}

// With Options.All every fault is reported, at any depth, and without it only the first; a
// misspelled key is not also reported as missing.
func TestDecode_AllFaults(t *testing.T) {
	t.Parallel()
	type inner struct {
		N    int    `yaml:"n,required"`
		Name string `yaml:"name,required"`
	}
	root, err := strictyaml.Parse("f.yaml", []byte("list: [{n: x, nam: a}, 3]\nmap: {a: {name: b}}\nother: 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`f.yaml:1:12: list[0].n: this is "x"; expected an integer`,
		`f.yaml:1:15: list[0].nam: unknown key, nearest to name; expected n, name`,
		`f.yaml:1:24: list[1]: this is "3"; expected a mapping (key: value)`,
		`f.yaml:2:10: map.a: "n" is missing`,
		`f.yaml:3:1: other: unknown key; expected list, map`,
	}
	for _, all := range []bool{true, false} {
		var into struct {
			List []inner          `yaml:"list"`
			Map  map[string]inner `yaml:"map"`
		}
		var got []string
		for _, fault := range strictyaml.Faults(root.With(strictyaml.Options{All: all}).Decode(&into)) {
			got = append(got, fault.Error())
		}
		if !all {
			want = want[:1]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("all %v (-want +got):\n%s", all, diff)
		}
	}
}
