package partiql

import (
	"errors"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/expr"
	"github.com/tabletop-emu/tabletop/internal/test/memory"
	"github.com/tabletop-emu/tabletop/internal/test/race"
)

// seeds are statements of each kind, valid and invalid.
var seeds = []string{
	`SELECT * FROM "Music" WHERE Artist='Acme Band' AND SongTitle BETWEEN 'A' AND 'I' ORDER BY Artist DESC;`,
	"SELECT a.b[0].\"c\"\"d\", e FROM t.i WHERE (a = ? OR NOT b IN (1, -2.5e1)) AND size(c) > 1 -- end",
	"INSERT INTO t VALUE {'k': 1, 'l': [1, 'a', null, true], 's': <<'a', 'b'>>, 'm': {'x': ?}}",
	"UPDATE t SET a = a + 1, b = list_append(b, [1]) REMOVE c SET d = set_add(d, <<1>>) WHERE k = 1 RETURNING ALL NEW *",
	"DELETE FROM t WHERE k = 1 AND x IS NOT MISSING RETURNING ALL OLD *",
	"FROM t WHERE k = 1 REMOVE a[0]", "EXISTS(SELECT * FROM t WHERE k = 1 AND a = 2)", "/* open", "'open", "SELECT COUNT(*) FROM t",
	"SELECT * FROM a, b WHERE CASE WHEN a THEN b ELSE c END LIKE 'x' GROUP BY a", "\xff", "a.\x00", "1e99999999999", "((((", "<<1, <<",
}

func FuzzLex(f *testing.F) {
	for _, seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tokens, err := lex(text)
		if err != nil {
			checkError(t, err)
			return
		}
		if len(tokens) > len(text)+1 || tokens[len(tokens)-1].kind != tokEnd {
			t.Fatalf("%d tokens of %d bytes, the last of kind %d", len(tokens), len(text), tokens[len(tokens)-1].kind)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range seeds {
		f.Add(seed, "x")
	}
	f.Fuzz(func(t *testing.T, text, parameter string) {
		st, err := Parse(text)
		if err != nil {
			checkError(t, err)
			return
		}
		bound, err := st.Bind([]attr.Value{attr.String(parameter), attr.Int(1)})
		if err != nil {
			checkError(t, err)
			return
		}
		key := Key{Hash: expr.KeyAttribute{Name: "k", Type: attr.N}, Sort: expr.KeyAttribute{Name: "a", Type: attr.S}}
		item := attr.Item{"k": attr.Int(1), "a": attr.String(parameter)}
		if plan, err := bound.Plan(key); err == nil && plan.Filter != nil {
			plan.Filter.Eval(item)
		}
		_, _, _ = bound.Target(key)
		Project(bound.Columns, item)
	})
}

func FuzzDecodeNext(f *testing.F) {
	id := Identity("t", "s", nil, "")
	f.Add(Next{Partition: 3, Last: attr.Item{"k": attr.Int(1)}}.Encode(id))
	f.Add(Next{}.Encode(id))
	f.Fuzz(func(t *testing.T, token string) {
		next, err := DecodeNext(token, id, nil)
		if err != nil {
			checkError(t, err)
			return
		}
		if again, err := DecodeNext(next.Encode(id), id, nil); err != nil || again.Partition != next.Partition || !attr.EqualItems(again.Last, next.Last) {
			t.Fatalf("%v comes back as %v, %v", next, again, err)
		}
	})
}

func checkError(t *testing.T, err error) {
	t.Helper()
	var e *Error
	var x *expr.Error
	if !errors.As(err, &e) && !errors.As(err, &x) {
		t.Fatalf("an error of type %T: %v", err, err)
	}
}

// Point 4: endless nesting, or length, is rejected quickly.
func TestParse_Deep_Point4(t *testing.T) {
	race.OneAfterTheOther(t)
	t.Parallel()
	const limit = 128 << 20 // of a stack; the default would take longer texts
	defer debug.SetMaxStack(debug.SetMaxStack(limit))
	for _, piece := range []string{"(", "[", "{'a':", "<<", "NOT ", "a.b(", "-", "a AND ", "a.", "a[", "CASE WHEN ", "SELECT * FROM t WHERE a = ("} {
		for _, n := range []int{8192, 50_000} {
			text := "SELECT * FROM t WHERE " + strings.Repeat(piece, n)
			if st, err := Parse(text); err == nil {
				if _, err := st.Bind(nil); err == nil {
					t.Errorf("%d times %q is taken", n, piece)
				}
			} else {
				checkError(t, err)
			}
		}
	}
}

// The cost of a statement is linear: twice the length takes twice the memory, and so the
// steps that made it. The texts would be slow for code that compares pairs or copies its
// input.
func TestParse_Linear_Point4(t *testing.T) { //nolint:paralleltest // Alone makes it parallel
	race.OneAfterTheOther(t)
	statements := linearStatements()
	plan := func(statement string) {
		if st, err := Parse(statement); err == nil {
			if bound, err := st.Bind(nil); err == nil {
				_, _ = bound.Plan(Key{Hash: expr.KeyAttribute{Name: "k", Type: attr.N}})
			}
		}
	}
	for _, text := range statements {
		plan(text(100)) // here too, for the coverage
	}
	memory.Alone(t, func(t *testing.T) {
		for name, text := range statements {
			bytes := func(n int) uint64 {
				statement := text(n)
				return memory.Allocated(func() { plan(statement) })
			}
			bytes(100)
			if few, many := bytes(1000), bytes(4000); many > 6*few+32<<10 {
				t.Errorf("%s: 1,000 of them take %d bytes, 4,000 %d", name, few, many)
			}
		}
	})
}

// linearStatements returns statements with n pieces each.
func linearStatements() map[string]func(n int) string {
	repeat := func(begin, piece, end string) func(n int) string {
		return func(n int) string {
			var list []string
			for i := range n {
				list = append(list, strings.ReplaceAll(piece, "$", strconv.Itoa(i)))
			}
			return begin + strings.Join(list, ", ") + end
		}
	}
	chain := func(word string) func(n int) string {
		return func(n int) string {
			return "SELECT * FROM t WHERE " + strings.Join(slices.Repeat([]string{"a = 1"}, n), word)
		}
	}
	return map[string]func(n int) string{
		"columns":      repeat("SELECT ", "a$", " FROM t"),
		"same columns": repeat("SELECT ", "a.b", " FROM t"),
		"items":        repeat("SELECT * FROM t WHERE a IN [", "$", "]"),
		"assignments":  repeat("UPDATE t SET ", "a$ = $", " WHERE k = 1"),
		"overlaps":     repeat("UPDATE t SET ", "a[$] = a[$]", " WHERE k = 1"),
		"members":      repeat("INSERT INTO t VALUE {", "'a$': $", "}"),
		"list":         repeat("INSERT INTO t VALUE {'k': [", "'x'", "]}"),
		"list under a long name": func(n int) string {
			return repeat("INSERT INTO t VALUE {'"+strings.Repeat("k", n)+"': [", "1", "]}")(n)
		},
		"bag":         repeat("INSERT INTO t VALUE {'k': <<", "$", ">>}"),
		"same in bag": repeat("INSERT INTO t VALUE {'k': <<", "1", ">>}"),
		"ands":        chain(" AND "),
		"ors":         chain(" OR "),
		"both":        func(n int) string { return chain(" AND a = 2 OR ")(n) },
		"brackets":    func(n int) string { return "SELECT * FROM t WHERE " + strings.Repeat("(", n) },
		"paths":       func(n int) string { return "SELECT " + strings.Repeat("a.", n) + "a FROM t" },
		"comments":    func(n int) string { return strings.Repeat("/*x*/", n) + "SELECT * FROM t" },
		"quotes":      func(n int) string { return "SELECT * FROM t WHERE a = '" + strings.Repeat("''", n) + "'" },
		"terms":       repeat("SELECT * FROM t WHERE k = 1 ORDER BY ", "a$", ""),
		"parameters":  repeat("SELECT * FROM t WHERE a IN [", "?", "]"),
	}
}

// A token belongs to one statement, table and list of parameters.
func TestDecodeNext(t *testing.T) {
	t.Parallel()
	one := []attr.Value{attr.Int(1)}
	id := Identity("t", "s", one, "")
	token := Next{Partition: 2, Last: attr.Item{"k": attr.String("x")}}.Encode(id)
	if next, err := DecodeNext(token, id, one); err != nil || next.Partition != 2 || next.Last["k"].Str != "x" {
		t.Errorf("%v, %v", next, err)
	}
	list := []attr.Value{attr.ListOf()}
	for _, c := range []struct {
		name, token string
		id          [32]byte
		parameters  []attr.Value
		want        string
	}{
		{"another statement", token, Identity("t", "s ", one, ""), one, msgOtherToken},
		{"another table", token, Identity("u", "s", one, ""), one, msgOtherToken},
		{"another parameter", token, Identity("t", "s", []attr.Value{attr.String("1")}, ""), one, msgOtherToken},
		{"a list", Next{}.Encode(Identity("t", "s", list, "")), Identity("t", "s", list, ""), list, msgOtherToken},
		{"cut off", token[:len(token)-1], id, one, msgInvalidToken},
		{"changed", "B" + token[1:], id, one, msgInvalidToken},
		{"no base64", "*", id, one, msgInvalidToken},
	} {
		if _, err := DecodeNext(c.token, c.id, c.parameters); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}
