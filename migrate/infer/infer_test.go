package infer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/migrate/internal/exporttest"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

func inferred(t *testing.T, text string, o source.Options) (*Inferred, error) {
	t.Helper()
	src, err := source.OpenFS(fstest.MapFS{"in.json": {Data: []byte(text)}}, "in.json", o)
	if err != nil {
		t.Fatal(err)
	}
	return Table(t.Context(), src.Tables[0], Options{})
}

func wantDamage(t *testing.T, err error, damage source.Damage, text string) {
	t.Helper()
	exporttest.WantDamage(t, err, source.DamageOf(err), damage, text)
}

func TestTable_Key(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, key, want string }{
		{"declared", `{"a":{"S":"1"},"b":{"N":"1"}}`, "b,a", "b (N), a (S)"},
		{"PK and SK", `{"x":{"S":"1"},"PK":{"S":"1"},"SK":{"N":"1"}}`, "", "PK (S), SK (N)"},
		{"in any case", `{"x":{"S":"1"},"sk":{"S":"1"},"Pk":{"S":"1"}}`, "", "Pk (S), sk (S)"},
		{"SK not in every item", `{"PK":{"S":"1"},"SK":{"S":"1"}}` + "\n" + `{"PK":{"S":"2"}}`, "", "PK (S)"},
		{"first unique", `{"kind":{"S":"x"},"id":{"N":"1"},"b":{"B":"AA=="}}` + "\n" + `{"b":{"B":"AQ=="},"kind":{"S":"x"},"id":{"N":"2"}}`, "", "id (N)"},
		{"of one type", `{"a":{"S":"1"},"b":{"B":"AA=="}}` + "\n" + `{"a":{"N":"2"},"b":{"B":"AQ=="}}`, "", "b (B)"},
		{"not empty", `{"a":{"S":""},"b":{"S":"x"}}`, "", "b (S)"},
		{"behind the first candidates", `{"a":{"S":"x"},"b":{"S":"x"},"c":{"S":"x"},"d":{"S":"x"},"e":{"S":"1"}}` + "\n" +
			`{"a":{"S":"x"},"b":{"S":"x"},"c":{"S":"x"},"d":{"S":"x"},"e":{"S":"2"}}`, "", "e (S)"},
		{"not an odd type", `{"a":{"BOOL":true},"l":{"L":[]},"b":{"S":"x"}}`, "", "b (S)"},
	} {
		in, err := inferred(t, c.text, source.Options{Key: c.key})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := source.KeyText((*layout.Mapping)(in.Mapping).Key()); got != c.want {
			t.Errorf("%s: key %s, want %s", c.name, got, c.want)
		}
		if len(in.Choices) < 4 || in.Choices[0].What != "key" || in.Choices[0].Why == "" {
			t.Errorf("%s: choices %v", c.name, in.Choices)
		}
		// An undeclared key is a guess, and causes a warning.
		var want []string
		if c.key == "" {
			want = []string{"table in_: the key " + c.want + " is a guess, since the input declares none: declare it with --key PK[,SK], or with --table-schema FILE, which also declares indexes"}
		}
		if diff := cmp.Diff(want, in.Warnings); diff != "" {
			t.Errorf("%s: warnings (-want +got):\n%s", c.name, diff)
		}
	}
	_, err := inferred(t, `{"a":{"S":"1"}}`+"\n"+`{"a":{"N":"1"}}`, source.Options{Key: "a"})
	var input *source.Error
	if !errors.As(err, &input) || input.Damage != source.KeyTypeMismatch {
		t.Errorf("key of two types: error %v, want %s", err, source.KeyTypeMismatch)
	}
}

func TestTable_KeyRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text, key, want string
		damage                source.Damage
	}{
		{"two types", `{"id":{"S":"1"}}` + "\n" + `{"id":{"S":"2"}}` + "\n" + `{"id":{"N":"3"}}`, "id", `in.json:3: key attribute "id" is of type N here, but of type S at in.json:1`, source.KeyTypeMismatch},
		{"an empty item", `{"id":{"S":"1"}}` + "\n{}", "", "in.json:2: the item is empty, and the input declares no key: name the key (--key PK[,SK]), or remove the item", source.KeyUnknown},
		{
			"nothing is a key", `{"a":{"S":"1"},"b":{"N":"1"},"c":{"BOOL":true},"d":{"S":"x"}}` + "\n" + `{"a":{"S":"2"},"b":{"S":"1"},"c":{"S":""}}` + "\n" + `{"a":{"S":"2"},"b":{"N":"2"},"d":{"S":"y"}}`, "",
			`in.json:1: the input declares no key, and none can be inferred ("c" is of type BOOL at in.json:1; "b" is of type S at in.json:2, and of type N elsewhere; "d" is missing at in.json:2; "a" has the same value at in.json:2 and in.json:3): name the key (--key PK[,SK])`, source.KeyUnknown,
		},
		{"nothing at all", `{"Items":[]}`, "", "in.json: the input has no items and declares no key: name the key (--key PK[,SK])", source.KeyUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := inferred(t, c.text, source.Options{Key: c.key})
			wantDamage(t, err, c.damage, c.want)
		})
	}
}

// Names are a guess that the data can refute: two items with the same PK and SK are named.
func TestTable_KeyNotUnique(t *testing.T) {
	t.Parallel()
	const items = `{"PK":{"S":"a"},"SK":{"S":"b"},"n":{"N":"1"}}` + "\n" + `{"PK":{"S":"b"},"SK":{"S":"b"},"n":{"N":"1"}}` + "\n" +
		`{"PK":{"S":"a"},"SK":{"S":"c"},"n":{"N":"1"}}` + "\n" + `{"PK":{"S":"a"},"SK":{"S":"b"},"n":{"N":"2"}}` + "\n"
	const want = "in.json:4: the input declares no key, and PK and SK, which are named like a key, have the same values here as at in.json:1, a and b: name the key (--key PK[,SK])"
	_, err := inferred(t, items, source.Options{})
	wantDamage(t, err, source.KeyUnknown, want)

	in, err := inferred(t, strings.Replace(items, `"SK":{"S":"b"},"n":{"N":"2"}`, `"SK":{"S":"d"},"n":{"N":"2"}`, 1), source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if c := in.Choices[0]; c.Why != "a guess: the input declares no key; each of the 4 items has attributes with these names, and their values differ" {
		t.Errorf("the choice is %+v", c)
	}
}

func TestTable_Joiner(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"PK":{"S":"a"},"SK":{"S":"b#c"}}`:  "plain('#')",
		`{"PK":{"S":"a#b"},"SK":{"S":"c"}}`:  "escaped('#')",
		`{"PK":{"S":"a b"},"SK":{"S":"c"}}`:  "escaped('#')",
		`{"PK":{"N":"-12"},"SK":{"S":"c#"}}`: "plain('#')",
	} {
		in, err := inferred(t, text, source.Options{})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := (*layout.Mapping)(in.Mapping).Spec().Target.Joiner; got != want {
			t.Errorf("%s: joiner %s, want %s", text, got, want)
		}
	}
}

// TestTable_KeyNames infers keys whose names are hard to express in a template.
func TestTable_KeyNames(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{
		"user id": `{"N":"7"}`, "é-1": `{"B":"AA=="}`, "a:b": `{"N":"7"}`, "{x}": `{"S":"x"}`,
	} {
		text := fmt.Sprintf(`{%q:%s,"v":{"S":"x"}}`, name, value)
		in, err := inferred(t, text, source.Options{Key: name})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := (*layout.Mapping)(in.Mapping).Key().Hash.Name; got != name {
			t.Errorf("%s: key %q, want %q", text, got, name)
		}
	}
}

// TestTable_ManyAttributes infers from items with more attributes than the limit, with the same
// result each time.
func TestTable_ManyAttributes(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for item := range 2 {
		fmt.Fprintf(&b, `{"id":{"N":"%d"}`, item)
		for i := range 3000 {
			fmt.Fprintf(&b, `,"a%d":{"N":"%d"}`, (i*7919)%3000, item)
		}
		b.WriteString(`,"m":{"M":{"k":{"S":"x"}}}}` + "\n")
	}
	var before string
	for range 3 {
		in, err := inferred(t, b.String(), source.Options{})
		if err != nil {
			t.Fatal(err)
		}
		text, err := in.Mapping.Spec().YAML()
		if err != nil {
			t.Fatal(err)
		}
		if before != "" && string(text) != before {
			t.Fatal("two runs over the same data chose different mappings")
		}
		before = string(text)
	}
}

func TestTable_TypesAndFamilies(t *testing.T) {
	t.Parallel()
	in, err := inferred(t, `{"id":{"S":"1"},"v":{"N":"1"},"m":{"M":{"a":{"S":"x"},"b":{"S":"y"},"n":{"N":"1"}}},"a b":{"SS":["x"]},"l":{"L":[]}}
{"id":{"S":"2"},"v":{"N":"2"},"m":{"M":{"a":{"S":"x"},"n":{"N":"1"}}}}
{"id":{"S":"3"},"v":{"S":"3"}}`, source.Options{Table: "My-Table"})
	if err != nil {
		t.Fatal(err)
	}
	spec := (*layout.Mapping)(in.Mapping).Spec()
	var types []string
	for _, name := range []string{"v", "m", "a b", "l"} {
		types = append(types, spec.Source.Schema[name].Type.String())
	}
	if diff := cmp.Diff([]string{"N", "M", "SS", "L"}, types); diff != "" {
		t.Error(diff)
	}
	if m := spec.Source.Schema["m"]; m.Elem.Type != attr.S || len(m.Keys) != 1 || m.Keys["n"].Type != attr.N {
		t.Errorf("schema of the map: %+v", m)
	}
	var families []string
	for _, f := range spec.Target.Families {
		families = append(families, fmt.Sprintf("%s %d", f.Name, f.GC.Versions))
	}
	if diff := cmp.Diff([]string{"a 1", "l 16", "s.a.20b 1", "m.m 1", "_t 1"}, families); diff != "" {
		t.Error(diff)
	}
	for longest, want := range map[int]int{0: 16, 8: 16, 9: 32, 300: 1024, 5000: 1024} {
		if got := listVersions(longest); got != want {
			t.Errorf("%d versions for lists of %d elements, want %d", got, longest, want)
		}
	}
	if got := mapfile.BigtableName("My Table", 50); got != "My.20Table" {
		t.Errorf("a name for My Table: %q", got)
	}
	if got := in.Mapping.TargetTable(); got != "My-Table" {
		t.Errorf("target table %q", got)
	}
}

// Attributes of several types are reported with shares and places; rare values that may be
// errors cause a warning, and are kept.
func TestTable_MixedTypes(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 1001 {
		price, more := fmt.Sprintf(`{"N":"%d"}`, i), ""
		switch {
		case i == 7:
			price = `{"S":"free"}`
		case i%19 == 3:
			more = `,"kind":{"NULL":true}`
		}
		if more == "" {
			more = `,"kind":{"S":"x"}`
		}
		if i < 3 {
			more += fmt.Sprintf(`,"m":{"M":{"k":%s}}`, [...]string{`{"BOOL":true}`, `{"S":"y"}`, `{"S":"y"}`}[i])
		}
		fmt.Fprintf(&b, `{"id":{"N":"%d"},"price":%s%s}`+"\n", i, price, more)
	}
	in, err := inferred(t, b.String(), source.Options{Key: "id"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range in.Choices {
		if c.What == "type" {
			got = append(got, c.Chosen+" ("+c.Why+")")
		}
	}
	want := []string{
		"kind: S (mixed types: only 948 of 1001 values are S; others: NULL 53, first at in.json:4)",
		"m.k: S (mixed types: only 2 of 3 values are S; others: BOOL 1, first at in.json:1)",
		"price: N (1000 of 1001 values are N; others: S 1, first at in.json:8)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("choices (-want +got):\n%s", diff)
	}
	want = []string{"table in_: price is of type S in 1 of 1001 values, first at in.json:8, and may be an error there: it is kept unchanged"}
	if diff := cmp.Diff(want, in.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	// Of very many, the first are reported.
	b.Reset()
	b.WriteString(`{"id":{"N":"1"}`)
	for i := range 30 {
		fmt.Fprintf(&b, `,"a%02d":{"L":[]}`, i)
	}
	text := b.String() + "}\n" + strings.ReplaceAll(strings.Replace(b.String(), `"1"`, `"2"`, 1), `{"L":[]}`, `{"S":""}`) + "}"
	if in, err = inferred(t, text, source.Options{Key: "id"}); err != nil {
		t.Fatal(err)
	}
	if i := slices.IndexFunc(in.Choices, func(c Choice) bool { return c.Chosen == "10 more" }); i < 0 || in.Choices[i-1].Chosen != "a19: S" {
		t.Errorf("choices %+v", in.Choices)
	}
}
