package attr

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func mustValue(t *testing.T, json string) Value {
	t.Helper()
	v, err := UnmarshalValue([]byte(json))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestParseType(t *testing.T) {
	t.Parallel()
	for typ := S; typ <= M; typ++ {
		if got, ok := ParseType(typ.String()); !ok || got != typ {
			t.Errorf("ParseType(%q) = %v, %t", typ, got, ok)
		}
	}
	for _, bad := range []string{"", "s", "Bool", "SSS"} {
		if got, ok := ParseType(bad); ok {
			t.Errorf("ParseType(%q) = %v", bad, got)
		}
	}
}

func TestSize(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		json string
		want int
	}{
		{`{"S":""}`, 0},
		{`{"S":"é"}`, 2},
		{`{"B":"AAECAw=="}`, 4},
		{`{"BOOL":false}`, 1},
		{`{"NULL":true}`, 1},
		{`{"N":"0"}`, 1},
		{`{"N":"5"}`, 2},
		{`{"N":"-5"}`, 3},
		{`{"N":"3.14159"}`, 5},
		{`{"N":"123456"}`, 4},
		{`{"N":"1E125"}`, 2},
		{`{"N":"1E-130"}`, 2},
		{`{"N":"1200"}`, 2},
		{`{"N":"0.5"}`, 2},
		{`{"N":"0.001"}`, 2},
		{`{"N":"0.012"}`, 3},
		{`{"N":"` + strings.Repeat("9", 38) + `"}`, 20},
		{`{"N":"-9` + strings.Repeat("9", 36) + `.9"}`, 22},
		{`{"SS":["ab","c"]}`, 3},
		{`{"NS":["1","22.5"]}`, 5},
		{`{"BS":["AA==","AAE="]}`, 3},
		{`{"L":[]}`, 3},
		{`{"M":{}}`, 3},
		{`{"L":[{"S":"ab"},{"N":"1"}]}`, 3 + 1 + 2 + 1 + 2},
		{`{"M":{"key":{"S":"ab"},"l":{"L":[{"BOOL":true}]}}}`, 3 + (1 + 3 + 2) + (1 + 1 + 3 + 1 + 1)},
	} {
		if got := mustValue(t, c.json).Size(); got != c.want {
			t.Errorf("%s has %d bytes, want %d", c.json, got, c.want)
		}
	}
	item := Item{"näme": String("ab"), "n": Int(7)}
	if got, want := item.Size(), 5+2+1+2; got != want {
		t.Errorf("%s has %d bytes, want %d", item, got, want)
	}
	if got := (Value{}).Size(); got != 0 {
		t.Errorf("an absent value has %d bytes", got)
	}
}

func TestDepth(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		json string
		want int
	}{
		{`{"S":"x"}`, 1},
		{`{"SS":["x"]}`, 1},
		{`{"L":[]}`, 1},
		{`{"L":[{"S":"x"},{"M":{"a":{"L":[]}}}]}`, 3},
		{nested(32), 32},
	} {
		if got := mustValue(t, c.json).Depth(); got != c.want {
			t.Errorf("%s has depth %d, want %d", c.json, got, c.want)
		}
	}
}

func TestEqual(t *testing.T) {
	t.Parallel()
	all := []string{
		`{"S":""}`, `{"S":"1"}`, `{"N":"1"}`, `{"N":"1.5"}`, `{"B":"MQ=="}`, `{"BOOL":true}`, `{"BOOL":false}`, `{"NULL":true}`,
		`{"SS":["1"]}`, `{"SS":["1","2"]}`, `{"NS":["1"]}`, `{"NS":["1","2"]}`, `{"BS":["MQ=="]}`, `{"L":[]}`, `{"L":[{"N":"1"},{"N":"2"}]}`,
		`{"L":[{"N":"2"},{"N":"1"}]}`, `{"M":{}}`, `{"M":{"a":{"N":"1"}}}`, `{"M":{"b":{"N":"1"}}}`, `{"M":{"a":{"N":"2"}}}`,
	}
	for i, a := range all {
		for j, b := range all {
			if got := Equal(mustValue(t, a), mustValue(t, b)); got != (i == j) {
				t.Errorf("Equal(%s, %s) = %t", a, b, got)
			}
		}
		if Equal(mustValue(t, a), Value{}) {
			t.Errorf("%s equals an absent value", a)
		}
	}
	for _, same := range [][2]string{
		{`{"N":"1.50"}`, `{"N":"15e-1"}`},
		{`{"SS":["b","a"]}`, `{"SS":["a","b"]}`},
		{`{"NS":["10","9.0"]}`, `{"NS":["9","1e1"]}`},
	} {
		if !Equal(mustValue(t, same[0]), mustValue(t, same[1])) {
			t.Errorf("%s differs from %s", same[0], same[1])
		}
	}
	a := Item{"a": Int(1)}
	for _, b := range []Item{nil, {}, {"b": Int(1)}, {"a": Int(2)}, {"a": Int(1), "b": Int(1)}} {
		if EqualItems(a, b) || EqualItems(b, a) || !EqualItems(b, b) {
			t.Errorf("items %s and %s", a, b)
		}
	}
	if EqualItems(nil, Item{}) {
		t.Error("no item equals an empty one")
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want int
		ok   bool
	}{
		{`{"S":"a"}`, `{"S":"b"}`, -1, true},
		{`{"S":"Z"}`, `{"S":"a"}`, -1, true},
		{`{"S":"\uffee"}`, `{"S":"\ud83d\ude00"}`, -1, true}, // by UTF-8, not UTF-16
		{`{"N":"10"}`, `{"N":"9"}`, 1, true},
		{`{"N":"-10"}`, `{"N":"-9"}`, -1, true},
		{`{"N":"0.1"}`, `{"N":"0.10"}`, 0, true},
		{`{"B":"/w=="}`, `{"B":"AA=="}`, 1, true},
		{`{"S":"1"}`, `{"N":"1"}`, 0, false},
		{`{"BOOL":true}`, `{"BOOL":true}`, 0, false},
		{`{"SS":["a"]}`, `{"SS":["a"]}`, 0, false},
	} {
		got, ok := Compare(mustValue(t, c.a), mustValue(t, c.b))
		if sign(got) != c.want || ok != c.ok {
			t.Errorf("Compare(%s, %s) = %d, %t, want %d, %t", c.a, c.b, got, ok, c.want, c.ok)
		}
	}
}

func TestSets(t *testing.T) {
	t.Parallel()
	strs := mustValue(t, `{"SS":["b","a",""]}`)
	if diff := cmp.Diff([]string{"", "a", "b"}, strs.Set); diff != "" {
		t.Error(diff)
	}
	numbers := mustValue(t, `{"NS":["10","9.0","-1e0"]}`)
	if diff := cmp.Diff([]string{"-1", "9", "10"}, numbers.Set); diff != "" {
		t.Error(diff)
	}
	binaries := mustValue(t, `{"BS":["/w==","AAE=",""]}`)
	if diff := cmp.Diff([]string{"", "\x00\x01", "\xff"}, binaries.Set); diff != "" {
		t.Error(diff)
	}
	if !numbers.HasMember("9") || numbers.HasMember("8") || !binaries.HasMember("") {
		t.Errorf("members of %s, %s", numbers, binaries)
	}
	for name, set := range map[string]string{
		"empty strings":     `{"SS":[]}`,
		"empty numbers":     `{"NS":[]}`,
		"empty binaries":    `{"BS":[]}`,
		"the same string":   `{"SS":["a","b","a"]}`,
		"the same number":   `{"NS":["1","1.0"]}`,
		"the same binary":   `{"BS":["",""]}`,
		"not a number":      `{"NS":["1","x"]}`,
		"a number too long": `{"N":"1e126"}`,
	} {
		v, err := UnmarshalValue([]byte(set))
		var e *Error
		if !errors.As(err, &e) || !v.IsAbsent() {
			t.Errorf("%s: %s, %v", name, v, err)
		}
	}
	if v := SetOf(SS); !v.IsAbsent() {
		t.Errorf("a set of nothing is %s", v)
	}
}

func TestSetOf_Union(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom([]Type{SS, NS, BS}).Draw(t, "type")
		member := rapid.StringN(0, 2, -1)
		if typ == NS {
			member = numbers()
		}
		a := rapid.SliceOfN(member, 1, 6).Draw(t, "a")
		b := rapid.SliceOfN(member, 1, 6).Draw(t, "b")
		union := SetOf(typ, append(append([]string(nil), a...), b...)...)
		if !Equal(union, SetOf(typ, append(append([]string(nil), b...), a...)...)) {
			t.Fatalf("%q and %q in another order", a, b)
		}
		order := memberOrder(typ)
		for i := 1; i < len(union.Set); i++ {
			if order(union.Set[i-1], union.Set[i]) >= 0 {
				t.Fatalf("%q is not in order", union.Set)
			}
		}
		for _, m := range append(a, b...) {
			if !union.HasMember(m) {
				t.Fatalf("%q is not in %s", m, union)
			}
		}
	})
}
