package function_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"google.golang.org/grpc/codes"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/function"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// now is the time of statements in tests: 2024-03-05 07:08:09.
const now = 1709622489000000

func newContext() *function.Context {
	return &function.Context{NowMicros: now, ViewParameters: map[string]string{"k": "v"}, Cluster: "c1", Random: func() float64 { return 0.25 }}
}

func errorText(err error) string {
	var e *value.Error
	if !errors.As(err, &e) {
		return fmt.Sprintf("error of another type: %v", err)
	}
	code := map[codes.Code]string{
		codes.InvalidArgument: "INVALID_ARGUMENT", codes.OutOfRange: "OUT_OF_RANGE", codes.Unimplemented: "UNIMPLEMENTED",
		codes.ResourceExhausted: "RESOURCE_EXHAUSTED",
	}[e.Code]
	return code + " " + e.Text
}

func run(s string) (t value.Type, v value.Value, err error) {
	e, err := parse(s)
	if err != nil {
		return t, v, err
	}
	v, err = e.eval(newContext(), nil)
	return e.arg.Type, v, err
}

// TestFunctions has a line of an expression, and a line of its result, for each function.
func TestFunctions(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/functions", func(t *testing.T, path string) {
		t.Helper()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			var out strings.Builder
			for line := range strings.SplitSeq(d.Input, "\n") {
				switch d.Cmd {
				case "eval":
					typ, v, err := run(line)
					if err != nil {
						fmt.Fprintln(&out, errorText(err))
						continue
					}
					fmt.Fprintf(&out, "%v %s\n", typ, show(v, typ))
				case "aggregate":
					fmt.Fprintln(&out, aggregate(t, line))
				default:
					t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
				}
			}
			return out.String()
		})
	})
}

// show prints a value by %T of FORMAT.
func show(v value.Value, t value.Type) string {
	f, ok := function.Lookup("FORMAT")
	if !ok {
		return "no FORMAT"
	}
	c, err := f.Resolve([]function.Arg{{Type: value.StringType}, {Type: t}})
	if err != nil {
		return err.Error()
	}
	text, err := c.Eval(newContext(), []value.Value{value.String("%T"), v})
	if err != nil {
		return err.Error()
	}
	return text.Str()
}

// aggregate evaluates a line such as "SUM distinct: (1) (2)", of words for modifiers and of rows.
func aggregate(t *testing.T, line string) string {
	t.Helper()
	head, rest, ok := strings.Cut(line, ": ")
	if !ok {
		rest = ""
		head = strings.TrimSuffix(line, ":")
	}
	words := strings.Fields(head)
	f, ok := function.Lookup(words[0])
	if !ok {
		t.Fatalf("no function %s", words[0])
	}
	var m function.Modifiers
	n := -1
	for _, word := range words[1:] {
		switch {
		case word == "distinct":
			m.Distinct = true
		case word == "ignore-nulls":
			m.IgnoreNulls = true
		case word == "having-max":
			m.HavingMax = true
		case word == "having-min":
			m.HavingMin = true
		case word == "asc":
			m.OrderBy = append(m.OrderBy, function.Order{})
		case word == "desc":
			m.OrderBy = append(m.OrderBy, function.Order{Descending: true})
		case strings.HasPrefix(word, "limit="):
			m.HasLimit = true
			fmt.Sscan(word[len("limit="):], &m.Limit)
		case strings.HasPrefix(word, "args="):
			fmt.Sscan(word[len("args="):], &n)
		default:
			t.Fatalf("unknown modifier %s", word)
		}
	}
	r := &reader{s: rest}
	var rows [][]expression
	for r.skip("(") {
		rows = append(rows, r.list(")"))
	}
	var args []function.Arg
	for i, row := range rows {
		for j, e := range row {
			if i == 0 {
				args = append(args, e.arg)
			}
			if args[j].Type.IsUnknown() {
				args[j] = e.arg
			}
		}
	}
	if n < 0 {
		n = len(args)
	}
	for i := range args {
		if args[i].Origin != function.NullLiteral {
			args[i].Origin = function.Expression
		}
		args[i].Value = value.Null
	}
	c, err := f.Resolve(args[:n])
	if err != nil {
		return errorText(err)
	}
	acc := c.Modified(m)
	ctx := newContext()
	for _, row := range rows {
		values := make([]value.Value, len(row))
		for i, e := range row {
			v, err := e.eval(ctx, nil)
			if err == nil && i < n && !e.arg.Type.IsUnknown() && !c.Params[i].IsUnknown() {
				v, err = value.Cast(v, e.arg.Type, c.Params[i], time.UTC)
			}
			if err != nil {
				return errorText(err)
			}
			values[i] = v
		}
		if err := acc.Add(ctx, values); err != nil {
			return errorText(err)
		}
	}
	v, err := acc.Result(ctx)
	if err != nil {
		return errorText(err)
	}
	return fmt.Sprintf("%v %s", c.Result, show(v, c.Result))
}

// TestTables parses every signature.
func TestTables(t *testing.T) {
	t.Parallel()
	n := 0
	for f := range function.All {
		n++
		if _, err := f.Resolve(nil); err == nil && !f.Window && f.Name != "COUNT" && f.Name != "RAND" && f.Name != "GENERATE_UUID" && !strings.HasPrefix(f.Name, "CURRENT_") {
			t.Errorf("%s resolves without arguments", f.Name)
		}
	}
	if n < 200 {
		t.Errorf("%d functions and operators, which cannot be all", n)
	}
}

// TestCall_Concurrent evaluates calls in several goroutines, whose patterns replace each other in the
// cache of the call.
func TestCall_Concurrent(t *testing.T) {
	t.Parallel()
	like := resolve(t, lookup(t, "LIKE"), value.StringType, value.StringType)
	search := resolve(t, lookup(t, "REGEXP_CONTAINS"), value.StringType, value.StringType)
	query := resolve(t, lookup(t, "JSON_VALUE"), value.StringType, value.StringType)
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			name := string(rune('a' + i))
			document := value.String(`{"` + name + `":"` + name + `"}`)
			for range 200 {
				a, errA := like.Eval(newContext(), []value.Value{value.String("x" + name), value.String("%" + name)})
				b, errB := search.Eval(newContext(), []value.Value{value.String(name), value.String("^" + name + "$")})
				c, errC := query.Eval(newContext(), []value.Value{document, value.String("$." + name)})
				if err := errors.Join(errA, errB, errC); err != nil || !a.Bool() || !b.Bool() || c.Str() != name {
					t.Errorf("%s: %v %v %v, %v", name, a, b, c, err)
				}
			}
		})
	}
	group.Wait()
}

// TestSupertype has the types of CASE, arrays and the like.
func TestSupertype(t *testing.T) {
	t.Parallel()
	column := func(typ value.Type) function.Arg { return function.Arg{Type: typ} }
	literal := func(typ value.Type) function.Arg { return function.Arg{Type: typ, Origin: function.Literal} }
	null := function.Arg{Origin: function.NullLiteral}
	for name, c := range map[string]struct {
		args []function.Arg
		want value.Type
		ok   bool
	}{
		"nothing":               {nil, value.Type{}, true},
		"NULLs":                 {[]function.Arg{null, null}, value.Type{}, true},
		"INT64 and FLOAT64":     {[]function.Arg{column(value.Int64Type), column(value.Float64Type)}, value.Float64Type, true},
		"INT64 and FLOAT32":     {[]function.Arg{column(value.Int64Type), column(value.Float32Type)}, value.Float64Type, true},
		"FLOAT32 and a literal": {[]function.Arg{column(value.Float32Type), literal(value.Float64Type)}, value.Float32Type, true},
		"INT64 and a literal":   {[]function.Arg{column(value.Int64Type), literal(value.Float64Type)}, value.Float64Type, true},
		"BYTES and a literal":   {[]function.Arg{literal(value.StringType), column(value.BytesType), null}, value.BytesType, true},
		"two literals":          {[]function.Arg{literal(value.StringType), literal(value.BytesType)}, value.BytesType, true},
		"DATE and a literal":    {[]function.Arg{column(value.DateType), literal(value.StringType)}, value.DateType, true},
		"BYTES and STRING":      {[]function.Arg{column(value.BytesType), column(value.StringType)}, value.Type{}, false},
		"INT64 and BOOL":        {[]function.Arg{column(value.Int64Type), literal(value.BoolType)}, value.Type{}, false},
		"arrays":                {[]function.Arg{column(value.ArrayOf(value.BytesType)), {Origin: function.EmptyArray}}, value.ArrayOf(value.BytesType), true},
	} {
		if got, ok := function.Supertype(c.args); ok != c.ok || !got.Equal(c.want) {
			t.Errorf("%s: %v, %t; want %v, %t", name, got, ok, c.want, c.ok)
		}
	}
}
