package function_test

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/function"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// expression is a parsed and resolved expression of a test: literals, calls such as SUBSTR('a', 1), operators
// such as "+"(1, 2), $literal for an argument that is not a literal, @literal for a parameter, and
// x -> call for a lambda.
type expression struct {
	arg  function.Arg
	eval func(ctx *function.Context, scope map[string]value.Value) (value.Value, error)
}

type reader struct {
	s     string
	scope map[string]value.Type // parameters of lambdas
}

func parse(s string) (e expression, err error) {
	defer func() {
		if r := recover(); r != nil {
			if fault, ok := r.(error); ok {
				err = fault
				return
			}
			panic(r)
		}
	}()
	r := &reader{s: s, scope: map[string]value.Type{}}
	e = r.expression()
	if r.space(); r.s != "" {
		panic("after the expression: " + r.s)
	}
	return e, nil
}

func (r *reader) space() { r.s = strings.TrimLeft(r.s, " ") }

func (r *reader) skip(token string) bool {
	r.space()
	var ok bool
	r.s, ok = strings.CutPrefix(r.s, token)
	return ok
}

func literal(t value.Type, v value.Value) expression {
	return expression{
		arg:  function.Arg{Type: t, Origin: function.Literal, Value: v},
		eval: func(*function.Context, map[string]value.Value) (value.Value, error) { return v, nil },
	}
}

func (r *reader) quoted(quote string) string {
	end := strings.Index(r.s[1:], quote)
	if end < 0 {
		panic("no end of " + r.s)
	}
	text, err := strconv.Unquote(`"` + strings.ReplaceAll(r.s[1:end+1], `"`, `\"`) + `"`)
	if err != nil {
		panic(fmt.Sprint(r.s, err))
	}
	r.s = r.s[end+2:]
	return text
}

func (r *reader) word() string {
	i := strings.IndexFunc(r.s, func(c rune) bool {
		return c != '_' && c != '.' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
	})
	if i < 0 {
		i = len(r.s)
	}
	w := r.s[:i]
	r.s = r.s[i:]
	return w
}

func (r *reader) expression() expression {
	r.space()
	switch {
	case r.skip("$"):
		e := r.expression()
		e.arg.Origin, e.arg.Value = function.Expression, value.Null
		return e
	case r.skip("@"):
		e := r.expression()
		e.arg.Origin, e.arg.Value = function.Parameter, value.Null
		return e
	case strings.HasPrefix(r.s, "'"):
		return literal(value.StringType, value.String(r.quoted("'")))
	case strings.HasPrefix(r.s, "b'"):
		r.s = r.s[1:]
		return literal(value.BytesType, value.BytesOf(r.quoted("'")))
	case strings.HasPrefix(r.s, `"`):
		name := r.quoted(`"`)
		f, ok := function.Operator(name)
		if !ok {
			panic("no operator " + name)
		}
		return r.call(f, false)
	case r.skip("["):
		return r.array()
	case r.skip("{"):
		return r.mapping()
	case r.s != "" && strings.IndexByte("-0123456789", r.s[0]) >= 0:
		return r.number()
	}
	w := r.word()
	switch w {
	case "NULL":
		e := literal(value.Type{}, value.Null)
		e.arg.Origin = function.NullLiteral
		return e
	case "TRUE", "FALSE":
		return literal(value.BoolType, value.Bool(w == "TRUE"))
	case "STRUCT":
		return r.structure()
	case "DATE", "TIMESTAMP", "FLOAT32", "FLOAT64", "INT64", "STRING", "BYTES":
		if r.space(); strings.HasPrefix(r.s, "'") || strings.HasPrefix(r.s, "NULL") {
			t, _ := value.ScalarType(w)
			if r.skip("NULL") {
				return typedNull(t)
			}
			v, err := value.Cast(value.String(r.quoted("'")), value.StringType, t, time.UTC)
			if err != nil {
				panic(err)
			}
			return literal(t, v)
		}
	case "CAST", "SAFE_CAST":
		return r.cast(w == "SAFE_CAST")
	}
	if r.skip("->") {
		return r.lambda([]string{w})
	}
	if t, ok := r.scope[w]; ok {
		return expression{arg: function.Arg{Type: t}, eval: func(_ *function.Context, scope map[string]value.Value) (value.Value, error) { return scope[w], nil }}
	}
	if strings.HasPrefix(r.s, "(") && !strings.HasPrefix(w, "WEEK") {
		name, isSafe := strings.CutPrefix(w, "SAFE.")
		f, ok := function.Lookup(name)
		if !ok {
			panic(value.InvalidArgument("Function not found: %s", name))
		}
		return r.call(f, isSafe)
	}
	if r.skip("(") { // WEEK(MONDAY)
		w += "(" + r.word() + ")"
		r.skip(")")
	}
	return expression{arg: function.Arg{Part: w}, eval: func(*function.Context, map[string]value.Value) (value.Value, error) { return value.Null, nil }}
}

func typedNull(t value.Type) expression {
	e := literal(t, value.Null)
	e.arg.Origin = function.Expression
	return e
}

func (r *reader) number() expression {
	i := strings.IndexFunc(r.s[1:], func(c rune) bool { return !strings.ContainsRune("0123456789.e+-", c) })
	text := r.s
	if i >= 0 {
		text = r.s[:i+1]
	}
	r.s = r.s[len(text):]
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return literal(value.Int64Type, value.Int64(n))
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(fmt.Sprint(text, err))
	}
	return literal(value.Float64Type, value.Float64(f))
}

func (r *reader) list(end string) (all []expression) {
	for !r.skip(end) {
		all = append(all, r.expression())
		r.skip(",")
	}
	return all
}

func argsOf(all []expression) []function.Arg {
	args := make([]function.Arg, len(all))
	for i, e := range all {
		args[i] = e.arg
	}
	return args
}

func valuesOf(all []expression, types []value.Type) func(*function.Context, map[string]value.Value) ([]value.Value, error) {
	return func(ctx *function.Context, scope map[string]value.Value) ([]value.Value, error) {
		values := make([]value.Value, len(all))
		for i, e := range all {
			v, err := e.eval(ctx, scope)
			if err == nil && !types[i].IsUnknown() && !e.arg.Type.IsUnknown() {
				v, err = value.Cast(v, e.arg.Type, types[i], time.UTC)
			}
			if err != nil {
				return nil, err
			}
			values[i] = v
		}
		return values, nil
	}
}

func (r *reader) array() expression {
	all := r.list("]")
	if len(all) == 0 {
		e := literal(value.Type{}, value.Array(nil))
		e.arg.Origin = function.EmptyArray
		return e
	}
	t, ok := function.Supertype(argsOf(all))
	if !ok {
		panic(value.InvalidArgument("Array elements do not have a common supertype"))
	}
	if t.IsUnknown() {
		t = value.Int64Type
	}
	types := make([]value.Type, len(all))
	for i := range types {
		types[i] = t
	}
	values := valuesOf(all, types)
	return expression{arg: function.Arg{Type: value.ArrayOf(t), Origin: function.Literal}, eval: func(ctx *function.Context, scope map[string]value.Value) (value.Value, error) {
		v, err := values(ctx, scope)
		return value.Array(v), err
	}}
}

// mapping reads {key: value, ...} with literals of one type each.
func (r *reader) mapping() expression {
	var pairs []value.Value
	var key, elem value.Type
	for !r.skip("}") {
		k := r.expression()
		r.skip(":")
		v := r.expression()
		r.skip(",")
		key = k.arg.Type
		if !v.arg.Type.IsUnknown() {
			elem = v.arg.Type
		}
		pairs = append(pairs, k.arg.Value, v.arg.Value)
	}
	if pairs == nil {
		key, elem = value.BytesType, value.BytesType
	}
	m, _, ok := value.MapOfPairs(pairs)
	if !ok {
		panic("a key twice")
	}
	e := literal(value.MapOf(key, elem), m)
	e.arg.Origin = function.Expression
	return e
}

// structure reads STRUCT(1 a, 'x' b).
func (r *reader) structure() expression {
	r.skip("(")
	var all []expression
	var fields []value.Field
	var types []value.Type
	for !r.skip(")") {
		e := r.expression()
		r.space()
		name := r.word()
		r.skip(",")
		t := e.arg.Type
		if t.IsUnknown() {
			t = value.Int64Type
		}
		all, fields, types = append(all, e), append(fields, value.Field{Name: name, Type: t}), append(types, t)
	}
	values := valuesOf(all, types)
	return expression{arg: function.Arg{Type: value.StructOf(fields...)}, eval: func(ctx *function.Context, scope map[string]value.Value) (value.Value, error) {
		v, err := values(ctx, scope)
		return value.Struct(v...), err
	}}
}

// cast reads (x AS TYPE).
func (r *reader) cast(isSafe bool) expression {
	r.skip("(")
	e := r.expression()
	r.skip("AS")
	r.space()
	t := r.typeName()
	all := []expression{e}
	if r.skip("FORMAT") {
		all = append(all, r.expression())
	}
	if r.skip("AT TIME ZONE") {
		all = append(all, r.expression())
	}
	r.skip(")")
	var c function.Call
	var err error
	if len(all) == 1 {
		c, err = function.Cast(e.arg, t, isSafe)
	} else {
		c, err = function.CastFormat(e.arg, t, len(all) > 2, isSafe)
	}
	if err != nil {
		panic(err)
	}
	return expression{arg: function.Arg{Type: t}, eval: func(ctx *function.Context, scope map[string]value.Value) (value.Value, error) {
		values, err := valuesOf(all, c.Params)(ctx, scope)
		if err != nil {
			return value.Null, err
		}
		return c.Eval(ctx, values)
	}}
}

func (r *reader) typeName() value.Type {
	name := r.word()
	if name == "ARRAY" {
		r.skip("<")
		t := value.ArrayOf(r.typeName())
		r.skip(">")
		return t
	}
	t, ok := value.ScalarType(name)
	if !ok {
		panic("no type " + name)
	}
	return t
}

// lambda reads the body of a lambda when its parameters have types.
func (r *reader) lambda(params []string) expression {
	text := r.s
	// The body ends where a first parse, with parameters of type INT64, ends.
	depth, end := 0, len(text)
	for i, c := range text {
		if c == '(' || c == '[' {
			depth++
		}
		if c == ')' || c == ']' {
			depth--
		}
		if depth < 0 || depth == 0 && c == ',' {
			end = i
			break
		}
	}
	r.s = text[end:]
	var body expression
	resolve := func(types []value.Type) (t value.Type, err error) {
		defer func() {
			if fault := recover(); fault != nil {
				err = fault.(error)
			}
		}()
		inner := &reader{s: text[:end], scope: map[string]value.Type{}}
		for i, p := range params {
			inner.scope[p] = types[i]
		}
		body = inner.expression()
		return body.arg.Type, nil
	}
	return expression{
		arg: function.Arg{Lambda: &function.Lambda{Params: len(params), Resolve: resolve}},
		eval: func(ctx *function.Context, _ map[string]value.Value) (value.Value, error) {
			return value.Callable(func(args []value.Value) (value.Value, error) {
				scope := map[string]value.Value{}
				for i, p := range params {
					scope[p] = args[i]
				}
				return body.eval(ctx, scope)
			}), nil
		},
	}
}

func (r *reader) call(f *function.Function, isSafe bool) expression {
	if !r.skip("(") {
		panic("no arguments: " + r.s)
	}
	var all []expression
	for !r.skip(")") {
		if r.skip("(") { // (x, i) -> body
			var params []string
			for !r.skip(")") {
				r.space()
				params = append(params, r.word())
				r.skip(",")
			}
			r.skip("->")
			all = append(all, r.lambda(params))
		} else {
			all = append(all, r.expression())
		}
		r.skip(",")
	}
	c, err := f.Resolve(argsOf(all))
	if err != nil {
		panic(err)
	}
	if isSafe {
		c = c.Safe()
	}
	return expression{arg: function.Arg{Type: c.Result}, eval: func(ctx *function.Context, scope map[string]value.Value) (value.Value, error) {
		if c.Lazy != nil {
			return c.Lazy(ctx, func(i int) (value.Value, error) {
				v, err := valuesOf(all[i:i+1], c.Params[i:i+1])(ctx, scope)
				if err != nil {
					return value.Null, err
				}
				return v[0], nil
			})
		}
		values, err := valuesOf(all, c.Params)(ctx, scope)
		if err != nil {
			return value.Null, err
		}
		return c.Eval(ctx, values)
	}}
}
