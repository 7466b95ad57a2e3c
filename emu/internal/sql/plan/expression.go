package plan

import (
	"context"
	"slices"
	"time"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/function"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// Expr is an expression with a type. It is safe for concurrent use.
type Expr interface {
	Type() value.Type
	// Eval computes the value for a row. Errors are of type *[value.Error], or those of the context.
	Eval(env *Env) (value.Value, error)
}

// Env has the inputs of an evaluation. It is for one goroutine.
type Env struct {
	Context   context.Context
	Row       []value.Value          // the slots
	Params    map[string]value.Value // by name in lower case
	Functions *function.Context
	stack     []value.Value // arguments of calls
}

// The expressions.
type (
	// Const is a constant.
	Const struct {
		Of    value.Type
		Value value.Value
	}

	// Param is a query parameter.
	Param struct {
		Name string // in lower case
		Of   value.Type
	}

	// Slot is a slot of the row.
	Slot struct {
		N  int
		Of value.Type
	}

	// Field is a field of a STRUCT.
	Field struct {
		Expr Expr
		N    int
		Of   value.Type
	}

	// Call is a call of a function or operator. Args have the types of its parameters.
	Call struct {
		function.Call
		Args  []Expr
		Parts string // the words among the arguments, such as MONTH
	}

	// Cast is CAST, or SAFE_CAST if Safe is set.
	Cast struct {
		Expr Expr
		To   value.Type
		Func value.CastFunc
		Zone *time.Location // of texts and dates without one
		Safe bool
	}

	// MakeArray is an array.
	MakeArray struct {
		Items []Expr
		Of    value.Type
	}

	// MakeStruct is a struct.
	MakeStruct struct {
		Items []Expr
		Of    value.Type
	}

	// Lambda is a function of N arguments. Its body sees them in the slots from Base on, after those of the
	// row around it.
	Lambda struct {
		Base, N int
		Body    Expr
	}
)

// Type returns the type of the constant.
func (e *Const) Type() value.Type { return e.Of }

// Eval returns the constant.
func (e *Const) Eval(*Env) (value.Value, error) { return e.Value, nil }

// Type returns the declared type.
func (e *Param) Type() value.Type { return e.Of }

// Eval returns the parameter.
func (e *Param) Eval(env *Env) (value.Value, error) { return env.Params[e.Name], nil }

// Type returns the type of the slot.
func (e *Slot) Type() value.Type { return e.Of }

// Eval returns the slot.
func (e *Slot) Eval(env *Env) (value.Value, error) { return env.Row[e.N], nil }

// Type returns the type of the field.
func (e *Field) Type() value.Type { return e.Of }

// Eval returns the field; NULL of a NULL.
func (e *Field) Eval(env *Env) (value.Value, error) {
	v, err := e.Expr.Eval(env)
	if err != nil || v.IsNull() {
		return value.Null, err
	}
	return v.Elems()[e.N], nil
}

// Type returns the type of the result.
func (e *Call) Type() value.Type { return e.Result }

// Eval calls the function.
func (e *Call) Eval(env *Env) (value.Value, error) {
	if e.Lazy != nil {
		row := env.Row
		return e.Lazy(env.Functions, func(i int) (value.Value, error) {
			env.Row = row
			return e.Args[i].Eval(env)
		})
	}
	depth := len(env.stack)
	for _, arg := range e.Args {
		v, err := arg.Eval(env)
		if err != nil {
			env.stack = env.stack[:depth]
			return v, err
		}
		env.stack = append(env.stack, v)
	}
	v, err := e.Call.Eval(env.Functions, env.stack[depth:])
	env.stack = env.stack[:depth]
	return v, err
}

// Type returns the type after the cast.
func (e *Cast) Type() value.Type { return e.To }

// Eval casts the value; NULL stays NULL.
func (e *Cast) Eval(env *Env) (value.Value, error) {
	v, err := e.Expr.Eval(env)
	if err != nil || v.IsNull() {
		return v, err
	}
	v, err = e.Func(v, e.Zone)
	if err != nil && e.Safe {
		return value.Null, nil
	}
	return v, err
}

// Type returns the type of the array.
func (e *MakeArray) Type() value.Type { return e.Of }

// Eval makes the array.
func (e *MakeArray) Eval(env *Env) (value.Value, error) {
	items, err := evalAll(env, e.Items)
	if err != nil {
		return value.Null, err
	}
	return value.NewArray(items)
}

// Type returns the type of the struct.
func (e *MakeStruct) Type() value.Type { return e.Of }

// Eval makes the struct.
func (e *MakeStruct) Eval(env *Env) (value.Value, error) {
	items, err := evalAll(env, e.Items)
	return value.Struct(items...), err
}

// evalAll evaluates expressions into a new list.
func evalAll(env *Env, exprs []Expr) ([]value.Value, error) {
	items := make([]value.Value, len(exprs))
	for i, item := range exprs {
		v, err := item.Eval(env)
		if err != nil {
			return nil, err
		}
		items[i] = v
	}
	return items, nil
}

// Type returns the unknown type: only the function that takes the lambda knows it.
func (e *Lambda) Type() value.Type { return value.Type{} }

// lambdaCalls is the number of calls of a lambda between two looks at the end of a query.
const lambdaCalls = 1 << 10

// Eval returns the function, which sees the current row.
func (e *Lambda) Eval(env *Env) (value.Value, error) {
	row := make([]value.Value, e.Base+e.N)
	copy(row, env.Row)
	calls := 0
	return value.Callable(func(args []value.Value) (value.Value, error) {
		if calls++; calls%lambdaCalls == 0 && env.Context.Err() != nil {
			return value.Null, env.Context.Err()
		}
		copy(row[e.Base:], args)
		inner := *env
		inner.Row, inner.stack = row, nil
		return e.Body.Eval(&inner)
	}), nil
}

// IsTrue reports whether a condition holds: NULL does not.
func IsTrue(v value.Value) bool { return !v.IsNull() && v.Bool() }

// Constant reports whether an expression has the same value for all rows of an execution.
func Constant(e Expr) bool {
	all := func(args []Expr) bool {
		return !slices.ContainsFunc(args, func(arg Expr) bool { return !Constant(arg) })
	}
	switch e := e.(type) {
	case *Const, *Param:
		return true
	case *Call:
		return !e.Function.Random && all(e.Args)
	case *Cast:
		return Constant(e.Expr)
	case *Field:
		return Constant(e.Expr)
	case *MakeArray:
		return all(e.Items)
	case *MakeStruct:
		return all(e.Items)
	default: // slots; a lambda sees the row
		return false
	}
}
