package expr

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// The data of the properties and fuzz targets: one item, and placeholders that fit it.
const worldItem = `{"a":{"S":"abc"},"n":{"N":"5"},"b":{"B":"YWJj"},"t":{"BOOL":true},"z":{"NULL":true},"ss":{"SS":["a","b"]},
	"ns":{"NS":["1","2"]},"l":{"L":[{"N":"1"},{"S":"abc"},{"M":{"k":{"N":"9"},"a":{"L":[{"N":"5"}]}}}]},
	"m":{"M":{"a":{"N":"1"},"l":{"L":[{"S":"deep"},{"SS":["x"]}]}}}}`

func worldPlaceholders(tb testing.TB) *Placeholders {
	tb.Helper()
	values := map[string]attr.Value{}
	for key, json := range map[string]string{
		":n": `{"N":"5"}`, ":s": `{"S":"abc"}`, ":t": `{"S":"L"}`, ":l": `{"L":[{"N":"1"}]}`, ":ss": `{"SS":["b","c"]}`,
		":m": `{"M":{"a":{"N":"1"}}}`, ":b": `{"B":"YQ=="}`, ":z": `{"NULL":true}`,
	} {
		v, err := attr.UnmarshalValue([]byte(json))
		if err != nil {
			tb.Fatal(err)
		}
		values[key] = v
	}
	p, err := NewPlaceholders(map[string]string{"#a": "a", "#m": "m", "#odd": "x.y[0]"}, values)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// formula is a condition as a tree, with its text and its meaning.
type formula struct {
	text  string
	loose int // how loosely its outermost operator binds
	truth func(attr.Item) bool
}

// in returns the text of f as operand of an operator that binds as tightly as bind.
func (f formula) in(bind int) string {
	if f.loose < bind {
		return "(" + f.text + ")"
	}
	return f.text
}

func formulas(depth int) *rapid.Generator[formula] {
	return rapid.Custom(func(t *rapid.T) formula {
		kind := rapid.IntRange(0, 4).Draw(t, "kind")
		if depth == 0 || kind > 2 {
			n := rapid.IntRange(0, 9).Draw(t, "n")
			return formula{
				text: fmt.Sprintf("f%d = :n", n), loose: bindNot + 1,
				truth: func(item attr.Item) bool { return item[fmt.Sprintf("f%d", n)].Str == "5" },
			}
		}
		f := formulas(depth-1).Draw(t, "f")
		if kind == 0 {
			return formula{
				text: "NOT " + f.in(bindNot), loose: bindNot,
				truth: func(item attr.Item) bool { return !f.truth(item) },
			}
		}
		g := formulas(depth-1).Draw(t, "g")
		if kind == 1 {
			return formula{
				text: f.in(bindAnd) + " AND " + g.in(bindAnd), loose: bindAnd,
				truth: func(item attr.Item) bool { return f.truth(item) && g.truth(item) },
			}
		}
		return formula{
			text: f.in(bindOr) + " or " + g.in(bindOr), loose: bindOr,
			truth: func(item attr.Item) bool { return f.truth(item) || g.truth(item) },
		}
	})
}

// TestCondition_Precedence compares conditions with the fewest parentheses that the operators
// allow with their trees.
func TestCondition_Precedence(t *testing.T) {
	t.Parallel()
	p, err := NewPlaceholders(nil, map[string]attr.Value{":n": attr.Int(5)})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		f := formulas(5).Draw(t, "formula")
		c, err := ParseCondition(ConditionExpression, f.text, p)
		if err != nil {
			t.Fatalf("%s: %v", f.text, err)
		}
		for range 8 {
			item := attr.Item{}
			for i, set := range rapid.SliceOfN(rapid.Bool(), 10, 10).Draw(t, "item") {
				if set {
					item[fmt.Sprintf("f%d", i)] = attr.Int(5)
				}
			}
			if got, want := c.Eval(item), f.truth(item); got != want {
				t.Fatalf("%s of %s is %t, want %t", f.text, item, got, want)
			}
		}
	})
}

// TestCondition_Laws checks the comparisons against each other.
func TestCondition_Laws(t *testing.T) {
	t.Parallel()
	item := decodeItem(t, worldItem)
	operands := []string{"a", "n", "b", "t", "z", "ss", "l[0]", "l[2].k", "m.a", "gone", "size(a)", "size(ss)", "size(gone)"}
	rapid.Check(t, func(rt *rapid.T) {
		x := rapid.SampledFrom(operands).Draw(rt, "x")
		y := rapid.SampledFrom(slices.DeleteFunc(slices.Clone(operands), func(o string) bool { return o == x })).Draw(rt, "y")
		is := func(format string) bool {
			text := strings.NewReplacer("X", x, "Y", y).Replace(format)
			c, err := ParseCondition(FilterExpression, text, worldPlaceholders(t))
			if err != nil {
				rt.Fatalf("%s: %v", text, err)
			}
			return c.Eval(item)
		}
		for _, law := range []string{"X <> Y|NOT X = Y", "X <= Y|NOT X > Y AND Y >= X", "X < Y|Y > X", "X IN (Y)|X = Y", "X BETWEEN Y AND Y|X <= Y AND X >= Y"} {
			left, right, _ := strings.Cut(law, "|")
			if is(left) != is(right) {
				rt.Fatalf("%s is %t and %s is %t, X is %s and Y is %s", left, is(left), right, is(right), x, y)
			}
		}
	})
}

// paths generates paths that may or may not exist in worldItem.
func paths() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		path := rapid.SampledFrom([]string{"a", "n", "l", "m", "ss", "x"}).Draw(t, "head")
		for range rapid.IntRange(0, 3).Draw(t, "steps") {
			path += rapid.SampledFrom([]string{".a", ".l", ".k", "[0]", "[1]", "[2]", "[7]"}).Draw(t, "step")
		}
		return path
	})
}

func lookup(tb testing.TB, item attr.Item, path string) attr.Value {
	tb.Helper()
	p, err := ParseProjection(path, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return p.Paths()[0].Lookup(item)
}

// TestProjection_KeepsWhatThePathsLeadTo checks one path against Lookup, and that a
// projection of all paths has each existing value.
func TestProjection_KeepsWhatThePathsLeadTo(t *testing.T) {
	t.Parallel()
	item := decodeItem(t, worldItem)
	rapid.Check(t, func(rt *rapid.T) {
		path := paths().Draw(rt, "path")
		p, err := ParseProjection(path, nil)
		if err != nil {
			rt.Fatal(err)
		}
		kept := p.Apply(item)
		want := lookup(t, item, path)
		// With one path each list has one element: it moves to the front.
		moved := slices.Clone(p.Paths()[0])
		for i := range moved {
			moved[i].Index = 0
		}
		if got := moved.Lookup(kept); !attr.Equal(got, want) || want.IsAbsent() != (len(kept) == 0) {
			rt.Fatalf("%s keeps %s, want %s", path, kept, want)
		}
		if again := ProjectionOf(p.Paths()[0][:1]).Apply(kept); !attr.EqualItems(again, kept) {
			rt.Fatalf("%s keeps %s, of which %s is inside the attribute", path, kept, again)
		}
	})
}

// TestUpdate_SetAndRemove checks that SET puts a value where Lookup finds it, that REMOVE
// removes one element or member, and that nothing else changes.
func TestUpdate_SetAndRemove(t *testing.T) {
	t.Parallel()
	item := decodeItem(t, worldItem)
	rapid.Check(t, func(rt *rapid.T) {
		path := paths().Draw(rt, "path")
		old := lookup(t, item, path)
		set, err := ParseUpdate("SET "+path+" = :s", worldPlaceholders(t))
		if err != nil {
			rt.Fatal(err)
		}
		target := set.Paths()[0]
		after, err := set.Apply(item)
		if err != nil {
			if !old.IsAbsent() {
				rt.Fatalf("%s is there, and cannot be set: %v", path, err)
			}
			return
		}
		if v := target.Lookup(after); !target[len(target)-1].IsIndex && v.Str != "abc" || !old.IsAbsent() && v.Str != "abc" {
			rt.Fatalf("%s is %s after it was set", path, v)
		}
		remove, err := ParseUpdate("REMOVE "+path, worldPlaceholders(t))
		if err != nil {
			rt.Fatal(err)
		}
		removed, err := remove.Apply(item)
		if err != nil {
			rt.Fatalf("%s can be set and not removed: %v", path, err)
		}
		if !target[len(target)-1].IsIndex && !target.Lookup(removed).IsAbsent() {
			rt.Fatalf("%s is still there", path)
		}
		if old.IsAbsent() && !attr.EqualItems(item, removed) {
			rt.Fatalf("REMOVE %s, which is not there, leaves %s", path, removed)
		}
		for name, v := range item {
			if name != target.Attribute() && (!attr.Equal(v, after[name]) || !attr.Equal(v, removed[name])) {
				rt.Fatalf("%s changed by an update of %s", name, path)
			}
		}
		if got := decodeItem(t, worldItem); !attr.EqualItems(got, item) {
			rt.Fatalf("the item itself changed to %s", item)
		}
	})
}

// TestUpdate_AddIsUnion checks that ADD is union and DELETE is difference.
func TestUpdate_AddIsUnion(t *testing.T) {
	t.Parallel()
	members := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 1, 4, rapid.ID)
	rapid.Check(t, func(rt *rapid.T) {
		have, operand := members.Draw(rt, "have"), members.Draw(rt, "operand")
		item := attr.Item{"set": attr.SetOf(attr.SS, have...)}
		p, err := NewPlaceholders(map[string]string{"#set": "set"}, map[string]attr.Value{":v": attr.SetOf(attr.SS, operand...)})
		if err != nil {
			rt.Fatal(err)
		}
		for _, section := range []string{"ADD", "DELETE"} {
			u, err := ParseUpdate(section+" #set :v", p)
			if err != nil {
				rt.Fatal(err)
			}
			after, err := u.Apply(item)
			if err != nil {
				rt.Fatal(err)
			}
			for _, m := range []string{"a", "b", "c", "d"} {
				want := slices.Contains(have, m) && !slices.Contains(operand, m)
				if section == "ADD" {
					want = slices.Contains(have, m) || slices.Contains(operand, m)
				}
				if got := after["set"].HasMember(m); got != want {
					rt.Fatalf("%s %q to %q: %s is in it: %t", section, operand, have, m, got)
				}
			}
			if v, found := after["set"]; found && len(v.Set) == 0 {
				rt.Fatalf("%s leaves an empty set", section)
			}
		}
	})
}

// checkError fails unless err is nil or an *Error with a text.
func checkError(t *testing.T, err error) {
	t.Helper()
	var e *Error
	if err != nil && (!errors.As(err, &e) || e.Message == "") {
		t.Fatalf("%T %v", err, err)
	}
}

// The fuzz targets parse any text and evaluate what parses: nothing panics, the item stays
// unchanged, results are sound.

var conditionSeeds = []string{
	"", "a = :s", "NOT (a = :s OR n BETWEEN :n AND :n) AND l[2].k IN (:n, :s)", "attribute_exists(m.l[0])", "contains(#m.l, :s)",
	"((((", "(a.b[1]) = size((l[1]))", "((a).b)[1] = :s", "_a = :s", "#", ":", "\xff", strings.Repeat("(", 4000), strings.Repeat("NOT ", 1000) + "a = :s",
	"a" + strings.Repeat(".a", 40), "attribute_type(l, :t) and begins_with(b, :b)", "a = :s AND n < :n", ":n >= n AND a = :s",
	"a = :s AND n BETWEEN :n AND :n", "attribute_not_exists(a)",
}

func fuzz(f *testing.F, seeds []string, check func(t *testing.T, src string, item attr.Item, p *Placeholders)) {
	f.Helper()
	for _, seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, src string) {
		item := decodeItem(t, worldItem)
		before := item.String()
		check(t, src, item, worldPlaceholders(t))
		if after := item.String(); after != before {
			t.Fatalf("%q changed the item to %s", src, after)
		}
	})
}

func FuzzParseCondition(f *testing.F) {
	fuzz(f, conditionSeeds, func(t *testing.T, src string, item attr.Item, p *Placeholders) {
		t.Helper()
		c, err := ParseCondition(ConditionExpression, src, p)
		checkError(t, err)
		if err != nil {
			return
		}
		negated, err := ParseCondition(ConditionExpression, "NOT ("+src+")", p)
		if err == nil && negated.Eval(item) == c.Eval(item) {
			t.Fatalf("%q and its negation are both %t", src, c.Eval(item))
		}
		if _, exists, ok := c.Existence(); ok && c.Eval(nil) == exists {
			t.Fatalf("%q asks for existence %t, and is %t of no item", src, exists, c.Eval(nil))
		}
	})
}

func FuzzParseKeyCondition(f *testing.F) {
	fuzz(f, conditionSeeds, func(t *testing.T, src string, item attr.Item, p *Placeholders) {
		t.Helper()
		k, err := ParseKeyCondition(src, p)
		checkError(t, err)
		if err != nil {
			return
		}
		checkError(t, k.Check())
		a, n, s := KeyAttribute{"a", attr.S}, KeyAttribute{"n", attr.N}, KeyAttribute{"s", attr.S}
		for _, key := range []struct{ hash, sort []KeyAttribute }{
			{[]KeyAttribute{a}, []KeyAttribute{n}},
			{[]KeyAttribute{a}, []KeyAttribute{n, s}},
			{[]KeyAttribute{a, n}, []KeyAttribute{s}},
		} {
			r, err := k.Resolve(key.hash, key.sort)
			checkError(t, err)
			if err != nil {
				continue
			}
			sorts := make([]attr.Value, len(key.sort))
			for i, k := range key.sort {
				sorts[i] = item[k.Name]
			}
			want := r.Matches(sorts...)
			for i, k := range key.hash {
				want = want && attr.Equal(r.Hashes()[i], item[k.Name])
			}
			if got := k.condition.Eval(item); got != want {
				t.Fatalf("%q is %t as a condition and %t as a key %v", src, got, want, key)
			}
			terms, err := k.keyTerms()
			checkError(t, err)
			if again, err := KeyConditionOf(terms...).Resolve(key.hash, key.sort); err != nil || again.Matches(sorts...) != r.Matches(sorts...) {
				t.Fatalf("%q is %v by its terms, %v: %v", src, again, r, err)
			}
		}
	})
}

func FuzzParseProjection(f *testing.F) {
	seeds := []string{"", "a", "a, l[2].a[0], #odd", "a.b, a[0]", "m.l[1], m.a", "l[99999999999]", "a" + strings.Repeat(".a", 40), "a,,b", "l [ 1 ]"}
	fuzz(f, seeds, func(t *testing.T, src string, item attr.Item, p *Placeholders) {
		t.Helper()
		projection, err := ParseProjection(src, p)
		checkError(t, err)
		if err != nil {
			return
		}
		kept := projection.Apply(item)
		if kept.Size() > item.Size() {
			t.Fatalf("%q keeps %s", src, kept)
		}
		for _, path := range projection.Paths() {
			if len(path) == 1 && !attr.Equal(kept[path.Attribute()], item[path.Attribute()]) {
				t.Fatalf("%q keeps %s", src, kept)
			}
		}
	})
}

func FuzzParseUpdate(f *testing.F) {
	seeds := []string{
		"", "SET a = :s, l[9] = list_append(l, :l), n = n + :n, q = if_not_exists(q, :n) REMOVE m.l[0] ADD m.a :n DELETE ss :ss",
		"SET a = (((n", "REMOVE l[0], l[1]", "SET l[2].a[7] = :ss, l[2].a[5] = :m", "delete m.l[1] :ss", "SET m.a = (n) - (:n)",
		"ADD x :n, y :ss", "SET q = if_not_exists(q, if_not_exists(r, list_append(:l, l)))",
	}
	fuzz(f, seeds, func(t *testing.T, src string, item attr.Item, p *Placeholders) {
		t.Helper()
		u, err := ParseUpdate(src, p)
		checkError(t, err)
		if err != nil {
			return
		}
		_, err = u.Apply(nil)
		checkError(t, err)
		after, err := u.Apply(item)
		checkError(t, err)
		if err != nil {
			return
		}
		back, err := attr.UnmarshalItem(attr.AppendItemJSON(nil, after))
		if err != nil || !attr.EqualItems(after, back) {
			t.Fatalf("%q leaves %s: %v", src, after, err)
		}
		touched := map[string]bool{}
		for _, path := range u.Paths() {
			touched[path.Attribute()] = true
		}
		for name, v := range item {
			if !touched[name] && !attr.Equal(v, after[name]) {
				t.Fatalf("%q touches %s", src, name)
			}
		}
	})
}
