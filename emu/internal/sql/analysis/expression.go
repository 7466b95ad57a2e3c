package analysis

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/function"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/plan"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/syntax"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// typed is an expression with the origin that decides its coercions.
type typed struct {
	plan.Expr
	origin function.Origin
	// items are the fields of a STRUCT that has no declared type. They coerce one by one.
	items []typed
}

// arg returns the expression as an argument.
func (t typed) arg() function.Arg {
	arg := function.Arg{Type: t.Type(), Origin: t.origin}
	if c, ok := t.Expr.(*plan.Const); ok {
		arg.Value = c.Value
	}
	for _, item := range t.items {
		arg.Fields = append(arg.Fields, item.arg())
	}
	return arg
}

func constant(of value.Type, v value.Value) typed {
	return typed{Expr: &plan.Const{Of: of, Value: v}, origin: function.Literal}
}

// alone returns the expression. It makes an untyped NULL an INT64 and an untyped [] an
// ARRAY<INT64>, as GoogleSQL does where the context does not determine the type.
func (t typed) alone() plan.Expr {
	switch t.origin { //nolint:exhaustive // the others have a type
	case function.NullLiteral:
		return &plan.Const{Of: value.Int64Type}
	case function.EmptyArray:
		return &plan.Const{Of: value.ArrayOf(value.Int64Type), Value: value.Array(nil)}
	}
	return t.Expr
}

// coerce returns t as an expression of type to, which t must be coercible to. It converts
// literals at once, and adds a cast to other expressions.
func (a *analyzer) coerce(t typed, to value.Type) (plan.Expr, error) {
	from := t.Type()
	switch {
	case t.origin == function.NullLiteral:
		return &plan.Const{Of: to}, nil
	case t.origin == function.EmptyArray:
		return &plan.Const{Of: to, Value: value.Array(nil)}, nil
	case to.IsUnknown() || from.Equal(to):
		return t.Expr, nil
	case t.items != nil && len(t.items) == len(to.Fields()):
		out := &plan.MakeStruct{Of: to, Items: make([]plan.Expr, len(t.items))}
		for i, item := range t.items {
			var err error
			if out.Items[i], err = a.coerce(item, to.Fields()[i].Type); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	call, err := function.Cast(function.Arg{Type: from}, to, false)
	if err != nil {
		return nil, err
	}
	if c, ok := t.Expr.(*plan.Const); ok && t.origin == function.Literal {
		v, err := value.Cast(c.Value, from, to, time.UTC)
		if err != nil {
			return nil, err
		}
		return &plan.Const{Of: to, Value: v}, nil
	}
	return &plan.Call{Call: call, Args: []plan.Expr{t.Expr}}, nil
}

// expr analyzes an expression.
func (a *analyzer) expr(e syntax.Expr, s *scope) (typed, error) {
	if s.grouped != nil && !containsAggregate(e) {
		if t, ok := a.groupKey(e, s); ok {
			return t, nil
		}
	}
	switch e := e.(type) {
	case *syntax.Literal:
		return a.literal(e)
	case *syntax.Param:
		t, ok := a.o.Params[strings.ToLower(e.Name)]
		if !ok {
			return typed{}, a.fail(e.At, "Query parameter '%s' not found", e.Name)
		}
		return typed{Expr: &plan.Param{Name: strings.ToLower(e.Name), Of: t}, origin: function.Parameter}, nil
	case *syntax.Path:
		return a.path(e, s)
	case *syntax.Field:
		of, err := a.expr(e.Expr, s)
		if err != nil {
			return of, err
		}
		field, err := a.fields(of.Expr, []syntax.Name{e.Name})
		return typed{Expr: field}, err
	case *syntax.Index:
		return a.index(e, s)
	case *syntax.Unary:
		return a.unary(e, s)
	case *syntax.Binary:
		return a.binary(e, s)
	case *syntax.Logical:
		return a.operator(e.Pos(), e.Op, e.Args, s)
	case *syntax.In:
		return a.in(e, s)
	case *syntax.Between:
		t, err := a.operator(a.test(e.At, e.Not), "BETWEEN", []syntax.Expr{e.Expr, e.Low, e.High}, s)
		return a.not(e.Not, e.At, t, err)
	case *syntax.Is:
		what := e.What
		if what == "UNKNOWN" {
			what = "NULL"
		}
		t, err := a.operator(e.Pos(), "IS "+what, []syntax.Expr{e.Expr}, s)
		return a.not(e.Not, e.At, t, err)
	case *syntax.Case:
		return a.caseOf(e, s)
	case *syntax.Cast:
		return a.cast(e, s)
	case *syntax.Array:
		return a.array(e, s)
	case *syntax.Struct:
		return a.structOf(e, s)
	case *syntax.Call:
		return a.call(e, s)
	case *syntax.Extract:
		args := []syntax.Expr{e.Part, e.Expr}
		if e.Zone != nil {
			args = append(args, e.Zone)
		}
		return a.callOf(e.At, "EXTRACT", args, s, false)
	case *syntax.Interval:
		return typed{}, a.refuse(e.At, "INTERVAL outside of a date or timestamp function is")
	case *syntax.Lambda:
		return typed{}, a.fail(e.At, "Lambda is not expected here")
	default:
		return typed{}, a.refuse(e.Pos(), "This expression is")
	}
}

// groupKey returns the slot of the group key that is equal to e, or e itself if it is the same
// for all rows. It returns false for other expressions.
func (a *analyzer) groupKey(e syntax.Expr, s *scope) (typed, bool) {
	if _, ok := e.(*syntax.Literal); ok {
		return typed{}, false
	}
	if p, ok := e.(*syntax.Path); ok && s.aliasOf(p) != nil {
		return typed{}, false
	}
	t, err := a.expr(e, s.grouped.before.in(s.clause))
	if err != nil {
		return typed{}, false
	}
	if n, ok := s.grouped.keys[textOf(t.Expr)]; ok {
		return typed{Expr: &plan.Slot{N: n, Of: t.Type()}}, true
	}
	return t, plan.Constant(t.Expr)
}

// aliasOf returns the alias of a SELECT list that a path begins with, or nil.
func (s *scope) aliasOf(p *syntax.Path) *column {
	for i := range s.aliases {
		if same(s.aliases[i].name, p.Names[0].Text) {
			return &s.aliases[i]
		}
	}
	return nil
}

// literal analyzes a literal.
func (a *analyzer) literal(l *syntax.Literal) (typed, error) {
	switch l.Kind {
	case syntax.Null:
		return typed{Expr: &plan.Const{}, origin: function.NullLiteral}, nil
	case syntax.Bool:
		return constant(value.BoolType, value.Bool(strings.EqualFold(l.Text, "TRUE"))), nil
	case syntax.Int:
		n, err := strconv.ParseInt(l.Text, 0, 64)
		if len(l.Text) > 1 && l.Text[0] == '0' && l.Text[1] != 'x' && l.Text[1] != 'X' { // not octal
			n, err = strconv.ParseInt(l.Text, 10, 64)
		}
		if err != nil {
			return typed{}, a.fail(l.At, "Invalid integer literal: %s", l.Text)
		}
		return constant(value.Int64Type, value.Int64(n)), nil
	case syntax.Float:
		f, err := strconv.ParseFloat(l.Text, 64)
		if err != nil || math.IsInf(f, 0) {
			return typed{}, a.fail(l.At, "Invalid floating point literal: %s", l.Text)
		}
		return constant(value.Float64Type, value.Float64(f)), nil
	case syntax.String:
		return constant(value.StringType, value.String(l.Text)), nil
	case syntax.Bytes:
		return constant(value.BytesType, value.BytesOf(l.Text)), nil
	case syntax.Date, syntax.Timestamp:
		to, name := value.DateType, "DATE"
		if l.Kind == syntax.Timestamp {
			to, name = value.TimestampType, "TIMESTAMP"
		}
		v, err := value.Cast(value.String(l.Text), value.StringType, to, time.UTC)
		if err != nil {
			return typed{}, a.fail(l.At, "Invalid %s literal", name)
		}
		return typed{Expr: &plan.Const{Of: to, Value: v}, origin: function.Literal}, nil
	}
	return typed{}, a.refuse(l.At, "This literal is")
}

// path analyzes a name with fields.
func (a *analyzer) path(p *syntax.Path, s *scope) (typed, error) {
	if s.grouped != nil && s.aliasOf(p) == nil {
		return a.groupedPath(p, s)
	}
	c, fields, err := a.resolve(p.Names, s)
	if err != nil {
		if len(p.Names) == 1 && bare[strings.ToUpper(p.Names[0].Text)] {
			return a.callOf(p.Pos(), p.Names[0].Text, nil, s, false)
		}
		return typed{}, err
	}
	e, err := a.fields(c.use(), fields)
	return typed{Expr: e}, err
}

// bare are the functions that need no parentheses.
var bare = map[string]bool{"CURRENT_DATE": true, "CURRENT_TIMESTAMP": true}

// groupedPath analyzes a path over groups: a proper prefix of the path must be a group key.
func (a *analyzer) groupedPath(p *syntax.Path, s *scope) (typed, error) {
	for n := len(p.Names) - 1; n > 0; n-- {
		if t, ok := a.groupKey(&syntax.Path{Names: p.Names[:n]}, s); ok {
			e, err := a.fields(t.Expr, p.Names[n:])
			return typed{Expr: e}, err
		}
	}
	if _, _, err := a.resolve(p.Names, s.grouped.before); err != nil {
		return typed{}, err
	}
	return typed{}, a.fail(p.Pos(), "%s expression references column %s which is neither grouped nor aggregated", s.clause, p.Names[0].Text)
}

// index analyzes a subscript. If it selects from a family by a qualifier that is the same for all
// rows, the scan reads only that column.
func (a *analyzer) index(e *syntax.Index, s *scope) (typed, error) {
	arg, err := a.expr(e.Arg, s)
	if err != nil {
		return typed{}, err
	}
	var of typed
	p, ok := e.Expr.(*syntax.Path)
	if ok && s.grouped == nil && e.Mode == "" && plan.Constant(arg.Expr) {
		c, fields, err := a.resolve(p.Names, s)
		if err != nil {
			return typed{}, err
		}
		if c.scan != nil && c.scan.Kind == plan.Family && len(fields) == 0 {
			return a.subscript(e.Pos(), c, arg)
		}
	}
	if of, err = a.expr(e.Expr, s); err != nil {
		return of, err
	}
	name := "[]"
	if e.Mode != "" {
		name = "[" + e.Mode + "]"
	}
	return a.apply(e.Pos(), name, []typed{of, arg})
}

// apply applies an operator.
func (a *analyzer) apply(at int, name string, args []typed) (typed, error) {
	f, ok := function.Operator(name)
	if !ok {
		return typed{}, a.fail(at, "Operator %s is not supported", name)
	}
	return a.resolved(at, f, args, nil, "")
}

// resolved returns a call of f, with the arguments coerced to its parameters. others has the
// lambdas and words among the arguments, which have no type; see arguments.
func (a *analyzer) resolved(at int, f *function.Function, args []typed, others map[int]function.Arg, parts string) (typed, error) {
	given := make([]function.Arg, len(args))
	for i, arg := range args {
		if o, ok := others[i]; ok {
			given[i] = o
		} else {
			given[i] = arg.arg()
		}
	}
	call, err := f.Resolve(given)
	if err != nil {
		return typed{}, a.failed(at, err)
	}
	out := &plan.Call{Call: call, Args: make([]plan.Expr, len(args)), Parts: parts}
	for i, arg := range args {
		if _, ok := others[i]; ok {
			out.Args[i] = arg.Expr
			if arg.Expr == nil {
				out.Args[i] = &plan.Const{}
			}
			continue
		}
		if out.Args[i], err = a.coerce(arg, call.Params[i]); err != nil {
			return typed{}, a.failed(at, err)
		}
	}
	return typed{Expr: out}, nil
}

// operator analyzes operands and applies an operator.
func (a *analyzer) operator(at int, name string, operands []syntax.Expr, s *scope) (typed, error) {
	args := make([]typed, len(operands))
	for i, o := range operands {
		var err error
		if args[i], err = a.expr(o, s); err != nil {
			return typed{}, err
		}
	}
	return a.apply(at, name, args)
}

// not returns t, negated if negate is set, or err if it is not nil.
func (a *analyzer) not(negate bool, at int, t typed, err error) (typed, error) {
	if err != nil || !negate {
		return t, err
	}
	return a.apply(at, "NOT", []typed{t})
}

func (a *analyzer) unary(e *syntax.Unary, s *scope) (typed, error) {
	if l, ok := e.Expr.(*syntax.Literal); ok && e.Op == "-" && (l.Kind == syntax.Int || l.Kind == syntax.Float) {
		negative := *l
		negative.At, negative.Text = e.At, "-"+l.Text
		return a.literal(&negative)
	}
	if e.Op == "+" {
		return a.expr(e.Expr, s)
	}
	return a.operator(e.At, e.Op, []syntax.Expr{e.Expr}, s)
}

func (a *analyzer) binary(e *syntax.Binary, s *scope) (typed, error) {
	name, negated := e.Op, false
	switch e.Op {
	case "NOT LIKE":
		name, negated = "LIKE", true
	case "IS NOT DISTINCT FROM":
		name, negated = "IS DISTINCT FROM", true
	}
	t, err := a.operator(e.Pos(), name, []syntax.Expr{e.Left, e.Right}, s)
	return a.not(negated, e.At, t, err)
}

func (a *analyzer) in(e *syntax.In, s *scope) (typed, error) {
	name, args := "IN", append([]syntax.Expr{e.Expr}, e.List...)
	if e.Array != nil {
		name, args = "IN UNNEST", []syntax.Expr{e.Expr, e.Array}
	}
	t, err := a.operator(a.test(e.At, e.Not), name, args, s)
	return a.not(e.Not, e.At, t, err)
}

// test returns the position of IN or BETWEEN: at or, if not is set, the one behind the NOT that
// begins at that position.
func (a *analyzer) test(at int, not bool) int {
	if not {
		at += len("NOT")
		at += strings.IndexAny(a.text[at:], "BbIi")
	}
	return at
}

func (a *analyzer) caseOf(e *syntax.Case, s *scope) (typed, error) {
	name := "CASE"
	var args []syntax.Expr
	if e.Operand != nil {
		name, args = "CASE VALUE", append(args, e.Operand)
	}
	for _, w := range e.Whens {
		args = append(args, w.Cond, w.Result)
	}
	last := e.Else
	if last == nil {
		last = &syntax.Literal{At: e.At, Kind: syntax.Null, Text: "NULL"}
	}
	return a.operator(e.At, name, append(args, last), s)
}

func (a *analyzer) cast(e *syntax.Cast, s *scope) (typed, error) {
	of, err := a.expr(e.Expr, s)
	if err != nil {
		return of, err
	}
	to, err := a.typeOf(e.Type)
	if err != nil {
		return of, err
	}
	if e.Format != nil {
		return a.castFormat(e, of, to, s)
	}
	switch of.origin { //nolint:exhaustive // the others have a type
	case function.NullLiteral:
		return typed{Expr: &plan.Const{Of: to}}, nil
	case function.EmptyArray:
		if to.Kind() == value.KindArray {
			return typed{Expr: &plan.Const{Of: to, Value: value.Array(nil)}}, nil
		}
	}
	call, err := function.Cast(of.arg(), to, e.Safe)
	if err != nil {
		return of, a.failed(e.Expr.Pos(), err)
	}
	if of.Type().Equal(to) {
		return typed{Expr: of.Expr}, nil
	}
	if c, ok := of.Expr.(*plan.Const); ok {
		if v, err := call.Eval(&function.Context{}, []value.Value{c.Value}); err == nil {
			return typed{Expr: &plan.Const{Of: to, Value: v}}, nil
		}
	}
	return typed{Expr: &plan.Call{Call: call, Args: []plan.Expr{of.Expr}}}, nil
}

// castFormat analyzes CAST with FORMAT.
func (a *analyzer) castFormat(e *syntax.Cast, of typed, to value.Type, s *scope) (typed, error) {
	call, err := function.CastFormat(of.arg(), to, e.Zone != nil, e.Safe)
	if err != nil {
		return of, a.failed(e.FormatAt, err)
	}
	args := []plan.Expr{of.Expr}
	for _, x := range []struct {
		expr   syntax.Expr
		clause string
	}{{e.Format, "FORMAT"}, {e.Zone, "AT TIME ZONE"}} {
		if x.expr == nil {
			continue
		}
		t, err := a.expr(x.expr, s)
		if err != nil {
			return t, err
		}
		if !coercible(t.arg(), value.StringType) {
			return t, a.fail(x.expr.Pos(), "%s expression should return type STRING, but returns %v", x.clause, t.Type())
		}
		text, err := a.coerce(t, value.StringType)
		if err != nil {
			return t, a.failed(x.expr.Pos(), err)
		}
		args = append(args, text)
	}
	if e.Zone != nil && of.Type().Kind() != value.KindTimestamp && to.Kind() != value.KindTimestamp {
		return of, a.fail(e.Zone.Pos(), "AT TIME ZONE is not allowed for cast from %v to %v", of.Type(), to)
	}
	return typed{Expr: &plan.Call{Call: call, Args: args}}, nil
}

// typeOf returns a type by its name.
func (a *analyzer) typeOf(t *syntax.Type) (value.Type, error) {
	part := func(n int) (value.Type, error) { return a.typeOf(t.Fields[n].Type) }
	switch t.Kind { //nolint:exhaustive // the others are simple types
	case syntax.ArrayType:
		elem, err := part(0)
		if err == nil && elem.Kind() == value.KindArray {
			err = a.fail(t.At, "Arrays of arrays are not supported")
		}
		return value.ArrayOf(elem), err
	case syntax.MapType:
		key, err := part(0)
		if err != nil {
			return key, err
		}
		elem, err := part(1)
		return value.MapOf(key, elem), err
	case syntax.StructType:
		fields := make([]value.Field, len(t.Fields))
		for i, f := range t.Fields {
			of, err := part(i)
			if err != nil {
				return of, err
			}
			fields[i] = value.Field{Name: aliasText(f.Name), Type: of}
		}
		return value.StructOf(fields...), nil
	default:
		name := dotted(t.Path)
		if of, ok := value.ScalarType(name); ok {
			return of, nil
		}
		if a.o.Materialized && strings.Contains(name, ".") {
			return value.Type{}, a.failed(t.At, value.Unimplemented("Types of schema bundles are not implemented in materialized views"))
		}
		if of, ok := a.bundled(name); ok {
			return of, nil
		}
		return value.Type{}, a.fail(t.At, "Type not found: %s", name)
	}
}

// bundled returns the type with the id of a schema bundle, a dot and a full name. The bundle is
// one of a table that the statement reads. The id can have dots, too.
func (a *analyzer) bundled(name string) (of value.Type, ok bool) {
	for _, use := range a.out.Tables {
		for i := range len(name) {
			if name[i] != '.' || use.Materialized != 0 {
				continue
			}
			of, version, ok := a.o.Catalog.Type(use.Table, name[:i], name[i+1:])
			if ok {
				bundle := plan.BundleUse{Table: use.Table, Bundle: name[:i], Version: version}
				if !slices.Contains(a.out.Bundles, bundle) {
					a.out.Bundles = append(a.out.Bundles, bundle)
				}
				return of, true
			}
		}
	}
	return of, false
}

// array analyzes an array.
func (a *analyzer) array(e *syntax.Array, s *scope) (typed, error) {
	items := make([]typed, len(e.Items))
	args := make([]function.Arg, len(e.Items))
	literals := true
	for i, x := range e.Items {
		t, err := a.expr(x, s)
		if err != nil {
			return t, err
		}
		items[i], args[i] = t, t.arg()
		literals = literals && (t.origin == function.Literal || t.origin == function.NullLiteral)
	}
	var elem value.Type
	switch {
	case e.Elem != nil:
		of, err := a.typeOf(e.Elem)
		if err != nil {
			return typed{}, err
		}
		elem, literals = of, false
	case len(items) == 0:
		return typed{Expr: &plan.Const{}, origin: function.EmptyArray}, nil
	default:
		of, ok := function.Supertype(args)
		if !ok {
			return typed{}, a.fail(e.At, "Array elements of types %s do not have a common supertype", typeList(args))
		}
		elem = typeOrInt(of)
	}
	if elem.Kind() == value.KindArray {
		return typed{}, a.fail(e.At, "Cannot construct array with element type %v because nested arrays are not supported", elem)
	}
	out := &plan.MakeArray{Of: value.ArrayOf(elem)}
	for i, t := range items {
		if !coercible(args[i], elem) {
			return typed{}, a.fail(e.Items[i].Pos(), "Array element type %v does not coerce to %v", args[i].Type, elem)
		}
		of, err := a.coerce(t, elem)
		if err != nil {
			return typed{}, a.failed(e.Items[i].Pos(), err)
		}
		out.Items = append(out.Items, of)
	}
	if !literals {
		return typed{Expr: out}, nil
	}
	values := make([]value.Value, len(out.Items))
	for i, x := range out.Items {
		values[i] = x.(*plan.Const).Value
	}
	return constant(out.Of, value.Array(values)), nil
}

// maxTypeSize bounds the types of structs, which double with each STRUCT(x, x).
const maxTypeSize = 10_000

// size counts a type and the types within it. It stops once the count exceeds limit.
func size(t value.Type, limit int) int {
	n := 1
	for _, f := range t.Fields() {
		if n > limit {
			return n
		}
		n += size(f.Type, limit-n)
	}
	if t.Kind() == value.KindArray || t.Kind() == value.KindMap {
		n += size(t.Elem(), limit-n)
	}
	return n
}

// coercible reports whether an argument can be used as a value of a type without a cast.
func coercible(arg function.Arg, to value.Type) bool {
	t, ok := function.Supertype([]function.Arg{{Type: to}, arg})
	return ok && (t.Equal(to) || arg.Type.IsUnknown())
}

func typeList(args []function.Arg) string {
	names := make([]string, 0, len(args))
	seen := map[string]bool{}
	for _, arg := range args {
		if name := arg.Type.String(); !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return "{" + strings.Join(names, ", ") + "}"
}

// structOf analyzes a struct.
func (a *analyzer) structOf(e *syntax.Struct, s *scope) (typed, error) {
	var declared []value.Field
	if e.Type != nil {
		of, err := a.typeOf(e.Type)
		if err != nil {
			return typed{}, err
		}
		if declared = of.Fields(); len(declared) != len(e.Items) {
			return typed{}, a.fail(e.At, "STRUCT type has %d fields but constructor call has %d fields", len(declared), len(e.Items))
		}
	}
	out := &plan.MakeStruct{}
	var items []typed
	fields := make([]value.Field, len(e.Items))
	for i, x := range e.Items {
		t, err := a.expr(x.Expr, s)
		if err != nil {
			return t, err
		}
		if declared != nil {
			fields[i] = declared[i]
		} else {
			name := aliasText(x.Alias)
			if p, ok := x.Expr.(*syntax.Path); ok && name == "" && !e.Tuple {
				name = p.Names[len(p.Names)-1].Text
			}
			fields[i] = value.Field{Name: name, Type: t.alone().Type()}
			items = append(items, t)
		}
		if !coercible(t.arg(), fields[i].Type) {
			return t, a.fail(x.Pos(), "Struct field %d has type %v which does not coerce to %v", i+1, t.Type(), fields[i].Type)
		}
		of, err := a.coerce(t, fields[i].Type)
		if err != nil {
			return t, a.failed(x.Pos(), err)
		}
		out.Items = append(out.Items, of)
	}
	out.Of = value.StructOf(fields...)
	if size(out.Of, maxTypeSize) > maxTypeSize {
		return typed{}, a.fail(e.At, "A STRUCT has more than %d fields, with those of the types in it", maxTypeSize)
	}
	return typed{Expr: out, items: items}, nil
}
