package plan

import (
	"context"
	"slices"

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
	lambdas   []value.Value // arguments of the lambdas around, the innermost last
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

	// MessageField is a field of a PROTO, or whether it is set.
	MessageField struct {
		Expr  Expr
		Field *value.MessageField
	}

	// Call is a call of a function or operator, or a cast. Args have the types of its parameters.
	Call struct {
		function.Call
		Args  []Expr
		Parts string // SAFE, and the words among the arguments, such as MONTH
	}

	// MakeArray makes an ARRAY of its items.
	MakeArray struct {
		Items []Expr
		Of    value.Type
	}

	// MakeStruct makes a STRUCT, whose fields are its items.
	MakeStruct struct {
		Items []Expr
		Of    value.Type
	}

	// Lambda is a function of N arguments. Base is the number of arguments of the lambdas around it.
	Lambda struct {
		Base, N int
		Body    Expr
	}

	// Argument is an argument of a lambda. N is its index among the arguments of all lambdas
	// around it, which begin with those of the outermost.
	Argument struct {
		N  int
		Of value.Type
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

// Eval returns the field, or NULL if the STRUCT is NULL.
func (e *Field) Eval(env *Env) (value.Value, error) {
	v, err := e.Expr.Eval(env)
	if err != nil || v.IsNull() {
		return value.Null, err
	}
	return v.Elems()[e.N], nil
}

// Type returns the type of the field.
func (e *MessageField) Type() value.Type { return e.Field.Type() }

// Eval returns the field, or NULL if the message is NULL.
func (e *MessageField) Eval(env *Env) (value.Value, error) {
	v, err := e.Expr.Eval(env)
	if err != nil {
		return value.Null, err
	}
	return e.Field.Read(v)
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

// lambdaCalls is the number of calls of a lambda between two checks whether the query was
// canceled.
const lambdaCalls = 1 << 10

// Eval returns the function, which sees the current row.
func (e *Lambda) Eval(env *Env) (value.Value, error) {
	all := make([]value.Value, e.Base+e.N)
	copy(all, env.lambdas)
	inner := *env
	inner.lambdas, inner.stack = all, nil
	calls := 0
	return value.Callable(func(args []value.Value) (value.Value, error) {
		if calls%lambdaCalls == 0 && env.Context.Err() != nil { // also at the first call, since a lambda in a lambda is made often
			return value.Null, env.Context.Err()
		}
		calls++
		copy(all[e.Base:], args)
		return e.Body.Eval(&inner)
	}), nil
}

// Type returns the type of the argument.
func (e *Argument) Type() value.Type { return e.Of }

// Eval returns the argument.
func (e *Argument) Eval(env *Env) (value.Value, error) { return env.lambdas[e.N], nil }

// IsTrue reports whether a condition holds: NULL does not.
func IsTrue(v value.Value) bool { return !v.IsNull() && v.Bool() }

// Constant reports whether an expression has the same value for all rows of an execution.
func Constant(e Expr) bool {
	return !Any(e, func(e Expr) bool {
		switch e := e.(type) {
		case *Slot, *Argument, *Lambda: // a lambda sees the row
			return true
		case *Call:
			return e.Function.Random
		}
		return false
	})
}

// Any reports whether match holds for an expression, or for one inside of it.
func Any(e Expr, match func(Expr) bool) bool {
	inside := func(e Expr) bool { return Any(e, match) }
	if match(e) {
		return true
	}
	switch e := e.(type) {
	case *Call:
		return slices.ContainsFunc(e.Args, inside)
	case *Field:
		return inside(e.Expr)
	case *MessageField:
		return inside(e.Expr)
	case *MakeArray:
		return slices.ContainsFunc(e.Items, inside)
	case *MakeStruct:
		return slices.ContainsFunc(e.Items, inside)
	case *Lambda:
		return e.Body != nil && inside(e.Body)
	}
	return false
}
